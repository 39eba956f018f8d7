//! The state of a bundle that is on its way into a replica, and the marks of its entries: see
//! `bundle`. It must not know the replica.

use super::versions::VersionIndex;
use crate::fast::op::{Change, Op};

/// The packets that do not count an entry yet, or any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Those before the moment of the bundle under way.
    pub(super) comes: bool,
    /// Those after it.
    pub(super) goes: bool,
}

/// A part of a bundle's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundlePhase {
    /// All before the first packet-out is prepared, hidden from packets.
    Preparing,
    /// The moment: all between the first packet-out and the last change is done, and no
    /// packet passes.
    AtOnce,
    /// The packet-outs after the last change are sent.
    Sending,
    /// The marks of what was prepared are taken away.
    Finishing,
}

/// Progress of a bundle in a replica.
#[derive(Debug)]
pub(super) struct BundleProgress {
    pub(super) phase: BundlePhase,
    /// Place of the first packet-out, or the end.
    pub(super) cut: usize,
    /// The place after the last change, or `cut` if that comes later.
    pub(super) changes_end: usize,
    /// The place at which the phase goes on.
    pub(super) at: usize,
    /// Changes before the first packet-out that are made at the moment itself.
    pub(super) at_once: Vec<u32>,
    /// The versions to raise; a bit for each.
    raised: Vec<u64>,
}

impl BundleProgress {
    /// The beginning of a bundle with these ops.
    pub(super) fn of(ops: &[Op]) -> Self {
        let is_sent = |op: &Op| matches!(op.0, Change::PacketOut(..));
        let cut = ops.iter().position(is_sent).unwrap_or(ops.len());
        let changes_end = ops.iter().rposition(|op| !is_sent(op)).map_or(0, |last| last + 1);
        Self {
            phase: BundlePhase::Preparing,
            cut,
            changes_end: changes_end.max(cut),
            at: 0,
            at_once: Vec::new(),
            raised: Vec::new(),
        }
    }

    /// Whether the moment has come.
    #[inline]
    pub(super) fn is_shown(&self) -> bool {
        self.phase != BundlePhase::Preparing
    }

    pub(super) fn raise(&mut self, index: VersionIndex) {
        let number = usize::from(index.number());
        if self.raised.is_empty() {
            self.raised = vec![0; (usize::from(u16::MAX) + 1) / 64];
        }
        self.raised[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn raised(&self) -> impl Iterator<Item = VersionIndex> {
        let words = (0_u16..).zip(&self.raised).filter(|(_, word)| **word != 0);
        words.flat_map(|(at, word)| {
            let bits = (0..64_u16).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| VersionIndex::of_number(at * 64 + bit))
        })
    }
}
