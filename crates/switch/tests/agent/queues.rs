//! Queues of ports: their configuration and counters as controllers see them, and what they do to
//! frames. `datapath` tests in virtual time how exactly rates are kept.

use openflow::message::{MultipartReplyBody, MultipartRequestBody, QueueConfig};
use openflow::port::{PacketQueue, QueueProperty, QueueStats};
use openflow::{Action, Error, Match, Message, PortNo, QueueId, Version};

use crate::harness::{Controller, Switch, add_flow, frame, until};

const QUEUES: &str = r#"
queue = ["2:1,min=30%", "2:7,max=50.5%,frames=2", "1:0"]
rate = ["1=1G", "2=80"]
"#;

fn stats(controller: &mut Controller, port: PortNo, queue: QueueId) -> Vec<QueueStats> {
    match controller.multipart(MultipartRequestBody::Queue { port, queue }) {
        MultipartReplyBody::Queue(stats) => stats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn queues_are_listed_with_their_rates() {
    let switch = Switch::start(3, QUEUES);
    let mut controller = switch.controller(Version::V1_3);
    let mut ask = |port| match controller.request(&Message::QueueGetConfigRequest(port)) {
        Message::QueueGetConfigReply(QueueConfig { queues, .. }) => queues,
        other => panic!("{other:?}"),
    };
    let one = PacketQueue {
        queue_id: QueueId(1),
        port: PortNo(2),
        properties: vec![QueueProperty::MinRate(300)],
    };
    let seven = PacketQueue {
        queue_id: QueueId(7),
        properties: vec![QueueProperty::MaxRate(505)],
        ..one.clone()
    };
    assert_eq!(ask(PortNo(2)), [one, seven]);
    assert_eq!(ask(PortNo::ANY).len(), 3);
    assert_eq!(ask(PortNo(3)), []);
    controller.refused(&Message::QueueGetConfigRequest(PortNo(9)), Error::QueueOpBadPort);
}

#[test]
fn a_full_queue_drops_and_everything_is_counted() {
    let switch = Switch::start(3, QUEUES);
    let (mut sender, mut receiver) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_3);
    let to_seven = vec![Action::SetQueue(QueueId(7)), Action::output(PortNo(2))];
    controller.send(&add_flow(1, Match::any(), to_seven));
    controller.barrier();
    for number in 0..6 {
        sender.send(&frame(number));
    }
    // At 80 bits per second the first frame goes, two wait for seconds, and three are too many.
    assert_eq!(receiver.receive(), frame(0));
    until("three are dropped", || (switch.counter("tx_drop_queue_overrun") == 3).then_some(()));
    let counters = until("the queue's counters", || {
        let counters = stats(&mut controller, PortNo(2), QueueId(7));
        (counters[0].tx_errors == 3).then(|| counters[0])
    });
    assert_eq!((counters.tx_packets, counters.tx_bytes), (1, 60));
    let ids = |stats: Vec<QueueStats>| stats.iter().map(|s| s.queue_id.0).collect::<Vec<_>>();
    assert_eq!(ids(stats(&mut controller, PortNo(2), QueueId::ALL)), [0, 1, 7]);
    assert_eq!(ids(stats(&mut controller, PortNo::ANY, QueueId::ALL)), [0, 0, 1, 7]);
    let unknown = MultipartRequestBody::Queue { port: PortNo(2), queue: QueueId(5) };
    let request = openflow::message::MultipartRequest { more: false, body: unknown };
    controller.refused(&Message::MultipartRequest(request), Error::QueueOpBadQueue);
}

#[test]
fn a_port_with_queues_forwards_in_order() {
    let switch = Switch::start(3, QUEUES);
    let (mut sender, mut receiver) = (switch.host(3), switch.host(1));
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo(1))]));
    controller.barrier();
    for number in 0..200 {
        sender.send(&frame(number));
    }
    for number in 0..200 {
        assert_eq!(receiver.receive(), frame(number));
    }
}
