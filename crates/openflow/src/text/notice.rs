//! Messages that are no statistics, as `ovs-ofctl` prints them: packet-in, port status, masks,
//! queues.

use super::reply::{format_port_desc, title};
use crate::flow::FlowRemovedReason;
use crate::id::{Cookie, PortNo, Xid};
use crate::message::{AsyncConfig, PacketIn, PacketInReason, QueueConfig};
use crate::port::{PacketQueue, PortReason, PortStatus, QueueProperty};
use crate::version::Version;

/// A packet-in as `ovs-ofctl monitor` prints it, but for the packet itself.
#[must_use]
pub fn format_packet_in(version: Version, xid: Xid, packet: &PacketIn) -> String {
    let mut out = title(version, xid, "OFPT_PACKET_IN");
    if packet.table_id.0 != 0 && version.has_pipeline() {
        out += &format!(" table_id={}", packet.table_id.0);
    }
    if packet.cookie != Cookie(u64::MAX) && version.has_pipeline() {
        out += &format!(" cookie={:#x}", packet.cookie.0);
    }
    out += &format!(" total_len={}", packet.total_len);
    if let Some(port) = packet.in_port() {
        out += &format!(" in_port={port}");
    }
    out += &format!(" (via {}) data_len={}", packet.reason.text(), packet.data.len());
    match packet.buffer_id {
        Some(buffer) => out + &format!(" buffer={:#010x}", buffer.0),
        None => out + " (unbuffered)",
    }
}

pub(super) fn format_port_status(version: Version, status: &PortStatus) -> String {
    format!(" {}:{}", status.reason.text(), format_port_desc(version, &status.desc))
}

/// The masks for master and equal (`primary`), and for slave (`secondary`).
pub(super) fn format_async(config: &AsyncConfig) -> String {
    let mut out = String::new();
    let AsyncConfig { packet_in, port_status, flow_removed } = config;
    let roles = packet_in.iter().zip(port_status).zip(flow_removed).zip(["primary", "secondary"]);
    for (((packet_in, port_status), flow_removed), role) in roles {
        let ports = [PortReason::Add, PortReason::Delete, PortReason::Modify].map(|reason| {
            (
                u32::from(reason.number()),
                match reason {
                    PortReason::Add => "add",
                    PortReason::Delete => "delete",
                    PortReason::Modify | PortReason::Unknown(_) => "modify",
                },
            )
        });
        let packets = PacketInReason::ALL.iter();
        let packets = packets.map(|reason| (u32::from(reason.number()), reason.text()));
        let flows = FlowRemovedReason::ALL.iter();
        let flows = flows.map(|reason| (u32::from(reason.number()), reason.text()));
        out += &format!("\n {role}:");
        out += &mask("PACKET_IN", *packet_in, packets);
        out += &mask("PORT_STATUS", *port_status, ports.into_iter());
        out += &mask("FLOW_REMOVED", *flow_removed, flows);
        // Messages of later versions.
        for name in ["ROLE_STATUS", "TABLE_STATUS", "REQUESTFORWARD"] {
            out += &mask(name, 0, std::iter::empty());
        }
        out += if role == "primary" { "\n" } else { "" };
    }
    out
}

fn mask(name: &str, bits: u32, reasons: impl Iterator<Item = (u32, &'static str)>) -> String {
    let set: Vec<&str> =
        reasons.filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, text)| text).collect();
    let set = if set.is_empty() { "(off)".to_owned() } else { set.join(" ") };
    format!("\n{name:>16}: {set}")
}

pub(super) fn format_queues(config: &QueueConfig) -> String {
    let mut queues: Vec<&PacketQueue> = config.queues.iter().collect();
    queues.sort_by_key(|queue| queue.queue_id);
    let mut out = match config.port {
        _ if queues.is_empty() => String::new(),
        PortNo::ANY => " port=ANY".to_owned(),
        port => format!(" port={port}"),
    };
    for queue in queues {
        out += &format!("\nqueue {}:", queue.queue_id.0);
        for property in &queue.properties {
            match property {
                QueueProperty::MinRate(rate) => out += &format!(" min_rate:{}", share(*rate)),
                QueueProperty::MaxRate(rate) => out += &format!(" max_rate:{}", share(*rate)),
                QueueProperty::Experimenter { .. } | QueueProperty::Unknown { .. } => {}
            }
        }
    }
    out
}

/// Tenths of a percent; more than all of it switches the rate off.
fn share(rate: u16) -> String {
    match rate {
        0..=1000 => format!("{}.{}%", rate / 10, rate % 10),
        _ => "(disabled)".to_owned(),
    }
}
