//! A message in the words of os-ken's `to_jsondict`: its class names and members.

mod element;
mod flow;
mod multipart;

use openflow::group::GroupMod;
use openflow::message::{
    AsyncConfig, AsyncEvent, ErrorMessage, Features, Hello, PacketIn, PacketOut, Role, SwitchConfig,
};
use openflow::port::PortMod;
use openflow::{BufferId, Message, Version};
use serde_json::{Value, json};

/// `{class: members}`.
pub(crate) fn class(name: &str, members: Value) -> Value {
    Value::Object([(name.to_owned(), members)].into_iter().collect())
}

/// Bytes in base64, as os-ken writes them.
pub(crate) fn base64(bytes: &[u8]) -> Value {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, at| bits << 8 | chunk.get(at).map_or(0, |b| u32::from(*b)));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 0x3f) as usize;
            text.push(if digit <= chunk.len() { char::from(DIGITS[index]) } else { '=' });
        }
    }
    text.into()
}

pub(crate) fn buffer(buffer: Option<BufferId>) -> u32 {
    buffer.map_or(u32::MAX, |buffer| buffer.0)
}

pub(crate) fn message(version: Version, message: &Message) -> Value {
    let (name, members) = match message {
        Message::Hello(hello) => ("OFPHello", describe_hello(version, hello)),
        Message::Error(error) => ("OFPErrorMsg", describe_error(error)),
        Message::EchoRequest(data) => ("OFPEchoRequest", json!({ "data": base64(data) })),
        Message::EchoReply(data) => ("OFPEchoReply", json!({ "data": base64(data) })),
        Message::Experimenter(body) => multipart::experimenter_message(version, body),
        Message::FeaturesRequest => ("OFPFeaturesRequest", json!({})),
        Message::FeaturesReply(features) => {
            ("OFPSwitchFeatures", describe_features(version, features))
        }
        Message::GetConfigRequest => ("OFPGetConfigRequest", json!({})),
        Message::GetConfigReply(config) => ("OFPGetConfigReply", describe_config(config)),
        Message::SetConfig(config) => ("OFPSetConfig", describe_config(config)),
        Message::PacketIn(packet) => ("OFPPacketIn", describe_packet_in(version, packet)),
        Message::FlowRemoved(removed) => ("OFPFlowRemoved", flow::removed(version, removed)),
        Message::PortStatus(status) => {
            let desc = element::port(version, &status.desc);
            ("OFPPortStatus", json!({ "reason": status.reason.number(), "desc": desc }))
        }
        Message::PacketOut(packet) => ("OFPPacketOut", describe_packet_out(version, packet)),
        Message::FlowMod(flow_mod) => ("OFPFlowMod", flow::flow_mod(version, flow_mod)),
        Message::GroupMod(group) => ("OFPGroupMod", describe_group_mod(group)),
        Message::PortMod(port) => ("OFPPortMod", describe_port_mod(version, port)),
        Message::TableMod(table) => {
            ("OFPTableMod", json!({ "table_id": table.table_id.0, "config": table.config }))
        }
        Message::MultipartRequest(request) => return multipart::request(version, request),
        Message::MultipartReply(reply) => return multipart::reply(version, reply),
        Message::BarrierRequest => ("OFPBarrierRequest", json!({})),
        Message::BarrierReply => ("OFPBarrierReply", json!({})),
        Message::QueueGetConfigRequest(port) => {
            ("OFPQueueGetConfigRequest", json!({ "port": element::port_no(version, *port) }))
        }
        Message::QueueGetConfigReply(config) => (
            "OFPQueueGetConfigReply",
            json!({
                "port": element::port_no(version, config.port),
                "queues": element::list(&config.queues, |queue| element::queue(version, queue)),
            }),
        ),
        Message::RoleRequest(role) => ("OFPRoleRequest", describe_role(role)),
        Message::RoleReply(role) => ("OFPRoleReply", describe_role(role)),
        Message::GetAsyncRequest => ("OFPGetAsyncRequest", json!({})),
        Message::GetAsyncReply(config) => ("OFPGetAsyncReply", describe_async(config)),
        Message::SetAsync(config) => ("OFPSetAsync", describe_async(config)),
        Message::RoleStatus(_)
        | Message::TableStatus(_)
        | Message::RequestForward(_)
        | Message::ControllerStatus(_)
        | Message::BundleControl(_)
        | Message::BundleAdd(_) => panic!("only bytes of 1.4 are compared: {message:?}"),
        Message::MeterMod(meter) => (
            "OFPMeterMod",
            json!({
                "command": meter.command.number(),
                "flags": meter.flags.bits(),
                "meter_id": meter.meter_id.0,
                "bands": element::list(&meter.bands, element::band),
            }),
        ),
    };
    class(name, members)
}

