//! Insertion and removal of entries, and the creation and removal of groups.
//!
//! Everything is done entry by entry: no change of the table may make the classifier build
//! anything anew, and no step may look at more than a bounded number of entries.

use super::group::{Bits, GROUPS_MAX, Known};
use super::relax::RELAXATIONS;
use super::template::Template;
use super::{Classifier, SEQ_BITS};
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::precedence::Precedence;

/// Entries that are compared one by one before there are groups, and the number below which a
/// table goes back to that.
const FEW_MAX: usize = 16;
const FEW_AGAIN: usize = 8;
/// Comparisons that cost about as much as a probe of a group.
const PROBE: usize = 3;
/// Groups of one mask each before masks are merged.
const EXACT_MAX: usize = 8;
/// Groups before entries are put together more closely than is best for each of them.
const CROWDED: usize = 56;
/// Entries with equal bits in a group that is not exact, before another group is tried: while there
/// are few groups, when there are many, and when there can be no other.
const SHARE: usize = 3;
const SHARE_CROWDED: usize = 8;
const SHARE_MAX: usize = 64;
/// The most entries of an exact group that is merged once there are coarser ones.
const MERGE_MAX: u32 = 64;

impl Classifier {
    /// Inserts a new record.
    pub(super) fn insert_record(&mut self, slot: u32) {
        match self.forced {
            Some(Template::Few) => self.list.insert(&self.records, slot),
            None if self.groups.is_empty() => {
                self.list.insert(&self.records, slot);
                if self.list.len() > FEW_MAX || self.list.len() > PROBE * self.masks.len() + 2 {
                    for item in self.list.take() {
                        self.insert_in_group(item.slot);
                    }
                }
            }
            None
            | Some(Template::Constant | Template::Exact | Template::General | Template::Pruned) => {
                self.insert_in_group(slot)
            }
        }
        self.merge_one();
        self.maintain_filter();
    }

    /// Does a small part of the filter's work.
    fn maintain_filter(&mut self) {
        let entries = self.len - self.always.len();
        let known = Known { secrets: &self.secrets, masks: &self.masks, records: &self.records };
        let secret = self.secrets.odd();
        match self.forced {
            Some(Template::Pruned) => self.filter.force(&self.groups, known, entries, secret),
            Some(Template::Exact | Template::General) => self.filter.clear(),
            None | Some(Template::Constant | Template::Few) => {
                self.filter.step(&self.groups, known, entries, secret);
            }
        }
    }

    fn insert_in_group(&mut self, slot: u32) {
        let mask = self.records.get(slot).mask();
        let Some(held) = self.masks.held_mut(mask) else { return };
        held.refresh(&self.groups);
        let (own, levels) = (held.groups.own, held.groups.levels);
        let (exact_max, merges) = match self.forced {
            None | Some(Template::Constant | Template::Few) => (EXACT_MAX, true),
            Some(Template::Exact) => (GROUPS_MAX, false),
            Some(Template::General | Template::Pruned) => (0, true),
        };
        if own.is_some_and(|own| self.enter_if(own, slot, SHARE)) {
            return;
        }
        if self.groups.len() < exact_max && self.open_whole(slot) {
            return;
        }
        if !merges {
            return self.list.insert(&self.records, slot);
        }
        for (at, level) in levels.into_iter().enumerate() {
            let entered = match level {
                Some(group) => self.enter_if(group, slot, SHARE),
                None => self.groups.len() < CROWDED && self.open_level(slot, at),
            };
            if entered {
                return;
            }
        }
        if self.groups.len() < CROWDED && self.open_whole(slot)
            || self.enter_any(slot, SHARE_CROWDED)
            || self.open_level(slot, RELAXATIONS.len() - 1)
            || self.open_whole(slot)
            || self.enter_any(slot, SHARE_MAX)
        {
            return;
        }
        self.list.insert(&self.records, slot);
    }

    /// Opens a group for a record's mask itself; `false` when there is one, or one too many.
    fn open_whole(&mut self, slot: u32) -> bool {
        let Some(held) = self.masks.held(self.records.get(slot).mask()) else { return false };
        held.groups.own.is_none() && self.open(held.bits(), slot, true)
    }

    /// Opens a group for what a level keeps of a record's mask.
    fn open_level(&mut self, slot: u32, level: usize) -> bool {
        let Some(held) = self.masks.held(self.records.get(slot).mask()) else { return false };
        let Some(bits) = &held.levels[level] else { return false };
        let is_exact = *bits.words == *held.mask.words();
        held.groups.levels[level].is_none() && self.open(bits.clone(), slot, is_exact)
    }

    fn open(&mut self, bits: Bits, slot: u32, is_exact: bool) -> bool {
        let Some(number) = self.groups.add(bits) else { return false };
        let Some(group) = self.groups.get(number) else { return false };
        self.filter.open(number, &group.bits);
        let hash = group.hash_of(self.known(), slot);
        self.enter(number, slot, hash, is_exact);
        if !is_exact {
            self.note_merge_candidates(number);
        }
        true
    }

