//! Ports of several queues: each worker receives and sends by its own, the frames of a flow stay in
//! order, and to controllers it is one port.

use netdev::sys::link::Rtnl;
use netdev::{Port, PortQueue, open_queues};
use openflow::{PortNo, Version};
use packet::{Batch, PacketBuf};

use crate::harness::{Controller, Switch, from_to, until};
use crate::veth::{add_veth, in_namespace, shown};

/// Frames that are under way at once: fewer than any ring holds.
const ROUND: u16 = 200;

/// Flows that pass: so many that the kernel gives some of them to each queue.
const FLOWS: usize = 16;

/// Places of the flow in a datagram, and of its number.
const FLOW: usize = 35;
const NUMBER: std::ops::Range<usize> = 44..46;

/// The other end of a port, queue by queue.
pub(crate) struct Lanes(Vec<PortQueue>);

impl Lanes {
    fn open(name: &str, queues: usize) -> Self {
        Self::of(&format!("memory:{name}?end=b&queues={queues}"))
    }

    /// Those of any port.
    pub(crate) fn of(spec: &str) -> Self {
        let port = open_queues(&spec.parse().unwrap()).unwrap();
        let first = PortQueue { rx: port.rx, tx: port.tx };
        Self(std::iter::once(first).chain(port.more).collect())
    }

    /// Sends a frame of a flow by the queue that the flow has.
    fn send(&mut self, flow: u8, number: u16) {
        let queue = usize::from(flow) % self.0.len();
        let mut bytes = datagram(flow);
        bytes[NUMBER].copy_from_slice(&number.to_be_bytes());
        let frames = [PacketBuf::from_slice(&bytes)];
        let tx = &mut self.0[queue].tx;
        until("room at the queue", || (tx.tx(&frames).unwrap() == 1).then_some(()));
    }

    /// Receives `count` frames by any queue: the queue, flow and number of each.
    fn receive(&mut self, count: usize) -> Vec<(usize, u8, u16)> {
        let mut got = Vec::new();
        let mut batch = Batch::default();
        until("the frames", || {
            for (queue, PortQueue { rx, .. }) in self.0.iter_mut().enumerate() {
                while rx.rx(&mut batch, 32).unwrap() > 0 {
                    got.extend(batch.frames().iter().map(|frame| {
                        let bytes = frame.bytes();
                        let number = bytes[NUMBER].try_into().unwrap();
                        (queue, bytes[FLOW], u16::from_be_bytes(number))
                    }));
                    batch.clear();
                }
            }
            (got.len() >= count).then_some(())
        });
        assert_eq!(got.len(), count, "none is doubled");
        got
    }
}

/// Packets and bytes received and sent, dropped both ways.
fn port_stats(controller: &mut Controller, port: u32) -> [u64; 6] {
    let stats = controller.port_stats(PortNo(port));
    let [of] = &stats[..] else { panic!("{stats:?}") };
    [of.rx_packets, of.rx_bytes, of.tx_packets, of.tx_bytes, of.rx_dropped, of.tx_dropped]
}

/// Sends rounds of frames of some flows from one port to another; each flow comes in order, and all
/// of it by one queue. Returns the queues by which frames came.
pub(crate) fn forward(from: &mut Lanes, to: &mut Lanes, rounds: u16) -> Vec<usize> {
    let (mut next, mut queue_of) = ([0; FLOWS], [None; FLOWS]);
    for round in 0..rounds {
        for number in round * ROUND..(round + 1) * ROUND {
            from.send((usize::from(number) % FLOWS) as u8, number);
        }
        for (queue, flow, number) in to.receive(ROUND.into()) {
            let flow = usize::from(flow);
            let expected = next[flow] * FLOWS + flow;
            assert_eq!(usize::from(number), expected, "flow {flow} is in order");
            next[flow] += 1;
            assert_eq!(*queue_of[flow].get_or_insert(queue), queue, "flow {flow} keeps its queue");
        }
    }
    let mut queues: Vec<usize> = queue_of.into_iter().flatten().collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

fn two_ports(name: &str, [one, two]: [usize; 2], toml: &str) -> (Switch, Lanes, Lanes) {
    let (near, far) =
        (Lanes::open(&format!("{name}-1"), one), Lanes::open(&format!("{name}-2"), two));
    let specs = format!("\"memory:{name}-1?queues={one}\",\"memory:{name}-2?queues={two}\"");
    let switch = match toml.contains("forward") {
        true => Switch::wired_ports(&specs, toml),
        false => Switch::with_ports(&specs, Vec::new(), toml),
    };
    (switch, near, far)
}

#[test]
fn flows_stay_in_order_and_nothing_is_lost_or_counted_twice() {
    const ROUNDS: u16 = 8;
    // Workers, queues of both ports, and the queues by which frames leave.
    for (workers, queues, leave_by) in [
        (2, [2, 2], vec![0, 1]),
        (1, [2, 2], vec![0]),
        (2, [2, 1], vec![0]),
        (2, [1, 2], vec![0]),
        (3, [4, 2], vec![0, 1]),
    ] {
        let name = format!("queues-{workers}-{}-{}", queues[0], queues[1]);
        let (switch, mut one, mut two) = two_ports(&name, queues, &format!("workers = {workers}"));
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 2));
        controller.barrier();
        assert_eq!(forward(&mut one, &mut two, ROUNDS), leave_by, "{name}");
        let sent = u64::from(ROUNDS * ROUND);
        assert_eq!(port_stats(&mut controller, 1), [sent, 60 * sent, 0, 0, 0, 0], "{name}");
        assert_eq!(port_stats(&mut controller, 2), [0, 0, sent, 60 * sent, 0, 0], "{name}");
        switch.stop();
    }
}

