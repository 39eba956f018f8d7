//! Statistics and descriptions with the keys that Ryu prints.
//!
//! Numbers are those of the version spoken: values kept in 1.3's form are in 1.0's again.
//! A count that is not kept reads all ones, as it does on the wire.

use super::actions::{to_text, to_values};
use super::matching;
use crate::words;
use openflow::action::ACTIONS;
use openflow::flow::{FlowModFlags, FlowStats};
use openflow::group::{GroupCapabilities, GroupDesc, GroupFeatures, GroupStats, GroupType};
use openflow::instruction::INSTRUCTIONS;
use openflow::message::{MultipartReply, MultipartReplyBody, SwitchDesc};
use openflow::meter::{BandKind, MeterConfig, MeterFeatures, MeterFlags, MeterStats};
use openflow::port::{
    PacketQueue, PortDesc, PortFeatures, PortState, PortStats, QueueProperty, QueueStats,
};
use openflow::table::{TableAbilities, TableStats};
use openflow::{ActionKind, Field, InstructionKind, Message, PortNo, Version, Xid};
use serde_json::{Map, Value, json};

/// Bytes before the entries of a multipart reply of 1.3.
const MULTIPART_HEADER_LEN: usize = 16;

/// Bytes that an entry has on the wire: its own field `length`, which is not kept when read.
fn wire_length(version: Version, body: MultipartReplyBody) -> Value {
    let reply = Message::MultipartReply(MultipartReply { more: false, body });
    let encoded = wire::encode(version, Xid(0), &reply).ok();
    let length = encoded.and_then(|bytes| bytes.len().checked_sub(MULTIPART_HEADER_LEN));
    length.map_or(Value::Null, Value::from)
}

pub(crate) fn desc(desc: &SwitchDesc) -> Value {
    json!({
        "mfr_desc": desc.mfr_desc,
        "hw_desc": desc.hw_desc,
        "sw_desc": desc.sw_desc,
        "serial_num": desc.serial_num,
        "dp_desc": desc.dp_desc,
    })
}

pub(crate) fn flow(version: Version, flow: FlowStats) -> Value {
    let mut value = json!({
        "priority": flow.priority,
        "cookie": flow.cookie.0,
        "idle_timeout": flow.idle_timeout_s,
        "hard_timeout": flow.hard_timeout_s,
        "byte_count": flow.byte_count,
        "packet_count": flow.packet_count,
        "duration_sec": flow.duration_s,
        "duration_nsec": flow.duration_ns,
        "actions": to_values(version, &flow.instructions),
        "match": matching::to_value(version, &flow.matching),
        "table_id": words::TABLES.value(flow.table_id.0.into()),
    });
    if let Value::Object(object) = &mut value
        && version.has_instructions()
    {
        object.insert("flags".into(), flow.flags.bits().into());
        if version.has_importance() {
            object.insert("importance".into(), flow.importance.into());
        }
        let length = wire_length(version, MultipartReplyBody::Flow(vec![flow]));
        object.insert("length".into(), length);
    }
    value
}

/// The flags of a flow-mod by their number in a version: 1.0's third is `EMERG`.
pub(crate) fn flow_flags(version: Version, number: u16) -> FlowModFlags {
    let flags = FlowModFlags::from_bits_retain(number);
    let third = FlowModFlags::RESET_COUNTS;
    if version.has_emergency_entries() && flags.contains(third) {
        flags.difference(third) | FlowModFlags::EMERG
    } else {
        flags
    }
}

pub(crate) fn table(version: Version, table: &TableStats) -> Value {
    let mut value = json!({
        "table_id": words::TABLES.value(table.table_id.0.into()),
        "active_count": table.active_count,
        "lookup_count": table.lookup_count,
        "matched_count": table.matched_count,
    });
    if let Value::Object(object) = &mut value
        && version.has_table_desc_in_stats()
    {
        object.insert("name".into(), table.name.as_str().into());
        object.insert("max_entries".into(), table.max_entries.into());
        if version.has_pipeline() {
            object.extend(abilities(version, &table.abilities));
        } else {
            object.insert("wildcards".into(), wildcards(table.wildcards));
        }
    }
    value
}

