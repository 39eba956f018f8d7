//! Entries that a non-strict or strict command or a request selects (clause 6.4), and the search
//! for them.
//!
//! A tuple that does not look at all that the filter looks at has no entry that the filter covers,
//! so it is skipped whole. Where both look at the same bits, the index knows the answer.

use openflow::flow::FlowStatsRequest;
use openflow::{Cookie, GroupId, Match, PortNo, TableId};

use super::store::Store;
use super::tuples::Projection;
use crate::fast::compiled_match::{CompiledMatch, Masks};
use crate::precedence::Strict;

/// Selection of entries, beside their tables.
#[derive(Clone, Debug)]
pub(super) struct EntryFilter {
    pub(super) compiled: CompiledMatch,
    pub(super) strict: Option<Strict>,
    pub(super) cookie: Cookie,
    pub(super) cookie_mask: u64,
    pub(super) out_port: PortNo,
    pub(super) out_group: GroupId,
}

impl EntryFilter {
    /// Those that a non-strict request covers.
    pub(super) fn loose(request: &FlowStatsRequest, compiled: CompiledMatch) -> Self {
        Self {
            compiled,
            strict: None,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        }
    }

    /// Those of whatever match, priority and cookie.
    pub(super) fn everything(masks: &mut Masks) -> Self {
        Self::loose(&FlowStatsRequest::all(), CompiledMatch::of(&Match::any(), masks))
    }

    /// The filter's conditions beside match and precedence.
    fn takes_rest(&self, store: &Store, number: u32) -> bool {
        let entry = store.slab.get(number);
        (entry.cookie.0 ^ self.cookie.0) & self.cookie_mask == 0
            && (self.out_port == PortNo::ANY
                || store.instruction_lists.outputs_to(entry.instruction_list, self.out_port))
            && (self.out_group == GroupId::ANY
                || store.instruction_lists.uses_group(entry.instruction_list, self.out_group))
    }

    /// Whether it selects an entry of one of the command's tables.
    pub(super) fn takes(&self, store: &Store, number: u32) -> bool {
        let entry = store.slab.get(number);
        let tuple = store.tuple(entry);
        let matches = match self.strict {
            Some(strict) => {
                strict.takes(entry.rank())
                    && *tuple.mask == **self.compiled.mask()
                    && tuple.value(entry.at) == self.compiled.value()
            }
            None => Projection::of(&self.compiled, tuple)
                .is_some_and(|projection| projection.takes(tuple.value(entry.at))),
        };
        matches && self.takes_rest(store, number)
    }

    /// The entries selected in some tables: table by table, highest priority first, older ones
    /// first among equals.
    pub(super) fn entries(&self, store: &Store, tables: std::ops::Range<u8>) -> Vec<u32> {
        let mut found = Vec::new();
        for table in tables.map(TableId) {
            let mut of_table: Vec<u32> = match self.strict {
                Some(strict) => self.equal(store, table, strict),
                None => self.covered(store, table),
            };
            of_table.retain(|number| self.takes_rest(store, *number));
            of_table.sort_unstable_by_key(|number| {
                let entry = store.slab.get(*number);
                (entry.precedence().order(), entry.seq)
            });
            found.append(&mut of_table);
        }
        found
    }

    fn equal(&self, store: &Store, table: TableId, strict: Strict) -> Vec<u32> {
        let tuple = store.tuples.find(table, self.compiled.mask());
        let same =
            tuple.into_iter().flat_map(|tuple| store.with_value(tuple, self.compiled.value()));
        same.filter(|number| strict.takes(store.slab.get(*number).rank())).collect()
    }

    fn covered(&self, store: &Store, table: TableId) -> Vec<u32> {
        let mut found = Vec::new();
        for number in store.tuples.of_table(table) {
            let Some(tuple) = store.tuples.get(*number) else { continue };
            if tuple.mask == *self.compiled.mask() {
                found.extend(store.with_value(*number, self.compiled.value()));
            } else if let Some(projection) = Projection::of(&self.compiled, tuple) {
                let entries = tuple.ids.iter().zip(0..);
                let taken = entries.filter(|(_, at)| projection.takes(tuple.value(*at)));
                found.extend(taken.map(|(number, _)| *number));
            }
        }
        found
    }
}
