//! Deletes of groups or meters that are done in pieces.
//!
//! The object of such a delete stays until the entries that use it are gone, so that no packet is
//! led to something that is not there. Until then nothing new may name it. So a delete comes to an
//! end whatever others add meanwhile, and what comes later under the same number is not selected.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};

/// A delete that is under way.
#[derive(Debug)]
pub(crate) struct PendingDelete<K> {
    /// None for all.
    id: Option<K>,
    /// The age of the first one that came later.
    seq_end: u64,
}

impl<K: Copy + Ord> PendingDelete<K> {
    /// Whether it selects what has this number and age.
    pub(crate) fn selects(&self, id: K, seq: u64) -> bool {
        seq < self.seq_end && self.id.is_none_or(|own| own == id)
    }

    /// Looks at up to `most` after `after`: the numbers of those that are selected, and the last
    /// that was looked at, or none at the end.
    pub(crate) fn selected_in<V>(
        &self,
        map: &BTreeMap<K, V>,
        seq: impl Fn(&V) -> u64,
        after: Option<K>,
        most: usize,
    ) -> (Vec<K>, Option<K>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = match self.id {
            Some(id) => map.range(id..=id),
            None => map.range((from, Bound::Unbounded)),
        };
        let looked_at = || range.clone().take(most);
        let selected = looked_at().filter(|(id, held)| self.selects(**id, seq(held)));
        let last = if looked_at().count() == most { looked_at().last() } else { None };
        (selected.map(|(id, _)| *id).collect(), last.map(|(id, _)| *id))
    }
}

/// The deletes that are under way; one that its owner has dropped is none.
#[derive(Clone, Debug)]
pub(crate) struct PendingDeletes<K>(Vec<Weak<PendingDelete<K>>>);

impl<K> Default for PendingDeletes<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord> PendingDeletes<K> {
    /// Begins a delete of one or of all that are older than `seq_end`.
    pub(crate) fn begin(&mut self, id: Option<K>, seq_end: u64) -> Arc<PendingDelete<K>> {
        let delete = Arc::new(PendingDelete { id, seq_end });
        self.0.retain(|delete| delete.strong_count() > 0);
        self.0.push(Arc::downgrade(&delete));
        delete
    }

    /// Whether any of them selects what has this number and age.
    pub(crate) fn mean(&self, id: K, seq: u64) -> bool {
        self.0.iter().filter_map(Weak::upgrade).any(|delete| delete.selects(id, seq))
    }
}
