//! The rows: each error with the message that makes it, in the order of the specification.

use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::flow_monitor::{FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{
    ControllerRole, Experimenter, MultipartRequest, MultipartRequestBody, PacketOut, Role,
    SwitchConfig,
};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::table::{OnPacket, TableFeatures, TableMod, TableProperty};
use openflow::{
    Action, BufferId, Error, Field, GroupId, Instruction, MacAddr, Match, Message, MeterId, PortNo,
    QueueId, TableId, Version, Xid,
};

use super::frames::{
    ACTION, FIRST_FIELD, INSTRUCTION, MATCH, applying, frame, instructed, masked, matching, raw,
    spoilt,
};
use super::{Facts, Row};
use crate::harness::{add_flow, packet_out};

/// Groups, and meters, that there may be.
const MANY: u32 = 65_536;

/// All rows, for a switch of 4 tables with 3 entries each.
pub(super) fn rows(facts: &Facts) -> Vec<Row> {
    let mut rows = requests();
    rows.extend(actions());
    rows.extend(instructions());
    rows.extend(matches());
    rows.extend(flow_mods());
    rows.extend(groups());
    rows.extend(ports_and_tables(facts.port));
    rows.extend(roles_and_queues());
    rows.extend(meters());
    rows.extend(table_features(&facts.tables));
    rows.extend(bundles());
    rows.extend(flow_monitors());
    rows
}

fn row(error: Error, message: &Message) -> Row {
    bytes(error, frame(message))
}

fn bytes(error: Error, frame: Vec<u8>) -> Row {
    Row { error, before: Vec::new(), frame }
}

fn after(before: Vec<Message>, error: Error, message: &Message) -> Row {
    Row { before, ..row(error, message) }
}

fn bundles() -> Vec<Row> {
    let control = |bundle_id, control| {
        let flags = BundleFlags::ATOMIC;
        Message::BundleControl(BundleControl { bundle_id, control, flags })
    };
    let open = |bundle_id| control(bundle_id, BundleControlType::OpenRequest);
    let close = || control(1, BundleControlType::CloseRequest);
    let add = |message: Vec<u8>| {
        Message::BundleAdd(BundleAdd { bundle_id: 1, flags: BundleFlags::ATOMIC, message })
    };
    let inner = frame(&Message::FlowMod(FlowMod::new(FlowModCommand::Add)));
    let other_xid =
        wire::encode(Version::V1_3, Xid(77), &Message::FlowMod(FlowMod::new(FlowModCommand::Add)));
    let other_flags = BundleControl {
        bundle_id: 1,
        control: BundleControlType::CloseRequest,
        flags: BundleFlags::ORDERED,
    };
    let torn = inner[..20].to_vec();
    vec![
        row(Error::BundleBadId, &close()),
        after(vec![open(1)], Error::BundleExist, &open(1)),
        after(vec![open(1), close()], Error::BundleClosed, &add(inner)),
        after((0..64).map(open).collect(), Error::BundleOutOfBundles, &open(64)),
        row(Error::BundleBadType, &control(1, BundleControlType::Unknown(9))),
        after(vec![open(1)], Error::BundleBadFlags, &Message::BundleControl(other_flags)),
        row(Error::BundleMsgBadLen, &add(torn)),
        row(Error::BundleMsgBadXid, &add(other_xid.unwrap())),
        row(Error::BundleMsgUnsup, &add(frame(&Message::BarrierRequest))),
    ]
}

fn flow_monitors() -> Vec<Row> {
    let add = |flags| {
        let command = FlowMonitorCommand::Add;
        let asked = FlowMonitorRequest { command, flags, ..FlowMonitorRequest::delete(1) };
        multipart(MultipartRequestBody::FlowMonitor(vec![asked]))
    };
    let all = || add(FlowMonitorFlags::CHANGES);
    let cancel = Experimenter {
        experimenter: openflow::error::ONF,
        exp_type: 1870,
        data: 7_u32.to_be_bytes().to_vec(),
    };
    vec![
        after(vec![all()], Error::FlowMonitorExists, &all()),
        row(Error::FlowMonitorUnknownMonitor, &Message::Experimenter(cancel)),
        row(Error::FlowMonitorBadFlags, &add(FlowMonitorFlags::INITIAL)),
    ]
}

fn multipart(body: MultipartRequestBody) -> Message {
    Message::MultipartRequest(MultipartRequest { more: false, body })
}

fn of_nicira(exp_type: u32, data: Vec<u8>) -> Message {
    Message::Experimenter(Experimenter { experimenter: 0x2320, exp_type, data })
}

fn requests() -> Vec<Row> {
    let stranger = Experimenter { experimenter: 0x1234, exp_type: 0, data: Vec::new() };
    let other_version = wire::encode(Version::V1_0, Xid(3), &Message::BarrierRequest).unwrap();
    let buffered = PacketOut {
        buffer_id: Some(BufferId(7)),
        in_port: PortNo::ANY,
        actions: Vec::new(),
        data: Vec::new(),
    };
    let no_table = FlowStatsRequest { table_id: TableId(9), ..FlowStatsRequest::all() };
    let in_parts = MultipartRequest { more: true, body: MultipartRequestBody::Desc };
    vec![
        bytes(Error::BadRequestBadVersion, other_version),
        bytes(Error::BadRequestBadType, raw(200, &[])),
        bytes(Error::BadRequestBadMultipart, raw(18, &[0x77, 0x77, 0, 0, 0, 0, 0, 0])),
        row(Error::BadRequestBadExperimenter, &Message::Experimenter(stranger)),
        // A type that Nicira has not, and a form of packet-ins.
        row(Error::BadRequestBadExpType, &of_nicira(99, Vec::new())),
        row(Error::BadRequestEperm, &of_nicira(16, vec![0, 0, 0, 9])),
        bytes(Error::BadRequestBadLen, raw(20, &[0; 8])),
        row(Error::BadRequestBufferUnknown, &Message::PacketOut(buffered)),
        row(Error::BadRequestBadTableId, &multipart(MultipartRequestBody::Flow(no_table))),
        after(
            vec![role(ControllerRole::Slave, 100)],
            Error::BadRequestIsSlave,
            &add_flow(1, Match::any(), Vec::new()),
        ),
        row(Error::BadRequestBadPort, &multipart(MultipartRequestBody::PortStats(PortNo(99)))),
        row(Error::BadRequestBadPacket, &packet_out(PortNo(1), vec![0; 4])),
        row(Error::BadRequestMultipartBufferOverflow, &Message::MultipartRequest(in_parts)),
    ]
}

fn actions() -> Vec<Row> {
    let output = applying(Action::output(PortNo(1)));
    let foreign = Action::Experimenter { experimenter: 1, data: Vec::new() };
    let unasked = Action::set_field(Field::Ipv4Src, 1);
    let lone = Action::Conjunction { dimension: 0, n_dimensions: 1, id: 1 };
    // `NXT_RESUME` of a packet that waits for nobody.
    let nothing_paused = Experimenter { experimenter: 0x2320, exp_type: 28, data: Vec::new() };
    let address = applying(Action::set_field(Field::EthDst, 1));
    let priority = Message::FlowMod(FlowMod {
        instructions: vec![Instruction::ApplyActions(vec![Action::set_field(Field::IpDscp, 1)])],
        ..FlowMod::new(FlowModCommand::Add)
    });
    vec![
        bytes(Error::BadActionBadType, spoilt(&output, ACTION, &[0x77, 0x77])),
        bytes(Error::BadActionBadLen, spoilt(&output, ACTION + 2, &[0, 8])),
        row(Error::BadActionBadExperimenter, &applying(foreign)),
        row(Error::BadActionBadOutPort, &applying(Action::output(PortNo(0xffff_ff77)))),
        row(Error::BadActionBadArgument, &applying(Action::PushVlan(0x0800))),
        row(Error::BadActionBadQueue, &applying(Action::SetQueue(QueueId::ALL))),
        row(Error::BadActionBadOutGroup, &applying(Action::Group(GroupId(9)))),
        row(Error::BadActionMatchInconsistent, &applying(unasked)),
        row(Error::ResumeStale, &Message::Experimenter(nothing_paused)),
        row(Error::BadConjunction, &applying(lone)),
        // Field 0 is the ingress port.
        bytes(Error::BadActionBadSetType, spoilt(&address, ACTION + 6, &[0, 4])),
        bytes(Error::BadActionBadSetLen, spoilt(&address, ACTION + 7, &[5])),
        bytes(Error::BadActionBadSetArgument, spoilt(&priority, ACTION + 8, &[0xff])),
    ]
}

fn instructions() -> Vec<Row> {
    let goto = |table| Instruction::GotoTable(TableId(table));
    let foreign = Instruction::Experimenter { experimenter: 1, data: Vec::new() };
    let good = instructed(vec![goto(1)]);
    vec![
        bytes(Error::BadInstructionUnknownInst, spoilt(&good, INSTRUCTION, &[0, 77])),
        row(Error::BadInstructionUnsupInst, &instructed(vec![goto(1), goto(2)])),
        row(Error::BadInstructionBadTableId, &instructed(vec![goto(9)])),
        row(Error::BadInstructionBadExperimenter, &instructed(vec![foreign])),
        bytes(Error::BadInstructionBadLen, spoilt(&good, INSTRUCTION + 2, &[0, 4])),
    ]
}

fn matches() -> Vec<Row> {
    let any = Message::FlowMod(matching(Match::any()));
    let address = Match::any().with(Field::EthDst, 1);
    let two = Message::FlowMod(matching(address.clone().with(Field::EthSrc, 1)));
    let address = Message::FlowMod(matching(address));
    let of = |field, value| Message::FlowMod(matching(Match::any().with(field, value)));
    vec![
        bytes(Error::BadMatchBadType, spoilt(&any, MATCH, &[0, 0])),
        bytes(Error::BadMatchBadLen, spoilt(&address, FIRST_FIELD + 3, &[5])),
        // A bit of the value outside of the mask.
        bytes(Error::BadMatchBadWildcards, spoilt(&masked(), FIRST_FIELD + 9, &[1])),
        bytes(Error::BadMatchBadField, spoilt(&address, FIRST_FIELD + 2, &[63 << 1])),
        row(Error::BadMatchBadValue, &of(Field::VlanVid, 5)),
        // Field 5 is the Ethernet type, which takes no mask.
        bytes(Error::BadMatchBadMask, spoilt(&masked(), FIRST_FIELD + 2, &[5 << 1 | 1])),
        row(Error::BadMatchBadPrereq, &of(Field::TcpDst, 80)),
        bytes(Error::BadMatchDupField, spoilt(&two, FIRST_FIELD + 12, &[3 << 1])),
    ]
}

fn flow_mods() -> Vec<Row> {
    let numbered = |number| add_flow(1, Match::any().with(Field::EthDst, number), Vec::new());
    let other_table = FlowMod { table_id: TableId(4), ..FlowMod::new(FlowModCommand::Add) };
    let overlapping = FlowMod {
        priority: 1,
        flags: FlowModFlags::CHECK_OVERLAP,
        ..matching(Match::any().with(Field::EthSrc, 1))
    };
    let odd = FlowMod {
        flags: FlowModFlags::from_bits_retain(0x80),
        ..FlowMod::new(FlowModCommand::Add)
    };
    vec![
        after((1..4).map(numbered).collect(), Error::FlowModTableFull, &numbered(4)),
        row(Error::FlowModBadTableId, &Message::FlowMod(other_table)),
        after(vec![numbered(1)], Error::FlowModOverlap, &Message::FlowMod(overlapping)),
        row(Error::FlowModBadCommand, &Message::FlowMod(FlowMod::new(FlowModCommand::Unknown(9)))),
        row(Error::FlowModBadFlags, &Message::FlowMod(odd)),
    ]
}

fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket {
        bucket_id: None,
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions,
    }
}