#[test]
fn what_the_queues_refuse_is_one_count() {
    let (switch, mut one, _two) = two_ports("queues-refuse", [2, 2], "workers = 2");
    let mut controller = switch.controller(Version::V1_3);
    // The ends of port 2 have room for 1,024 frames each, and nobody takes any.
    controller.send(&from_to(1, 2));
    controller.barrier();
    let sent = 3_000_u64;
    for number in 0..sent {
        one.send((number % 2) as u8, 0);
    }
    until("all are counted", || {
        let [_, _, tx, _, _, refused] = port_stats(&mut controller, 2);
        (tx == 2_048 && refused == sent - 2_048).then_some(())
    });
    switch.stop();
}

#[test]
fn queues_are_shown_and_asked_for_at_once() {
    let toml = "workers = 2\nqueues = 2";
    let (switch, _one, _two) = two_ports("queues-shown", [3, 1], toml);
    let _three = Lanes::open("queues-default", 2);
    let shown = |words: &[&str]| switch.ctl(words);
    let added = shown(&["add-port", "br0", "memory:queues-default"]);
    assert!(added.contains("memory:queues-default?queues=2"), "{added}");
    assert!(added.contains("2 queues on workers 1, 0"), "{added}");
    let workers = shown(&["workers"]);
    for line in [
        "receives queue 0 of 3, 1=memory:queues-shown-1?queues=3",
        "receives queue 1 of 3, 1=memory:queues-shown-1?queues=3",
        "receives queue 2 of 3, 1=memory:queues-shown-1?queues=3",
        "receives 2=memory:queues-shown-2?queues=1",
        "receives queue 0 of 2, 3=memory:queues-default?queues=2",
        "receives queue 1 of 2, 3=memory:queues-default?queues=2",
    ] {
        assert!(workers.contains(line), "{line}: {workers}");
    }
    assert_eq!(switch.records(&["ports"])[0]["queue_workers"], serde_json::json!([0, 1, 0]));
    switch.stop();
}

#[test]
fn a_port_of_several_queues_comes_moves_and_goes() {
    let (switch, mut one, _two) = two_ports("queues-replug", [2, 1], "workers = 2");
    for round in 0..3 {
        let mut three = Lanes::open("queues-coming", 2);
        switch.ctl(&["add-port", "br0", "3=memory:queues-coming?queues=2"]);
        let number = if round == 1 { 7 } else { 3 };
        if number == 7 {
            switch.ctl(&["set-port", "br0", "3", "--number", "7"]);
        }
        // Those before got the ports' status.
        let mut controller = switch.controller(Version::V1_3);
        for (from, to) in [(1, number), (number, 1)] {
            controller.send(&from_to(from, to));
        }
        controller.barrier();
        assert_eq!(forward(&mut one, &mut three, 2), [0, 1]);
        assert_eq!(forward(&mut three, &mut one, 2), [0, 1]);
        let all = u64::from(2 * ROUND);
        assert_eq!(port_stats(&mut controller, number), [all, 60 * all, all, 60 * all, 0, 0]);
        switch.ctl(&["del-port", "br0", &number.to_string()]);
    }
    switch.stop();
}

#[test]
fn a_port_with_a_rate_is_sent_to_from_one_place() {
    let (switch, mut one, mut two) =
        two_ports("queues-rate", [2, 2], "workers = 2\nrate = [\"2=1G\"]");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.send(&from_to(2, 1));
    controller.barrier();
    assert_eq!(forward(&mut one, &mut two, 2), [0]);
    // It receives by both all the same, and another one gets a rate while it runs.
    assert_eq!(forward(&mut two, &mut one, 2), [0, 1]);
    switch.ctl(&["set-port", "br0", "1", "--rate", "1G"]);
    assert_eq!(forward(&mut two, &mut one, 2), [0]);
    switch.stop();
}

