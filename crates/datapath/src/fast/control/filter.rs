//! Which entries a non-strict or strict command or a request means (clause 6.4), and how they are
//! found.
//!
//! A tuple that does not look at all that the filter looks at has no entry that the filter covers,
//! so it is skipped whole. Where both look at the same bits, the index knows the answer.

use openflow::flow::FlowStatsRequest;
use openflow::{Cookie, GroupId, Match, PortNo, TableId};

use super::store::Store;
use super::tuples::Projection;
use crate::fast::pattern::{Masks, Pattern};

/// Which entries are meant, beside their tables.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) pattern: Pattern,
    pub(super) strict_priority: Option<u16>,
    pub(super) cookie: Cookie,
    pub(super) cookie_mask: u64,
    pub(super) out_port: PortNo,
    pub(super) out_group: GroupId,
}

impl Filter {
    /// Those that a non-strict request covers.
    pub(super) fn loose(request: &FlowStatsRequest, pattern: Pattern) -> Self {
        Self {
            pattern,
            strict_priority: None,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        }
    }

    /// Those of whatever match, priority and cookie.
    pub(super) fn everything(masks: &mut Masks) -> Self {
        Self::loose(&FlowStatsRequest::all(), Pattern::of(&Match::any(), masks))
    }

    /// What the filter asks beside match and priority.
    fn takes_rest(&self, store: &Store, number: u32) -> bool {
        let entry = store.slab.get(number);
        (entry.cookie.0 ^ self.cookie.0) & self.cookie_mask == 0
            && (self.out_port == PortNo::ANY
                || store.behaviours.outputs_to(entry.behaviour, self.out_port))
            && (self.out_group == GroupId::ANY
                || store.behaviours.uses_group(entry.behaviour, self.out_group))
    }

    /// Whether an entry of a table that is meant is meant.
    pub(super) fn takes(&self, store: &Store, number: u32) -> bool {
        let entry = store.slab.get(number);
        let tuple = store.tuple(entry);
        let matches = match self.strict_priority {
            Some(priority) => {
                entry.priority == priority
                    && *tuple.mask == **self.pattern.mask()
                    && tuple.value(entry.at) == self.pattern.value()
            }
            None => Projection::of(&self.pattern, tuple)
                .is_some_and(|projection| projection.takes(tuple.value(entry.at))),
        };
        matches && self.takes_rest(store, number)
    }

    /// The entries meant in some tables: table by table, highest priority first, older ones first
    /// among equals.
    pub(super) fn entries(&self, store: &Store, tables: std::ops::Range<u8>) -> Vec<u32> {
        let mut found = Vec::new();
        for table in tables.map(TableId) {
            let mut of_table: Vec<u32> = match self.strict_priority {
                Some(priority) => store.find(table, &self.pattern, priority).into_iter().collect(),
                None => self.covered(store, table),
            };
            of_table.retain(|number| self.takes_rest(store, *number));
            of_table.sort_unstable_by_key(|number| {
                let entry = store.slab.get(*number);
                (!entry.priority, entry.seq)
            });
            found.append(&mut of_table);
        }
        found
    }

    fn covered(&self, store: &Store, table: TableId) -> Vec<u32> {
        let mut found = Vec::new();
        for number in store.tuples.of_table(table) {
            let Some(tuple) = store.tuples.get(*number) else { continue };
            if tuple.mask == *self.pattern.mask() {
                found.extend(store.with_value(*number, self.pattern.value()));
            } else if let Some(projection) = Projection::of(&self.pattern, tuple) {
                let entries = tuple.ids.iter().zip(0..);
                let taken = entries.filter(|(_, at)| projection.takes(tuple.value(*at)));
                found.extend(taken.map(|(number, _)| *number));
            }
        }
        found
    }
}
