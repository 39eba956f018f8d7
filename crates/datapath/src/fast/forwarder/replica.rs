//! The replica of a forwarder: its own copy of tables, groups, meters, ports and settings.
//!
//! Changed by ops between batches and only read while packets pass, so nothing here is shared and
//! nothing is locked but meters. Counters are the shared ones. It must never decide anything: that
//! is the business of its readers.

mod counts;
mod lookup;
mod summary;
mod teach;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use openflow::field::FIELDS;
use openflow::flow::FlowMod;
use openflow::{Action, Field, GroupId, Instruction, Learn, MeterId, PortNo, QueueId, TableId};

use self::summary::{GOTO, LOOK, MISS, PARTS, packed_of};

use super::super::classifier::{Classifier, Template, UnwildcardedBits};
use super::super::compiled_match::CompiledMatch;
use super::super::conjunction::Matched;
use super::super::ids::EntryId;
use super::super::learning::{Learning, Taught};
use super::super::op::{Change, Insert, InstructionList, Life};
use super::super::shared::{ForwarderCounters, GroupCounters, PortCounters, QueueCounters, Shared};
use super::bundle_progress::{BundleProgress, Mark};
use super::versions::{VersionIndex, Versions};
use crate::action_set::{EntryRef, FinTimeouts, Origin};
use crate::config::{DatapathConfig, Settings};
use crate::fast::interpreter::Surroundings;
use crate::fast::mix_hasher::BuildMixHasher;
use crate::fast::sys::prefetch;
use crate::groups::Groups;
use crate::macs::Station;
use crate::meters::Meter;
use crate::ports::Ports;
use crate::precedence::Precedence;
use crate::select::mix;
use crate::time::Nanos;

pub(super) use self::lookup::Found;
pub(super) use self::summary::{InstructionSummary, PackedSummary};

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

/// The counters of a port, and those of its queues that this forwarder has used.
#[derive(Debug)]
pub(super) struct TxCounters {
    counters: Arc<PortCounters>,
    queues: RefCell<BTreeMap<QueueId, Arc<QueueCounters>>>,
}

/// A forwarder's copy of everything that packets need.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) number: usize,
    seed: u64,
    shared: Arc<Shared>,
    pub(super) config: DatapathConfig,
    pub(super) settings: Settings,
    /// As far as there ever were entries: most datapaths use few of their tables.
    tables: Vec<Classifier>,
    /// The classifier of the others.
    no_entries: Classifier,
    /// Of each table, [`Self::is_conjunctive`].
    conjunctive: [bool; 256],
    /// Parts that a packet matched; kept for the room that it has.
    matched_parts: RefCell<Vec<Matched>>,
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
    /// The timeouts that entries are to have at most, of which control has been notified since they
    /// changed last.
    shortened: RefCell<HashMap<EntryId, Vec<FinTimeouts>, BuildMixHasher>>,
    ops_applied: u64,
}

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
            conjunctive: [false; 256],
            matched_parts: RefCell::default(),
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
            shortened: RefCell::default(),
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
            // Made in pieces, and no changes.
            Change::Bundle(_) | Change::PacketOut(..) | Change::Flush(_) => {}
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
        self.note_parts(*table, *id);
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
        self.conjunctive[usize::from(table.0)] &= !self.entries_of(table).is_empty();
    }

    /// Records that a table has an entry with parts in conjunctive matches, if it has them.
    fn note_parts(&mut self, table: TableId, id: EntryId) {
        let has_parts = self.entry(id).is_some_and(|entry| !entry.summary.parts.is_empty());
        self.conjunctive[usize::from(table.0)] |= has_parts;
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
        self.note_parts(table, *id);
    }

    /// The summary of a list of instructions that entries come to have, whose writes are noted.
    pub(super) fn note_list(
        &mut self,
        instruction_list: &Arc<InstructionList>,
        versions: &mut Versions,
    ) -> Arc<InstructionSummary> {
        let summary = self.summary_of(instruction_list);
        note_writes(summary.changes.iter().filter(|_| summary.next.is_some()), versions);
        let actions = summary.instructions().iter().flat_map(Instruction::all_actions);
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
            let actions = summary.instructions().iter().flat_map(Instruction::all_actions);
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

    fn put_entry(&mut self, id: EntryId, mut entry: ReplicaEntry) {
        let index = id.0 as usize;
        entry.origin.entry = EntryRef(Some(id.0.into()));
        self.shortened.get_mut().remove(&id);
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
        self.note_reads(instruction_list.instructions.iter().flat_map(Instruction::all_actions));
        summary
    }

    fn note_reads<'a>(&mut self, actions: impl Iterator<Item = &'a Action>) {
        let reads = |action: &'a Action| {
            let learnt = action.learns().into_iter().flat_map(Learn::reads);
            action.reads().iter().chain(action.hashes()).copied().chain(learnt)
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
        let number = packed & !(MISS | PARTS);
        let summary = self.summaries.get(number as usize).and_then(Option::as_deref);
        summary.map_or(PackedSummary::Look, |summary| match packed & PARTS {
            0 => PackedSummary::Summary(summary, packed & MISS != 0),
            _ => PackedSummary::Parts(&summary.parts),
        })
    }

    /// Another op has been applied.
    pub(super) fn note_applied(&mut self) {
        self.ops_applied += 1;
    }

    /// A meter.
    pub(super) fn meter(&self, id: MeterId) -> Option<&Arc<Mutex<Meter>>> {
        self.meters.get(&id)
    }

    /// Settings, groups and ports beside the tables.
    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { settings: &self.settings, groups: &self.groups, ports: &self.ports }
    }

    /// Whether some group chooses between buckets.
    pub(super) fn has_select(&self) -> bool {
        self.groups.has_select()
    }

    /// The fields that such choices follow from.
    pub(super) fn select_fields(&self) -> BTreeSet<Field> {
        self.groups.select_fields()
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

/// Records the fields of the packet that actions write before another table is looked up.
fn note_writes<'a>(actions: impl Iterator<Item = &'a Action>, versions: &mut Versions) {
    let fields = actions.flat_map(Action::writes);
    for field in fields.filter(|field| !field.row().place.is_beside_packet()) {
        versions.write(*field);
    }
}
