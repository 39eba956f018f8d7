//! Super-frames against the frames that they stand for: random entries do the same to both. What
//! leaves, what goes to the controller and every counter are those of the frames of a wire.

use std::collections::BTreeMap;

use datapath::fast::{Caches, Fast, Sink};
use datapath::{Datapath, DatapathConfig, DropReason, Nanos};
use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::PacketIn;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::{
    Action, Field, GroupId, Instruction, MacAddr, Match, MeterId, PortNo, QueueId, TableId, Version,
};
use packet::build::{FrameBuilder, Ipv4, Ipv6, Tcp};
use packet::offload::{Segmenter, finish};
use packet::{Offload, PacketBuf, verify};
use testkit::Random;

/// The frames that leave by each port. The copies that a port gets of one packet come one after the
/// other, and so those of one super-frame: their order is looked at only where there are none.
#[derive(Debug, Default, PartialEq)]
struct Came {
    left: BTreeMap<(u32, Option<u32>), Vec<Vec<u8>>>,
    up: Vec<(PacketIn, u16)>,
    super_frames: usize,
}

impl Sink for Came {
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf) {
        self.super_frames += usize::from(frame.on_wire().0 > 1);
        let left = self.left.entry((port.0, queue.map(|queue| queue.0))).or_default();
        finish(frame, PacketBuf::default, |frame| left.push(frame.bytes().to_vec())).unwrap();
    }

    fn packet_in(&mut self, message: PacketIn, max_len: u16) {
        self.up.push((message, max_len));
    }

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

/// A frame of TCP or UDP, as a sender with a network card leaves it.
fn frame(random: &mut Random) -> PacketBuf {
    let ethernet = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
    let ethernet = match random.below(3) {
        0 => ethernet.vlan(0, 7),
        _ => ethernet,
    };
    let network = if random.below(2) == 0 {
        ethernet.ipv4(Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()))
    } else {
        let address = |last: u128| std::net::Ipv6Addr::from_bits(0xfd << 120 | last);
        ethernet.ipv6(Ipv6::new(address(1), address(2)))
    };
    let len = [0, 1, 999, 1_000, 1_001, 5_432, 20_000][random.index(7)];
    let payload: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
    let transport = if random.below(2) == 0 {
        let mut tcp = Tcp::new(1_234, 80);
        tcp.flags = *random.pick(&[0x10, 0x18, 0x11, 0x90]);
        network.tcp(tcp)
    } else {
        network.udp(1_234, 53)
    };
    let bytes = transport.payload(&payload).build();
    let mut frame = PacketBuf::from_slice(&bytes);
    let offload = match random.below(4) {
        0 => None,
        1 => Some(Offload::CHECKSUM),
        _ => {
            let segmenter = Segmenter::new(&bytes, None, 1_000, None).unwrap();
            Some(Offload::of_segments(&bytes, &segmenter).unwrap())
        }
    };
    assert!(frame.set_offload(offload));
    frame
}

/// The frames that a wire would carry for it.
fn cut(frame: &PacketBuf) -> Vec<PacketBuf> {
    let mut cut = Vec::new();
    finish(frame.clone(), PacketBuf::default, |frame| cut.push(frame)).unwrap();
    cut
}

fn action(random: &mut Random) -> Action {
    let value = random.u128();
    let fields = [
        Field::EthDst,
        Field::VlanVid,
        Field::IpDscp,
        Field::IpProto,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::Ipv6Src,
        Field::TcpSrc,
        Field::TcpDst,
        Field::UdpSrc,
        Field::MplsLabel,
    ];
    match random.below(22) {
        0 | 1 => Action::output(PortNo(2)),
        2 | 3 => Action::output(PortNo(3)),
        4 => Action::output(PortNo(4)),
        5 => Action::output(PortNo::CONTROLLER),
        6 => Action::output(PortNo::NORMAL),
        7 => Action::output(PortNo::FLOOD),
        8 => Action::Group(GroupId(1 + random.below(2) as u32)),
        9 => Action::SetQueue(QueueId(5)),
        10 => Action::PushVlan(0x8100),
        11 => Action::PushVlan(0x88a8),
        12 => Action::PopVlan,
        13 => Action::PushMpls(0x8847),
        14 => Action::PopMpls(0x0800),
        15 => Action::PushPbb(0x88e7),
        16 => Action::DecNwTtl,
        17 => Action::SetNwTtl(random.below(3) as u8),
        _ => {
            let field = *random.pick(&fields);
            let value = if field == Field::VlanVid { 0x1000 | value } else { value };
            Action::set_field(field, value & field.full_mask())
        }
    }
}

fn actions(random: &mut Random) -> Vec<Action> {
    (0..random.below(6)).map(|_| action(random)).collect()
}

/// The same ports, groups and meters in each; entries are added to both or to neither.
fn datapath(caches: Caches) -> Fast {
    let mut dp = Fast::new(DatapathConfig::default(), 1);
    dp.forwarder().set_caches(caches, Nanos(0));
    for number in 1..=4 {
        let state = if number == 4 { PortState::LINK_DOWN } else { PortState::LIVE };
        let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
        dp.port_set(desc, Nanos(0));
    }
    for (id, kind) in [(1, GroupType::All), (2, GroupType::Select)] {
        let bucket = |port, actions: &[Action]| Bucket {
            bucket_id: None,
            weight: u16::from(kind == GroupType::Select),
            watch_port: PortNo::ANY,
            watch_group: GroupId::ANY,
            actions: [actions, &[Action::output(PortNo(port))]].concat(),
        };
        let group_mod = GroupMod {
            command: GroupModCommand::Add,
            group_type: kind,
            group_id: GroupId(id),
            buckets: vec![bucket(2, &[]), bucket(3, &[Action::PushVlan(0x8100), Action::DecNwTtl])],
            ..GroupMod::default()
        };
        dp.group_mod(&group_mod, Nanos(0)).unwrap();
    }
    let meter_mod = MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::KBPS | MeterFlags::STATS,
        meter_id: MeterId(1),
        bands: vec![Band { kind: BandKind::Drop, rate: 40, burst_size: 0 }],
    };
    dp.meter_mod(&meter_mod, Nanos(0)).unwrap();
    dp
}

