//! A port: a device handle, a receive queue and a transmit queue, and more queues where asked for.
//!
//! The traits here stand between the datapath and every source of frames, so that switch, generator
//! and lab do not depend on a port's kind. The three parts share no lock and may be used by three
//! threads. No method here but [`Port::wait_for_link`] may ever block.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::header::ethernet::FRAME_MIN_LEN;
use packet::offload::finish;
use packet::{Batch, PacketBuf, Pool};

use crate::counters::{Counted, HandoverLosses, PortCounters, PortQueueCounters};
use crate::error::PortError;
use crate::patch_end::PatchEnd;
use crate::port_info::{LinkNotification, PortInfo};
use crate::sys::claim::DeviceClaim;
use crate::sys::link::Rtnl;
use crate::tier::HandoverPlace;
use crate::tier_port::TierPort;

/// A receive queue. Frames carry no FCS.
///
/// A queue is polled by one worker at a time: it calls [`RxQueue::rx`] on all its queues, and only
/// after every one has returned 0 does it sleep in `poll(2)` on the descriptors of [`RxQueue::fd`]
/// (a queue without one is always ready, so then do not sleep).
///
/// Sleeping is not free for the other side: on a veth a frame that wakes a sleeper costs its sender
/// 3.0 us of CPU, one that finds the receiver awake 1.6 us (two virtual CPUs, Linux 6.18). A worker
/// under load does well to poll for some more microseconds before it sleeps.
pub trait RxQueue: Send {
    /// Appends up to `max` received frames to `batch`, in order of arrival, and returns how many.
    /// 0 means that none is waiting.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the device has disappeared (for good: the port must be opened
    /// anew); after other errors a later call may succeed.
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError>;

    /// The descriptor that polls readable (or in error) when [`RxQueue::rx`] has frames or an error
    /// to return, valid from the moment when `rx` returned 0. `None` when the queue is always
    /// ready.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// From now on frames keep beside them what their senders left to do ([`packet::Offload`]):
    /// super-frames come whole, checksums are made by the port that sends them on. Returns whether
    /// the port has such frames. Without this call every frame comes as a wire carries it.
    fn keep_offloads(&mut self) -> bool {
        false
    }

    /// From now on [`RxQueue::arrivals`] says when frames arrived. Returns whether the port knows.
    fn keep_arrivals(&mut self) -> bool {
        false
    }

    /// When each frame of the last [`RxQueue::rx`] arrived, by the kernel's wall clock, in
    /// nanoseconds since 1970: before anybody was woken for it. Empty where nobody asked for it.
    fn arrivals(&self) -> &[u64] {
        &[]
    }
}

/// A transmit queue. Frames carry no FCS.
pub trait TxQueue: Send {
    /// Sends a prefix of `frames` in order and returns how many the queue took. The caller counts
    /// the rest as dropped (or offers them again). A frame that the port can never carry (too
    /// long, too short) is taken, and counted in [`PortCounters::tx_errors`].
    ///
    /// # Errors
    /// [`PortError::Gone`] once the device has disappeared; after other errors a later call may
    /// succeed.
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError>;

    /// As [`TxQueue::tx`], and removes the frames that were taken from `frames`: their buffers are
    /// in `pool` or with the driver. Only this call sends external memory without a copy.
    ///
    /// # Errors
    /// As [`TxQueue::tx`]; frames that were not taken are still in `frames`.
    fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        let sent = self.tx(frames)?;
        pool.give_front(frames, sent);
        Ok(sent)
    }

    /// Whether [`TxQueue::tx_batch`] takes frames to which something is left to do, and sends them
    /// so that the receiver can do it. Others must not be given such frames;
    /// [`Port::tx_batch`] sees to it.
    fn carries_offloads(&self) -> bool {
        false
    }
}

/// The device of a port: its properties, link state and counters. Its calls may cost system calls.
pub trait PortDevice: Send {
    /// The current properties.
    fn info(&mut self) -> PortInfo;

    /// Source of change notifications for [`PortDevice::info`].
    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Polled
    }

    /// Whether the device is the port's own, so that [`PortDevice::set_link`] changes its link. A
    /// device that others use too is left as it is.
    fn owns_link(&self) -> bool {
        false
    }

    /// Takes the link of a device that is the port's own down or up again.
    ///
    /// # Errors
    /// The device refuses it.
    fn set_link(&mut self, _up: bool) -> Result<(), PortError> {
        Ok(())
    }

    /// The counters of the port since it was opened.
    fn counters(&mut self) -> PortCounters;

    /// The end of a wire between bridges that the port is; `None` for any other kind.
    fn patch(&self) -> Option<Arc<PatchEnd>> {
        None
    }

    /// The kernel device by which the kernel tier receives and sends for the port; `None` where the
    /// port has none that it can use.
    fn tier_port(&self) -> Option<TierPort> {
        None
    }

    /// The host's own use of the device, in words; `None` where it uses it for nothing.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn host_use(&self) -> Result<Option<String>, PortError> {
        Ok(None)
    }

    /// From now on the port receives what the kernel tier hands over: it gives its own ring up, and
    /// `losses` are its losses. Only a port that has a [`PortDevice::tier_port`] is called.
    fn enter_tier(&mut self, _losses: Box<dyn HandoverLosses>) {}
}

/// A receive queue and a transmit queue.
pub struct PortQueue {
    /// Receiving.
    pub rx: Box<dyn RxQueue>,
    /// Sending.
    pub tx: Box<dyn TxQueue>,
}

impl fmt::Debug for PortQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortQueue").finish_non_exhaustive()
    }
}

