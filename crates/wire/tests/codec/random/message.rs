//! A message of any kind that a version can say, made from entropy.

use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};
use openflow::flow::AggregateStats;
use openflow::group::{
    BucketCounter, GroupCapabilities, GroupDesc, GroupFeatures, GroupMod, GroupModCommand,
    GroupStats, GroupType, Selection, SelectionMethod,
};
use openflow::message::{
    AsyncConfig, Capabilities, ControllerRole, ControllerStatus, ErrorMessage, Experimenter,
    Features, Hello, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    MultipartType, PacketIn, PacketInReason, PacketOut, QueueConfig, Role, RoleReason, RoleStatus,
    SwitchConfig, SwitchDesc,
};
use openflow::meter::{
    BandCounter, MeterConfig, MeterFeatures, MeterFlags, MeterMod, MeterModCommand, MeterStats,
};
use openflow::port::{PortConfig, PortMod, PortReason, PortStatus};
use openflow::table::{TableReason, TableStatus};
use openflow::{
    BucketId, Cookie, DatapathId, Field, GroupId, MacAddr, Match, Message, MessageKind, MeterId,
    PortNo, QueueId, TableId, Version, VersionBitmap, Xid,
};

use super::entropy::Entropy;
use super::{element, flow};

/// A message of the kind, which the version has.
pub(crate) fn message(e: &mut Entropy<'_>, version: Version, kind: MessageKind) -> Message {
    match kind {
        MessageKind::Hello => {
            // os-ken leaves the highest bit of a bitmap out.
            let bits = if e.below_or(1, 1) == 0 { u32::MAX >> 1 } else { u32::MAX };
            Message::Hello(Hello { versions: e.bool().then(|| VersionBitmap(e.u32() & bits)) })
        }
        MessageKind::Error => Message::Error(error(e, version)),
        MessageKind::EchoRequest => Message::EchoRequest(e.data(1)),
        MessageKind::EchoReply => Message::EchoReply(e.data(1)),
        MessageKind::Experimenter => Message::Experimenter(experimenter(e, version)),
        MessageKind::FeaturesRequest => Message::FeaturesRequest,
        MessageKind::FeaturesReply => Message::FeaturesReply(features(e, version)),
        MessageKind::GetConfigRequest => Message::GetConfigRequest,
        MessageKind::GetConfigReply => Message::GetConfigReply(config(e)),
        MessageKind::SetConfig => Message::SetConfig(config(e)),
        MessageKind::PacketIn => Message::PacketIn(packet_in(e, version)),
        MessageKind::FlowRemoved => Message::FlowRemoved(flow::removed(e, version)),
        MessageKind::PortStatus => Message::PortStatus(PortStatus {
            reason: PortReason::from_number(e.u8()),
            desc: element::port_desc(e, version),
        }),
        MessageKind::PacketOut => Message::PacketOut(packet_out(e, version)),
        MessageKind::FlowMod => Message::FlowMod(flow::flow_mod(e, version)),
        MessageKind::GroupMod => Message::GroupMod(group_mod(e, version)),
        MessageKind::PortMod => Message::PortMod(PortMod {
            port_no: flow::port(e, version),
            hw_addr: MacAddr::from_u64(e.u64()),
            config: PortConfig::from_bits_retain(e.u32()),
            mask: PortConfig::from_bits_retain(e.u32()),
            advertise: element::features(e, version),
        }),
        MessageKind::TableMod => Message::TableMod(element::table(e, version)),
        MessageKind::MultipartRequest => Message::MultipartRequest(request(e, version)),
        MessageKind::MultipartReply => {
            Message::MultipartReply(MultipartReply { more: e.bool(), body: reply_body(e, version) })
        }
        MessageKind::BarrierRequest => Message::BarrierRequest,
        MessageKind::BarrierReply => Message::BarrierReply,
        MessageKind::QueueGetConfigRequest => {
            Message::QueueGetConfigRequest(flow::port(e, version))
        }
        MessageKind::QueueGetConfigReply => {
            let port = flow::port(e, version);
            let queues = e.list(|e| element::queue(e, version, port));
            Message::QueueGetConfigReply(QueueConfig { port, queues })
        }
        MessageKind::RoleRequest => Message::RoleRequest(role(e)),
        MessageKind::RoleReply => Message::RoleReply(role(e)),
        MessageKind::GetAsyncRequest => Message::GetAsyncRequest,
        MessageKind::GetAsyncReply => Message::GetAsyncReply(async_config(e, version)),
        MessageKind::SetAsync => Message::SetAsync(async_config(e, version)),
        MessageKind::RoleStatus => Message::RoleStatus(role_status(e)),
        MessageKind::TableStatus => Message::TableStatus(table_status(e, version)),
        MessageKind::RequestForward => Message::RequestForward(e.data(1)),
        MessageKind::BundleControl => Message::BundleControl(bundle_control(e)),
        MessageKind::ControllerStatus => Message::ControllerStatus(controller_status(e)),
        MessageKind::BundleAdd => Message::BundleAdd(bundle_add(e, version)),
        MessageKind::MeterMod => Message::MeterMod(MeterMod {
            command: MeterModCommand::from_number(e.u16()),
            flags: MeterFlags::from_bits_retain(e.u16()),
            meter_id: MeterId(e.u32()),
            bands: e.list(element::band),
        }),
    }
}

