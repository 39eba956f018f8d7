//! The masks of a classifier's entries: each has a number, a form for fast comparison, and the
//! groups where its entries may lie. Their union says which bits of a key matter at all.
//!
//! It must hold exactly the masks of the entries that are there: a bit is un-wildcarded while an
//! entry looks at it, not longer.

use std::collections::HashMap;
use std::sync::Arc;

use packet::{FlowKey, WORDS};

use super::group::{Bits, TupleGroups};
use super::records::{NEAR, RecordLine, Records};
use super::relax::{RELAXATIONS, relax};
use crate::fast::compiled_match::{CompiledMatch, Mask};

/// The bits of a flow key, and the presence of fields, that decide what a lookup answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwildcardedBits {
    /// As [`FlowKey::words`].
    pub words: [u64; WORDS],
    /// As [`FlowKey::present`].
    pub present: u64,
}

impl UnwildcardedBits {
    /// Adds what a mask looks at.
    pub fn add(&mut self, mask: &Mask) {
        self.present |= mask.present();
        for word in mask.words() {
            self.words[usize::from(word.index)] |= word.bits;
        }
    }
}

/// A mask of up to [`NEAR`] words in one cache line. Three words or six are compared whatever the
/// mask has, which is cheaper than a loop whose length a branch must guess.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Compare {
    present: u64,
    index: [u8; NEAR],
    /// Words of the mask, also those that are not here.
    len: u8,
    bits: [u64; NEAR],
}

impl Compare {
    fn of(mask: &Mask) -> Self {
        let mut compare = Self { present: mask.present(), ..Self::default() };
        compare.len = mask.words().len() as u8;
        for (at, word) in mask.words().iter().take(NEAR).enumerate() {
            compare.index[at] = word.index;
            compare.bits[at] = word.bits;
        }
        compare
    }

    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    /// Zero when the key matches the record's first `N` words. A mask that has less of them looks
    /// at nothing in the others, and the record holds zero there.
    #[inline(always)]
    pub(super) fn differs_in<const N: usize>(&self, key: &FlowKey, near: &[u64; NEAR]) -> u64 {
        (0..N.min(NEAR)).fold(self.present & !key.present(), |differs, at| {
            let word = key.words()[usize::from(self.index[at])];
            differs | (word & self.bits[at]) ^ near[at]
        })
    }
}

/// One mask that some entry has.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) mask: Arc<Mask>,
    /// Entries that have it.
    entries: u32,
    /// The part of it that each level keeps.
    pub(super) levels: [Option<Bits>; RELAXATIONS.len()],
    /// The groups where its entries may lie.
    pub(super) groups: MaskGroups,
}

/// The groups where entries of a mask may lie.
#[derive(Debug, Default)]
pub(super) struct MaskGroups {
    /// The state of the groups that the rest was made for.
    pub(super) version: u64,
    /// The group of the mask itself.
    pub(super) own: Option<u8>,
    /// The groups of the levels.
    pub(super) levels: [Option<u8>; RELAXATIONS.len()],
    /// All groups whose bits are within the mask, those above first, then by falling size of their
    /// masks.
    pub(super) all: Vec<u8>,
}

impl Held {
    fn new(mask: &Arc<Mask>) -> Self {
        let levels = RELAXATIONS.map(|level| relax(mask, level));
        Self { mask: Arc::clone(mask), entries: 0, levels, groups: MaskGroups::default() }
    }

    /// The mask as bits of a group.
    pub(super) fn bits(&self) -> Bits {
        Bits { words: self.mask.words().into(), present: self.mask.present() }
    }

    /// Brings the groups up to date.
    pub(super) fn refresh(&mut self, groups: &TupleGroups) {
        if self.groups.version == groups.version {
            return;
        }
        let own = self.bits();
        let levels =
            std::array::from_fn(|at| self.levels[at].as_ref().and_then(|bits| groups.find(bits)));
        let may_hold =
            |number: &u8| groups.get(*number).is_some_and(|group| group.bits.is_within(&own.words));
        let mut all: Vec<u8> = groups.order.iter().copied().filter(may_hold).collect();
        let own = groups.find(&own);
        let bits = |number: u8| groups.get(number).map_or(0, |group| group.bits.count());
        all.sort_by_key(|number| {
            let is_level = Some(*number) == own || levels.contains(&Some(*number));
            (!is_level, std::cmp::Reverse(bits(*number)))
        });
        self.groups = MaskGroups { version: groups.version, own, levels, all };
    }
}

const RECENT: usize = 64;

/// The masks in use.
#[derive(Debug)]
pub(super) struct MaskTable {
    compares: Vec<Compare>,
    held: Vec<Option<Held>>,
    free: Vec<u32>,
    numbers: HashMap<Arc<Mask>, u32>,
    /// Numbers of masks by their address: most matches come with a mask that was just here.
    recent: [u32; RECENT],
    unwildcarded: UnwildcardedBits,
    unwildcarded_version: u64,
    /// For each bit of the key and each field's presence, the masks that look at it.
    users: Box<[[u32; 64]; WORDS + 1]>,
}

impl Default for MaskTable {
    fn default() -> Self {
        Self {
            compares: Vec::new(),
            held: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            recent: [0; RECENT],
            unwildcarded: UnwildcardedBits::default(),
            unwildcarded_version: 0,
            users: Box::new([[0; 64]; WORDS + 1]),
        }
    }
}