fn group_of(group_id: u32, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::All,
        group_id: GroupId(group_id),
        buckets,
        ..GroupMod::default()
    }
}

fn groups() -> Vec<Row> {
    let to = |group| vec![bucket(vec![Action::Group(GroupId(group))])];
    let add = |group_id, buckets| Message::GroupMod(group_of(group_id, buckets));
    let changed = |change: &dyn Fn(&mut GroupMod)| {
        let mut group = group_of(1, vec![bucket(Vec::new())]);
        change(&mut group);
        Message::GroupMod(group)
    };
    let chain = || vec![add(2, Vec::new()), add(1, to(2))];
    let good = add(1, vec![bucket(Vec::new())]);
    let modify =
        |group: GroupMod| Message::GroupMod(GroupMod { command: GroupModCommand::Modify, ..group });
    let delete = GroupMod { command: GroupModCommand::Delete, ..group_of(2, Vec::new()) };
    vec![
        after(vec![add(1, Vec::new())], Error::GroupModGroupExists, &add(1, Vec::new())),
        row(Error::GroupModInvalidGroup, &changed(&|group| group.buckets[0].weight = 1)),
        after(
            (0..MANY).map(|id| add(id, Vec::new())).collect(),
            Error::GroupModOutOfGroups,
            &add(MANY, Vec::new()),
        ),
        row(Error::GroupModOutOfBuckets, &add(1, vec![bucket(Vec::new()); 1_025])),
        after(
            (1..=64).map(|id| add(id, if id == 1 { Vec::new() } else { to(id - 1) })).collect(),
            Error::GroupModChainingUnsupported,
            &add(65, to(64)),
        ),
        after(chain(), Error::GroupModLoop, &modify(group_of(2, to(1)))),
        row(Error::GroupModUnknownGroup, &modify(group_of(1, Vec::new()))),
        after(chain(), Error::GroupModChainedGroup, &Message::GroupMod(delete)),
        row(Error::GroupModBadType, &changed(&|group| group.group_type = GroupType::Unknown(9))),
        row(
            Error::GroupModBadCommand,
            &changed(&|group| group.command = GroupModCommand::Unknown(9)),
        ),
        // The length of the first bucket.
        bytes(Error::GroupModBadBucket, spoilt(&good, 16, &[0, 12])),
        row(
            Error::GroupModBadWatch,
            &changed(&|group| group.buckets[0].watch_port = PortNo(0xffff_ff77)),
        ),
    ]
}

