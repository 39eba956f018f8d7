//! Several workers behave as one: frames cross over, a barrier means all of them, counts are sums.

use openflow::flow::{FlowModFlags, FlowRemovedReason, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Action, Field, Match, Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, add_flow, frame, from_to, packet_out};

/// Ports 1 and 2 are the first worker's, 3 and 4 the second's.
fn four_ports(workers: u32) -> (Switch, Vec<Host>, Controller) {
    let switch = Switch::start(4, &format!("workers = {workers}"));
    let hosts = (1..=4).map(|port| switch.host(port)).collect();
    let controller = switch.controller(Version::V1_3);
    (switch, hosts, controller)
}

#[test]
fn frames_of_every_port_reach_every_port_in_order() {
    for workers in [1, 2, 3] {
        let (switch, mut hosts, mut controller) = four_ports(workers);
        for (from, to) in (1..=4).flat_map(|from| (1..=4).map(move |to| (from, to))) {
            if from == to {
                continue;
            }
            controller.send(&from_to(from, to));
            controller.barrier();
            for number in 0..40 {
                hosts[from as usize - 1].send(&frame(number));
            }
            for number in 0..40 {
                assert_eq!(hosts[to as usize - 1].receive(), frame(number), "{from} to {to}");
            }
        }
        assert_eq!(switch.counter("datapath_outputs"), 12 * 40);
        switch.stop();
    }
}

#[test]
fn a_flood_leaves_by_the_ports_of_all_workers() {
    let (switch, mut hosts, mut controller) = four_ports(2);
    controller.send(&add_flow(5, Match::any(), vec![Action::output(PortNo::FLOOD)]));
    controller.barrier();
    for from in 0..4_u8 {
        hosts[usize::from(from)].send(&frame(from));
        for to in (0..4).filter(|to| *to != from) {
            assert_eq!(hosts[usize::from(to)].receive(), frame(from));
        }
    }
    assert!(hosts.iter_mut().all(|host| host.received() == 0));
    switch.stop();
}

#[test]
fn after_a_barrier_every_worker_forwards_by_the_new_table() {
    let (switch, mut hosts, mut controller) = four_ports(2);
    for round in 0..100_u8 {
        let (of_1, of_3) = if round % 2 == 0 { (2, 4) } else { (4, 2) };
        controller.send(&from_to(1, of_1));
        controller.send(&from_to(3, of_3));
        controller.barrier();
        hosts[0].send(&frame(round));
        assert_eq!(hosts[of_1 as usize - 1].receive(), frame(round), "round {round}");
        hosts[2].send(&frame(round));
        assert_eq!(hosts[of_3 as usize - 1].receive(), frame(round), "round {round}");
    }
    assert!(hosts.iter_mut().all(|host| host.received() == 0));
    switch.stop();
}

#[test]
fn answers_keep_their_order_though_barriers_wait_for_workers() {
    let (switch, _hosts, mut controller) = four_ports(2);
    let mut asked = Vec::new();
    for number in 0..200_u32 {
        let bad = Message::PacketOut(openflow::message::PacketOut {
            buffer_id: Some(openflow::BufferId(number)),
            in_port: PortNo::ANY,
            actions: Vec::new(),
            data: Vec::new(),
        });
        asked.push(controller.send(&bad));
        asked.push(controller.send(&Message::BarrierRequest));
        asked.push(controller.send(&Message::GetConfigRequest));
        asked.push(controller.send(&from_to(1, 0)));
    }
    for xid in asked {
        let (got, message) = controller.next();
        assert_eq!(got, xid, "{message:?}");
    }
    switch.stop();
}

#[test]
fn packet_outs_reach_the_ports_of_all_workers() {
    let (switch, mut hosts, mut controller) = four_ports(2);
    for (number, host) in (1_u8..).zip(&mut hosts) {
        controller.send(&packet_out(PortNo(number.into()), frame(number)));
        assert_eq!(host.receive(), frame(number));
    }
    switch.stop();
}

#[test]
fn after_a_barrier_packet_outs_have_left_all_workers() {
    let (switch, mut hosts, mut controller) = four_ports(2);
    for round in 0..200_u8 {
        let host = usize::from(round % 4);
        controller.send(&packet_out(PortNo(u32::from(round % 4) + 1), frame(round)));
        controller.barrier();
        assert_eq!(hosts[host].received(), 1, "round {round}: the frame is there");
    }
    switch.stop();
}

#[test]
fn counts_are_sums_over_workers_to_the_last() {
    let (switch, mut hosts, mut controller) = four_ports(2);
    let mut entry = add_flow(5, Match::any(), vec![Action::output(PortNo(2))]);
    if let Message::FlowMod(flow_mod) = &mut entry {
        flow_mod.flags = FlowModFlags::SEND_FLOW_REM;
    }
    for round in 1..=3_u64 {
        controller.send(&entry);
        controller.barrier();
        for number in 0..30 {
            hosts[0].send(&frame(number));
            hosts[1].receive();
            hosts[2].send(&frame(number));
            hosts[1].receive();
        }
        let body = controller.multipart(MultipartRequestBody::Aggregate(FlowStatsRequest::all()));
        let MultipartReplyBody::Aggregate(sums) = body else { panic!("{body:?}") };
        assert_eq!((sums.packet_count, sums.byte_count, sums.flow_count), (60, 3_600, 1));
        let mut delete = entry.clone();
        if let Message::FlowMod(flow_mod) = &mut delete {
            flow_mod.command = openflow::flow::FlowModCommand::DeleteStrict;
        }
        controller.send(&delete);
        let (_, message) = controller.next();
        let Message::FlowRemoved(removed) = message else { panic!("{message:?}") };
        assert_eq!(removed.reason, FlowRemovedReason::Delete);
        assert_eq!((removed.packet_count, removed.byte_count), (60, 3_600), "round {round}");
    }
    switch.stop();
}

#[test]
fn a_list_that_nobody_reads_holds_up_neither_echoes_nor_changes() {
    const COUNT: u128 = 40_000;
    let (switch, mut hosts, mut lister) = four_ports(2);
    let mut other = switch.controller(Version::V1_3);
    for number in 0..COUNT {
        lister.send(&add_flow(3, Match::any().with(Field::EthDst, number), Vec::new()));
    }
    lister.barrier();
    let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
    let list = lister.send(&Message::MultipartRequest(MultipartRequest { more: false, body }));
    let part = |lister: &mut Controller| {
        let (xid, message) = lister.next();
        let Message::MultipartReply(reply) = message else { panic!("{message:?}") };
        assert_eq!(xid, list);
        let MultipartReplyBody::Flow(flows) = reply.body else { panic!("no flows") };
        (flows.len(), reply.more)
    };
    let (mut listed, mut more) = part(&mut lister);
    // The list is longer than any buffer between, so that it is still on its way.
    for round in 0..50 {
        let reply = other.request(&Message::EchoRequest(vec![round]));
        assert_eq!(reply, Message::EchoReply(vec![round]));
        other.send(&from_to(1, 2 + u32::from(round % 3)));
        other.barrier();
        hosts[0].send(&frame(round));
        assert_eq!(hosts[1 + usize::from(round % 3)].receive(), frame(round));
    }
    while more {
        let (count, further) = part(&mut lister);
        listed += count;
        more = further;
    }
    assert_eq!(listed, COUNT as usize, "all that were there, and none that came later");
    switch.stop();
}
