//! The ports of a bridge on one worker, and the transmission of frames to all ports of the bridge.
//!
//! A port belongs to one worker, which alone uses its device. Frames for a port of the same worker
//! wait in that port's queue until the end of the batch; frames for a port of another worker go
//! there by a lane ([`super::handoff`]).

use std::sync::Arc;
use std::time::Instant;

use datapath::fast::Sink;
use datapath::{DropReason, Nanos};
use openflow::message::PacketIn;
use openflow::{PortNo, QueueId};
use packet::header::ethernet::FRAME_MIN_LEN;
use packet::{Batch, PacketBuf};

use super::command::PendingUpcalls;
use super::handoff::{HandedFrame, Handoff};
use super::shard::RX_BATCH;
use super::wire::{partner, readdress};
use super::{CommandQueue, WorkerPort};
use crate::config::Wire;
use crate::counters::{Counter, Counters};

/// Numbers below this are looked up in a table.
const DENSE: usize = 1 << 16;

/// Where a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortLocation {
    /// The worker, by its index among those of the bridge.
    worker: usize,
    /// The index among the ports of the shard there.
    index: usize,
}

/// The locations of all ports of the bridge.
#[derive(Debug, Default)]
struct PortMap {
    dense: Vec<Option<PortLocation>>,
    sparse: Vec<(PortNo, PortLocation)>,
}

impl PortMap {
    /// The map of the ports with these ascending numbers. Neighbours share a worker, since ports
    /// connected as a pair mostly forward to each other; pairs take workers in turn.
    fn new(numbers: &[PortNo], workers: usize) -> Self {
        let mut counts = vec![0; workers.max(1)];
        let mut map = Self::default();
        for (order, number) in numbers.iter().enumerate() {
            let worker = (order / 2) % counts.len();
            let location = PortLocation { worker, index: counts[worker] };
            counts[worker] += 1;
            let dense = number.0 as usize;
            if dense < DENSE {
                if map.dense.len() <= dense {
                    map.dense.resize(dense + 1, None);
                }
                map.dense[dense] = Some(location);
            } else {
                map.sparse.push((*number, location));
            }
        }
        map
    }

    /// The location of a port; `None` where the bridge has no such port.
    #[inline]
    fn location(&self, number: PortNo) -> Option<PortLocation> {
        match self.dense.get(number.0 as usize) {
            Some(location) => *location,
            None => {
                let found = self.sparse.binary_search_by_key(&number, |(number, _)| *number);
                found.ok().and_then(|at| self.sparse.get(at)).map(|(_, location)| *location)
            }
        }
    }
}

/// The link to a worker of the bridge: its commands and the lanes to it.
#[derive(Debug)]
struct WorkerLink {
    commands: Arc<CommandQueue>,
    handoff: Handoff,
}

/// Distributes the ports of a bridge, in ascending order of their numbers, over its workers: one
/// for each command queue.
pub(crate) fn distribute_ports(
    ports: Vec<WorkerPort>,
    queues: &[Arc<CommandQueue>],
    counters: &Arc<Counters>,
) -> Vec<Ports> {
    let numbers: Vec<PortNo> = ports.iter().map(|port| port.number).collect();
    let map = Arc::new(PortMap::new(&numbers, queues.len()));
    let link =
        |queue| WorkerLink { commands: Arc::clone(queue), handoff: Handoff::new(queues.len()) };
    let links: Arc<[WorkerLink]> = queues.iter().map(link).collect();
    let mut workers: Vec<Ports> =
        (0..queues.len()).map(|me| Ports::new(me, &map, &links, Arc::clone(counters))).collect();
    for port in ports {
        let location = map.location(port.number);
        if let Some(ports) = location.and_then(|location| workers.get_mut(location.worker)) {
            ports.all.push(port);
        }
    }
    workers
}

/// The ports of a bridge on one worker, in the order of their numbers.
pub(crate) struct Ports {
    all: Vec<WorkerPort>,
    map: Arc<PortMap>,
    me: usize,
    links: Arc<[WorkerLink]>,
    /// Ports that have frames to send.
    waiting: Vec<usize>,
    /// Ports whose queues hold frames back.
    holding: Vec<usize>,
    /// Ports that are down, failed or changed, and need service.
    faulted: Vec<usize>,
    /// A port has become faulted or has changed since the last service.
    has_new_fault: bool,
    /// Frames for the ports of other workers, by worker.
    handed: Vec<Vec<HandedFrame>>,
    arrived: Vec<HandedFrame>,
    /// The time of this round, for the ports' queues.
    time: Nanos,
    /// Frames received, and free buffers.
    batch: Batch,
    counters: Arc<Counters>,
}

