//! The receive queue of a port at which the kernel tier's program stands: a TAP device, to which
//! the program redirects what it does not decide itself.
//!
//! Measured on veth against a ring buffer of BPF (200 of 212 thousand frames of 64 bytes a second
//! against 263 of 272), and taken all the same: the virtio-net header says which checksums are
//! unfinished and which kind of segments a frame holds, which no ring buffer's program can see.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::Batch;

use super::{FIX, TierPrograms};
use crate::counters::{Counted, HandoverLosses, PortQueueCounters};
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::port::{Port, RxQueue};
use crate::soft_offload::SoftOffload;
use crate::sys::bpf::Link;
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::{Rtnl, disable_ipv6};
use crate::sys::packet_socket::Promiscuous;
use crate::sys::tun::Tun;
use crate::tier_port::TierPort;

/// The kernel puts a number in the place of `%d`.
const TAP_NAME: &str = "weir-tier%d";
/// A TAP device carries no longer frames.
const TAP_MTU: u32 = 65_521;
/// Frames that wait for this process, as many as the ring of a port holds.
const TAP_QUEUE_LEN: u32 = 2_048;

/// The receive queue.
#[derive(Debug)]
struct Handover {
    device: Arc<KernelDevice>,
    /// Before the TAP device, to which the programs hand over.
    _programs: [Link; 2],
    _promiscuous: Promiscuous,
    tun: Tun,
    soft_offload: SoftOffload,
    counters: Arc<PortQueueCounters>,
    /// Whether super-frames may come whole.
    gso: bool,
}

/// The frames that were handed over and found no room, and those that queueing discipline and
/// device dropped instead of sending: the program learns nothing of them.
#[derive(Debug)]
struct HandoverDrops {
    rtnl: Rtnl,
    tap: u32,
    last: u64,
    device: u32,
    /// The counts at the last look, and what was dropped up to then.
    seen: Dropped,
    below: u64,
    /// Of the worker's frames before there was a tier.
    refused_before: u64,
    since: u64,
}

impl HandoverDrops {
    fn new(rtnl: Rtnl, tap: u32, device: u32, refused_before: u64) -> Self {
        let seen = Dropped::at(&rtnl, device);
        Self { rtnl, tap, last: 0, device, seen, below: 0, refused_before, since: 0 }
    }
}

impl HandoverLosses for HandoverDrops {
    fn not_received(&mut self) -> u64 {
        self.last = self.last.max(dropped(&self.rtnl, self.tap));
        self.last
    }

    /// But for those of which the sender knows. A super-frame counts as one, and frames of other
    /// processes count too: the kernel does not tell them apart.
    fn not_sent(&mut self, refused: u64) -> u64 {
        let now = Dropped::at(&self.rtnl, self.device);
        self.below += now.since(&self.seen);
        self.seen = now;
        let refused = refused.saturating_sub(self.refused_before);
        self.since = self.since.max(self.below.saturating_sub(refused));
        self.since
    }
}

/// Counts of frames that were dropped at a device instead of sent.
#[derive(Debug)]
struct Dropped {
    device: u64,
    /// By the queueing discipline, which the device's own count does not have.
    queue: u32,
}

impl Dropped {
    fn at(rtnl: &Rtnl, device: u32) -> Self {
        let queue = rtnl.root_qdisc_at(device).map_or(0, |qdisc| qdisc.drops);
        Self { device: dropped(rtnl, device), queue }
    }

    /// A count that is less than before began anew: that of another queueing discipline.
    fn since(&self, before: &Self) -> u64 {
        let new = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        new(self.device, before.device) + new(self.queue.into(), before.queue.into())
    }
}

/// Frames that a device was to send and has dropped; none when it is gone.
fn dropped(rtnl: &Rtnl, device: u32) -> u64 {
    rtnl.link_at(device).map(|link| link.stats.tx_dropped).unwrap_or_default()
}

