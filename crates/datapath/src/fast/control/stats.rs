//! Statistics of flow entries and tables (clauses 7.3.5.2 to 7.3.5.4), all at once.
//!
//! For many entries there is [`Control::dump`], which gives the same in pieces.

use openflow::flow::{AggregateStats, FlowModFlags, FlowStats, FlowStatsRequest};
use openflow::table::{TableAbilities, TableStats};
use openflow::{Error, TableId};

use super::Control;
use super::filter::EntryFilter;
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::features::WILDCARDS_1_0;
use crate::time::Nanos;

impl Control {
    /// The filter of a request. Its mask is made for it alone: a request must not add to the masks
    /// that are kept.
    pub(super) fn filter_of(request: &FlowStatsRequest) -> EntryFilter {
        EntryFilter::loose(
            request,
            CompiledMatch::of(&request.matching, &mut super::Masks::default()),
        )
    }

    fn wanted(&self, request: &FlowStatsRequest) -> Result<Vec<u32>, Error> {
        let tables = self.pipeline.selected(request.table_id).ok_or(Error::BadRequestBadTableId)?;
        Ok(Self::filter_of(request).entries(&self.store, tables))
    }

    /// Flow entries, table by table, highest priority first.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    pub fn flow_stats(
        &self,
        request: &FlowStatsRequest,
        now: Nanos,
    ) -> Result<Vec<FlowStats>, Error> {
        let wanted = self.wanted(request)?;
        Ok(wanted.into_iter().map(|number| self.stats_of(number, now)).collect())
    }

    /// Sums over flow entries; counts that an entry does not keep add nothing.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    pub fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Error> {
        let mut sums = AggregateStats::default();
        for number in self.wanted(request)? {
            self.add_to(&mut sums, number);
        }
        Ok(sums)
    }

    /// Adds an entry to sums.
    pub(super) fn add_to(&self, sums: &mut AggregateStats, number: u32) {
        let flags = self.store.slab.get(number).flags;
        let counts = self.shared.entry(EntryId(number));
        sums.flow_count = sums.flow_count.saturating_add(1);
        if !flags.contains(FlowModFlags::NO_PKT_COUNTS) {
            sums.packet_count = sums.packet_count.wrapping_add(counts.packets);
        }
        if !flags.contains(FlowModFlags::NO_BYT_COUNTS) {
            sums.byte_count = sums.byte_count.wrapping_add(counts.bytes);
        }
    }

    /// An entry as statistics show it.
    pub(super) fn stats_of(&self, number: u32, now: Nanos) -> FlowStats {
        let entry = self.store.slab.get(number);
        let tuple = self.store.tuple(entry);
        let (duration_s, duration_ns) = now.age(entry.created);
        let counts = self.shared.entry(EntryId(number)).shown(entry.flags);
        FlowStats {
            table_id: tuple.table,
            duration_s,
            duration_ns,
            priority: entry.priority,
            idle_timeout_s: entry.idle_timeout_s,
            hard_timeout_s: entry.hard_timeout_s,
            flags: entry.flags,
            importance: self.store.setups.importance(entry.setup),
            cookie: entry.cookie,
            packet_count: counts.packets,
            byte_count: counts.bytes,
            matching: self.store.matching(entry),
            instructions: self
                .store
                .instruction_lists
                .get(entry.instruction_list)
                .instructions
                .to_vec(),
        }
    }

    /// Tables' counters.
    #[must_use]
    pub fn table_stats(&self) -> Vec<TableStats> {
        self.stats_of_tables(|_| true)
    }

    /// Those of the tables that hold entries or have been looked at.
    #[must_use]
    pub fn used_table_stats(&self) -> Vec<TableStats> {
        self.stats_of_tables(|table| self.store.active(table) > 0 || self.shared.table(table).0 > 0)
    }

    fn stats_of_tables(&self, is_meant: impl Fn(TableId) -> bool) -> Vec<TableStats> {
        let stats = |(table_id, name): (TableId, &str)| {
            let (lookup_count, matched_count) = self.shared.table(table_id);
            TableStats {
                table_id,
                name: name.to_owned(),
                wildcards: WILDCARDS_1_0,
                abilities: TableAbilities::default(),
                max_entries: self.pipeline.max_entries(table_id),
                active_count: self.store.active(table_id),
                lookup_count,
                matched_count,
            }
        };
        self.pipeline.names().filter(|(table, _)| is_meant(*table)).map(stats).collect()
    }
}
