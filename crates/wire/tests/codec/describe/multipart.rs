//! Multipart messages in os-ken's words.

use openflow::flow::FlowStatsRequest;
use openflow::message::{
    Experimenter, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    MultipartType,
};
use openflow::port::{PortStats, QueueStats};
use openflow::table::{OnPacket, OxmId, TableFeatures, TableProperty, TableStats, TypeId};
use openflow::{ActionKind, Field, InstructionKind, Version};
use serde_json::{Value, json};

use super::element::{self, list, port_no};
use super::flow;
use super::{base64, class};

/// 1.0 says vendor, and has no type of its messages.
pub(crate) fn experimenter_message(version: Version, body: &Experimenter) -> (&'static str, Value) {
    match version.has_oxm() {
        false => {
            let members = json!({ "vendor": body.experimenter, "data": base64(&body.data) });
            ("OFPVendor", members)
        }
        true => ("OFPExperimenter", experimenter(body)),
    }
}

fn experimenter(body: &Experimenter) -> Value {
    json!({
        "experimenter": body.experimenter,
        "exp_type": body.exp_type,
        "data": base64(&body.data),
    })
}

fn flow_request(version: Version, request: &FlowStatsRequest) -> Value {
    let mut members = json!({
        "table_id": request.table_id.0,
        "out_port": port_no(version, request.out_port),
        "match": flow::matching(version, &request.matching),
    });
    if version.has_oxm() {
        members["out_group"] = request.out_group.0.into();
        members["cookie"] = request.cookie.0.into();
        members["cookie_mask"] = request.cookie_mask.into();
    }
    members
}

pub(crate) fn request(version: Version, request: &MultipartRequest) -> Value {
    use MultipartRequestBody as Body;
    let (name, number, mut members) = match &request.body {
        Body::Desc => ("Desc", MultipartType::Desc, json!({})),
        Body::Flow(body) => ("Flow", MultipartType::Flow, flow_request(version, body)),
        Body::Aggregate(body) => {
            ("Aggregate", MultipartType::Aggregate, flow_request(version, body))
        }
        Body::Table => ("Table", MultipartType::Table, json!({})),
        Body::PortStats(port) => {
            ("Port", MultipartType::PortStats, json!({ "port_no": port_no(version, *port) }))
        }
        Body::Queue { port, queue } => (
            "Queue",
            MultipartType::Queue,
            json!({ "port_no": port_no(version, *port), "queue_id": queue.0 }),
        ),
        Body::Group(group) => ("Group", MultipartType::Group, json!({ "group_id": group.0 })),
        Body::OneGroupDesc(_) | Body::OnePortDesc(_) => {
            panic!("only bytes of 1.5 are compared")
        }
        Body::GroupDesc => ("GroupDesc", MultipartType::GroupDesc, json!({})),
        Body::GroupFeatures => ("GroupFeatures", MultipartType::GroupFeatures, json!({})),
        Body::Meter(meter) => ("Meter", MultipartType::Meter, json!({ "meter_id": meter.0 })),
        Body::MeterConfig(meter) => {
            ("MeterConfig", MultipartType::MeterConfig, json!({ "meter_id": meter.0 }))
        }
        Body::MeterFeatures => ("MeterFeatures", MultipartType::MeterFeatures, json!({})),
        Body::TableFeatures(tables) => (
            "TableFeatures",
            MultipartType::TableFeatures,
            json!({ "body": list(tables, table_features) }),
        ),
        Body::PortDesc => ("PortDesc", MultipartType::PortDesc, json!({})),
        Body::TableDesc | Body::QueueDesc { .. } | Body::FlowMonitor(_) => {
            panic!("only bytes of 1.4 are compared")
        }
        Body::Experimenter(body) => {
            ("Experimenter", MultipartType::Experimenter, experimenter(body))
        }
    };
    members["type"] = number.number().into();
    members["flags"] = u8::from(request.more).into();
    class(&format!("OFP{name}StatsRequest"), members)
}

