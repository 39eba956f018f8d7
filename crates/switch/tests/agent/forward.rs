//! Packets through the switch: by entries, to the controller, from the controller.

use openflow::flow::{FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::message::{PacketInReason, PacketOut};
use openflow::{Action, Cookie, Error, Field, Match, Message, PortNo, Version};

use crate::harness::{Controller, Switch, add_flow, frame, from_to, packet_out, until};
use crate::tier_rig::flow;

fn packet_in(controller: &mut Controller) -> openflow::message::PacketIn {
    match controller.next() {
        (_, Message::PacketIn(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_forwards_and_counts() {
    for version in [Version::V1_0, Version::V1_3] {
        let switch = Switch::start(2, "");
        let (mut a, mut b) = (switch.host(1), switch.host(2));
        let mut controller = switch.controller(version);
        controller.send(&from_to(1, 2));
        controller.barrier();
        for number in 0..50 {
            a.send(&frame(number));
        }
        for number in 0..50 {
            assert_eq!(b.receive(), frame(number));
        }
        assert_eq!(a.received(), 0);
        let out = switch.ctl(&["dump-flows"]);
        assert!(out.contains("n_packets=50, n_bytes=3000"), "{out}");
        switch.stop();
    }
}

#[test]
fn a_frame_that_a_pop_made_too_short_is_padded() {
    let switch = Switch::start(2, "");
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_3);
    let actions = vec![Action::PopVlan, Action::output(PortNo(2))];
    controller.send(&add_flow(5, Match::any(), actions));
    controller.barrier();
    let plain = frame(9);
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..56]].concat();
    a.send(&tagged);
    assert_eq!(b.receive(), [&plain[..56], &[0; 4]].concat());
}

#[test]
fn a_miss_goes_up_whole_in_1_0_and_nowhere_in_1_3() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(1);
    let mut old = switch.controller(Version::V1_0);
    let mut new = switch.controller(Version::V1_3);
    old.barrier();
    new.barrier();
    let long = [frame(1), vec![7; 1400]].concat();
    host.send(&long);
    let packet = packet_in(&mut old);
    assert_eq!((packet.reason, packet.in_port()), (PacketInReason::NoMatch, Some(PortNo(1))));
    assert_eq!((packet.buffer_id, usize::from(packet.total_len)), (None, long.len()));
    assert_eq!(packet.data, long);
    // Nothing but the barrier's reply comes to the controller of 1.3.
    new.barrier();
    drop(old);
    until("the controller of 1.0 is gone", || {
        host.send(&frame(2));
        (switch.counter("drop_no_match") > 0).then_some(())
    });
    new.barrier();
}

#[test]
fn a_table_miss_entry_sends_up_with_its_reason_and_cookie() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(2);
    let mut controller = switch.controller(Version::V1_3);
    let Message::FlowMod(mut miss) =
        add_flow(0, Match::any(), vec![Action::output(PortNo::CONTROLLER)])
    else {
        unreachable!("a flow-mod")
    };
    miss.cookie = Cookie(0xc0);
    controller.send(&Message::FlowMod(miss));
    controller.barrier();
    host.send(&frame(9));
    let packet = packet_in(&mut controller);
    assert_eq!((packet.reason, packet.cookie), (PacketInReason::NoMatch, Cookie(0xc0)));
    assert_eq!((packet.in_port(), packet.data), (Some(PortNo(2)), frame(9)));
}

#[test]
fn packet_outs_leave_in_order_and_before_the_barrier() {
    for version in [Version::V1_0, Version::V1_3] {
        let switch = Switch::start(3, "");
        let mut hosts = [switch.host(1), switch.host(2), switch.host(3)];
        let mut controller = switch.controller(version);
        for number in 0..100 {
            controller.send(&packet_out(PortNo::FLOOD, frame(number)));
        }
        controller.barrier();
        for host in &mut hosts {
            for number in 0..100 {
                assert_eq!(host.receive(), frame(number));
            }
        }
        assert_eq!(switch.counter("packet_out"), 100);
    }
}

#[test]
fn every_packet_goes_up_and_comes_down() {
    let switch = Switch::start(2, "");
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_0);
    controller.barrier();
    for number in 0..200 {
        a.send(&frame(number));
        let packet = packet_in(&mut controller);
        controller.send(&packet_out(PortNo(2), packet.data));
        assert_eq!(b.receive(), frame(number));
    }
    assert_eq!(switch.counter("packet_in"), 200);
}

