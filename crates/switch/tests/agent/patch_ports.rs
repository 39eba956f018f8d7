//! Patch ports: frames that go on from bridge to bridge in one process, on one worker and between
//! workers, in loops too.

use openflow::{Action, Match, Message, PortNo, Version};
use serde_json::Value;

use crate::harness::{Host, Switch, add_flow, frame, until};
use crate::veth::{add_veth, in_namespace};

/// Bridges of a host each and of these patch ports, all of which forward as learning switches.
fn bridges(workers: usize, patches: &[&[&str]]) -> (Switch, Vec<Host>) {
    let options = format!("workers = {workers}\n");
    let (switch, hosts) = Switch::of_tables(patches.len(), &options, |folder, specs| {
        let tables = patches.iter().zip(specs).enumerate();
        let table = |(nth, (patches, host)): (usize, (&&[&str], &String))| {
            let patches: String = patches.iter().map(|spec| format!(", \"{spec}\"")).collect();
            let name = nth + 1;
            format!(
                "[[bridge]]\nname = \"b{name}\"\ndpid = \"{name}\"\n\
                 listen = [\"punix:{folder}/of{name}\"]\nport = [\"{host}\"{patches}]\n"
            )
        };
        tables.map(table).collect()
    });
    for bridge in 1..=patches.len() {
        let mut controller = switch.controller_at(&format!("of{bridge}"), Version::V1_3);
        controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo::NORMAL)]));
        // Links come up meanwhile, which the controller hears of.
        controller.send(&Message::BarrierRequest);
        while controller.next().1 != Message::BarrierReply {}
    }
    (switch, hosts)
}

fn port(switch: &Switch, bridge: &str, name: &str) -> Value {
    let ports = switch.records(&["--bridge", bridge, "ports"]);
    ports.into_iter().find(|port| port["name"] == name).unwrap()
}

/// A frame from the host of this number to another one.
fn between(from: u8, to: u8, number: u8) -> Vec<u8> {
    let mut frame = frame(number);
    (frame[5], frame[11]) = (to, from);
    frame
}

#[test]
fn frames_go_on_through_bridges_and_are_counted() {
    for workers in [1, 2, 3] {
        let (switch, mut hosts) = bridges(
            workers,
            &[
                &["2=patch:p1?peer=p2"],
                &["2=patch:p2?peer=p1", "3=patch:p3?peer=p4"],
                &["2=patch:p4?peer=p3"],
            ],
        );
        until("the links", || {
            let up = |(bridge, name)| port(&switch, bridge, name)["link_up"] == true;
            [("b1", "p1"), ("b2", "p2"), ("b2", "p3"), ("b3", "p4")]
                .map(up)
                .iter()
                .all(|up| *up)
                .then_some(())
        });
        let [first, second, third] = &mut hosts[..] else { panic!("three hosts") };
        // Unknown, so that it goes everywhere; then known.
        first.send(&between(1, 3, 1));
        assert_eq!(second.receive(), between(1, 3, 1));
        assert_eq!(third.receive(), between(1, 3, 1));
        for number in 2..100 {
            third.send(&between(3, 1, number));
            assert_eq!(first.receive(), between(3, 1, number), "{workers} workers");
            first.send(&between(1, 3, number));
            assert_eq!(third.receive(), between(1, 3, number));
        }
        assert_eq!(second.poll(), None);
        for (bridge, number, counts) in
            [(1, 2, (98, 99)), (2, 2, (99, 98)), (2, 3, (98, 99)), (3, 2, (99, 98))]
        {
            let mut controller = switch.controller_at(&format!("of{bridge}"), Version::V1_3);
            let stats = &controller.port_stats(PortNo(number))[0];
            assert_eq!((stats.rx_packets, stats.tx_packets), counts, "{bridge}: {number}");
            assert_eq!(stats.rx_bytes, 60 * counts.0);
        }
        switch.stop();
    }
}

#[test]
fn a_loop_of_bridges_ends_every_frame() {
    for workers in [1, 2] {
        let (switch, mut hosts) = bridges(
            workers,
            &[
                &["2=patch:a1?peer=b1", "3=patch:a2?peer=b2"],
                &["2=patch:b1?peer=a1", "3=patch:b2?peer=a2"],
            ],
        );
        until("the links", || {
            (port(&switch, "b1", "a1")["link_up"] == true
                && port(&switch, "b2", "b2")["link_up"] == true)
                .then_some(())
        });
        let mut frame = frame(1);
        frame[..6].fill(0xff);
        hosts[0].send(&frame);
        let dropped = || {
            ["b1", "b2"].map(|bridge| switch.counter_of(bridge, "tx_drop_patch_loop")).iter().sum()
        };
        let total: u64 = until("the end of both ways round", || {
            let total: u64 = dropped();
            (total >= 2).then_some(total)
        });
        assert_eq!(total, 2, "{workers} workers");
        // Each way round passes either bridge 32 times.
        let mut count = 0;
        until("the copies", || {
            count += hosts[1].received();
            (count >= 64).then_some(())
        });
        assert_eq!(count, 64);
        switch.stop();
    }
}

