//! Which program packets of a kind have: found again by what decides about it, without recording.
//!
//! Entries of equal instructions have equal programs, so that of a million entries that output to a
//! few ports only a few are recorded. A memo must be forgotten with the programs.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use openflow::{PortNo, TableId};
use packet::Shape;

use super::program::ProgramId;
use crate::select::mix;

/// A hasher for keys that come from entries, not from packets.
#[derive(Debug, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }
}

/// Builds [`Mixed`].
pub(super) type Mix = BuildHasherDefault<Mixed>;

/// What decides about a program: the kinds of entries that were met and do anything, the port, the
/// shape, and the table where nothing was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    words: Vec<u32>,
}

impl Facts {
    pub(super) fn begin(&mut self, in_port: PortNo, shape: Shape) {
        self.words.clear();
        self.words.push(in_port.0);
        self.words.push(shape.index() as u32);
    }

    pub(super) fn met(&mut self, kind: u32) {
        self.words.push(kind);
    }

    pub(super) fn missed(&mut self, table: TableId) {
        // Kinds are numbered from one.
        self.words.push(0);
        self.words.push(table.0.into());
    }
}

/// Programs by what decides about them.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// The usual case: one kind.
    ones: HashMap<(u64, u32), ProgramId, Mix>,
    others: HashMap<Box<[u32]>, ProgramId, Mix>,
}

impl Memo {
    #[inline]
    pub(super) fn get(&self, facts: &Facts) -> Option<ProgramId> {
        match facts.words.as_slice() {
            [port, shape, kind] => self.ones.get(&one(*port, *shape, *kind)).copied(),
            words => self.others.get(words).copied(),
        }
    }

    pub(super) fn put(&mut self, facts: &Facts, program: ProgramId) {
        match facts.words.as_slice() {
            [port, shape, kind] => drop(self.ones.insert(one(*port, *shape, *kind), program)),
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

fn one(port: u32, shape: u32, kind: u32) -> (u64, u32) {
    (u64::from(port) << 32 | u64::from(shape), kind)
}
