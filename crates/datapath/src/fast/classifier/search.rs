//! Lookups that do not count every entry: the way past entries whose time is over, and to those of
//! conjunctive matches.
//!
//! One key at a time, and slower than [`Classifier::lookup`]: it is for packets that found such an
//! entry, and for tables with conjunctive matches.

use packet::FlowKey;

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
    best: Option<Answer>,
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
        let mut search = Search { classifier: self, key, best: None, counts };
        for (rank, id) in &self.always {
            search.offer(*rank, *id, None);
        }
        search.run(false)
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
        Search { classifier: self, key, best: before, counts }.run(true)
    }
}

impl<F: FnMut(u32, EntryId) -> bool> Search<'_, F> {
    fn best_rank(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |best| best.rank)
    }

    /// Searches the groups, or those alone that have entries with `conj_id`, and the list.
    fn run(mut self, by_conj_id: bool) -> Option<Answer> {
        let Classifier { groups, filter, secrets, list, .. } = self.classifier;
        let possible = filter.possible(self.key);
        for group in groups.in_order() {
            if self.best_rank() <= group.best {
                break;
            }
            let is_possible = possible >> group.number & 1 != 0 && group.has_conj_id | !by_conj_id;
            if is_possible && group.bits.present & !self.key.present() == 0 {
                let hash = secrets.of_masked(self.key, &group.bits.words);
                group.index.find(hash, |slot| self.record(slot));
            }
        }
        for item in list.items() {
            if self.best_rank() <= item.rank {
                break;
            }
            self.record(item.slot);
        }
        self.best
    }

    #[inline(always)]
    fn record(&mut self, slot: u32) {
        let Classifier { records, masks, .. } = self.classifier;
        let line = records.get(slot);
        // Those in its shadow come after it.
        if self.best_rank() <= line.rank() || !masks.matches(self.key, line, slot, records) {
            return;
        }
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
        if rank < self.best_rank() && (self.counts)(order_of(rank), id) {
            self.best = Some(Answer { rank, id, mask });
        }
    }
}
