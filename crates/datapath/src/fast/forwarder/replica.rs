//! The replica of a forwarder: its own copy of tables, groups, meters, ports and settings.
//!
//! Changed by ops between batches and only read while packets pass, so nothing here is shared and
//! nothing is locked but meters. Counters are the shared ones. It must never decide anything: that
//! is the business of its readers.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use openflow::field::FIELDS;
use openflow::flow::FlowMod;
use openflow::instruction::ActionsRun;
use openflow::{
    Action, Field, GroupId, Instruction, InstructionKind, Learn, MeterId, PortNo, QueueId, TableId,
};
use packet::{FlowKey, Registers};

use super::super::classifier::{Classifier, Template, UnwildcardedBits};
use super::super::compiled_match::CompiledMatch;
use super::super::conjunction::{self, Part};
use super::super::ids::EntryId;
use super::super::learning::{Learning, Taught};
use super::super::op::{Change, Insert, InstructionList, Life, Used};
use super::super::shared::{
    ForwarderCounters, GroupCounters, PortCell, PortCounters, QueueCounters, Shared,
};
use super::bundle_progress::{BundleProgress, Mark};
use super::versions::{VersionIndex, Versions};
use crate::action_set::Origin;
use crate::config::{DatapathConfig, Settings};
use crate::counter::{Counter, DropReason};
use crate::fast::interpreter::{Surroundings, header_effect, register_write};
use crate::fast::mix_hasher::BuildMixHasher;
use crate::fast::sys::prefetch;
use crate::groups::Groups;
use crate::macs::Station;
use crate::meters::Meter;
use crate::ports::Ports;
use crate::precedence::Precedence;
use crate::select::mix;
use crate::time::Nanos;

/// A flow entry. It stays readable after its removal, until its id is given to another one, so
/// that its last counts still find their table. It lies on one cache line: of a lookup through 64
/// tables a third was waiting for the second line of entries that lay on two.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ReplicaEntry {
    pub(super) table: TableId,
    pub(super) origin: Origin,
    pub(super) life: Life,
    pub(super) summary: Arc<InstructionSummary>,
    /// The packets that its change can concern.
    pub(super) version_index: VersionIndex,
    /// The packets that do not count it.
    pub(super) mark: Mark,
}

/// All that a lookup has to know of most entries: it decides where the packet goes on.
///
/// It takes four bytes, so that those of 60,000 entries lie in a near cache: a lookup in 64 tables
/// waited for the lines of entries, two for each table, for a third of its time.
#[derive(Clone, Copy, Debug)]
pub(super) enum PackedSummary<'a> {
    /// Nothing but this happens to the packet; the entry lives for ever.
    Goto(TableId),
    /// The entry lives for ever; whether it is a table-miss entry.
    Summary(&'a InstructionSummary, bool),
    /// The entry must be looked at.
    Look,
}

/// The mark of a goto, that of a table-miss entry's summary, and a number that no summary has, for
/// an entry that must be looked at.
const GOTO: u32 = 1 << 31;
const MISS: u32 = 1 << 30;
const LOOK: u32 = MISS - 1;

/// Knowledge of an instruction list for lookups, made once for all entries that have it.
#[derive(Debug)]
pub(super) struct InstructionSummary {
    /// Never given twice, unlike the instruction list's number.
    pub(super) id: u32,
    instruction_list: Arc<InstructionList>,
    /// The table to go on in, by a goto or by a resubmit after which the entry does nothing.
    pub(super) next: Option<TableId>,
    /// Metadata bits that are written, and which.
    pub(super) metadata: Option<(u64, u64)>,
    /// Whether it does nothing but lead to the next table, perhaps writing metadata.
    pub(super) is_plain: bool,
    /// Applied actions that change what later tables see, in their order.
    pub(super) changes: Box<[Action]>,
    /// Values and masks that they write, where all of them write registers.
    pub(super) register_writes: Option<(Registers, Registers)>,
    /// The meter, which comes before everything else.
    pub(super) meter: Option<MeterId>,
    /// Whether one of its actions has a table searched, and whether that is `next`.
    resubmits: bool,
    resubmits_to_next: bool,
    /// Its parts in conjunctive matches; a lookup ends with no entry that has any.
    parts: Box<[Part]>,
}

