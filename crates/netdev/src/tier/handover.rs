//! The receive queues of a port at which the kernel tier's program stands: the rings of packet
//! sockets at a TAP device, to whose ingress the program redirects what it does not decide itself,
//! with the number of the queue.
//!
//! Nobody reads or writes the TAP device: it is a place for the socket to stand that goes with the
//! process, also when that is killed. A frame costs the worker what it costs at a port without the
//! tier, and the virtio-net header of its slot says which checksums are unfinished and which kind
//! of segments it holds, which no ring buffer of BPF does. To read the frames of the TAP device
//! itself would cost a system call each.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};

use packet::Batch;

use super::place::HandoverPlace;
use super::programs::PlacedPrograms;
use super::{FIX, KERNEL_HOPS_MAX, TierPrograms};
use crate::counters::HandoverLosses;
use crate::device::KernelDevice;
use crate::error::PortError;
use crate::patch_end::PatchEnd;
use crate::port::{Port, RxQueue, SilentRx};
use crate::ring_rx::{self, RingRx};
use crate::sys::link::{LinkStats, Rtnl};
use crate::sys::packet_socket::{Fanout, Promiscuous, RxRing, RxRingDrops};
use crate::sys::watch::Watch;
use crate::tier_port::{TierPort, TierWay};

/// Frames that wait for each queue, as many as the ring of a port holds.
const SLOTS: usize = 2_048;

/// A receive queue.
#[derive(Debug)]
struct Handover {
    rx: RingRx,
    /// Of the first queue. Rings of the others may go later, and before these nothing is lost but
    /// the choice of the queue.
    _device: Option<HandoverDevice>,
}

/// The programs, and the TAP device.
#[derive(Debug)]
struct HandoverDevice {
    _programs: PlacedPrograms,
    _promiscuous: Promiscuous,
    _place: HandoverPlace,
}

/// The frames that were handed over and found no room, and those that queueing discipline and
/// device dropped instead of sending: the program learns nothing of them.
#[derive(Debug)]
struct HandoverDrops {
    rtnl: Rtnl,
    rings: Vec<RxRingDrops>,
    tap: u32,
    /// Those that did not come to the ring: the backlog of their processor was full.
    before_ring: u64,
    device: u32,
    /// The counts at the last look, and what was dropped up to then.
    seen: Dropped,
    below: u64,
    since: u64,
}

impl HandoverDrops {
    fn new(rtnl: Rtnl, rings: Vec<RxRingDrops>, [tap, device]: [u32; 2]) -> Self {
        let seen = Dropped::at(&rtnl, device);
        Self { rtnl, rings, tap, before_ring: 0, device, seen, below: 0, since: 0 }
    }
}

impl HandoverLosses for HandoverDrops {
    fn not_received(&mut self) -> u64 {
        let before_ring = of_link(&self.rtnl, self.tap, |stats| stats.rx_dropped);
        self.before_ring = self.before_ring.max(before_ring);
        let in_rings = self.rings.iter_mut().map(RxRingDrops::total);
        self.before_ring + in_rings.sum::<u64>()
    }