/// Adds the same entry to both, where it is allowed.
fn add(both: &mut [Fast; 2], random: &mut Random, table: u8) {
    let mut flow_mod = FlowMod::new(FlowModCommand::Add);
    flow_mod.table_id = TableId(table);
    flow_mod.priority = random.below(4) as u16;
    flow_mod.matching = match random.below(20) {
        0..4 => Match::any().with(Field::EthType, 0x0800).with(Field::IpProto, 6),
        4..8 => Match::any().with(Field::EthType, 0x86dd),
        8..12 => Match::any()
            .with(Field::EthType, 0x0800)
            .with(Field::Ipv4Src, random.u128() & 0xffff_ffff),
        // Flags that each of the frames has, and some that only one of them has.
        12 => {
            let (ip, flag) = (*random.pick(&[0x0800, 0x86dd]), *random.pick(&[0x10, 8, 1, 0x80]));
            let tcp = Match::any().with(Field::EthType, ip).with(Field::IpProto, 6);
            tcp.with_masked(Field::TcpFlags, flag, flag)
        }
        _ => Match::any().with(Field::InPort, 1),
    };
    if random.below(6) == 0 {
        flow_mod.instructions.push(Instruction::Meter(MeterId(1)));
    }
    flow_mod.instructions.push(Instruction::ApplyActions(actions(random)));
    if table == 0 && random.below(2) == 0 {
        flow_mod.instructions.push(Instruction::GotoTable(TableId(1)));
    }
    let added = both.each_mut().map(|dp| dp.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).is_ok());
    assert_eq!(added[0], added[1]);
}

/// Compares, showing the first bytes of the first frame that differs.
fn same(came: &Came, expected: &Came, place: &str) {
    assert!(came.left.keys().eq(expected.left.keys()), "{place}");
    for (port, right) in &expected.left {
        let (mut left, mut right) = (came.left[port].clone(), right.clone());
        if left != right {
            left.sort();
            right.sort();
        }
        for (at, (frame, right)) in left.iter().zip(&right).enumerate() {
            let head = |frame: &[u8]| testkit::hex::format(&frame[..frame.len().min(80)]);
            let (found, wanted) = (head(frame), head(right));
            let lengths = (frame.len(), right.len());
            assert!(frame == right, "{place}, {port:?}, {at}, {lengths:?}\n{found}\n{wanted}");
        }
        assert_eq!(left.len(), right.len(), "{place}, {port:?}");
    }
    assert!(came.up == expected.up, "{place}: {} {}", came.up.len(), expected.up.len());
}

/// Everything that is counted.
fn counted(dp: &mut Fast, now: Nanos) -> String {
    dp.reap();
    let counters = format!("{:?}", dp.counters());
    let mut text = format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n",
        dp.flow_stats(&FlowStatsRequest::all(), now).unwrap(),
        dp.table_stats(),
        dp.port_stats(PortNo::ANY, now).unwrap(),
        dp.queue_stats(PortNo::ANY, QueueId::ALL, now).unwrap(),
        dp.group_stats(GroupId::ALL, now),
        dp.meter_stats(MeterId::ALL, now).unwrap(),
    );
    text.push_str(&counters);
    text
}

#[test]
fn super_frames_are_what_they_stand_for() {
    let all = Caches::default();
    let choices = [
        all,
        Caches { frame: false, ..all },
        Caches { key: false, ..all },
        Caches { frame: false, key: false, ..all },
    ];
    let (mut whole, mut up, mut left) = (0, 0, 0);
    for round in 0..500_u64 {
        let mut random = Random::new(round);
        let caches = choices[random.weighted(&[6, 1, 1, 1])];
        let mut both = [datapath(caches), datapath(caches)];
        for _ in 0..1 + random.below(4) {
            add(&mut both, &mut random, 0);
            add(&mut both, &mut random, 1);
        }
        for step in 0..4_u64 {
            let now = Nanos(step * 400_000_000);
            let frames: Vec<PacketBuf> =
                (0..1 + random.below(5)).map(|_| frame(&mut random)).collect();
            let mut wire: Vec<PacketBuf> = frames.iter().flat_map(cut).collect();
            let mut frames = frames;
            let (mut came, mut expected) = (Came::default(), Came::default());
            both[0].process_batch(&mut frames, PortNo(1), now, &mut came);
            both[1].process_batch(&mut wire, PortNo(1), now, &mut expected);
            whole += std::mem::take(&mut came.super_frames);
            (up, left) = (up + came.up.len(), left + came.left.len());
            same(&came, &expected, &format!("round {round}, step {step}"));
            for frame in came.left.values().flatten() {
                verify(frame).unwrap();
            }
            let [counts, right] = both.each_mut().map(|dp| counted(dp, now));
            for (count, right) in counts.lines().zip(right.lines()) {
                assert_eq!(count, right, "round {round}, step {step}\n{counts}");
            }
        }
    }
    assert!(whole > 300 && up > 100 && left > 500, "{whole} {up} {left}");
}
