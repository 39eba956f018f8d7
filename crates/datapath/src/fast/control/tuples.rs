//! The matches of the entries, by table and mask: one tuple for all entries that look at the same
//! bits in the same table.
//!
//! A tuple holds the values of its entries one behind the other, so that a non-strict command or a
//! check for overlap reads a row of numbers, and skips at once every tuple that cannot concern it.
//! The mask stands once, however many entries have it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use openflow::TableId;

use super::index::NONE;
use crate::fast::compiled_match::{CompiledMatch, Mask};
use crate::fast::mix_hasher::BuildMixHasher;
use crate::precedence::Precedence;
use crate::select::mix;

/// The entries of a table that have the same mask.
#[derive(Clone, Debug)]
pub(super) struct Tuple {
    pub(super) table: TableId,
    pub(super) mask: Arc<Mask>,
    /// The entries' numbers.
    pub(super) ids: Vec<u32>,
    /// For each of them, the values of the mask's words.
    values: Vec<u64>,
    /// Number of entries of each precedence.
    pub(super) precedences: BTreeMap<Precedence, u32>,
    /// Its place among the tuples of the table.
    at: usize,
}

impl Tuple {
    /// The values of the entry at a place.
    pub(super) fn value(&self, at: u32) -> &[u64] {
        let words = self.mask.words().len();
        let start = at as usize * words;
        &self.values[start..start + words]
    }

    /// The match of the entry at a place.
    pub(super) fn compiled(&self, at: u32) -> CompiledMatch {
        CompiledMatch::of_parts(Arc::clone(&self.mask), self.value(at))
    }

    /// Adds an entry; its place.
    pub(super) fn push(&mut self, number: u32, value: &[u64], precedence: Precedence) -> u32 {
        self.ids.push(number);
        self.values.extend_from_slice(value);
        *self.precedences.entry(precedence).or_default() += 1;
        (self.ids.len() - 1) as u32
    }

    /// Takes the entry at a place away; the number of the one that is at that place now.
    pub(super) fn take_out(&mut self, at: u32, precedence: Precedence) -> Option<u32> {
        let place = at as usize;
        self.ids.swap_remove(place);
        let words = self.mask.words().len();
        let last = self.values.len() - words;
        self.values.copy_within(last.., place * words);
        self.values.truncate(last);
        if let Some(count) = self.precedences.get_mut(&precedence) {
            *count -= 1;
            if *count == 0 {
                self.precedences.remove(&precedence);
            }
        }
        self.ids.get(place).copied()
    }
}

/// All tuples.
#[derive(Clone, Debug, Default)]
pub(super) struct Tuples {
    tuples: Vec<Option<Tuple>>,
    free: Vec<u32>,
    /// By table and address of the mask, which the tuple keeps alive.
    known: HashMap<(u8, usize), u32, BuildMixHasher>,
    of_table: Vec<Vec<u32>>,
}

impl Tuples {
    pub(super) fn new(tables: u8) -> Self {
        Self { of_table: vec![Vec::new(); usize::from(tables)], ..Self::default() }
    }

    /// The tuple of a number that an entry names.
    pub(super) fn get(&self, number: u32) -> Option<&Tuple> {
        self.tuples.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Tuple> {
        self.tuples.get_mut(number as usize)?.as_mut()
    }

    /// The tuples of a table.
    pub(super) fn of_table(&self, table: TableId) -> &[u32] {
        self.of_table.get(usize::from(table.0)).map_or(&[], Vec::as_slice)
    }

    /// The tuple of a table and a mask, if there is one.
    pub(super) fn find(&self, table: TableId, mask: &Arc<Mask>) -> Option<u32> {
        self.known.get(&(table.0, address(mask))).copied()
    }

    /// The tuple of a table and a mask.
    pub(super) fn of(&mut self, table: TableId, mask: &Arc<Mask>) -> u32 {
        if let Some(known) = self.find(table, mask) {
            return known;
        }
        let of_table = &mut self.of_table[usize::from(table.0)];
        let tuple = Tuple {
            table,
            mask: Arc::clone(mask),
            ids: Vec::new(),
            values: Vec::new(),
            precedences: BTreeMap::new(),
            at: of_table.len(),
        };
        let number = self.free.pop().unwrap_or(self.tuples.len() as u32);
        debug_assert_ne!(number, NONE, "there are fewer tuples than entries");
        of_table.push(number);
        self.known.insert((table.0, address(mask)), number);
        match self.tuples.get_mut(number as usize) {
            Some(place) => *place = Some(tuple),
            None => self.tuples.push(Some(tuple)),
        }
        number
    }

    /// Forgets a tuple that has no entries any more.
    pub(super) fn drop_empty(&mut self, number: u32) {
        let Some(place) = self.tuples.get_mut(number as usize) else { return };
        let Some(tuple) = place.take_if(|tuple| tuple.ids.is_empty()) else { return };
        self.known.remove(&(tuple.table.0, address(&tuple.mask)));
        self.free.push(number);
        let of_table = &mut self.of_table[usize::from(tuple.table.0)];
        of_table.swap_remove(tuple.at);
        if let Some(moved) = of_table.get(tuple.at).copied()
            && let Some(moved) = self.get_mut(moved)
        {
            moved.at = tuple.at;
        }
    }
}

fn address(mask: &Arc<Mask>) -> usize {
    Arc::as_ptr(mask) as usize
}

/// The hash of a match: its tuple and its values.
pub(super) fn hash(tuple: u32, value: &[u64]) -> u64 {
    value.iter().fold(mix(tuple.into()), |hash, word| mix(hash ^ word))
}

/// A mask that lies within a tuple's, ready to be compared with the tuple's values.
pub(super) struct Projection {
    /// Place among the tuple's words, bits, value.
    words: Vec<(usize, u64, u64)>,
}

impl Projection {
    /// `None` when the match looks at bits that the tuple's entries do not: it covers none.
    pub(super) fn of(compiled: &CompiledMatch, tuple: &Tuple) -> Option<Self> {
        if !compiled.mask().is_within(&tuple.mask) {
            return None;
        }
        let theirs = tuple.mask.words();
        let wanted = compiled.mask().words().iter().zip(compiled.value());
        let words = wanted.filter_map(|(word, value)| {
            let place = theirs.iter().position(|their| their.index == word.index)?;
            Some((place, word.bits, *value))
        });
        Some(Self { words: words.collect() })
    }

    /// The bits that both look at; the match covers nothing, but may overlap.
    pub(super) fn of_common(compiled: &CompiledMatch, tuple: &Tuple) -> Self {
        let theirs = tuple.mask.words();
        let wanted = compiled.mask().words().iter().zip(compiled.value());
        let words = wanted.filter_map(|(word, value)| {
            let place = theirs.iter().position(|their| their.index == word.index)?;
            let bits = word.bits & theirs[place].bits;
            (bits != 0).then_some((place, bits, value & bits))
        });
        Self { words: words.collect() }
    }

    /// Whether an entry with these values is selected.
    pub(super) fn takes(&self, value: &[u64]) -> bool {
        self.words.iter().all(|(place, bits, wanted)| value[*place] & bits == *wanted)
    }

    /// Whether every entry is selected.
    pub(super) fn takes_all(&self) -> bool {
        self.words.is_empty()
    }
}