    /// But for those of which the sender knows. A super-frame counts as one, and frames of other
    /// processes count too: the kernel does not tell them apart.
    fn not_sent(&mut self, refused: u64) -> u64 {
        let now = Dropped::at(&self.rtnl, self.device);
        self.below += now.since(&self.seen);
        self.seen = now;
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
    /// Puts the programs of these tiers at a port's device, one for each queue of the port, in
    /// turns where there are fewer; from then on the port receives what is handed over. Frames that
    /// wait in the port's rings are lost. The programs go with the first receive queue. All of
    /// these are others than before: a caller that wants offloads kept asks them again.
    ///
    /// # Errors
    /// When the port is no kernel device, or the kernel refuses; the port is as it was then.
    ///
    /// # Panics
    /// Without a tier.
    pub fn attach(tiers: &[Self], port: &mut Port) -> Result<(), PortError> {
        let Some(device) = port.device.tier_port() else {
            return Err(PortError::NoTier(port.info().kind));
        };
        let entering = Entering::AtOnce(port.place.take());
        Self::open(tiers, 1 + port.more.len(), &device, entering)?.install(port);
        Ok(())
    }

    /// The first half of [`TierPrograms::attach`], which takes milliseconds: puts the programs at
    /// the device of a port with this number of queues. From then on, or when they take over,
    /// frames wait for the receive queues to be installed.
    ///
    /// # Errors
    /// As [`TierPrograms::attach`].
    ///
    /// # Panics
    /// Without a tier.
    pub fn open(
        tiers: &[Self],
        queues: usize,
        port: &TierPort,
        entering: Entering,
    ) -> Result<TierQueues, PortError> {
        assert!(!tiers.is_empty(), "a tier for each queue");
        let tiers: Vec<&Self> = tiers.iter().cycle().take(queues).collect();
        let (place, ring) = match (entering, &port.way) {
            (Entering::AtOnce(place), _) => (place, None),
            (Entering::Later, TierWay::Patch(_)) => (None, None),
            (Entering::Later, TierWay::Device(it)) => {
                let ring = it.ring.upgrade();
                (None, Some(ring.ok_or_else(|| PortError::Gone(it.device.name()))?))
            }
        };
        let (received, losses) = Handover::open(&tiers, port, place, ring.as_deref())?;
        let queue = |handover| -> Result<Box<dyn RxQueue>, PortError> {
            Ok(match &port.way {
                TierWay::Device(_) => Box::new(handover),
                TierWay::Patch(end) => Box::new(PatchHandover::new(Arc::clone(end), handover)?),
            })
        };
        let received = received.into_iter().map(queue).collect::<Result<_, _>>()?;
        let later = ring.and(tiers.first()).map(|tier| Self::clone(tier));
        Ok(TierQueues { received, losses, later })
    }
}

/// The moment from which on the programs at a device have its frames.
#[derive(Debug)]
pub enum Entering {
    /// At once, and they hand over at this place, or one that is made. What waits in the port's
    /// rings is lost.
    AtOnce(Option<HandoverPlace>),
    /// With [`TierQueuesBeside::take_over`]: until then the ring has them, without which a device
    /// has gone or is of several queues. A patch port needs none and enters at once.
    Later,
}

/// The receive queues of a port in the tier, and the programs that hand over to them.
pub struct TierQueues {
    received: Vec<Box<dyn RxQueue>>,
    losses: HandoverDrops,
    /// The tier whose program is to take over later.
    later: Option<TierPrograms>,
}

/// A port has the frames in both ways by now: by its ring, until the program takes over.
#[derive(Debug)]
pub struct TierQueuesBeside {
    tier: TierPrograms,
    losses: HandoverDrops,
    /// The ring gets no frames any more.
    is_over: Arc<AtomicBool>,
}

impl TierQueuesBeside {
    /// The program has each frame from now on that the ring has not got. When this returns, all of
    /// the ring's are there. It waits for the kernel, 10 ms and more.
    ///
    /// # Errors
    /// The kernel refuses; then the ring goes on.
    pub fn take_over(&mut self) -> Result<(), PortError> {
        let failed = |source| PortError::from_io("the kernel tier's program", FIX, source);
        let HandoverDrops { rtnl, tap, device, seen, .. } = &mut self.losses;
        self.tier.take_over(*device, *tap).map_err(failed)?;
        // Until now nothing was dropped below that the sender does not know of.
        *seen = Dropped::at(rtnl, *device);
        self.is_over.store(true, Ordering::Release);
        Ok(())
    }

    /// The program has taken over: the port counts what is lost on its way.
    pub fn finish(self, port: &mut Port) {
        port.device.enter_tier(Box::new(self.losses));
    }
}

impl fmt::Debug for TierQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierQueues").finish_non_exhaustive()
    }
}