fn ports_and_tables(hw_addr: MacAddr) -> Vec<Row> {
    let port_mod = |change: &dyn Fn(&mut PortMod)| {
        let mut port_mod = PortMod {
            port_no: PortNo(1),
            hw_addr,
            config: PortConfig::empty(),
            mask: PortConfig::empty(),
            advertise: PortFeatures::empty(),
        };
        change(&mut port_mod);
        Message::PortMod(port_mod)
    };
    let table_mod = |table, config| Message::TableMod(TableMod::new(TableId(table), config));
    vec![
        row(Error::PortModBadPort, &port_mod(&|port| port.port_no = PortNo(99))),
        row(Error::PortModBadHwAddr, &port_mod(&|port| port.hw_addr = MacAddr([9; 6]))),
        row(
            Error::PortModBadConfig,
            &port_mod(&|port| port.mask = PortConfig::from_bits_retain(1 << 20)),
        ),
        row(Error::PortModBadAdvertise, &port_mod(&|port| port.advertise = PortFeatures::FD_1GB)),
        row(Error::TableModBadTable, &table_mod(200, 0)),
        row(Error::TableModBadConfig, &table_mod(0, 4)),
    ]
}

fn role(role: ControllerRole, generation_id: u64) -> Message {
    Message::RoleRequest(Role { role, generation_id })
}

