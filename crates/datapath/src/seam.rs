//! The trait of a datapath: everything that a switch asks of one, in one thread.
//!
//! Two datapaths implement it, the reference and the fast one ([`crate::fast::Fast`]), and every
//! test of behaviour runs through it. The switch itself calls [`crate::fast::Control`] and
//! [`crate::fast::Forwarder`], of which `Fast` is made, as they run in different threads there.
//! Time is an argument; no call blocks, sends or reads a clock.

use openflow::flow::{AggregateStats, FlowMod, FlowRemoved, FlowStats, FlowStatsRequest};
use openflow::group::{GroupDesc, GroupFeatures, GroupMod, GroupStats};
use openflow::message::{PacketIn, PacketOut};
use openflow::meter::{MeterConfig, MeterFeatures, MeterMod, MeterStats};
use openflow::port::{PortDesc, PortMod, PortReason, PortStats, QueueStats};
use openflow::table::{TableFeatures, TableMod, TableStats, TableStatus};
use openflow::{Error, GroupId, MeterId, PortNo, QueueId, Version};
use packet::PacketBuf;

use crate::config::{DatapathConfig, Settings};
use crate::counter::DatapathCounters;
use crate::mirrors::Mirror;
use crate::time::Nanos;
use crate::trace::Trace;
use crate::verdict::Out;
use crate::vlans::PortVlans;

/// A flow entry that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The entry with its last counters, and why it is gone.
    pub flow: FlowRemoved,
    /// Whether the entry asked for a flow-removed message (`OFPFF_SEND_FLOW_REM`).
    pub notify: bool,
}

/// The changes of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The entries that are gone. An entry that an add replaced is not among them (clause 6.4).
    pub removed: Vec<Removed>,
    /// Number of entries that were added.
    pub added: usize,
    /// Number of entries that got new instructions.
    pub modified: usize,
}

/// A command that a bundle may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleCommand {
    /// Changes flow entries.
    FlowMod(FlowMod),
    /// Changes a group.
    GroupMod(GroupMod),
    /// Changes a meter.
    MeterMod(MeterMod),
    /// Changes a port's settings.
    PortMod(PortMod),
    /// Sends a packet, which sees what the commands before it left.
    PacketOut(PacketOut),
}

/// Why a bundle was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleRefused {
    /// The place of the command that was refused.
    pub at: usize,
    /// Its error.
    pub error: Error,
}

/// A datapath: flow tables, groups, meters and ports, and the processing of packets by them.
pub trait Datapath: Send {
    /// Its sizes, and the treatments that it began with.
    fn config(&self) -> &DatapathConfig;

    /// Its treatments as they are now.
    fn settings(&self) -> Settings;

    /// Changes its treatments, from the next packet on.
    fn set_settings(&mut self, settings: Settings);

    /// Changes flow entries (clause 6.4). A command that is refused has changed nothing.
    ///
    /// # Errors
    /// Those of clause 6.4, found before anything is changed.
    fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error>;

    /// Changes a group (clause 6.5); a deleted group takes the entries that use it along.
    ///
    /// # Errors
    /// Those of clause 6.5, found before anything is changed.
    fn group_mod(&mut self, group_mod: &GroupMod, now: Nanos) -> Result<CommandOutcome, Error>;

    /// Changes a meter (clause 6.6); a deleted meter takes the entries that use it along.
    ///
    /// # Errors
    /// Those of clause 6.6, found before anything is changed.
    fn meter_mod(&mut self, meter_mod: &MeterMod, now: Nanos) -> Result<CommandOutcome, Error>;

    /// Carries out commands together (clause 7.3.9 of 1.4): no packet sees some of them and not the
    /// others. Where one is refused, all is as it was before the first, and no packet-out is sent.
    /// Appends at least one verdict for each packet-out.
    ///
    /// # Errors
    /// That of the first command that is refused.
    fn bundle(
        &mut self,
        commands: &[BundleCommand],
        version: Version,
        now: Nanos,
        out: &mut Out,
    ) -> Result<CommandOutcome, BundleRefused>;

    /// Takes a table-mod, which changes nothing in 1.3 but must be accepted (clause 7.3.3); since
    /// 1.4 it is about eviction and vacancy events.
    ///
    /// # Errors
    /// `OFPTMFC_BAD_TABLE`, `OFPTMFC_BAD_CONFIG`, `OFPBPC_BAD_VALUE`.
    fn table_mod(&mut self, table_mod: &TableMod, version: Version) -> Result<(), Error>;

    /// The vacancy events that have become due since the last call.
    fn take_table_events(&mut self) -> Vec<TableStatus>;

    /// Adds a port or replaces its description and settings; says which it was, or `None` when
    /// nothing changed. Flow entries stay (clause 4.6).
    fn port_set(&mut self, desc: PortDesc, now: Nanos) -> Option<PortReason>;

    /// Removes a port, with the description that it had. Flow entries stay (clause 4.6).
    fn port_remove(&mut self, port: PortNo) -> Option<PortDesc>;

