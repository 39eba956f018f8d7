//! Multipart replies: what the datapath counts, in parts where they are long.

use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::group::{
    Bucket, BucketCounter, GroupCapabilities, GroupDesc, GroupMod, GroupModCommand, GroupType,
};
use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::meter::{
    Band, BandCounter, BandKind, MeterConfig, MeterFlags, MeterMod, MeterModCommand,
};
use openflow::port::{PacketQueue, PortState, QueueProperty};
use openflow::table::{OnPacket, TableMod, TableProperty};
use openflow::{
    Action, Cookie, Field, GroupId, Instruction, Match, Message, MeterId, PortNo, QueueId, TableId,
    Version,
};

use crate::harness::{Controller, Host, Switch, WITH_1_4, add_flow, frame, packet_out};

/// Frames of 60 bytes that the switch of [`loaded`] has forwarded.
const FRAMES: u64 = 5;

const GROUP: GroupId = GroupId(9);
const METER: MeterId = MeterId(4);

fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket {
        bucket_id: None,
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions,
    }
}

/// Of [`GROUP`]: a copy by a queue of port 2, and one by port 3.
fn buckets() -> Vec<Bucket> {
    let by_queue = vec![Action::SetQueue(QueueId(7)), Action::output(PortNo(2))];
    vec![bucket(by_queue), bucket(vec![Action::output(PortNo(3))])]
}

/// Of [`METER`]: a rate that no test reaches.
const BANDS: [Band; 1] = [Band { kind: BandKind::Drop, rate: 1_000_000, burst_size: 1_000_000 }];
const METER_FLAGS: MeterFlags = MeterFlags::PKTPS.union(MeterFlags::BURST).union(MeterFlags::STATS);

/// A switch with a meter, a group, a queue and an entry that uses them, and its controller, after
/// some frames.
fn loaded() -> (Switch, Controller) {
    let toml = "tables = 3\nqueue = [\"2:7,min=30%\"]\nrate = [\"2=1G\"]\n";
    let switch = Switch::start(3, &format!("{toml}{WITH_1_4}"));
    let mut hosts = [1, 2, 3].map(|port| switch.host(port));
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&Message::MeterMod(MeterMod {
        command: MeterModCommand::Add,
        flags: METER_FLAGS,
        meter_id: METER,
        bands: BANDS.to_vec(),
    }));
    controller.send(&Message::GroupMod(GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::All,
        group_id: GROUP,
        buckets: buckets(),
        ..GroupMod::default()
    }));
    controller.send(&Message::FlowMod(FlowMod {
        priority: 9,
        cookie: Cookie(0x77),
        matching: Match::any().with(Field::InPort, 1),
        instructions: vec![
            Instruction::Meter(METER),
            Instruction::ApplyActions(vec![Action::Group(GROUP)]),
        ],
        ..FlowMod::new(FlowModCommand::Add)
    }));
    controller.barrier();
    for number in 0..FRAMES {
        hosts[0].send(&frame(number as u8));
        hosts[1].receive();
        hosts[2].receive();
    }
    switch.keep(hosts);
    (switch, controller)
}

#[test]
fn every_request_has_its_reply() {
    let (switch, mut controller) = loaded();
    every_request(&mut controller);
    controller = switch.controller(Version::V1_4);
    every_request(&mut controller);
    let queues = MultipartRequestBody::QueueDesc { port: PortNo::ANY, queue: QueueId::ALL };
    for body in [MultipartRequestBody::TableDesc, queues] {
        check(controller.multipart(body));
    }
}

fn every_request(controller: &mut Controller) {
    let asked = [
        MultipartRequestBody::Desc,
        MultipartRequestBody::Flow(FlowStatsRequest::all()),
        MultipartRequestBody::Aggregate(FlowStatsRequest::all()),
        MultipartRequestBody::Table,
        MultipartRequestBody::PortStats(PortNo::ANY),
        MultipartRequestBody::Queue { port: PortNo::ANY, queue: QueueId::ALL },
        MultipartRequestBody::Group(GroupId::ALL),
        MultipartRequestBody::GroupDesc,
        MultipartRequestBody::GroupFeatures,
        MultipartRequestBody::Meter(MeterId::ALL),
        MultipartRequestBody::MeterConfig(MeterId::ALL),
        MultipartRequestBody::MeterFeatures,
        MultipartRequestBody::TableFeatures(Vec::new()),
        MultipartRequestBody::PortDesc,
    ];
    for body in asked {
        let name = format!("{body:?}");
        let reply = controller.multipart(body);
        let (asked, got) = (name.split(['(', ' ']).next(), format!("{reply:?}"));
        assert_eq!(asked, got.split(['(', ' ']).next());
        check(reply);
    }
}

