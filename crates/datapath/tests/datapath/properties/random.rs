//! Random commands, packets and times over a small universe.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Nanos, Reference};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::PacketOut;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::{
    Action, Cookie, Field, GroupId, Instruction, MacAddr, Match, MeterId, PortNo, QueueId, TableId,
    Version,
};
use packet::build::{FrameBuilder, Ipv4};
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop, prop_oneof};

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    FlowMod(FlowMod, Version),
    GroupMod(GroupMod),
    MeterMod(MeterMod),
    Packet(PortNo, Vec<u8>),
    PacketOut(PacketOut),
    Wait(u64),
}

/// A datapath of four tables and four live ports.
pub(crate) fn datapath(fast: bool) -> Box<dyn Datapath> {
    let config = DatapathConfig { n_tables: 4, max_entries: 16, ..DatapathConfig::default() };
    let mut dp: Box<dyn Datapath> =
        if fast { Box::new(Fast::new(config, 1)) } else { Box::new(Reference::new(config)) };
    for number in 1..=4 {
        let desc =
            PortDesc { port_no: PortNo(number), state: PortState::LIVE, ..PortDesc::default() };
        dp.port_set(desc, Nanos(0));
    }
    dp
}

pub(crate) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let version = prop_oneof![Just(Version::V1_3), Just(Version::V1_0)];
    let op = prop_oneof![
        6 => (flow_mod(), version).prop_map(|(flow_mod, version)| Op::FlowMod(flow_mod, version)),
        2 => group_mod().prop_map(Op::GroupMod),
        1 => meter_mod().prop_map(Op::MeterMod),
        6 => (1_u32..6, frame()).prop_map(|(port, frame)| Op::Packet(PortNo(port), frame)),
        1 => (1_u32..6, damaged()).prop_map(|(port, frame)| Op::Packet(PortNo(port), frame)),
        1 => packet_out().prop_map(Op::PacketOut),
        1 => (0_u64..3_000_000_000).prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 0..most)
}

fn mac(number: u64) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | number)
}

/// UDP or ARP-like frames between a few stations, with and without a tag.
pub(crate) fn frame() -> impl Strategy<Value = Vec<u8>> {
    (0_u64..4, 0_u64..4, 0_u32..4, 0_u32..4, 0_u16..3, any::<bool>(), 0_u8..3).prop_map(
        |(dst, src, nw_src, nw_dst, tp_dst, tagged, ttl)| {
            let frame = FrameBuilder::ethernet(mac(dst), mac(src));
            let frame = if tagged { frame.vlan(3, 5) } else { frame };
            if tp_dst == 2 {
                return frame.ether_type(0x0806).payload(&[0; 46]).build();
            }
            let mut ip = Ipv4::new((0x0a00_0000 | nw_src).into(), (0x0a00_0000 | nw_dst).into());
            ip.ttl = ttl;
            frame.ipv4(ip).udp(1000, 53 + tp_dst).payload(b"weir").build()
        },
    )
}

/// Frames that are cut off, with some bytes turned into others.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (frame(), changes, any::<prop::sample::Index>()).prop_map(|(mut frame, changes, end)| {
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        frame.truncate(end.index(frame.len()));
        frame
    })
}

/// Matches that some of the frames match.
pub(crate) fn matching() -> impl Strategy<Value = Match> {
    let in_port = prop::option::of(1_u128..4);
    let eth_dst = prop::option::of((0_u128..4, prop_oneof![Just(u128::MAX), Just(1_u128)]));
    let ip = prop::option::of((prop::option::of((0_u128..4, 0_u32..4)), any::<bool>()));
    let vlan = prop::option::of(prop_oneof![Just(0_u128), Just(0x1005)]);
    (in_port, eth_dst, ip, vlan).prop_map(|(in_port, eth_dst, ip, vlan)| {
        let mut matching = Match::any();
        if let Some(port) = in_port {
            matching.set(Field::InPort, port, u128::MAX);
        }
        if let Some((low, mask)) = eth_dst {
            matching.set(Field::EthDst, 0x0200_0000_0000 | low, mask);
        }
        if let Some((nw_dst, udp)) = ip {
            matching.set(Field::EthType, 0x0800, u128::MAX);
            if let Some((low, host_bits)) = nw_dst {
                matching.set(Field::Ipv4Dst, 0x0a00_0000 | low, u128::MAX << host_bits);
            }
            if udp {
                matching.set(Field::IpProto, 17, u128::MAX);
            }
        }
        if let Some(vid) = vlan {
            matching.set(Field::VlanVid, vid, u128::MAX);
        }
        matching
    })
}

fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![
        8 => (0_u32..6).prop_map(PortNo),
        1 => Just(PortNo::IN_PORT),
        1 => Just(PortNo::TABLE),
        1 => Just(PortNo::NORMAL),
        1 => Just(PortNo::FLOOD),
        1 => Just(PortNo::ALL),
        2 => Just(PortNo::CONTROLLER),
    ]
}