    /// Puts a record into any group that takes it.
    fn enter_any(&mut self, slot: u32, share_max: usize) -> bool {
        let Some(held) = self.masks.held(self.records.get(slot).mask()) else { return false };
        let groups = held.groups.all.clone();
        groups.into_iter().any(|group| self.enter_if(group, slot, share_max))
    }

    /// Puts a record into a group, unless too many entries share its bits there.
    fn enter_if(&mut self, number: u8, slot: u32, share_max: usize) -> bool {
        let Some(held) = self.masks.held(self.records.get(slot).mask()) else { return false };
        let Some(group) = self.groups.get(number) else { return false };
        let is_exact = group.is_exact && *group.bits.words == *held.mask.words();
        let hash = group.hash_of(self.known(), slot);
        let (mut sharing, mut same) = (0, None);
        let words = held.mask.words().len();
        group.index.find(hash, |other| {
            sharing += 1;
            if self.is_same_value(other, slot, words) {
                same = Some(other);
            }
        });
        if let Some(front) = same {
            self.add_shadow(number, front, slot);
        } else if is_exact || sharing < share_max {
            if !is_exact {
                self.sharing = self.sharing.max(sharing + 1);
            }
            self.enter(number, slot, hash, is_exact);
        } else {
            return false;
        }
        true
    }

    fn is_same_value(&self, one: u32, other: u32, words: usize) -> bool {
        self.records.get(one).mask() == self.records.get(other).mask()
            && (0..words).all(|at| self.records.word(one, at) == self.records.word(other, at))
    }

    fn enter(&mut self, number: u8, slot: u32, hash: u64, is_exact: bool) {
        let rank = self.records.get(slot).rank();
        let known = Known { secrets: &self.secrets, masks: &self.masks, records: &self.records };
        if let Some(group) = self.groups.get_mut(number) {
            group.is_exact &= is_exact;
            group.insert(known, hash, slot);
            if let Some(held) = self.masks.held(self.records.get(slot).mask()) {
                self.filter.enter(number, held.mask.words(), |at| self.records.word(slot, at));
                self.groups.some_conj_id |= u64::from(held.mask.has_conj_id()) << number;
            }
            self.groups.count(number, rank, true);
        }
    }

    /// An entry with the mask and value of another one: only the better of the two is ever matched,
    /// so only one is in the group.
    fn add_shadow(&mut self, group: u8, front: u32, slot: u32) {
        let new = *self.records.get(slot);
        let old = *self.records.get(front);
        let behind = if new.rank() < old.rank() {
            self.records.get_mut(front).set_entry(new.id(), new.rank());
            self.groups.count(group, old.rank(), false);
            self.groups.count(group, new.rank(), true);
            old
        } else {
            new
        };
        self.shadows.insert((front, behind.rank()), behind.id());
        self.records.get_mut(front).set_shadows(true);
        if new.has_shadows() {
            while let Some((rank, id)) = self.pop_shadow(slot) {
                self.shadows.insert((front, rank), id);
            }
        }
        self.records.free(slot, self.masks.words(new.mask()));
    }

    /// Takes the best of the entries behind a record away.
    fn pop_shadow(&mut self, slot: u32) -> Option<(u64, EntryId)> {
        let (key, id) = self.shadows.range((slot, 0)..=(slot, u64::MAX)).next()?;
        let (key, id) = (*key, *id);
        self.shadows.remove(&key);
        Some((key.1, id))
    }

    /// A coarser group has come: exact ones that it could take the entries of may go.
    fn note_merge_candidates(&mut self, coarse: u8) {
        let Some(coarse) = self.groups.get(coarse) else { return };
        let may_merge = |number: &u8| {
            self.groups.get(*number).is_some_and(|group| {
                group.is_exact
                    && group.index.len() <= MERGE_MAX
                    && group.bits != coarse.bits
                    && coarse.bits.is_within(&group.bits.words)
            })
        };
        let found: Vec<u8> = self.groups.order.iter().copied().filter(may_merge).collect();
        self.merge_candidates.extend(found);
    }

    /// Merges one group that may be worth it, if it still is.
    fn merge_one(&mut self) {
        let Some(number) = self.merge_candidates.pop() else { return };
        let may_merge = |group: &super::group::TupleGroup| {
            group.is_exact && group.index.len() <= MERGE_MAX && self.groups.len() > EXACT_MAX
        };
        if !self.groups.get(number).is_some_and(may_merge) {
            return;
        }
        let Some(group) = self.groups.take(number) else { return };
        for slot in group.index.slots() {
            self.insert_in_group(slot);
        }
    }