fn group_mod(e: &mut Entropy<'_>, version: Version) -> GroupMod {
    let command = GroupModCommand::from_number_in(version, e.u16() % 8);
    let group_type = GroupType::from_number(e.u8());
    let makes = matches!(command, GroupModCommand::Add | GroupModCommand::Modify);
    let may_choose = makes && group_type == GroupType::Select;
    GroupMod {
        command,
        group_type,
        group_id: GroupId(e.u32()),
        command_bucket_id: (version.has_bucket_ids() && e.bool()).then(|| BucketId(e.u32() >> 1)),
        buckets: element::buckets(e, version),
        selection: may_choose.then(|| selection(e, version)).flatten(),
    }
}

/// Perhaps a choice by fields.
fn selection(e: &mut Entropy<'_>, version: Version) -> Option<Selection> {
    if !version.has_bucket_ids() || e.bool() {
        return None;
    }
    let method = if e.bool() { SelectionMethod::Hash } else { SelectionMethod::DpHash };
    let param = u64::from(e.u32());
    let names: &[Field] = match method {
        SelectionMethod::Hash => &[Field::EthDst, Field::Ipv6Src, Field::NwTtl, Field::Reg1],
        SelectionMethod::DpHash => &[],
    };
    let mut fields = Vec::new();
    for field in names.iter().copied() {
        if e.bool() {
            continue;
        }
        let bits = u128::from(e.u32()) & field.full_mask();
        fields.push((field, if field.row().maskable { bits } else { field.full_mask() }));
    }
    Some(Selection { method, param, fields })
}

fn controller_status(e: &mut Entropy<'_>) -> ControllerStatus {
    ControllerStatus { short_id: e.u16(), role: role(e).role, reason: e.u8(), channel: e.u8() }
}

fn error(e: &mut Entropy<'_>, version: Version) -> ErrorMessage {
    let experimenter = (version.has_experimenter_errors() && e.bool()).then(|| e.u32());
    let error_type = if experimenter.is_some() { 0xffff } else { e.u16() & 0x7fff };
    ErrorMessage { error_type, code: e.u16(), experimenter, data: e.data(1) }
}

fn experimenter(e: &mut Entropy<'_>, version: Version) -> Experimenter {
    Experimenter {
        experimenter: e.u32(),
        exp_type: if version.has_experimenter_types() { e.u32() } else { 0 },
        data: e.data(1),
    }
}

fn features(e: &mut Entropy<'_>, version: Version) -> Features {
    Features {
        datapath_id: DatapathId(e.u64()),
        n_buffers: e.u32(),
        n_tables: e.u8(),
        auxiliary_id: if version.has_auxiliary_connections() { e.u8() } else { 0 },
        capabilities: Capabilities::from_bits_retain(e.u32()),
        actions: if version.has_action_bitmap() { e.u32() } else { 0 },
        ports: match version.has_port_desc() {
            true => Vec::new(),
            false => e.list(|e| element::port_desc(e, version)),
        },
    }
}

fn config(e: &mut Entropy<'_>) -> SwitchConfig {
    SwitchConfig { flags: e.u16(), miss_send_len: e.u16() }
}

fn packet_in(e: &mut Entropy<'_>, version: Version) -> PacketIn {
    let in_port = flow::port(e, version);
    let (table_id, cookie, matching) = match version.has_oxm() {
        false if version.has_pipeline() => {
            let matching = Match::any().with(Field::InPort, in_port.0.into());
            let physical = flow::port(e, version);
            let matching = match physical == in_port {
                true => matching,
                false => matching.with(Field::InPhyPort, physical.0.into()),
            };
            (TableId(e.u8()), Cookie(u64::MAX), matching)
        }
        false => {
            let matching = Match::any().with(Field::InPort, in_port.0.into());
            (TableId(0), Cookie(u64::MAX), matching)
        }
        true => {
            let cookie = if version.has_table_desc_in_stats() { u64::MAX } else { e.u64() };
            (TableId(e.u8()), Cookie(cookie), flow::matching(e, version))
        }
    };
    let data = e.data(1);
    // What is sent of a packet is no longer than the packet, usually.
    let at_least = if e.below_or(1, 1) == 0 { data.len() as u16 } else { 0 };
    PacketIn {
        buffer_id: flow::buffer(e),
        total_len: e.u16().max(at_least),
        reason: PacketInReason::from_number_in(version, e.u8()),
        table_id,
        cookie,
        matching,
        data,
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    }
}