pub(crate) fn reply(version: Version, reply: &MultipartReply) -> Value {
    use MultipartReplyBody as Body;
    let (name, number, body) = match &reply.body {
        Body::Desc(desc) => {
            let members = json!({
                "mfr_desc": desc.mfr_desc,
                "hw_desc": desc.hw_desc,
                "sw_desc": desc.sw_desc,
                "serial_num": desc.serial_num,
                "dp_desc": desc.dp_desc,
            });
            let desc = class("OFPDescStats", members);
            ("Desc", MultipartType::Desc, desc)
        }
        Body::Flow(flows) => {
            ("Flow", MultipartType::Flow, list(flows, |one| flow::stats(version, one)))
        }
        Body::Aggregate(sums) => {
            let members = json!({
                "packet_count": sums.packet_count,
                "byte_count": sums.byte_count,
                "flow_count": sums.flow_count,
            });
            let sums = class("OFPAggregateStats", members);
            ("Aggregate", MultipartType::Aggregate, listed_in_v1_0(version, sums))
        }
        Body::Table(tables) => {
            ("Table", MultipartType::Table, list(tables, |table| table_stats(version, table)))
        }
        Body::PortStats(ports) => {
            ("Port", MultipartType::PortStats, list(ports, |port| port_stats(version, port)))
        }
        Body::Queue(queues) => {
            ("Queue", MultipartType::Queue, list(queues, |queue| queue_stats(version, queue)))
        }
        Body::Group(_) | Body::GroupDesc(_) | Body::GroupFeatures(_) => group_reply(&reply.body),
        Body::Meter(_) | Body::MeterConfig(_) | Body::MeterFeatures(_) => meter_reply(&reply.body),
        Body::TableFeatures(tables) => {
            ("TableFeatures", MultipartType::TableFeatures, list(tables, table_features))
        }
        Body::PortDesc(ports) => {
            let ports = list(ports, |port| element::port(version, port));
            ("PortDesc", MultipartType::PortDesc, ports)
        }
        Body::TableDesc(_) | Body::QueueDesc(_) | Body::FlowMonitor(_) => {
            panic!("only bytes of 1.4 are compared")
        }
        Body::Experimenter(body) if !version.has_oxm() => {
            let data = [&body.experimenter.to_be_bytes(), body.data.as_slice()].concat();
            let body = class("OFPVendorStats", json!({ "specific_data": base64(&data) }));
            ("Vendor", MultipartType::Experimenter, body)
        }
        Body::Experimenter(body) => (
            "Experimenter",
            MultipartType::Experimenter,
            class("OFPExperimenterMultipart", experimenter(body)),
        ),
    };
    let members = json!({ "type": number.number(), "flags": u8::from(reply.more), "body": body });
    class(&format!("OFP{name}StatsReply"), members)
}

/// os-ken makes a list of the one element in 1.0.
fn listed_in_v1_0(version: Version, body: Value) -> Value {
    match version.has_oxm() {
        false => json!([body]),
        true => body,
    }
}

fn table_stats(version: Version, table: &TableStats) -> Value {
    let mut members = json!({
        "table_id": table.table_id.0,
        "active_count": table.active_count,
        "lookup_count": table.lookup_count,
        "matched_count": table.matched_count,
    });
    if !version.has_oxm() {
        members["name"] = table.name.clone().into();
        members["wildcards"] = table.wildcards.into();
        members["max_entries"] = table.max_entries.into();
    }
    class("OFPTableStats", members)
}

