//! Messages as JSON values: flat, with the specification's names; a list is a value for each entry.

use openflow::flow::{FlowRemoved, FlowRemovedReason, FlowStats};
use openflow::flow_monitor::FlowUpdate;
use openflow::group::{BucketCounter, GroupDesc, GroupStats};
use openflow::message::{AsyncEvent, MultipartReplyBody, PacketIn};
use openflow::meter::{BandCounter, MeterConfig, MeterStats};
use openflow::port::{
    PacketQueue, PortConfig, PortDesc, PortState, PortStats, QueueProperty, QueueStats,
};
use openflow::table::{TableFeatures, TableMod, TableStats, Vacancy};
use openflow::text::{
    format_group, format_instructions, format_match, format_meter, format_property,
};
use openflow::{Message, PortNo};
use serde_json::{Map, Value, json};

use control::hex;

pub(super) fn flow(flow: &FlowStats) -> Value {
    let mut value = json!({
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
    });
    // As in the text, which has it where it is not zero: 1.4 alone has it.
    if let (1.., Value::Object(object)) = (flow.importance, &mut value) {
        object.insert("importance".into(), flow.importance.into());
    }
    value
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

fn port_stats(port: &PortStats) -> Value {
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

fn table_stats(table: &TableStats) -> Value {
    json!({
        "table_id": table.table_id.0,
        "active_count": table.active_count,
        "lookup_count": count(table.lookup_count),
        "matched_count": count(table.matched_count),
    })
}

pub(super) fn group(desc: &GroupDesc) -> Value {
    json!({ "group_id": desc.group_id.0, "group": format_group(desc) })
}

fn meter(config: &MeterConfig) -> Value {
    json!({ "meter_id": config.meter_id.0, "meter": format_meter(config) })
}

/// The values of a message: one for each entry of a list, else one.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are values by their names")]
pub(super) fn of_message(message: &Message) -> Vec<Value> {
    match message {
        Message::MultipartReply(reply) => of_body(&reply.body),
        Message::FeaturesReply(features) => vec![json!({
            "dpid": features.datapath_id.to_string(),
            "n_tables": features.n_tables,
            "n_buffers": features.n_buffers,
            "capabilities": features.capabilities.bits(),
        })],
        Message::GetConfigReply(config) => vec![json!({
            "flags": config.flags,
            "miss_send_len": config.miss_send_len,
        })],
        Message::GetAsyncReply(config) => {
            let given = AsyncEvent::ALL.into_iter().zip(config.masks);
            let given = given.filter(|(_, masks)| masks.iter().any(Option::is_some));
            let masks = given.map(|(event, _)| (name(event).to_owned(), config.of(event).into()));
            vec![Value::Object(masks.collect())]
        }
        Message::QueueGetConfigReply(config) => {
            config.queues.iter().map(|queue| queue_config(config.port, queue)).collect()
        }
        Message::PacketIn(packet) => vec![packet_in(packet)],
        Message::FlowRemoved(gone) => vec![flow_removed(gone)],
        Message::PortStatus(status) => vec![json!({
            "type": "port_status",
            "reason": status.reason.text(),
            "port": port_desc(&status.desc),
        })],
        Message::TableStatus(status) => vec![json!({
            "type": "table_status",
            "reason": status.reason.text(),
            "table": table_desc(&status.table),
        })],
        Message::Error(error) => vec![json!({
            "type": "error",
            "error_type": error.error_type,
            "code": error.code,
        })],
        other => vec![json!({ "type": other.kind().row().name })],
    }
}

fn of_body(body: &MultipartReplyBody) -> Vec<Value> {
    fn each<T>(list: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
        list.iter().map(value).collect()
    }
    match body {
        MultipartReplyBody::Flow(flows) => each(flows, flow),
        MultipartReplyBody::Table(tables) => each(tables, table_stats),
        MultipartReplyBody::PortStats(ports) => each(ports, port_stats),
        MultipartReplyBody::PortDesc(ports) => each(ports, port_desc),
        MultipartReplyBody::Queue(queues) => each(queues, queue_stats),
        MultipartReplyBody::Group(groups) => each(groups, group_stats),
        MultipartReplyBody::GroupDesc(groups) => each(groups, group),
        MultipartReplyBody::Meter(meters) => each(meters, meter_stats),
        MultipartReplyBody::MeterConfig(meters) => each(meters, meter),
        MultipartReplyBody::TableFeatures(tables) => each(tables, table_features),
        MultipartReplyBody::TableDesc(tables) => each(tables, table_desc),
        MultipartReplyBody::QueueDesc(queues) => {
            each(queues, |queue| queue_config(queue.port, queue))
        }
        MultipartReplyBody::FlowMonitor(updates) => each(updates, flow_update),
        MultipartReplyBody::Aggregate(sums) => vec![json!({
            "packet_count": count(sums.packet_count),
            "byte_count": count(sums.byte_count),
            "flow_count": sums.flow_count,
        })],
        MultipartReplyBody::Desc(desc) => vec![json!({
            "mfr_desc": desc.mfr_desc,
            "hw_desc": desc.hw_desc,
            "sw_desc": desc.sw_desc,
            "serial_num": desc.serial_num,
            "dp_desc": desc.dp_desc,
        })],
        MultipartReplyBody::GroupFeatures(features) => vec![json!({
            "types": features.types,
            "capabilities": features.capabilities.bits(),
            "max_groups": features.max_groups,
            "actions": features.actions,
        })],
        MultipartReplyBody::MeterFeatures(features) => vec![json!({
            "max_meter": features.max_meter,
            "band_types": features.band_types,
            "capabilities": features.capabilities,
            "max_bands": features.max_bands,
            "max_color": features.max_color,
        })],
        MultipartReplyBody::Experimenter(own) => vec![json!({
            "experimenter": own.experimenter,
            "exp_type": own.exp_type,
            "data": hex(&own.data),
        })],
    }
}

/// The key of the masks of a kind of messages.
fn name(event: AsyncEvent) -> &'static str {
    match event {
        AsyncEvent::PacketIn => "packet_in",
        AsyncEvent::PortStatus => "port_status",
        AsyncEvent::FlowRemoved => "flow_removed",
        AsyncEvent::RoleStatus => "role_status",
        AsyncEvent::TableStatus => "table_status",
        AsyncEvent::RequestForward => "request_forward",
    }
}

fn table_desc(table: &TableMod) -> Value {
    let mut value = json!({ "table_id": table.table_id.0, "config": table.config });
    if let Some(Vacancy { down, up, now }) = table.vacancy {
        value["vacancy"] = json!({ "down": down, "up": up, "now": now });
    }
    value
}

fn packet_in(packet: &PacketIn) -> Value {
    json!({
        "type": "packet_in",
        "reason": packet.reason.text(),
        "table_id": packet.table_id.0,
        "cookie": format!("{:#x}", packet.cookie.0),
        "in_port": packet.in_port().map(|port| port.0),
        "match": format_match(&packet.matching),
        "total_len": packet.total_len,
        "buffer_id": packet.buffer_id.map(|buffer| buffer.0),
        "data": hex(&packet.data),
    })
}

fn flow_update(update: &FlowUpdate) -> Value {
    let change = match update {
        FlowUpdate::Change(change) => change,
        FlowUpdate::Abbreviated(xid) => return json!({ "event": "ABBREV", "xid": xid.0 }),
        FlowUpdate::Paused => return json!({ "event": "PAUSED" }),
        FlowUpdate::Resumed => return json!({ "event": "RESUMED" }),
    };
    json!({
        "event": change.event.text(),
        "reason": change.reason.map(FlowRemovedReason::text),
        "table_id": change.table_id.0,
        "priority": change.priority,
        "cookie": format!("{:#x}", change.cookie.0),
        "match": format_match(&change.matching),
        "actions": format_instructions(&change.instructions),
        "idle_timeout_s": change.idle_timeout_s,
        "hard_timeout_s": change.hard_timeout_s,
    })
}

fn flow_removed(gone: &FlowRemoved) -> Value {
    json!({
        "type": "flow_removed",
        "reason": gone.reason.text(),
        "table_id": gone.table_id.0,
        "priority": gone.priority,
        "cookie": format!("{:#x}", gone.cookie.0),
        "match": format_match(&gone.matching),
        "packet_count": count(gone.packet_count),
        "byte_count": count(gone.byte_count),
        "duration_s": seconds(gone.duration_s, gone.duration_ns),
    })
}

fn group_stats(stats: &GroupStats) -> Value {
    let bucket = |bucket: &BucketCounter| {
        json!({
            "packet_count": count(bucket.packet_count),
            "byte_count": count(bucket.byte_count),
        })
    };
    json!({
        "group_id": stats.group_id.0,
        "ref_count": stats.ref_count,
        "packet_count": count(stats.packet_count),
        "byte_count": count(stats.byte_count),
        "duration_s": seconds(stats.duration_s, stats.duration_ns),
        "buckets": stats.buckets.iter().map(bucket).collect::<Vec<_>>(),
    })
}

fn meter_stats(stats: &MeterStats) -> Value {
    let band = |band: &BandCounter| {
        json!({
            "packet_count": count(band.packet_count),
            "byte_count": count(band.byte_count),
        })
    };
    json!({
        "meter_id": stats.meter_id.0,
        "flow_count": stats.flow_count,
        "packet_in_count": count(stats.packet_in_count),
        "byte_in_count": count(stats.byte_in_count),
        "duration_s": seconds(stats.duration_s, stats.duration_ns),
        "bands": stats.bands.iter().map(band).collect::<Vec<_>>(),
    })
}

/// A property's text is its value: a list of names.
fn table_features(table: &TableFeatures) -> Value {
    let properties: Map<String, Value> = table
        .properties
        .iter()
        .map(format_property)
        .filter_map(|text| {
            let (name, list) =
                text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
            let names: Vec<&str> = list.split([' ', ',']).filter(|name| !name.is_empty()).collect();
            Some((name.to_owned(), names.into()))
        })
        .collect();
    json!({
        "table_id": table.table_id.0,
        "name": table.name,
        "metadata_match": format!("{:#x}", table.metadata_match),
        "metadata_write": format!("{:#x}", table.metadata_write),
        "config": table.config,
        "max_entries": table.max_entries,
        "properties": properties,
    })
}

/// Rates in tenths of a percent; null where there is none.
fn queue_config(port: PortNo, queue: &PacketQueue) -> Value {
    let rate = |wanted: fn(&QueueProperty) -> Option<u16>| queue.properties.iter().find_map(wanted);
    let min_rate = rate(|property| match property {
        QueueProperty::MinRate(rate) => Some(*rate),
        QueueProperty::MaxRate(_)
        | QueueProperty::Experimenter { .. }
        | QueueProperty::Unknown { .. } => None,
    });
    let max_rate = rate(|property| match property {
        QueueProperty::MaxRate(rate) => Some(*rate),
        QueueProperty::MinRate(_)
        | QueueProperty::Experimenter { .. }
        | QueueProperty::Unknown { .. } => None,
    });
    let port = if port == PortNo::ANY { queue.port } else { port };
    json!({
        "port_no": port.0,
        "queue_id": queue.queue_id.0,
        "min_rate": min_rate,
        "max_rate": max_rate,
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

/// A counter; null where it is not kept (all ones).
fn count(count: u64) -> Value {
    if count == u64::MAX { Value::Null } else { count.into() }
}

fn seconds(seconds: u32, ns: u32) -> f64 {
    f64::from(seconds) + f64::from(ns) / 1e9
}

#[cfg(test)]
mod tests {
    use openflow::flow::{FlowModFlags, FlowStats};
    use openflow::message::{AsyncConfig, AsyncEvent};
    use openflow::{Cookie, Match, Message, TableId};
    use serde_json::json;

    #[test]
    fn the_masks_that_a_switch_gives_are_all_there() {
        let masks = AsyncConfig::new([1, 2], [3, 4], [5, 6]);
        let of_1_3 = json!({"packet_in": [1, 2], "port_status": [3, 4], "flow_removed": [5, 6]});
        let value = |masks| super::of_message(&Message::GetAsyncReply(masks));
        let mut of_1_4 = of_1_3.clone();
        assert_eq!(value(masks), [of_1_3]);
        of_1_4["role_status"] = json!([7, 0]);
        assert_eq!(value(masks.with(AsyncEvent::RoleStatus, [7, 0])), [of_1_4]);
    }

    #[test]
    fn an_entry_has_its_importance_where_it_has_one() {
        let flow = |importance| FlowStats {
            table_id: TableId(0),
            duration_s: 0,
            duration_ns: 0,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowModFlags::empty(),
            importance,
            cookie: Cookie(0),
            packet_count: 0,
            byte_count: 0,
            matching: Match::any(),
            instructions: Vec::new(),
        };
        assert_eq!(super::flow(&flow(0)).get("importance"), None);
        assert_eq!(super::flow(&flow(7)).get("importance"), Some(&7.into()));
    }
}
