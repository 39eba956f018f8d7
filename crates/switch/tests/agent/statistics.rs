//! Multipart replies: what the datapath counts, in parts where they are long.

use openflow::flow::FlowStatsRequest;
use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Action, Field, GroupId, Match, Message, MeterId, PortNo, QueueId, Version};

use crate::harness::{Controller, Host, Switch, add_flow, frame, packet_out};

#[test]
fn every_request_of_1_3_has_its_reply() {
    let switch = Switch::start(2, "tables = 3");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(9, Match::any(), vec![Action::output(PortNo(2))]));
    let all = FlowStatsRequest::all();
    let asked = [
        MultipartRequestBody::Desc,
        MultipartRequestBody::Flow(all.clone()),
        MultipartRequestBody::Aggregate(all),
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
        match reply {
            MultipartReplyBody::Flow(flows) => assert_eq!(flows.len(), 1),
            MultipartReplyBody::Aggregate(sums) => assert_eq!(sums.flow_count, 1),
            MultipartReplyBody::Table(tables) => assert_eq!(tables.len(), 3),
            MultipartReplyBody::TableFeatures(tables) => assert_eq!(tables.len(), 3),
            MultipartReplyBody::PortDesc(ports) => assert_eq!(ports.len(), 2),
            _ => {}
        }
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
    let body = controller.multipart(MultipartRequestBody::PortStats(PortNo::ANY));
    let MultipartReplyBody::PortStats(ports) = body else { panic!("{body:?}") };
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
        let body = controller.multipart(MultipartRequestBody::PortStats(PortNo(1)));
        let MultipartReplyBody::PortStats(ports) = body else { panic!("{body:?}") };
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
