//! The ports of a bridge on one worker, and the way of frames to all ports of the bridge.
//!
//! A port belongs to one worker, which alone touches its device. What a worker has for a port of
//! its own waits in that port's queue until the end of the batch; what it has for another worker's
//! port goes there by a lane ([`super::handoff`]).

use std::sync::Arc;
use std::time::Instant;

use datapath::fast::Sink;
use datapath::{DropReason, Nanos};
use openflow::message::PacketIn;
use openflow::{PortNo, QueueId};
use packet::header::ethernet::FRAME_MIN_LEN;
use packet::{Batch, PacketBuf};

use super::branch::RX_BATCH;
use super::handoff::{Handed, Handoff};
use super::wire::{partner, readdress};
use super::{Inbox, Slot, Waiting};
use crate::config::Wire;
use crate::counters::{Counter, Counters};

/// Numbers below this are found by one look into a table.
const DENSE: usize = 1 << 16;

/// Where a port is served: which worker, and the place among its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The worker.
    worker: usize,
    /// The place among its ports.
    index: usize,
}

/// Where every port of the bridge is served.
#[derive(Debug, Default)]
struct PortMap {
    dense: Vec<Option<Place>>,
    sparse: Vec<(PortNo, Place)>,
}

impl PortMap {
    /// The map of the ports with these numbers, which come in ascending order: neighbours share a
    /// worker, since what is connected as a pair mostly also forwards as one, and pairs take
    /// workers in turns.
    fn new(numbers: &[PortNo], workers: usize) -> Self {
        let mut counts = vec![0; workers.max(1)];
        let mut map = Self::default();
        for (order, number) in numbers.iter().enumerate() {
            let worker = (order / 2) % counts.len();
            let place = Place { worker, index: counts[worker] };
            counts[worker] += 1;
            let dense = number.0 as usize;
            if dense < DENSE {
                if map.dense.len() <= dense {
                    map.dense.resize(dense + 1, None);
                }
                map.dense[dense] = Some(place);
            } else {
                map.sparse.push((*number, place));
            }
        }
        map
    }

    /// Where a port is served; `None` for one that is none of the switch's.
    #[inline]
    fn place(&self, number: PortNo) -> Option<Place> {
        match self.dense.get(number.0 as usize) {
            Some(place) => *place,
            None => {
                let found = self.sparse.binary_search_by_key(&number, |(number, _)| *number);
                found.ok().and_then(|at| self.sparse.get(at)).map(|(_, place)| *place)
            }
        }
    }
}

/// The ways to one worker.
#[derive(Debug)]
struct Ways {
    /// Its commands.
    inbox: Arc<Inbox>,
    /// The lanes to it.
    handoff: Handoff,
}

/// The ports of a bridge, spread over the workers.
pub(crate) struct Spread(Vec<Ports>);

impl Spread {
    /// Spreads the ports, which come in the order of their numbers, over a worker for each inbox.
    pub(crate) fn new(slots: Vec<Slot>, inboxes: &[Arc<Inbox>], counters: &Arc<Counters>) -> Self {
        let numbers: Vec<PortNo> = slots.iter().map(|slot| slot.number).collect();
        let map = Arc::new(PortMap::new(&numbers, inboxes.len()));
        let ways = inboxes
            .iter()
            .map(|inbox| Ways { inbox: Arc::clone(inbox), handoff: Handoff::new(inboxes.len()) });
        let ways: Arc<[Ways]> = ways.collect();
        let mut spread: Vec<Ports> = (0..inboxes.len())
            .map(|me| Ports::new(me, &map, &ways, Arc::clone(counters)))
            .collect();
        for slot in slots {
            let place = map.place(slot.number);
            if let Some(ports) = place.and_then(|place| spread.get_mut(place.worker)) {
                ports.slots.push(slot);
            }
        }
        Self(spread)
    }

    /// The ports of each worker.
    pub(crate) fn into_workers(self) -> impl Iterator<Item = Ports> {
        self.0.into_iter()
    }
}

/// The ports of a bridge on one worker, in the order of their numbers.
pub(crate) struct Ports {
    slots: Vec<Slot>,
    map: Arc<PortMap>,
    me: usize,
    ways: Arc<[Ways]>,
    /// Ports that have frames to send.
    waiting: Vec<usize>,
    /// Ports whose queues hold frames for later.
    holding: Vec<usize>,
    /// Ports that need more than to be asked for frames.
    troubled: Vec<usize>,
    /// Something has come to be the matter with one of them, for which nobody has cared yet.
    is_alarmed: bool,
    /// Frames for the ports of other workers, by worker.
    handed: Vec<Vec<Handed>>,
    arrived: Vec<Handed>,
    /// The time of this round, for queues.
    time: Nanos,
    /// Frames received, and buffers to be used again.
    batch: Batch,
    counters: Arc<Counters>,
}

