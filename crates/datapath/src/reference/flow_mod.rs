//! Flow-mods: add, modify and delete with all of clause 6.4.
//!
//! Everything is checked before anything is changed. A command that returns an error has left the
//! tables as they were.

use std::collections::BTreeSet;
use std::ops::Range;

use openflow::flow::{FlowMod, FlowModFlags, FlowRemovedReason, FlowStatsRequest};
use openflow::{Error, GroupId, PortNo, TableId, Version};

use super::Reference;
use super::entry::Entry;
use crate::counter::Counter;
use crate::pipeline::table_of_new_entry;
use crate::precedence::{Precedence, Strict};
use crate::seam::{CommandOutcome, Removed};
use crate::time::Nanos;
use crate::validate::{CheckedFlowMod, Existing, check_flow_mod};

/// The entries that a command or a request selects, beside its tables.
pub(super) struct EntrySelection<'a> {
    request: &'a FlowStatsRequest,
    strict: Option<Strict>,
}

impl<'a> EntrySelection<'a> {
    /// Those that a non-strict request covers.
    pub(super) fn loose(request: &'a FlowStatsRequest) -> Self {
        Self { request, strict: None }
    }

    pub(super) fn takes(&self, entry: &Entry) -> bool {
        let wanted = self.request;
        let matches = match self.strict {
            Some(strict) => strict.takes(entry.rank()) && entry.matching == wanted.matching,
            None => wanted.matching.covers(&entry.matching),
        };
        matches
            && (entry.cookie.0 ^ wanted.cookie.0) & wanted.cookie_mask == 0
            && (wanted.out_port == PortNo::ANY || entry.outputs_to(wanted.out_port))
            && (wanted.out_group == GroupId::ANY
                || entry.groups().any(|group| group == wanted.out_group))
    }
}

/// The request for the entries of a modify or delete. Only deletes look at ports and groups (clause
/// 6.4).
fn request_of(flow_mod: &FlowMod, is_delete: bool) -> FlowStatsRequest {
    FlowStatsRequest {
        table_id: flow_mod.table_id,
        out_port: if is_delete { flow_mod.out_port } else { PortNo::ANY },
        out_group: if is_delete { flow_mod.out_group } else { GroupId::ANY },
        cookie: flow_mod.cookie,
        cookie_mask: flow_mod.cookie_mask,
        matching: flow_mod.matching.clone(),
        ..FlowStatsRequest::all()
    }
}

