//! Stations that have moved to another port: what a kernel tier decided about them must end, in
//! every shard of the bridge.
//!
//! Stations share a few slots with a count each, and a move raises the count of its station's slot.
//! So nothing grows and nothing can be missed: a shard that compares late finds all that has moved
//! since, and at worst ends what is about another station of the same slot. A move is noted under
//! the lock of the addresses, after their change, so a shard that has read an address from before
//! it finds the count raised later.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::macs::Station;
use crate::select::mix;

/// Slots that stations share: 4 KB, and a thousandth of the stations each.
const SLOTS: usize = 1 << 10;

/// The slot of a station.
pub(crate) fn slot_of((vlan, address): Station) -> u16 {
    (mix(u64::from(vlan) << 48 | address.to_u64()) % SLOTS as u64) as u16
}

/// The counts of moves.
#[derive(Debug)]
pub(crate) struct Moves {
    /// Of all stations.
    all: AtomicU64,
    by_slot: Box<[AtomicU32]>,
    /// Whether a kernel tier of the bridge has begun.
    is_watched: AtomicBool,
}

impl Default for Moves {
    fn default() -> Self {
        let by_slot = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { all: AtomicU64::new(0), by_slot, is_watched: AtomicBool::new(false) }
    }
}

impl Moves {
    /// A station has moved. Under the lock of the addresses.
    pub(crate) fn note(&self, station: Station) {
        if let Some(count) = self.by_slot.get(usize::from(slot_of(station))) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.all.fetch_add(1, Ordering::Release);
    }

    /// A kernel tier begins, before it reads any address: from now on moves are reported. Both are
    /// ordered by the lock of the addresses: a move after such a read finds this set.
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether moves concern any kernel tier of the bridge.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }
}

/// The moves that one forwarder has seen.
#[derive(Debug, Default)]
pub(crate) struct SeenMoves {
    all: u64,
    by_slot: Vec<u32>,
}

impl SeenMoves {
    /// Whether stations have moved since.
    #[inline]
    pub(crate) fn is_behind(&self, moves: &Moves) -> bool {
        self.all != moves.all.load(Ordering::Acquire)
    }

    /// Catches up: the slots of the stations that have moved since.
    pub(crate) fn catch_up(&mut self, moves: &Moves) -> Vec<u16> {
        self.all = moves.all.load(Ordering::Acquire);
        self.by_slot.resize(SLOTS, 0);
        let mut raised = Vec::new();
        for (slot, (seen, count)) in (0..).zip(self.by_slot.iter_mut().zip(&moves.by_slot)) {
            let count = count.load(Ordering::Relaxed);
            if std::mem::replace(seen, count) != count {
                raised.push(slot);
            }
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use openflow::MacAddr;

    use super::{Moves, SLOTS, SeenMoves, slot_of};

    #[test]
    fn who_is_late_finds_every_station_that_has_moved() {
        let (moves, mut seen) = (Moves::default(), SeenMoves::default());
        assert!(!seen.is_behind(&moves));
        let station = |number| (7, MacAddr::from_u64(number));
        let mut expected: Vec<u16> = (0..5_000).step_by(500).map(|n| slot_of(station(n))).collect();
        (0..5_000).step_by(500).for_each(|number| moves.note(station(number)));
        expected.sort_unstable();
        expected.dedup();
        assert!(seen.is_behind(&moves));
        assert_eq!(seen.catch_up(&moves), expected);
        assert!(!seen.is_behind(&moves));
        assert!(seen.catch_up(&moves).is_empty());
    }

    #[test]
    fn stations_are_spread_over_all_slots_by_address_and_vlan() {
        let mut stations = [0_u32; SLOTS];
        for number in 0..10 * SLOTS as u64 {
            let station = ((number % 4) as u16, MacAddr::from_u64(0x0200_0000_0000 + number / 4));
            stations[usize::from(slot_of(station))] += 1;
        }
        assert!(stations.iter().all(|count| *count < 40), "{stations:?}");
        assert!(stations.iter().filter(|count| **count > 0).count() > SLOTS * 99 / 100);
    }
}