impl TierQueues {
    /// The port receives by these queues from now on; beside its ring where that goes on.
    ///
    /// # Errors
    /// No descriptor is left; the port is as it was.
    pub fn install_beside(
        mut self,
        port: &mut Port,
    ) -> Result<Option<TierQueuesBeside>, PortError> {
        let Some(tier) = self.later.take() else {
            self.install(port);
            return Ok(None);
        };
        let Some(handover) = self.received.pop() else { return Ok(None) };
        let watched = watch_both(port.rx.fd(), handover.fd());
        let (watch, place) =
            watched.and_then(|watch| Ok((watch, SilentRx::new()?))).map_err(|source| {
                PortError::Io { what: format!("watching {}", port.info().name), source }
            })?;
        let beside = TierQueuesBeside { tier, losses: self.losses, is_over: Arc::default() };
        let is_over = Arc::clone(&beside.is_over);
        let ring = std::mem::replace(&mut port.rx, Box::new(place));
        port.rx = Box::new(RingThenHandover { ring: Some(ring), handover, watch, is_over });
        Ok(Some(beside))
    }

    /// The port receives by these queues from now on.
    pub fn install(self, port: &mut Port) {
        let Self { received, losses, .. } = self;
        // Without them, the rings' sockets are closed when the receive queues are.
        port.device.enter_tier(Box::new(losses));
        let more = port.more.iter_mut().map(|queue| &mut queue.rx);
        let places = std::iter::once(&mut port.rx).chain(more).zip(received);
        close_later(places.map(|(rx, received)| std::mem::replace(rx, received)).collect());
    }
}

impl Handover {
    /// Makes the TAP device and puts the programs at their hooks; the receive queues. Super-frames
    /// come whole where the port may have them and [`RxQueue::keep_offloads`] asks for it.
    fn open(
        tiers: &[&TierPrograms],
        port: &TierPort,
        place: Option<HandoverPlace>,
        earlier: Option<&OwnedFd>,
    ) -> Result<(Vec<Self>, HandoverDrops), PortError> {
        let what = match &port.way {
            TierWay::Device(it) => format!("the kernel tier at {}", it.device.name()),
            TierWay::Patch(end) => format!("the kernel tier at patch port {}", end.name()),
        };
        let failed = |source| PortError::from_io(what.clone(), FIX, source);
        let rtnl = Rtnl::open().map_err(|error| failed(error.into()))?;
        let place = place.map_or_else(HandoverPlace::make, Ok).map_err(failed)?;
        let tap = place.index();
        let (device, queues, gso) = match &port.way {
            TierWay::Device(it) => (Arc::clone(&it.device), Arc::clone(&it.queues), it.gso),
            // Its frames have no other device than the one by which they are handed over.
            TierWay::Patch(_) => {
                let device = Arc::new(KernelDevice::find("patch", place.name())?);
                (device, Arc::from([Arc::clone(&port.counters)]), true)
            }
        };
        let promiscuous = Promiscuous::open(device.index()).map_err(failed)?;
        let frame_len = ring_rx::frame_len(&device);
        let open_rings =
            || RxRing::open_queues(tap, frame_len, SLOTS, (tiers.len(), Fanout::Queue));
        let place_programs = || match (&port.way, tiers) {
            (TierWay::Patch(end), [only]) => only.place_at_patch(end, tap),
            (TierWay::Device(_), [only]) => {
                only.place_at(device.index(), tap, earlier.map(AsFd::as_fd))
            }
            (TierWay::Patch(_) | TierWay::Device(_), _) => {
                TierPrograms::place(tiers, device.index(), tap)
            }
        };
        let (rings, programs) = side_by_side(open_rings, place_programs).map_err(failed)?;
        let drops = rings.iter().map(RxRing::drops).collect();
        let losses = HandoverDrops::new(rtnl, drops, [tap, device.index()]);
        let made = HandoverDevice { _programs: programs, _promiscuous: promiscuous, _place: place };
        let mut made = Some(made);
        let queue = |(ring, counters)| {
            let rx = RingRx::new(&device, ring, counters, gso);
            Self { _device: made.take(), rx }
        };
        Ok((rings.into_iter().zip(queues.iter()).map(queue).collect(), losses))
    }
}

