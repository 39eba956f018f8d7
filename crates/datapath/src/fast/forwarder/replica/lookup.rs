//! Lookups in the tables of a replica: past the entries that packets do not count, and through
//! those of conjunctive matches.

use openflow::{Field, TableId};
use packet::FlowKey;

use super::{PackedSummary, Replica, ReplicaEntry};
use crate::fast::classifier::Answer;
use crate::fast::conjunction::{self, Part};
use crate::fast::ids::EntryId;
use crate::fast::op::{Life, Used};
use crate::time::Nanos;

/// The entry that a lookup ends with.
pub(in crate::fast::forwarder) struct Found<'a> {
    pub(in crate::fast::forwarder) id: EntryId,
    pub(in crate::fast::forwarder) entry: &'a ReplicaEntry,
    /// Whether nothing but the entry itself may expire so that another one is found.
    pub(in crate::fast::forwarder) is_lasting: bool,
}

impl Replica {
    /// The entry that a packet matches in a table. The key is as before then.
    pub(in crate::fast::forwarder) fn lookup(
        &self,
        table: TableId,
        key: &mut FlowKey,
        now: Nanos,
    ) -> Option<Found<'_>> {
        if self.is_conjunctive(table) {
            return self.search(table, key, now);
        }
        let found = self.entries_of(table).lookup(key)?;
        self.alive(table, key, found, now)
    }

    /// Whether lookups of a table are to be a [`Self::search`] from the start: some entry has, or
    /// since the table was empty had, parts in conjunctive matches.
    #[inline]
    pub(in crate::fast::forwarder) fn is_conjunctive(&self, table: TableId) -> bool {
        self.conjunctive[usize::from(table.0)]
    }

    /// The entry that a lookup found, or the one that it ends with when packets do not count that
    /// or it has parts in conjunctive matches.
    #[inline]
    pub(in crate::fast::forwarder) fn alive(
        &self,
        table: TableId,
        key: &mut FlowKey,
        found: EntryId,
        now: Nanos,
    ) -> Option<Found<'_>> {
        let entry = self.entry(found)?;
        if entry.summary.parts.is_empty() && !self.is_passed_over(found, entry, now) {
            return Some(Found { id: found, entry, is_lasting: true });
        }
        self.search(table, key, now)
    }

    /// The entry that a packet matches in a table, whatever entries are there.
    #[inline(never)]
    pub(in crate::fast::forwarder) fn search(
        &self,
        table: TableId,
        key: &mut FlowKey,
        now: Nanos,
    ) -> Option<Found<'_>> {
        let table = self.entries_of(table);
        let mut matched = self.matched_parts.borrow_mut();
        matched.clear();
        let mut is_lasting = true;
        let single = table.lookup_if(key, |order, id| {
            let Some((parts, lasts)) = self.counted(id, now) else { return false };
            conjunction::add(&mut matched, order, parts.iter().copied());
            is_lasting &= parts.is_empty() | lasts;
            parts.is_empty()
        });
        let is_single = |id| self.counted(id, now).is_some_and(|(parts, _)| parts.is_empty());
        let end = single.as_ref().map(Answer::order);
        let answer = conjunction::resolve(&mut matched, end, |conj_id| {
            key.set(Field::ConjId, conj_id.into());
            let answer = table.lookup_conj_id(key, single, |_, id| is_single(id));
            key.set(Field::ConjId, 0);
            answer
        });
        // An entry of a conjunctive match that expires can only take the conjunction away.
        let is_lasting = is_lasting || answer.is_none();
        let id = answer.or(single)?.id;
        Some(Found { id, entry: self.entry(id)?, is_lasting })
    }

    /// The parts of an entry in conjunctive matches, and whether it lives for ever; none of one
    /// that packets do not count.
    #[inline(always)]
    fn counted(&self, id: EntryId, now: Nanos) -> Option<(&[Part], bool)> {
        match self.packed(id.0) {
            PackedSummary::Goto(_) | PackedSummary::Summary(..) => Some((&[], true)),
            PackedSummary::Parts(parts) => Some((parts, true)),
            PackedSummary::Look => self.counted_by_entry(id, now),
        }
    }

    #[cold]
    fn counted_by_entry(&self, id: EntryId, now: Nanos) -> Option<(&[Part], bool)> {
        let entry = self.entry(id).filter(|entry| !self.is_passed_over(id, entry, now))?;
        Some((&entry.summary.parts, !entry.life.is_limited()))
    }

    /// Whether packets do not count an entry: its time is over, or a bundle hides it.
    #[inline]
    fn is_passed_over(&self, id: EntryId, entry: &ReplicaEntry, now: Nanos) -> bool {
        self.is_over(id, entry.life, now) || !self.is_counted(entry)
    }

    /// When an entry is over if nothing uses or teaches it after now; all ones for never.
    #[inline]
    pub(in crate::fast::forwarder) fn ends_at(&self, id: EntryId, life: Life, now: Nanos) -> u64 {
        if !life.is_limited() {
            return u64::MAX;
        }
        let hard = life.hard_at(self.shared.used(id).taught).map_or(u64::MAX, |at| at.0);
        let idle = life.idle_at(now).map_or(u64::MAX, |at| at.0);
        hard.min(idle)
    }

    /// Whether an entry's time is over.
    #[inline]
    pub(in crate::fast::forwarder) fn is_over(&self, id: EntryId, life: Life, now: Nanos) -> bool {
        life.is_limited() && life.is_over(self.shared.used(id), now)
    }

    /// When an entry was used, as far as its end hangs on that.
    pub(in crate::fast::forwarder) fn used(&self, id: EntryId) -> Used {
        self.shared.used(id)
    }
}
