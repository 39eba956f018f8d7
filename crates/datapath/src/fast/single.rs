//! Control and one forwarder in one thread: the fast datapath behind the seam.
//!
//! Every command's ops are applied at once and every count is flushed before it is read, so that
//! nothing is ever late here and each answer can be compared with the reference's.

use std::cell::RefCell;

use openflow::flow::{AggregateStats, FlowMod, FlowStats, FlowStatsRequest};
use openflow::group::{GroupDesc, GroupFeatures, GroupMod, GroupStats};
use openflow::message::{PacketIn, PacketOut};
use openflow::meter::{MeterConfig, MeterFeatures, MeterMod, MeterStats};
use openflow::port::{PortDesc, PortMod, PortReason, PortStats, QueueStats};
use openflow::table::{TableFeatures, TableMod, TableStats, TableStatus};
use openflow::{Error, GroupId, MeterId, PortNo, QueueId, Version};
use packet::PacketBuf;

use super::control::{CommandCounts, Control, RemovalReport};
use super::forwarder::{Forwarder, Sink, Verdicts};
use super::ids::Ticket;
use super::op::Op;
use crate::config::{DatapathConfig, Settings};
use crate::counter::DatapathCounters;
use crate::mirrors::Mirror;
use crate::seam::{BundleCommand, BundleRefused, CommandOutcome, Datapath, Removed};
use crate::time::Nanos;
use crate::trace::Trace;
use crate::verdict::Out;
use crate::vlans::PortVlans;

/// Counts that a flush moves in one go; here no port waits meanwhile.
const FLUSH_PIECE: usize = 1 << 20;

/// Time for calls that need it for a kernel's table only; here is none.
const NO_TIME: Nanos = Nanos(0);

/// The fast datapath in one thread.
#[derive(Debug)]
pub struct Fast {
    config: DatapathConfig,
    counters: DatapathCounters,
    inner: RefCell<Inner>,
    /// The frame of [`Datapath::process`] as a batch.
    batch: Vec<PacketBuf>,
}

#[derive(Debug)]
struct Inner {
    control: Control,
    forwarder: Forwarder,
    ops: Vec<Op>,
}

impl Inner {
    /// Applies the ops that were made.
    fn run(&mut self) {
        self.control.take_ops(&mut self.ops);
        for mut op in self.ops.drain(..) {
            while let Some(again) = self.forwarder.apply(op, NO_TIME).again() {
                op = again;
            }
        }
    }

    /// Adds and changes the entries that packets have taught.
    fn learn(&mut self) {
        if self.forwarder.has_taught() {
            let taught = self.forwarder.take_taught();
            taught.iter().for_each(|taught| self.control.learn(taught));
            self.run();
        }
    }

    /// Flushes until the ticket is reached.
    fn flush_to(&mut self, ticket: Ticket) {
        self.run();
        while self.control.shared().flushed() < ticket {
            let more = self.forwarder.flush_some(FLUSH_PIECE, NO_TIME);
            let reached = self.control.shared().flushed() >= ticket;
            assert!(more || reached, "a flush that is over is reported");
        }
    }

    /// Brings every counter up to date.
    fn flush(&mut self) -> &mut Control {
        let ticket = self.control.flush();
        self.flush_to(ticket);
        &mut self.control
    }

    /// Applies a command, with the entries that it removed.
    fn outcome(&mut self, done: CommandCounts) -> CommandOutcome {
        self.run();
        let mut removed: Vec<Removed> = self.control.reap();
        while !self.control.is_reaped() {
            let ticket = self.control.last_flush();
            self.flush_to(ticket);
            removed.append(&mut self.control.reap());
        }
        CommandOutcome { removed, added: done.added, modified: done.modified }
    }
}