#[test]
fn ingress_port_0_of_a_packet_out_is_wrong_in_1_3_only() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(2);
    let Message::PacketOut(body) = packet_out(PortNo(2), frame(1)) else {
        unreachable!("a packet-out")
    };
    let asked = Message::PacketOut(PacketOut { in_port: PortNo(0), ..body });
    switch.controller(Version::V1_3).refused(&asked, Error::BadRequestBadPort);
    switch.controller(Version::V1_0).send(&asked);
    assert_eq!(host.receive(), frame(1));
}

#[test]
fn entries_expire_with_a_message_where_they_were_asked_to() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    let Message::FlowMod(mut flow) = add_flow(1, Match::any(), Vec::new()) else {
        unreachable!("a flow-mod")
    };
    flow.hard_timeout_s = 1;
    flow.flags = FlowModFlags::SEND_FLOW_REM;
    controller.send(&Message::FlowMod(flow));
    match controller.next() {
        (_, Message::FlowRemoved(gone)) => {
            assert_eq!((gone.reason, gone.duration_s), (FlowRemovedReason::HardTimeout, 1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn normal_keeps_vlans_apart_as_they_are_configured() {
    let vlans = r#"vlan = ["1=access:10", "2=access:20", "3=native-untagged:10", "4=trunk:10"]"#;
    let switch = Switch::start(4, vlans);
    let mut hosts: Vec<_> = (1..=4).map(|port| switch.host(port)).collect();
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(0, Match::any(), vec![Action::output(PortNo::NORMAL)]));
    controller.barrier();
    hosts[0].send(&frame(1));
    assert_eq!(hosts[2].receive(), frame(1));
    let tag = [0x81, 0, 0, 10];
    let tagged = [&frame(1)[..12], &tag[..], &frame(1)[12..]].concat();
    assert_eq!(hosts[3].receive(), tagged);
    // Had the first frame gone to the other VLAN, it would be the first to come there.
    controller.send(&packet_out(PortNo(2), frame(2)));
    assert_eq!(hosts[1].receive(), frame(2));
}

#[test]
fn a_local_port_is_there_when_it_is_configured() {
    let switch = Switch::start(1, "local = \"null:host\"");
    let mut controller = switch.controller(Version::V1_0);
    let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest) else {
        panic!("no features");
    };
    let ports: Vec<PortNo> = features.ports.iter().map(|port| port.port_no).collect();
    assert_eq!(ports, [PortNo(1), PortNo::LOCAL]);
    controller.send(&packet_out(PortNo::LOCAL, frame(1)));
    controller.barrier();
    let out = switch.ctl(&["dump-ports"]);
    assert!(out.contains("tx pkts=1"), "{out}");
}

#[test]
fn packet_ins_are_limited_and_counted_by_reason() {
    let switch = Switch::start(2, "packet-in-rate = 10\npacket-in-burst = 3");
    let (mut flood, mut calm) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_3);
    let to_controller = vec![Action::output(PortNo::CONTROLLER)];
    controller.send(&add_flow(0, Match::any(), to_controller.clone()));
    let calm_port = Match::any().with(Field::InPort, 2);
    controller.send(&add_flow(1, calm_port, to_controller));
    controller.barrier();
    for _ in 0..300 {
        flood.send(&frame(1));
    }
    until("the flood is over", || {
        let sent = switch.counter("packet_in");
        (sent + switch.counter("packet_in_drop_rate_no_match") == 300).then_some(())
    });
    assert!(switch.counter("packet_in_drop_rate_no_match") > 200);
    calm.send(&frame(2));
    loop {
        let (_, Message::PacketIn(packet)) = controller.next() else { panic!("no packet-in") };
        if packet.reason == PacketInReason::Action {
            break;
        }
        assert_eq!(packet.reason, PacketInReason::NoMatch);
    }
    assert_eq!(switch.counter("packet_in_drop_rate_action"), 0);
}

#[test]
fn drops_are_counted_by_their_reasons() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(1);
    let mut controller = switch.controller(Version::V1_3);
    for (entry, reason) in [
        (None, "no_match"),
        (Some("actions=drop"), "no_output"),
        (Some("actions=output:1"), "to_ingress"),
        (Some("actions=output:77"), "no_such_port"),
    ] {
        if let Some(text) = entry {
            controller.send(&flow(text, FlowModCommand::Add));
            controller.barrier();
        }
        let name = format!("drop_{reason}");
        assert_eq!(switch.counter(&name), 0);
        host.send(&frame(1));
        until(&name, || (switch.counter(&name) == 1).then_some(()));
    }
}