/// The entry that a lookup ends with.
pub(super) struct Found<'a> {
    pub(super) id: EntryId,
    pub(super) entry: &'a ReplicaEntry,
    /// Whether nothing but the entry itself may expire so that another one is found.
    pub(super) is_lasting: bool,
}

impl InstructionSummary {
    fn new(id: u32, instruction_list: &Arc<InstructionList>) -> Self {
        let mut summary = Self {
            id,
            instruction_list: Arc::clone(instruction_list),
            next: None,
            metadata: None,
            is_plain: true,
            changes: Box::default(),
            register_writes: None,
            meter: None,
            resubmits: false,
            resubmits_to_next: false,
            parts: conjunction::parts(&instruction_list.instructions).collect(),
        };
        for instruction in &instruction_list.instructions {
            summary.next = summary.next.or_else(|| instruction.goto_table());
            summary.metadata = summary.metadata.or_else(|| instruction.metadata());
            summary.meter = summary.meter.or_else(|| instruction.meter());
            summary.is_plain &= instruction.only_leads_on();
            summary.resubmits |= instruction.actions().iter().any(Action::resubmits);
            if instruction.kind().row().actions == ActionsRun::AtOnce {
                let changes = instruction.actions().iter().filter(|a| header_effect(a).rewrites());
                summary.changes = changes.cloned().collect();
            }
        }
        // No table comes after an exit or a pause.
        let mut actions = instruction_list.instructions.iter().flat_map(Instruction::actions);
        if actions.any(Action::ends_lists) {
            summary.next = None;
        } else if let Some(next) = last_resubmit(&instruction_list.instructions) {
            (summary.next, summary.resubmits_to_next) = (Some(next), true);
        }
        summary.register_writes = register_writes(&summary.changes);
        summary
    }

    /// Whether a walk has to find out what follows its entries in this table: they have others
    /// searched than a later one at their end.
    #[inline]
    pub(super) fn is_recorded_in(&self, table: TableId) -> bool {
        self.resubmits && !(self.resubmits_to_next && self.next > Some(table))
    }

    pub(super) fn instructions(&self) -> &[Instruction] {
        &self.instruction_list.instructions
    }
}

/// The table that an entry resubmits to, from the packet's own port, if it does so once and nothing
/// after that. But for a packet that matches nothing there this is a goto.
fn last_resubmit(instructions: &[Instruction]) -> Option<TableId> {
    let is_early = |one: &Instruction| one.kind() as u8 <= InstructionKind::ApplyActions as u8;
    let actions = instructions.iter().flat_map(Instruction::actions);
    let number = actions.clone().filter(|action| action.resubmits()).count();
    let Some(Action::ResubmitTable { port, table }) = actions.last() else { return None };
    let is_it = number == 1 && port.port() == PortNo::IN_PORT && *table != TableId::ALL;
    (is_it && instructions.iter().all(is_early)).then_some(*table)
}

/// The values and the mask that actions write to registers; none where one does anything else.
fn register_writes(actions: &[Action]) -> Option<(Registers, Registers)> {
    let (mut values, mut all) = (Registers::ZERO, Registers::ZERO);
    for action in actions {
        let (number, mask, value) = register_write(action)?;
        values.set(number, values.get(number) & !mask | value);
        all.set(number, all.get(number) | mask);
    }
    Some((values, all))
}

/// The counters of a port, and those of its queues that this forwarder has used.
#[derive(Debug)]
pub(super) struct TxCounters {
    counters: Arc<PortCounters>,
    queues: RefCell<BTreeMap<QueueId, Arc<QueueCounters>>>,
}

