//! The state of a bundle that is on its way into a replica, and the marks of its entries: see
//! `bundle`. It must not know the replica.

use super::versions::VersionIndex;

/// The packets that do not count an entry yet, or any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Those before the moment of the bundle under way.
    pub(super) comes: bool,
    /// Those after it.
    pub(super) goes: bool,
}

/// Progress of a bundle in a replica.
#[derive(Debug, Default)]
pub(super) struct BundleProgress {
    /// Place of the first packet-out, or the end.
    pub(super) cut: Option<usize>,
    /// Changes that are prepared, or since the moment finished.
    pub(super) at: usize,
    /// Those that are made at the moment itself.
    pub(super) at_once: Vec<u32>,
    /// The versions to raise; a bit for each.
    raised: Vec<u64>,
    /// The moment has passed.
    pub(super) is_shown: bool,
}

impl BundleProgress {
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