/// Frames that wait for a rate on their way round are not as new again.
#[test]
fn a_loop_through_a_port_with_a_rate_ends_every_frame() {
    for workers in [1, 2] {
        let (switch, mut hosts) = bridges(
            workers,
            &[
                &["2=patch:slow-a1?peer=slow-b1", "3=patch:slow-a2?peer=slow-b2"],
                &["2=patch:slow-b1?peer=slow-a1", "3=patch:slow-b2?peer=slow-a2"],
            ],
        );
        until("the links", || {
            (port(&switch, "b1", "slow-a1")["link_up"] == true
                && port(&switch, "b2", "slow-b2")["link_up"] == true)
                .then_some(())
        });
        switch.ctl(&["set-port", "b1", "2", "--rate", "4M"]);
        let mut frame = frame(1);
        frame[..6].fill(0xff);
        for number in 0..20 {
            frame[14] = number;
            hosts[0].send(&frame);
        }
        let dropped = || -> u64 {
            ["b1", "b2"].map(|bridge| switch.counter_of(bridge, "tx_drop_patch_loop")).iter().sum()
        };
        let total = until("the end of both ways round", || Some(dropped()).filter(|n| *n >= 40));
        assert_eq!(total, 40, "{workers} workers");
        switch.stop();
    }
}

#[test]
fn a_patch_port_is_up_while_its_peer_is_there() {
    let (switch, mut hosts) = bridges(1, &[&["2=patch:near?peer=far"], &[]]);
    let near = || port(&switch, "b1", "near");
    assert_eq!(near()["link_up"], false);
    assert_eq!(near()["notes"][0], "there is no patch port far");
    let (_, error) = switch.ctl_fails(&["add-port", "b2", "patch:far?peer=far"]);
    assert!(error.contains("the patch port at the other end"), "{error}");
    let (_, error) = switch.ctl_fails(&["add-port", "b2", "patch:near?peer=far"]);
    assert!(error.contains("near is the device of port 2 of bridge b1 already"), "{error}");
    for round in 0..3 {
        switch.ctl(&["add-port", "b2", "patch:far?peer=near"]);
        until("the link", || (near()["link_up"] == true).then_some(()));
        // Another one with the same peer gets nothing.
        switch.ctl(&["add-port", "b2", "patch:other?peer=near"]);
        assert_eq!(port(&switch, "b2", "other")["link_up"], false);
        hosts[0].send(&between(1, 9, round));
        assert_eq!(hosts[1].receive(), between(1, 9, round));
        switch.ctl(&["del-port", "b2", "other"]);
        switch.ctl(&["del-port", "b2", "far"]);
        until("no link", || (near()["link_up"] == false).then_some(()));
        hosts[0].send(&between(1, 9, 100));
    }
    // A bridge goes with its end.
    switch.ctl(&["add-bridge", "b3", "port=patch:far?peer=near", "dpid=b3"]);
    until("the link", || (near()["link_up"] == true).then_some(()));
    switch.ctl(&["del-bridge", "b3"]);
    until("no link", || (near()["link_up"] == false).then_some(()));
    assert_eq!(hosts[1].poll(), None);
    switch.stop();
}

#[test]
#[ignore = "needs root"]
fn kernel_devices_are_joined_and_mirrored_through_bridges() {
    for workers in [1, 2] {
        in_namespace(|rtnl| {
            for number in 1..=3 {
                add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
            }
            let (switch, _) =
                Switch::of_tables(0, &format!("workers = {workers}\n"), |folder, _| {
                    let head = |number: u32| {
                        format!(
                            "[[bridge]]\nname = \"b{number}\"\ndpid = \"{number}\"\n\
                         listen = [\"punix:{folder}/of{number}\"]\n"
                        )
                    };
                    head(1)
                        + "port = [\"1=af_packet:sw1\", \"2=patch:veth1?peer=veth2\"]\n"
                        + &head(2)
                        + "port = [\"1=af_packet:sw2\", \"2=patch:veth2?peer=veth1\", \
                       \"3=af_packet:sw3\"]\nmirror = [\"m0,src=2,output=3\"]\n"
                });
            for bridge in 1..=2 {
                let mut controller = switch.controller_at(&format!("of{bridge}"), Version::V1_3);
                let normal = vec![Action::output(PortNo::NORMAL)];
                controller.send(&add_flow(1, Match::any(), normal));
                controller.barrier();
            }
            let mut hosts = [1, 2, 3].map(|number| Host::open(&format!("af_packet:host{number}")));
            let up = |bridge: &str, name: &str| port(&switch, bridge, name)["link_up"] == true;
            let all = [("b1", "veth1"), ("b2", "veth2"), ("b1", "sw1"), ("b2", "sw2")];
            until("the links", || all.iter().all(|(b, name)| up(b, name)).then_some(()));
            // Decisions of the kernel tier come and go meanwhile: each frame comes once.
            for number in 0..200 {
                hosts[0].send(&between(1, 2, number));
                assert_eq!(hosts[1].receive(), between(1, 2, number));
                assert_eq!(hosts[2].receive(), between(1, 2, number), "the copy");
                hosts[1].send(&between(2, 1, number));
                assert_eq!(hosts[0].receive(), between(2, 1, number));
            }
            assert!(hosts.iter_mut().all(|host| host.poll().is_none()));
            switch.stop();
        });
    }
}
