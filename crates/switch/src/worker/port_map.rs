//! The map from the number of a bridge's port to the worker that serves it, or to the workers that
//! serve its queues.
//!
//! It is shared by all workers of the bridge and never changes: when a port comes or goes, the
//! workers get another map. In that one every port that stays has the place that it had. A worker
//! looks up every output here, so the numbers that are in use everywhere cost one load.
//!
//! The first queue of a port is with its home, which has the device; the others go to the workers
//! behind that one, in turns. A worker with a queue of a port sends by that queue itself: a flow's
//! frames all come by one queue of one port, so that they stay in order. A port with a rate or
//! OpenFlow queues is sent to by its home alone, which holds frames back.

use std::sync::Arc;

use openflow::PortNo;

/// Numbers below this are looked up in a table.
const DENSE: usize = 1 << 16;

/// The place at which a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortLocation {
    /// The worker, by its index among those of the bridge.
    pub(crate) worker: usize,
    /// The index among the ports of the shard there.
    pub(crate) index: usize,
}

/// The places of the queues of a port that has more than one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueuePlaces {
    number: PortNo,
    /// By the order of the queues; the first is the port's home.
    places: Vec<PortLocation>,
    /// Whether its home alone sends by it.
    is_sent_from_home: bool,
}

/// The locations of all ports of the bridge.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortMap {
    dense: Vec<Option<PortLocation>>,
    sparse: Vec<(PortNo, PortLocation)>,
    /// Ports with several queues.
    queues: Vec<QueuePlaces>,
}

impl PortMap {
    /// The map of ports with these ascending numbers and counts of queues. Neighbours share a
    /// worker, since ports connected as a pair mostly forward to each other; pairs take workers in
    /// turn.
    pub(crate) fn new(ports: &[(PortNo, usize)], workers: usize) -> Self {
        let mut map = Self::default();
        let mut counts = vec![0; workers.max(1)];
        let mut next = |worker: usize| {
            let worker = worker % counts.len();
            counts[worker] += 1;
            PortLocation { worker, index: counts[worker] - 1 }
        };
        for (order, (number, _)) in ports.iter().enumerate() {
            map.set(*number, next(order / 2));
        }
        for (number, queues) in ports.iter().filter(|(_, queues)| *queues > 1) {
            let Some(home) = map.location(*number) else { continue };
            let further = (1..*queues).map(|nth| next(home.worker + nth));
            map.set_places(*number, std::iter::once(home).chain(further).collect());
        }
        map
    }

    /// The places of the queues of a port that is set.
    fn set_places(&mut self, number: PortNo, places: Vec<PortLocation>) {
        if places.len() > 1 {
            self.queues.push(QueuePlaces { number, places, is_sent_from_home: false });
        }
    }

    fn queues_of(&self, number: PortNo) -> Option<&QueuePlaces> {
        self.queues.iter().find(|queues| queues.number == number)
    }

    /// The places of a port's queues, its home first.
    pub(crate) fn places(&self, number: PortNo) -> Vec<PortLocation> {
        match self.queues_of(number) {
            Some(queues) => queues.places.clone(),
            None => self.location(number).into_iter().collect(),
        }
    }

    /// Whether a queue of this port is served at this place.
    pub(super) fn has_at(&self, number: PortNo, place: PortLocation) -> bool {
        match self.queues_of(number) {
            Some(queues) => queues.places.contains(&place),
            None => self.location(number) == Some(place),
        }
    }

    /// The map in which the home of a port with several queues alone sends by it, and else the
    /// same; `None` where it does so already.
    pub(crate) fn sent_from_home(&self, number: PortNo) -> Option<Self> {
        let mut map = self.clone();
        let queues = map.queues.iter_mut().find(|queues| queues.number == number)?;
        (!std::mem::replace(&mut queues.is_sent_from_home, true)).then_some(map)
    }

    /// The map as this worker uses it: a port's location is that of the worker's own queue, where
    /// it may send by that.
    pub(crate) fn of_worker(self: &Arc<Self>, worker: usize) -> Arc<Self> {
        let own = |queues: &QueuePlaces| {
            let own = queues.places.iter().find(|place| place.worker == worker);
            own.filter(|_| !queues.is_sent_from_home).map(|own| (queues.number, *own))
        };
        if self.queues.is_empty() {
            return Arc::clone(self);
        }
        let mut map = Self::clone(self);
        for (number, own) in self.queues.iter().filter_map(own) {
            map.forget(number);
            map.set(number, own);
        }
        Arc::new(map)
    }

    fn set(&mut self, number: PortNo, location: PortLocation) {
        let dense = number.0 as usize;
        if dense >= DENSE {
            let at = self.sparse.partition_point(|(other, _)| *other < number);
            return self.sparse.insert(at, (number, location));
        }
        if self.dense.len() <= dense {
            self.dense.resize(dense + 1, None);
        }
        if let Some(slot) = self.dense.get_mut(dense) {
            *slot = Some(location);
        }
    }

    /// Takes a port out of the table of numbers.
    fn forget(&mut self, number: PortNo) {
        match self.dense.get_mut(number.0 as usize) {
            Some(slot) => *slot = None,
            None => self.sparse.retain(|(other, _)| *other != number),
        }
    }

    /// The map with one more port, whose queues are at these places, and else the same.
    pub(crate) fn with(&self, number: PortNo, places: &[PortLocation]) -> Self {
        let mut map = self.without(number);
        if let Some(home) = places.first() {
            map.set(number, *home);
        }
        map.set_places(number, places.to_vec());
        map
    }

