//! A flow table: entries in the order of precedence, searched from the front.
//!
//! Linear search is the definition of a lookup; every faster one is tested against it. Entries of
//! equal precedence that both match are undefined in the specification; here the older one wins,
//! and an entry that is replaced keeps its place.

use std::collections::{BTreeMap, BTreeSet};

use openflow::{Field, Match};
use packet::FlowKey;

use super::entry::Entry;
use crate::precedence::Precedence;
use crate::time::Nanos;

/// A flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    pub(super) lookups: u64,
    pub(super) matches: u64,
}

impl Table {
    /// The entries, highest precedence first, older ones first among equals.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)
    }

    /// The entry that a packet matches, with its place.
    ///
    /// Entries with parts in conjunctions are never the answer. Where those of one precedence that
    /// the packet matches make up all dimensions of a conjunction, the answer is what the packet
    /// matches with the conjunction's id in `conj_id`: the lowest id that has an answer. An entry
    /// without conjunctions of the same precedence comes before them (ovs-fields(7), Conjunctive
    /// Match Fields).
    pub(super) fn lookup(&self, key: &FlowKey, now: Nanos) -> Option<(usize, &Entry)> {
        let single = self.single(key, now);
        let mut of_precedence: BTreeMap<Precedence, BTreeSet<(u32, u8, u8)>> = BTreeMap::new();
        for entry in self.matched(key, now).map(|(_, entry)| entry) {
            if single.is_none_or(|(_, single)| entry.precedence > single.precedence) {
                of_precedence.entry(entry.precedence).or_default().extend(entry.conjunctions());
            }
        }
        for parts in of_precedence.values().rev() {
            for (id, n_dimensions, _) in parts {
                if (0..*n_dimensions).all(|k| parts.contains(&(*id, *n_dimensions, k))) {
                    let mut key = key.clone();
                    key.set(Field::ConjId, (*id).into());
                    let found = self.single(&key, now);
                    if found.is_some() {
                        return found;
                    }
                }
            }
        }
        single
    }

    /// The first entry without parts in conjunctions that a packet matches.
    fn single(&self, key: &FlowKey, now: Nanos) -> Option<(usize, &Entry)> {
        self.matched(key, now).find(|(_, entry)| entry.conjunctions().next().is_none())
    }

    /// All live entries that a packet matches.
    fn matched(&self, key: &FlowKey, now: Nanos) -> impl Iterator<Item = (usize, &Entry)> {
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(_, entry)| key.matches(&entry.matching) && !entry.is_expired(now))
    }

    fn range_of(&self, precedence: Precedence) -> std::ops::Range<usize> {
        let start = self.entries.partition_point(|entry| entry.precedence > precedence);
        let end = self.entries.partition_point(|entry| entry.precedence >= precedence);
        start..end
    }

    /// The entry of equal match and precedence, with its place.
    pub(super) fn find_strict(&self, matching: &Match, precedence: Precedence) -> Option<usize> {
        let mut range = self.range_of(precedence);
        range.find(|index| self.entries[*index].matching == *matching)
    }

    /// Whether a live entry of equal precedence could match a packet that this match matches.
    pub(super) fn overlaps(&self, matching: &Match, precedence: Precedence, now: Nanos) -> bool {
        let mut entries = self.entries[self.range_of(precedence)].iter();
        entries.any(|entry| entry.matching.overlaps(matching) && !entry.is_expired(now))
    }

    /// Number of entries without a timeout that has passed.
    pub(super) fn live(&self, now: Nanos) -> usize {
        self.entries.iter().filter(|entry| !entry.is_expired(now)).count()
    }

    /// Adds an entry behind those of its precedence. There must be no equal one.
    pub(super) fn insert(&mut self, entry: Entry) {
        let index = self.range_of(entry.precedence).end;
        self.entries.insert(index, entry);
    }

    /// Removes the entries for which `goes` has a result, with that.
    pub(super) fn remove<T>(&mut self, mut goes: impl FnMut(&Entry) -> Option<T>) -> Vec<T> {
        let mut gone = Vec::new();
        self.entries.retain(|entry| {
            let reason = goes(entry);
            let stays = reason.is_none();
            gone.extend(reason);
            stays
        });
        gone
    }
}
