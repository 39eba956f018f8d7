//! Messages that are no statistics, as `ovs-ofctl` prints them: packet-in, port status, masks,
//! queues.

use super::reply::{format_port_desc, title};
use crate::flow::FlowRemovedReason;
use crate::id::{Cookie, PortNo, Xid};
use crate::message::{AsyncConfig, AsyncEvent, PacketIn, PacketInReason, RoleStatus};
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
pub(super) fn format_async(version: Version, config: &AsyncConfig) -> String {
    let mut out = String::new();
    for (index, role) in ["primary", "secondary"].into_iter().enumerate() {
        let of = |event| config.of(event)[index];
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
        let packets = PacketInReason::ALL.iter().filter(|reason| reason.is_in(version));
        let packets = packets.map(|reason| (u32::from(reason.number()), reason.text()));
        let flows = FlowRemovedReason::ALL.iter().filter(|reason| reason.is_in(version));
        let flows = flows.map(|reason| (u32::from(reason.number()), reason.text()));
        out += &format!("\n {role}:");
        out += &mask("PACKET_IN", of(AsyncEvent::PacketIn), packets);
        out += &mask("PORT_STATUS", of(AsyncEvent::PortStatus), ports.into_iter());
        out += &mask("FLOW_REMOVED", of(AsyncEvent::FlowRemoved), flows);
        // Messages of 1.4; `ovs-ofctl` has these words for their reasons.
        let later: [(_, _, &[(u32, &str)]); 3] = [
            ("ROLE_STATUS", AsyncEvent::RoleStatus, ROLE_REASONS),
            ("TABLE_STATUS", AsyncEvent::TableStatus, TABLE_REASONS),
            ("REQUESTFORWARD", AsyncEvent::RequestForward, FORWARD_REASONS),
        ];
        for (name, event, reasons) in later {
            out += &mask(name, of(event), reasons.iter().copied());
        }
        out += if role == "primary" { "\n" } else { "" };
    }
    out
}

const ROLE_REASONS: &[(u32, &str)] = &[(0, "MASTER_REQUEST"), (1, "CONFIG"), (2, "EXPERIMENTER")];
const TABLE_REASONS: &[(u32, &str)] = &[(3, "VACANCY_DOWN"), (4, "VACANCY_UP")];
const FORWARD_REASONS: &[(u32, &str)] = &[(0, "GROUP_MOD"), (1, "METER_MOD")];

pub(super) fn format_role_status(status: &RoleStatus) -> String {
    let (role, reason) = (status.role, status.reason.text());
    format!(" role={} generation_id={} reason={reason}", role.role.text(), role.generation_id)
}

fn mask(name: &str, bits: u32, reasons: impl Iterator<Item = (u32, &'static str)>) -> String {
    let set: Vec<&str> =
        reasons.filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, text)| text).collect();
    let set = if set.is_empty() { "(off)".to_owned() } else { set.join(" ") };
    format!("\n{name:>16}: {set}")
}

pub(super) fn format_queues(port: PortNo, queues: &[PacketQueue]) -> String {
    let mut queues: Vec<&PacketQueue> = queues.iter().collect();
    queues.sort_by_key(|queue| queue.queue_id);
    let mut out = match port {
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