impl Fast {
    /// A datapath without ports, entries, groups and meters. The seed keeps peers from choosing
    /// packets that collide; it changes no verdict.
    #[must_use]
    pub fn new(config: DatapathConfig, seed: u64) -> Self {
        let control = Control::new(config, 1, RemovalReport::All);
        let forwarder = control.forwarder(0, seed);
        Self {
            config: control.config().clone(),
            counters: DatapathCounters::default(),
            inner: RefCell::new(Inner { control, forwarder, ops: Vec::new() }),
            batch: Vec::new(),
        }
    }

    /// The forwarder, for its settings and figures.
    pub fn forwarder(&mut self) -> &mut Forwarder {
        &mut self.inner.get_mut().forwarder
    }

    /// Takes a batch of frames from a port, as [`Forwarder::process_batch`] does; the list is empty
    /// afterwards.
    pub fn process_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        let inner = self.inner.get_mut();
        inner.forwarder.process_batch(frames, in_port, now, sink);
        inner.learn();
    }

    /// Takes the counters of the datapath as a whole over, as they can only be shown from here.
    fn recount(&mut self) {
        self.counters = self.inner.get_mut().control.counters();
    }

    /// Flushes, and shows the counters of the datapath as a whole as of now.
    pub fn reap(&mut self) {
        self.inner.get_mut().flush();
        self.recount();
    }
}

impl Datapath for Fast {
    fn config(&self) -> &DatapathConfig {
        &self.config
    }

    fn settings(&self) -> Settings {
        self.inner.borrow().control.settings()
    }

    fn set_settings(&mut self, settings: Settings) {
        let inner = self.inner.get_mut();
        inner.control.set_settings(settings);
        inner.run();
    }

    fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let inner = self.inner.get_mut();
        let done = inner.control.flow_mod(flow_mod, version, now);
        let outcome = done.map(|done| inner.outcome(done));
        self.recount();
        outcome
    }

    fn group_mod(&mut self, group_mod: &GroupMod, now: Nanos) -> Result<CommandOutcome, Error> {
        let inner = self.inner.get_mut();
        let done = inner.control.group_mod(group_mod, now)?;
        let outcome = inner.outcome(done);
        self.recount();
        Ok(outcome)
    }

    fn meter_mod(&mut self, meter_mod: &MeterMod, now: Nanos) -> Result<CommandOutcome, Error> {
        let inner = self.inner.get_mut();
        let done = inner.control.meter_mod(meter_mod, now)?;
        let outcome = inner.outcome(done);
        self.recount();
        Ok(outcome)
    }

    fn bundle(
        &mut self,
        commands: &[BundleCommand],
        version: Version,
        now: Nanos,
        out: &mut Out,
    ) -> Result<CommandOutcome, BundleRefused> {
        let inner = self.inner.get_mut();
        let done = inner.control.bundle(commands, version, now);
        let outcome = done.map(|done| inner.outcome(done));
        if inner.forwarder.give_sent(&mut Verdicts(out)) {
            inner.learn();
        }
        self.recount();
        outcome
    }

    fn table_mod(&mut self, table_mod: &TableMod, version: Version) -> Result<(), Error> {
        self.inner.get_mut().control.table_mod(table_mod, version)
    }

    fn take_table_events(&mut self) -> Vec<TableStatus> {
        self.inner.get_mut().control.take_table_events()
    }

    fn port_set(&mut self, desc: PortDesc, now: Nanos) -> Option<PortReason> {
        let inner = self.inner.get_mut();
        let reason = inner.control.port_set(desc, now);
        inner.run();
        reason
    }

    fn port_remove(&mut self, port: PortNo) -> Option<PortDesc> {
        let inner = self.inner.get_mut();
        let desc = inner.control.port_remove(port);
        inner.run();
        desc
    }

    fn port_mod(&mut self, port_mod: &PortMod) -> Result<PortDesc, Error> {
        let inner = self.inner.get_mut();
        let desc = inner.control.port_mod(port_mod);
        inner.run();
        desc
    }

    fn port_vlans(&mut self, port: PortNo, vlans: PortVlans) {
        let inner = self.inner.get_mut();
        inner.control.port_vlans(port, vlans);
        inner.run();
    }

    fn set_mirrors(&mut self, mirrors: Vec<Mirror>) {
        let inner = self.inner.get_mut();
        inner.control.set_mirrors(mirrors);
        inner.run();
    }

    fn ports(&self) -> Vec<PortDesc> {
        self.inner.borrow().control.ports()
    }

    fn process(&mut self, frame: PacketBuf, in_port: PortNo, now: Nanos, out: &mut Out) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.push(frame);
        self.process_batch(&mut batch, in_port, now, &mut Verdicts(out));
        self.batch = batch;
        self.recount();
    }

    fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        out: &mut Out,
    ) -> Result<(), Error> {
        let inner = self.inner.get_mut();
        let sent = inner.forwarder.packet_out(packet_out, now, &mut Verdicts(out));
        inner.learn();
        self.recount();
        sent
    }

    fn resume(&mut self, paused: &PacketIn, now: Nanos, out: &mut Out) -> Result<(), Error> {
        let inner = self.inner.get_mut();
        let resumed = inner.forwarder.resume(paused, now, &mut Verdicts(out));
        inner.learn();
        self.recount();
        resumed
    }

    fn trace(&self, frame: PacketBuf, in_port: PortNo, now: Nanos) -> Trace {
        self.inner.borrow().control.trace(frame, in_port, now)
    }

    fn expire(&mut self, now: Nanos) -> Vec<Removed> {
        let inner = self.inner.get_mut();
        let done = inner.control.expire(now, usize::MAX);
        let outcome = inner.outcome(done);
        self.recount();
        outcome.removed
    }

    fn next_expiry(&self) -> Option<Nanos> {
        self.inner.borrow_mut().control.next_expiry()
    }

    fn flow_stats(&self, request: &FlowStatsRequest, now: Nanos) -> Result<Vec<FlowStats>, Error> {
        self.inner.borrow_mut().flush().flow_stats(request, now)
    }

    fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Error> {
        self.inner.borrow_mut().flush().aggregate_stats(request)
    }

    fn table_stats(&self) -> Vec<TableStats> {
        self.inner.borrow_mut().flush().table_stats()
    }

    fn table_features(&self, version: Version) -> Vec<TableFeatures> {
        self.inner.borrow().control.table_features(version)
    }

    fn set_table_features(
        &mut self,
        asked: &[TableFeatures],
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error> {
        let inner = self.inner.get_mut();
        let done = inner.control.set_table_features(asked, version, now)?;
        let outcome = inner.outcome(done);
        self.recount();
        Ok(outcome)
    }

    fn port_stats(&self, port: PortNo, now: Nanos) -> Result<Vec<PortStats>, Error> {
        self.inner.borrow_mut().flush().port_stats(port, now)
    }

    fn queue_stats(
        &self,
        port: PortNo,
        queue: QueueId,
        now: Nanos,
    ) -> Result<Vec<QueueStats>, Error> {
        self.inner.borrow_mut().flush().queue_stats(port, queue, now)
    }

    fn group_stats(&self, group: GroupId, now: Nanos) -> Vec<GroupStats> {
        self.inner.borrow_mut().flush().group_stats(group, now)
    }

    fn group_desc(&self) -> Vec<GroupDesc> {
        self.inner.borrow().control.group_desc()
    }

    fn group_features(&self, version: Version) -> GroupFeatures {
        self.inner.borrow().control.group_features(version)
    }

    fn meter_stats(&self, meter: MeterId, now: Nanos) -> Result<Vec<MeterStats>, Error> {
        self.inner.borrow_mut().flush().meter_stats(meter, now)
    }

    fn meter_config(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Error> {
        self.inner.borrow().control.meter_config(meter)
    }

    fn meter_features(&self) -> MeterFeatures {
        self.inner.borrow().control.meter_features()
    }

    fn counters(&self) -> &DatapathCounters {
        &self.counters
    }
}