    /// Changes a port's settings (clause 7.3.4.2); the description as it is afterwards.
    ///
    /// # Errors
    /// `OFPPMFC_BAD_PORT`, `OFPPMFC_BAD_HW_ADDR`, `OFPPMFC_BAD_CONFIG`, `OFPPMFC_BAD_ADVERTISE`.
    fn port_mod(&mut self, port_mod: &PortMod) -> Result<PortDesc, Error>;

    /// Sets how a port of this number takes part in VLANs when `NORMAL` forwards. It stays so when
    /// the port comes and goes; at first every port is a trunk of all VLANs.
    fn port_vlans(&mut self, port: PortNo, vlans: PortVlans);

    /// Sets the mirrors: at most [`crate::MIRRORS_MAX`] of them.
    fn set_mirrors(&mut self, mirrors: Vec<Mirror>);

    /// All ports, by number.
    fn ports(&self) -> Vec<PortDesc>;

    /// Takes a frame from a port and appends at least one verdict.
    fn process(&mut self, frame: PacketBuf, in_port: PortNo, now: Nanos, out: &mut Out);

    /// Carries out a packet-out (clause 7.3.7) and appends at least one verdict.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_UNKNOWN` for any buffer, `OFPBRC_BAD_PORT`, `OFPBRC_BAD_PACKET`, and the
    /// errors of its actions; nothing is sent then.
    fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        out: &mut Out,
    ) -> Result<(), Error>;

    /// Goes on with a packet that waits for a controller, as its packet-in has it or with what the
    /// controller has changed (`NXT_RESUME`), and appends at least one verdict.
    ///
    /// # Errors
    /// `NXR_STALE` for a continuation that is none of this datapath's, `OFPBRC_BAD_PORT`,
    /// `OFPBRC_BAD_PACKET`, and the errors of what is still to be done; nothing is sent then.
    fn resume(&mut self, paused: &PacketIn, now: Nanos, out: &mut Out) -> Result<(), Error>;

    /// The way that a frame from a port would take, changing no counter and no meter.
    fn trace(&self, frame: PacketBuf, in_port: PortNo, now: Nanos) -> Trace;

    /// Removes the entries whose idle or hard timeout has passed (clause 5.5).
    fn expire(&mut self, now: Nanos) -> Vec<Removed>;

    /// When the next entry expires if no packet matches it before; `None` when none does.
    fn next_expiry(&self) -> Option<Nanos>;

    /// Flow entries, table by table, highest priority first.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    fn flow_stats(&self, request: &FlowStatsRequest, now: Nanos) -> Result<Vec<FlowStats>, Error>;

    /// Sums over flow entries; counts that an entry does not keep add nothing.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Error>;

    /// Tables' counters.
    fn table_stats(&self) -> Vec<TableStats>;

    /// Features of the tables, for a controller of the version: those that a controller has set,
    /// within those that the rows of fields, instructions and actions give.
    fn table_features(&self, version: Version) -> Vec<TableFeatures>;

    /// Replaces the pipeline by the tables that are asked for (clause 7.3.5.5.1). The entries of
    /// tables that are gone or changed go too; none of them asks for a flow-removed.
    ///
    /// # Errors
    /// `OFPTFFC_*`, found before anything is changed.
    fn set_table_features(
        &mut self,
        asked: &[TableFeatures],
        version: Version,
        now: Nanos,
    ) -> Result<CommandOutcome, Error>;

    /// Ports' counters, of one port or of all ([`PortNo::ANY`]).
    ///
    /// # Errors
    /// `OFPBRC_BAD_PORT`.
    fn port_stats(&self, port: PortNo, now: Nanos) -> Result<Vec<PortStats>, Error>;

    /// Counters of the queues that packets were sent to, of one port or all ([`PortNo::ANY`]), of
    /// one queue or all ([`QueueId::ALL`]).
    ///
    /// # Errors
    /// `OFPQOFC_BAD_PORT`, `OFPQOFC_BAD_QUEUE`.
    fn queue_stats(
        &self,
        port: PortNo,
        queue: QueueId,
        now: Nanos,
    ) -> Result<Vec<QueueStats>, Error>;

    /// Counters of a group, or of all ([`GroupId::ALL`]); none for a group that does not exist.
    fn group_stats(&self, group: GroupId, now: Nanos) -> Vec<GroupStats>;

    /// All groups' descriptions, by number.
    fn group_desc(&self) -> Vec<GroupDesc>;

    /// Features of groups, for a controller of the version.
    fn group_features(&self, version: Version) -> GroupFeatures;

    /// Counters of a meter, or of all ([`MeterId::ALL`]).
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    fn meter_stats(&self, meter: MeterId, now: Nanos) -> Result<Vec<MeterStats>, Error>;

    /// Configuration of a meter, or of all ([`MeterId::ALL`]).
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    fn meter_config(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Error>;

    /// Features of meters.
    fn meter_features(&self) -> MeterFeatures;

    /// The counters of the datapath as a whole, and the drops by reason.
    fn counters(&self) -> &DatapathCounters;
}