fn group_reply(body: &MultipartReplyBody) -> (&'static str, MultipartType, Value) {
    match body {
        MultipartReplyBody::Group(groups) => {
            let groups = list(groups, |group| {
                let buckets = list(&group.buckets, |bucket| {
                    let members = json!({
                        "packet_count": bucket.packet_count, "byte_count": bucket.byte_count
                    });
                    class("OFPBucketCounter", members)
                });
                let members = json!({
                    "group_id": group.group_id.0,
                    "ref_count": group.ref_count,
                    "packet_count": group.packet_count,
                    "byte_count": group.byte_count,
                    "duration_sec": group.duration_s,
                    "duration_nsec": group.duration_ns,
                    "bucket_stats": buckets,
                });
                class("OFPGroupStats", members)
            });
            ("Group", MultipartType::Group, groups)
        }
        MultipartReplyBody::GroupDesc(groups) => {
            let groups = list(groups, |group| {
                let members = json!({
                    "type": group.group_type.number(),
                    "group_id": group.group_id.0,
                    "buckets": list(&group.buckets, element::bucket),
                });
                class("OFPGroupDescStats", members)
            });
            ("GroupDesc", MultipartType::GroupDesc, groups)
        }
        MultipartReplyBody::GroupFeatures(features) => {
            let members = json!({
                "types": features.types,
                "capabilities": features.capabilities.bits(),
                "max_groups": features.max_groups,
                "actions": features.actions,
            });
            let body = class("OFPGroupFeaturesStats", members);
            ("GroupFeatures", MultipartType::GroupFeatures, body)
        }
        other => panic!("not of groups: {other:?}"),
    }
}

fn meter_reply(body: &MultipartReplyBody) -> (&'static str, MultipartType, Value) {
    match body {
        MultipartReplyBody::Meter(meters) => {
            let meters = list(meters, |meter| {
                let bands = list(&meter.bands, |band| {
                    let members = json!({
                        "packet_band_count": band.packet_count,
                        "byte_band_count": band.byte_count,
                    });
                    class("OFPMeterBandStats", members)
                });
                let members = json!({
                    "meter_id": meter.meter_id.0,
                    "flow_count": meter.flow_count,
                    "packet_in_count": meter.packet_in_count,
                    "byte_in_count": meter.byte_in_count,
                    "duration_sec": meter.duration_s,
                    "duration_nsec": meter.duration_ns,
                    "band_stats": bands,
                });
                class("OFPMeterStats", members)
            });
            ("Meter", MultipartType::Meter, meters)
        }
        MultipartReplyBody::MeterConfig(meters) => {
            let meters = list(meters, |meter| {
                let members = json!({
                    "flags": meter.flags.bits(),
                    "meter_id": meter.meter_id.0,
                    "bands": list(&meter.bands, element::band),
                });
                class("OFPMeterConfigStats", members)
            });
            ("MeterConfig", MultipartType::MeterConfig, meters)
        }
        MultipartReplyBody::MeterFeatures(features) => {
            let members = json!({
                "max_meter": features.max_meter,
                "band_types": features.band_types,
                "capabilities": features.capabilities,
                "max_bands": features.max_bands,
                "max_color": features.max_color,
            });
            let body = json!([class("OFPMeterFeaturesStats", members)]);
            ("MeterFeatures", MultipartType::MeterFeatures, body)
        }
        other => panic!("not of meters: {other:?}"),
    }
}

