//! The flow key: every match field of one packet, and which of them the packet has.
//!
//! Slots are laid out at compile time from the rows of [`openflow::field`], so a new row gets its
//! place without a line here. The key must never know how a field is found in a packet.

use openflow::Field;
use openflow::Match;
use openflow::field::{ALL_FIELDS, FIELDS, Place};
use std::fmt;

const COUNT: usize = ALL_FIELDS.len();

/// Place of a field in [`FlowKey::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySlot {
    /// Index of the word; fields wider than 64 bits go on in the next word, higher bits there.
    pub word: usize,
    /// Position of the field's lowest bit in the word.
    pub shift: u32,
    /// Width in bits.
    pub bits: u32,
}

const PLAN: ([KeySlot; COUNT], usize) = plan();
const SLOTS: [KeySlot; COUNT] = PLAN.0;

/// 64-bit words of a key's values.
pub const WORDS: usize = PLAN.1;

/// Words of the registers, two in each.
pub(crate) const REGISTER_WORDS: usize = 8;

/// First fit in the order of the rows: no field of up to 64 bits lies across two words, wider ones
/// have two words of their own, and the registers have the last words, two in each, so that two or
/// four of them are one number.
const fn plan() -> ([KeySlot; COUNT], usize) {
    let mut slots = [KeySlot { word: 0, shift: 0, bits: 0 }; COUNT];
    let mut used = [0; 2 * COUNT];
    let mut words = 0;
    let mut index = 0;
    while index < COUNT {
        if let Place::Register(_) | Place::Registers(..) = ALL_FIELDS[index].place {
            index += 1;
            continue;
        }
        let bits = ALL_FIELDS[index].bits as u32;
        let mut word = 0;
        if bits > 64 {
            word = words;
            used[word] = 64;
            used[word + 1] = 64;
        } else {
            while used[word] + bits > 64 {
                word += 1;
            }
        }
        let wide = bits > 64;
        slots[index] = KeySlot { word, shift: if wide { 0 } else { used[word] }, bits };
        if !wide {
            used[word] += bits;
        }
        let end = word + 1 + wide as usize;
        words = if end > words { end } else { words };
        index += 1;
    }
    index = 0;
    while index < COUNT {
        let bits = ALL_FIELDS[index].bits as u32;
        // Of several as one, the last has the lowest bits.
        let lowest = match ALL_FIELDS[index].place {
            Place::Register(number) => Some(number),
            Place::Registers(first, count) => Some(first + count - 1),
            Place::Meta | Place::At(_) | Place::Parsed => None,
        };
        if let Some(number) = lowest {
            let (word, shift) = register_slot(number);
            slots[index] = KeySlot { word: words + word, shift, bits };
        }
        index += 1;
    }
    (slots, words + REGISTER_WORDS)
}

/// Place of a register among the words of registers: its word, and the position of its lowest bit.
/// Of four registers the first has the highest bits.
const fn register_slot(number: u8) -> (usize, u32) {
    ((number as usize / 2) ^ 1, 32 * (1 - number as u32 % 2))
}

/// The bits of [`FlowKey::present`]; several registers as one are there when the first is.
const BITS: [u64; COUNT] = {
    let mut bits = [0; COUNT];
    let mut index = 0;
    while index < COUNT {
        bits[index] = match ALL_FIELDS[index].place {
            Place::Registers(first, _) => 1 << (Field::Reg0 as u32 + first as u32),
            Place::Register(_) | Place::Meta | Place::At(_) | Place::Parsed => 1 << index,
        };
        index += 1;
    }
    bits
};

/// The presence of all registers, and of `conj_id`, which is zero with them.
const REGISTERS_PRESENT: u64 = {
    let mut present = 1 << Field::ConjId as u32;
    let mut index = 0;
    while index < COUNT {
        if let Place::Register(_) = ALL_FIELDS[index].place {
            present |= BITS[index];
        }
        index += 1;
    }
    present
};

/// The registers of the pipeline: no part of a packet, zero when it comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers([u64; REGISTER_WORDS]);

impl Registers {
    /// All of them zero.
    pub const ZERO: Self = Self([0; REGISTER_WORDS]);

    /// A register's value; zero of a number that no register has.
    #[must_use]
    pub fn get(&self, number: u8) -> u32 {
        let (word, shift) = register_slot(number);
        self.0.get(word).map_or(0, |bits| (bits >> shift) as u32)
    }

    /// The registers that are not zero, with their values.
    pub fn written(&self) -> impl Iterator<Item = (Field, u32)> {
        let is_zero = *self == Self::ZERO;
        let rows = FIELDS.iter().filter(move |_| !is_zero);
        let values = rows.filter_map(|row| match row.place {
            Place::Register(number) => Some((row.field, self.get(number))),
            Place::Meta | Place::Registers(..) | Place::At(_) | Place::Parsed => None,
        });
        values.filter(|(_, value)| *value != 0)
    }

    /// Writes the bits of a mask; `values` has no others.
    #[inline]
    pub fn write(&mut self, values: &Self, mask: &Self) {
        let bits = values.0.iter().zip(&mask.0);
        for (word, (value, mask)) in self.0.iter_mut().zip(bits) {
            *word = *word & !mask | value;
        }
    }