impl Ports {
    fn new(
        me: usize,
        map: &Arc<PortMap>,
        links: &Arc<[WorkerLink]>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            all: Vec::new(),
            map: Arc::clone(map),
            me,
            links: Arc::clone(links),
            waiting: Vec::new(),
            holding: Vec::new(),
            faulted: Vec::new(),
            has_new_fault: false,
            handed: links.iter().map(|_| Vec::new()).collect(),
            arrived: Vec::new(),
            time: Nanos(0),
            batch: Batch::default(),
            counters,
        }
    }

    /// All ports.
    pub(crate) fn all(&self) -> &[WorkerPort] {
        &self.all
    }

    /// All ports, writable.
    pub(crate) fn all_mut(&mut self) -> &mut [WorkerPort] {
        &mut self.all
    }

    /// Exchanges the buffers for those of the worker, whose shards use them in turn: the memory of
    /// a worker does not grow with the number of its bridges.
    pub(super) fn lend(&mut self, buffers: &mut Batch) {
        std::mem::swap(&mut self.batch, buffers);
    }

    /// Whether a port has no descriptor: receiving from it is no system call.
    #[inline]
    pub(super) fn has_no_fd(&self, index: usize) -> bool {
        let device = self.all.get(index).and_then(|port| port.device.as_ref());
        device.is_some_and(|device| device.fd().is_none())
    }

    /// The ports that need service.
    pub(super) fn faulted(&self) -> &[usize] {
        &self.faulted
    }

    /// Whether a port has become faulted or has changed since [`Ports::end_service`].
    #[inline]
    pub(super) fn has_new_fault(&self) -> bool {
        self.has_new_fault
    }

    /// Puts a port that needs service on the list.
    pub(super) fn note_fault(&mut self, index: usize) {
        let Some(port) = self.all.get_mut(index) else { return };
        if !port.needs_service() {
            return;
        }
        self.has_new_fault |= port.changed || !port.is_listed_faulted;
        if !port.is_listed_faulted {
            port.is_listed_faulted = true;
            self.faulted.push(index);
        }
    }

    /// All faulted ports have been served: removes the healthy ones from the list; whether any is
    /// left.
    pub(super) fn end_service(&mut self) -> bool {
        let all = &mut self.all;
        self.faulted.retain(|index| {
            let Some(port) = all.get_mut(*index) else { return false };
            port.is_listed_faulted = port.needs_service();
            port.is_listed_faulted
        });
        self.has_new_fault = false;
        !self.faulted.is_empty()
    }

    /// Whether queues of ports hold frames back.
    pub(super) fn is_holding(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Receives a batch from a port: its number and the frames; `None` where there are none.
    pub(super) fn receive(
        &mut self,
        index: usize,
        now: Instant,
    ) -> Option<(PortNo, Vec<PacketBuf>)> {
        let port = self.all.get_mut(index)?;
        if port.receive(&mut self.batch, now, &self.counters) == 0 {
            self.note_fault(index);
            return None;
        }
        Some((port.number, std::mem::take(self.batch.parts_mut().0)))
    }

    /// Takes back the list that [`Ports::receive`] gave, for the next batch.
    pub(super) fn take_back(&mut self, mut frames: Vec<PacketBuf>) {
        let (held, pool) = self.batch.parts_mut();
        let left = frames.len();
        pool.give_front(&mut frames, left);
        *held = frames;
    }

    /// Queues the frames that other workers have handed over; whether there were any.
    pub(super) fn accept(&mut self) -> bool {
        let Some(own) = self.links.get(self.me) else { return false };
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

    /// Has the driver of a pair of ports relay frames by itself. Returns their number, or `None`
    /// where the driver cannot.
    pub(super) fn relay(&mut self, index: usize) -> Option<usize> {
        let other = partner(index, self.all.len());
        let [from, to] = self.all.get_disjoint_mut([index, other]).ok()?;
        from.device.as_mut()?.relay(to.device.as_mut()?, RX_BATCH)
    }

    /// Queues the frames received from a port at the other port of its pair.
    pub(super) fn queue_at_partner(
        &mut self,
        index: usize,
        wire: Wire,
        frames: &mut Vec<PacketBuf>,
    ) {
        let other = partner(index, self.all.len());
        let Some(port) = self.all.get_mut(other) else { return };
        readdress(wire, frames, (port.number, port.info.mac));
        self.queue_all(other, None, frames);
    }

    /// Sets the time of the ports' queues, until the next call.
    pub(super) fn set_time(&mut self, time: Nanos) {
        self.time = time;
    }

    /// Sends the frames that the ports' queues release by now; how many the ports accepted.
    pub(super) fn release(&mut self) -> usize {
        self.waiting.append(&mut self.holding);
        if self.waiting.is_empty() { 0 } else { self.flush() }
    }

    /// When a queue releases its next frame, if one waits.
    pub(super) fn next_release(&self) -> Option<Nanos> {
        let held = self.holding.iter().filter_map(|index| self.all.get(*index));
        held.filter_map(|port| port.shaper.as_ref()?.next_at()).min()
    }

    fn queue(&mut self, index: usize, queue: Option<QueueId>, frame: PacketBuf) {
        let Some(port) = self.all.get_mut(index) else { return };
        if let Some(shaper) = &mut port.shaper {
            if !self.waiting.contains(&index) {
                self.waiting.push(index);
            }
            if !shaper.has_room(queue) {
                // Others of the batch may go first.
                shaper.release(self.time, &mut port.tx);
            }
            if let Err(frame) = shaper.offer(queue, frame, self.time) {
                self.counters.bump(Counter::QueueOverrun);
                self.batch.give_spare(frame);
            }
            return;
        }
        if port.tx.is_empty() {
            self.waiting.push(index);
        }
        port.tx.push(frame);
    }

    fn queue_all(&mut self, index: usize, queue: Option<QueueId>, frames: &mut Vec<PacketBuf>) {
        let Some(port) = self.all.get_mut(index) else { return };
        if port.shaper.is_some() {
            for frame in frames.drain(..) {
                self.queue(index, queue, frame);
            }
            return;
        }
        if port.tx.is_empty() {
            self.waiting.push(index);
            std::mem::swap(&mut port.tx, frames);
        } else {
            port.tx.append(frames);
        }
    }

    /// Sends the queued frames; how many the ports accepted.
    pub(super) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while let Some(index) = self.waiting.pop() {
            let Some(port) = self.all.get_mut(index) else { continue };
            let mut frames = std::mem::take(&mut port.tx);
            if let Some(shaper) = &mut port.shaper {
                shaper.release(self.time, &mut frames);
                if !shaper.is_empty() && !self.holding.contains(&index) {
                    self.holding.push(index);
                }
            }
            sent += port.transmit(&mut frames, self.batch.parts_mut().1, &self.counters);
            port.tx = frames;
            if port.changed {
                self.note_fault(index);
            }
        }
        for (frames, link) in self.handed.iter_mut().zip(&*self.links) {
            if !frames.is_empty() {
                let refused = link.handoff.send(self.me, frames, self.batch.parts_mut().1);
                self.counters.add(Counter::HandoffFull, refused as u64);
                link.commands.ring();
            }
        }
        sent
    }
}