fn port_stats(version: Version, port: &PortStats) -> Value {
    let mut members = json!({
        "port_no": port_no(version, port.port_no),
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
    add_duration(version, &mut members, port.duration_s, port.duration_ns);
    class("OFPPortStats", members)
}

/// 1.0 says of flow entries alone how long they are there.
fn add_duration(version: Version, members: &mut Value, seconds: u32, nanoseconds: u32) {
    if version.has_oxm() {
        members["duration_sec"] = seconds.into();
        members["duration_nsec"] = nanoseconds.into();
    }
}

fn queue_stats(version: Version, queue: &QueueStats) -> Value {
    let mut members = json!({
        "port_no": port_no(version, queue.port_no),
        "queue_id": queue.queue_id.0,
        "tx_bytes": queue.tx_bytes,
        "tx_packets": queue.tx_packets,
        "tx_errors": queue.tx_errors,
    });
    add_duration(version, &mut members, queue.duration_s, queue.duration_ns);
    class("OFPQueueStats", members)
}

fn table_features(table: &TableFeatures) -> Value {
    let members = json!({
        "table_id": table.table_id.0,
        "name": table.name,
        "metadata_match": table.metadata_match,
        "metadata_write": table.metadata_write,
        "config": table.config,
        "max_entries": table.max_entries,
        "properties": list(&table.properties, property),
    });
    class("OFPTableFeaturesStats", members)
}

fn property(property: &TableProperty) -> Value {
    let on = |hit: u16, on: &OnPacket| match on {
        OnPacket::Hit => hit,
        OnPacket::Miss => hit + 1,
    };
    let (name, number, ids) = match property {
        TableProperty::Instructions(when, ids) => {
            ("Instructions", on(0, when), json!({ "instruction_ids": list(ids, instruction_id) }))
        }
        TableProperty::NextTables(when, tables) => (
            "NextTables",
            on(2, when),
            json!({ "table_ids": list(tables, |table| table.0.into()) }),
        ),
        TableProperty::WriteActions(when, ids) => {
            ("Actions", on(4, when), json!({ "action_ids": list(ids, action_id) }))
        }
        TableProperty::ApplyActions(when, ids) => {
            ("Actions", on(6, when), json!({ "action_ids": list(ids, action_id) }))
        }
        TableProperty::Match(ids) => ("Oxm", 8, json!({ "oxm_ids": list(ids, oxm_id) })),
        TableProperty::Wildcards(ids) => ("Oxm", 10, json!({ "oxm_ids": list(ids, oxm_id) })),
        TableProperty::WriteSetField(when, ids) => {
            ("Oxm", on(12, when), json!({ "oxm_ids": list(ids, oxm_id) }))
        }
        TableProperty::ApplySetField(when, ids) => {
            ("Oxm", on(14, when), json!({ "oxm_ids": list(ids, oxm_id) }))
        }
        TableProperty::SynchronisedFrom(_)
        | TableProperty::WriteCopyField(..)
        | TableProperty::ApplyCopyField(..)
        | TableProperty::PacketTypes(_) => panic!("only bytes of 1.4 and 1.5 are compared"),
        TableProperty::Experimenter { on: when, experimenter, exp_type, data } => {
            let words: Vec<u32> = data
                .chunks(4)
                .map(|word| word.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)))
                .collect();
            let members =
                json!({ "experimenter": experimenter, "exp_type": exp_type, "data": words });
            ("Experimenter", on(0xfffe, when), members)
        }
    };
    let mut members = ids;
    members["type"] = number.into();
    class(&format!("OFPTableFeatureProp{name}"), members)
}

fn instruction_id(id: &TypeId<InstructionKind>) -> Value {
    match id {
        TypeId::Known(kind) => {
            class("OFPInstructionId", json!({ "type": kind.number(Version::V1_3) }))
        }
        other => panic!("os-ken's tables have no instruction {other:?}"),
    }
}

fn action_id(id: &TypeId<ActionKind>) -> Value {
    match id {
        TypeId::Known(kind) => class("OFPActionId", json!({ "type": kind.number(Version::V1_3) })),
        other => panic!("os-ken's tables have no action {other:?}"),
    }
}

/// os-ken's tables name fields without their length, so they are not exactly known.
fn oxm_id(id: &OxmId) -> Value {
    let (name, has_mask) = match id {
        OxmId::Basic { field, maskable } => (field.row().name, *maskable),
        OxmId::Unknown(header) => {
            let class = u16::try_from(header >> 16).unwrap();
            let number = u8::try_from(header >> 9 & 0x7f).unwrap();
            let field = Field::from_class(class, number).unwrap();
            (field.row().name, header >> 8 & 1 != 0)
        }
        OxmId::Experimenter { .. } => panic!("os-ken's tables have no {id:?}"),
    };
    class("OFPOxmId", json!({ "type": name, "hasmask": u8::from(has_mask) }))
}
