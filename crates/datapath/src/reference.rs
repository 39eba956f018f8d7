//! The specification as plain code: linear search, no cache, no batch, no cleverness.
//!
//! It is the oracle that every faster datapath is compared with, so it must stay slow and right. A
//! packet's run reads the state and lists what it would change; only afterwards, and only
//! for a real packet, is that carried out. So a trace is the same run, thrown away.

mod actions;
mod effect;
mod entry;
mod expire;
mod flow_mod;
mod group_run;
mod learn;
mod mirror;
mod output;
mod packet_out;
mod pause;
mod run;
mod stats;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use openflow::flow::{AggregateStats, FlowMod, FlowRemovedReason, FlowStats, FlowStatsRequest};
use openflow::group::{GroupDesc, GroupFeatures, GroupMod, GroupStats};
use openflow::message::{PacketIn, PacketOut};
use openflow::meter::{MeterConfig, MeterFeatures, MeterMod, MeterStats};
use openflow::port::{PortDesc, PortMod, PortReason, PortStats, QueueStats};
use openflow::table::{TableFeatures, TableMod, TableStats, TableStatus};
use openflow::{Cookie, Error, GroupId, MeterId, PortNo, QueueId, TableId, Version};
use packet::PacketBuf;

use self::run::Run;
use self::table::Table;
use crate::config::{DatapathConfig, Settings};
use crate::counter::{Counter, DatapathCounters};
use crate::features;
use crate::groups::Groups;
use crate::macs::Macs;
use crate::meters::Meters;
use crate::mirrors::{Mirror, Mirrors};
use crate::pipeline::Pipeline;
use crate::ports::Ports;
use crate::reassembly::{Reassembled, Reassembler, concerns};
use crate::seam::{BundleCommand, BundleRefused, CommandOutcome, Datapath, Removed};
use crate::time::Nanos;
use crate::trace::Trace;
use crate::verdict::Out;
use crate::vlans::PortVlans;

/// The reference datapath.
#[derive(Clone, Debug)]
pub struct Reference {
    config: DatapathConfig,
    settings: Settings,
    pipeline: Pipeline,
    tables: Vec<Table>,
    groups: Groups,
    meters: Meters,
    ports: Ports,
    macs: Macs,
    reassembler: Reassembler,
    counters: DatapathCounters,
    /// Entries that have gone because of packets.
    unreported: Vec<Removed>,
    /// Table and cookie of the entries that entries teach, and that go with the last such one.
    taught_for_good: BTreeSet<(TableId, Cookie)>,
    /// Entries so far; the age of the next one.
    seq: u64,
}

/// The number of entries of a table.
fn active(tables: &[Table]) -> impl Fn(TableId) -> u32 {
    |id| tables.get(usize::from(id.0)).map_or(0, |table| table.entries().len() as u32)
}

impl Reference {
    /// A datapath without ports, entries, groups and meters. `config.n_tables` of zero is taken as
    /// one, as there is no pipeline without a table.
    #[must_use]
    pub fn new(config: DatapathConfig) -> Self {
        let config = DatapathConfig { n_tables: config.n_tables.max(1), ..config };
        Self {
            settings: config.settings,
            pipeline: Pipeline::new(&config),
            tables: vec![Table::default(); usize::from(config.n_tables)],
            groups: Groups::default(),
            meters: Meters::default(),
            ports: Ports::default(),
            macs: Macs::default(),
            reassembler: Reassembler::default(),
            counters: DatapathCounters::default(),
            unreported: Vec::new(),
            taught_for_good: BTreeSet::new(),
            seq: 0,
            config,
        }
    }

    fn all_tables(&self) -> std::ops::Range<u8> {
        0..self.config.n_tables
    }
}

impl Reference {
    /// Whether a frame is a fragment that its port lets in and that is to be put together.
    fn lets_in(&self, frame: &PacketBuf, in_port: PortNo) -> bool {
        let port = self.ports.get(in_port);
        port.is_some_and(|port| port.refuses_rx(frame.bytes()).is_none())
            && concerns(&self.settings, frame.bytes())
    }
}

/// The commands without what goes with what they remove.
impl Reference {
    fn flow_mod_alone(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let outcome = self.run_flow_mod(flow_mod, version, now);
        if outcome.is_err() {
            self.counters.add(Counter::FlowModErrors, 1);
        }
        outcome
    }

