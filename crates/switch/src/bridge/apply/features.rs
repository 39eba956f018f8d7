//! The features reply (clause 7.3.1), made from what the datapath announces.

use openflow::message::Features;
use openflow::{Message, Version};

use super::Bridge;

pub(super) fn reply(bridge: &Bridge, version: Version) -> Message {
    let mut features = Features {
        datapath_id: bridge.dpid(),
        n_buffers: 0,
        n_tables: bridge.with_control(|control| control.config().n_tables).unwrap_or(0),
        capabilities: datapath::capabilities(version),
        ..Features::default()
    };
    if version.has_action_bitmap() {
        features.actions = datapath::action_bits(version);
    }
    if !version.has_port_desc() {
        features.ports = bridge.port_descs();
    }
    Message::FeaturesReply(features)
}
