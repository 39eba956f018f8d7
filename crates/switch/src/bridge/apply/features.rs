//! The features reply (clause 7.3.1), made from what the datapath announces.

use openflow::message::Features;
use openflow::{Message, Version};

use super::Bridge;

/// The ports that fit a message, whose length has 16 bits. Of those beyond them a controller hears
/// by port descriptions, which Open vSwitch's tools ask for in 1.0 too when a reply is full.
fn room_for_ports(version: Version) -> usize {
    const HEADER: usize = 32;
    let port = if version.has_wide_ports() { 64 } else { 48 };
    (usize::from(u16::MAX) - HEADER) / port
}

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
        features.ports.truncate(room_for_ports(version));
    }
    Message::FeaturesReply(features)
}

#[cfg(test)]
mod tests {
    use super::room_for_ports;
    use openflow::message::Features;
    use openflow::port::PortDesc;
    use openflow::{Message, Version, Xid};

    #[test]
    fn a_reply_has_as_many_ports_as_fit() {
        for version in [Version::V1_0, Version::V1_2] {
            let room = room_for_ports(version);
            for (ports, fits) in [(room, true), (room + 1, false)] {
                let ports = vec![PortDesc::default(); ports];
                let reply = Message::FeaturesReply(Features { ports, ..Features::default() });
                assert_eq!(wire::encode(version, Xid(1), &reply).is_ok(), fits, "{version:?}");
            }
        }
    }
}
