//! The compiled form of a match: words that a flow key is compared with (Open vSwitch: minimatch).
//!
//! A [`CompiledMatch`] says the same as an [`openflow::Match`] in the layout of [`FlowKey::words`],
//! so that a comparison is a few AND and XOR instead of a walk over fields. The mask is shared by
//! all matches that look at the same bits: a million entries have a handful of masks. It must never
//! mean anything else than [`FlowKey::matches`] does.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use openflow::{Field, Match, MatchField};
use packet::FlowKey;

/// The bits of one word of a flow key that a match looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaskWord {
    /// Index in [`FlowKey::words`].
    pub index: u8,
    /// The bits; never zero.
    pub bits: u64,
}

/// The bits of a flow key that a match looks at, and the fields that the packet must have.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mask {
    /// Of the words: masks are looked up for every change of a flow table.
    digest: u64,
    fields: Box<[(Field, u128)]>,
    words: Box<[MaskWord]>,
    present: u64,
}

impl Hash for Mask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Mask {
    fn of(matching: &Match) -> Self {
        let mut all = [0_u64; packet::WORDS];
        let mut present = 0;
        for held in matching.fields() {
            let (word, low, high) = placed(held.field, held.mask);
            all[word] |= low;
            if let Some(next) = all.get_mut(word + 1) {
                *next |= high;
            }
            // An absent tag is the value zero of the field and matches `vlan_vid=0`.
            if !matches!(held.field, Field::VlanVid) {
                present |= 1 << held.field as u32;
            }
        }
        let words = all.iter().zip(0_u8..).filter(|(bits, _)| **bits != 0);
        let digest = words.clone().fold(present, |digest: u64, (bits, index)| {
            (digest ^ bits ^ u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        Self {
            digest,
            fields: matching.fields().iter().map(|held| (held.field, held.mask)).collect(),
            words: words.map(|(bits, index)| MaskWord { index, bits: *bits }).collect(),
            present,
        }
    }

    /// Whether this is the match's mask.
    fn is_of(&self, matching: &Match) -> bool {
        let fields = matching.fields();
        let same = |(own, held): (&(Field, u128), &MatchField)| *own == (held.field, held.mask);
        fields.len() == self.fields.len() && self.fields.iter().zip(fields).all(same)
    }

    /// The fields with their masks, in the order of [`Field`].
    #[must_use]
    pub fn fields(&self) -> &[(Field, u128)] {
        &self.fields
    }

    /// The words that are looked at, by rising index.
    #[must_use]
    pub fn words(&self) -> &[MaskWord] {
        &self.words
    }

    /// The fields that the packet must have, as in [`FlowKey::present`]. `VLAN_VID` is never among
    /// them: its absence is a value.
    #[must_use]
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Whether it looks at `conj_id`.
    pub(crate) fn has_conj_id(&self) -> bool {
        has_conj_id(self.present)
    }

    /// The match that has this mask, and values for its words; bits outside of it must be zero.
    pub(crate) fn matching(&self, value: &[u64]) -> Match {
        let mut all = [0_u64; packet::WORDS];
        for (word, value) in self.words.iter().zip(value) {
            all[usize::from(word.index)] = *value;
        }
        let mut matching = Match::any();
        for (field, mask) in &self.fields {
            let slot = FlowKey::slot(*field);
            let low = u128::from(all[slot.word] >> slot.shift);
            let high = if slot.bits > 64 { u128::from(all[slot.word + 1]) << 64 } else { 0 };
            matching.set(*field, (low | high) & mask, *mask);
        }
        matching
    }

    /// Whether every bit of this mask is also in the other.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let mut theirs = other.words.iter();
        self.words.iter().all(|own| {
            let same = theirs.find(|word| word.index >= own.index);
            same.is_some_and(|word| word.index == own.index && own.bits & !word.bits == 0)
        })
    }
}

/// Whether `conj_id` is among the fields that a packet must have.
pub(super) fn has_conj_id(present: u64) -> bool {
    present & 1 << Field::ConjId as u32 != 0
}

/// A value of up to 128 bits where the key holds the field: the word, and what lies there and in
/// the next.
fn placed(field: Field, value: u128) -> (usize, u64, u64) {
    let slot = FlowKey::slot(field);
    if slot.bits > 64 {
        (slot.word, value as u64, (value >> 64) as u64)
    } else {
        (slot.word, (value as u64) << slot.shift, 0)
    }
}

/// Keeps one copy of every mask in use.
#[derive(Debug, Default)]
pub struct Masks {
    known: HashSet<Arc<Mask>>,
    /// The last one, as most entries come in rows that look at the same bits.
    last: Option<Arc<Mask>>,
}

impl Masks {
    /// The mask of a match, shared with the other matches that have it.
    pub fn of(&mut self, matching: &Match) -> Arc<Mask> {
        if let Some(last) = self.last.as_ref().filter(|last| last.is_of(matching)) {
            return Arc::clone(last);
        }
        let mask = Mask::of(matching);
        let mask = if let Some(known) = self.known.get(&mask) {
            Arc::clone(known)
        } else {
            self.sweep();
            let mask = Arc::new(mask);
            self.known.insert(Arc::clone(&mask));
            mask
        };
        self.last = Some(Arc::clone(&mask));
        mask
    }

    /// Forgets masks that no match has any more, at the moments when the set would grow.
    fn sweep(&mut self) {
        if self.known.len() == self.known.capacity() {
            self.known.retain(|mask| Arc::strong_count(mask) > 1);
        }
    }
}

/// A match: the mask, and the value of each word that the mask looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompiledMatch {
    mask: Arc<Mask>,
    /// One word for each of the mask's, in the same order.
    value: Box<[u64]>,
}

impl CompiledMatch {
    /// The compiled form of a match.
    pub fn of(matching: &Match, masks: &mut Masks) -> Self {
        let mask = masks.of(matching);
        let mut all = [0_u64; packet::WORDS];
        for held in matching.fields() {
            let (word, low, high) = placed(held.field, held.value);
            all[word] |= low;
            if let Some(next) = all.get_mut(word + 1) {
                *next |= high;
            }
        }
        let value = mask.words.iter().map(|word| all[usize::from(word.index)]).collect();
        Self { mask, value }
    }