fn describe_group_mod(group: &GroupMod) -> Value {
    json!({
        "command": group.command.number(),
        "type": group.group_type.number(),
        "group_id": group.group_id.0,
        "buckets": element::list(&group.buckets, element::bucket),
    })
}

fn describe_port_mod(version: Version, port: &PortMod) -> Value {
    json!({
        "port_no": element::port_no(version, port.port_no),
        "hw_addr": port.hw_addr.to_string(),
        "config": port.config.bits(),
        "mask": port.mask.bits(),
        "advertise": element::features(version, port.advertise.bits()),
    })
}

/// 1.0 has no elements.
fn describe_hello(version: Version, hello: &Hello) -> Value {
    if !version.has_oxm() {
        return json!({});
    }
    let elements: Vec<Value> = hello
        .versions
        .iter()
        .map(|bitmap| {
            let versions: Vec<u8> = (0..32).filter(|number| bitmap.contains(*number)).collect();
            class("OFPHelloElemVersionBitmap", json!({ "type": 1, "versions": versions }))
        })
        .collect();
    json!({ "elements": elements })
}

fn describe_error(error: &ErrorMessage) -> Value {
    match error.experimenter {
        None => json!({
            "type": error.error_type,
            "code": error.code,
            "data": base64(&error.data),
        }),
        Some(experimenter) => json!({
            "type": error.error_type,
            "code": null,
            "exp_type": error.code,
            "experimenter": experimenter,
            "data": base64(&error.data),
        }),
    }
}

fn describe_features(version: Version, features: &Features) -> Value {
    let mut members = json!({
        "datapath_id": features.datapath_id.0,
        "n_buffers": features.n_buffers,
        "n_tables": features.n_tables,
        "capabilities": features.capabilities.bits(),
    });
    match version.has_oxm() {
        false => {
            members["actions"] = features.actions.into();
            let ports = features.ports.iter().map(|port| {
                let number = element::port_no(version, port.port_no);
                (number.to_string(), element::port(version, port))
            });
            members["ports"] = Value::Object(ports.collect());
        }
        true => members["auxiliary_id"] = features.auxiliary_id.into(),
    }
    members
}

fn describe_config(config: &SwitchConfig) -> Value {
    json!({ "flags": config.flags, "miss_send_len": config.miss_send_len })
}

fn describe_role(role: &Role) -> Value {
    json!({ "role": role.role.number(), "generation_id": role.generation_id })
}

fn describe_async(config: &AsyncConfig) -> Value {
    json!({
        "packet_in_mask": config.of(AsyncEvent::PacketIn),
        "port_status_mask": config.of(AsyncEvent::PortStatus),
        "flow_removed_mask": config.of(AsyncEvent::FlowRemoved),
    })
}

fn describe_packet_in(version: Version, packet: &PacketIn) -> Value {
    let mut members = json!({
        "buffer_id": buffer(packet.buffer_id),
        "total_len": packet.total_len,
        "reason": packet.reason.number(),
        "data": base64(&packet.data),
    });
    match version.has_oxm() {
        false => {
            members["in_port"] = element::port_no(version, packet.in_port().unwrap());
        }
        true => {
            members["table_id"] = packet.table_id.0.into();
            members["cookie"] = packet.cookie.0.into();
            members["match"] = flow::matching(version, &packet.matching);
        }
    }
    members
}

fn describe_packet_out(version: Version, packet: &PacketOut) -> Value {
    json!({
        "buffer_id": buffer(packet.buffer_id),
        "in_port": element::port_no(version, packet.in_port),
        "actions": flow::actions(version, &packet.actions),
        "data": base64(&packet.data),
    })
}
