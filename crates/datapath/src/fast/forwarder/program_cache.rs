//! The program cache: programs by their program keys, so that most are compiled only once.
//!
//! Entries of equal instructions have equal programs, so that of a million entries that output to a
//! few ports only a few are compiled. It must be emptied with the programs.

use std::collections::HashMap;

use openflow::{PortNo, TableId};
use packet::Shape;

use super::program::ProgramId;
use crate::fast::mix_hasher::BuildMixHasher;

/// The key of a program: the summaries of matched entries that do anything, which of them
/// is a table-miss entry, the port, the shape, and the table where nothing was matched. That of a
/// walk that was recorded has all entries, those that resubmits and buckets led to among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramKey {
    words: Vec<u32>,
}

impl ProgramKey {
    pub(super) fn begin(&mut self, in_port: PortNo, shape: Shape) {
        self.words.clear();
        self.words.push(in_port.0);
        self.words.push(shape.index() as u32);
    }

    /// The key is that of a recorded walk.
    pub(super) fn recorded(&mut self) {
        self.words.push(RECORDED);
    }

    pub(super) fn push(&mut self, summary: u32) {
        self.words.push(summary);
    }

    /// The next summary is that of a table-miss entry: what it sends to the controller has another
    /// reason, which `NO_PACKET_IN` of the port concerns.
    pub(super) fn table_miss(&mut self) {
        self.words.push(TABLE_MISS);
    }

    pub(super) fn missed(&mut self, table: TableId) {
        // Summaries are numbered from one.
        self.words.push(0);
        self.words.push(table.0.into());
    }
}

/// The word before the summary of a table-miss entry, and its mark in [`one`].
const TABLE_MISS: u32 = u32::MAX;
const IS_MISS: u32 = 1 << 31;

/// The word before all that a recorded walk has matched.
const RECORDED: u32 = u32::MAX - 1;

/// Keys at most.
const KEYS_MAX: usize = 1 << 20;

/// Programs by what decides about them.
#[derive(Debug, Default)]
pub(super) struct ProgramCache {
    /// The usual case: one summary.
    ones: HashMap<(u64, u32), ProgramId, BuildMixHasher>,
    others: HashMap<Box<[u32]>, ProgramId, BuildMixHasher>,
}

impl ProgramCache {
    #[inline]
    pub(super) fn get(&self, program_key: &ProgramKey) -> Option<ProgramId> {
        let words = program_key.words.as_slice();
        match one(words) {
            Some(one) => self.ones.get(&one).copied(),
            None => self.others.get(words).copied(),
        }
    }

    pub(super) fn put(&mut self, program_key: &ProgramKey, program: ProgramId) {
        let words = program_key.words.as_slice();
        match one(words) {
            Some(one) => drop(self.ones.insert(one, program)),
            None => drop(self.others.insert(words.into(), program)),
        }
    }

    pub(super) fn clear(&mut self) {
        self.ones.clear();
        self.others.clear();
    }

    fn len(&self) -> usize {
        self.ones.len() + self.others.len()
    }

    /// Whether there are too many, so that all are to be forgotten, with the programs.
    pub(super) fn is_full(&self) -> bool {
        self.len() > KEYS_MAX
    }
}

/// The key of a single summary, table-miss or not; most packets have one, and a list is dear.
#[inline]
fn one(words: &[u32]) -> Option<(u64, u32)> {
    let (port, shape, summary) = match *words {
        [port, shape, summary] => (port, shape, summary),
        [port, shape, TABLE_MISS, summary] => (port, shape | IS_MISS, summary),
        _ => return None,
    };
    Some((u64::from(port) << 32 | u64::from(shape), summary))
}

#[cfg(test)]
mod tests {
    use super::{ProgramCache, ProgramKey};
    use crate::fast::forwarder::program::ProgramId;
    use openflow::{PortNo, TableId};
    use packet::Shape;

    fn key(parts: &[fn(&mut ProgramKey)]) -> ProgramKey {
        let mut key = ProgramKey::default();
        key.begin(PortNo(1), Shape::RARE);
        for part in parts {
            part(&mut key);
        }
        key
    }

    #[test]
    fn a_table_miss_entry_has_a_program_of_its_own() {
        let plain = key(&[|key| key.push(7)]);
        let miss = key(&[ProgramKey::table_miss, |key| key.push(7)]);
        let both = key(&[|key| key.push(7), ProgramKey::table_miss, |key| key.push(7)]);
        let none = key(&[|key| key.missed(TableId(7))]);
        let keys = [plain, miss, both, none];
        let mut cache = ProgramCache::default();
        for (index, key) in keys.iter().enumerate() {
            cache.put(key, ProgramId(index as u32));
        }
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(cache.get(key), Some(ProgramId(index as u32)));
        }
        assert_eq!(cache.len(), keys.len());
    }
}