/// A forwarder's copy of everything that packets need.
#[derive(Debug)]
pub(super) struct Replica {
    number: usize,
    seed: u64,
    shared: Arc<Shared>,
    pub(super) config: DatapathConfig,
    pub(super) settings: Settings,
    /// As far as there ever were entries: most datapaths use few of their tables.
    tables: Vec<Classifier>,
    /// The classifier of the others.
    no_entries: Classifier,
    forced: Option<Template>,
    is_plain: bool,
    entries: Vec<Option<ReplicaEntry>>,
    /// For each entry, its [`PackedSummary`] as a number.
    packed: Vec<u32>,
    /// By the numbers of instruction lists.
    summaries: Vec<Option<Arc<InstructionSummary>>>,
    summaries_made: u32,
    pub(super) groups: Groups,
    group_counters: HashMap<GroupId, Arc<GroupCounters>, BuildMixHasher>,
    meters: HashMap<MeterId, Arc<Mutex<Meter>>, BuildMixHasher>,
    pub(super) ports: Ports,
    tx_counters: HashMap<PortNo, TxCounters, BuildMixHasher>,
    /// Whether the fields that select groups look at are in every key.
    pub(super) keys_have_select_fields: bool,
    /// Fields of the packet that actions of entries and groups read, ever since: bit
    /// `field as u32`. They are in every key, so that what is copied from them follows from it.
    read_fields: u64,
    /// Whether an entry or group has tables searched while a list runs, ever since: then another
    /// table may be looked up after any action.
    has_resubmits: bool,
    /// Whether some entry looks at the DSCP.
    pub(super) is_dscp_matched: bool,
    /// Whether some table's entries look at other bits than before.
    pub(super) is_mask_stale: bool,
    /// Whether something changed that programs have in them: groups, ports, settings.
    pub(super) has_changed: bool,
    /// The bundle under way.
    pub(super) bundle: Option<BundleProgress>,
    /// The entries that packets teach. Packets choose the keys: so the hasher is the standard's.
    learnings: RefCell<HashMap<FlowMod, Arc<Learning>>>,
    /// Those among them that control has to look at.
    taught: RefCell<Vec<Taught>>,
    ops_applied: u64,
}

/// Entries that packets of one forwarder teach and that it keeps in mind; more begin anew.
const LEARNINGS_MAX: usize = 1 << 16;

impl Replica {
    pub(super) fn new(
        config: &DatapathConfig,
        shared: Arc<Shared>,
        number: usize,
        seed: u64,
    ) -> Self {
        Self {
            number,
            seed,
            shared,
            config: config.clone(),
            settings: config.settings,
            tables: Vec::new(),
            no_entries: Classifier::new(mix(seed)),
            forced: None,
            is_plain: false,
            entries: Vec::new(),
            packed: Vec::new(),
            summaries: Vec::new(),
            summaries_made: 0,
            groups: Groups::default(),
            group_counters: HashMap::default(),
            meters: HashMap::default(),
            ports: Ports::default(),
            tx_counters: HashMap::default(),
            keys_have_select_fields: false,
            read_fields: 0,
            has_resubmits: false,
            is_dscp_matched: false,
            is_mask_stale: false,
            has_changed: false,
            bundle: None,
            learnings: RefCell::default(),
            taught: RefCell::default(),
            ops_applied: 0,
        }
    }

    /// Applies a change, and has `versions` note what it is about.
    pub(super) fn apply(&mut self, change: Change, versions: &mut Versions) {
        match change {
            Change::Insert(insert) => self.insert(&insert, versions),
            Change::Exchange { old, new } => {
                self.leave_table(new.table, &new.compiled, new.precedence, old);
                self.insert(&new, versions);
            }
            Change::Replace { id, ref instruction_list, .. } => {
                self.note_list(instruction_list, versions);
                versions.change(self.version_of(id));
                self.replace(&change);
            }
            Change::Remove { table, id, compiled, precedence } => {
                self.leave_table(table, &compiled, precedence, id);
                versions.change(versions.index_of(&compiled));
            }
            Change::Group { id, group } => {
                versions.change_all();
                self.has_changed = true;
                let buckets = group.iter().flat_map(|state| state.group.buckets());
                let actions = buckets.flat_map(|bucket| &bucket.actions);
                self.note_reads(actions.clone());
                let resubmits = actions.clone().any(Action::resubmits);
                note_writes(actions.filter(|_| self.has_resubmits), versions);
                let counters = group.as_ref().map(|state| Arc::clone(&state.counters));
                self.groups.put(id, group.map(|state| state.group.clone()));
                self.note_resubmits(resubmits, versions);
                match counters {
                    Some(counters) => drop(self.group_counters.insert(id, counters)),
                    None => drop(self.group_counters.remove(&id)),
                }
            }
            Change::Meter { id, meter } => {
                versions.change_all();
                match meter {
                    Some(meter) => drop(self.meters.insert(id, meter)),
                    None => drop(self.meters.remove(&id)),
                }
            }
            Change::Port { port, state } => {
                versions.change_all();
                self.has_changed = true;
                let counters = state.as_ref().map(|state| Arc::clone(&state.counters));
                self.ports.put(port, state.map(|state| state.port.clone()));
                match counters {
                    Some(counters) => self.put_tx_counters(port, counters),
                    None => drop(self.tx_counters.remove(&port)),
                }
            }
            Change::Mirrors(mirrors) => {
                versions.change_all();
                self.has_changed = true;
                self.is_mask_stale = true;
                self.ports.set_mirrors(mirrors);
            }
            Change::Settings(settings) => {
                versions.change_all();
                self.has_changed = true;
                self.settings = settings;
            }
            // Made in pieces, and no change.
            Change::Bundle(_) | Change::Flush(_) => {}
        }
    }

