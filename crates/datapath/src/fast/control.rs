//! The state that commands change: flow entries, groups, meters, ports and settings.
//!
//! Control carries out everything that a switch asks of a datapath except packets, with the rules
//! of the reference and without its walks over all entries. It sends nothing: the agent takes the
//! ops that its commands make, in order, for the shards, and the entries that
//! a command removed are reported when every forwarder has flushed what it counted of them, so that
//! their last counts are exact. It must never wait for a forwarder.

mod bundle;
mod dump;
mod evictions;
mod filter;
mod flow_mod;
mod groups;
mod index;
mod instruction_lists;
mod learn;
mod meters;
mod ports;
mod removals;
mod saved;
mod setup;
mod slab;
mod stats;
mod store;
mod sweep;
mod timers;
mod trace;
mod tuples;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use openflow::table::{TableFeatures, TableMod, TableStatus};
use openflow::{Error, GroupId, PortNo, TableId, Version};

use self::bundle::Savepoint;
pub use self::dump::Dump;
use self::meters::MeterTable;
pub use self::removals::CommandCounts;
use self::removals::Removals;
pub use self::saved::{
    Changed, Restored, Saved, SavedCounts, SavedEntry, SavedGroup, SavedInstructions, SavedMeter,
};
use self::store::Store;
use self::sweep::Sweeps;
pub use self::sweep::{CommandProgress, Sweep};
pub use self::watch::WatchedChange;
use super::compiled_match::Masks;
use super::forwarder::{Forwarder, KernelTable};
use super::ids::{EntryId, Ticket};
use super::learning::{Learning, Taught};
use super::mix_hasher::BuildMixHasher;
use super::op::{Change, Op};
use super::shared::{GroupCounters, PortCounters, Shared};
use crate::config::{DatapathConfig, Settings};
use crate::counter::DatapathCounters;
use crate::groups::Groups;
use crate::memory::{MemoryBudget, MemoryNeed, Peak};
use crate::pipeline::{FlowTable, Pipeline};
use crate::ports::Ports;
use crate::time::Nanos;

/// Choice of the removed entries that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReport {
    /// Those that asked for a flow-removed message (`OFPFF_SEND_FLOW_REM`).
    Asked,
    /// All.
    All,
}

/// The state of a datapath with several forwarders.
#[derive(Debug)]
pub struct Control {
    config: DatapathConfig,
    settings: Settings,
    pipeline: Pipeline,
    store: Store,
    masks: Masks,
    groups: Groups,
    group_counters: BTreeMap<GroupId, Arc<GroupCounters>>,
    meters: MeterTable,
    ports: Ports,
    port_counters: BTreeMap<PortNo, Arc<PortCounters>>,
    /// Counts of control itself.
    counters: DatapathCounters,
    shared: Arc<Shared>,
    ops: Vec<Op>,
    /// The last flush that was asked for.
    flushes: Ticket,
    removals: Removals,
    /// The learnings of forwarders by the entries that are there as they are taught.
    learnt: HashMap<EntryId, Vec<Arc<Learning>>, BuildMixHasher>,
    /// Timeouts that were to change while a bundle was under way.
    put_off: Vec<Taught>,
    /// The time of the last command, or of the last packet that has taught an entry.
    latest: Nanos,
    /// Number of ops that have been taken.
    ops_taken: u64,
    /// That number as a list of instructions that taught entries had gone last.
    unlearned_at: u64,
    /// The bundle under way.
    savepoint: Option<Box<Savepoint>>,
    sweeps: Sweeps,
    /// The changes of entries since they were last asked for, while somebody watches.
    watched: Option<Vec<WatchedChange>>,
    removal_report: RemovalReport,
    /// Whether there is memory for more; none where that is no matter.
    memory: Option<Arc<dyn MemoryBudget>>,
    entries_peak: Peak,
    groups_peak: Peak,
    meters_peak: Peak,
    /// Entries so far; the age of the next one.
    seq: u64,
}

impl Control {
    /// A datapath without ports, entries, groups and meters, for `forwarders` forwarders (at least
    /// one). `config.n_tables` of zero is taken as one, as there is no pipeline without a table.
    #[must_use]
    pub fn new(config: DatapathConfig, forwarders: usize, removal_report: RemovalReport) -> Self {
        let config = DatapathConfig { n_tables: config.n_tables.max(1), ..config };
        Self {
            settings: config.settings,
            pipeline: Pipeline::new(&config),
            store: Store::new(config.n_tables),
            masks: Masks::default(),
            groups: Groups::default(),
            group_counters: BTreeMap::new(),
            meters: MeterTable::default(),
            ports: Ports::default(),
            port_counters: BTreeMap::new(),
            counters: DatapathCounters::default(),
            shared: Arc::new(Shared::new(forwarders, &config)),
            ops: Vec::new(),
            flushes: Ticket::default(),
            removals: Removals::default(),
            learnt: HashMap::default(),
            put_off: Vec::new(),
            latest: Nanos::default(),
            ops_taken: 0,
            unlearned_at: 0,
            savepoint: None,
            sweeps: Sweeps::default(),
            watched: None,
            removal_report,
            memory: None,
            entries_peak: Peak::default(),
            groups_peak: Peak::default(),
            meters_peak: Peak::default(),
            seq: 0,
            config,
        }
    }