fn roles_and_queues() -> Vec<Row> {
    let config = SwitchConfig { flags: 3, miss_send_len: 0 };
    let queue = MultipartRequestBody::Queue { port: PortNo(1), queue: QueueId(7) };
    vec![
        row(Error::QueueOpBadPort, &Message::QueueGetConfigRequest(PortNo(77))),
        row(Error::QueueOpBadQueue, &multipart(queue)),
        row(Error::SwitchConfigBadFlags, &Message::SetConfig(config)),
        after(
            vec![role(ControllerRole::Slave, 100)],
            Error::RoleRequestStale,
            &role(ControllerRole::Slave, 99),
        ),
        row(Error::RoleRequestBadRole, &role(ControllerRole::Unknown(9), 0)),
    ]
}

fn meter(meter_id: u32) -> MeterMod {
    MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::KBPS,
        meter_id: MeterId(meter_id),
        bands: vec![Band { kind: BandKind::Drop, rate: 1, burst_size: 0 }],
    }
}

fn meters() -> Vec<Row> {
    let add = |meter_id| Message::MeterMod(meter(meter_id));
    let changed = |change: &dyn Fn(&mut MeterMod)| {
        let mut meter = meter(1);
        change(&mut meter);
        Message::MeterMod(meter)
    };
    let both = MeterFlags::KBPS | MeterFlags::PKTPS;
    let modify = |meter: &mut MeterMod| meter.command = MeterModCommand::Modify;
    vec![
        after(vec![add(1)], Error::MeterModMeterExists, &add(1)),
        row(Error::MeterModInvalidMeter, &add(0)),
        row(Error::MeterModUnknownMeter, &changed(&modify)),
        row(
            Error::MeterModBadCommand,
            &changed(&|meter| meter.command = MeterModCommand::Unknown(9)),
        ),
        row(Error::MeterModBadFlags, &changed(&|meter| meter.flags = both)),
        row(Error::MeterModBadRate, &changed(&|meter| meter.bands[0].rate = 0)),
        // The type of the first band.
        bytes(Error::MeterModBadBand, spoilt(&add(1), 16, &[0, 77])),
        after((1..=MANY).map(add).collect(), Error::MeterModOutOfMeters, &add(MANY + 1)),
        row(Error::MeterModOutOfBands, &changed(&|meter| meter.bands = vec![meter.bands[0]; 17])),
    ]
}

