//! The receive side of a bridge's shard: its ports, and which of them need service.
//!
//! A port, or each queue of one with several, belongs to one worker, which alone uses it. What
//! waits to be sent stands apart from the ports, in [`Egress`].

use std::sync::Arc;
use std::time::Instant;

use netdev::{PATCH_HOPS_MAX, PatchEnd, PatchPlace};
use openflow::PortNo;
use packet::{Batch, PacketBuf, Pool};

use super::egress::{Egress, WorkerLink};
use super::port_map::{PortLocation, PortMap};
use super::wire::partner;
use super::{CommandQueue, Shaper, Slots, WorkerPort};
use crate::counters::{Counter, Counters};

/// Distributes the ports of a bridge over its workers, as the map says: the two sides of a shard
/// for each command queue.
pub(crate) fn distribute_ports(
    ports: Vec<WorkerPort>,
    map: &Arc<PortMap>,
    queues: &[Arc<CommandQueue>],
    counters: &Arc<Counters>,
) -> Vec<(Ports, Egress)> {
    let link = |queue| WorkerLink::new(Arc::clone(queue), queues.len());
    let links: Arc<[WorkerLink]> = queues.iter().map(link).collect();
    let sides = |me| {
        let egress = Egress::new(me, &map.of_worker(me), &links, Arc::clone(counters));
        (Ports::new(Arc::clone(counters)), egress)
    };
    let mut workers: Vec<(Ports, Egress)> = (0..queues.len()).map(sides).collect();
    let pairs: Vec<_> = ports.iter().map(|port| (port.number, port.info.mac)).collect();
    for (order, mut port) in ports.into_iter().enumerate() {
        let places = map.places(port.number);
        let Some((home, further)) = places.split_first() else { continue };
        let pair = pairs.get(partner(order, pairs.len())).copied();
        let mut put = |place: &PortLocation, mut port: WorkerPort, shaper: Option<Shaper>| {
            if let Some((ports, egress)) = workers.get_mut(place.worker) {
                (port.member.mapped, port.pair) = (true, pair);
                egress.add(place.index, shaper);
                ports.all.put(place.index, port);
            }
        };
        for (nth, place) in (1..).zip(further) {
            put(place, port.further_queue((nth, places.len()), *home), None);
        }
        let shaper = port.shaper.take();
        port.has_queues = shaper.is_some();
        port.set_further(further.to_vec());
        put(home, port, shaper);
    }
    workers
}

/// The ports of a bridge on one worker.
pub(crate) struct Ports {
    all: Slots<WorkerPort>,
    /// Ports that are down, failed or changed, and need service.
    faulted: Vec<usize>,
    /// A port has become faulted or has changed since the last service.
    has_new_fault: bool,
    counters: Arc<Counters>,
    /// The number of the worker, for patch ports.
    worker: Option<usize>,
    /// The number of patch ports that the frames at work have passed.
    hops: u8,
    /// The worker's names of patch ports, of any bridge, that have got frames from here.
    walks_on: Vec<u64>,
}