#[test]
fn ports_in_pairs_have_queues_too() {
    for (queues, leave_by) in [([2, 2], vec![0, 1]), ([2, 1], vec![0])] {
        let name = format!("queues-wire-{}", queues[1]);
        let toml = "workers = 2\nforward = \"io\"";
        let (switch, mut one, mut two) = two_ports(&name, queues, toml);
        assert_eq!(forward(&mut one, &mut two, 4), leave_by);
        switch.stop();
    }
}

/// A UDP datagram of a flow.
fn datagram(flow: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    bytes[34..40].copy_from_slice(&[0x20, flow, 0x30, 1, 0, 26]);
    bytes
}

/// Sends a datagram of a flow until it arrives.
fn passes(from: &mut Port, to: &mut Port, flow: u8) {
    let frame = [PacketBuf::from_slice(&datagram(flow))];
    let mut batch = Batch::default();
    until(&format!("flow {flow}"), || {
        from.tx(&frame).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        batch.clear();
        to.rx(&mut batch, 64).unwrap();
        batch.frames().iter().any(|it| it.bytes() == frame[0].bytes()).then_some(())
    });
}

/// A port's device is deleted; when the port has it again.
fn lose(switch: &Switch, rtnl: &Rtnl, (port, name): (u64, &str), again: impl FnOnce()) {
    let gone = switch.counter("port_gone") + 1;
    rtnl.delete(name).unwrap();
    until("gone", || (switch.counter("port_gone") == gone).then_some(()));
    again();
    until("back", || (shown(switch, port)["exists"] == true).then_some(()));
}

/// Flows that the kernel spreads over both queues, so that one that is dead would be found.
#[test]
#[ignore = "needs root"]
fn devices_that_come_back_have_all_their_queues() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let ports = "\"1=af_packet:sw1\", \"2=tap:made2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "workers = 2\nqueues = 2");
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 2));
        controller.send(&from_to(2, 1));
        controller.barrier();
        let host = |name: &str| netdev::open_text(&format!("af_packet:{name}")).unwrap();
        for _ in 0..3 {
            let workers = switch.ctl(&["workers"]);
            for line in ["receives queue 0 of 2", "receives queue 1 of 2"] {
                let line = format!("{line}, 1=af_packet:sw1?queues=2, after the kernel tier");
                assert!(workers.contains(&line), "{line}: {workers}");
            }
            let caches = switch.records(&["caches"]);
            assert!(caches.iter().all(|it| it["kernel_entries"].is_u64()), "{caches:?}");
            let (mut one, mut two) = (host("host1"), host("made2"));
            for flow in 0..32 {
                passes(&mut one, &mut two, flow);
                passes(&mut two, &mut one, flow);
            }
            lose(&switch, rtnl, (1, "sw1"), || add_veth(rtnl, "sw1", "host1"));
            // The port makes it itself.
            lose(&switch, rtnl, (2, "made2"), || {});
        }
        assert_eq!(switch.counter("port_gone"), 6, "each time once");
        switch.stop();
    });
}

/// Frames that the kernel tier hands over, each to the worker of its flow's queue.
#[test]
#[ignore = "needs root"]
fn flows_stay_in_order_behind_the_kernel_tier() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let mut far = Lanes::open("queues-tier", 2);
        let ports = "\"1=af_packet:sw1\", \"2=memory:queues-tier\"";
        let switch = Switch::with_ports(ports, Vec::new(), "workers = 2\nqueues = 2");
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 2));
        controller.barrier();
        let mut near = Lanes::of("af_packet:host1");
        const ROUNDS: u16 = 20;
        assert_eq!(forward(&mut near, &mut far, ROUNDS), [0, 1]);
        let sent = u64::from(ROUNDS * ROUND);
        assert_eq!(port_stats(&mut controller, 1), [sent, 60 * sent, 0, 0, 0, 0]);
        let workers = switch.records(&["workers"]);
        let received: Vec<u64> = workers.iter().filter_map(|it| it["packets"].as_u64()).collect();
        assert!(received.iter().all(|it| *it > 0) && received.len() == 2, "{received:?}");
        assert_eq!(received.iter().sum::<u64>(), sent);
        assert!(workers.iter().all(|it| it["ports"][0]["kernel_tier"] == true), "{workers:?}");
        switch.stop();
    });
}