/// A buffered packet has no data, usually.
fn packet_out(e: &mut Entropy<'_>, version: Version) -> PacketOut {
    let buffer_id = flow::buffer(e);
    let data = if buffer_id.is_some() && e.below_or(1, 1) == 0 { Vec::new() } else { e.data(1) };
    let actions = flow::actions(e, version);
    // Without an error for it, port 0 is read as none.
    let in_port = match flow::port(e, version) {
        PortNo(0) if !version.has_bad_port_code() => PortNo::ANY,
        port => port,
    };
    PacketOut { buffer_id, in_port, actions, data }
}

fn role(e: &mut Entropy<'_>) -> Role {
    Role { role: ControllerRole::from_number(e.u32()), generation_id: e.u64() }
}

fn async_config(e: &mut Entropy<'_>, version: Version) -> AsyncConfig {
    if !version.has_async_properties() {
        return AsyncConfig::new([e.u32(), e.u32()], [e.u32(), e.u32()], [e.u32(), e.u32()]);
    }
    let mut config = AsyncConfig::default();
    for mask in config.masks.as_flattened_mut() {
        *mask = e.bool().then(|| e.u32());
    }
    config
}

fn role_status(e: &mut Entropy<'_>) -> RoleStatus {
    RoleStatus { role: role(e), reason: RoleReason::from_number(e.u8()) }
}

fn table_status(e: &mut Entropy<'_>, version: Version) -> TableStatus {
    let reason = TableReason::from_number(e.u8());
    TableStatus { reason, table: element::table(e, version) }
}

fn bundle_control(e: &mut Entropy<'_>) -> BundleControl {
    BundleControl {
        bundle_id: e.u32(),
        control: BundleControlType::from_number(e.u16()),
        flags: BundleFlags::from_bits_retain(e.u16()),
    }
}

fn bundle_add(e: &mut Entropy<'_>, version: Version) -> BundleAdd {
    let message = Message::EchoRequest(e.data(1));
    let message = wire::encode(version, Xid(e.u32()), &message).unwrap();
    let BundleControl { bundle_id, flags, .. } = bundle_control(e);
    BundleAdd { bundle_id, flags, message }
}

/// The types of multiparts that the version's specification has.
fn multipart_type(e: &mut Entropy<'_>, version: Version) -> MultipartType {
    let all = MultipartType::ALL;
    match version.has_groups() {
        false if e.below(7) == 0 => MultipartType::Experimenter,
        false => e.pick(&all[..6]),
        true => {
            let known: Vec<_> = all.iter().copied().filter(|kind| kind.is_in(version)).collect();
            e.pick(&known)
        }
    }
}

fn request(e: &mut Entropy<'_>, version: Version) -> MultipartRequest {
    use MultipartRequestBody as Body;
    let body = match multipart_type(e, version) {
        MultipartType::Desc => Body::Desc,
        MultipartType::Flow => Body::Flow(flow::stats_request(e, version)),
        MultipartType::Aggregate => Body::Aggregate(flow::stats_request(e, version)),
        MultipartType::Table => Body::Table,
        MultipartType::PortStats => Body::PortStats(flow::port(e, version)),
        MultipartType::Queue => {
            Body::Queue { port: flow::port(e, version), queue: QueueId(e.u32()) }
        }
        MultipartType::Group => Body::Group(GroupId(e.u32())),
        MultipartType::GroupDesc if version.has_desc_of_one() && e.bool() => {
            Body::OneGroupDesc(GroupId(e.u32() >> 1))
        }
        MultipartType::GroupDesc => Body::GroupDesc,
        MultipartType::GroupFeatures => Body::GroupFeatures,
        MultipartType::Meter => Body::Meter(MeterId(e.u32())),
        MultipartType::MeterConfig => Body::MeterConfig(MeterId(e.u32())),
        MultipartType::MeterFeatures => Body::MeterFeatures,
        MultipartType::TableFeatures => {
            Body::TableFeatures(e.list(|e| element::table_features(e, version)))
        }
        MultipartType::PortDesc if version.has_desc_of_one() && e.bool() => {
            Body::OnePortDesc(PortNo(e.u32() >> 1))
        }
        MultipartType::PortDesc => Body::PortDesc,
        MultipartType::TableDesc => Body::TableDesc,
        MultipartType::QueueDesc => {
            Body::QueueDesc { port: flow::port(e, version), queue: QueueId(e.u32()) }
        }
        MultipartType::FlowMonitor => {
            Body::FlowMonitor(e.list(|e| flow::monitor_request(e, version)))
        }
        MultipartType::Experimenter if !version.has_flow_monitor() && e.bool() => {
            Body::FlowMonitor(e.list(|e| flow::monitor_request(e, version)))
        }
        MultipartType::Experimenter | MultipartType::Unknown(_) => {
            Body::Experimenter(experimenter(e, version))
        }
    };
    MultipartRequest { more: version.has_requests_of_parts() && e.bool(), body }
}