/// An open port. Its parts may be taken and used by different threads; the methods are for a
/// caller that uses it whole, by its first queues.
pub struct Port {
    /// Properties, link state and counters.
    pub device: Box<dyn PortDevice>,
    /// Receiving.
    pub rx: Box<dyn RxQueue>,
    /// Sending.
    pub tx: Box<dyn TxQueue>,
    /// Further queues, where [`crate::open_queues`] was asked for them.
    pub more: Vec<PortQueue>,
    /// The claim of a switch to the device.
    pub claim: Option<DeviceClaim>,
    /// The place at which the kernel tier is to hand frames over, until it does.
    pub place: Option<HandoverPlace>,
}

impl Port {
    pub(crate) fn new(
        device: impl PortDevice + 'static,
        rx: impl RxQueue + 'static,
        tx: impl TxQueue + 'static,
    ) -> Self {
        let (rx, tx) = (Box::new(rx), Box::new(tx));
        Self { device: Box::new(device), rx, tx, more: Vec::new(), claim: None, place: None }
    }

    /// A port with these queues.
    ///
    /// # Panics
    /// Without any: the kind's mistake.
    pub(crate) fn with_queues<R: RxQueue + 'static, T: TxQueue + 'static>(
        device: impl PortDevice + 'static,
        mut queues: impl Iterator<Item = Result<(R, T), PortError>>,
    ) -> Result<Self, PortError> {
        let Some(first) = queues.next() else { panic!("a port without a queue") };
        let (rx, tx) = first?;
        let mut port = Self::new(device, rx, tx);
        for queue in queues {
            let (rx, tx) = queue?;
            port.more.push(PortQueue { rx: Box::new(rx), tx: Box::new(tx) });
        }
        Ok(port)
    }

    /// A port of parts that were one before; `None` without a queue.
    pub fn from_queues(
        device: Box<dyn PortDevice>,
        queues: impl IntoIterator<Item = PortQueue>,
    ) -> Option<Self> {
        let mut queues = queues.into_iter();
        let PortQueue { rx, tx } = queues.next()?;
        Some(Self { device, rx, tx, more: queues.collect(), claim: None, place: None })
    }

    /// See [`RxQueue::rx`].
    ///
    /// # Errors
    /// As there.
    // Inlined across crates: the calls cost a batch of one entry 3 % (the workload `port`).
    #[inline]
    pub fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.rx.rx(batch, max)
    }

    /// See [`TxQueue::tx`].
    ///
    /// # Errors
    /// As there.
    pub fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.tx.tx(frames)
    }

    /// See [`TxQueue::tx_batch`]. What is left to do to frames is done first, where the queue does
    /// not carry it: `frames` may have more of them then.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        if !self.tx.carries_offloads() && PacketBuf::any_has_offload(frames) {
            finish_offloads(frames, pool, |_| true);
        }
        self.tx.tx_batch(frames, pool)
    }

    /// See [`RxQueue::fd`].
    #[must_use]
    #[inline]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.rx.fd()
    }

    /// See [`PortDevice::info`].
    pub fn info(&mut self) -> PortInfo {
        self.device.info()
    }

    /// Waits until the device sends, where it is up, has carrier, and is only just becoming
    /// operational: within a second, on a busy machine later. To be called in the namespace where
    /// the port was opened.
    pub fn wait_for_link(&self) {
        if let LinkNotification::Netlink(index) = self.device.link_notification() {
            // Whether it is up then, `info` says.
            let _ = Rtnl::open().and_then(|rtnl| rtnl.wait_until_running(index));
        }
    }

    /// See [`PortDevice::link_notification`].
    #[must_use]
    pub fn link_notification(&self) -> LinkNotification {
        self.device.link_notification()
    }

    /// See [`PortDevice::counters`].
    pub fn counters(&mut self) -> PortCounters {
        self.device.counters()
    }
}

/// Does what is left to do to those frames of a list that `is_due` names. One to which it cannot be
/// done is left without a byte, so that the port counts it as one that it cannot send.
pub(crate) fn finish_offloads(
    frames: &mut Vec<PacketBuf>,
    pool: &mut Pool,
    is_due: impl Fn(&PacketBuf) -> bool,
) {
    for frame in std::mem::take(frames) {
        if !frame.has_offload() || !is_due(&frame) {
            frames.push(frame);
            continue;
        }
        let each = |mut frame: PacketBuf| {
            frame.pad_to(FRAME_MIN_LEN);
            frames.push(frame);
        };
        match finish(frame, || pool.take(), each) {
            Ok(None) => {}
            Ok(Some(whole)) => pool.give(whole),
            Err(_) => frames.push(PacketBuf::default()),
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

/// A transmit queue that takes all frames and drops them, as at a file that is read.
#[derive(Debug)]
pub(crate) struct DroppingTx {
    pub(crate) counters: Arc<PortQueueCounters>,
}

impl TxQueue for DroppingTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let drops = frames.len() as u64;
        self.counters.tx.add(&Counted { drops, ..Counted::default() });
        Ok(frames.len())
    }
}

/// A receive queue without frames. Its descriptor never becomes readable, so that a worker with no
/// other queue sleeps.
#[derive(Debug)]
pub(crate) struct SilentRx {
    never: crate::sys::event::WakeEvent,
}

impl SilentRx {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { never: crate::sys::event::WakeEvent::new()? })
    }
}

impl RxQueue for SilentRx {
    fn rx(&mut self, _batch: &mut Batch, _max: usize) -> Result<usize, PortError> {
        Ok(0)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.never.fd())
    }
}