    /// Writes a register.
    pub fn set(&mut self, number: u8, value: u32) {
        let (word, shift) = register_slot(number);
        if let Some(bits) = self.0.get_mut(word) {
            *bits = *bits & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
        }
    }
}

/// The match fields of one packet.
///
/// Two keys are equal when they have the same fields with the same values. The absence of a VLAN
/// tag is the value 0 of `VLAN_VID` (`OFPVID_NONE`) and also the absence of the field.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FlowKey {
    present: u64,
    words: [u64; WORDS],
}

impl Default for FlowKey {
    fn default() -> Self {
        Self { present: 0, words: [0; WORDS] }
    }
}

impl FlowKey {
    /// The field's value, right-aligned; zero when the packet does not have it.
    #[inline]
    #[must_use]
    pub fn get(&self, field: Field) -> u128 {
        let slot = SLOTS[field as usize];
        let low = u128::from(self.words[slot.word] >> slot.shift);
        let value =
            if slot.bits > 64 { low | u128::from(self.words[slot.word + 1]) << 64 } else { low };
        value & field.full_mask()
    }

    /// Writes a field, cut to its width; the packet then has it. `VLAN_VID` = 0 takes it away.
    #[inline]
    pub fn set(&mut self, field: Field, value: u128) {
        let value = value & field.full_mask();
        let slot = SLOTS[field as usize];
        if slot.bits > 64 {
            self.words[slot.word] = value as u64;
            self.words[slot.word + 1] = (value >> 64) as u64;
        } else {
            let mask = field.full_mask() as u64;
            let word = &mut self.words[slot.word];
            *word = *word & !(mask << slot.shift) | (value as u64) << slot.shift;
        }
        let bit = BITS[field as usize];
        if matches!(field, Field::VlanVid) && value == 0 {
            self.present &= !bit;
        } else {
            self.present |= bit;
        }
    }

    /// Writes all registers, which every packet has. It has `conj_id` too, at zero so far.
    #[inline]
    pub fn set_registers(&mut self, registers: &Registers) {
        if let Some(words) = self.words.last_chunk_mut::<REGISTER_WORDS>() {
            *words = registers.0;
        }
        self.present |= REGISTERS_PRESENT;
    }

    /// Takes a field away.
    pub fn unset(&mut self, field: Field) {
        self.set(field, 0);
        self.present &= !BITS[field as usize];
    }

    /// Whether the packet has the field.
    #[inline]
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        self.present & BITS[field as usize] != 0
    }

    /// Whether the packet matches. A field that the packet does not have never matches,
    /// except `VLAN_VID`, which counts as 0 there: `vlan_vid=0` matches untagged packets.
    #[must_use]
    pub fn matches(&self, wanted: &Match) -> bool {
        wanted.fields().iter().all(|held| {
            (self.has(held.field) || matches!(held.field, Field::VlanVid))
                && self.get(held.field) & held.mask == held.value
        })
    }

    /// The values, packed as [`FlowKey::slot`] says; absent fields are zero.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The fields that the packet has: bit `field as u32`.
    #[inline]
    #[must_use]
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Place of a field in [`FlowKey::words`].
    #[must_use]
    pub const fn slot(field: Field) -> KeySlot {
        SLOTS[field as usize]
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = FIELDS.iter().filter(|row| self.has(row.field));
        f.write_str("FlowKey ")?;
        f.debug_map()
            .entries(held.map(|row| (row.name, format!("{:#x}", self.get(row.field)))))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{FlowKey, WORDS};
    use openflow::field::FIELDS;
    use openflow::{Field, Match};

    #[test]
    fn every_field_has_bits_of_its_own() {
        let mut taken = [0_u64; WORDS];
        for row in FIELDS {
            let mut key = FlowKey::default();
            key.set(row.field, u128::MAX);
            assert_eq!(key.get(row.field), row.field.full_mask(), "{}", row.name);
            for (mine, others) in key.words().iter().zip(&mut taken) {
                assert_eq!(*mine & *others, 0, "{} lies on another field", row.name);
                *others |= *mine;
            }
            let set: u32 = key.words().iter().map(|word| word.count_ones()).sum();
            assert_eq!(set, u32::from(row.bits), "{}", row.name);
            key.unset(row.field);
            assert_eq!(key, FlowKey::default(), "{}", row.name);
        }
    }

    #[test]
    fn absent_fields_are_not_met_but_an_absent_tag_is_zero() {
        let untagged = FlowKey::default();
        let mut tagged = FlowKey::default();
        tagged.set(Field::VlanVid, 0x1064);
        let none = Match::any().with(Field::VlanVid, 0);
        let any_tag = Match::any().with_masked(Field::VlanVid, 0x1000, 0x1000);
        assert!(untagged.matches(&none) && !untagged.matches(&any_tag));
        assert!(!tagged.matches(&none) && tagged.matches(&any_tag));
        assert!(!untagged.matches(&Match::any().with(Field::VlanPcp, 0)));
        assert!(!untagged.matches(&Match::any().with(Field::TcpSrc, 0)));
        assert!(untagged.matches(&Match::any()));
    }

    #[test]
    fn debug_names_the_fields() {
        let mut key = FlowKey::default();
        key.set(Field::EthType, 0x0800);
        assert_eq!(format!("{key:?}"), "FlowKey {\"eth_type\": \"0x800\"}");
    }
}