    /// From a mask and values for its words; bits outside of the mask must be zero.
    pub(crate) fn of_parts(mask: Arc<Mask>, value: &[u64]) -> Self {
        debug_assert_eq!(mask.words.len(), value.len(), "a word for each of the mask's");
        Self { mask, value: value.into() }
    }

    /// The match that this was compiled from.
    #[must_use]
    pub fn matching(&self) -> Match {
        self.mask.matching(&self.value)
    }

    /// The bits that it looks at.
    #[must_use]
    pub fn mask(&self) -> &Arc<Mask> {
        &self.mask
    }

    /// The values of the mask's words, in their order.
    #[must_use]
    pub fn value(&self) -> &[u64] {
        &self.value
    }

    /// Whether it looks at `conj_id` and a packet matches it where that is zero.
    #[inline]
    pub(super) fn takes_conj_id_zero(&self) -> bool {
        self.mask.has_conj_id() && self.has_conj_id_zero()
    }

    #[cold]
    fn has_conj_id_zero(&self) -> bool {
        self.matching().get(Field::ConjId).is_none_or(|id| id.value == 0)
    }

    /// Whether every packet matches.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.value.is_empty()
    }

    /// Whether a packet matches; the same as [`FlowKey::matches`].
    #[inline]
    #[must_use]
    pub fn matches(&self, key: &FlowKey) -> bool {
        let differs = self.mask.words.iter().zip(&self.value).fold(0, |differs, (word, value)| {
            differs | (key.words()[usize::from(word.index)] & word.bits) ^ value
        });
        differs | self.mask.present & !key.present() == 0
    }

    /// Whether every packet that matches `other` matches this; the same as [`Match::covers`].
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let mut theirs = other.mask.words.iter().zip(&other.value);
        self.mask.words.iter().zip(&self.value).all(|(own, value)| {
            let same = theirs.find(|(word, _)| word.index >= own.index);
            same.is_some_and(|(word, other)| {
                word.index == own.index && own.bits & !word.bits == 0 && other & own.bits == *value
            })
        })
    }

    /// Whether a packet can match both; the same as [`Match::overlaps`].
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let mut theirs = other.mask.words.iter().zip(&other.value).peekable();
        self.mask.words.iter().zip(&self.value).all(|(own, value)| {
            while theirs.next_if(|(word, _)| word.index < own.index).is_some() {}
            let same = theirs.next_if(|(word, _)| word.index == own.index);
            same.is_none_or(|(word, other)| (value ^ other) & own.bits & word.bits == 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CompiledMatch, Masks};
    use openflow::field::FIELDS;
    use openflow::{Field, Match};
    use packet::FlowKey;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
    use std::sync::Arc;

    /// Few values and few masks, so that equality and overlap come about.
    fn matches() -> impl Strategy<Value = Match> {
        let field = (0..FIELDS.len(), 0..4_u128, prop::sample::select(vec![u128::MAX, 1, 2, 0]));
        prop::collection::vec(field, 0..6).prop_map(|fields| {
            fields.into_iter().fold(Match::any(), |matching, (field, value, mask)| {
                matching.with_masked(FIELDS[field].field, value | value << 126, mask)
            })
        })
    }

    fn keys() -> impl Strategy<Value = FlowKey> {
        prop::collection::vec((0..4_u128, any::<bool>()), FIELDS.len()).prop_map(|values| {
            let mut key = FlowKey::default();
            for (row, (value, has)) in FIELDS.iter().zip(values) {
                if has {
                    key.set(row.field, value | value << 126);
                }
            }
            key
        })
    }

    proptest! {
        #[test]
        fn says_what_the_match_says(one in matches(), other in matches(), key in keys()) {
            let mut masks = Masks::default();
            let a = CompiledMatch::of(&one, &mut masks);
            let b = CompiledMatch::of(&other, &mut masks);
            prop_assert_eq!(a.matching(), one.clone());
            prop_assert_eq!(a.matches(&key), key.matches(&one));
            prop_assert_eq!(a.covers(&b), one.covers(&other));
            prop_assert_eq!(a.overlaps(&b), one.overlaps(&other));
            prop_assert_eq!(a == b, one == other);
            let mut narrowed = one.clone();
            for held in other.fields() {
                narrowed = narrowed.with_masked(held.field, held.value, held.mask);
            }
            let c = CompiledMatch::of(&narrowed, &mut masks);
            prop_assert_eq!(a.covers(&c), one.covers(&narrowed));
        }
    }

    #[test]
    fn masks_are_shared_and_forgotten() {
        let mut masks = Masks::default();
        let host = |value| Match::any().with(Field::Ipv4Dst, value);
        let one = CompiledMatch::of(&host(1), &mut masks);
        let two = CompiledMatch::of(&host(2), &mut masks);
        assert!(Arc::ptr_eq(one.mask(), two.mask()) && one != two);
        for bits in 1..1000_u32 {
            let masked = Match::any().with_masked(Field::Ipv4Dst, 0, bits.into());
            drop(CompiledMatch::of(&masked, &mut masks));
        }
        assert!(masks.known.len() < 20, "{}", masks.known.len());
    }
}