impl Ports {
    /// No ports.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self {
            all: Slots::default(),
            faulted: Vec::new(),
            has_new_fault: false,
            counters,
            worker: None,
            hops: 0,
            walks_on: Vec::new(),
        }
    }

    /// The worker that serves these ports has this number, which no other of the process has.
    pub(super) fn set_worker(&mut self, worker: usize) {
        self.worker = Some(worker);
    }

    /// The number of patch ports that the frames at work have passed.
    pub(super) fn hops(&self) -> u8 {
        self.hops
    }

    /// The frames that are sent from now on have passed this number of patch ports.
    pub(super) fn set_hops(&mut self, hops: u8) {
        self.hops = hops;
    }

    /// Appends the worker's names of patch ports that have got frames from here.
    #[inline]
    pub(super) fn take_walks_on(&mut self, into: &mut Vec<u64>) {
        if !self.walks_on.is_empty() {
            into.append(&mut self.walks_on);
        }
    }

    /// Has frames that come to the other end of a patch port go on at once, where this worker
    /// serves that too.
    pub(super) fn place_patch(&mut self, index: usize, name: u64) {
        let Some(worker) = self.worker else { return };
        if let Some(end) = self.all.get(index).and_then(|port| port.patch.as_ref()) {
            end.set_place(PatchPlace { worker, port: name });
        }
    }

    /// All ports.
    pub(crate) fn all(&self) -> &Slots<WorkerPort> {
        &self.all
    }

    /// All ports, writable.
    pub(crate) fn all_mut(&mut self) -> &mut Slots<WorkerPort> {
        &mut self.all
    }

    /// Puts a port at an index.
    pub(super) fn put(&mut self, index: usize, port: WorkerPort) {
        self.all.put(index, port);
    }

    /// Gives up the port at an index.
    pub(super) fn take(&mut self, index: usize) -> Option<WorkerPort> {
        self.faulted.retain(|faulted| *faulted != index);
        self.all.take(index)
    }

    /// Has the ports receive that this map has at their places on this worker, and no others.
    pub(super) fn set_map(&mut self, map: &PortMap, worker: usize) {
        for index in 0..self.all.end() {
            let Some(port) = self.all.get_mut(index) else { continue };
            port.member.mapped = map.has_at(port.number, PortLocation { worker, index });
        }
    }

    /// Whether a port has no descriptor: receiving from it is no system call.
    #[inline]
    pub(super) fn has_no_fd(&self, index: usize) -> bool {
        let device = self.all.get(index).and_then(WorkerPort::device);
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
        self.has_new_fault |= port.is_changed() || !port.member.faulted;
        if !port.member.faulted {
            port.member.faulted = true;
            self.faulted.push(index);
        }
    }

    /// All faulted ports have been served: removes the healthy ones from the list; whether any is
    /// left.
    pub(super) fn end_service(&mut self) -> bool {
        let all = &mut self.all;
        self.faulted.retain(|index| {
            let Some(port) = all.get_mut(*index) else { return false };
            port.member.faulted = port.needs_service();
            port.member.faulted
        });
        self.has_new_fault = false;
        !self.faulted.is_empty()
    }

    /// Receives up to `most` frames from a port: its number and how many came; `None` where there
    /// are no frames.
    pub(super) fn receive(
        &mut self,
        index: usize,
        most: usize,
        batch: &mut Batch,
        now: Instant,
    ) -> Option<(PortNo, usize)> {
        let port = self.all.get_mut(index)?;
        let count = port.receive(most, batch, now, &self.counters);
        if count == 0 {
            self.note_fault(index);
            return None;
        }
        self.hops = port.patch.as_ref().map_or(0, |end| end.hops());
        Some((port.number, count))
    }

    /// Sends frames by a port; how many it accepted. None is left.
    pub(super) fn transmit(
        &mut self,
        index: usize,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> usize {
        let Some(port) = self.all.get_mut(index) else { return 0 };
        if let Some(end) = &port.patch {
            let end = Arc::clone(end);
            return self.send_on(index, &end, frames, pool);
        }
        let sent = port.transmit(frames, pool, &self.counters);
        if port.is_changed() {
            self.note_fault(index);
        }
        sent
    }

    /// Sends frames by a patch port.
    fn send_on(
        &mut self,
        index: usize,
        end: &PatchEnd,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> usize {
        let Some(port) = self.all.get_mut(index) else { return 0 };
        if self.hops >= PATCH_HOPS_MAX {
            port.refuse(frames, Counter::PatchLoop, pool, &self.counters);
            return 0;
        }
        let all = frames.len();
        if let Some(name) = end.send(frames, self.hops, self.worker, pool)
            && !self.walks_on.contains(&name)
        {
            self.walks_on.push(name);
        }
        let sent = all - frames.len();
        port.refuse(frames, Counter::TxQueueFull, pool, &self.counters);
        sent
    }

    /// The number and address of the other port of a pair.
    pub(super) fn pair(&self, index: usize) -> Option<(PortNo, [u8; 6])> {
        self.all.get(index)?.pair
    }

    /// The port with this number has this address from now on.
    pub(super) fn set_address(&mut self, number: PortNo, mac: [u8; 6]) {
        for port in self.all.iter_mut() {
            port.pair = port.pair.map(|pair| if pair.0 == number { (number, mac) } else { pair });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use netdev::PortSpec;
    use openflow::PortNo;

    use super::super::PortSerial;
    use super::{Counters, Ports, WorkerPort};

    #[test]
    fn whose_frames_leave_by_a_port_has_its_new_address() {
        let mut ports = Ports::new(Arc::new(Counters::default()));
        for (index, other) in [(0, 2), (1, 1), (2, 2)] {
            let spec: PortSpec = format!("null:p{index}").parse().unwrap();
            let mut port = WorkerPort::open(PortNo(index), PortSerial(0), spec).unwrap();
            port.pair = Some((PortNo(other), [1; 6]));
            ports.put(index as usize, port);
        }
        ports.set_address(PortNo(2), [9; 6]);
        let pairs = [0, 1, 2].map(|index| ports.pair(index).unwrap());
        assert_eq!(pairs, [(PortNo(2), [9; 6]), (PortNo(1), [1; 6]), (PortNo(2), [9; 6])]);
    }
}
