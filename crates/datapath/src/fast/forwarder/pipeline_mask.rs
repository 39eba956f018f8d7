//! The pipeline mask: the bytes of a frame that some entry looks at, one mask for each shape.
//!
//! The mask is made from the entries alone. No packet widens it, so none can make many flows of
//! one, nor one of many. Bits that no entry looks at do not split flows.

use openflow::Field;
use openflow::field::FIELDS;
use packet::{FlowKey, Shape, WORDS};

use super::super::classifier::UnwildcardedBits;
use super::super::sys::ShapeMasks;

/// The bits that the entries of all tables look at, and their places in frames.
#[derive(Debug)]
pub(super) struct PipelineMask {
    /// The bits that the entries and select groups look at.
    unwildcarded: UnwildcardedBits,
    /// For each shape, the bytes that can make a difference.
    pub(super) masks: ShapeMasks,
    /// The shapes of frames of which bytes beyond those of the masks make a difference: bit
    /// `shape.index()`.
    long: u64,
    /// Whether no byte of a frame makes a difference.
    pub(super) in_port_only: bool,
    /// The words of a key that make a difference, with their bits.
    words: Vec<(usize, u64)>,
    /// Whether neighbour discovery or the like has to be looked at, which is only rare shapes'.
    present: u64,
}

impl PipelineMask {
    /// Nothing makes a difference.
    pub(super) fn new() -> Self {
        Self {
            unwildcarded: UnwildcardedBits::default(),
            masks: ShapeMasks::default(),
            long: 0,
            in_port_only: true,
            words: Vec::new(),
            present: 0,
        }
    }

    /// Takes over what is looked at; whether that is another thing than before.
    pub(super) fn set(
        &mut self,
        mut unwildcarded: UnwildcardedBits,
        also: impl IntoIterator<Item = Field>,
    ) -> bool {
        for field in also {
            add_field(&mut unwildcarded, field);
        }
        // What the packet itself does not show is the same for all packets of a port.
        for row in FIELDS.iter().filter(|row| row.place.is_beside_packet()) {
            remove_field(&mut unwildcarded, row.field);
        }
        if unwildcarded == self.unwildcarded {
            return false;
        }
        self.unwildcarded = unwildcarded;
        self.rebuild();
        true
    }

    fn rebuild(&mut self) {
        const { assert!(Shape::COUNT <= 64) };
        let mut masks = [[0_u8; 64]; Shape::COUNT];
        self.long = 0;
        for (index, mask) in masks.iter_mut().enumerate() {
            let Some(shape) = Shape::from_index(index) else { continue };
            for row in FIELDS {
                shape.mask_of(
                    row.field,
                    bits(&self.unwildcarded, row.field),
                    |at, bits| match mask.get_mut(at) {
                        Some(byte) => *byte |= bits,
                        None => self.long |= 1 << index,
                    },
                );
            }
        }
        self.masks = ShapeMasks(masks);
        let words = self.unwildcarded.words.iter().enumerate().filter(|(_, bits)| **bits != 0);
        self.words = words.map(|(index, bits)| (index, *bits)).collect();
        // An entry that looks at the value of a field looks at its presence.
        self.present = FIELDS
            .iter()
            .filter(|row| bits(&self.unwildcarded, row.field) != 0)
            .fold(self.unwildcarded.present, |present, row| present | 1 << row.field as u32);
        self.in_port_only = self.words.is_empty() && self.present == 0;
    }

    /// Makes rare of the shapes of frames those whose mask has no room for all that makes a
    /// difference: their packets are known by their keys.
    pub(super) fn hide_long(&self, shapes: &mut [Shape]) {
        if self.long == 0 {
            return;
        }
        for shape in shapes {
            if self.long >> shape.index() & 1 != 0 {
                *shape = Shape::RARE;
            }
        }
    }

    /// Whether a field makes a difference.
    pub(super) fn has(&self, field: Field) -> bool {
        bits(&self.unwildcarded, field) != 0
    }

    /// Whether some of these bits of a field make a difference.
    pub(super) fn has_some(&self, field: Field, of: u128) -> bool {
        bits(&self.unwildcarded, field) & of != 0
    }

    /// Whether every one of these bits of a field makes a difference.
    pub(super) fn has_bits(&self, field: Field, wanted: u128) -> bool {
        bits(&self.unwildcarded, field) & wanted == wanted
    }

    /// The words of a key that make a difference; the first says which fields there are.
    pub(super) fn of_key<'a>(&self, key: &FlowKey, out: &'a mut [u64; WORDS + 1]) -> &'a [u64] {
        out[0] = key.present() & self.present;
        for (place, (index, bits)) in out[1..].iter_mut().zip(&self.words) {
            *place = key.words()[*index] & bits;
        }
        &out[..=self.words.len()]
    }
}

/// The bits of a field that are looked at.
fn bits(unwildcarded: &UnwildcardedBits, field: Field) -> u128 {
    let slot = FlowKey::slot(field);
    let low = u128::from(unwildcarded.words[slot.word] >> slot.shift);
    let high = if slot.bits > 64 { u128::from(unwildcarded.words[slot.word + 1]) << 64 } else { 0 };
    (low | high) & field.full_mask()
}

fn add_field(unwildcarded: &mut UnwildcardedBits, field: Field) {
    let mut key = FlowKey::default();
    key.set(field, u128::MAX);
    for (word, bits) in unwildcarded.words.iter_mut().zip(key.words()) {
        *word |= bits;
    }
    unwildcarded.present |= 1 << field as u32;
}

fn remove_field(unwildcarded: &mut UnwildcardedBits, field: Field) {
    let mut key = FlowKey::default();
    key.set(field, u128::MAX);
    for (word, bits) in unwildcarded.words.iter_mut().zip(key.words()) {
        *word &= !bits;
    }
    unwildcarded.present &= !(1 << field as u32);
}
