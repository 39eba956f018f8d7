//! Statistics of flow entries and tables (clauses 7.3.5.2 to 7.3.5.4).

use std::collections::{BTreeMap, BTreeSet};

use openflow::flow::{AggregateStats, FlowModFlags, FlowStats, FlowStatsRequest};
use openflow::table::{TableAbilities, TableStats};
use openflow::{Error, GroupId, MeterId, TableId};

use super::Reference;
use super::entry::Entry;
use super::flow_mod::EntrySelection;
use crate::features::WILDCARDS_1_0;
use crate::time::Nanos;

impl Reference {
    fn wanted(&self, request: &FlowStatsRequest) -> Result<Vec<(TableId, &Entry)>, Error> {
        let tables = self.pipeline.selected(request.table_id).ok_or(Error::BadRequestBadTableId)?;
        let filter = EntrySelection::loose(request);
        let mut found = Vec::new();
        for number in tables {
            if let Some(table) = self.tables.get(usize::from(number)) {
                let taken = table.entries().iter().filter(|entry| filter.takes(entry));
                found.extend(taken.map(|entry| (TableId(number), entry)));
            }
        }
        Ok(found)
    }

    pub(super) fn list_flows(
        &self,
        request: &FlowStatsRequest,
        now: Nanos,
    ) -> Result<Vec<FlowStats>, Error> {
        let found = self.wanted(request)?;
        Ok(found.into_iter().map(|(table, entry)| entry.stats(table, now)).collect())
    }

    pub(super) fn sum_flows(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Error> {
        let mut sums = AggregateStats::default();
        for (_, entry) in self.wanted(request)? {
            sums.flow_count = sums.flow_count.saturating_add(1);
            if !entry.flags.contains(FlowModFlags::NO_PKT_COUNTS) {
                sums.packet_count = sums.packet_count.wrapping_add(entry.packets);
            }
            if !entry.flags.contains(FlowModFlags::NO_BYT_COUNTS) {
                sums.byte_count = sums.byte_count.wrapping_add(entry.bytes);
            }
        }
        Ok(sums)
    }

    pub(super) fn list_tables(&self) -> Vec<TableStats> {
        let stats = |(table_id, name): (TableId, &str)| {
            let table = self.tables.get(usize::from(table_id.0))?;
            Some(TableStats {
                table_id,
                name: name.to_owned(),
                wildcards: WILDCARDS_1_0,
                abilities: TableAbilities::default(),
                max_entries: self.pipeline.max_entries(table_id),
                active_count: u32::try_from(table.entries().len()).unwrap_or(u32::MAX),
                lookup_count: table.lookups,
                matched_count: table.matches,
            })
        };
        self.pipeline.names().filter_map(stats).collect()
    }

    /// Number of entries that use each group themselves, found in one pass over all entries.
    pub(super) fn flows_with_groups(&self) -> BTreeMap<GroupId, u32> {
        self.count_uses(|entry| entry.groups().collect())
    }

    /// Number of entries that use each meter, found in one pass over all entries.
    pub(super) fn flows_with_meters(&self) -> BTreeMap<MeterId, u32> {
        self.count_uses(|entry| entry.meter().into_iter().collect())
    }

    fn count_uses<I: Ord>(&self, uses: impl Fn(&Entry) -> BTreeSet<I>) -> BTreeMap<I, u32> {
        let mut counts = BTreeMap::new();
        for id in self.tables.iter().flat_map(|table| table.entries()).flat_map(uses) {
            let count: &mut u32 = counts.entry(id).or_default();
            *count = count.saturating_add(1);
        }
        counts
    }
}
