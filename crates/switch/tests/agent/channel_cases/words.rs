//! Messages in the words of cases: what a controller sends and receives.

use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::message::{
    AsyncConfig, AsyncEvent, ControllerRole, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, PacketOut, Role, SwitchConfig,
};
use openflow::meter::MeterModCommand;
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::table::TableMod;
use openflow::text::{
    parse_actions, parse_flow_filter, parse_flow_mod, parse_group_mod, parse_meter_mod, parse_port,
};
use openflow::{GroupId, MacAddr, Message, MeterId, PortNo, QueueId, TableId, Version};
use testkit::hex;

const ROLES: &[(&str, ControllerRole)] = &[
    ("nochange", ControllerRole::NoChange),
    ("equal", ControllerRole::Equal),
    ("master", ControllerRole::Master),
    ("slave", ControllerRole::Slave),
];

/// The message of `text`.
pub(super) fn message(text: &str) -> Result<Message, String> {
    let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    Ok(match (what, words.as_slice()) {
        ("barrier", []) => Message::BarrierRequest,
        ("echo", [digits]) => Message::EchoRequest(hex::parse(digits)?),
        ("features", []) => Message::FeaturesRequest,
        ("get_config", []) => Message::GetConfigRequest,
        ("set_config", [flags, miss]) => Message::SetConfig(SwitchConfig {
            flags: number(flags)? as u16,
            miss_send_len: number(miss)? as u16,
        }),
        ("get_async", []) => Message::GetAsyncRequest,
        ("set_async", [packet_in, port_status, flow_removed]) => Message::SetAsync(
            AsyncConfig::new(pair(packet_in)?, pair(port_status)?, pair(flow_removed)?),
        ),
        ("role", [word, generation]) => {
            let row = ROLES.iter().find(|(name, _)| name == word).ok_or("no such role")?;
            Message::RoleRequest(Role { role: row.1, generation_id: number(generation)? })
        }
        ("port_mod", [port, mac, config, mask]) => Message::PortMod(PortMod {
            port_no: PortNo(number(port)? as u32),
            hw_addr: MacAddr::from_u64(number(mac)?),
            config: PortConfig::from_bits_retain(number(config)? as u32),
            mask: PortConfig::from_bits_retain(number(mask)? as u32),
            advertise: PortFeatures::empty(),
        }),
        ("table_mod", [table, config]) => {
            Message::TableMod(TableMod::new(TableId(number(table)? as u8), number(config)? as u32))
        }
        ("queue_config", [port]) => Message::QueueGetConfigRequest(PortNo(number(port)? as u32)),
        ("packet_out", _) => packet_out(rest)?,
        _ => {
            return command(what, rest)
                .or_else(|| question(what, rest))
                .ok_or_else(|| format!("`{text}` says nothing"))?;
        }
    })
}

fn command(what: &str, text: &str) -> Option<Result<Message, String>> {
    let flow = |command| parse_flow_mod(text, command).map(Message::FlowMod).map_err(text_of);
    let group = |command| parse_group_mod(text, command).map(Message::GroupMod).map_err(text_of);
    let meter = |command| parse_meter_mod(text, command).map(Message::MeterMod).map_err(text_of);
    Some(match what {
        "add_flow" => flow(FlowModCommand::Add),
        "mod_flows" => flow(FlowModCommand::Modify),
        "mod_flows_strict" => flow(FlowModCommand::ModifyStrict),
        "del_flows" => flow(FlowModCommand::Delete),
        "del_flows_strict" => flow(FlowModCommand::DeleteStrict),
        "add_group" => group(GroupModCommand::Add),
        "mod_group" => group(GroupModCommand::Modify),
        "del_groups" => group(GroupModCommand::Delete),
        "add_meter" => meter(MeterModCommand::Add),
        "mod_meter" => meter(MeterModCommand::Modify),
        "del_meters" => meter(MeterModCommand::Delete),
        _ => return None,
    })
}

fn question(what: &str, text: &str) -> Option<Result<Message, String>> {
    let filter = || parse_flow_filter(text).map_err(text_of);
    let body = match what {
        "desc" => Ok(MultipartRequestBody::Desc),
        "flow_stats" => filter().map(MultipartRequestBody::Flow),
        "aggregate" => filter().map(MultipartRequestBody::Aggregate),
        "table_stats" => Ok(MultipartRequestBody::Table),
        "table_features" => Ok(MultipartRequestBody::TableFeatures(Vec::new())),
        "port_desc" => Ok(MultipartRequestBody::PortDesc),
        "port_stats" => Ok(MultipartRequestBody::PortStats(PortNo::ANY)),
        "queue_stats" => {
            Ok(MultipartRequestBody::Queue { port: PortNo::ANY, queue: QueueId(u32::MAX) })
        }
        "group_stats" => Ok(MultipartRequestBody::Group(GroupId::ALL)),
        "group_desc" => Ok(MultipartRequestBody::GroupDesc),
        "group_features" => Ok(MultipartRequestBody::GroupFeatures),
        "meter_stats" => Ok(MultipartRequestBody::Meter(MeterId::ALL)),
        "meter_config" => Ok(MultipartRequestBody::MeterConfig(MeterId::ALL)),
        "meter_features" => Ok(MultipartRequestBody::MeterFeatures),
        _ => return None,
    };
    Some(body.map(|body| Message::MultipartRequest(MultipartRequest { more: false, body })))
}

