//! The receive queue of a port at which the kernel tier's program stands: the ring of a packet
//! socket at a TAP device, to whose ingress the program redirects what it does not decide itself.
//!
//! Nobody reads or writes the TAP device: it is a place for the socket to stand that goes with the
//! process, also when that is killed. A frame costs the worker what it costs at a port without the
//! tier, and the virtio-net header of its slot says which checksums are unfinished and which kind
//! of segments it holds, which no ring buffer of BPF does. To read the frames of the TAP device
//! itself would cost a system call each.

use std::os::fd::BorrowedFd;

use packet::Batch;

use super::{FIX, TierPrograms};
use crate::counters::HandoverLosses;
use crate::error::PortError;
use crate::port::{Port, RxQueue};
use crate::ring_rx::{self, RingRx};
use crate::sys::bpf::Link;
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::{LinkStats, Rtnl, disable_ipv6};
use crate::sys::packet_socket::{Promiscuous, RxRing, RxRingDrops};
use crate::sys::tun::Tun;
use crate::tier_port::TierPort;

/// The kernel puts a number in the place of `%d`.
const TAP_NAME: &str = "weir-tier%d";
/// Frames that wait for this process, as many as the ring of a port holds.
const SLOTS: usize = 2_048;

/// The receive queue.
#[derive(Debug)]
struct Handover {
    /// Before the ring, to which they lead.
    _programs: [Link; 3],
    _promiscuous: Promiscuous,
    rx: RingRx,
    _tun: Tun,
}

/// The frames that were handed over and found no room, and those that queueing discipline and
/// device dropped instead of sending: the program learns nothing of them.
#[derive(Debug)]
struct HandoverDrops {
    rtnl: Rtnl,
    ring: RxRingDrops,
    tap: u32,
    /// Those that did not come to the ring: the backlog of their processor was full.
    before_ring: u64,
    device: u32,
    /// The counts at the last look, and what was dropped up to then.
    seen: Dropped,
    below: u64,
    /// Of the worker's frames before there was a tier.
    refused_before: u64,
    since: u64,
}

impl HandoverDrops {
    fn new(rtnl: Rtnl, ring: RxRingDrops, [tap, device]: [u32; 2], refused_before: u64) -> Self {
        let seen = Dropped::at(&rtnl, device);
        Self { rtnl, ring, tap, before_ring: 0, device, seen, below: 0, refused_before, since: 0 }
    }
}

impl HandoverLosses for HandoverDrops {
    fn not_received(&mut self) -> u64 {
        let before_ring = of_link(&self.rtnl, self.tap, |stats| stats.rx_dropped);
        self.before_ring = self.before_ring.max(before_ring);
        self.before_ring + self.ring.total()
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
        Self { device: of_link(rtnl, device, |stats| stats.tx_dropped), queue }
    }

    /// A count that is less than before began anew: that of another queueing discipline.
    fn since(&self, before: &Self) -> u64 {
        let new = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        new(self.device, before.device) + new(self.queue.into(), before.queue.into())
    }
}

/// A count of a device; nothing when it is gone.
fn of_link(rtnl: &Rtnl, device: u32, count: impl FnOnce(&LinkStats) -> u64) -> u64 {
    rtnl.link_at(device).map(|link| count(&link.stats)).unwrap_or_default()
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
        TierPort { device, counters, gso, .. }: &TierPort,
    ) -> Result<(Self, HandoverDrops), PortError> {
        let what = format!("the kernel tier at {}", device.name());
        let failed = |source| PortError::from_io(what.clone(), FIX, source);
        let rtnl = Rtnl::open().map_err(|error| failed(error.into()))?;
        let (tun, name) = Tun::open(TAP_NAME, false).map_err(failed)?;
        // The guard drops what the stack sends of its own accord; this only spares it the work.
        if let Err(error) = disable_ipv6(&name) {
            tracing::debug!(name, %error, "IPv6 stays on");
        }
        let control = IoctlSocket::open().map_err(failed)?;
        let tap = control.index(&name).map_err(failed)?;
        let promiscuous = Promiscuous::open(device.index()).map_err(failed)?;
        control.set_up(&name).map_err(failed)?;
        let ring = RxRing::open(tap, ring_rx::frame_len(device), SLOTS).map_err(failed)?;
        let drops = ring.drops();
        let programs = tier.place(device.index(), tap).map_err(failed)?;
        let rx = RingRx::new(device, ring, counters, *gso);
        let refused = counters.tier.dropped_below();
        let losses = HandoverDrops::new(rtnl, drops, [tap, device.index()], refused);
        Ok((Self { _programs: programs, _promiscuous: promiscuous, rx, _tun: tun }, losses))
    }
}

impl RxQueue for Handover {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.rx.rx(batch, max)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.rx.fd()
    }

    fn keep_offloads(&mut self) -> bool {
        self.rx.keep_offloads()
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