pub(crate) fn reply_body(e: &mut Entropy<'_>, version: Version) -> MultipartReplyBody {
    use MultipartReplyBody as Body;
    match multipart_type(e, version) {
        MultipartType::Desc => Body::Desc(SwitchDesc {
            mfr_desc: e.text(255),
            hw_desc: e.text(255),
            sw_desc: e.text(255),
            serial_num: e.text(31),
            dp_desc: e.text(255),
        }),
        MultipartType::Flow => Body::Flow(e.list(|e| flow::stats(e, version))),
        MultipartType::Aggregate => Body::Aggregate(AggregateStats {
            packet_count: e.u64(),
            byte_count: e.u64(),
            flow_count: e.u32(),
        }),
        MultipartType::Table => Body::Table(e.list(|e| element::table_stats(e, version))),
        MultipartType::PortStats => Body::PortStats(e.list(|e| element::port_stats(e, version))),
        MultipartType::Queue => Body::Queue(e.list(|e| element::queue_stats(e, version))),
        MultipartType::Group => Body::Group(e.list(|e| group_stats(e, version))),
        MultipartType::GroupDesc => Body::GroupDesc(e.list(|e| GroupDesc {
            group_type: GroupType::from_number(e.u8()),
            group_id: GroupId(e.u32()),
            buckets: element::buckets(e, version),
            selection: selection(e, version),
        })),
        MultipartType::GroupFeatures => Body::GroupFeatures(GroupFeatures {
            types: e.u32(),
            capabilities: GroupCapabilities::from_bits_retain(e.u32()),
            max_groups: [e.u32(), e.u32(), e.u32(), e.u32()],
            actions: [e.u32(), e.u32(), e.u32(), e.u32()],
        }),
        MultipartType::Meter => Body::Meter(e.list(meter_stats)),
        MultipartType::MeterConfig => Body::MeterConfig(e.list(|e| MeterConfig {
            flags: MeterFlags::from_bits_retain(e.u16()),
            meter_id: MeterId(e.u32()),
            bands: e.list(element::band),
        })),
        MultipartType::MeterFeatures => Body::MeterFeatures(MeterFeatures {
            max_meter: e.u32(),
            band_types: e.u32(),
            capabilities: e.u32(),
            max_bands: e.u8(),
            max_color: e.u8(),
        }),
        MultipartType::TableFeatures => {
            Body::TableFeatures(e.list(|e| element::table_features(e, version)))
        }
        MultipartType::PortDesc => Body::PortDesc(e.list(|e| element::port_desc(e, version))),
        MultipartType::TableDesc => Body::TableDesc(e.list(|e| element::table(e, version))),
        MultipartType::QueueDesc => Body::QueueDesc(e.list(|e| {
            let port = flow::port(e, version);
            element::queue(e, version, port)
        })),
        MultipartType::FlowMonitor => Body::FlowMonitor(e.list(|e| flow::update(e, version))),
        MultipartType::Experimenter if !version.has_flow_monitor() && e.bool() => {
            Body::FlowMonitor(e.list(|e| flow::update(e, version)))
        }
        MultipartType::Experimenter | MultipartType::Unknown(_) => {
            Body::Experimenter(experimenter(e, version))
        }
    }
}

fn group_stats(e: &mut Entropy<'_>, version: Version) -> GroupStats {
    let has_durations = version.has_durations();
    GroupStats {
        group_id: GroupId(e.u32()),
        ref_count: e.u32(),
        packet_count: e.u64(),
        byte_count: e.u64(),
        duration_s: if has_durations { e.u32() } else { 0 },
        duration_ns: if has_durations { e.u32() } else { 0 },
        buckets: e.list(|e| BucketCounter { packet_count: e.u64(), byte_count: e.u64() }),
    }
}

fn meter_stats(e: &mut Entropy<'_>) -> MeterStats {
    MeterStats {
        meter_id: MeterId(e.u32()),
        flow_count: e.u32(),
        packet_in_count: e.u64(),
        byte_in_count: e.u64(),
        duration_s: e.u32(),
        duration_ns: e.u32(),
        bands: e.list(|e| BandCounter { packet_count: e.u64(), byte_count: e.u64() }),
    }
}