    /// The map without a port, and else the same.
    pub(crate) fn without(&self, number: PortNo) -> Self {
        let mut map = self.clone();
        map.forget(number);
        map.queues.retain(|queues| queues.number != number);
        map
    }

    /// The places of a new port with this number of queues: its home is a worker with an odd
    /// number of ports first, since pairs of ports mostly forward to each other, and else the one
    /// with the fewest.
    pub(crate) fn place(&self, workers: usize, queues: usize) -> Vec<PortLocation> {
        let mut taken = vec![Vec::new(); workers.max(1)];
        let sparse = self.sparse.iter().map(|(_, location)| location);
        for location in self.dense.iter().flatten().chain(sparse) {
            if let Some(taken) = taken.get_mut(location.worker) {
                taken.push(location.index);
            }
        }
        let by_ports = taken.iter().enumerate();
        let home = by_ports.min_by_key(|(_, taken)| (taken.len() % 2 == 0, taken.len()));
        let home = home.map_or(0, |(at, _)| at);
        for place in self.queues.iter().flat_map(|queues| queues.places.iter().skip(1)) {
            if let Some(taken) = taken.get_mut(place.worker) {
                taken.push(place.index);
            }
        }
        let place = |nth: usize| {
            let worker = (home + nth) % taken.len();
            let taken = &mut taken[worker];
            let index = (0..).find(|index| !taken.contains(index)).unwrap_or(taken.len());
            taken.push(index);
            PortLocation { worker, index }
        };
        (0..queues.max(1)).map(place).collect()
    }

    /// The location of a port; `None` where the bridge has no such port.
    #[inline]
    pub(crate) fn location(&self, number: PortNo) -> Option<PortLocation> {
        match self.dense.get(number.0 as usize) {
            Some(location) => *location,
            None => {
                let found = self.sparse.binary_search_by_key(&number, |(number, _)| *number);
                found.ok().and_then(|at| self.sparse.get(at)).map(|(_, location)| *location)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openflow::PortNo;

    use super::{PortLocation, PortMap};

    fn map(numbers: &[u32], workers: usize) -> PortMap {
        let ports: Vec<_> = numbers.iter().map(|number| (PortNo(*number), 1)).collect();
        PortMap::new(&ports, workers)
    }

    #[test]
    fn pairs_of_ports_take_workers_in_turns() {
        let map = map(&[1, 2, 5, 9, 70_000], 2);
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

    #[test]
    fn what_is_new_finds_a_place_and_nothing_else_moves() {
        let before = map(&[1, 2, 3, 80_000, u32::MAX - 1], 2);
        // 1, 2 and the last one are with the first worker, so that it completes a pair.
        assert_eq!(before.place(2, 1), [PortLocation { worker: 0, index: 3 }]);
        let map = before.without(PortNo(2)).without(PortNo(80_000)).without(PortNo(9));
        assert_eq!((map.location(PortNo(2)), map.location(PortNo(80_000))), (None, None));
        let places = map.place(2, 1);
        assert_eq!(places, [PortLocation { worker: 1, index: 1 }], "3 is alone there");
        let map = map.with(PortNo(70_000), &places);
        assert_eq!(map.places(PortNo(70_000)), places);
        assert_eq!(map.place(2, 1), [PortLocation { worker: 0, index: 1 }], "the place of 2");
        for number in [1, 3, u32::MAX - 1].map(PortNo) {
            assert_eq!(map.location(number), before.location(number));
        }
        assert_eq!(PortMap::default().place(3, 1), [PortLocation { worker: 0, index: 0 }]);
    }

    #[test]
    fn a_worker_sends_by_its_own_queue_unless_the_home_alone_may() {
        let at = |worker, index| PortLocation { worker, index };
        let ports = [(1, 3), (2, 1), (70_000, 2)].map(|(number, queues)| (PortNo(number), queues));
        let map = Arc::new(PortMap::new(&ports, 2));
        assert_eq!(map.places(PortNo(1)), [at(0, 0), at(1, 1), at(0, 2)]);
        assert_eq!(map.places(PortNo(70_000)), [at(1, 0), at(0, 3)]);
        let seen = |map: &Arc<PortMap>, worker| {
            let map = map.of_worker(worker);
            [1, 2, 70_000].map(|number| map.location(PortNo(number)).unwrap())
        };
        assert_eq!(seen(&map, 0), [at(0, 0), at(0, 1), at(0, 3)]);
        assert_eq!(seen(&map, 1), [at(1, 1), at(0, 1), at(1, 0)]);
        let other = Arc::new(map.sent_from_home(PortNo(1)).unwrap());
        assert_eq!(seen(&other, 1), [at(0, 0), at(0, 1), at(1, 0)]);
        assert!(
            other.sent_from_home(PortNo(1)).is_none() && map.sent_from_home(PortNo(2)).is_none()
        );
        for (number, place, is_there) in
            [(1, at(1, 1), true), (1, at(0, 2), true), (1, at(1, 0), false), (2, at(0, 1), true)]
        {
            assert_eq!(other.of_worker(1).has_at(PortNo(number), place), is_there);
        }
        // Those that come find no place taken by a further queue, and give theirs up.
        let places = other.place(2, 3);
        assert_eq!(places, [at(1, 2), at(0, 4), at(1, 3)]);
        let more = other.with(PortNo(9), &places);
        assert_eq!(more.places(PortNo(9)), places);
        assert_eq!(more.without(PortNo(9)).place(2, 3), places);
        assert_eq!(more.without(PortNo(1)).place(2, 2), [at(0, 0), at(1, 1)]);
    }
}