    /// Makes a record on the list for each entry behind a record.
    fn list_shadows(&mut self, slot: u32) {
        let mask = self.records.get(slot).mask();
        let words = self.masks.words(mask);
        let value: Vec<u64> = (0..words).map(|at| self.records.word(slot, at)).collect();
        self.records.get_mut(slot).set_shadows(false);
        while let Some((rank, id)) = self.pop_shadow(slot) {
            let own = self.records.add(id, mask, rank, &value);
            self.list.insert(&self.records, own);
        }
    }

    /// Takes an entry with a mask away.
    pub(super) fn remove_record(
        &mut self,
        compiled: &CompiledMatch,
        precedence: Precedence,
        id: EntryId,
    ) -> bool {
        let Some(mask) = self.masks.find(compiled.mask()) else { return false };
        if !self.remove_grouped(mask, compiled, precedence, id) {
            let Some(slot) = self.list.remove(precedence, id) else { return false };
            self.records.free(slot, compiled.value().len());
        }
        self.masks.leave(mask);
        self.filter.leave();
        self.shrink();
        self.maintain_filter();
        true
    }

    fn remove_grouped(
        &mut self,
        mask: u32,
        compiled: &CompiledMatch,
        precedence: Precedence,
        id: EntryId,
    ) -> bool {
        let Some(held) = self.masks.held_mut(mask) else { return false };
        held.refresh(&self.groups);
        let mut at = 0;
        while let Some(&number) = self.masks.held(mask).and_then(|held| held.groups.all.get(at)) {
            if self.remove_from_group(number, mask, compiled, precedence, id) {
                return true;
            }
            at += 1;
        }
        false
    }

    fn remove_from_group(
        &mut self,
        number: u8,
        mask: u32,
        compiled: &CompiledMatch,
        precedence: Precedence,
        id: EntryId,
    ) -> bool {
        let Some(group) = self.groups.get(number) else { return false };
        let value = |at: usize| compiled.value().get(at).copied().unwrap_or_default();
        let hash = group.bits.hash(&self.secrets, compiled.mask().words(), value);
        let mut same = None;
        group.index.find(hash, |slot| {
            if self.masks.is_same(&self.records, slot, mask, compiled) {
                same = Some(slot);
            }
        });
        let Some(slot) = same else { return false };
        let Some(front) = self.take_from_front(slot, precedence, id) else { return false };
        match front {
            Front::Stays => {}
            Front::Other(old, new) => {
                self.groups.count(number, old, false);
                self.groups.count(number, new, true);
            }
            Front::Gone(rank) => {
                self.groups.count(number, rank, false);
                if let Some(group) = self.groups.get_mut(number) {
                    group.index.remove(hash, slot);
                    if group.index.len() == 0 {
                        self.groups.take(number);
                    }
                    self.records.free(slot, compiled.value().len());
                }
            }
        }
        true
    }

    /// Takes an entry out of a record and those behind it.
    fn take_from_front(&mut self, slot: u32, precedence: Precedence, id: EntryId) -> Option<Front> {
        let front = *self.records.get(slot);
        let order = u64::from(precedence.order());
        let is_it = |rank: u64, held: EntryId| held == id && rank >> SEQ_BITS == order;
        let is_front = is_it(front.rank(), front.id());
        if !front.has_shadows() {
            return is_front.then(|| Front::Gone(front.rank()));
        }
        let taken = if is_front {
            let (rank, id) = self.pop_shadow(slot)?;
            self.records.get_mut(slot).set_entry(id, rank);
            Front::Other(front.rank(), rank)
        } else {
            let (first, last) = (order << SEQ_BITS, ((order + 1) << SEQ_BITS) - 1);
            let mut same = self.shadows.range((slot, first)..=(slot, last));
            let key = *same.find(|((_, rank), held)| is_it(*rank, **held))?.0;
            self.shadows.remove(&key);
            Front::Stays
        };
        let is_last = self.shadows.range((slot, 0)..=(slot, u64::MAX)).next().is_none();
        self.records.get_mut(slot).set_shadows(!is_last);
        Some(taken)
    }

    /// Goes back to a list when so few entries are left.
    fn shrink(&mut self) {
        let entries = self.len - self.always.len() - 1;
        let is_few = entries <= FEW_AGAIN && entries < PROBE * self.masks.len();
        if self.groups.is_empty() || !is_few || self.forced.is_some() {
            return;
        }
        while let Some(number) = self.groups.order.first().copied() {
            let Some(group) = self.groups.take(number) else { return };
            for slot in group.index.slots() {
                self.list.insert(&self.records, slot);
            }
        }
        self.merge_candidates.clear();
        self.sharing = 1;
        let slots: Vec<u32> = self.list.items().iter().map(|item| item.slot).collect();
        for slot in slots {
            self.list_shadows(slot);
        }
    }
}

/// Fate of a record of which an entry was removed.
enum Front {
    /// It is gone, with the entry of this rank.
    Gone(u64),
    /// It holds the next entry: the ranks of the old one and the new one.
    Other(u64, u64),
    /// It holds the same entry; one behind it was taken.
    Stays,
}