impl Reference {
    pub(super) fn run_flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.get(id).is_some(),
            meter: &|id| self.meters.get(id).is_some(),
        };
        match check_flow_mod(flow_mod, version, &self.pipeline, &existing)? {
            CheckedFlowMod::Add => self.add(flow_mod, version, now),
            CheckedFlowMod::Modify(tables, strict) => {
                self.modify(flow_mod, (tables, strict), version, now)
            }
            CheckedFlowMod::Delete(tables, strict) => {
                Ok(self.delete(flow_mod, (tables, strict), now))
            }
        }
    }

    /// An equal entry overlaps too, so `CHECK_OVERLAP` refuses to replace it. In 1.0 a replaced
    /// entry's counters are always cleared (its clause 4.6).
    ///
    /// An entry whose timeout has passed is not there any more, whether it has been taken away or
    /// not: it overlaps with nothing, fills no table and is not replaced but expires.
    pub(super) fn add(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let table_id = table_of_new_entry(flow_mod, version);
        let number = table_id.0;
        let precedence = Precedence::of_flow_mod(flow_mod, version);
        let Some(table) = self.tables.get_mut(usize::from(number)) else {
            return Err(Error::FlowModBadTableId);
        };
        if flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP)
            && table.overlaps(&flow_mod.matching, precedence, now)
        {
            return Err(Error::FlowModOverlap);
        }
        let mut entry = Entry::new(flow_mod, version, now, self.seq);
        let mut removed = Vec::new();
        let max_entries = self.pipeline.max_entries(table_id) as usize;
        let surplus = (table.live(now) + 1).saturating_sub(max_entries);
        let old = table.find_strict(&flow_mod.matching, precedence);
        if let Some(old) = old.and_then(|i| table.get_mut(i)).filter(|old| !old.is_expired(now)) {
            let resets = flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
            if version.has_reset_counts() && !resets {
                entry.packets = old.packets;
                entry.bytes = old.bytes;
            }
            entry.seq = old.seq;
            *old = entry;
        } else {
            let evicted = self.evicted(table_id, surplus, now)?;
            let Some(table) = self.tables.get(usize::from(number)) else {
                return Err(Error::FlowModBadTableId);
            };
            let is_full = table.entries().len() >= max_entries;
            // In the way is the equal entry, or any when they fill the table.
            removed = self.remove(number..number + 1, now, |old| {
                if evicted.contains(&old.seq) {
                    return Some(FlowRemovedReason::Eviction);
                }
                let equal = old.precedence == precedence && old.matching == flow_mod.matching;
                old.expired(now).filter(|_| equal || is_full)
            });
            if let Some(table) = self.tables.get_mut(usize::from(number)) {
                table.insert(entry);
            }
            self.seq += 1;
        }
        self.counters.add(Counter::FlowsAdded, 1);
        Ok(CommandOutcome { added: 1, removed, ..CommandOutcome::default() })
    }

    /// The entries of a table, by their age, that go so that as many new ones have room: first
    /// those of the least importance, and of these the ones whose timeout would be over first.
    /// Entries without a timeout stay.
    ///
    /// # Errors
    /// `OFPFMFC_TABLE_FULL` where the table refuses that, or has too few.
    fn evicted(
        &self,
        table_id: TableId,
        needed: usize,
        now: Nanos,
    ) -> Result<BTreeSet<u64>, Error> {
        if needed == 0 {
            return Ok(BTreeSet::new());
        }
        let evicts = self.pipeline.eviction_groups(table_id).is_some();
        let table = self.tables.get(usize::from(table_id.0)).filter(|_| evicts);
        let entries = table.ok_or(Error::FlowModTableFull)?.entries();
        let mut all: Vec<_> = entries
            .iter()
            .filter(|entry| !entry.is_expired(now))
            .filter_map(|entry| Some((entry.importance, entry.expiry()?.0, entry.seq)))
            .collect();
        all.sort_unstable();
        if all.len() < needed {
            return Err(Error::FlowModTableFull);
        }
        Ok(all.into_iter().take(needed).map(|(.., seq)| seq).collect())
    }

    /// In 1.0 a modify that finds nothing adds, and one that finds something changes the cookie as
    /// well; in 1.3 it does neither.
    fn modify(
        &mut self,
        flow_mod: &FlowMod,
        (tables, strict): (Range<u8>, Option<Strict>),
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let request = request_of(flow_mod, false);
        let filter = EntrySelection { request: &request, strict };
        let mut modified = 0;
        for table in self.tables.iter_mut().take(tables.end.into()).skip(tables.start.into()) {
            let entries = table.entries_mut().iter_mut();
            for entry in entries.filter(|entry| filter.takes(entry) && !entry.is_expired(now)) {
                entry.instructions = flow_mod.instructions.as_slice().into();
                if flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
                    entry.packets = 0;
                    entry.bytes = 0;
                }
                entry.cookie = flow_mod.given_cookie(version).unwrap_or(entry.cookie);
                modified += 1;
            }
        }
        if modified == 0 && flow_mod.adds_where_none(version) {
            return self.add(flow_mod, version, now);
        }
        Ok(CommandOutcome { modified, ..CommandOutcome::default() })
    }

    fn delete(
        &mut self,
        flow_mod: &FlowMod,
        (tables, strict): (Range<u8>, Option<Strict>),
        now: Nanos,
    ) -> CommandOutcome {
        let request = request_of(flow_mod, true);
        let filter = EntrySelection { request: &request, strict };
        let removed = self
            .remove(tables, now, |entry| filter.takes(entry).then_some(FlowRemovedReason::Delete));
        CommandOutcome { removed, ..CommandOutcome::default() }
    }

    /// Removes the entries of some tables that `goes` gives a reason for. One whose timeout has
    /// passed goes for that, whatever else would take it away.
    pub(super) fn remove(
        &mut self,
        tables: Range<u8>,
        now: Nanos,
        goes: impl Fn(&Entry) -> Option<FlowRemovedReason>,
    ) -> Vec<Removed> {
        let mut removed: Vec<Removed> = Vec::new();
        for number in tables {
            let table_id = TableId(number);
            if let Some(table) = self.tables.get_mut(usize::from(number)) {
                removed.extend(table.remove(|entry| {
                    let reason = goes(entry)?;
                    Some(entry.removed(table_id, entry.expired(now).unwrap_or(reason), now))
                }));
            }
        }
        let expired = removed.iter().filter(|gone| is_timeout(gone.flow.reason)).count();
        self.counters.add(Counter::FlowsRemoved, removed.len() as u64);
        self.counters.add(Counter::FlowsExpired, expired as u64);
        removed
    }
}

fn is_timeout(reason: FlowRemovedReason) -> bool {
    matches!(reason, FlowRemovedReason::IdleTimeout | FlowRemovedReason::HardTimeout)
}