/// Carries two things out that wait for the kernel, each 10 ms and more, and together no longer
/// than one of them. Frames that come between the two are not the port's yet.
fn side_by_side<A: Send, B>(
    one: impl FnOnce() -> io::Result<A> + Send,
    other: impl FnOnce() -> io::Result<B>,
) -> io::Result<(A, B)> {
    thread::scope(|scope| {
        let one = Builder::new().name("tier".to_owned()).spawn_scoped(scope, one)?;
        let other = other();
        Ok((one.join().unwrap_or_else(|panic| resume_unwind(panic))?, other?))
    })
}

/// Closes receive queues on a thread of their own: a ring waits for the kernel twice.
fn close_later(queues: Vec<Box<dyn RxQueue>>) {
    // Where the system has no thread left, they are closed here.
    let _ = Builder::new().name("closing".to_owned()).spawn(move || drop(queues));
}

/// A watch over two descriptors, of which one may be missing.
fn watch_both<'a>(
    one: impl IntoIterator<Item = BorrowedFd<'a>>,
    other: impl IntoIterator<Item = BorrowedFd<'a>>,
) -> io::Result<Watch> {
    let watch = Watch::new()?;
    for (fd, name) in one.into_iter().chain(other).zip(0..) {
        watch.add(fd, name)?;
    }
    Ok(watch)
}

/// The receive queue of a device whose ring has had the frames until now: what is left in it, then
/// what the program hands over.
struct RingThenHandover {
    ring: Option<Box<dyn RxQueue>>,
    handover: Box<dyn RxQueue>,
    watch: Watch,
    /// The ring gets no frames any more.
    is_over: Arc<AtomicBool>,
}

impl RxQueue for RingThenHandover {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        if let Some(ring) = &mut self.ring {
            // In this order: what came to the ring before is seen.
            let is_over = self.is_over.load(Ordering::Acquire);
            let taken = ring.rx(batch, max)?;
            if taken > 0 {
                return Ok(taken);
            }
            if !is_over {
                let begin = batch.len();
                let handed = self.handover.rx(batch, max.div_ceil(2))?;
                // Those that came before these are in the ring by now, and go first. An error that
                // lasts is the next call's.
                let taken = ring.rx(batch, max.saturating_sub(handed)).unwrap_or_default();
                batch.frames_mut()[begin..].rotate_left(handed);
                return Ok(taken + handed);
            }
            if let Some(fd) = ring.fd() {
                // It is watched since this was made.
                let _ = self.watch.remove(fd);
            }
            close_later(self.ring.take().into_iter().collect());
        }
        self.handover.rx(batch, max)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.watch.fd())
    }

    fn keep_offloads(&mut self) -> bool {
        self.handover.keep_offloads()
    }
}

/// The receive queue of a patch port: what workers have sent to it, and what the program hands
/// over, in turns.
#[derive(Debug)]
struct PatchHandover {
    end: Arc<PatchEnd>,
    handover: Handover,
    watch: Watch,
    is_kernels_turn: bool,
}

impl PatchHandover {
    fn new(end: Arc<PatchEnd>, handover: Handover) -> Result<Self, PortError> {
        let watch = watch_both([end.fd()], handover.fd()).map_err(|source| {
            let what = format!("watching patch port {}", end.name());
            PortError::Io { what, source }
        })?;
        Ok(Self { end, handover, watch, is_kernels_turn: false })
    }

    fn handed_over(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let taken = self.handover.rx(batch, max)?;
        if taken > 0 {
            // The most that they may have passed there.
            self.end.set_hops(KERNEL_HOPS_MAX);
        }
        Ok(taken)
    }
}

impl RxQueue for PatchHandover {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let is_kernels_turn = self.is_kernels_turn;
        self.is_kernels_turn = !is_kernels_turn;
        // Frames of the two have passed different numbers of patch ports.
        if is_kernels_turn {
            let taken = self.handed_over(batch, max)?;
            return Ok(if taken > 0 { taken } else { self.end.take(batch, max) });
        }
        let taken = self.end.take(batch, max);
        if taken > 0 { Ok(taken) } else { self.handed_over(batch, max) }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.watch.fd())
    }

    fn keep_offloads(&mut self) -> bool {
        self.end.keep_offloads();
        self.handover.keep_offloads()
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