/// Checks a reply of the switch that [`loaded`] makes.
fn check(reply: MultipartReplyBody) {
    match reply {
        MultipartReplyBody::Desc(desc) => {
            assert_eq!((&*desc.mfr_desc, &*desc.hw_desc), ("Weir", "user space"));
            assert!(desc.sw_desc.starts_with("weir "), "{desc:?}");
        }
        MultipartReplyBody::Flow(flows) => {
            let [flow] = &flows[..] else { panic!("{flows:?}") };
            assert_eq!((flow.priority, flow.cookie), (9, Cookie(0x77)));
            assert_eq!((flow.packet_count, flow.byte_count), (FRAMES, FRAMES * 60));
            assert_eq!(flow.instructions.len(), 2);
        }
        MultipartReplyBody::Aggregate(sums) => {
            let found = (sums.flow_count, sums.packet_count, sums.byte_count);
            assert_eq!(found, (1, FRAMES, FRAMES * 60));
        }
        MultipartReplyBody::Table(tables) => {
            let found = tables.iter().map(|table| {
                let counts = (table.lookup_count, table.matched_count);
                (table.table_id.0, table.active_count, counts)
            });
            let empty = |id| (id, 0, (0, 0));
            let found: Vec<_> = found.collect();
            assert_eq!(found, [(0, 1, (FRAMES, FRAMES)), empty(1), empty(2)]);
        }
        MultipartReplyBody::PortStats(ports) => {
            let found = ports.iter().map(|p| (p.port_no.0, p.rx_packets, p.tx_packets));
            let found: Vec<_> = found.collect();
            assert_eq!(found, [(1, FRAMES, 0), (2, 0, FRAMES), (3, 0, FRAMES)]);
        }
        MultipartReplyBody::Queue(queues) => {
            let found = queues
                .iter()
                .map(|q| (q.port_no.0, q.queue_id.0, q.tx_packets, q.tx_bytes, q.tx_errors));
            let found: Vec<_> = found.collect();
            assert_eq!(found, [(2, 0, 0, 0, 0), (2, 7, FRAMES, FRAMES * 60, 0)]);
        }
        MultipartReplyBody::TableDesc(tables) => {
            let eviction = Some(7);
            let own = |number| TableMod { eviction, ..TableMod::new(TableId(number), 0) };
            assert_eq!(tables, [own(0), own(1), own(2)]);
        }
        MultipartReplyBody::QueueDesc(queues) => {
            let properties = vec![QueueProperty::MinRate(300)];
            let queue = PacketQueue { queue_id: QueueId(7), port: PortNo(2), properties };
            assert_eq!(queues, [queue]);
        }
        MultipartReplyBody::TableFeatures(tables) => {
            assert_eq!(tables.iter().map(|t| t.table_id.0).collect::<Vec<_>>(), [0, 1, 2]);
            let next = TableProperty::NextTables(OnPacket::Hit, vec![TableId(1), TableId(2)]);
            assert!(tables[0].properties.contains(&next), "{:?}", tables[0].properties);
            let none = TableProperty::NextTables(OnPacket::Hit, Vec::new());
            assert!(tables[2].properties.contains(&none), "{:?}", tables[2].properties);
        }
        MultipartReplyBody::PortDesc(ports) => {
            let found = ports.iter().map(|port| (port.port_no.0, port.state));
            let found: Vec<_> = found.collect();
            assert_eq!(found, [1, 2, 3].map(|number| (number, PortState::LIVE)));
        }
        MultipartReplyBody::Group(_)
        | MultipartReplyBody::GroupDesc(_)
        | MultipartReplyBody::GroupFeatures(_) => check_groups(reply),
        MultipartReplyBody::Meter(_)
        | MultipartReplyBody::MeterConfig(_)
        | MultipartReplyBody::MeterFeatures(_) => check_meters(reply),
        MultipartReplyBody::FlowMonitor(_) | MultipartReplyBody::Experimenter(_) => {
            panic!("{reply:?}")
        }
    }
}

fn check_groups(reply: MultipartReplyBody) {
    match reply {
        MultipartReplyBody::Group(groups) => {
            let [group] = &groups[..] else { panic!("{groups:?}") };
            assert_eq!((group.group_id, group.ref_count), (GROUP, 1));
            assert_eq!((group.packet_count, group.byte_count), (FRAMES, FRAMES * 60));
            let each = BucketCounter { packet_count: FRAMES, byte_count: FRAMES * 60 };
            assert_eq!(group.buckets, [each; 2]);
        }
        MultipartReplyBody::GroupDesc(groups) => {
            let (group_type, group_id) = (GroupType::All, GROUP);
            assert_eq!(
                groups,
                [GroupDesc { group_type, group_id, buckets: buckets(), ..GroupDesc::default() }]
            );
        }
        MultipartReplyBody::GroupFeatures(features) => {
            assert_eq!(features.types, 0b1111);
            assert!(features.capabilities.contains(GroupCapabilities::CHAINING));
            assert!(features.max_groups.iter().all(|most| *most > 0));
            let output_and_group = 1 << 0 | 1 << 22;
            assert!(features.actions.iter().all(|a| a & output_and_group == output_and_group));
        }
        other => panic!("{other:?}"),
    }
}