/// `PORT HEX actions=...`.
fn packet_out(text: &str) -> Result<Message, String> {
    let (left, actions) = text.split_once("actions=").ok_or("packet_out PORT HEX actions=...")?;
    let (in_port, digits) = left.trim().split_once(' ').ok_or("packet_out PORT HEX actions=...")?;
    Ok(Message::PacketOut(PacketOut {
        buffer_id: None,
        in_port: parse_port(in_port).map_err(text_of)?,
        actions: parse_actions(actions).map_err(text_of)?,
        data: hex::parse(digits)?,
    }))
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a number"))
}

/// Two masks: for master and equal, and for slave.
fn pair(text: &str) -> Result<[u32; 2], String> {
    let (full, slave) = text.split_once('/').ok_or("two masks, joined by a slash")?;
    Ok([number(full)? as u32, number(slave)? as u32])
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn describe_role(role: &Role) -> String {
    let word = ROLES.iter().find(|(_, value)| *value == role.role);
    format!("role {} {:#x}", word.map_or("unknown", |(word, _)| word), role.generation_id)
}

/// A message that came, in one line.
pub(super) fn describe(version: Version, message: &Message) -> String {
    match message {
        Message::Error(error) => {
            let name = error.error(version).map_or("unknown", openflow::Error::name);
            format!("error {name}")
        }
        Message::EchoReply(data) => format!("echo {}", hex::digits(data)),
        Message::FeaturesReply(features) => format!("features auxiliary={}", features.auxiliary_id),
        Message::GetConfigReply(config) => {
            format!("config {} {:#x}", config.flags, config.miss_send_len)
        }
        Message::PacketIn(packet) => {
            let reason = packet.reason.text();
            let place = if version.has_pipeline() {
                format!(" table={} cookie={:#x}", packet.table_id.0, packet.cookie.0)
            } else {
                String::new()
            };
            let matching = openflow::text::format_match(&packet.matching);
            format!("packet_in {reason}{place} {matching} {}", hex::digits(&packet.data))
        }
        Message::FlowRemoved(gone) => format!(
            "flow_removed {} table={} priority={} cookie={:#x} packets={} bytes={}",
            gone.reason.text(),
            gone.table_id.0,
            gone.priority,
            gone.cookie.0,
            gone.packet_count,
            gone.byte_count
        ),
        Message::PortStatus(status) => format!(
            "port_status {} {} config={:#x}",
            status.reason.text(),
            status.desc.port_no,
            status.desc.config.bits()
        ),
        Message::BarrierReply => "barrier".into(),
        Message::RoleReply(role) => describe_role(role),
        Message::RoleStatus(status) => {
            format!("role_status {} {}", status.reason.number(), describe_role(&status.role))
        }
        Message::GetAsyncReply(masks) => {
            let pair = |[full, slave]: [u32; 2]| format!("{full:#x}/{slave:#x}");
            let [packet_in, port_status, flow_removed] =
                [AsyncEvent::PacketIn, AsyncEvent::PortStatus, AsyncEvent::FlowRemoved]
                    .map(|event| pair(masks.of(event)));
            format!("async {packet_in} {port_status} {flow_removed}")
        }
        Message::MultipartReply(reply) => elements(&reply.body),
        Message::QueueGetConfigReply(config) => format!("queue_config {}", config.queues.len()),
        other => format!("{other:?}"),
    }
}

/// The kind of a multipart reply and how many elements it has.
fn elements(body: &MultipartReplyBody) -> String {
    match body {
        MultipartReplyBody::Desc(_) => "desc".into(),
        MultipartReplyBody::Flow(flows) => format!("flow_stats {}", flows.len()),
        MultipartReplyBody::Aggregate(sums) => format!(
            "aggregate flows={} packets={} bytes={}",
            sums.flow_count, sums.packet_count, sums.byte_count
        ),
        MultipartReplyBody::Table(_) => "table_stats".into(),
        MultipartReplyBody::PortStats(ports) => format!("port_stats {}", ports.len()),
        MultipartReplyBody::Queue(queues) => format!("queue_stats {}", queues.len()),
        MultipartReplyBody::Group(groups) => format!("group_stats {}", groups.len()),
        MultipartReplyBody::GroupDesc(groups) => format!("group_desc {}", groups.len()),
        MultipartReplyBody::GroupFeatures(_) => "group_features".into(),
        MultipartReplyBody::Meter(meters) => format!("meter_stats {}", meters.len()),
        MultipartReplyBody::MeterConfig(meters) => format!("meter_config {}", meters.len()),
        MultipartReplyBody::MeterFeatures(_) => "meter_features".into(),
        MultipartReplyBody::TableFeatures(_) => "table_features".into(),
        MultipartReplyBody::PortDesc(ports) => format!("port_desc {}", ports.len()),
        MultipartReplyBody::TableDesc(tables) => format!("table_desc {}", tables.len()),
        MultipartReplyBody::QueueDesc(queues) => format!("queue_desc {}", queues.len()),
        MultipartReplyBody::FlowMonitor(updates) => format!("flow_monitor {}", updates.len()),
        MultipartReplyBody::Experimenter(_) => "experimenter".into(),
    }
}

/// Whether it answers a request, and so bears its transaction number.
pub(super) fn is_reply(message: &Message) -> bool {
    !matches!(
        message,
        Message::PacketIn(_)
            | Message::FlowRemoved(_)
            | Message::PortStatus(_)
            | Message::RoleStatus(_)
    )
}