fn action() -> BoxedStrategy<Action> {
    prop_oneof![
        6 => port().prop_map(Action::output),
        2 => (1_u32..4).prop_map(|id| Action::Group(GroupId(id))),
        1 => (0_u32..3).prop_map(|id| Action::SetQueue(QueueId(id))),
        1 => Just(Action::DecNwTtl),
        1 => Just(Action::PushVlan(0x8100)),
        1 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => Just(Action::PopMpls(0x0800)),
        1 => Just(Action::PushPbb(0x88e7)),
        1 => (0_u128..4).prop_map(|low| Action::set_field(Field::Ipv4Dst, 0x0a00_0000 | low)),
        1 => (0_u128..4).prop_map(|low| Action::set_field(Field::EthDst, low)),
        1 => Just(Action::set_field(Field::VlanVid, 0x1007)),
        1 => Just(Action::SetVlanVid(6)),
    ]
    .boxed()
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 0..4)
}

fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    let optional = (
        prop::option::weighted(0.7, actions().prop_map(Instruction::ApplyActions)),
        prop::option::weighted(0.4, actions().prop_map(Instruction::WriteActions)),
        prop::option::weighted(
            0.5,
            (0_u8..5).prop_map(|table| Instruction::GotoTable(TableId(table))),
        ),
        prop::option::weighted(
            0.1,
            (1_u32..3).prop_map(|meter| Instruction::Meter(MeterId(meter))),
        ),
        prop::option::weighted(0.1, Just(Instruction::ClearActions)),
    );
    optional.prop_map(|(apply, write, goto, meter, clear)| {
        [goto, write, apply, meter, clear].into_iter().flatten().collect()
    })
}

/// Commands of every kind, some of which must be refused.
pub(crate) fn flow_mod() -> impl Strategy<Value = FlowMod> {
    let command = prop_oneof![
        8 => Just(FlowModCommand::Add),
        2 => Just(FlowModCommand::Modify),
        1 => Just(FlowModCommand::ModifyStrict),
        1 => Just(FlowModCommand::Delete),
        1 => Just(FlowModCommand::DeleteStrict),
    ];
    let table = prop_oneof![6 => 0_u8..4, 1 => Just(255_u8)];
    let head = (command, table, 0_u64..4, prop_oneof![Just(0_u64), Just(1_u64)]);
    let timeouts = (prop_oneof![3 => Just(0_u16), 1 => 1_u16..4], 0_u16..4, 0_u16..4);
    let rest = (prop_oneof![4 => Just(PortNo::ANY), 1 => port()], 0_u16..32);
    (head, timeouts, rest, matching(), instructions()).prop_map(
        |(head, (idle, hard, priority), (out_port, flags), matching, instructions)| {
            let (command, table, cookie, cookie_mask) = head;
            let mut flow_mod = FlowMod::new(command);
            flow_mod.table_id = TableId(table);
            flow_mod.cookie = Cookie(cookie);
            flow_mod.cookie_mask = cookie_mask;
            flow_mod.idle_timeout_s = idle;
            flow_mod.hard_timeout_s = hard;
            flow_mod.priority = priority;
            flow_mod.out_port = out_port;
            flow_mod.flags = FlowModFlags::from_bits_retain(flags);
            flow_mod.matching = matching;
            flow_mod.instructions = instructions;
            flow_mod
        },
    )
}

fn group_mod() -> impl Strategy<Value = GroupMod> {
    let command = prop_oneof![
        6 => Just(GroupModCommand::Add),
        3 => Just(GroupModCommand::Modify),
        1 => Just(GroupModCommand::Delete),
        1 => Just(GroupModCommand::AddOrModify),
    ];
    let group_type = prop_oneof![
        Just(GroupType::All),
        Just(GroupType::Select),
        Just(GroupType::Indirect),
        Just(GroupType::FastFailover),
    ];
    let id = prop_oneof![9 => 1_u32..4, 1 => Just(GroupId::ALL.0)];
    let watch = prop::option::of((1_u32..6).prop_map(PortNo));
    let bucket = (0_u16..3, watch, actions());
    let buckets = prop::collection::vec(bucket, 0..4);
    (command, group_type, id, buckets).prop_map(|(command, group_type, id, buckets)| {
        let is_select = group_type == GroupType::Select;
        let bucket = |(weight, watch, actions): (u16, Option<PortNo>, Vec<Action>)| Bucket {
            bucket_id: None,
            weight: if is_select { weight } else { 0 },
            watch_port: watch.unwrap_or(PortNo::ANY),
            watch_group: GroupId::ANY,
            actions,
        };
        let buckets = buckets.into_iter().map(bucket).collect();
        GroupMod { command, group_type, group_id: GroupId(id), buckets, ..GroupMod::default() }
    })
}

fn meter_mod() -> impl Strategy<Value = MeterMod> {
    let command = prop_oneof![
        4 => Just(MeterModCommand::Add),
        2 => Just(MeterModCommand::Modify),
        1 => Just(MeterModCommand::Delete),
    ];
    let kind = prop_oneof![Just(BandKind::Drop), Just(BandKind::DscpRemark { prec_level: 1 })];
    let band = (kind, 0_u32..3, 0_u32..3).prop_map(|(kind, rate, burst_size)| Band {
        kind,
        rate,
        burst_size,
    });
    (command, 1_u32..3, prop::collection::vec(band, 0..3)).prop_map(|(command, id, bands)| {
        let flags = MeterFlags::PKTPS | MeterFlags::BURST;
        MeterMod { command, flags, meter_id: MeterId(id), bands }
    })
}

fn packet_out() -> impl Strategy<Value = PacketOut> {
    (port(), actions(), frame()).prop_map(|(in_port, actions, data)| PacketOut {
        buffer_id: None,
        in_port,
        actions,
        data,
    })
}