/// Refusals of a request that sets table features, and by tables whose features were set.
fn table_features(tables: &[TableFeatures]) -> Vec<Row> {
    let asked = |change: &dyn Fn(&mut TableFeatures)| {
        let mut tables = tables.to_vec();
        change(&mut tables[0]);
        multipart(MultipartRequestBody::TableFeatures(tables))
    };
    let alone = |table: TableFeatures| multipart(MultipartRequestBody::TableFeatures(vec![table]));
    let next = TableProperty::NextTables(OnPacket::Hit, vec![TableId(1)]);
    let short = alone(TableFeatures { properties: vec![next], ..tables[0].clone() });
    // Header, multipart header, and the features before their properties.
    let property = 16 + 64;
    let no_table = TableFeatures { table_id: TableId(200), ..tables[0].clone() };
    let low_byte = || vec![asked(&|table| table.metadata_write = 0xff)];
    let write = |metadata, mask| instructed(vec![Instruction::WriteMetadata { metadata, mask }]);
    vec![
        row(Error::TableFeaturesBadTable, &alone(no_table)),
        row(Error::TableFeaturesBadMetadata, &asked(&|table| table.metadata_write = 0)),
        bytes(Error::TableFeaturesBadType, spoilt(&short, property, &[0x77, 0x77])),
        bytes(Error::TableFeaturesBadLen, spoilt(&short, property + 2, &[0, 2])),
        row(Error::TableFeaturesBadArgument, &asked(&|table| table.config = 8)),
        after(low_byte(), Error::BadInstructionUnsupMetadata, &write(0x100, 0xff)),
        after(low_byte(), Error::BadInstructionUnsupMetadataMask, &write(0, 0x100)),
    ]
}