/// The sink of a forwarder's verdicts: ports, and the packet-ins of the batch.
pub(super) struct TxSink<'a> {
    pub(super) ports: &'a mut Ports,
    pub(super) pending: &'a mut PendingUpcalls,
}

impl TxSink<'_> {
    fn location(&mut self, port: PortNo) -> Option<PortLocation> {
        let location = self.ports.map.location(port);
        if location.is_none() {
            // The datapath knows no other ports than these.
            self.ports.counters.bump(Counter::TxPortGone);
        }
        location
    }
}

impl Sink for TxSink<'_> {
    /// Queues a frame, padded where a pop made it too short for Ethernet.
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, mut frame: PacketBuf) {
        let Some(location) = self.location(port) else { return self.done(frame) };
        frame.pad_to(FRAME_MIN_LEN);
        if location.worker == self.ports.me {
            self.ports.queue(location.index, queue, frame);
        } else if let Some(handed) = self.ports.handed.get_mut(location.worker) {
            handed.push(((location.index, queue), frame));
        }
    }

    fn output_all(
        &mut self,
        port: PortNo,
        queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        shortest: usize,
    ) {
        let Some(location) = self.location(port) else { return self.done_all(frames) };
        if shortest < FRAME_MIN_LEN {
            frames.iter_mut().for_each(|frame| frame.pad_to(FRAME_MIN_LEN));
        }
        if location.worker == self.ports.me {
            self.ports.queue_all(location.index, queue, frames);
        } else if let Some(handed) = self.ports.handed.get_mut(location.worker) {
            handed.extend(frames.drain(..).map(|frame| ((location.index, queue), frame)));
        }
    }

    fn packet_in(&mut self, message: PacketIn, _max_len: u16) {
        self.pending.packets.push(message);
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

    use super::{PortLocation, PortMap};

    #[test]
    fn pairs_of_ports_take_workers_in_turns() {
        let numbers: Vec<PortNo> = [1, 2, 5, 9, 70_000].map(PortNo).to_vec();
        let map = PortMap::new(&numbers, 2);
        let at = |worker, index| Some(PortLocation { worker, index });
        assert_eq!(map.location(PortNo(1)), at(0, 0));
        assert_eq!(map.location(PortNo(2)), at(0, 1));
        assert_eq!(map.location(PortNo(5)), at(1, 0));
        assert_eq!(map.location(PortNo(9)), at(1, 1));
        assert_eq!(map.location(PortNo(70_000)), at(0, 2));
        for none in [0, 3, 10, 65_536, u32::MAX] {
            assert_eq!(map.location(PortNo(none)), None);
        }
    }
}
