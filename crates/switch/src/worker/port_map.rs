//! The map from the number of a bridge's port to the worker that serves it.
//!
//! It is shared by all workers of the bridge and never changes: when a port comes or goes, the
//! workers get another map. In that one every port that stays has the place that it had. A worker
//! looks up every output here, so the numbers that are in use everywhere cost one load.

use openflow::PortNo;

/// Numbers below this are looked up in a table.
const DENSE: usize = 1 << 16;

/// Where a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortLocation {
    /// The worker, by its index among those of the bridge.
    pub(crate) worker: usize,
    /// The index among the ports of the shard there.
    pub(crate) index: usize,
}

/// The locations of all ports of the bridge.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortMap {
    dense: Vec<Option<PortLocation>>,
    sparse: Vec<(PortNo, PortLocation)>,
}

impl PortMap {
    /// The map of the ports with these ascending numbers. Neighbours share a worker, since ports
    /// connected as a pair mostly forward to each other; pairs take workers in turn.
    pub(crate) fn new(numbers: &[PortNo], workers: usize) -> Self {
        let mut counts = vec![0; workers.max(1)];
        let mut map = Self::default();
        for (order, number) in numbers.iter().enumerate() {
            let worker = (order / 2) % counts.len();
            let location = PortLocation { worker, index: counts[worker] };
            counts[worker] += 1;
            map.set(*number, location);
        }
        map
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

    /// The map with one more port at this place, and else the same.
    pub(crate) fn with(&self, number: PortNo, location: PortLocation) -> Self {
        let mut map = self.without(number);
        map.set(number, location);
        map
    }

    /// The map without a port, and else the same.
    pub(crate) fn without(&self, number: PortNo) -> Self {
        let mut map = self.clone();
        match map.dense.get_mut(number.0 as usize) {
            Some(slot) => *slot = None,
            None => map.sparse.retain(|(other, _)| *other != number),
        }
        map
    }

    /// The place of a port that is new: a worker with an odd number of ports first, since pairs of
    /// ports mostly forward to each other, and else the one with the fewest.
    pub(crate) fn place(&self, workers: usize) -> PortLocation {
        let mut taken = vec![Vec::new(); workers.max(1)];
        let sparse = self.sparse.iter().map(|(_, location)| location);
        for location in self.dense.iter().flatten().chain(sparse) {
            if let Some(taken) = taken.get_mut(location.worker) {
                taken.push(location.index);
            }
        }
        let by_ports = taken.iter().enumerate();
        let worker = by_ports.min_by_key(|(_, taken)| (taken.len() % 2 == 0, taken.len()));
        let (worker, taken) = worker.map_or((0, [].as_slice()), |(at, taken)| (at, taken));
        let index = (0..).find(|index| !taken.contains(index)).unwrap_or(taken.len());
        PortLocation { worker, index }
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

    #[test]
    fn what_is_new_finds_a_place_and_nothing_else_moves() {
        let numbers: Vec<PortNo> = [1, 2, 3, 80_000, u32::MAX - 1].map(PortNo).to_vec();
        let before = PortMap::new(&numbers, 2);
        // 1, 2 and the last one are with the first worker, so that it completes a pair.
        assert_eq!(before.place(2), PortLocation { worker: 0, index: 3 });
        let map = before.without(PortNo(2)).without(PortNo(80_000)).without(PortNo(9));
        assert_eq!((map.location(PortNo(2)), map.location(PortNo(80_000))), (None, None));
        let place = map.place(2);
        assert_eq!(place, PortLocation { worker: 1, index: 1 }, "3 is alone there");
        let map = map.with(PortNo(70_000), place);
        assert_eq!(map.location(PortNo(70_000)), Some(place));
        assert_eq!(map.place(2), PortLocation { worker: 0, index: 1 }, "the place of 2");
        for number in [1, 3, u32::MAX - 1].map(PortNo) {
            assert_eq!(map.location(number), before.location(number));
        }
        assert_eq!(PortMap::default().place(3), PortLocation { worker: 0, index: 0 });
    }
}