    /// Has the budget asked for every addition and every new list of instructions or buckets: what
    /// is not allowed is refused as by a full table.
    pub fn set_memory_budget(&mut self, budget: Arc<dyn MemoryBudget>) {
        self.memory = Some(budget);
    }

    /// Whether there is memory for this much more of what is kept for a command to come.
    #[must_use]
    pub fn has_memory(&self, bytes: usize) -> bool {
        self.memory_allows(MemoryNeed::New, bytes)
    }

    fn memory_allows(&self, need: MemoryNeed, bytes: usize) -> bool {
        self.memory.as_ref().is_none_or(|budget| budget.allows(need, bytes))
    }

    /// The state that is shared with the forwarders.
    pub(in crate::fast) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The forwarder of this number, which knows what ops will bring. The seed keeps peers from
    /// choosing packets that collide; it changes no verdict.
    ///
    /// # Panics
    /// When there are not as many forwarders.
    #[must_use]
    pub fn forwarder<K: KernelTable>(&self, number: usize, seed: u64) -> Forwarder<K> {
        assert!(number < self.shared.forwarders(), "there is no forwarder {number}");
        Forwarder::new(&self.config, Arc::clone(&self.shared), number, seed)
    }

    /// Sizes, and the treatments to begin with.
    #[must_use]
    pub fn config(&self) -> &DatapathConfig {
        &self.config
    }

    /// The treatments as they are now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Changes the treatments.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.emit_op(Change::Settings(settings));
    }

    /// Another limit of entries for every table. Where a table has more, they stay, and further
    /// ones are refused.
    pub fn set_max_entries(&mut self, max_entries: u32) {
        self.config.max_entries = max_entries;
        self.pipeline.set_max_entries(max_entries);
    }

    /// Names and limits of single tables. Those that evict entries do so at once, where they have
    /// more than they may hold now.
    pub fn set_flow_tables(&mut self, tables: BTreeMap<TableId, FlowTable>, now: Nanos) {
        self.pipeline.configure(tables);
        self.forget_eviction_orders();
        self.evict_surplus(now);
    }

    /// Settings of the tables.
    #[must_use]
    pub fn table_desc(&self) -> Vec<TableMod> {
        self.pipeline.descriptions(|table| self.store.active(table))
    }

    /// Takes a table-mod, which changes nothing in 1.3 but must be accepted (clause 7.3.3); since
    /// 1.4 it is about eviction and vacancy events.
    ///
    /// # Errors
    /// `OFPTMFC_BAD_TABLE`, `OFPTMFC_BAD_CONFIG`, `OFPBPC_BAD_VALUE`.
    pub fn table_mod(&mut self, table_mod: &TableMod, version: Version) -> Result<(), Error> {
        let done = self.pipeline.table_mod(table_mod, version, |table| self.store.active(table));
        self.forget_eviction_orders();
        done
    }

    /// The vacancy events that have become due since the last call.
    #[must_use]
    pub fn take_table_events(&mut self) -> Vec<TableStatus> {
        self.pipeline.take_events(|table| self.store.active(table))
    }

    /// Features of the tables, for a controller of the version.
    #[must_use]
    pub fn table_features(&self, version: Version) -> Vec<TableFeatures> {
        self.pipeline.features(version)
    }

    /// Replaces the pipeline by the tables that are asked for (clause 7.3.5.5.1). The entries of
    /// tables that are gone or changed go too; none of them asks for a flow-removed.
    ///
    /// # Errors
    /// `OFPTFFC_*`, found before anything is changed.
    pub fn set_table_features(
        &mut self,
        asked: &[TableFeatures],
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, Error> {
        let mut done = CommandCounts::default();
        for table in self.pipeline.set(asked, version)? {
            done.removed += self.remove_silently(table, now);
        }
        Ok(done)
    }

    /// The counters of the datapath as a whole: its own and what the forwarders have flushed.
    #[must_use]
    pub fn counters(&self) -> DatapathCounters {
        let mut counters = self.counters.clone();
        self.shared.add_counters(&mut counters);
        counters
    }

    /// Moves the ops that commands have made to the end of a list, behind those for learnt entries
    /// that go with what commands have removed. Every forwarder must be given
    /// all of them, in this order.
    pub fn take_ops(&mut self, into: &mut Vec<Op>) {
        self.delete_learnt();
        self.ops_taken += self.ops.len() as u64;
        if self.store.instruction_lists.take_has_unlearned() {
            self.unlearned_at = self.ops_taken;
        }
        into.append(&mut self.ops);
    }

    /// Whether there are ops to take.
    #[must_use]
    pub fn has_ops(&self) -> bool {
        !self.ops.is_empty()
    }

    /// The last flush that was asked for.
    pub(super) fn last_flush(&self) -> Ticket {
        self.flushes
    }

    /// Asks the forwarders to flush all counts; they are exact as of now when every forwarder
    /// has reached the ticket.
    pub fn flush(&mut self) -> Ticket {
        self.flushes = Ticket(self.flushes.0 + 1);
        self.emit_op(Change::Flush(self.flushes));
        self.flushes
    }

    fn emit_op(&mut self, change: Change) {
        self.ops.push(Op(change));
    }
}