    fn insert(&mut self, insert: &Insert, versions: &mut Versions) {
        let version_index = self.enter(insert, Mark::default(), versions);
        versions.change(version_index);
        self.enter_table(insert);
    }

    /// Enters a new entry, but for its table; the version that this raises.
    pub(super) fn enter(
        &mut self,
        insert: &Insert,
        mark: Mark,
        versions: &mut Versions,
    ) -> VersionIndex {
        let Insert { table, id, compiled, origin, life, instruction_list, .. } = insert;
        let summary = self.note_list(instruction_list, versions);
        let version_index = versions.index_of(compiled);
        let (table, origin, life) = (*table, *origin, *life);
        self.put_entry(*id, ReplicaEntry { table, origin, life, summary, version_index, mark });
        version_index
    }

    /// Puts a new entry in its table.
    pub(super) fn enter_table(&mut self, insert: &Insert) {
        let Insert { table, id, compiled, precedence, seq, .. } = insert;
        self.table(*table, |table| table.insert(compiled, *precedence, *seq, *id));
    }

    /// Takes an entry out of its table.
    pub(super) fn leave_table(
        &mut self,
        table: TableId,
        compiled: &CompiledMatch,
        precedence: Precedence,
        id: EntryId,
    ) {
        self.table(table, |table| table.remove(compiled, precedence, id));
    }

    /// Puts a new entry in its table in the place of one that it takes over from.
    pub(super) fn exchange(&mut self, old: EntryId, new: &Insert) {
        self.leave_table(new.table, &new.compiled, new.precedence, old);
        self.enter_table(new);
    }

    /// Makes an entry what a [`Change::Replace`] says; its mark stays.
    pub(super) fn replace(&mut self, change: &Change) {
        let Change::Replace { table, id, origin, life, instruction_list } = change else { return };
        let summary = self.summary_of(instruction_list);
        let known = self.entry(*id).map(|entry| (entry.version_index, entry.mark));
        let (version_index, mark) = known.unwrap_or((VersionIndex::ALL, Mark::default()));
        let (table, origin, life) = (*table, *origin, *life);
        self.put_entry(*id, ReplicaEntry { table, origin, life, summary, version_index, mark });
    }

    /// The summary of a list of instructions that entries come to have, whose writes are noted.
    pub(super) fn note_list(
        &mut self,
        instruction_list: &Arc<InstructionList>,
        versions: &mut Versions,
    ) -> Arc<InstructionSummary> {
        let summary = self.summary_of(instruction_list);
        note_writes(summary.changes.iter().filter(|_| summary.next.is_some()), versions);
        let actions = summary.instructions().iter().flat_map(Instruction::actions);
        note_writes(actions.filter(|_| self.has_resubmits), versions);
        self.note_resubmits(summary.resubmits, versions);
        summary
    }

