//! Flow-mods: add, modify and delete with all of clause 6.4, and expiry (clause 5.5).
//!
//! Everything is checked before anything is changed. A command that returns an error has left the
//! tables as they were and has made no op.

use openflow::flow::{FlowMod, FlowModFlags, FlowRemovedReason};
use openflow::{Error, GroupId, Instruction, PortNo, TableId, Version};

use super::filter::EntryFilter;
use super::store::EntryHead;
use super::{CommandCounts, Control};
use crate::counter::{Counter, DropReason};
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::fast::op::{Change, Insert, Used};
use crate::fast::shared::MAX_ENTRIES;
use crate::memory::{MemoryNeed, instructions_size};
use crate::pipeline::table_of_new_entry;
use crate::precedence::{Precedence, Strict};
use crate::time::Nanos;
use crate::validate::{CheckedFlowMod, Existing, check_flow_mod};

impl Control {
    /// Changes flow entries (clause 6.4). A command that is refused has changed nothing.
    ///
    /// # Errors
    /// Those of clause 6.4, found before anything is changed.
    pub fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, Error> {
        self.latest = now;
        let done = self.run_flow_mod(flow_mod, version, now);
        if done.is_err() {
            self.counters.add(Counter::FlowModErrors, 1);
        }
        done
    }

    fn run_flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, Error> {
        match self.check_flow_mod(flow_mod, version)? {
            CheckedFlowMod::Add => self.add(flow_mod, version, now),
            CheckedFlowMod::Modify(tables, strict) => {
                let filter = self.filter(flow_mod, strict, false);
                self.modify(flow_mod, filter.entries(&self.store, tables), version, now)
            }
            CheckedFlowMod::Delete(tables, strict) => {
                let filter = self.filter(flow_mod, strict, true);
                let selected = filter.entries(&self.store, tables);
                Ok(self.remove_all(&selected, FlowRemovedReason::Delete, now))
            }
        }
    }

