//! The transmit queue of a kernel device: its frames go by what the kind of port sends with, and
//! are counted here.
//!
//! It must never return an error for a call that took frames: the caller would count these as
//! refused, after they were counted as sent.

use std::sync::Arc;

use packet::PacketBuf;

use crate::counters::{Counted, PortQueueCounters};
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::port::TxQueue;

/// What a kind of port sends with.
pub(crate) trait FrameSender: Send {
    /// Sends a prefix of `frames` in order without waiting. An error is that of the first frame
    /// that was not taken.
    fn send(
        &self,
        device: &KernelDevice,
        frames: &[PacketBuf],
        taken: &mut TakenFrames,
    ) -> Result<(), PortError>;
}

/// The frames that one call has taken.
#[derive(Debug, Default)]
pub(crate) struct TakenFrames {
    count: usize,
    counted: Counted,
}

impl TakenFrames {
    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A frame of `len` bytes was sent.
    #[inline]
    pub(crate) fn sent(&mut self, len: usize) {
        self.count += 1;
        self.counted.frame(len);
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
}

impl<S: FrameSender> KernelTx<S> {
    pub(crate) fn new(
        device: Arc<KernelDevice>,
        sender: S,
        counters: Arc<PortQueueCounters>,
    ) -> Self {
        Self { device, sender, counters }
    }
}

impl<S: FrameSender> TxQueue for KernelTx<S> {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.device.check()?;
        let mut taken = TakenFrames::default();
        let outcome = self.sender.send(&self.device, frames, &mut taken);
        self.counters.tx.add(&taken.counted);
        match outcome {
            Err(error) if taken.count == 0 => Err(error),
            // An error that lasts is the next call's.
            Ok(()) | Err(_) => Ok(taken.count),
        }
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
            taken: &mut TakenFrames,
        ) -> Result<(), PortError> {
            for frame in frames {
                if frame.bytes()[0] == 0xff {
                    let source = io::Error::other("broken");
                    return Err(PortError::Io { what: "sending".to_owned(), source });
                } else if frame.len() > 100 {
                    taken.unfit();
                } else {
                    taken.sent(frame.len());
                }
            }
            Ok(())
        }
    }

    #[test]
    fn frames_before_an_error_are_taken_and_the_error_is_the_next_calls() {
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