    /// Records that something resubmits. With the first that does, what anything writes comes
    /// before a search.
    fn note_resubmits(&mut self, resubmits: bool, versions: &mut Versions) {
        if !resubmits || self.has_resubmits {
            return;
        }
        self.has_resubmits = true;
        for summary in self.summaries.iter().flatten() {
            let actions = summary.instructions().iter().flat_map(Instruction::actions);
            note_writes(actions, versions);
        }
        for group in self.groups.all() {
            note_writes(group.buckets().iter().flat_map(|bucket| &bucket.actions), versions);
        }
    }

    /// Whether an entry or group has tables searched while a list runs, or had.
    pub(super) fn has_resubmits(&self) -> bool {
        self.has_resubmits
    }

    /// Changes the mark of an entry, which must be looked at while it has one.
    pub(super) fn set_mark(&mut self, id: EntryId, change: impl FnOnce(&mut Mark)) {
        let index = id.0 as usize;
        if let Some(Some(entry)) = self.entries.get_mut(index) {
            change(&mut entry.mark);
            self.packed[index] = packed_of(entry);
        }
    }

    /// Changes a table, and notes whether its entries look at other bits then.
    fn table<T>(&mut self, id: TableId, change: impl FnOnce(&mut Classifier) -> T) {
        for table in self.tables.len()..=usize::from(id.0) {
            let mut made = Classifier::new(mix(self.seed ^ table as u64));
            made.force(self.forced);
            made.set_plain(self.is_plain);
            self.tables.push(made);
        }
        if let Some(table) = self.tables.get_mut(usize::from(id.0)) {
            let before = table.unwildcarded_version();
            change(table);
            self.is_mask_stale |= table.unwildcarded_version() != before;
        }
    }