fn check_meters(reply: MultipartReplyBody) {
    match reply {
        MultipartReplyBody::Meter(meters) => {
            let [meter] = &meters[..] else { panic!("{meters:?}") };
            assert_eq!((meter.meter_id, meter.flow_count), (METER, 1));
            let found = (meter.packet_in_count, meter.byte_in_count);
            assert_eq!(found, (FRAMES, FRAMES * 60));
            assert_eq!(meter.bands, [BandCounter::default()]);
        }
        MultipartReplyBody::MeterConfig(meters) => {
            let (flags, meter_id) = (METER_FLAGS, METER);
            assert_eq!(meters, [MeterConfig { flags, meter_id, bands: BANDS.to_vec() }]);
        }
        MultipartReplyBody::MeterFeatures(features) => {
            assert_eq!(features.band_types, 1 << 1 | 1 << 2);
            assert_eq!(features.capabilities, 0b1111);
            assert!(features.max_meter > 0 && features.max_bands > 0);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn table_features_are_set_in_one_message_or_in_parts() {
    let switch = Switch::start(1, "tables = 3");
    let mut controller = switch.controller(Version::V1_3);
    let body = controller.multipart(MultipartRequestBody::TableFeatures(Vec::new()));
    let MultipartReplyBody::TableFeatures(mut tables) = body else { panic!("{body:?}") };
    tables[1].name = "one".into();
    tables[1].max_entries = 5;
    let asked = MultipartRequestBody::TableFeatures(tables.clone());
    let reply = controller.multipart(asked);
    assert_eq!(reply, MultipartReplyBody::TableFeatures(tables.clone()));
    // The parts of a request have one xid; only the last one is answered.
    tables[2].name = "two".into();
    for (more, part) in [(true, &tables[..2]), (false, &tables[2..])] {
        let body = MultipartRequestBody::TableFeatures(part.to_vec());
        let message = Message::MultipartRequest(MultipartRequest { more, body });
        let frame = wire::encode(Version::V1_3, openflow::Xid(77), &message).unwrap();
        controller.raw(&frame);
    }
    let (xid, message) = controller.next();
    let Message::MultipartReply(reply) = message else { panic!("{message:?}") };
    assert_eq!(xid, openflow::Xid(77));
    assert_eq!(reply.body, MultipartReplyBody::TableFeatures(tables));
    controller.barrier();
}

#[test]
fn port_counters_are_those_of_the_port() {
    let switch = Switch::start(2, "");
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_0);
    controller.send(&add_flow(9, Match::any(), vec![Action::output(PortNo(2))]));
    controller.barrier();
    for number in 0..7 {
        a.send(&frame(number));
        b.receive();
    }
    let ports = controller.port_stats(PortNo::ANY);
    assert_eq!((ports[0].rx_packets, ports[0].rx_bytes, ports[0].tx_packets), (7, 420, 0));
    assert_eq!((ports[1].tx_packets, ports[1].tx_bytes, ports[1].rx_packets), (7, 420, 0));
}

#[test]
fn errors_of_a_port_are_counted_from_zero() {
    let specs = "\"memory:errors?frame_max=100\"";
    let host = Host::open("memory:errors?end=b&frame_max=100");
    let switch = Switch::with_ports(specs, vec![Some(host)], "");
    let mut controller = switch.controller(Version::V1_3);
    let errors = |controller: &mut Controller| {
        let ports = controller.port_stats(PortNo(1));
        (ports[0].rx_errors, ports[0].tx_errors)
    };
    assert_eq!(errors(&mut controller), (0, 0));
    controller.send(&packet_out(PortNo(1), vec![0; 200]));
    controller.barrier();
    assert_eq!(errors(&mut controller), (0, 1), "longer than the port takes");
}

#[test]
fn a_long_reply_comes_in_parts_and_an_echo_comes_through() {
    const COUNT: u128 = 3_000;
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    for number in 0..COUNT {
        let matching = Match::any().with(Field::EthDst, number);
        controller.send(&add_flow(3, matching, Vec::new()));
    }
    controller.barrier();
    let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
    let request = Message::MultipartRequest(MultipartRequest { more: false, body });
    // Twice: the second waits for the first, and neither is lost or mixed with the other.
    let dumps = [controller.send(&request), controller.send(&request)];
    let barrier = controller.send(&Message::BarrierRequest);
    let echo = controller.send(&Message::EchoRequest(b"x".to_vec()));
    let (mut counts, mut parts, mut echoed) = ([0, 0], 0, false);
    loop {
        let (xid, message) = controller.next();
        match message {
            Message::MultipartReply(reply) => {
                let which = dumps.iter().position(|dump| *dump == xid).unwrap();
                let MultipartReplyBody::Flow(flows) = reply.body else { panic!("no flows") };
                parts += 1;
                counts[which] += flows.len();
            }
            Message::EchoReply(_) => {
                assert_eq!(xid, echo);
                echoed = true;
            }
            Message::BarrierReply => {
                assert_eq!(xid, barrier);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counts, [COUNT as usize; 2]);
    assert!(parts > 2, "{parts} parts");
    if !echoed {
        assert!(matches!(controller.next(), (_, Message::EchoReply(_))));
    }
}
