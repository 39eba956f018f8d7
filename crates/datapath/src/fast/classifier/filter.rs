//! The filter: the groups that can hold an entry for a key, one bit each, from a few loads.
//!
//! An *atom* is some bits of one word that several groups contain: `/16` and `/24` of an address,
//! say. For each atom a table says, by a hash of these bits, which groups hold an entry with them;
//! groups without the atom are always possible. The AND over the atoms leaves four groups of
//! eighteen for a packet and a firewall list of 10,000 entries: 55 ns a lookup instead of 90.
//!
//! A bit too many costs a probe and is harmless, so nothing is taken out of a table when an entry
//! goes: now and then a new set of tables is filled, a bucket of entries with each change of the
//! flow table, and replaces the old one when it is complete. A bit too few would lose packets:
//! code that puts an entry into a group must call [`GroupFilter::enter`].

use openflow::field::FIELDS;
use packet::FlowKey;

use super::group::{Bits, GROUPS_MAX, Known, TupleGroup, TupleGroups};
use crate::fast::compiled_match::MaskWord;

/// Groups from which on a filter pays, and below which it goes.
const GROUPS_MIN: usize = 10;
const GROUPS_AGAIN: usize = 6;
/// Atoms of one filter.
const ATOMS_MAX: usize = 10;
/// The fewest bits of an atom.
const BITS_MIN: u32 = 8;
/// Changes of the flow table between two beginnings: choosing atoms takes some 10 us.
const CHANGES_MIN: usize = 256;
/// The same of a filter that is forced.
const CHANGES_FORCED: usize = 16;
/// Places of an atom's table: at least twice the entries, until a table would not stay in a near
/// cache.
const SLOTS_MIN: usize = 256;
const SLOTS_MAX: usize = 4096;

/// Some bits of a word, and the groups that do not look at all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Atom {
    word: u8,
    bits: u64,
    always: u64,
}

impl Atom {
    fn is_within(&self, words: &[MaskWord]) -> bool {
        words.iter().any(|word| word.index == self.word && self.bits & !word.bits == 0)
    }
}

/// A set of tables.
#[derive(Debug)]
struct Tables {
    atoms: Vec<Atom>,
    /// For each atom as many words as there are slots.
    tables: Vec<u64>,
    slots: usize,
    /// Bits to shift a hash by to get a slot.
    shift: u32,
    secret: u64,
    /// Entries when it was begun, and the groups then.
    entries: usize,
    version: u64,
}

impl Tables {
    fn new(groups: &TupleGroups, entries: usize, secret: u64) -> Self {
        let slots = (2 * entries).next_power_of_two().clamp(SLOTS_MIN, SLOTS_MAX);
        let atoms = atoms_of(groups);
        Self {
            tables: vec![0; atoms.len() * slots],
            atoms,
            slots,
            shift: 64 - slots.trailing_zeros(),
            secret: secret | 1,
            entries,
            version: groups.version,
        }
    }

    #[inline(always)]
    fn slot(&self, value: u64) -> usize {
        // The high half of a product with a secret depends on all bits of the value.
        ((value ^ value >> 32).wrapping_mul(self.secret) >> self.shift) as usize
    }

    #[inline(always)]
    fn possible(&self, key: &FlowKey) -> u64 {
        let mut possible = u64::MAX;
        let mut first = 0;
        for atom in &self.atoms {
            let value = key.words()[usize::from(atom.word)] & atom.bits;
            possible &= self.tables[first + self.slot(value)] | atom.always;
            first += self.slots;
        }
        possible
    }

    fn enter(&mut self, group: u8, own: &[MaskWord], value: impl Fn(usize) -> u64) {
        for number in 0..self.atoms.len() {
            let atom = self.atoms[number];
            let at = own.iter().position(|word| word.index == atom.word);
            if let Some(at) = at
                && atom.always >> group & 1 == 0
            {
                let slot = self.slot(value(at) & atom.bits);
                self.tables[number * self.slots + slot] |= 1 << group;
            }
        }
    }

    /// A group is new under this number.
    fn open(&mut self, group: u8, bits: &Bits) {
        for atom in &mut self.atoms {
            let has = atom.is_within(&bits.words);
            atom.always = atom.always & !(1 << group) | u64::from(!has) << group;
        }
    }
}

/// The atoms that rule out most: many bits, in many groups.
fn atoms_of(groups: &TupleGroups) -> Vec<Atom> {
    let mut atoms: Vec<(u32, Atom)> = Vec::new();
    let mut offer = |word: u8, bits: u64| {
        let atom = Atom { word, bits, always: u64::MAX };
        let known = atoms.iter().any(|(_, held)| held.word == word && held.bits == bits);
        if bits.count_ones() >= BITS_MIN && !known {
            let has = groups.in_order().filter(|group| atom.is_within(&group.bits.words)).count();
            atoms.push((has as u32 * bits.count_ones().min(24), atom));
        }
    };
    for group in groups.in_order() {
        for word in &group.bits.words {
            for row in FIELDS {
                let slot = FlowKey::slot(row.field);
                let index = usize::from(word.index);
                if slot.word == index || slot.bits > 64 && slot.word + 1 == index {
                    let width = slot.bits.min(64);
                    offer(word.index, word.bits & (u64::MAX >> (64 - width)) << slot.shift);
                }
            }
        }
    }
    atoms.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut atoms: Vec<Atom> = atoms.into_iter().take(ATOMS_MAX).map(|(_, atom)| atom).collect();
    for atom in &mut atoms {
        for number in 0..GROUPS_MAX as u8 {
            let has = groups.get(number).is_some_and(|group| atom.is_within(&group.bits.words));
            atom.always &= !(u64::from(has) << number);
        }
    }
    atoms
}

