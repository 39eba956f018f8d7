//! The transmit queue of a kernel device: its frames go by what the kind of port sends with, and
//! are counted here.
//!
//! It must never return an error for a call that took frames: the caller would count these as
//! refused, after they were counted as sent.

use std::sync::Arc;

use packet::offload::leave_open;
use packet::{PacketBuf, Pool};

use crate::counters::{Counted, PortQueueCounters};
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::offload::{VNET_LEN, VnetHeader};
use crate::port::{TxQueue, finish_offloads};

/// Bytes that a frame may have beyond the device's MTU: an Ethernet header and one VLAN tag.
const FRAME_OVERHEAD: usize = 18;

/// The sending end of a kernel port: a packet socket or a TAP device.
pub(crate) trait FrameSender: Send {
    /// Sends a prefix of `frames` in order without waiting, with their virtio-net headers; those
    /// without a header have nothing left to do. An error is that of the first frame that was not
    /// taken.
    fn send(
        &self,
        device: &KernelDevice,
        frames: &[PacketBuf],
        headers: &[[u8; VNET_LEN]],
        taken: &mut TakenFrames,
    ) -> Result<(), PortError>;

    /// See [`TxQueue::carries_offloads`].
    fn carries_offloads(&self) -> bool {
        false
    }
}

/// The frames that one call has taken.
#[derive(Debug, Default)]
pub(crate) struct TakenFrames {
    count: usize,
    counted: Counted,
    dropped_below: u64,
    is_offload_refused: bool,
}

impl TakenFrames {
    /// The number of frames that were taken.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A frame was sent.
    #[inline]
    pub(crate) fn sent(&mut self, frame: &PacketBuf) {
        self.count += 1;
        self.counted.on_wire(frame);
    }

    /// The first frame that was not taken may be, when nothing is left to do to it.
    pub(crate) fn refuse_offload(&mut self) {
        self.is_offload_refused = true;
    }

    /// So many frames were not sent, and dropped below, where that is counted too.
    pub(crate) fn dropped_below(&mut self, frames: u64) {
        self.dropped_below += frames;
    }

    /// A frame that the device can never carry was taken.
    pub(crate) fn unfit(&mut self) {
        self.count += 1;
        self.counted.errors += 1;
    }
}

/// The transmit queue.
#[derive(Debug)]
pub(crate) struct KernelTx<S> {
    device: Arc<KernelDevice>,
    sender: S,
    counters: Arc<PortQueueCounters>,
    /// Of the frames of one call.
    headers: Vec<[u8; VNET_LEN]>,
}

impl<S: FrameSender> KernelTx<S> {
    pub(crate) fn new(
        device: Arc<KernelDevice>,
        sender: S,
        counters: Arc<PortQueueCounters>,
    ) -> Self {
        Self { device, sender, counters, headers: Vec::new() }
    }

    /// Sends a prefix of frames with these headers; how many were taken, and whether the next one
    /// may be when nothing is left to do to it.
    fn send(
        &self,
        frames: &[PacketBuf],
        headers: &[[u8; VNET_LEN]],
    ) -> Result<(usize, bool), PortError> {
        let mut taken = TakenFrames::default();
        let outcome = self.sender.send(&self.device, frames, headers, &mut taken);
        self.counters.tx.add(&taken.counted);
        if taken.dropped_below > 0 {
            self.counters.tier.add_dropped_below(taken.dropped_below);
        }
        match outcome {
            Err(error) if taken.count == 0 => Err(error),
            // An error that lasts is the next call's.
            Ok(()) | Err(_) => Ok((taken.count, taken.is_offload_refused)),
        }
    }

    /// Writes the headers of frames. Super-frames that stand for frames longer than the device
    /// takes are cut here, so that each of these is refused as it should be.
    fn write_headers(&mut self, frames: &mut Vec<PacketBuf>, pool: &mut Pool) {
        let longest = self.device.mtu() as usize + FRAME_OVERHEAD;
        let is_long = |frame: &PacketBuf| {
            frame.offload().is_some_and(|offload| offload.longest_on_wire(frame.len()) > longest)
        };
        let mut errors = 0;
        if frames.iter().any(is_long) {
            finish_offloads(frames, pool, is_long);
        }
        self.headers.clear();
        frames.retain_mut(|frame| {
            let Some(offload) = frame.offload() else {
                self.headers.push([0; VNET_LEN]);
                return true;
            };
            match leave_open(frame.bytes_mut(), offload) {
                Ok(open) => self.headers.push(VnetHeader::of(&open).write()),
                Err(_) => {
                    errors += 1;
                    return false;
                }
            }
            true
        });
        self.counters.tx.add(&Counted { errors, ..Counted::default() });
    }
}

impl<S: FrameSender> TxQueue for KernelTx<S> {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.device.check()?;
        debug_assert!(!frames.iter().any(PacketBuf::has_offload), "only `tx_batch` sends these");
        self.send(frames, &[]).map(|(taken, _)| taken)
    }

    fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        if !PacketBuf::any_has_offload(frames) {
            let taken = self.tx(frames)?;
            pool.give_front(frames, taken);
            return Ok(taken);
        }
        self.device.check()?;
        let mut sum = 0;
        while !frames.is_empty() {
            self.write_headers(frames, pool);
            let (taken, is_offload_refused) = match self.send(frames, &self.headers) {
                Ok(sent) => sent,
                Err(error) if sum == 0 => return Err(error),
                Err(_) => break,
            };
            pool.give_front(frames, taken);
            sum += taken;
            if !is_offload_refused {
                break;
            }
            // The kernel does not take this one as it is: it goes cut and complete.
            tracing::debug!(device = %self.device.name(), "a super-frame is cut here");
            let rest = frames.split_off(1.min(frames.len()));
            finish_offloads(frames, pool, |_| true);
            frames.extend(rest);
        }
        Ok(sum)
    }

    fn carries_offloads(&self) -> bool {
        self.sender.carries_offloads()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A device that takes frames of up to 100 bytes and fails at the byte 0xff.
    struct Failing;

    impl FrameSender for Failing {
        fn send(
            &self,
            _device: &KernelDevice,
            frames: &[PacketBuf],
            headers: &[[u8; VNET_LEN]],
            taken: &mut TakenFrames,
        ) -> Result<(), PortError> {
            for (at, frame) in frames.iter().enumerate() {
                if frame.has_offload() {
                    assert_ne!(headers[at], [0; VNET_LEN]);
                    taken.refuse_offload();
                    break;
                }
                if frame.bytes()[0] == 0xff {
                    let source = io::Error::other("broken");
                    return Err(PortError::Io { what: "sending".to_owned(), source });
                } else if frame.len() > 100 {
                    taken.unfit();
                } else {
                    taken.sent(frame);
                }
            }
            Ok(())
        }
    }

    #[test]
    fn an_error_behind_taken_frames_is_that_of_the_next_call() {
        let device = Arc::new(KernelDevice::find("test", "lo").unwrap());
        let counters = Arc::new(PortQueueCounters::default());
        let mut tx = KernelTx::new(device, Failing, Arc::clone(&counters));
        let frames = [vec![1; 60], vec![1; 101], vec![0xff; 60], vec![1; 60]]
            .map(|f| PacketBuf::from_slice(&f));
        assert_eq!(tx.tx(&frames).unwrap(), 2, "one sent, and one that is too long");
        assert!(tx.tx(&frames[2..]).is_err());
        assert_eq!(tx.tx(&frames[3..]).unwrap(), 1);
        let counted = counters.read();
        assert_eq!((counted.tx_packets, counted.tx_bytes, counted.tx_errors), (2, 120, 1));
    }
}
