//! The kernel device of a port, by which the kernel tier receives and sends for it.
//!
//! It knows nothing of the tier: a port has one whether or not a tier ever uses it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::counters::{PortCounters, PortQueueCounters};
use crate::device::KernelDevice;
use crate::sys::veth_peer::FarEndSockets;

/// The far end of a port's veth, to which the tier may hand frames straight, as last looked at.
#[derive(Debug, Default)]
pub(crate) struct TierPeer(Mutex<Option<[u8; 6]>>);

impl TierPeer {
    /// Whether it is another one than before.
    pub(crate) fn set(&self, address: Option<[u8; 6]>) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, address) != address
    }

    /// Its Ethernet address; none where frames go by way of the device.
    pub(crate) fn address(&self) -> Option<[u8; 6]> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel device of a port, as the tier sends by it and counts for it.
#[derive(Debug, Clone)]
pub struct TierPort {
    pub(crate) device: Arc<KernelDevice>,
    /// Of the first queue, and of what passes in the kernel.
    pub(crate) counters: Arc<PortQueueCounters>,
    /// Of each queue.
    pub(crate) queues: Arc<[Arc<PortQueueCounters>]>,
    /// Of a veth whose frames may go past it.
    pub(crate) peer: Option<Arc<TierPeer>>,
    /// Whether super-frames may come whole.
    pub(crate) gso: bool,
}

impl TierPort {
    /// The number of the device.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.device.index()
    }

    /// Whether it may have a far end to which frames go straight, so that it is to be looked at.
    #[must_use]
    pub fn may_have_far_end(&self) -> bool {
        self.peer.is_some()
    }

    /// The address of the far end to which frames go straight.
    pub(crate) fn far_end(&self) -> Option<[u8; 6]> {
        self.peer.as_ref()?.address()
    }

    /// Looks at the far end and at the device's egress; whether frames take another way from now
    /// on. It may wait for whoever else changes devices.
    pub fn look_at_far_end(&self, sockets: &mut FarEndSockets) -> bool {
        let Some(peer) = &self.peer else { return false };
        // Where the kernel gives no answer, frames go by way of the device.
        let found = sockets.veth_peer(self.index()).inspect_err(|error| {
            tracing::debug!(device = %self.device.name(), %error, "no look at the far end");
        });
        peer.set(found.unwrap_or_default())
    }

    /// All that was counted here for the tier.
    #[must_use]
    pub fn counted(&self) -> PortCounters {
        self.counters.tier.read()
    }

    /// Counts what the tier has received at this port.
    pub fn count_rx(&self, packets: u64, bytes: u64) {
        self.counters.tier.add_rx(packets, bytes);
    }

    /// Counts what the tier has sent by this port.
    pub fn count_tx(&self, packets: u64, bytes: u64) {
        self.counters.tier.add_tx(packets, bytes);
    }

    /// Counts what the tier could not send by this port for want of memory.
    pub fn count_tx_dropped(&self, packets: u64) {
        self.counters.tier.add_tx_dropped(packets);
    }

    /// Counts what the tier has counted as sent by this port, and was dropped before its device.
    pub fn count_unsent(&self, packets: u64, bytes: u64) {
        self.counters.tier.add_unsent(packets, bytes);
        self.count_tx_dropped(packets);
    }
}
