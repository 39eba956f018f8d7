//! The kernel device of a port, or its end of a wire between bridges, by which the kernel tier
//! receives and sends for it.
//!
//! A port has one whether or not a tier ever uses it.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::counters::{PortCounters, PortQueueCounters};
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::patch_end::PatchEnd;
use crate::sys::link::Rtnl;
use crate::sys::veth_peer::FarEndSockets;
use crate::tier::PATCH_OUTPUT;

const FIX: &str = "give the program CAP_NET_RAW and CAP_NET_ADMIN";

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

/// The kernel device of a port, or its patch port, as the tier sends by it and counts for it.
#[derive(Debug, Clone)]
pub struct TierPort {
    pub(crate) way: TierWay,
    /// Of the first queue, and of what passes in the kernel.
    pub(crate) counters: Arc<PortQueueCounters>,
}

/// The way in which a port sends and receives in the kernel.
#[derive(Debug, Clone)]
pub(crate) enum TierWay {
    Device(TierDevice),
    /// On to the program of another bridge.
    Patch(Arc<PatchEnd>),
}

/// A kernel device.
#[derive(Debug, Clone)]
pub(crate) struct TierDevice {
    pub(crate) device: Arc<KernelDevice>,
    /// Of each queue.
    pub(crate) queues: Arc<[Arc<PortQueueCounters>]>,
    /// Of a veth whose frames may go past it.
    pub(crate) peer: Option<Arc<TierPeer>>,
    /// Whether super-frames may come whole.
    pub(crate) gso: bool,
    /// The socket of its ring, as long as that receives for the port; of several queues none.
    pub(crate) ring: Weak<OwnedFd>,
}

impl TierPort {
    fn device(&self) -> Option<&TierDevice> {
        match &self.way {
            TierWay::Device(device) => Some(device),
            TierWay::Patch(_) => None,
        }
    }

    /// The number of the device that received frames are of; zero for a patch port that is in no
    /// tier.
    #[must_use]
    pub fn index(&self) -> u32 {
        match &self.way {
            TierWay::Device(it) => it.device.index(),
            TierWay::Patch(end) => end.tap().unwrap_or_default(),
        }
    }

    /// The use that the host makes of the device itself.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn host_use(&self) -> Result<Option<String>, PortError> {
        let Some(TierDevice { device, .. }) = self.device() else { return Ok(None) };
        let what = || format!("what the host uses {} for", device.name());
        let used = Rtnl::open().and_then(|rtnl| rtnl.host_use(device.index()));
        let used = used.map_err(|error| PortError::from_io(what(), FIX, error.into()))?;
        Ok(used.map(|used| used.to_string()))
    }

    /// Whether it may enter a tier later without the loss of a frame: a patch port, or a device
    /// that receives by one ring.
    #[must_use]
    pub fn may_enter_later(&self) -> bool {
        self.device().is_none_or(|it| it.ring.strong_count() > 0)
    }

    /// Whether it is a patch port.
    #[must_use]
    pub fn is_patch(&self) -> bool {
        self.device().is_none()
    }

    /// The number that frames leave by; none for a patch port whose other end is in no tier.
    pub(crate) fn output(&self) -> Option<u32> {
        match &self.way {
            TierWay::Device(it) => Some(it.device.index()),
            TierWay::Patch(end) => end.next().map(|number| number | PATCH_OUTPUT),
        }
    }

    /// The bytes of a packet that it can carry.
    pub(crate) fn mtu(&self) -> u32 {
        self.device().map_or(u32::MAX, |it| it.device.mtu())
    }

    /// Whether it may have a far end to which frames go straight, so that it is to be looked at.
    #[must_use]
    pub fn may_have_far_end(&self) -> bool {
        self.device().is_some_and(|it| it.peer.is_some())
    }

    /// The address of the far end to which frames go straight.
    pub(crate) fn far_end(&self) -> Option<[u8; 6]> {
        self.device()?.peer.as_ref()?.address()
    }

    /// Looks at the far end and at the device's egress; whether frames take another way from now
    /// on. It may wait for whoever else changes devices.
    pub fn look_at_far_end(&self, sockets: &mut FarEndSockets) -> bool {
        let Some(TierDevice { device, peer: Some(peer), .. }) = self.device() else { return false };
        // Where the kernel gives no answer, frames go by way of the device.
        let found = sockets.veth_peer(device.index()).inspect_err(|error| {
            tracing::debug!(device = %device.name(), %error, "no look at the far end");
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
