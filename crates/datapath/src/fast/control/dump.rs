//! Statistics of many entries in pieces, so that no caller waits for a million of them.
//!
//! The rule of a dump: it lists every entry that was there when it began and is still there when
//! its turn comes, once, as it is at that moment; and none that came later. An entry that is
//! replaced or modified meanwhile counts as the same one. Up to [`IN_ORDER`] entries come in the
//! order of statistics, more of them in the order in which they are stored.

use openflow::flow::{AggregateStats, FlowStats, FlowStatsRequest};
use openflow::{Error, TableId};

use super::Control;
use super::filter::EntryFilter;
use crate::fast::ids::EntryId;
use crate::time::Nanos;

/// Entries of the tables selected up to which a dump is in order.
const IN_ORDER: u32 = 1_024;

/// Number of places of the store that a piece looks at for each entry that it may list: entries of
/// other tables are passed over, but not for ever.
const LOOKS: usize = 16;

/// A dump on its way.
#[derive(Debug)]
pub struct Dump {
    filter: EntryFilter,
    tables: std::ops::Range<u8>,
    /// Entries of this age and above came later.
    before: u64,
    left: Left,
    listed: Vec<EntryId>,
}

impl Dump {
    /// The entries of the last piece.
    #[must_use]
    pub fn listed(&self) -> &[EntryId] {
        &self.listed
    }
}

#[derive(Debug)]
enum Left {
    /// Entries with their ages, the next one last.
    Listed(Vec<(u32, u64)>),
    /// From the first number to the second.
    Stored(u32, u32),
}

impl Control {
    /// Begins a dump.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    pub fn dump(&self, request: &FlowStatsRequest) -> Result<Dump, Error> {
        let tables = self.pipeline.selected(request.table_id).ok_or(Error::BadRequestBadTableId)?;
        let filter = Self::filter_of(request);
        let active = tables.clone().map(|table| self.store.active(TableId(table)));
        let left = if active.fold(0, u32::saturating_add) <= IN_ORDER {
            let mut listed = filter.entries(&self.store, tables.clone());
            listed.reverse();
            let aged = listed.into_iter().map(|number| (number, self.store.slab.get(number).seq));
            Left::Listed(aged.collect())
        } else {
            Left::Stored(0, self.store.slab.end() as u32)
        };
        Ok(Dump { filter, tables, before: self.seq, left, listed: Vec::new() })
    }

    /// Goes on with a dump by at most `most` entries, at most 16 times as many being looked at;
    /// whether the dump is complete.
    fn go_on(&self, dump: &mut Dump, most: usize) -> bool {
        dump.listed.clear();
        for _ in 0..most.saturating_mul(LOOKS) {
            if dump.listed.len() >= most {
                return false;
            }
            let next = match &mut dump.left {
                Left::Listed(listed) => listed.pop(),
                Left::Stored(from, to) if *from < *to => {
                    *from += 1;
                    Some((*from - 1, 0))
                }
                Left::Stored(..) => None,
            };
            let Some((number, age)) = next else { return true };
            if self.is_listed(dump, number, age) {
                dump.listed.push(EntryId(number));
            }
        }
        false
    }

    /// `age` is that of the entry that was found, or lower.
    fn is_listed(&self, dump: &Dump, number: u32, age: u64) -> bool {
        let Some(entry) = self.store.slab.live(number) else { return false };
        let table = self.store.tuple(entry).table.0;
        let is_known = match &dump.left {
            Left::Listed(_) => entry.seq == age,
            Left::Stored(..) => entry.seq < dump.before,
        };
        is_known && dump.tables.contains(&table) && dump.filter.takes(&self.store, number)
    }

    /// The next at most `most` entries of a dump, and whether it is complete. A piece may be empty
    /// though more follow.
    #[must_use]
    pub fn dump_next(&self, dump: &mut Dump, most: usize, now: Nanos) -> (Vec<FlowStats>, bool) {
        let complete = self.go_on(dump, most);
        (dump.listed.iter().map(|id| self.stats_of(id.0, now)).collect(), complete)
    }

    /// Adds the next at most `most` entries of a dump to sums; whether it is complete.
    pub fn dump_sum(&self, dump: &mut Dump, most: usize, sums: &mut AggregateStats) -> bool {
        let complete = self.go_on(dump, most);
        for id in &dump.listed {
            self.add_to(sums, id.0);
        }
        complete
    }
}
