//! A group: entries whose masks all contain the group's mask, hashed by the bits of that mask.
//!
//! With one mask in it a group is an exact hash. With several it is what keeps the number of probes
//! small: a thousand combinations of prefix lengths and ports lie in some twenty groups, and the
//! few entries that share a group's bits are compared one after the other. A group must never hold
//! an entry that looks at fewer bits than the group.

use std::collections::BTreeMap;

use super::SEQ_BITS;
use super::hash::Secrets;
use super::index::RecordIndex;
use super::masks::MaskTable;
use super::records::Records;
use crate::fast::compiled_match::{MaskWord, has_conj_id};
use crate::fast::sys::prefetch;

/// Groups of one classifier: a set of them is a word.
pub(super) const GROUPS_MAX: usize = 64;

/// A mask as words, with the fields that a packet must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) words: Box<[MaskWord]>,
    pub(super) present: u64,
}

impl Bits {
    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.bits.count_ones()).sum()
    }

    /// Whether every bit is also in the mask.
    pub(super) fn is_within(&self, mask: &[MaskWord]) -> bool {
        let mut theirs = mask.iter();
        self.words.iter().all(|own| {
            let same = theirs.find(|word| word.index >= own.index);
            same.is_some_and(|word| word.index == own.index && own.bits & !word.bits == 0)
        })
    }

    /// The hash of a value under these bits; `own` is the mask that the value belongs to.
    pub(super) fn hash(
        &self,
        secrets: &Secrets,
        own: &[MaskWord],
        value: impl Fn(usize) -> u64,
    ) -> u64 {
        let mut words = [0; packet::WORDS];
        let mut from = 0;
        for (word, bits) in words.iter_mut().zip(&self.words) {
            while own.get(from).is_some_and(|held| held.index < bits.index) {
                from += 1;
            }
            *word = value(from) & bits.bits;
        }
        secrets.of_words(&words[..self.words.len()])
    }
}

/// The parts that hash a record.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) secrets: &'a Secrets,
    pub(super) masks: &'a MaskTable,
    pub(super) records: &'a Records,
}

/// One group.
#[derive(Debug)]
pub(super) struct TupleGroup {
    pub(super) number: u8,
    pub(super) bits: Bits,
    /// Every entry has exactly the group's mask.
    pub(super) is_exact: bool,
    /// No entry has a lower rank.
    pub(super) best: u64,
    /// Number of records of each order of precedence; the lowest comes first.
    orders: BTreeMap<u32, u32>,
    pub(super) index: RecordIndex,
}

impl TupleGroup {
    fn new(number: u8, bits: Bits) -> Self {
        Self {
            number,
            bits,
            is_exact: true,
            best: u64::MAX,
            orders: BTreeMap::new(),
            index: RecordIndex::new(),
        }
    }

    pub(super) fn hash_of(&self, known: Known<'_>, slot: u32) -> u64 {
        hash_of(&self.bits, known, slot, false)
    }

    /// Adds a record with its hash.
    pub(super) fn insert(&mut self, known: Known<'_>, hash: u64, slot: u32) {
        let (bits, is_exact) = (&self.bits, self.is_exact);
        let hash_of = |slot| hash_of(bits, known, slot, is_exact);
        self.index.insert(hash, slot, hash_of, |slot| prefetch(known.records.get(slot)));
    }

    /// Counts a record's entry in.
    pub(super) fn count_in(&mut self, rank: u64) {
        *self.orders.entry((rank >> SEQ_BITS) as u32).or_default() += 1;
        self.best = self.best.min(rank >> SEQ_BITS << SEQ_BITS);
    }

    /// Counts a record's entry out.
    pub(super) fn count_out(&mut self, rank: u64) {
        let order = (rank >> SEQ_BITS) as u32;
        if let Some(entries) = self.orders.get_mut(&order) {
            *entries -= 1;
            if *entries == 0 {
                self.orders.remove(&order);
                let best = self.orders.first_key_value();
                self.best = best.map_or(u64::MAX, |(order, _)| u64::from(*order) << SEQ_BITS);
            }
        }
    }
}