/// All that a table of 1.1 or 1.2 can do: the names of its bits.
fn abilities(version: Version, can: &TableAbilities) -> Vec<(String, Value)> {
    let fields = |bits: u64| {
        let fields: Vec<Field> = match version.has_tuple_matches() {
            true => TableAbilities::members(bits).collect(),
            false => TableAbilities::fields(bits).collect(),
        };
        fields.iter().map(|field| field.row().name.to_uppercase()).collect::<Vec<_>>()
    };
    let mut all = vec![
        ("match", json!(fields(can.matches))),
        ("wildcards", json!(fields(can.wildcards))),
        ("write_actions", json!(action_names(version, can.write_actions))),
        ("apply_actions", json!(action_names(version, can.apply_actions))),
        ("instructions", json!(instruction_names(version, can.instructions))),
        ("config", json!(names_of(can.config, &MISS_SETTINGS))),
    ];
    if version.has_set_field() {
        all.extend([
            ("write_setfields", json!(fields(can.write_setfields))),
            ("apply_setfields", json!(fields(can.apply_setfields))),
            ("metadata_match", can.metadata_match.into()),
            ("metadata_write", can.metadata_write.into()),
        ]);
    }
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The bits of settings of 1.1 and 1.2 of a table (`OFPTC_TABLE_MISS_*`); none is set where packets
/// that no entry matches go to the controller.
const MISS_SETTINGS: [(u32, &str); 2] = [(1, "TABLE_MISS_CONTINUE"), (1 << 1, "TABLE_MISS_DROP")];

/// 1.0's wildcards: the bits of its clause 5.2.3, and a count of bits for each address.
fn wildcards(bits: u32) -> Value {
    const NAMES: [(u32, &str); 12] = [
        (1, "IN_PORT"),
        (1 << 1, "DL_VLAN"),
        (1 << 2, "DL_SRC"),
        (1 << 3, "DL_DST"),
        (1 << 4, "DL_TYPE"),
        (1 << 5, "NW_PROTO"),
        (1 << 6, "TP_SRC"),
        (1 << 7, "TP_DST"),
        (0x3f << 8, "NW_SRC"),
        (0x3f << 14, "NW_DST"),
        (1 << 20, "DL_VLAN_PCP"),
        (1 << 21, "NW_TOS"),
    ];
    let held = NAMES.iter().filter(|(mask, _)| bits & mask != 0);
    held.map(|(_, name)| *name).collect()
}

pub(crate) fn port_stats(version: Version, port: &PortStats) -> Value {
    let mut value = json!({
        "port_no": words::port_value(version, port.port_no),
        "rx_packets": port.rx_packets,
        "tx_packets": port.tx_packets,
        "rx_bytes": port.rx_bytes,
        "tx_bytes": port.tx_bytes,
        "rx_dropped": port.rx_dropped,
        "tx_dropped": port.tx_dropped,
        "rx_errors": port.rx_errors,
        "tx_errors": port.tx_errors,
        "rx_frame_err": port.rx_frame_err,
        "rx_over_err": port.rx_over_err,
        "rx_crc_err": port.rx_crc_err,
        "collisions": port.collisions,
    });
    with_duration(version, &mut value, port.duration_s, port.duration_ns);
    value
}

fn with_duration(version: Version, value: &mut Value, seconds: u32, nanoseconds: u32) {
    if let Value::Object(object) = value
        && version.has_durations()
    {
        object.insert("duration_sec".into(), seconds.into());
        object.insert("duration_nsec".into(), nanoseconds.into());
    }
}

pub(crate) fn port_desc(version: Version, port: &PortDesc) -> Value {
    let mut value = json!({
        "port_no": words::port_value(version, port.port_no),
        "hw_addr": port.hw_addr.to_string(),
        "name": port.name,
        "config": port.config.bits(),
        "state": state(version, port.state),
        "curr": features(version, port.curr),
        "advertised": features(version, port.advertised),
        "supported": features(version, port.supported),
        "peer": features(version, port.peer),
    });
    if let Value::Object(object) = &mut value
        && version.has_port_speeds()
    {
        object.insert("curr_speed".into(), port.curr_speed_kbps.into());
        object.insert("max_speed".into(), port.max_speed_kbps.into());
    }
    value
}

/// The bits of a state; 1.0 has the spanning tree's in bits 8 and 9.
fn state(version: Version, state: PortState) -> u32 {
    const STP_BLOCK: u32 = 3 << 8;
    if version.has_spanning_tree() && state.contains(PortState::BLOCKED) {
        return state.difference(PortState::BLOCKED | PortState::LIVE).bits() | STP_BLOCK;
    }
    state.bits()
}

/// First bit of the media, copper and what follows it, in 1.0 and in 1.3; the rates before them
/// are the same.
const MEDIUM: (u32, u32) = (7, 11);
const RATES: u32 = 0x7f;

/// The bits of a port's features in a version.
fn features(version: Version, features: PortFeatures) -> u32 {
    if version.has_port_speeds() {
        return features.bits();
    }
    features.bits() & RATES | features.bits() >> MEDIUM.1 << MEDIUM.0
}

/// The features of a number in a version.
pub(crate) fn features_from(version: Version, number: u32) -> PortFeatures {
    if version.has_port_speeds() {
        return PortFeatures::from_bits_retain(number);
    }
    PortFeatures::from_bits_retain(number & RATES | number >> MEDIUM.0 << MEDIUM.1)
}

pub(crate) fn queue_stats(version: Version, queue: &QueueStats) -> Value {
    let mut value = json!({
        "port_no": words::port_number(version, queue.port_no),
        "queue_id": queue.queue_id.0,
        "tx_bytes": queue.tx_bytes,
        "tx_errors": queue.tx_errors,
        "tx_packets": queue.tx_packets,
    });
    with_duration(version, &mut value, queue.duration_s, queue.duration_ns);
    value
}

pub(crate) fn queue_config(version: Version, port: PortNo, queues: &[PacketQueue]) -> Value {
    let queues: Vec<Value> = queues
        .iter()
        .map(|queue| {
            let properties: Vec<Value> = queue.properties.iter().map(queue_property).collect();
            json!({
                "port": words::port_value(version, queue.port),
                "queue_id": words::QUEUES.value(queue.queue_id.0),
                "properties": properties,
            })
        })
        .collect();
    json!({ "port": words::port_value(version, port), "queues": queues })
}

fn queue_property(property: &QueueProperty) -> Value {
    match property {
        QueueProperty::MinRate(rate) => json!({"property": "MIN_RATE", "rate": rate}),
        QueueProperty::MaxRate(rate) => json!({"property": "MAX_RATE", "rate": rate}),
        QueueProperty::Experimenter { experimenter, data } => {
            json!({"property": "EXPERIMENTER", "experimenter": experimenter, "data": data})
        }
        QueueProperty::Unknown { .. } => json!({"property": "UNKNOWN"}),
    }
}

/// Names of the bits that are set.
fn names_of(bits: u32, names: &[(u32, &'static str)]) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}

/// The flags of a meter and their names.
pub(crate) const METER_FLAGS: [(u32, &str); 4] = [
    (MeterFlags::KBPS.bits() as u32, "KBPS"),
    (MeterFlags::PKTPS.bits() as u32, "PKTPS"),
    (MeterFlags::BURST.bits() as u32, "BURST"),
    (MeterFlags::STATS.bits() as u32, "STATS"),
];

pub(crate) fn meter_stats(version: Version, meter: MeterStats) -> Value {
    let bands = meter.bands.iter().map(
        |band| json!({"packet_band_count": band.packet_count, "byte_band_count": band.byte_count}),
    );
    json!({
        "meter_id": words::METERS.value(meter.meter_id.0),
        "flow_count": meter.flow_count,
        "packet_in_count": meter.packet_in_count,
        "byte_in_count": meter.byte_in_count,
        "duration_sec": meter.duration_s,
        "duration_nsec": meter.duration_ns,
        "band_stats": bands.collect::<Vec<_>>(),
        "len": wire_length(version, MultipartReplyBody::Meter(vec![meter])),
    })
}

pub(crate) fn meter_config(meter: &MeterConfig) -> Value {
    let bands = meter.bands.iter().map(|band| {
        let mut value = json!({"rate": band.rate, "burst_size": band.burst_size});
        let (name, more) = match band.kind {
            BandKind::Drop => ("DROP", None),
            BandKind::DscpRemark { prec_level } => {
                ("DSCP_REMARK", Some(("prec_level", u32::from(prec_level))))
            }
            BandKind::Experimenter { experimenter } => {
                ("EXPERIMENTER", Some(("experimenter", experimenter)))
            }
        };
        if let Value::Object(object) = &mut value {
            object.insert("type".into(), name.into());
            object.extend(more.map(|(key, number)| (key.to_owned(), Value::from(number))));
        }
        value
    });
    json!({
        "flags": names_of(meter.flags.bits().into(), &METER_FLAGS),
        "meter_id": words::METERS.value(meter.meter_id.0),
        "bands": bands.collect::<Vec<_>>(),
    })
}

pub(crate) fn meter_features(features: &MeterFeatures) -> Value {
    json!({
        "max_meter": features.max_meter,
        "band_types": names_of(features.band_types, &[(1 << 1, "DROP"), (1 << 2, "DSCP_REMARK")]),
        "capabilities": names_of(features.capabilities, &METER_FLAGS),
        "max_bands": features.max_bands,
        "max_color": features.max_color,
    })
}

/// Group types as Ryu names them.
pub(crate) const GROUP_TYPES: [(GroupType, &str); 4] = [
    (GroupType::All, "ALL"),
    (GroupType::Select, "SELECT"),
    (GroupType::Indirect, "INDIRECT"),
    (GroupType::FastFailover, "FF"),
];

pub(crate) fn group_stats(version: Version, group: GroupStats) -> Value {
    let buckets = group.buckets.iter().map(
        |bucket| json!({"packet_count": bucket.packet_count, "byte_count": bucket.byte_count}),
    );
    json!({
        "group_id": words::GROUPS.value(group.group_id.0),
        "ref_count": group.ref_count,
        "packet_count": group.packet_count,
        "byte_count": group.byte_count,
        "duration_sec": group.duration_s,
        "duration_nsec": group.duration_ns,
        "bucket_stats": buckets.collect::<Vec<_>>(),
        "length": wire_length(version, MultipartReplyBody::Group(vec![group])),
    })
}

pub(crate) fn group_desc(version: Version, group: &GroupDesc) -> Value {
    let buckets = group.buckets.iter().map(|bucket| {
        let actions: Vec<_> =
            bucket.actions.iter().map(|action| to_text(version, action)).collect();
        json!({
            "weight": bucket.weight,
            "watch_port": bucket.watch_port.0,
            "watch_group": bucket.watch_group.0,
            "actions": actions,
        })
    });
    let name = GROUP_TYPES.iter().find(|(kind, _)| *kind == group.group_type);
    json!({
        "group_id": words::GROUPS.value(group.group_id.0),
        "type": name.map(|(_, name)| *name),
        "buckets": buckets.collect::<Vec<_>>(),
    })
}

pub(crate) fn group_features(version: Version, features: &GroupFeatures) -> Value {
    let per_type = |value_of: &dyn Fn(usize) -> Value| -> Vec<Value> {
        let named = GROUP_TYPES.iter().enumerate();
        named.map(|(index, (_, name))| json!({ *name: value_of(index) })).collect()
    };
    let types = GROUP_TYPES.iter().filter(|(kind, _)| features.types >> kind.number() & 1 != 0);
    let capabilities = [
        (GroupCapabilities::SELECT_WEIGHT.bits(), "SELECT_WEIGHT"),
        (GroupCapabilities::SELECT_LIVENESS.bits(), "SELECT_LIVENESS"),
        (GroupCapabilities::CHAINING.bits(), "CHAINING"),
        (GroupCapabilities::CHAINING_CHECKS.bits(), "CHAINING_CHECKS"),
    ];
    let actions_of = |index: usize| {
        let bits = features.actions.get(index).copied().unwrap_or(0);
        Value::from(action_names(version, bits))
    };
    let most = |index: usize| Value::from(features.max_groups.get(index).copied().unwrap_or(0));
    json!({
        "types": types.map(|(_, name)| *name).collect::<Vec<_>>(),
        "capabilities": names_of(features.capabilities.bits(), &capabilities),
        "max_groups": per_type(&most),
        "actions": per_type(&actions_of),
    })
}

/// Names of the action types whose bits are set, as Ryu has them.
fn action_names(version: Version, bits: u32) -> Vec<&'static str> {
    let held = |kind: ActionKind| {
        kind.number(version).is_some_and(|number| number < 32 && bits >> number & 1 != 0)
    };
    let named = ACTIONS.iter().filter(|row| held(row.kind));
    named.map(|row| row.ryu).collect()
}

/// Names of the instruction types whose bits are set, as Ryu has them.
fn instruction_names(version: Version, bits: u32) -> Vec<&'static str> {
    let held = |kind: InstructionKind| {
        kind.number(version).is_some_and(|number| number < 32 && bits >> number & 1 != 0)
    };
    INSTRUCTIONS.iter().filter(|row| held(row.kind)).map(|row| row.ryu).collect()
}

/// A reply as Ryu wraps it: under the datapath id in decimal digits.
pub(crate) fn wrapped(dpid: openflow::DatapathId, value: impl Into<Value>) -> Value {
    let mut object = Map::new();
    object.insert(dpid.0.to_string(), value.into());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::{features, features_from, flow_flags, state, wildcards};
    use openflow::Version;
    use openflow::flow::FlowModFlags;
    use openflow::port::{PortFeatures, PortState};
    use serde_json::json;

    #[test]
    fn numbers_of_1_0_are_those_of_1_0() {
        let set = PortFeatures::FD_1GB | PortFeatures::COPPER | PortFeatures::PAUSE_ASYM;
        let number = features(Version::V1_0, set);
        assert_eq!(number, 1 << 5 | 1 << 7 | 1 << 11);
        assert_eq!(features_from(Version::V1_0, number), set);
        assert_eq!(features_from(Version::V1_3, features(Version::V1_3, set)), set);
        assert_eq!(state(Version::V1_0, PortState::BLOCKED | PortState::LINK_DOWN), 0x301);
        assert_eq!(state(Version::V1_3, PortState::BLOCKED), 2);
        assert_eq!(flow_flags(Version::V1_0, 5), FlowModFlags::SEND_FLOW_REM | FlowModFlags::EMERG);
        assert_eq!(flow_flags(Version::V1_3, 4), FlowModFlags::RESET_COUNTS);
        assert_eq!(wildcards(1 | 1 << 13), json!(["IN_PORT", "NW_SRC"]));
    }
}