    fn group_mod_alone(
        &mut self,
        group_mod: &GroupMod,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let whole = self.groups.whole(group_mod)?.into_owned();
        let gone: BTreeSet<GroupId> =
            self.groups.apply(&whole, &self.config, now)?.into_iter().collect();
        if gone.is_empty() {
            return Ok(CommandOutcome::default());
        }
        let removed = self.remove(self.all_tables(), now, |entry| {
            entry.groups().any(|id| gone.contains(&id)).then_some(FlowRemovedReason::GroupDelete)
        });
        Ok(CommandOutcome { removed, ..CommandOutcome::default() })
    }

    fn meter_mod_alone(
        &mut self,
        meter_mod: &MeterMod,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let gone: BTreeSet<MeterId> =
            self.meters.apply(meter_mod, &self.config, now)?.into_iter().collect();
        if gone.is_empty() {
            return Ok(CommandOutcome::default());
        }
        let removed = self.remove(self.all_tables(), now, |entry| {
            entry.meter().filter(|id| gone.contains(id)).map(|_| FlowRemovedReason::MeterDelete)
        });
        Ok(CommandOutcome { removed, ..CommandOutcome::default() })
    }

    fn bundle_alone(
        &mut self,
        commands: &[BundleCommand],
        version: Version,
        now: Nanos,
        out: &mut Out,
    ) -> Result<CommandOutcome, BundleRefused> {
        let before = self.clone();
        let verdicts = out.len();
        let mut outcome = CommandOutcome::default();
        let mut taught = Vec::new();
        for (at, command) in commands.iter().enumerate() {
            let done = match command {
                BundleCommand::FlowMod(body) => self.flow_mod_alone(body, version, now),
                BundleCommand::GroupMod(body) => self.group_mod_alone(body, now),
                BundleCommand::MeterMod(body) => self.meter_mod_alone(body, now),
                BundleCommand::PortMod(body) => {
                    self.port_mod(body).map(|_| CommandOutcome::default())
                }
                BundleCommand::PacketOut(body) => {
                    self.run_packet_out(body, now, out).map(|mut effects| {
                        taught.push(effects.take_taught());
                        self.commit(effects, now);
                        CommandOutcome::default()
                    })
                }
            };
            match done {
                Ok(mut done) => {
                    outcome.removed.append(&mut done.removed);
                    outcome.added += done.added;
                    outcome.modified += done.modified;
                }
                Err(error) => {
                    let refused = self.counters.get(Counter::FlowModErrors);
                    *self = before;
                    out.truncate(verdicts);
                    let refused = refused - self.counters.get(Counter::FlowModErrors);
                    self.counters.add(Counter::FlowModErrors, refused);
                    return Err(BundleRefused { at, error });
                }
            }
        }
        // None is learnt before the bundle is whole.
        taught.into_iter().for_each(|effects| self.commit(effects, now));
        Ok(outcome)
    }
}

impl Datapath for Reference {
    fn config(&self) -> &DatapathConfig {
        &self.config
    }

    fn settings(&self) -> Settings {
        self.settings
    }

    fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let outcome = self.flow_mod_alone(flow_mod, version, now);
        outcome.map(|outcome| self.whole(outcome, now))
    }

    fn group_mod(&mut self, group_mod: &GroupMod, now: Nanos) -> Result<CommandOutcome, Error> {
        let outcome = self.group_mod_alone(group_mod, now)?;
        Ok(self.whole(outcome, now))
    }

    fn meter_mod(&mut self, meter_mod: &MeterMod, now: Nanos) -> Result<CommandOutcome, Error> {
        let outcome = self.meter_mod_alone(meter_mod, now)?;
        Ok(self.whole(outcome, now))
    }

    fn bundle(
        &mut self,
        commands: &[BundleCommand],
        version: Version,
        now: Nanos,
        out: &mut Out,
    ) -> Result<CommandOutcome, BundleRefused> {
        let outcome = self.bundle_alone(commands, version, now, out)?;
        Ok(self.whole(outcome, now))
    }

    fn table_mod(&mut self, table_mod: &TableMod, version: Version) -> Result<(), Error> {
        self.pipeline.table_mod(table_mod, version, active(&self.tables))
    }

    fn take_table_events(&mut self) -> Vec<TableStatus> {
        self.pipeline.take_events(active(&self.tables))
    }

    fn port_set(&mut self, desc: PortDesc, now: Nanos) -> Option<PortReason> {
        self.ports.set(desc, now)
    }

    fn port_remove(&mut self, port: PortNo) -> Option<PortDesc> {
        self.macs.forget_port(port);
        self.ports.remove(port)
    }

    fn port_mod(&mut self, port_mod: &PortMod) -> Result<PortDesc, Error> {
        self.ports.port_mod(port_mod)
    }

    fn port_vlans(&mut self, port: PortNo, vlans: PortVlans) {
        if self.ports.set_vlans(port, vlans) {
            self.macs.forget_port(port);
        }
    }

    fn set_mirrors(&mut self, mirrors: Vec<Mirror>) {
        self.ports.set_mirrors(Arc::new(Mirrors::new(mirrors)));
    }

    fn ports(&self) -> Vec<PortDesc> {
        self.ports.descs()
    }

    fn process(&mut self, frame: PacketBuf, in_port: PortNo, now: Nanos, out: &mut Out) {
        let Reassembled { fate, lost } = if self.lets_in(&frame, in_port) {
            self.reassembler.reassemble(frame.bytes(), in_port, now)
        } else {
            Reassembled::ITSELF
        };
        lost.into_iter().for_each(|(reason, amount)| self.counters.add_drops(reason, amount));
        let mut run = Run::new(self, now, out);
        run.ingress(frame, in_port, fate);
        let (effects, _) = run.end();
        self.commit(effects, now);
    }

    fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        out: &mut Out,
    ) -> Result<(), Error> {
        let effects = self.run_packet_out(packet_out, now, out)?;
        self.commit(effects, now);
        Ok(())
    }

    fn resume(&mut self, paused: &PacketIn, now: Nanos, out: &mut Out) -> Result<(), Error> {
        self.run_resumed(paused, now, out)
    }

    fn trace(&self, frame: PacketBuf, in_port: PortNo, now: Nanos) -> Trace {
        let mut out = Out::new();
        let mut run = Run::new(self, now, &mut out).traced();
        let reassembled = if self.lets_in(&frame, in_port) {
            self.reassembler.clone().reassemble(frame.bytes(), in_port, now)
        } else {
            Reassembled::ITSELF
        };
        run.ingress(frame, in_port, reassembled.fate);
        let (_, steps) = run.end();
        Trace { steps, verdicts: out.drain().collect() }
    }

    fn expire(&mut self, now: Nanos) -> Vec<Removed> {
        let removed = self.run_expiry(now);
        let outcome = CommandOutcome { removed, ..CommandOutcome::default() };
        self.whole(outcome, now).removed
    }

    fn next_expiry(&self) -> Option<Nanos> {
        self.earliest_expiry()
    }

    fn flow_stats(&self, request: &FlowStatsRequest, now: Nanos) -> Result<Vec<FlowStats>, Error> {
        self.list_flows(request, now)
    }

    fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Error> {
        self.sum_flows(request)
    }

    fn table_stats(&self) -> Vec<TableStats> {
        self.list_tables()
    }

    fn table_features(&self, version: Version) -> Vec<TableFeatures> {
        self.pipeline.features(version)
    }

    fn set_table_features(
        &mut self,
        asked: &[TableFeatures],
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let mut removed = Vec::new();
        for table in self.pipeline.set(asked, version)? {
            let tables = table.0..table.0 + 1;
            removed.extend(self.remove(tables, now, |_| Some(FlowRemovedReason::Delete)));
        }
        for removed in &mut removed {
            removed.notify = false;
        }
        Ok(self.whole(CommandOutcome { removed, ..CommandOutcome::default() }, now))
    }

    fn port_stats(&self, port: PortNo, now: Nanos) -> Result<Vec<PortStats>, Error> {
        self.ports.stats(port, now)
    }

    fn queue_stats(
        &self,
        port: PortNo,
        queue: QueueId,
        now: Nanos,
    ) -> Result<Vec<QueueStats>, Error> {
        self.ports.queue_stats(port, queue, now)
    }

    fn group_stats(&self, group: GroupId, now: Nanos) -> Vec<GroupStats> {
        let flows = self.flows_with_groups();
        self.groups.stats(group, now, &|id| flows.get(&id).copied().unwrap_or(0))
    }

    fn group_desc(&self) -> Vec<GroupDesc> {
        self.groups.descs()
    }

    fn group_features(&self, version: Version) -> GroupFeatures {
        features::group_features(&self.config, version)
    }

    fn meter_stats(&self, meter: MeterId, now: Nanos) -> Result<Vec<MeterStats>, Error> {
        let flows = self.flows_with_meters();
        self.meters.stats(meter, now, &|id| flows.get(&id).copied().unwrap_or(0))
    }

    fn meter_config(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Error> {
        self.meters.configs(meter)
    }

    fn meter_features(&self) -> MeterFeatures {
        features::meter_features(&self.config)
    }

    fn counters(&self) -> &DatapathCounters {
        &self.counters
    }
}