    pub(super) fn check_flow_mod(
        &self,
        flow_mod: &FlowMod,
        version: Version,
    ) -> Result<CheckedFlowMod, Error> {
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.is_nameable(id),
            meter: &|id| self.meters.is_nameable(id),
        };
        check_flow_mod(flow_mod, version, &self.pipeline, &existing)
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
    ) -> Result<CommandCounts, Error> {
        let table = table_of_new_entry(flow_mod, version);
        let compiled = CompiledMatch::of(&flow_mod.matching, &mut self.masks);
        let precedence = Precedence::of_flow_mod(flow_mod, version);
        if flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP)
            && self.overlaps(table, &compiled, precedence, now)
        {
            return Err(Error::FlowModOverlap);
        }
        let old = self.store.find(table, &compiled, precedence);
        let over = old.filter(|old| self.expired(*old, now).is_some());
        let mut done = CommandCounts { added: 1, ..CommandCounts::default() };
        if let Some(old) = old.filter(|_| over.is_none()) {
            self.check_list_memory(&flow_mod.instructions)?;
            let watched = self.watched_before(old);
            let seq = self.store.slab.get(old).seq;
            let resets = flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
            if !version.has_reset_counts() || resets {
                let head = self.head(flow_mod, version, now, seq);
                let used = Used { last: now, taught: Nanos(0) };
                let id = self.exchange(old, head, flow_mod, used);
                self.note_added(id.0, watched);
            } else {
                let head = self.head(flow_mod, version, now, seq);
                self.rewrite(old, head, flow_mod);
                self.note_added(old, watched);
            }
        } else {
            done.removed = self.make_room(table, flow_mod, now)?;
            if let Some(over) = over.filter(|_| done.removed == 0) {
                self.remove(over, FlowRemovedReason::Delete, now);
                done.removed = 1;
            }
            let head = self.head(flow_mod, version, now, self.seq);
            self.seq += 1;
            let instructions = &flow_mod.instructions;
            let id = self.store.insert(table, &compiled, head, instructions, now);
            self.note_new(id);
            self.shared.clear_entry(id, now);
            let insert = self.insert_op(id, compiled);
            self.emit_op(Change::Insert(insert));
            self.note_added(id.0, None);
        }
        self.counters.add(Counter::FlowsAdded, 1);
        Ok(done)
    }

    /// The head of the entry that a flow-mod adds; it must be used.
    fn head(&mut self, flow_mod: &FlowMod, version: Version, now: Nanos, seq: u64) -> EntryHead {
        EntryHead {
            cookie: flow_mod.cookie,
            setup: self.store.setups.take(&flow_mod.matching, flow_mod.importance, version),
            priority: flow_mod.priority,
            idle_timeout_s: flow_mod.idle_timeout_s,
            hard_timeout_s: flow_mod.hard_timeout_s,
            flags: flow_mod.kept_flags(version),
            created: now,
            seq,
        }
    }

    /// The timeout of an entry that has passed.
    pub(super) fn expired(&self, number: u32, now: Nanos) -> Option<FlowRemovedReason> {
        let entry = self.store.slab.get(number);
        if !entry.life().is_limited() {
            return None;
        }
        let expiry = entry.expiry(self.shared.used(EntryId(number)));
        expiry.filter(|(at, _)| *at <= now).map(|(_, reason)| reason)
    }

    /// Whether a timeout of any entry has passed.
    fn is_any_expired(&mut self, now: Nanos) -> bool {
        self.first_expiry().is_some_and(|(_, at, _)| at <= now)
    }

    /// Whether a live entry of equal precedence could match a packet that this match matches.
    fn overlaps(
        &mut self,
        table: TableId,
        compiled: &CompiledMatch,
        precedence: Precedence,
        now: Nanos,
    ) -> bool {
        if self.is_any_expired(now) {
            let is_live = |number| self.expired(number, now).is_none();
            self.store.overlaps(table, compiled, precedence, Some(&is_live))
        } else {
            self.store.overlaps(table, compiled, precedence, None)
        }
    }

    /// Refuses a list of instructions that no entry has when there is no memory for it. The list
    /// that it replaces is freed, so that it needs no room that there never was.
    pub(super) fn check_list_memory(&self, instructions: &[Instruction]) -> Result<(), Error> {
        let Some(bytes) = self.new_list_size(instructions) else { return Ok(()) };
        let allows = self.memory_allows(MemoryNeed::Reused, bytes);
        if allows { Ok(()) } else { Err(Error::FlowModTableFull) }
    }

    /// The size of a list of instructions, when no entry has it. Without a budget no one asks.
    pub(super) fn new_list_size(&self, instructions: &[Instruction]) -> Option<usize> {
        self.memory.as_ref()?;
        let is_known = self.store.instruction_lists.find(instructions).is_some();
        (!is_known).then(|| instructions_size(instructions))
    }

    /// Sees to it that one more entry has room in a table: how many were taken away for that, all
    /// of the table whose timeout has passed, or those that are evicted.
    fn make_room(
        &mut self,
        table: TableId,
        flow_mod: &FlowMod,
        now: Nanos,
    ) -> Result<usize, Error> {
        if !self.store.slab.has_room(MAX_ENTRIES) {
            return Err(Error::FlowModTableFull);
        }
        let need = self.entries_peak.need(self.store.slab.taken());
        let bytes = self.new_list_size(&flow_mod.instructions).unwrap_or(0);
        if !self.memory_allows(need, bytes) {
            return Err(Error::FlowModTableFull);
        }
        let max_entries = self.pipeline.max_entries(table);
        let active = self.store.active(table);
        if active < max_entries {
            return Ok(0);
        }
        let needed = active as usize - max_entries as usize + 1;
        // No look at all entries for each add that a full table refuses.
        if !self.is_any_expired(now) {
            return self.evict(table, needed, Vec::new(), now);
        }
        let over = self.over(table, now);
        self.evict(table, needed, over, now)
    }

    /// The entries of a table whose timeout has passed.
    fn over(&mut self, table: TableId, now: Nanos) -> Vec<u32> {
        let mut over = self.store.due(now);
        over.retain(|number| {
            self.store.tuple(self.store.slab.get(*number)).table == table
                && self.expired(*number, now).is_some()
        });
        over
    }

    /// Takes this number of entries out of a table that makes room for new ones, or all of these,
    /// whose timeout has passed, where they are as many.
    fn evict(
        &mut self,
        table: TableId,
        needed: usize,
        mut gone: Vec<u32>,
        now: Nanos,
    ) -> Result<usize, Error> {
        self.add_evictable(table, needed, &mut gone);
        if gone.len() < needed {
            gone.iter().for_each(|number| self.store.rank(*number));
            return Err(Error::FlowModTableFull);
        }
        Ok(self.remove_users(gone, FlowRemovedReason::Eviction, now).removed)
    }

    /// Takes entries out of the tables that make room and have more than they may hold.
    pub(super) fn evict_surplus(&mut self, now: Nanos) {
        for table in self.pipeline.evicting() {
            let surplus = self.store.active(table).saturating_sub(self.pipeline.max_entries(table));
            if surplus > 0 {
                let mut gone = self.over(table, now);
                self.add_evictable(table, surplus as usize, &mut gone);
                self.remove_users(gone, FlowRemovedReason::Eviction, now);
            }
        }
    }

    /// Adds to entries whose timeout has passed, until they are `needed`, those of a table that go
    /// to make room, one after the other: of the group that has most then, the one of the least
    /// importance, and of those the one whose timeout would be over first. Entries without a
    /// timeout stay, and count for no group, and so do those whose timeout has passed. All of them
    /// have left the order of eviction then.
    fn add_evictable(&mut self, table: TableId, needed: usize, gone: &mut Vec<u32>) {
        let Some(parts) = self.pipeline.eviction_groups(table).filter(|_| gone.len() < needed)
        else {
            return;
        };
        let everything = EntryFilter::everything(&mut self.masks);
        self.store.order_evictions(table, parts, |store| {
            everything.entries(store, table.0..table.0.saturating_add(1))
        });
        gone.iter().for_each(|number| self.store.unrank(*number));
        let shared = &self.shared;
        while gone.len() < needed
            && let Some(number) = self.store.first_evictable(table, |id| shared.used(id))
        {
            self.store.unrank(number);
            gone.push(number);
        }
    }

    /// Drops the orders of tables that make no room any more.
    pub(super) fn forget_eviction_orders(&mut self) {
        let evicts = |table: &TableId| self.pipeline.eviction_groups(*table).is_some();
        self.store.eviction_orders.retain(|table, _| evicts(table));
    }

    /// Puts a new entry in the place of an equal one: its counts begin anew.
    fn exchange(&mut self, old: u32, head: EntryHead, flow_mod: &FlowMod, used: Used) -> EntryId {
        self.note_before(old);
        let gone = self.store.remove(old);
        let instructions = &flow_mod.instructions;
        let id = self.store.insert(gone.table, &gone.compiled, head, instructions, used.last);
        self.note_new(id);
        self.shared.clear_entry(id, used.last);
        if used.taught > Nanos(0) {
            self.shared.renew(id, used.taught);
        }
        self.sweeps.note_moved(id.0);
        let new = self.insert_op(id, gone.compiled);
        self.emit_op(Change::Exchange { old: gone.id, new });
        self.retire(gone.id);
        id
    }

    /// Makes an entry what an equal one would be, with the counts that it has.
    fn rewrite(&mut self, number: u32, head: EntryHead, flow_mod: &FlowMod) {
        self.note_before(number);
        self.store.set_instructions(number, &flow_mod.instructions);
        self.store.set_up(number, head.setup, head.priority);
        let entry = self.store.slab.get_mut(number);
        entry.cookie = head.cookie;
        entry.created = head.created;
        entry.idle_timeout_s = head.idle_timeout_s;
        entry.hard_timeout_s = head.hard_timeout_s;
        entry.flags = head.flags;
        self.store.arm(number, head.created);
        self.emit_replaced(number);
    }

    fn insert_op(&self, id: EntryId, compiled: CompiledMatch) -> Insert {
        let entry = self.store.slab.get(id.0);
        let table = self.store.tuple(entry).table;
        Insert {
            table,
            id,
            precedence: entry.precedence(),
            seq: entry.seq,
            origin: entry.origin(table, compiled.is_any()),
            life: entry.life(),
            instruction_list: self.store.instruction_lists.get(entry.instruction_list).clone(),
            compiled,
        }
    }

    pub(super) fn emit_replaced(&mut self, number: u32) {
        let entry = self.store.slab.get(number);
        let tuple = self.store.tuple(entry);
        let replace = Change::Replace {
            table: tuple.table,
            id: EntryId(number),
            origin: entry.origin(tuple.table, tuple.mask.words().is_empty()),
            life: entry.life(),
            instruction_list: self.store.instruction_lists.get(entry.instruction_list).clone(),
        };
        self.emit_op(replace);
    }

    /// Filter for the entries of a modify or delete. Only deletes look at ports and groups (clause
    /// 6.4).
    pub(super) fn filter(
        &mut self,
        flow_mod: &FlowMod,
        strict: Option<Strict>,
        is_delete: bool,
    ) -> EntryFilter {
        EntryFilter {
            compiled: CompiledMatch::of(&flow_mod.matching, &mut self.masks),
            strict,
            cookie: flow_mod.cookie,
            cookie_mask: flow_mod.cookie_mask,
            out_port: if is_delete { flow_mod.out_port } else { PortNo::ANY },
            out_group: if is_delete { flow_mod.out_group } else { GroupId::ANY },
        }
    }

    /// In 1.0 a modify that finds nothing adds, and one that finds something changes the cookie as
    /// well; in 1.3 it does neither.
    fn modify(
        &mut self,
        flow_mod: &FlowMod,
        mut selected: Vec<u32>,
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, Error> {
        selected.retain(|number| self.expired(*number, now).is_none());
        if !selected.is_empty() {
            self.check_list_memory(&flow_mod.instructions)?;
        }
        for number in &selected {
            self.modify_one(*number, flow_mod, version);
        }
        if selected.is_empty() && flow_mod.adds_where_none(version) {
            return self.add(flow_mod, version, now);
        }
        Ok(CommandCounts { modified: selected.len(), ..CommandCounts::default() })
    }

    pub(super) fn modify_one(&mut self, number: u32, flow_mod: &FlowMod, version: Version) {
        let watched = self.watched_before(number);
        let entry = self.store.slab.get(number);
        let cookie = flow_mod.given_cookie(version).unwrap_or(entry.cookie);
        if flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
            let setup = entry.setup;
            let head = EntryHead {
                cookie,
                setup,
                priority: entry.priority,
                idle_timeout_s: entry.idle_timeout_s,
                hard_timeout_s: entry.hard_timeout_s,
                flags: entry.flags,
                created: entry.created,
                seq: entry.seq,
            };
            self.store.setups.share(setup);
            let used = self.shared.used(EntryId(number));
            let id = self.exchange(number, head, flow_mod, used);
            self.note_moved(id.0, watched);
            return;
        }
        let recooked = entry.cookie != cookie;
        self.note_before(number);
        self.store.slab.get_mut(number).cookie = cookie;
        let changed = self.store.set_instructions(number, &flow_mod.instructions);
        if changed || recooked {
            self.emit_replaced(number);
            self.note_modified(number, watched);
        }
    }

    /// Removes the entries of a table without a flow-removed message; how many there were.
    pub(super) fn remove_silently(&mut self, table: TableId, now: Nanos) -> usize {
        let everything = EntryFilter::everything(&mut self.masks);
        let gone = everything.entries(&self.store, table.0..table.0.saturating_add(1));
        for number in &gone {
            self.store.slab.get_mut(*number).flags -= FlowModFlags::SEND_FLOW_REM;
        }
        self.remove_all(&gone, FlowRemovedReason::Delete, now).removed
    }

    /// Removes entries in the order given.
    fn remove_all(
        &mut self,
        selected: &[u32],
        reason: FlowRemovedReason,
        now: Nanos,
    ) -> CommandCounts {
        for number in selected {
            self.remove(*number, reason, now);
        }
        CommandCounts { removed: selected.len(), ..CommandCounts::default() }
    }

    /// Removes entries that something they use takes along, in the order of statistics.
    pub(super) fn remove_users(
        &mut self,
        mut selected: Vec<u32>,
        reason: FlowRemovedReason,
        now: Nanos,
    ) -> CommandCounts {
        selected.sort_unstable_by_key(|number| {
            let entry = self.store.slab.get(*number);
            (self.store.tuple(entry).table, entry.precedence().order(), entry.seq)
        });
        selected.dedup();
        self.remove_all(&selected, reason, now)
    }

    /// Removes at most `most` of the entries whose idle or hard timeout has passed (clause 5.5),
    /// the earliest first; those that one call removes go in the order of statistics. How long it
    /// takes does not depend on the number of entries that stay.
    pub fn expire(&mut self, now: Nanos, most: usize) -> CommandCounts {
        let fragments = self.shared.with_reassembler(|kept| kept.expire(now));
        self.counters.add_drops(DropReason::FragmentTimeout, fragments);
        let mut over = Vec::new();
        while over.len() < most
            && let Some((number, at, reason)) = self.first_expiry()
            && at <= now
        {
            let entry = self.store.slab.get(number);
            let (table, order) = (self.store.tuple(entry).table, entry.precedence().order());
            over.push((table, order, entry.seq, number, reason));
            // Out of the heap, so that the next one comes first.
            self.store.disarm(number);
        }
        over.sort_unstable_by_key(|(table, order, seq, ..)| (*table, *order, *seq));
        for (.., number, reason) in &over {
            self.remove(*number, *reason, now);
        }
        CommandCounts { removed: over.len(), ..CommandCounts::default() }
    }

    /// When the next entry expires if no packet matches it before; `None` when none does.
    #[must_use]
    pub fn next_expiry(&mut self) -> Option<Nanos> {
        self.first_expiry().map(|(_, at, _)| at)
    }

    fn first_expiry(&mut self) -> Option<(u32, Nanos, FlowRemovedReason)> {
        let shared = &self.shared;
        self.store.first_expiry(|id| shared.used(id))
    }
}
