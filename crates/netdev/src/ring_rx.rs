//! The receive queue of a packet socket's ring: of a port's device, or of the device by which the
//! kernel tier hands frames over.
//!
//! Frames come out as they would stand on a wire, or whole where the receiver asks for it; the
//! socket's ring and queue are [`crate::sys::packet_socket`]'s.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::Batch;

use crate::counters::{Counted, PortQueueCounters};
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::offload::{VNET_LEN, VnetHeader};
use crate::port::RxQueue;
use crate::soft_offload::SoftOffload;
use crate::sys::packet_socket::{RingSlot, RxRing};

/// After this number of empty calls of `rx` the socket is asked for errors, since it is only then
/// that a missing frame can mean a missing device. A worker that sleeps is woken by the error.
const EMPTY_CALLS: u32 = 32;

/// Length of the longest frame of a device that stands in a slot: a header, a tag, and its MTU.
pub(crate) fn frame_len(device: &KernelDevice) -> usize {
    device.mtu() as usize + 18
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RingRx {
    device: Arc<KernelDevice>,
    ring: RxRing,
    soft_offload: SoftOffload,
    counters: Arc<PortQueueCounters>,
    empty_calls: u32,
    /// Whether super-frames may come whole.
    gso: bool,
    /// When the frames of the last call arrived, where somebody wants to know.
    arrivals: Option<Vec<u64>>,
}

impl RingRx {
    /// The receive queue of `ring`, whose frames came to `device`; super-frames come whole where
    /// `gso` allows it and [`RxQueue::keep_offloads`] asks for it.
    pub(crate) fn new(
        device: &Arc<KernelDevice>,
        ring: RxRing,
        counters: &Arc<PortQueueCounters>,
        gso: bool,
    ) -> Self {
        Self {
            device: Arc::clone(device),
            ring,
            soft_offload: SoftOffload::new(),
            counters: Arc::clone(counters),
            empty_calls: 0,
            gso,
            arrivals: None,
        }
    }

    /// Forgets the arrivals of the call before; the last of them is that of segments to come.
    fn begin_arrivals(&mut self) -> u64 {
        let Some(arrivals) = &mut self.arrivals else { return 0 };
        let last = arrivals.last().copied().unwrap_or_default();
        arrivals.clear();
        last
    }

    /// Takes the frame of `slot` out of the ring: into the batch, or to be segmented.
    fn take(&mut self, slot: &RingSlot, batch: &mut Batch, counted: &mut Counted) {
        if slot.copied {
            self.take_whole(slot, batch, counted);
            return;
        }
        if slot.held < slot.len {
            // The kernel had no room to queue it whole.
            counted.drops += 1;
            return;
        }
        let header = self.ring.read_vnet(slot);
        let vnet = VnetHeader::read(&header);
        if vnet.is_gso() {
            let end = VNET_LEN + slot.held;
            let Some(buffer) = self.soft_offload.buffer().get_mut(..end) else {
                counted.errors += 1;
                return;
            };
            buffer[..VNET_LEN].copy_from_slice(&header);
            self.ring.read(slot, &mut buffer[VNET_LEN..]);
            self.soft_offload.process(end, slot.vlan, batch, counted);
        } else {
            let mut frame = batch.take_spare();
            self.ring.read(slot, frame.prepare(slot.held));
            self.soft_offload.complete_into(frame, &vnet, slot.vlan, batch, counted);
        }
    }

    fn take_whole(&mut self, slot: &RingSlot, batch: &mut Batch, counted: &mut Counted) {
        let mut read = self.ring.read_whole(self.soft_offload.buffer());
        if read.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::WouldBlock) {
            // An error of the device stands before the frame; it is reported once.
            self.empty_calls = EMPTY_CALLS;
            read = self.ring.read_whole(self.soft_offload.buffer());
        }
        match read {
            Ok(end) => self.soft_offload.process(end, slot.vlan, batch, counted),
            Err(_) => counted.drops += 1,
        }
    }

    /// After enough empty calls: has the socket an error, and is the device still there?
    fn check_device(&mut self) -> Result<(), PortError> {
        self.empty_calls += 1;
        if self.empty_calls < EMPTY_CALLS {
            return Ok(());
        }
        self.empty_calls = 0;
        match rustix::net::sockopt::socket_error(self.ring.fd()) {
            Ok(Ok(())) => Ok(()),
            // "Network is down" comes for both a device set down and one that has gone.
            Ok(Err(_)) | Err(_) => self.device.ask(),
        }
    }
}

impl RxQueue for RingRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.device.check()?;
        let before = batch.len();
        let mut counted = Counted::default();
        let mut arrived_ns = self.begin_arrivals();
        while batch.len() - before < max {
            if !self.soft_offload.next_segment(batch, &mut counted) {
                let Some(slot) = self.ring.peek() else { break };
                self.take(&slot, batch, &mut counted);
                self.ring.release();
                arrived_ns = slot.arrived_ns;
            }
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.resize(batch.len() - before, arrived_ns);
            }
        }
        self.counters.rx.add(&counted);
        let received = batch.len() - before;
        if received == 0 {
            self.check_device()?;
        }
        Ok(received)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.fd())
    }

    fn keep_arrivals(&mut self) -> bool {
        self.arrivals = Some(Vec::new());
        true
    }

    fn arrivals(&self) -> &[u64] {
        self.arrivals.as_deref().unwrap_or_default()
    }

    fn keep_offloads(&mut self) -> bool {
        if self.gso {
            self.soft_offload.keep();
        }
        self.gso
    }
}