impl MaskTable {
    /// Number of different masks.
    pub(super) fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }

    pub(super) fn unwildcarded(&self) -> &UnwildcardedBits {
        &self.unwildcarded
    }

    pub(super) fn unwildcarded_version(&self) -> u64 {
        self.unwildcarded_version
    }

    pub(super) fn bytes(&self) -> usize {
        let each = size_of::<Compare>() + size_of::<Option<Held>>() + 2 * size_of::<usize>();
        self.held.capacity() * each + size_of_val(&*self.users)
    }

    fn recent_slot(mask: &Arc<Mask>) -> usize {
        Arc::as_ptr(mask) as usize / 64 % RECENT
    }

    /// The mask's number, if an entry has it.
    #[inline]
    pub(super) fn find(&mut self, mask: &Arc<Mask>) -> Option<u32> {
        let slot = Self::recent_slot(mask);
        let number = self.recent[slot];
        if let Some(Some(held)) = self.held.get(number as usize)
            && Arc::ptr_eq(&held.mask, mask)
        {
            return Some(number);
        }
        let number = *self.numbers.get(mask)?;
        self.recent[slot] = number;
        Some(number)
    }

    /// The mask's number; one more entry has it.
    pub(super) fn enter(&mut self, mask: &Arc<Mask>) -> u32 {
        let number = self.find(mask).unwrap_or_else(|| self.add(mask));
        if let Some(held) = &mut self.held[number as usize] {
            held.entries += 1;
        }
        number
    }

    /// One entry less has the mask.
    pub(super) fn leave(&mut self, number: u32) {
        let Some(held) = &mut self.held[number as usize] else { return };
        held.entries -= 1;
        if held.entries == 0 {
            let mask = Arc::clone(&held.mask);
            self.held[number as usize] = None;
            self.numbers.remove(&mask);
            self.free.push(number);
            self.count(&mask, false);
        }
    }

    fn add(&mut self, mask: &Arc<Mask>) -> u32 {
        let held = Some(Held::new(mask));
        let compare = Compare::of(mask);
        let number = match self.free.pop() {
            Some(number) => {
                self.held[number as usize] = held;
                self.compares[number as usize] = compare;
                number
            }
            None => {
                self.held.push(held);
                self.compares.push(compare);
                self.held.len() as u32 - 1
            }
        };
        self.numbers.insert(Arc::clone(mask), number);
        self.recent[Self::recent_slot(mask)] = number;
        self.count(mask, true);
        number
    }

    /// Counts a mask's bits in or out, and keeps their union.
    fn count(&mut self, mask: &Mask, comes: bool) {
        let before = self.unwildcarded.clone();
        for word in mask.words() {
            let at = usize::from(word.index);
            count_bits(&mut self.users[at], word.bits, comes, &mut self.unwildcarded.words[at]);
        }
        count_bits(&mut self.users[WORDS], mask.present(), comes, &mut self.unwildcarded.present);
        if before != self.unwildcarded {
            self.unwildcarded_version += 1;
        }
    }

    pub(super) fn held(&self, number: u32) -> Option<&Held> {
        self.held.get(number as usize)?.as_ref()
    }

    pub(super) fn held_mut(&mut self, number: u32) -> Option<&mut Held> {
        self.held.get_mut(number as usize)?.as_mut()
    }

    /// Words of the values of entries with the mask.
    pub(super) fn words(&self, number: u32) -> usize {
        self.held(number).map_or(0, |held| held.mask.words().len())
    }

    /// A mask's form for comparison.
    #[inline(always)]
    pub(super) fn compare(&self, number: u32) -> &Compare {
        &self.compares[number as usize]
    }

    /// Whether a key matches a record.
    #[inline(always)]
    pub(super) fn matches(
        &self,
        key: &FlowKey,
        line: &RecordLine,
        slot: u32,
        records: &Records,
    ) -> bool {
        let compare = &self.compares[line.mask() as usize];
        match compare.len() {
            0..=3 => compare.differs_in::<3>(key, line.near()) == 0,
            4..=NEAR => compare.differs_in::<NEAR>(key, line.near()) == 0,
            _ => {
                compare.differs_in::<NEAR>(key, line.near()) == 0
                    && self.meets_far(key, slot, records)
            }
        }
    }

    /// The words of a wide mask that are not near.
    #[cold]
    fn meets_far(&self, key: &FlowKey, slot: u32, records: &Records) -> bool {
        let Some(held) = self.held(records.get(slot).mask()) else { return false };
        held.mask.words().iter().enumerate().skip(NEAR).all(|(at, word)| {
            key.words()[usize::from(word.index)] & word.bits == records.word(slot, at)
        })
    }

    /// Whether a record has the mask and the value of a match.
    pub(super) fn is_same(
        &self,
        records: &Records,
        slot: u32,
        number: u32,
        compiled: &CompiledMatch,
    ) -> bool {
        let same = |(at, value): (usize, &u64)| records.word(slot, at) == *value;
        records.get(slot).mask() == number && compiled.value().iter().enumerate().all(same)
    }
}

fn count_bits(users: &mut [u32; 64], bits: u64, comes: bool, unwildcarded: &mut u64) {
    let mut rest = bits;
    while rest != 0 {
        let users = &mut users[rest.trailing_zeros() as usize];
        *users = if comes { *users + 1 } else { *users - 1 };
        let bit = rest & rest.wrapping_neg();
        *unwildcarded = if *users == 0 { *unwildcarded & !bit } else { *unwildcarded | bit };
        rest &= rest - 1;
    }
}
