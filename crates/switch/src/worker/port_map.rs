//! The map from the number of a bridge's port to the worker that serves it.
//!
//! It is made once and shared by all workers of the bridge. A worker looks up every output here, so
//! the numbers that are in use everywhere cost one load.

use openflow::PortNo;

/// Numbers below this are looked up in a table.
const DENSE: usize = 1 << 16;

/// Where a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortLocation {
    /// The worker, by its index among those of the bridge.
    pub(super) worker: usize,
    /// The index among the ports of the shard there.
    pub(super) index: usize,
}

/// The locations of all ports of the bridge.
#[derive(Debug, Default)]
pub(super) struct PortMap {
    dense: Vec<Option<PortLocation>>,
    sparse: Vec<(PortNo, PortLocation)>,
}

impl PortMap {
    /// The map of the ports with these ascending numbers. Neighbours share a worker, since ports
    /// connected as a pair mostly forward to each other; pairs take workers in turn.
    pub(super) fn new(numbers: &[PortNo], workers: usize) -> Self {
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
    pub(super) fn location(&self, number: PortNo) -> Option<PortLocation> {
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
}