    fn put_entry(&mut self, id: EntryId, entry: ReplicaEntry) {
        let index = id.0 as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
            self.packed.resize(index + 1, LOOK);
        }
        self.packed[index] = packed_of(&entry);
        self.entries[index] = Some(entry);
    }

    fn put_tx_counters(&mut self, port: PortNo, counters: Arc<PortCounters>) {
        let known = self.tx_counters.get(&port);
        if !known.is_some_and(|tx| Arc::ptr_eq(&tx.counters, &counters)) {
            self.tx_counters.insert(port, TxCounters { counters, queues: RefCell::default() });
        }
    }

    fn summary_of(&mut self, instruction_list: &Arc<InstructionList>) -> Arc<InstructionSummary> {
        let number = instruction_list.number as usize;
        if self.summaries.len() <= number {
            self.summaries.resize(number + 1, None);
        }
        let held = &mut self.summaries[number];
        if let Some(summary) = held
            && (Arc::ptr_eq(&summary.instruction_list, instruction_list)
                || summary.instruction_list.instructions == instruction_list.instructions)
        {
            return Arc::clone(summary);
        }
        self.summaries_made = self.summaries_made.wrapping_add(1);
        let summary = Arc::new(InstructionSummary::new(self.summaries_made, instruction_list));
        *held = Some(Arc::clone(&summary));
        self.note_reads(instruction_list.instructions.iter().flat_map(Instruction::actions));
        summary
    }

    fn note_reads<'a>(&mut self, actions: impl Iterator<Item = &'a Action>) {
        let reads = |action: &'a Action| {
            let learnt = action.learns().into_iter().flat_map(Learn::reads);
            action.reads().iter().copied().chain(learnt)
        };
        for field in actions.flat_map(reads) {
            if !field.row().place.is_beside_packet() && !self.has_in_keys(field) {
                self.read_fields |= 1 << field as u32;
                self.is_mask_stale = true;
            }
        }
    }

    /// Whether a field is in every key because some action reads it.
    pub(super) fn has_in_keys(&self, field: Field) -> bool {
        self.read_fields >> field as u32 & 1 != 0
    }

    /// The fields that are in every key because some action reads them.
    pub(super) fn read_fields(&self) -> impl Iterator<Item = Field> {
        FIELDS.iter().map(|row| row.field).filter(|field| self.has_in_keys(*field))
    }

    /// Counters of this forwarder.
    #[inline]
    pub(super) fn counters(&self) -> &ForwarderCounters {
        self.shared.of_forwarder(self.number)
    }

    /// The state that all forwarders share.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The port behind which a station is, so far as is known.
    pub(super) fn port_of(&self, station: Station, now: Nanos) -> Option<PortNo> {
        self.shared.with_macs(|macs| macs.port(station, &self.config, now))
    }

    /// Stations are seen behind ports.
    pub(super) fn learn(&self, learnt: impl Iterator<Item = (Station, PortNo)>, now: Nanos) {
        let moved = self.shared.learn(learnt, &self.config, now);
        self.counters().stations_moved.add(moved);
    }

    /// Forces a template upon all tables, from the next entry on.
    pub(super) fn force(&mut self, template: Option<Template>) {
        self.forced = template;
        self.tables.iter_mut().for_each(|table| table.force(template));
    }

    /// Says whether plain code is to do what the processor has wide instructions for.
    pub(super) fn set_plain(&mut self, is_plain: bool) {
        self.is_plain = is_plain;
        self.tables.iter_mut().for_each(|table| table.set_plain(is_plain));
    }

    /// A flow table.
    #[inline]
    pub(super) fn entries_of(&self, table: TableId) -> &Classifier {
        self.tables.get(usize::from(table.0)).unwrap_or(&self.no_entries)
    }

    /// An entry, also a removed one whose id was not given away.
    #[inline]
    pub(super) fn entry(&self, id: EntryId) -> Option<&ReplicaEntry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    /// Asks for an entry.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        if let Some(entry) = self.entries.get(number as usize) {
            prefetch(entry);
        }
    }

    /// Prefetches for [`Self::packed`].
    #[inline]
    pub(super) fn prefetch_packed(&self, number: u32) {
        if let Some(packed) = self.packed.get(number as usize) {
            prefetch(packed);
        }
    }

    /// The summary of an entry that a lookup found, by its number.
    #[inline]
    pub(super) fn packed(&self, number: u32) -> PackedSummary<'_> {
        let packed = self.packed.get(number as usize).copied().unwrap_or(LOOK);
        if packed & GOTO != 0 {
            return PackedSummary::Goto(TableId(packed as u8));
        }
        let summary = self.summaries.get((packed & !MISS) as usize).and_then(Option::as_deref);
        summary.map_or(PackedSummary::Look, |summary| {
            PackedSummary::Summary(summary, packed & MISS != 0)
        })
    }

    /// When an entry is over if nothing uses or teaches it after now; all ones for never.
    pub(super) fn ends_at(&self, id: EntryId, life: Life, now: Nanos) -> u64 {
        let hard = life.hard_at(self.shared.used(id).taught).map_or(u64::MAX, |at| at.0);
        let idle = life.idle_at(now).map_or(u64::MAX, |at| at.0);
        hard.min(idle)
    }

    /// Whether an entry's time is over.
    #[inline]
    pub(super) fn is_over(&self, id: EntryId, life: Life, now: Nanos) -> bool {
        life.is_limited() && life.is_over(self.shared.used(id), now)
    }

    /// The learning of an entry that a packet teaches: one for all packets that teach the same.
    pub(super) fn learning(&self, flow_mod: FlowMod) -> Arc<Learning> {
        let mut learnings = self.learnings.borrow_mut();
        if let Some(known) = learnings.get(&flow_mod) {
            return Arc::clone(known);
        }
        if learnings.len() >= LEARNINGS_MAX {
            learnings.clear();
        }
        let made = Arc::new(Learning::new(flow_mod.clone()));
        learnings.insert(flow_mod, Arc::clone(&made));
        made
    }

    /// A packet teaches an entry: one that is there is renewed, and any other is for control.
    pub(super) fn teach(&self, learning: &Arc<Learning>, now: Nanos) {
        if let Some(id) = learning.known() {
            let is_over = self.entry(id).is_some_and(|entry| self.is_over(id, entry.life, now));
            if !is_over && !self.is_taught_otherwise(learning) {
                return self.shared.renew(id, now);
            }
            // It is not taken away yet, or not changed yet: then it is what it is taught last.
            learning.set_unknown();
        }
        if !learning.begin() {
            return;
        }
        if !self.shared.learning_waits() {
            learning.set_unknown();
            return self.count(Counter::LearnsRefused, 1);
        }
        let (learning, ops_applied) = (Arc::clone(learning), self.ops_applied);
        self.taught.borrow_mut().push(Taught { learning, at: now, ops_applied });
    }

    /// Whether the same entry waits for control with other actions.
    fn is_taught_otherwise(&self, learning: &Learning) -> bool {
        let place = |of: &FlowMod| (of.table_id, of.priority);
        let is_it = |waiting: &Taught| {
            let (one, other) = (&waiting.learning.flow_mod, &learning.flow_mod);
            place(one) == place(other) && one.matching == other.matching
        };
        self.taught.borrow().iter().any(is_it)
    }

    /// Another op has been applied.
    pub(super) fn note_applied(&mut self) {
        self.ops_applied += 1;
    }

    /// Moves what packets have taught to the end of a list, for control.
    pub(super) fn take_taught(&mut self, into: &mut Vec<Taught>) {
        into.append(self.taught.get_mut());
    }

    /// The entry that a packet matches in a table.
    pub(super) fn lookup(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<Found<'_>> {
        let found = self.entries_of(table).lookup(key)?;
        self.alive(table, key, found, now)
    }

    /// Whether packets do not count an entry: its time is over, or a bundle hides it.
    #[inline]
    fn is_passed_over(&self, id: EntryId, entry: &ReplicaEntry, now: Nanos) -> bool {
        self.is_over(id, entry.life, now) || !self.is_counted(entry)
    }

    /// The entry that a lookup found, or the one that it ends with when packets do not count that
    /// or it has parts in conjunctive matches.
    #[inline]
    pub(super) fn alive(
        &self,
        table: TableId,
        key: &FlowKey,
        found: EntryId,
        now: Nanos,
    ) -> Option<Found<'_>> {
        let entry = self.entry(found)?;
        if entry.summary.parts.is_empty() && !self.is_passed_over(found, entry, now) {
            return Some(Found { id: found, entry, is_lasting: true });
        }
        self.next_alive(table, key, now)
    }

    #[cold]
    fn next_alive(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<Found<'_>> {
        let table = self.entries_of(table);
        let counted = |id| self.entry(id).filter(|entry| !self.is_passed_over(id, entry, now));
        let (mut matched, mut is_lasting) = (Vec::new(), true);
        let single = table.lookup_if(key, |order, id| {
            let Some(entry) = counted(id) else { return false };
            let parts = &entry.summary.parts;
            matched.extend(parts.iter().map(|part| (order, *part)));
            is_lasting &= parts.is_empty() || !entry.life.is_limited();
            parts.is_empty()
        });
        let is_single = |id| counted(id).is_some_and(|entry| entry.summary.parts.is_empty());
        let (_, id) = conjunction::resolve(matched, single, |conj_id| {
            let mut key = key.clone();
            key.set(Field::ConjId, conj_id.into());
            table.lookup_if(&key, |_, id| is_single(id))
        })?;
        // An entry of a conjunctive match that expires can only take the conjunction away.
        let is_lasting = is_lasting || single.is_some_and(|(_, single)| single == id);
        Some(Found { id, entry: self.entry(id)?, is_lasting })
    }

    /// A meter.
    pub(super) fn meter(&self, id: MeterId) -> Option<&Arc<Mutex<Meter>>> {
        self.meters.get(&id)
    }

    /// When an entry was used, as far as its end hangs on that.
    pub(super) fn used(&self, id: EntryId) -> Used {
        self.shared.used(id)
    }

    /// Counts a lookup in a table without a match.
    pub(super) fn count_miss(&self, table: TableId, packets: u64) {
        if let Some(cell) = self.counters().table(table) {
            cell.lookups.add(packets);
        }
    }

    /// Counts packets that matched an entry.
    pub(super) fn count_hit(&self, table: TableId, id: EntryId, packets: u64, bytes: u64) {
        let own = self.counters();
        if let Some(cell) = own.table(table) {
            cell.lookups.add(packets);
            cell.matches.add(packets);
        }
        own.entries.add(id, packets, bytes);
    }

    /// Marks an entry with an idle timeout as used, at once.
    #[inline]
    pub(super) fn touch(&self, id: EntryId, life: Life, now: Nanos) {
        if life.idle_timeout_s != 0 {
            self.counters().entries.touch(id, now);
        }
    }

    /// Counts packets that a port refused to take in.
    pub(super) fn count_rx_dropped(&self, in_port: PortNo, packets: u64) {
        if let Some(cell) = self.port_cell(in_port) {
            cell.rx_dropped.add(packets);
        }
    }

    /// Counts a drop.
    #[inline]
    pub(super) fn count_drops(&self, reason: DropReason, packets: u64) {
        self.counters().add_drops(reason, packets);
    }

    /// Adds to a counter of the datapath.
    #[inline]
    pub(super) fn count(&self, counter: Counter, amount: u64) {
        self.counters().add(counter, amount);
    }

    /// This forwarder's counters of a port.
    #[inline]
    pub(super) fn port_cell(&self, port: PortNo) -> Option<&PortCell> {
        self.tx_counters.get(&port)?.counters.cells().get(self.number)
    }

    /// Counts packets that leave by a port.
    pub(super) fn count_tx(
        &self,
        port: PortNo,
        queue: Option<QueueId>,
        packets: u64,
        bytes: u64,
        now: Nanos,
    ) {
        self.count(Counter::Outputs, packets);
        let Some(counters) = self.tx_counters.get(&port) else { return };
        if let Some(cell) = counters.counters.cells().get(self.number) {
            cell.tx.add(packets, bytes);
        }
        if let Some(queue) = queue {
            let mut queues = counters.queues.borrow_mut();
            let counters =
                queues.entry(queue).or_insert_with(|| counters.counters.queue(queue, now));
            if let Some(cell) = counters.cells().get(self.number) {
                cell.add(packets, bytes);
            }
        }
    }

    /// Counts packets of a group.
    pub(super) fn count_group(&self, id: GroupId, packets: u64, bytes: u64) {
        let cell = self.group_counters.get(&id).and_then(|group| group.group(self.number));
        if let Some(cell) = cell {
            cell.add(packets, bytes);
        }
    }

    /// Counts packets of a bucket.
    pub(super) fn count_bucket(&self, id: GroupId, bucket: usize, packets: u64, bytes: u64) {
        let group = self.group_counters.get(&id);
        if let Some(cell) = group.and_then(|group| group.bucket(self.number, bucket)) {
            cell.add(packets, bytes);
        }
    }

    /// Settings, groups and ports beside the tables.
    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { settings: &self.settings, groups: &self.groups, ports: &self.ports }
    }

    /// Whether some group chooses between buckets.
    pub(super) fn has_select(&self) -> bool {
        self.groups.has_select()
    }

    /// The bits that the entries of all tables look at.
    pub(super) fn unwildcarded(&self) -> UnwildcardedBits {
        let mut unwildcarded = UnwildcardedBits::default();
        for table in &self.tables {
            let own = table.unwildcarded();
            unwildcarded.present |= own.present;
            for (word, bits) in unwildcarded.words.iter_mut().zip(&own.words) {
                *word |= bits;
            }
        }
        unwildcarded
    }
}

/// The number of an entry's packed summary.
fn packed_of(entry: &ReplicaEntry) -> u32 {
    let summary = &entry.summary;
    let is_partial = !summary.parts.is_empty();
    if entry.life.is_limited() || entry.mark != Mark::default() || is_partial {
        return LOOK;
    }
    match summary.next.filter(|_| summary.is_plain && summary.metadata.is_none()) {
        Some(next) => GOTO | u32::from(next.0),
        // Numbers are those of slots, so that there are never nearly as many.
        None if entry.origin.is_miss => MISS | summary.instruction_list.number,
        None => summary.instruction_list.number,
    }
}

/// Records the fields of the packet that actions write before another table is looked up.
fn note_writes<'a>(actions: impl Iterator<Item = &'a Action>, versions: &mut Versions) {
    let fields = actions.flat_map(Action::writes);
    for field in fields.filter(|field| !field.row().place.is_beside_packet()) {
        versions.write(*field);
    }
}
