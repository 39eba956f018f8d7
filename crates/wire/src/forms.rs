//! Forms of messages that a controller chooses for its connection by requests of Nicira's.

use openflow::flow::FlowForm;
use openflow::message::PacketInForm;

/// Forms of messages on a connection. Those of flow entries differ from the standard's in OpenFlow
/// 1.0 only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms {
    /// Flow-mods name their table in the upper byte of their command (`NXT_FLOW_MOD_TABLE_ID`);
    /// [`TableId::ALL`](openflow::TableId::ALL) names none.
    pub has_table_ids: bool,
    /// Form in which flow entries are written (`NXT_SET_FLOW_FORMAT`).
    pub flows: FlowForm,
    /// Form in which packet-ins are written (`NXT_SET_PACKET_IN_FORMAT`).
    pub packet_ins: PacketInForm,
}
