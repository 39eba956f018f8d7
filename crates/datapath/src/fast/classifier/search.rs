//! Lookups that do not count every entry: the way past entries whose time is over, and to those of
//! conjunctive matches.
//!
//! One key at a time, and slower than [`Classifier::lookup`]: it is for packets that found such an
//! entry, and for tables with conjunctive matches.

use openflow::Field;
use packet::FlowKey;

use super::group::TupleGroup;
use super::hash::masked;
use super::records::RecordLine;
use super::{Classifier, SEQ_BITS};
use crate::fast::ids::EntryId;

/// The entry that a search ended with.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Answer {
    rank: u64,
    pub(in crate::fast) id: EntryId,
    /// Number of its mask; none of an entry that every packet matches.
    mask: Option<u32>,
}

impl Answer {
    /// Behind all others.
    const NONE: Self = Self { rank: u64::MAX, id: EntryId(0), mask: None };

    /// Its order of precedence ([`crate::precedence::Precedence::order`]).
    pub(in crate::fast) fn order(&self) -> u32 {
        order_of(self.rank)
    }
}

fn order_of(rank: u64) -> u32 {
    (rank >> SEQ_BITS) as u32
}

/// A search under way.
struct Search<'a, F> {
    classifier: &'a Classifier,
    key: &'a FlowKey,
    /// The best so far, or [`Answer::NONE`].
    best: Answer,
    counts: F,
}

impl Classifier {
    /// The entry that a packet matches among those that `counts` accepts.
    ///
    /// `counts` is asked, with the order of precedence, about every entry that the packet matches
    /// and that comes before the answer, and perhaps about others.
    pub(in crate::fast) fn lookup_if(
        &self,
        key: &FlowKey,
        counts: impl FnMut(u32, EntryId) -> bool,
    ) -> Option<Answer> {
        let mut search = Search { classifier: self, key, best: Answer::NONE, counts };
        for (rank, id) in &self.always {
            search.offer(*rank, *id, None);
        }
        let hides = self.of_conj_id_zero == 0 && key.get(Field::ConjId) == 0;
        search.run(if hides { !self.groups.all_conj_id } else { u64::MAX })
    }

    /// The same for a key that had another `conj_id` when it found `before`. Entries that do not
    /// look at it are where they were, so few groups are asked.
    pub(in crate::fast) fn lookup_conj_id(
        &self,
        key: &FlowKey,
        before: Option<Answer>,
        counts: impl FnMut(u32, EntryId) -> bool,
    ) -> Option<Answer> {
        let mask = before.and_then(|before| self.masks.held(before.mask?));
        if mask.is_some_and(|held| held.mask.has_conj_id()) {
            return self.lookup_if(key, counts);
        }
        let best = before.unwrap_or(Answer::NONE);
        Search { classifier: self, key, best, counts }.run(self.groups.some_conj_id)
    }
}

impl<F: FnMut(u32, EntryId) -> bool> Search<'_, F> {
    /// Searches groups, one bit for each, and the list.
    fn run(&mut self, among: u64) -> Option<Answer> {
        let Classifier { groups, filter, list, .. } = self.classifier;
        let (among, missing) = (filter.possible(self.key) & among, !self.key.present());
        let asked = groups.order.iter().filter(|number| among >> **number & 1 != 0);
        for group in asked.filter_map(|number| groups.get(*number)) {
            if self.best.rank <= group.best {
                break;
            }
            if group.bits.present & missing == 0 {
                self.ask(group);
            }
        }
        for item in list.items() {
            if self.best.rank <= item.rank {
                break;
            }
            self.record(item.slot);
        }
        (self.best.rank != u64::MAX).then_some(self.best)
    }

    #[inline(always)]
    fn ask(&mut self, group: &TupleGroup) {
        match (group.bits.words.len(), group.is_exact) {
            (1, true) => self.ask_exact::<1>(group),
            (2, true) => self.ask_exact::<2>(group),
            (3, true) => self.ask_exact::<3>(group),
            (4, true) => self.ask_exact::<4>(group),
            _ => {
                let hash = self.classifier.secrets.of_masked(self.key, &group.bits.words);
                group.index.find(hash, |slot| self.record(slot));
            }
        }
    }

    /// Asks a group with one mask, of `N` words: what is hashed is what is compared.
    fn ask_exact<const N: usize>(&mut self, group: &TupleGroup) {
        let Some(words) = group.bits.words.first_chunk::<N>() else { return };
        let Classifier { records, secrets, .. } = self.classifier;
        let row = masked(self.key, words);
        group.index.find(secrets.of_row(&row), |slot| {
            let line = records.get(slot);
            let differs = row.iter().zip(line.near()).fold(0, |bits, (a, b)| bits | (a ^ b));
            if differs == 0 {
                self.take(slot, line);
            }
        });
    }

    #[inline(always)]
    fn record(&mut self, slot: u32) {
        let Classifier { records, masks, .. } = self.classifier;
        let line = records.get(slot);
        if self.best.rank > line.rank() && masks.matches(self.key, line, slot, records) {
            self.take(slot, line);
        }
    }

    /// Offers the entries of a record that the key matches.
    #[inline(always)]
    fn take(&mut self, slot: u32, line: &RecordLine) {
        // Those in its shadow come after it.
        self.offer(line.rank(), line.id(), Some(line.mask()));
        if line.has_shadows() {
            self.shadows(slot, line.mask());
        }
    }

    #[cold]
    fn shadows(&mut self, slot: u32, mask: u32) {
        for ((_, rank), id) in self.classifier.shadows.range((slot, 0)..=(slot, u64::MAX)) {
            self.offer(*rank, *id, Some(mask));
        }
    }

    #[inline(always)]
    fn offer(&mut self, rank: u64, id: EntryId, mask: Option<u32>) {
        if rank < self.best.rank && (self.counts)(order_of(rank), id) {
            self.best = Answer { rank, id, mask };
        }
    }
}
