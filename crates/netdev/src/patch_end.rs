//! One end of a wire between two bridges of this process, joined by the names of its ends.
//!
//! A frame moves from end to end without being copied: its buffer, its tags and its offload stay as
//! they are. A worker that serves both ends goes on with the frame at once ([`PatchEnd::send`]
//! names the place where the other end is served); between workers it waits in the inbox of the
//! other end, whose descriptor wakes the sleeper. Each frame bears the number of patch ports that
//! it has passed, so that a loop of bridges ends. An end whose peer is not there, or has another
//! peer, has no link and drops what it is given. Where both bridges have a kernel tier, frames go
//! from program to program, and come here where they are handed over.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use packet::{Batch, PacketBuf, Pool};

use crate::counters::{Counted, PortCounters, PortQueueCounters};
use crate::sys::bpf::Program;
use crate::sys::event::WakeEvent;
use crate::tier::PatchNumber;

/// The most patch ports that a frame passes.
pub const PATCH_HOPS_MAX: u8 = 64;

/// Frames that wait in an inbox, and their bytes.
const FRAMES_MAX: usize = 2_048;
const BYTES_MAX: usize = 16 << 20;

/// The longest frame: an IP packet, an Ethernet header and one VLAN tag.
const LONGEST: usize = u16::MAX as usize + 18;
const HEADER_LEN: usize = 14;

/// The ends of this process by name, each for as long as its device is open.
static ENDS: LazyLock<Mutex<HashMap<String, Arc<PatchEnd>>>> = LazyLock::new(Mutex::default);

fn ends() -> MutexGuard<'static, HashMap<String, Arc<PatchEnd>>> {
    ENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place where an end is served: a worker, and the worker's own name of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchPlace {
    /// The worker, by a number that no other of the process has.
    pub worker: usize,
    /// Its name of the port.
    pub port: u64,
}

/// The frames on their way to an end.
#[derive(Debug, Default)]
struct Inbox {
    /// Each with the number of patch ports that it has passed.
    frames: VecDeque<(u8, PacketBuf)>,
    bytes: usize,
    place: Option<PatchPlace>,
    /// The receiver found nothing, and may sleep.
    is_asleep: bool,
    /// The event was rung since the receiver found nothing.
    is_rung: bool,
}

/// One end of a wire.
#[derive(Debug)]
pub struct PatchEnd {
    name: String,
    peer: String,
    inbox: Mutex<Inbox>,
    wake: WakeEvent,
    keeps_offloads: AtomicBool,
    /// The number of patch ports that the frames received last have passed.
    hops: AtomicU8,
    counters: Arc<PortQueueCounters>,
    /// Its number in the kernel tier; none while too many ends are open.
    number: Option<PatchNumber>,
    /// The program that receives there, and the number of the TAP device by which it hands over.
    receiver: Mutex<Option<(u32, Program)>>,
    /// Whether what is sent by it goes on at the other end's program.
    goes_on: AtomicBool,
}

