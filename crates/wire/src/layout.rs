//! Codec of each structure in each version: the one place that selects one.
//!
//! A row says since which version a structure is laid out as its codec reads and writes it. A
//! version that changes a structure adds a row here and the codec in the structure's file; readers
//! and writers never ask for the version themselves. Where versions differ in a detail (the width
//! of a port number) they ask for it by its name, as [`Version::has_wide_ports`].

use openflow::flow::{AggregateStats, FlowMod, FlowRemoved, FlowStats, FlowStatsRequest};
use openflow::flow_monitor::{FlowMonitorRequest, FlowUpdate};
use openflow::group::{GroupDesc, GroupMod};
use openflow::message::{AsyncConfig, Features, PacketIn, PacketOut};
use openflow::meter::MeterFeatures;
use openflow::port::{PortDesc, PortMod, PortStats, QueueStats};
use openflow::table::{TableMod, TableStats};
use openflow::translate::Context;
use openflow::{Instruction, Match, Version};

use crate::matching::Purpose;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{
    compat, flow, flow_monitor, group, instruction, matching, meter, packet, port, queue, role,
    switch, table,
};

/// One value for each span of versions: the value of a row holds from its version to the next row.
pub(crate) struct ByVersion<C: 'static> {
    rows: &'static [(Version, C)],
    /// The row of each version, by the version's index.
    index: [usize; Version::ALL.len()],
}

impl<C> ByVersion<C> {
    /// A table of rows, oldest first; the first row is the oldest version's.
    const fn new(rows: &'static [(Version, C)]) -> Self {
        assert!(rows[0].0 as u8 == Version::OLDEST as u8, "every version has a codec");
        let mut index = [0; Version::ALL.len()];
        let mut version = 0;
        while version < index.len() {
            let mut row = rows.len() - 1;
            while rows[row].0 as usize > version {
                row -= 1;
            }
            index[version] = row;
            version += 1;
        }
        Self { rows, index }
    }

    /// The value of a version.
    pub(crate) fn of(&self, version: Version) -> &'static C {
        &self.rows[self.index[version as usize]].1
    }
}

