//! A flow table: entries in the order of precedence, searched from the front.
//!
//! Linear search is the definition of a lookup; every faster one is tested against it. Entries of
//! equal precedence that both match are undefined in the specification; here the older one wins,
//! and an entry that is replaced keeps its place.

use openflow::Match;
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
    pub(super) fn lookup(&self, key: &FlowKey, now: Nanos) -> Option<(usize, &Entry)> {
        let mut entries = self.entries.iter().enumerate();
        entries.find(|(_, entry)| key.matches(&entry.matching) && !entry.is_expired(now))
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