impl Ports {
    fn new(me: usize, map: &Arc<PortMap>, ways: &Arc<[Ways]>, counters: Arc<Counters>) -> Self {
        Self {
            slots: Vec::new(),
            map: Arc::clone(map),
            me,
            ways: Arc::clone(ways),
            waiting: Vec::new(),
            holding: Vec::new(),
            troubled: Vec::new(),
            is_alarmed: false,
            handed: ways.iter().map(|_| Vec::new()).collect(),
            arrived: Vec::new(),
            time: Nanos(0),
            batch: Batch::default(),
            counters,
        }
    }

    /// All ports.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// All ports, writable.
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// Exchanges the buffers for those of the worker, whose branches use the same in turns: the
    /// memory of a worker does not grow with the number of its bridges.
    pub(super) fn lend(&mut self, buffers: &mut Batch) {
        std::mem::swap(&mut self.batch, buffers);
    }

    /// Whether receiving from a port is no system call: it has nothing to wait for.
    #[inline]
    pub(super) fn is_polled(&self, index: usize) -> bool {
        let port = self.slots.get(index).and_then(|slot| slot.port.as_ref());
        port.is_some_and(|port| port.fd().is_none())
    }

    /// The ports that need more than to be asked for frames.
    pub(super) fn troubled(&self) -> &[usize] {
        &self.troubled
    }

    /// Whether something new is the matter with a port since [`Ports::settle`].
    #[inline]
    pub(super) fn is_alarmed(&self) -> bool {
        self.is_alarmed
    }

    /// Notes a port that needs more than to be asked for frames.
    pub(super) fn note_trouble(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.is_in_trouble() {
            return;
        }
        self.is_alarmed |= slot.changed || !slot.is_troubled;
        if !slot.is_troubled {
            slot.is_troubled = true;
            self.troubled.push(index);
        }
    }

    /// All ports in trouble have been cared for: forgets those that are well; whether any is not.
    pub(super) fn settle(&mut self) -> bool {
        let slots = &mut self.slots;
        self.troubled.retain(|index| {
            let Some(slot) = slots.get_mut(*index) else { return false };
            slot.is_troubled = slot.is_in_trouble();
            slot.is_troubled
        });
        self.is_alarmed = false;
        !self.troubled.is_empty()
    }

    /// Whether queues of ports hold frames.
    pub(super) fn is_holding(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Takes a batch from a port: its number, and the frames if there are any.
    pub(super) fn receive(
        &mut self,
        index: usize,
        now: Instant,
    ) -> Option<(PortNo, Vec<PacketBuf>)> {
        let slot = self.slots.get_mut(index)?;
        if slot.receive(&mut self.batch, now, &self.counters) == 0 {
            self.note_trouble(index);
            return None;
        }
        Some((slot.number, std::mem::take(self.batch.parts_mut().0)))
    }

    /// Takes back the list that [`Ports::receive`] gave, for the next batch.
    pub(super) fn take_back(&mut self, mut frames: Vec<PacketBuf>) {
        let (held, pool) = self.batch.parts_mut();
        let left = frames.len();
        pool.give_front(&mut frames, left);
        *held = frames;
    }

    /// Queues what other workers have handed over; whether there was anything.
    pub(super) fn accept(&mut self) -> bool {
        let Some(own) = self.ways.get(self.me) else { return false };
        own.handoff.take(&mut self.arrived, self.batch.parts_mut().1);
        if self.arrived.is_empty() {
            return false;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for ((index, queue), frame) in arrived.drain(..) {
            self.queue(index, queue, frame);
        }
        self.arrived = arrived;
        true
    }

    /// Lets the driver of a pair of ports pass frames on by itself; how many, or `None` where no
    /// driver does so.
    pub(super) fn relay(&mut self, index: usize) -> Option<usize> {
        let other = partner(index, self.slots.len());
        let [from, to] = self.slots.get_disjoint_mut([index, other]).ok()?;
        from.port.as_mut()?.relay(to.port.as_mut()?.as_mut(), RX_BATCH)
    }

    /// Queues the frames that came by a port at the other port of its pair.
    pub(super) fn carry(&mut self, index: usize, wire: Wire, frames: &mut Vec<PacketBuf>) {
        let other = partner(index, self.slots.len());
        let Some(slot) = self.slots.get_mut(other) else { return };
        readdress(wire, frames, (slot.number, slot.info.mac));
        self.queue_all(other, None, frames);
    }

    /// Tells the time, for queues; it holds until the next call.
    pub(super) fn set_time(&mut self, time: Nanos) {
        self.time = time;
    }

    /// Sends what the queues of ports let go by now; how many frames ports took.
    pub(super) fn release(&mut self) -> usize {
        self.waiting.append(&mut self.holding);
        if self.waiting.is_empty() { 0 } else { self.flush() }
    }

    /// When a queue lets the next frame go, if one waits.
    pub(super) fn next_release(&self) -> Option<Nanos> {
        let held = self.holding.iter().filter_map(|index| self.slots.get(*index));
        held.filter_map(|slot| slot.shaper.as_ref()?.next_at()).min()
    }

    fn queue(&mut self, index: usize, queue: Option<QueueId>, frame: PacketBuf) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if let Some(shaper) = &mut slot.shaper {
            if !self.waiting.contains(&index) {
                self.waiting.push(index);
            }
            if !shaper.has_room(queue) {
                // Others of the batch may go first.
                shaper.release(self.time, &mut slot.tx);
            }
            if let Err(frame) = shaper.offer(queue, frame, self.time) {
                self.counters.bump(Counter::QueueOverrun);
                self.batch.give_spare(frame);
            }
            return;
        }
        if slot.tx.is_empty() {
            self.waiting.push(index);
        }
        slot.tx.push(frame);
    }

    fn queue_all(&mut self, index: usize, queue: Option<QueueId>, frames: &mut Vec<PacketBuf>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.shaper.is_some() {
            for frame in frames.drain(..) {
                self.queue(index, queue, frame);
            }
            return;
        }
        if slot.tx.is_empty() {
            self.waiting.push(index);
            std::mem::swap(&mut slot.tx, frames);
        } else {
            slot.tx.append(frames);
        }
    }

    /// Sends what is queued, and returns how many frames ports took.
    pub(super) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while let Some(index) = self.waiting.pop() {
            let Some(slot) = self.slots.get_mut(index) else { continue };
            let mut frames = std::mem::take(&mut slot.tx);
            if let Some(shaper) = &mut slot.shaper {
                shaper.release(self.time, &mut frames);
                if !shaper.is_empty() && !self.holding.contains(&index) {
                    self.holding.push(index);
                }
            }
            sent += slot.transmit(&mut frames, self.batch.parts_mut().1, &self.counters);
            slot.tx = frames;
            if slot.changed {
                self.note_trouble(index);
            }
        }
        for (frames, ways) in self.handed.iter_mut().zip(&*self.ways) {
            if !frames.is_empty() {
                let refused = ways.handoff.send(self.me, frames, self.batch.parts_mut().1);
                self.counters.add(Counter::HandoffFull, refused as u64);
                ways.inbox.knock();
            }
        }
        sent
    }
}