/// Reads and writes a structure.
pub(crate) struct Codec<T> {
    read: fn(&mut Reader<'_>) -> reader::ReadResult<T>,
    write: fn(&mut Writer<'_>, &T) -> writer::WriteResult<()>,
}

impl<T> ByVersion<Codec<T>> {
    /// Reads the structure as the reader's version lays it out.
    pub(crate) fn read(&self, r: &mut Reader<'_>) -> reader::ReadResult<T> {
        (self.of(r.version).read)(r)
    }

    /// Writes the structure as the writer's version lays it out.
    pub(crate) fn write(&self, w: &mut Writer<'_>, structure: &T) -> writer::WriteResult<()> {
        (self.of(w.version).write)(w, structure)
    }
}

/// A table of codecs: since a version, a structure is read by one function and written by another.
macro_rules! layouts {
    ($($(#[doc = $doc:literal])* $name:ident: $structure:ty =
        $($since:ident ($read:path, $write:path)),+;)+) => {
        $($(#[doc = $doc])*
        pub(crate) static $name: ByVersion<Codec<$structure>> = ByVersion::new(&[
            $((Version::$since, Codec { read: $read, write: $write })),+
        ]);)+
    };
}

layouts! {
    /// `ofp_flow_mod`.
    FLOW_MOD: FlowMod = V1_0 (flow::read_mod_v1_0, flow::write_mod_v1_0),
        V1_1 (flow::read_mod_v1_1, flow::write_mod_v1_1);
    /// `ofp_flow_removed`.
    FLOW_REMOVED: FlowRemoved = V1_0 (flow::read_removed_v1_0, flow::write_removed_v1_0),
        V1_1 (flow::read_removed_v1_1, flow::write_removed_v1_1),
        V1_5 (flow::read_removed_v1_5, flow::write_removed_v1_5);
    /// `ofp_flow_stats_request` and `ofp_aggregate_stats_request`.
    FLOW_STATS_REQUEST: FlowStatsRequest =
        V1_0 (flow::read_stats_request_v1_0, flow::write_stats_request_v1_0),
        V1_1 (flow::read_stats_request_v1_1, flow::write_stats_request_v1_1);
    /// `ofp_flow_stats`; `ofp_flow_desc` since 1.5.
    FLOW_STATS: FlowStats = V1_0 (flow::read_stats_v1_0, flow::write_stats_v1_0),
        V1_1 (flow::read_stats_v1_1, flow::write_stats_v1_1),
        V1_5 (flow::read_desc_v1_5, flow::write_desc_v1_5);
    /// `ofp_aggregate_stats_reply`.
    AGGREGATE: AggregateStats = V1_0 (flow::read_aggregate_v1_0, flow::write_aggregate_v1_0),
        V1_5 (flow::read_aggregate_v1_5, flow::write_aggregate_v1_5);
    /// `ofp_flow_monitor_request`; Nicira's and ONF's before 1.4.
    FLOW_MONITOR_REQUEST: FlowMonitorRequest =
        V1_0 (flow_monitor::read_request_nicira, flow_monitor::write_request_nicira),
        V1_3 (flow_monitor::read_request_onf, flow_monitor::write_request_onf),
        V1_4 (flow_monitor::read_request_v1_4, flow_monitor::write_request_v1_4);
    /// `ofp_flow_update_full` and its relatives; Nicira's and ONF's before 1.4.
    FLOW_UPDATE: FlowUpdate =
        V1_0 (flow_monitor::read_update_nicira, flow_monitor::write_update_nicira),
        V1_3 (flow_monitor::read_update_onf, flow_monitor::write_update_onf),
        V1_4 (flow_monitor::read_update_v1_4, flow_monitor::write_update_v1_4);
    /// `ofp_packet_in`.
    PACKET_IN: PacketIn = V1_0 (packet::read_in_v1_0, packet::write_in_v1_0),
        V1_1 (packet::read_in_v1_1, packet::write_in_v1_1),
        V1_2 (packet::read_in_v1_2, packet::write_in_v1_2),
        V1_3 (packet::read_in_v1_3, packet::write_in_v1_3);
    /// `ofp_packet_out`.
    PACKET_OUT: PacketOut = V1_0 (packet::read_out_v1_0, packet::write_out_v1_0),
        V1_5 (packet::read_out_v1_5, packet::write_out_v1_5);
    /// `ofp_group_mod`; 1.0 has none.
    GROUP_MOD: GroupMod = V1_0 (group::read_mod_v1_1, group::write_mod_v1_1),
        V1_5 (group::read_mod_v1_5, group::write_mod_v1_5);
    /// `ofp_group_desc`; 1.0 has none.
    GROUP_DESC: GroupDesc = V1_0 (group::read_desc_v1_1, group::write_desc_v1_1),
        V1_5 (group::read_desc_v1_5, group::write_desc_v1_5);
    /// `ofp_meter_features`; 1.0 has none.
    METER_FEATURES: MeterFeatures = V1_0 (meter::read_features_v1_3, meter::write_features_v1_3),
        V1_5 (meter::read_features_v1_5, meter::write_features_v1_5);
    /// `ofp_switch_features`.
    FEATURES: Features = V1_0 (switch::read_features_v1_0, switch::write_features_v1_0),
        V1_1 (switch::read_features_v1_1, switch::write_features_v1_1),
        V1_3 (switch::read_features_v1_3, switch::write_features_v1_3);
    /// `ofp_phy_port`, and `ofp_port` since 1.1.
    PORT_DESC: PortDesc = V1_0 (port::read_desc_v1_0, port::write_desc_v1_0),
        V1_1 (port::read_desc_v1_1, port::write_desc_v1_1),
        V1_4 (port::read_desc_v1_4, port::write_desc_v1_4);
    /// `ofp_port_mod`.
    PORT_MOD: PortMod = V1_0 (port::read_mod_v1_0, port::write_mod_v1_0),
        V1_1 (port::read_mod_v1_1, port::write_mod_v1_1),
        V1_4 (port::read_mod_v1_4, port::write_mod_v1_4);
    /// `ofp_port_stats`.
    PORT_STATS: PortStats = V1_0 (port::read_stats_v1_0, port::write_stats_v1_0),
        V1_3 (port::read_stats_v1_3, port::write_stats_v1_3),
        V1_4 (port::read_stats_v1_4, port::write_stats_v1_4);
    /// `ofp_queue_stats`.
    QUEUE_STATS: QueueStats = V1_0 (queue::read_stats_v1_0, queue::write_stats_v1_0),
        V1_3 (queue::read_stats_v1_3, queue::write_stats_v1_3),
        V1_4 (queue::read_stats_v1_4, queue::write_stats_v1_4);
    /// `ofp_table_stats`.
    TABLE_STATS: TableStats = V1_0 (table::read_stats_v1_0, table::write_stats_v1_0),
        V1_1 (table::read_stats_v1_1, table::write_stats_v1_1),
        V1_2 (table::read_stats_v1_2, table::write_stats_v1_2),
        V1_3 (table::read_stats_v1_3, table::write_stats_v1_3);
    /// `ofp_table_mod`; 1.0 has none.
    TABLE_MOD: TableMod = V1_0 (table::read_mod_v1_3, table::write_mod_v1_3),
        V1_4 (table::read_mod_v1_4, table::write_mod_v1_4);
    /// `ofp_async_config` of a switch; 1.0 has none.
    ASYNC_CONFIG: AsyncConfig = V1_0 (role::read_async_v1_3, role::write_async_v1_3),
        V1_4 (role::read_async_v1_4, role::write_async_v1_4);
    /// `ofp_async_config` of a controller.
    ASYNC_CHANGE: AsyncConfig = V1_0 (role::read_async_v1_3, role::write_async_v1_3),
        V1_4 (role::read_async_change_v1_4, role::write_async_v1_4);
}

/// Reads and writes a match.
pub(crate) struct MatchCodec {
    pub(crate) read: fn(&mut Reader<'_>, Purpose) -> reader::ReadResult<Match>,
    pub(crate) write: fn(&mut Writer<'_>, &Match) -> writer::WriteResult<()>,
}

/// `ofp_match`.
pub(crate) static MATCH: ByVersion<MatchCodec> = ByVersion::new(&[
    (Version::V1_0, MatchCodec { read: compat::matching::read, write: compat::matching::write }),
    (
        Version::V1_1,
        MatchCodec { read: compat::matching_v1_1::read, write: compat::matching_v1_1::write },
    ),
    (Version::V1_2, MatchCodec { read: matching::read_oxm, write: matching::write_oxm }),
]);

/// Reads and writes what an entry does with its packets, of which the context is known.
pub(crate) struct InstructionsCodec {
    pub(crate) read: fn(Reader<'_>) -> reader::ReadResult<Vec<Instruction>>,
    pub(crate) write: fn(&mut Writer<'_>, &[Instruction], Context) -> writer::WriteResult<()>,
}

/// A list of actions, and of instructions since 1.1.
pub(crate) static INSTRUCTIONS: ByVersion<InstructionsCodec> = ByVersion::new(&[
    (
        Version::V1_0,
        InstructionsCodec { read: instruction::read_bare, write: instruction::write_bare },
    ),
    (
        Version::V1_1,
        InstructionsCodec { read: instruction::read_all, write: instruction::write_all },
    ),
    (
        Version::V1_5,
        InstructionsCodec { read: instruction::read_metered, write: instruction::write_metered },
    ),
]);