impl TierPrograms {
    /// Puts the program at a port's device; from then on the port receives what is handed over.
    /// Frames that wait in the port's ring are lost. The program goes with the receive queue, which
    /// is another one than before: a caller that wants offloads kept asks it again. A device that
    /// the host uses itself, by an address or as a port of a bridge, is taken from it only if
    /// `takes_all`.
    ///
    /// # Errors
    /// When the port is no kernel device, has several queues, is the host's too, or the kernel
    /// refuses; the port is as it was then.
    pub fn attach(&self, port: &mut Port, takes_all: bool) -> Result<(), PortError> {
        if !port.more.is_empty() {
            return Err(PortError::TierQueues(1 + port.more.len()));
        }
        if let Some(used) = port.device.host_use()?.filter(|_| !takes_all) {
            return Err(PortError::HostUses(used));
        }
        let Some(device) = port.device.tier_port() else {
            return Err(PortError::NoTier(port.info().kind));
        };
        let (rx, losses) = Handover::open(self, &device)?;
        // Without them, the ring's socket is closed when the receive queue is.
        port.device.enter_tier(Box::new(losses));
        port.rx = Box::new(rx);
        Ok(())
    }
}

impl Handover {
    /// Makes the TAP device and puts the programs at their hooks. Super-frames come whole
    /// where the port may have them and [`RxQueue::keep_offloads`] asks for it.
    fn open(
        tier: &TierPrograms,
        TierPort { device, counters, gso }: &TierPort,
    ) -> Result<(Self, HandoverDrops), PortError> {
        let what = format!("the kernel tier at {}", device.name());
        let failed = |source| PortError::from_io(what.clone(), FIX, source);
        let rtnl = Rtnl::open().map_err(|error| failed(error.into()))?;
        let (tun, name) = Tun::open(TAP_NAME, true).map_err(failed)?;
        // The guard drops what the stack sends of its own accord; this only spares it the work.
        if let Err(error) = disable_ipv6(&name) {
            tracing::debug!(name, %error, "IPv6 stays on");
        }
        let control = IoctlSocket::open().map_err(failed)?;
        control.set_mtu(&name, TAP_MTU).map_err(failed)?;
        rtnl.set_tx_queue_len(&name, TAP_QUEUE_LEN).map_err(|error| failed(error.into()))?;
        let tap = control.index(&name).map_err(failed)?;
        let promiscuous = Promiscuous::open(device.index()).map_err(failed)?;
        control.set_up(&name).map_err(failed)?;
        let programs = tier.place(device.index(), tap).map_err(failed)?;
        let handover = Self {
            device: Arc::clone(device),
            _programs: programs,
            _promiscuous: promiscuous,
            tun,
            soft_offload: SoftOffload::new(),
            counters: Arc::clone(counters),
            gso: *gso,
        };
        let refused = handover.counters.tier.dropped_below();
        Ok((handover, HandoverDrops::new(rtnl, tap, device.index(), refused)))
    }
}

impl RxQueue for Handover {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.device.check()?;
        let before = batch.len();
        let mut counted = Counted::default();
        while batch.len() - before < max {
            if self.soft_offload.next_segment(batch, &mut counted) {
                continue;
            }
            // None is waiting, or the device is down.
            let Ok(end) = self.tun.read(self.soft_offload.buffer()) else { break };
            self.soft_offload.process(end, None, batch, &mut counted);
        }
        self.counters.rx.add(&counted);
        Ok(batch.len() - before)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tun.fd())
    }

    fn keep_offloads(&mut self) -> bool {
        if self.gso {
            self.soft_offload.keep();
        }
        self.gso
    }
}

#[cfg(test)]
mod tests {
    use super::Dropped;

    #[test]
    fn another_queueing_discipline_counts_from_nothing() {
        let before = Dropped { device: 5, queue: 100 };
        assert_eq!(Dropped { device: 7, queue: 103 }.since(&before), 5);
        assert_eq!(Dropped { device: 5, queue: 4 }.since(&before), 4);
    }
}