/// Tables that are being filled: how far it is.
#[derive(Debug)]
struct Build {
    tables: Tables,
    group: u8,
    bucket: u32,
    /// Merges of buckets that the group at hand had had when its first bucket was read.
    merges: u32,
}

/// The filter of a classifier, if it pays.
#[derive(Debug, Default)]
pub(super) struct GroupFilter {
    current: Option<Tables>,
    next: Option<Box<Build>>,
    /// Entries that went, and changes of any kind, since the last tables were begun.
    gone: usize,
    changes: usize,
}

impl GroupFilter {
    pub(super) fn is_active(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn bytes(&self) -> usize {
        let next = self.next.as_ref().map(|build| &build.tables);
        self.current.iter().chain(next).map(|tables| tables.tables.len() * 8).sum()
    }

    /// The groups that can hold an entry for the key.
    #[inline(always)]
    pub(super) fn possible(&self, key: &FlowKey) -> u64 {
        self.current.as_ref().map_or(u64::MAX, |tables| tables.possible(key))
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Tables> {
        self.current.iter_mut().chain(self.next.as_mut().map(|build| &mut build.tables))
    }

    /// An entry with this mask and value is in a group now.
    pub(super) fn enter(&mut self, group: u8, own: &[MaskWord], value: impl Fn(usize) -> u64) {
        for tables in self.all() {
            tables.enter(group, own, &value);
        }
    }

    /// There is a new group.
    pub(super) fn open(&mut self, group: u8, bits: &Bits) {
        for tables in self.all() {
            tables.open(group, bits);
        }
    }

    /// An entry is gone.
    pub(super) fn leave(&mut self) {
        self.gone += 1;
    }

    /// Does a small part of what is to be done.
    pub(super) fn step(
        &mut self,
        groups: &TupleGroups,
        known: Known<'_>,
        entries: usize,
        secret: u64,
    ) {
        self.changes += 1;
        if let Some(build) = &mut self.next {
            if build.step(groups, known) {
                self.current = self.next.take().map(|build| build.tables);
            }
            return;
        }
        if groups.len() < GROUPS_AGAIN {
            self.current = None;
        }
        if groups.len() >= GROUPS_MIN && self.is_outdated(groups, entries) {
            let tables = Tables::new(groups, entries, secret);
            (self.gone, self.changes) = (0, 0);
            self.next = Some(Box::new(Build { tables, group: 0, bucket: 0, merges: 0 }));
        }
    }

    /// Has tables whatever it costs, unless there is nothing to filter: new ones when the groups
    /// changed, and after some more changes.
    pub(super) fn force(
        &mut self,
        groups: &TupleGroups,
        known: Known<'_>,
        entries: usize,
        secret: u64,
    ) {
        self.changes += 1;
        let current = self.current.as_ref().filter(|_| self.changes < CHANGES_FORCED);
        if groups.is_empty() {
            self.clear();
        } else if current.is_none_or(|tables| tables.version != groups.version) {
            let tables = Tables::new(groups, entries, secret);
            let mut build = Build { tables, group: 0, bucket: 0, merges: 0 };
            while !build.step(groups, known) {}
            (self.gone, self.changes, self.next) = (0, 0, None);
            self.current = Some(build.tables);
        }
    }

    /// Is a filter no more.
    pub(super) fn clear(&mut self) {
        (self.current, self.next) = (None, None);
    }

    fn is_outdated(&self, groups: &TupleGroups, entries: usize) -> bool {
        let Some(tables) = &self.current else { return true };
        let is_small = entries > 2 * tables.entries && tables.slots < SLOTS_MAX;
        let is_stale = tables.version != groups.version || self.gone > entries / 2;
        self.changes > CHANGES_MIN && (is_small || is_stale)
    }
}

impl Build {
    /// Reads one bucket, and says whether it was the last.
    fn step(&mut self, groups: &TupleGroups, known: Known<'_>) -> bool {
        while usize::from(self.group) < GROUPS_MAX {
            if let Some(group) = groups.get(self.group) {
                // A merge moves entries to a bucket that may have been read already.
                if self.merges != group.index.merges() {
                    self.bucket = 0;
                    self.merges = group.index.merges();
                }
                if self.bucket < group.index.buckets() {
                    self.read(group, known);
                    return false;
                }
            }
            self.group += 1;
            self.bucket = 0;
        }
        true
    }

    fn read(&mut self, group: &TupleGroup, known: Known<'_>) {
        for slot in group.index.slots_of(self.bucket) {
            if let Some(held) = known.masks.held(known.records.get(slot).mask()) {
                let value = |at| known.records.word(slot, at);
                self.tables.enter(self.group, held.mask.words(), value);
            }
        }
        self.bucket += 1;
    }
}
