//! Records of the control socket as JSON values: flat, with the specification's names.

use openflow::flow::FlowStats;
use openflow::group::{GroupDesc, GroupStats};
use openflow::message::MultipartReplyBody;
use openflow::meter::{MeterConfig, MeterStats};
use openflow::port::{PortConfig, PortDesc, PortState, PortStats, QueueStats};
use openflow::table::TableStats;
use openflow::text::{format_group, format_instructions, format_match, format_meter};
use serde_json::{Value, json};

pub(super) fn flow(flow: &FlowStats) -> Value {
    json!({
        "table_id": flow.table_id.0,
        "priority": flow.priority,
        "cookie": format!("{:#x}", flow.cookie.0),
        "match": format_match(&flow.matching),
        "actions": format_instructions(&flow.instructions),
        "packet_count": count(flow.packet_count),
        "byte_count": count(flow.byte_count),
        "duration_s": seconds(flow.duration_s, flow.duration_ns),
        "idle_timeout_s": flow.idle_timeout_s,
        "hard_timeout_s": flow.hard_timeout_s,
    })
}

pub(super) fn port_desc(port: &PortDesc) -> Value {
    json!({
        "port_no": port.port_no.0,
        "name": port.name,
        "hw_addr": port.hw_addr.to_string(),
        "port_down": port.config.contains(PortConfig::PORT_DOWN),
        "link_down": port.state.contains(PortState::LINK_DOWN),
        "curr_speed_kbps": port.curr_speed_kbps,
    })
}

pub(super) fn port_stats(port: &PortStats) -> Value {
    json!({
        "port_no": port.port_no.0,
        "rx_packets": count(port.rx_packets),
        "tx_packets": count(port.tx_packets),
        "rx_bytes": count(port.rx_bytes),
        "tx_bytes": count(port.tx_bytes),
        "rx_dropped": count(port.rx_dropped),
        "tx_dropped": count(port.tx_dropped),
        "rx_errors": count(port.rx_errors),
        "tx_errors": count(port.tx_errors),
        "duration_s": seconds(port.duration_s, port.duration_ns),
    })
}

pub(super) fn table_stats(table: &TableStats) -> Value {
    json!({
        "table_id": table.table_id.0,
        "active_count": table.active_count,
        "lookup_count": count(table.lookup_count),
        "matched_count": count(table.matched_count),
    })
}

pub(super) fn group(desc: &GroupDesc, stats: Option<&GroupStats>) -> Value {
    json!({
        "group_id": desc.group_id.0,
        "group": format_group(desc),
        "ref_count": stats.map(|stats| stats.ref_count),
        "packet_count": stats.map(|stats| count(stats.packet_count)),
        "byte_count": stats.map(|stats| count(stats.byte_count)),
    })
}

pub(super) fn meter(config: &MeterConfig, stats: Option<&MeterStats>) -> Value {
    json!({
        "meter_id": config.meter_id.0,
        "meter": format_meter(config),
        "flow_count": stats.map(|stats| stats.flow_count),
        "packet_in_count": stats.map(|stats| count(stats.packet_in_count)),
        "byte_in_count": stats.map(|stats| count(stats.byte_in_count)),
    })
}

/// A reply that is one record; `None` for one that is a list of its own.
pub(super) fn of_reply(body: &MultipartReplyBody) -> Option<Value> {
    Some(match body {
        MultipartReplyBody::Aggregate(sums) => json!({
            "packet_count": count(sums.packet_count),
            "byte_count": count(sums.byte_count),
            "flow_count": sums.flow_count,
        }),
        MultipartReplyBody::Queue(queues) => Value::Array(queues.iter().map(queue_stats).collect()),
        MultipartReplyBody::Desc(desc) => json!({
            "mfr_desc": desc.mfr_desc,
            "hw_desc": desc.hw_desc,
            "sw_desc": desc.sw_desc,
            "serial_num": desc.serial_num,
            "dp_desc": desc.dp_desc,
        }),
        MultipartReplyBody::GroupFeatures(features) => json!({
            "types": features.types,
            "capabilities": features.capabilities.bits(),
            "max_groups": features.max_groups,
            "actions": features.actions,
        }),
        MultipartReplyBody::MeterFeatures(features) => json!({
            "max_meter": features.max_meter,
            "band_types": features.band_types,
            "capabilities": features.capabilities,
            "max_bands": features.max_bands,
            "max_color": features.max_color,
        }),
        MultipartReplyBody::Flow(_)
        | MultipartReplyBody::Table(_)
        | MultipartReplyBody::PortStats(_)
        | MultipartReplyBody::Group(_)
        | MultipartReplyBody::GroupDesc(_)
        | MultipartReplyBody::Meter(_)
        | MultipartReplyBody::MeterConfig(_)
        | MultipartReplyBody::TableFeatures(_)
        | MultipartReplyBody::PortDesc(_)
        | MultipartReplyBody::Experimenter(_) => return None,
    })
}

fn queue_stats(queue: &QueueStats) -> Value {
    json!({
        "port_no": queue.port_no.0,
        "queue_id": queue.queue_id.0,
        "tx_packets": count(queue.tx_packets),
        "tx_bytes": count(queue.tx_bytes),
        "tx_errors": count(queue.tx_errors),
        "duration_s": seconds(queue.duration_s, queue.duration_ns),
    })
}

/// Packets and bytes for people.
pub(super) fn counted(packets: u64, bytes: u64) -> String {
    format!("n_packets={packets}, n_bytes={bytes}")
}

/// A counter; null where it is not kept (all ones).
fn count(count: u64) -> Value {
    if count == u64::MAX { Value::Null } else { count.into() }
}

fn seconds(seconds: u32, ns: u32) -> f64 {
    f64::from(seconds) + f64::from(ns) / 1e9
}
