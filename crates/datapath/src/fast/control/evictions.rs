//! The order in which entries of a table go that makes room for new ones.
//!
//! The first eviction of a table sorts its entries; from then on each change of an entry costs some
//! steps of a tree. An entry stands with the moment of its timer, before which it does not expire,
//! as in [`super::timers`]: packets that use it move nothing here. Only an entry that would be the
//! next to go is asked when it was used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use openflow::{BitRange, Field, Match};

use crate::time::Nanos;

/// An entry's place in the order of its group: the one of the least importance goes first, then the
/// one that would expire first, then the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    pub(super) importance: u16,
    /// The moment of its timer.
    pub(super) at: Nanos,
    pub(super) seq: u64,
    pub(super) number: u32,
}

/// The entries of a table that may go.
#[derive(Clone, Debug)]
pub(super) struct EvictionOrder {
    /// The parts of fields by which entries are grouped.
    parts: Vec<(Field, BitRange)>,
    /// By the values of these parts.
    groups: BTreeMap<Vec<u128>, BTreeSet<EvictionRank>>,
    /// The first entries of the groups, those of the largest group first.
    firsts: BTreeSet<(Reverse<usize>, EvictionRank)>,
}

impl EvictionOrder {
    pub(super) fn new(parts: Vec<(Field, BitRange)>) -> Self {
        Self { parts, groups: BTreeMap::new(), firsts: BTreeSet::new() }
    }

    /// Whether entries are grouped by these parts.
    pub(super) fn is_by(&self, parts: &[(Field, BitRange)]) -> bool {
        self.parts == parts
    }

    /// The group of an entry with a match, which is made only if groups differ.
    pub(super) fn group(&self, matching: impl FnOnce() -> Match) -> Vec<u128> {
        if self.parts.is_empty() {
            return Vec::new();
        }
        let matching = matching();
        let value = |field| matching.get(field).map_or(0, |found| found.value);
        self.parts.iter().map(|(field, bits)| bits.of(value(*field))).collect()
    }

    pub(super) fn insert(&mut self, group: Vec<u128>, rank: EvictionRank) {
        self.change(group, |ranks| {
            ranks.insert(rank);
        });
    }

    /// Takes an entry out, if it is there.
    pub(super) fn remove(&mut self, group: Vec<u128>, rank: &EvictionRank) {
        self.change(group, |ranks| {
            ranks.remove(rank);
        });
    }

    fn change(&mut self, group: Vec<u128>, change: impl FnOnce(&mut BTreeSet<EvictionRank>)) {
        let mut ranks = self.groups.remove(&group).unwrap_or_default();
        if let Some(first) = ranks.first() {
            self.firsts.remove(&(Reverse(ranks.len()), *first));
        }
        change(&mut ranks);
        if let Some(first) = ranks.first() {
            self.firsts.insert((Reverse(ranks.len()), *first));
            self.groups.insert(group, ranks);
        }
    }

    /// The entry that would go next if no packet has used it: one of the largest group.
    pub(super) fn first(&self) -> Option<EvictionRank> {
        self.firsts.first().map(|(_, first)| *first)
    }
}
