//! The program cache: programs by their program keys, so that most are compiled only once.
//!
//! Entries of equal instructions have equal programs, so that of a million entries that output to a
//! few ports only a few are compiled. It must be emptied with the programs.

use std::collections::HashMap;

use openflow::{PortNo, TableId};
use packet::Shape;

use super::program::ProgramId;
use crate::fast::mix_hasher::BuildMixHasher;

/// What decides about a program: the summaries of matched entries that do anything, which of them
/// is a table-miss entry, the port, the shape, and the table where nothing was matched.
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

    pub(super) fn push(&mut self, summary: u32) {
        self.words.push(summary);
    }

    /// The next summary is that of a table-miss entry: what it sends to the controller has another
    /// reason, which `NO_PACKET_IN` of the port concerns.
    pub(super) fn table_miss(&mut self) {
        self.words.push(u32::MAX);
    }

    pub(super) fn missed(&mut self, table: TableId) {
        // Kinds are numbered from one.
        self.words.push(0);
        self.words.push(table.0.into());
    }
}

/// Programs by what decides about them.
#[derive(Debug, Default)]
pub(super) struct ProgramCache {
    /// The usual case: one kind.
    ones: HashMap<(u64, u32), ProgramId, BuildMixHasher>,
    others: HashMap<Box<[u32]>, ProgramId, BuildMixHasher>,
}

impl ProgramCache {
    #[inline]
    pub(super) fn get(&self, program_key: &ProgramKey) -> Option<ProgramId> {
        match program_key.words.as_slice() {
            [port, shape, summary] => self.ones.get(&one(*port, *shape, *summary)).copied(),
            words => self.others.get(words).copied(),
        }
    }

    pub(super) fn put(&mut self, program_key: &ProgramKey, program: ProgramId) {
        match program_key.words.as_slice() {
            [port, shape, summary] => drop(self.ones.insert(one(*port, *shape, *summary), program)),
            words => drop(self.others.insert(words.into(), program)),
        }
    }

    pub(super) fn clear(&mut self) {
        self.ones.clear();
        self.others.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ones.len() + self.others.len()
    }
}

fn one(port: u32, shape: u32, summary: u32) -> (u64, u32) {
    (u64::from(port) << 32 | u64::from(shape), summary)
}