/// Where a forwarder's verdicts go: ports, and the packet-ins of the batch.
pub(super) struct Exit<'a> {
    pub(super) ports: &'a mut Ports,
    pub(super) up: &'a mut Waiting,
}

impl Exit<'_> {
    fn place(&mut self, port: PortNo) -> Option<Place> {
        let place = self.ports.map.place(port);
        if place.is_none() {
            // The datapath knows no other ports than these.
            self.ports.counters.bump(Counter::TxPortGone);
        }
        place
    }
}

impl Sink for Exit<'_> {
    /// Queues a frame. One that a pop made too short for a wire is padded.
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, mut frame: PacketBuf) {
        let Some(place) = self.place(port) else { return self.done(frame) };
        frame.pad_to(FRAME_MIN_LEN);
        if place.worker == self.ports.me {
            self.ports.queue(place.index, queue, frame);
        } else if let Some(handed) = self.ports.handed.get_mut(place.worker) {
            handed.push(((place.index, queue), frame));
        }
    }

    fn output_all(
        &mut self,
        port: PortNo,
        queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        shortest: usize,
    ) {
        let Some(place) = self.place(port) else { return self.done_all(frames) };
        if shortest < FRAME_MIN_LEN {
            frames.iter_mut().for_each(|frame| frame.pad_to(FRAME_MIN_LEN));
        }
        if place.worker == self.ports.me {
            self.ports.queue_all(place.index, queue, frames);
        } else if let Some(handed) = self.ports.handed.get_mut(place.worker) {
            handed.extend(frames.drain(..).map(|frame| ((place.index, queue), frame)));
        }
    }

    fn packet_in(&mut self, message: PacketIn, _max_len: u16) {
        self.up.packets.push(message);
    }

    /// The datapath has counted it under its reason.
    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, frame: PacketBuf) {
        self.ports.batch.give_spare(frame);
    }

    fn done_all(&mut self, frames: &mut Vec<PacketBuf>) {
        let count = frames.len();
        self.ports.batch.parts_mut().1.give_front(frames, count);
    }

    fn spare(&mut self) -> PacketBuf {
        self.ports.batch.take_spare()
    }
}

#[cfg(test)]
mod tests {
    use openflow::PortNo;

    use super::{Place, PortMap};

    #[test]
    fn pairs_of_ports_take_workers_in_turns() {
        let numbers: Vec<PortNo> = [1, 2, 5, 9, 70_000].map(PortNo).to_vec();
        let map = PortMap::new(&numbers, 2);
        let place = |worker, index| Some(Place { worker, index });
        assert_eq!(map.place(PortNo(1)), place(0, 0));
        assert_eq!(map.place(PortNo(2)), place(0, 1));
        assert_eq!(map.place(PortNo(5)), place(1, 0));
        assert_eq!(map.place(PortNo(9)), place(1, 1));
        assert_eq!(map.place(PortNo(70_000)), place(0, 2));
        for none in [0, 3, 10, 65_536, u32::MAX] {
            assert_eq!(map.place(PortNo(none)), None);
        }
    }
}