/// A record's hash. Where the record has exactly the group's mask there is nothing to mask.
fn hash_of(bits: &Bits, known: Known<'_>, slot: u32, is_exact: bool) -> u64 {
    if is_exact && let Some(words) = known.records.get(slot).near().get(..bits.words.len()) {
        return known.secrets.of_words(words);
    }
    let mask = known.masks.held(known.records.get(slot).mask());
    let own = mask.map_or(&[][..], |held| held.mask.words());
    bits.hash(known.secrets, own, |at| known.records.word(slot, at))
}

/// The groups of a classifier, in the order in which they are asked.
#[derive(Debug)]
pub(super) struct TupleGroups {
    all: Vec<Option<TupleGroup>>,
    /// Numbers of groups by falling priority of their best entry.
    pub(super) order: Vec<u8>,
    /// One bit for each group.
    pub(super) numbers: u64,
    /// Those of which some entry looks at `conj_id`, or has since the group came.
    pub(super) some_conj_id: u64,
    /// Those of which every entry looks at it.
    pub(super) all_conj_id: u64,
    is_plain: bool,
    /// Changes when a group comes or goes; never zero.
    pub(super) version: u64,
}

impl Default for TupleGroups {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            order: Vec::new(),
            numbers: 0,
            some_conj_id: 0,
            all_conj_id: 0,
            is_plain: false,
            version: 1,
        }
    }
}

impl TupleGroups {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u8) -> Option<&TupleGroup> {
        self.all.get(usize::from(number))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut TupleGroup> {
        self.all.get_mut(usize::from(number))?.as_mut()
    }

    /// The groups in the order in which they are asked.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &TupleGroup> {
        self.order.iter().filter_map(|number| self.get(*number))
    }

    /// Says whether tags are compared one by one.
    pub(super) fn set_plain(&mut self, is_plain: bool) {
        self.is_plain = is_plain;
        for group in self.all.iter_mut().flatten() {
            group.index.is_plain = is_plain;
        }
    }

    pub(super) fn find(&self, bits: &Bits) -> Option<u8> {
        let is_it = |number: &u8| self.get(*number).is_some_and(|group| group.bits == *bits);
        self.order.iter().copied().find(is_it)
    }

    /// A new group without entries; `None` when there are too many.
    pub(super) fn add(&mut self, bits: Bits) -> Option<u8> {
        if self.len() == GROUPS_MAX {
            return None;
        }
        let hole = self.all.iter().position(Option::is_none);
        let number = hole.unwrap_or(self.all.len());
        self.all_conj_id |= u64::from(has_conj_id(bits.present)) << number;
        let mut group = TupleGroup::new(number as u8, bits);
        group.index.is_plain = self.is_plain;
        let group = Some(group);
        match self.all.get_mut(number) {
            Some(held) => *held = group,
            None => self.all.push(group),
        }
        self.version += 1;
        self.numbers |= 1 << number;
        self.order.push(number as u8);
        Some(number as u8)
    }

    /// Takes a group away, with what it holds.
    pub(super) fn take(&mut self, number: u8) -> Option<TupleGroup> {
        let group = self.all.get_mut(usize::from(number))?.take();
        self.order.retain(|held| *held != number);
        for set in [&mut self.numbers, &mut self.some_conj_id, &mut self.all_conj_id] {
            *set &= !(1 << number);
        }
        self.version += 1;
        group
    }

    /// Counts an entry of a group in (`true`) or out.
    pub(super) fn count(&mut self, number: u8, rank: u64, comes: bool) {
        let Some(group) = self.get_mut(number) else { return };
        let before = group.best;
        if comes {
            group.count_in(rank);
        } else {
            group.count_out(rank);
        }
        if before != group.best {
            let all = &self.all;
            let best =
                |number: &u8| all.get(usize::from(*number))?.as_ref().map(|group| group.best);
            self.order.sort_by_key(best);
        }
    }
}