impl PatchEnd {
    /// A new end, which has its name until [`PatchEnd::close`]; `None` where there is one of that
    /// name.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn open(name: &str, peer: &str) -> io::Result<Option<Arc<Self>>> {
        let end = Arc::new(Self {
            name: name.to_owned(),
            peer: peer.to_owned(),
            inbox: Mutex::new(Inbox { is_asleep: true, ..Inbox::default() }),
            wake: WakeEvent::new()?,
            keeps_offloads: AtomicBool::new(false),
            hops: AtomicU8::new(0),
            counters: Arc::default(),
            number: PatchNumber::take(),
            receiver: Mutex::default(),
            goes_on: AtomicBool::new(false),
        });
        let mut ends = ends();
        match ends.entry(name.to_owned()) {
            Entry::Occupied(_) => return Ok(None),
            Entry::Vacant(free) => free.insert(Arc::clone(&end)),
        };
        end.join_in_kernel(&ends);
        Ok(Some(end))
    }

    /// Gives the name up: its device is closed. What another worker is sending just now is lost.
    pub(crate) fn close(&self) {
        let mut ends = ends();
        ends.remove(&self.name);
        if let Some(peer) = ends.get(&self.peer) {
            peer.join_in_kernel(&ends);
        }
    }

    /// Has what is sent by this end go on at the program of the other one, where that has one.
    fn join_in_kernel(&self, ends: &HashMap<String, Arc<Self>>) {
        let Some(number) = &self.number else { return };
        let peer = ends.get(&self.peer).filter(|peer| peer.peer == self.name);
        let receiver = peer.map(|peer| peer.receiver());
        let program = receiver.as_ref().and_then(|held| held.as_ref()).map(|(_, program)| program);
        self.goes_on.store(number.set_next(program), Ordering::Release);
    }

    fn receiver(&self) -> MutexGuard<'_, Option<(u32, Program)>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_receiver(&self, receiver: Option<(u32, Program)>) {
        let ends = ends();
        *self.receiver() = receiver;
        if let Some(peer) = ends.get(&self.peer) {
            peer.join_in_kernel(&ends);
        }
    }

    /// A program receives at this end from now on, and hands over by this TAP device.
    pub(crate) fn enter_tier(&self, tap: u32, program: Program) {
        self.set_receiver(Some((tap, program)));
    }

    /// The program that hands over by this TAP device receives no longer.
    pub(crate) fn leave_tier(&self, tap: u32) {
        if self.tap() == Some(tap) {
            self.set_receiver(None);
        }
    }

    /// The TAP device by which the program at this end hands over.
    pub(crate) fn tap(&self) -> Option<u32> {
        self.receiver().as_ref().map(|(tap, _)| *tap)
    }

    /// The number under which the kernel goes on, where there is a program at the other end.
    pub(crate) fn next(&self) -> Option<u32> {
        let goes_on = self.goes_on.load(Ordering::Acquire);
        self.number.as_ref().filter(|_| goes_on).map(PatchNumber::get)
    }

    /// The counters, for the kernel tier.
    pub(crate) fn tier_counters(&self) -> Arc<PortQueueCounters> {
        Arc::clone(&self.counters)
    }

    /// Sets the number of patch ports that the frames received last have passed.
    pub(crate) fn set_hops(&self, hops: u8) {
        self.hops.store(hops, Ordering::Relaxed);
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The end that this one is joined to, or why there is none.
    pub(crate) fn joined(&self) -> Result<Arc<Self>, String> {
        let found = ends().get(&self.peer).cloned();
        let found = found.ok_or_else(|| format!("there is no patch port {}", self.peer))?;
        if found.peer == self.name {
            return Ok(found);
        }
        Err(format!("{} has the peer {}, not this port", self.peer, found.peer))
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker that receives from this end from now on.
    pub fn set_place(&self, place: PatchPlace) {
        self.inbox().place = Some(place);
    }

    /// The number of patch ports that the frames received last have passed.
    #[must_use]
    pub fn hops(&self) -> u8 {
        self.hops.load(Ordering::Relaxed)
    }

    /// Sends frames that have passed `hops` patch ports before this one; those that found no room
    /// are left. Where the worker `from` serves the other end too, its name of that port is
    /// returned: the worker goes on there, and nobody is woken.
    pub fn send(
        &self,
        frames: &mut Vec<PacketBuf>,
        hops: u8,
        from: Option<usize>,
        pool: &mut Pool,
    ) -> Option<u64> {
        let mut counted = Counted::default();
        let joined = self.joined();
        let mut waiting = joined.as_ref().ok().map(|to| to.inbox());
        let mut taken = frames.drain(..);
        let mut left = Vec::new();
        for frame in taken.by_ref() {
            let Some(inbox) = &mut waiting else {
                counted.drops += frame.on_wire().0;
                pool.give(frame);
                continue;
            };
            if !(HEADER_LEN..=LONGEST).contains(&frame.len()) {
                counted.errors += 1;
                pool.give(frame);
            } else if inbox.frames.len() < FRAMES_MAX && inbox.bytes < BYTES_MAX {
                counted.on_wire(&frame);
                inbox.bytes += frame.len();
                inbox.frames.push_back((hops.saturating_add(1), frame));
            } else {
                left.push(frame);
                break;
            }
        }
        left.extend(taken);
        frames.append(&mut left);
        self.counters.tx.add(&counted);
        let inbox = waiting.as_mut().filter(|_| counted.packets > 0)?;
        let here = inbox.place.filter(|place| Some(place.worker) == from);
        if here.is_none() && std::mem::take(&mut inbox.is_asleep) {
            inbox.is_rung = true;
            drop(waiting);
            if let Ok(to) = &joined {
                to.wake.ring();
            }
        }
        here.map(|place| place.port)
    }

    /// The descriptor that is readable while frames wait, from the moment when there was none.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.fd()
    }

    /// Frames that come here keep beside them what their senders left to do.
    pub(crate) fn keep_offloads(&self) {
        self.keeps_offloads.store(true, Ordering::Relaxed);
    }

    /// Whether frames that are sent may have something left to do.
    pub(crate) fn carries_offloads(&self) -> bool {
        self.joined().is_ok_and(|peer| peer.keeps_offloads.load(Ordering::Relaxed))
    }

    /// Counts of this end.
    pub(crate) fn counters(&self) -> PortCounters {
        let mut counters = self.counters.read();
        if let Some((packets, bytes)) = self.number.as_ref().map(PatchNumber::lost) {
            counters.tx_packets = counters.tx_packets.saturating_sub(packets);
            counters.tx_bytes = counters.tx_bytes.saturating_sub(bytes);
            counters.tx_drops += packets;
        }
        counters
    }

    /// Takes up to `max` frames that have passed the same number of patch ports.
    pub(crate) fn take(&self, batch: &mut Batch, max: usize) -> usize {
        let mut counted = Counted::default();
        let mut inbox = self.inbox();
        let Some((hops, _)) = inbox.frames.front() else {
            inbox.is_asleep = true;
            if std::mem::take(&mut inbox.is_rung) {
                self.wake.drain();
            }
            return 0;
        };
        let hops = *hops;
        let mut taken = 0;
        while taken < max && inbox.frames.front().is_some_and(|(passed, _)| *passed == hops) {
            let Some((_, frame)) = inbox.frames.pop_front() else { break };
            inbox.bytes -= frame.len();
            counted.on_wire(&frame);
            batch.push(frame);
            taken += 1;
        }
        drop(inbox);
        self.set_hops(hops);
        self.counters.rx.add(&counted);
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    #[test]
    fn a_closed_end_frees_its_name_while_another_worker_sends_to_it() {
        let open = |name: &str, peer: &str| crate::open_text(&format!("patch:{name}?peer={peer}"));
        let (near, far) =
            (open("again-a", "again-b").unwrap(), open("again-b", "again-a").unwrap());
        let sender = far.device.patch().unwrap();
        let sends_to = sender.joined().unwrap();
        assert!(open("again-a", "again-b").is_err(), "it is open");
        drop(near);
        assert!(sender.joined().is_err());
        let near = open("again-a", "again-b").unwrap();
        let joined = sender.joined().unwrap();
        assert!(Arc::ptr_eq(&joined, &near.device.patch().unwrap()));
        assert!(!Arc::ptr_eq(&joined, &sends_to));
        drop(sends_to);
        assert!(sender.joined().is_ok());
    }
}
