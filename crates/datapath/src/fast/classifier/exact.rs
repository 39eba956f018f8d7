//! Lookups of a burst in a table with one mask, the most frequent kind: the loops of
//! [`super::burst`] without what only several groups need.
//!
//! There is one candidate for a key, nothing to keep between groups, and the answer is written
//! where it is found: 105 instructions for a key of one word and 150 for four, instead of 190; 5-7
//! ns instead of 9-11 in a table of a thousand entries. A dense array for small fields (port, VLAN)
//! would save no more than 2 ns of that, so there is none.

use packet::FlowKey;

use super::Classifier;
use super::burst::BURST;
use super::group::TupleGroup;
use super::hash::masked;
use super::index::Probe;
use super::records::NOWHERE;
use crate::fast::ids::EntryId;
use crate::fast::sys::prefetch;

/// The best of the entries that match every packet: its rank and the answer.
#[derive(Clone, Copy)]
pub(super) struct Default {
    pub(super) rank: u64,
    pub(super) answer: Option<EntryId>,
}

impl Classifier {
    /// The only group, if the table is that simple.
    #[inline]
    pub(super) fn only_exact(&self) -> Option<&TupleGroup> {
        let [number] = self.groups.order[..] else { return None };
        let group = self.groups.get(number)?;
        (group.is_exact && self.list.len() == 0).then_some(group)
    }

    /// Looks up the keys of a burst in the only group; `false` when its mask is too wide for that.
    pub(super) fn lookup_exact(
        &self,
        group: &TupleGroup,
        keys: &[FlowKey],
        default: Default,
        out: &mut [Option<EntryId>],
    ) -> bool {
        let lookup = match group.bits.words.len() {
            1 => Self::lookup_words::<1>,
            2 => Self::lookup_words::<2>,
            3 => Self::lookup_words::<3>,
            4 => Self::lookup_words::<4>,
            5 => Self::lookup_words::<5>,
            6 => Self::lookup_words::<6>,
            _ => return false,
        };
        lookup(self, group, keys, default, out);
        true
    }

    fn lookup_words<const N: usize>(
        &self,
        group: &TupleGroup,
        keys: &[FlowKey],
        default: Default,
        out: &mut [Option<EntryId>],
    ) {
        let Some(words) = group.bits.words.first_chunk::<N>() else { return };
        let len = keys.len().min(out.len()).min(BURST);
        let (keys, out) = (&keys[..len], &mut out[..len]);
        let mut rows = [[0; N]; BURST];
        let mut probes = [Probe::NONE; BURST];
        for at in 0..len {
            rows[at] = masked(&keys[at], words);
            probes[at] = group.index.probe(self.secrets.of_row(&rows[at]));
        }
        let mut lines = [&NOWHERE; BURST];
        let is_plain = group.index.is_plain;
        let (mut unsure, mut unsure_len) = ([0_u8; BURST], 0);
        for at in 0..len {
            let first = probes[at].first(is_plain);
            let line = self.records.get(first.slot);
            prefetch(line);
            lines[at] = if first.found == 0 { &NOWHERE } else { line };
            unsure[unsure_len % BURST] = at as u8;
            unsure_len += usize::from(first.has_rest);
        }
        for at in 0..len {
            let (row, line) = (&rows[at], lines[at]);
            let differs = row.iter().zip(line.near()).fold(0, |bits, (a, b)| bits | (a ^ b));
            let differs = differs | group.bits.present & !keys[at].present();
            let is_it = (differs == 0) & (line.rank() < default.rank);
            out[at] = if is_it { Some(line.id()) } else { default.answer };
        }
        // A second equal tag or an overflow bucket: a few keys of a hundred.
        for at in &unsure[..unsure_len.min(BURST)] {
            let at = usize::from(*at);
            out[at] = self.lookup(&keys[at]);
        }
    }
}
