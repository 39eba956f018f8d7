//! The kernel tier at veths: the devices that are in it, and that nothing is decided by what was
//! there before a barrier.

use std::time::{Duration, Instant};

use netdev::sys::link::Rtnl;
use netdev::sys::qdisc::Tbf;
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::{Action, Field, Instruction, Match, Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, add_flow, frame, until};
use crate::tier_rig::{
    self, flow_counts, forward_first, from_port, handovers, hosts, kernel_hits, no_flows,
    switch_at_veths, until_hits, until_in_kernel, with_tier,
};
use crate::veth::{add_veth, in_namespace};

#[test]
#[ignore = "needs root"]
fn the_kernel_sends_nothing_past_the_queues_of_a_port() {
    with_tier(|switch, [one, two, _], _| {
        let _controller = forward_first(switch, &[2]);
        let set = |settings: &[&str]| {
            switch.ctl(&[&["set-port", "br0", "2"], settings].concat());
        };
        for round in 0..3 {
            until_in_kernel(switch, one, two, &frame(round));
            set(&["--rate", "1G", "--queue", "1,min=50%"]);
            let before = kernel_hits(switch);
            for number in 0..100 {
                one.send(&frame(number));
                assert_eq!(two.receive(), frame(number));
            }
            assert_eq!(kernel_hits(switch), before);
            set(&["--rate", "none", "--queue", "none"]);
        }
        until_in_kernel(switch, one, two, &frame(7));
    });
}

#[test]
#[ignore = "needs root"]
fn the_tier_is_on_where_the_host_does_not_use_the_device() {
    in_namespace(|rtnl| {
        for number in 1..=4 {
            add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
        }
        rtnl.add_address("sw3", "192.0.2.1".parse().unwrap(), 24).unwrap();
        rtnl.add_bridge("bridge").unwrap();
        rtnl.add_to_bridge("sw4", "bridge").unwrap();
        let ports = "\"1=af_packet:sw1\", \"2=memory:tier-by-itself\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let out = switch.ctl(&["ports"]);
        assert!(!out.contains("kernel tier"), "{out}");
        let out = switch.ctl(&["caches"]);
        assert!(out.contains("caches frame,key,kernel"), "{out}");
        for (device, why) in [
            ("sw2", None),
            ("sw3", Some("the host has the address 192.0.2.1 on it")),
            (
                "sw4",
                Some("it is a port of bridge, which the kernel tier would take away; --caches"),
            ),
        ] {
            let out = switch.ctl(&["add-port", "br0", &format!("af_packet:{device}")]);
            assert_eq!(out.contains("no kernel tier"), why.is_some(), "{out}");
            assert!(why.is_none_or(|why| out.contains(why)), "{out}");
        }
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&add_flow(1, from_port(1), vec![Action::output(PortNo(3))]));
        controller.send(&add_flow(1, from_port(4), vec![Action::output(PortNo(3))]));
        controller.barrier();
        let [mut one, mut two, mut three] = hosts();
        until_in_kernel(&switch, &mut one, &mut two, &frame(1));
        let before = kernel_hits(&switch);
        for number in 0..50 {
            three.send(&frame(number));
            assert_eq!(two.receive(), frame(number));
        }
        assert_eq!(kernel_hits(&switch), before, "the host's own device is not in the tier");
        switch.stop();
    });
}

/// The tier is made with the first port that can be in it.
#[test]
#[ignore = "needs root"]
fn a_switch_without_kernel_ports_gets_the_tier_with_the_first() {
    in_namespace(|rtnl| {
        let switch = Switch::with_ports("\"9=memory:tier-later\"", Vec::new(), "workers = 2");
        let out = switch.ctl(&["caches"]);
        assert!(out.contains("caches frame,key\n"), "{out}");
        for number in 1..=2 {
            add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
            let port = format!("{number}=af_packet:sw{number}");
            switch.ctl(&["add-port", "br0", &port]);
        }
        is_carried_out_in_the_kernel(&switch);
        switch.stop();
    });
}

/// A tier is made for a port that gets into it, and a device that comes back is asked about anew.
#[test]
#[ignore = "needs root"]
fn a_refused_port_enters_the_tier_when_the_reason_has_gone() {
    in_namespace(|rtnl| {
        let switch = Switch::with_ports("\"9=memory:tier-refused\"", Vec::new(), "");
        let address = "192.0.2.1".parse().unwrap();
        let is_refused = || switch.ctl(&["ports"]).contains("no kernel tier: the host has");
        let has_tier = || switch.ctl(&["caches"]).contains("caches frame,key,kernel");
        let until_counted = |counter: &str, count: u64| {
            until(counter, || (switch.counter(counter) == count).then_some(()));
        };
        add_veth(rtnl, "sw1", "host1");
        rtnl.add_address("sw1", address, 24).unwrap();
        switch.ctl(&["add-port", "br0", "1=af_packet:sw1"]);
        assert!(is_refused() && !has_tier(), "no tier for a port that is not in it");
        // The device comes back with the address.
        rtnl.delete("sw1").unwrap();
        until_counted("port_gone", 1);
        add_veth(rtnl, "other1", "host1");
        rtnl.add_address("other1", address, 24).unwrap();
        rtnl.set_up("other1", false).unwrap();
        rtnl.rename("other1", "sw1").unwrap();
        rtnl.set_up("sw1", true).unwrap();
        until_counted("port_reopened", 1);
        until("the reason", || is_refused().then_some(()));
        assert!(!has_tier());
        // And without it.
        rtnl.delete("sw1").unwrap();
        until_counted("port_gone", 2);
        add_veth(rtnl, "sw1", "host1");
        until_counted("port_reopened", 2);
        until("no reason", || (!is_refused()).then_some(()));
        assert!(has_tier());
        add_veth(rtnl, "sw2", "host2");
        switch.ctl(&["add-port", "br0", "2=af_packet:sw2"]);
        is_carried_out_in_the_kernel(&switch);
        switch.stop();
    });
}

/// Waits until frames pass, and no more are on their way.
fn until_it_forwards(from: &mut Host, to: &mut Host) {
    until("a frame", || {
        from.send(&frame(0xfe));
        (to.received() > 0).then_some(())
    });
    from.send(&frame(0xff));
    while to.receive() != frame(0xff) {}
}

/// The host gets its frames, from the address on and until it has gone.
#[test]
#[ignore = "needs root"]
fn a_port_with_an_address_of_the_host_leaves_the_tier() {
    for toml in ["", "workers = 2\nqueues = 2\n"] {
        in_namespace(|rtnl| leaves_the_tier_with_an_address(rtnl, toml));
    }
}

fn leaves_the_tier_with_an_address(rtnl: &Rtnl, toml: &str) {
    let switch = switch_at_veths(rtnl, 2, toml);
    let note = |text: &str| switch.ctl(&["ports"]).contains(text);
    is_carried_out_in_the_kernel(&switch);
    for (address, prefix) in [("192.0.2.1", 24), ("2001:db8::1", 64)] {
        let address = address.parse().unwrap();
        rtnl.add_address("sw1", address, prefix).unwrap();
        let why = format!("no kernel tier: the host has the address {address} on it");
        until("the reason", || (note(&why) && handovers(rtnl) == 1).then_some(()));
        let [mut one, mut two] = hosts();
        until_it_forwards(&mut one, &mut two);
        let hits = kernel_hits(&switch);
        for number in 0..20 {
            one.send(&frame(number));
            assert_eq!(two.receive(), frame(number));
        }
        assert_eq!(kernel_hits(&switch), hits, "the host's device is not in the tier");
        rtnl.delete_address("sw1", address, prefix).unwrap();
        until("no reason", || (!note("no kernel tier") && handovers(rtnl) == 2).then_some(()));
        until_it_forwards(&mut one, &mut two);
        is_carried_out_in_the_kernel(&switch);
    }
    // The second address keeps it from the tier when the first has gone.
    let [first, second] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    rtnl.add_address("sw2", first, 32).unwrap();
    until("the reason", || note("the address 192.0.2.1 on it").then_some(()));
    rtnl.add_address("sw2", second, 32).unwrap();
    rtnl.delete_address("sw2", first, 32).unwrap();
    until("the other reason", || note("the address 192.0.2.2 on it").then_some(()));
    assert!(!note("192.0.2.1"));
    switch.stop();
}

/// Whenever it comes: before the port is opened, or before the worker listens to the kernel.
#[test]
#[ignore = "needs root"]
fn an_address_that_comes_while_the_switch_starts_is_noticed() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let address = "192.0.2.1".parse().unwrap();
        let tap = || handovers(rtnl) > 0;
        for pause_ms in [0, 1, 2, 4, 8] {
            let switch = std::thread::scope(|scope| {
                scope.spawn(move || {
                    // The program is at the device, or the switch is through with it.
                    let begun = Instant::now();
                    while !tap() && begun.elapsed() < Duration::from_secs(1) {}
                    std::thread::sleep(Duration::from_millis(pause_ms));
                    rtnl.add_address("sw1", address, 24).unwrap();
                });
                Switch::with_ports("\"1=af_packet:sw1\"", Vec::new(), "")
            });
            until("the reason", || {
                let out = switch.ctl(&["ports"]);
                (out.contains("the host has the address 192.0.2.1 on it") && !tap()).then_some(())
            });
            rtnl.delete_address("sw1", address, 24).unwrap();
            until("no reason", || (!switch.ctl(&["ports"]).contains("tier")).then_some(()));
            switch.stop();
        }
    });
}

/// The shard of the other worker learns by which ports its kernel tier may send.
#[test]
#[ignore = "needs root"]
fn a_port_new_in_the_tier_is_an_output_of_other_workers() {
    in_namespace(|rtnl| {
        for number in 1..=2 {
            add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
        }
        let address = "192.0.2.1".parse().unwrap();
        rtnl.add_address("sw2", address, 24).unwrap();
        // The first two make a pair at one worker.
        let ports = "\"1=af_packet:sw1\", \"3=memory:tier-workers\"";
        let switch = Switch::with_ports(ports, Vec::new(), "workers = 2\n");
        switch.ctl(&["add-port", "br0", "2=af_packet:sw2"]);
        let is_refused = || switch.ctl(&["ports"]).contains("no kernel tier: the host has");
        assert!(is_refused());
        let ports = switch.records(&["ports"]);
        assert!(ports.len() == 3 && ports[0]["worker"] != ports[1]["worker"], "{ports:?}");
        rtnl.delete_address("sw2", address, 24).unwrap();
        until("no reason", || (!is_refused()).then_some(()));
        is_carried_out_in_the_kernel(&switch);
        switch.stop();
    });
}

/// Both bring a tier; the one that comes second is opened again, and enters the first one's.
#[test]
#[ignore = "needs root"]
fn two_ports_that_come_back_at_once_are_in_one_tier() {
    in_namespace(|rtnl| {
        let switch = Switch::with_ports("\"9=memory:tier-two\"", Vec::new(), "");
        add_veth(rtnl, "sw1", "sw2");
        for (number, address) in [(1, "192.0.2.1"), (2, "192.0.2.2")] {
            rtnl.add_address(&format!("sw{number}"), address.parse().unwrap(), 24).unwrap();
            let port = format!("{number}=af_packet:sw{number}");
            let out = switch.ctl(&["add-port", "br0", &port]);
            assert!(out.contains("no kernel tier: the host has"), "{out}");
        }
        rtnl.delete("sw1").unwrap();
        until("both are gone", || (switch.counter("port_gone") == 2).then_some(()));
        add_veth(rtnl, "sw1", "sw2");
        until("both are in the tier", || {
            let ports = switch.ctl(&["ports"]);
            let caches = switch.ctl(&["caches"]);
            let are_up = ports.matches(", up,").count() == 2;
            let are_in = !ports.contains("no kernel tier") && caches.contains("key,kernel");
            (are_up && are_in && handovers(rtnl) == 2).then_some(())
        });
        switch.stop();
        assert_eq!(handovers(rtnl), 0);
    });
}

#[test]
#[ignore = "needs root"]
fn after_a_barrier_nothing_is_decided_by_what_was_before_it() {
    with_tier(|switch, [one, two, three], _| {
        let mut controller = switch.controller(Version::V1_3);
        let mut in_kernel = 0;
        for round in 0..40_u8 {
            let to_two = round % 2 == 0;
            let port = PortNo(if to_two { 2 } else { 3 });
            controller.send(&add_flow(1, from_port(1), vec![Action::output(port)]));
            controller.barrier();
            let before = kernel_hits(switch);
            for number in 0..20 {
                let bytes = frame(round.wrapping_mul(20).wrapping_add(number));
                one.send(&bytes);
                let (to, other) =
                    if to_two { (&mut *two, &mut *three) } else { (&mut *three, &mut *two) };
                assert_eq!(to.receive(), bytes);
                assert_eq!(other.received(), 0, "round {round}");
                if number > 2 {
                    std::thread::sleep(std::time::Duration::from_micros(500));
                }
            }
            in_kernel += kernel_hits(switch) - before;
        }
        assert!(in_kernel > 100, "{in_kernel}");
        controller.send(&no_flows());
        controller.barrier();
        one.send(&frame(7));
        until("the miss", || (controller.table_stats()[0].lookup_count == 801).then_some(()));
        assert_eq!((two.received(), three.received()), (0, 0));
    });
}

#[test]
#[ignore = "needs root"]
fn the_tier_is_switched_off_and_on_and_says_where_it_is_not() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let ports = "\"1=af_packet:sw1\", \"2=memory:kernel-tier-none\"";
        let switch = Switch::with_ports(ports, Vec::new(), "caches = \"kernel\"\n");
        let out = switch.ctl(&["show"]);
        assert!(out.contains("no kernel tier: the kernel tier works with ports"), "{out}");
        assert_eq!(out.matches("no kernel tier").count(), 1, "{out}");
        let out = switch.ctl(&["ports"]);
        assert_eq!(out.matches("no kernel tier: the kernel tier works").count(), 1, "{out}");
        let out = switch.ctl(&["caches", "frame,key"]);
        assert!(!out.contains("kernel"), "{out}");
        let out = switch.ctl(&["caches", "frame,kernel"]);
        assert!(out.contains("caches frame,kernel"), "{out}");
        switch.stop();
    });
    let switch = Switch::start(1, "");
    let (_, err) = switch.ctl_ends(1, &["caches", "kernel"]);
    assert!(err.contains("no port of the bridge is in the kernel tier"), "{err}");
}

#[test]
#[ignore = "needs root"]
fn a_device_that_comes_back_is_in_the_tier_again() {
    with_tier(|switch, [one, two, _], rtnl| {
        forward_first(switch, &[2]);
        until_in_kernel(switch, one, two, &frame(1));
        rtnl.delete("sw2").unwrap();
        until("the loss", || (switch.counter("port_gone") == 1).then_some(()));
        add_veth(rtnl, "sw2", "host2");
        until("the return", || (switch.counter("port_reopened") == 1).then_some(()));
        *two = Host::open("af_packet:host2");
        until("a frame through the new device", || {
            one.send(&frame(2));
            (two.received() > 0).then_some(())
        });
        until_hits(switch, 0, || one.send(&frame(3)));
    });
}

#[test]
#[ignore = "needs root"]
fn a_port_that_is_added_is_in_the_tier() {
    tier_rig::at_veths("workers = 2\n", |switch, [one, two, _], rtnl| {
        for round in 0..4 {
            add_veth(rtnl, "sw4", "host4");
            let port = format!("4=af_packet:sw4?queues={}", 1 + round % 2);
            let out = switch.ctl(&["add-port", "br0", &port]);
            assert!(!out.contains("no kernel tier"), "{out}");
            let mut four = Host::open("af_packet:host4");
            // Another one each time, which has no port-status to read.
            let mut controller = switch.controller(Version::V1_3);
            controller.send(&add_flow(1, from_port(1), vec![Action::output(PortNo(4))]));
            controller.send(&add_flow(1, from_port(4), vec![Action::output(PortNo(2))]));
            controller.barrier();
            until_in_kernel(switch, one, &mut four, &frame(round));
            until_in_kernel(switch, &mut four, two, &frame(round));
            switch.ctl(&["del-port", "br0", "4"]);
            rtnl.delete("sw4").unwrap();
        }
    });
}

#[test]
#[ignore = "needs root"]
fn a_frame_is_held_to_the_mtu_of_the_moment() {
    with_tier(|switch, [one, two, _], rtnl| {
        let mut controller = forward_first(switch, &[2]);
        let long = vec![7; 1_400];
        until_in_kernel(switch, one, two, &long);
        for _ in 0..2 {
            rtnl.set_mtu("sw2", 1_300).unwrap();
            until("the other MTU", || switch.ctl(&["ports"]).contains("mtu 1300").then_some(()));
            controller.barrier();
            let (before, errors) = (kernel_hits(switch), tx_faults(&mut controller, 2).1);
            for _ in 0..20 {
                one.send(&long);
            }
            until("the errors", || (tx_faults(&mut controller, 2).1 == errors + 20).then_some(()));
            assert_eq!((kernel_hits(switch), two.received()), (before, 0));
            rtnl.set_mtu("sw2", 1_500).unwrap();
            until_in_kernel(switch, one, two, &long);
        }
    });
}

/// Waits until the kernel carries out what port 1 forwards to port 2.
fn is_carried_out_in_the_kernel(switch: &Switch) {
    forward_first(switch, &[2]);
    let [mut one, mut two] = hosts();
    until_in_kernel(switch, &mut one, &mut two, &frame(1));
    let workers = switch.ctl(&["workers"]);
    assert!(workers.contains(" in the kernel, "), "{workers}");
}

/// The frames that a port has sent, could not send, and dropped.
fn tx_faults(controller: &mut Controller, port: u32) -> (u64, u64, u64) {
    let stats = &controller.port_stats(PortNo(port))[0];
    (stats.tx_packets, stats.tx_errors, stats.tx_dropped)
}

#[test]
#[ignore = "needs root"]
fn what_a_device_drops_behind_the_kernel_is_not_sent() {
    with_tier(|switch, [one, two, _], rtnl| {
        let mut controller = forward_first(switch, &[2]);
        let long = vec![7; 1_400];
        until_in_kernel(switch, one, two, &long);
        // A veth drops what the other end cannot carry.
        rtnl.set_mtu("host2", 1_300).unwrap();
        let (sent, errors, dropped) = tx_faults(&mut controller, 2);
        let before = kernel_hits(switch);
        for _ in 0..100 {
            one.send(&long);
        }
        until("the drops", || (tx_faults(&mut controller, 2).2 == dropped + 100).then_some(()));
        assert_eq!(tx_faults(&mut controller, 2), (sent, errors, dropped + 100));
        assert!(kernel_hits(switch) > before, "some were dropped behind the kernel");
    });
}

/// A queueing discipline's drops are its port's loss, of copies as of the frame itself.
#[test]
#[ignore = "needs root"]
fn a_queueing_discipline_s_drops_are_not_counted_as_sent() {
    const FRAMES: u64 = 1_000;
    with_tier(|switch, [one, two, three], rtnl| {
        // 1,000 frames a second, and room for some 30.
        let tbf = Tbf {
            rate_bps: 480_000,
            burst_bytes: 1_600,
            limit_bytes: 2_000,
            overhead_bytes: 0,
            least_bytes: 60,
        };
        for order in [[2, 3], [3, 2]] {
            let mut controller = forward_first(switch, &order);
            until_hits(switch, 0, || {
                one.send(&frame(0));
                assert_eq!((two.receive(), three.receive()), (frame(0), frame(0)));
            });
            rtnl.set_tbf("sw2", &tbf).unwrap();
            let before = [2, 3].map(|port| tx_faults(&mut controller, port));
            let hits = kernel_hits(switch);
            let (mut to_two, mut to_three) = (0, 0);
            for _ in 0..FRAMES {
                one.send(&frame(1));
                to_two += two.received() as u64;
                to_three += three.received() as u64;
            }
            let after = until("all frames", || {
                to_two += two.received() as u64;
                to_three += three.received() as u64;
                let after = [2, 3].map(|port| tx_faults(&mut controller, port));
                let sent = [0, 1].map(|at| after[at].0 - before[at].0);
                (sent == [to_two, to_three]).then_some(after)
            });
            let grown = [0, 1].map(|at| {
                let (sent, errors, dropped) = after[at];
                (sent - before[at].0, errors - before[at].1, dropped - before[at].2)
            });
            assert_eq!(grown, [(to_two, 0, FRAMES - to_two), (FRAMES, 0, 0)], "{order:?}");
            assert!(to_two < FRAMES && kernel_hits(switch) > hits + FRAMES / 2, "{to_two}");
            rtnl.reset_qdisc("sw2").unwrap();
            assert_eq!((two.received(), three.received()), (0, 0));
        }
    });
}

/// An entry with timeouts, whose end is reported to the controller.
fn timed(priority: u16, port: u128, to: u32, (idle_s, hard_s): (u16, u16)) -> Message {
    Message::FlowMod(FlowMod {
        matching: from_port(port),
        priority,
        idle_timeout_s: idle_s,
        hard_timeout_s: hard_s,
        flags: FlowModFlags::SEND_FLOW_REM,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(to))])],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

#[test]
#[ignore = "needs root"]
fn an_entry_that_the_kernel_uses_is_not_idle() {
    with_tier(|switch, [one, two, _], _| {
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&timed(1, 1, 2, (2, 0)));
        controller.barrier();
        let mut sent = until_in_kernel(switch, one, two, &frame(1));
        let (before, begun) = (kernel_hits(switch), Instant::now());
        let mut last = begun;
        // Pauses much shorter than the timeout, also on a machine that stands still for a second.
        while begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
            one.send(&frame(2));
            assert_eq!(two.receive(), frame(2), "still there");
            (last, sent) = (Instant::now(), sent + 1);
        }
        let in_kernel = kernel_hits(switch) - before;
        let (_, Message::FlowRemoved(removed)) = controller.next() else { panic!("no removal") };
        assert!(last.elapsed() > Duration::from_secs(1), "{:?}", last.elapsed());
        assert_eq!(removed.reason, FlowRemovedReason::IdleTimeout);
        assert_eq!((removed.packet_count, removed.byte_count), (sent, 60 * sent));
        assert!(in_kernel > 20, "{in_kernel}");
    });
}

#[test]
#[ignore = "needs root"]
fn the_kernel_decides_by_no_entry_whose_time_is_over() {
    with_tier(|switch, [one, two, three], _| {
        let mut controller = forward_first(switch, &[3]);
        controller.send(&timed(2, 1, 2, (0, 2)));
        controller.barrier();
        let added = Instant::now();
        let mut sent = until_in_kernel(switch, one, two, &frame(1));
        let before = kernel_hits(switch);
        // Nothing that a frame of the switch could wake.
        while added.elapsed() < Duration::from_millis(1_500) {
            one.send(&frame(2));
            assert_eq!(two.receive(), frame(2));
            sent += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(kernel_hits(switch) > before);
        std::thread::sleep(Duration::from_secs(2).saturating_sub(added.elapsed()));
        // From this moment on it is over, whether it was removed or not.
        for number in 0..50 {
            one.send(&frame(number));
            assert_eq!(three.receive(), frame(number));
        }
        assert_eq!(two.received(), 0);
        let (_, Message::FlowRemoved(removed)) = controller.next() else { panic!("no removal") };
        assert_eq!(removed.reason, FlowRemovedReason::HardTimeout);
        assert_eq!(removed.packet_count, sent);
        assert_eq!(flow_counts(&mut controller)[&1], (50, 3_000));
    });
}

/// Frames to 64 addresses, each with an entry of its own, while the entries of one half change all
/// the time: no frame is decided by what was before a barrier's reply, and the decisions about the
/// other half stay in the kernel.
#[test]
#[ignore = "needs root"]
fn a_storm_of_changes_ends_what_it_concerns_and_nothing_else() {
    const FLOWS: u8 = 64;
    with_tier(|switch, [one, two, three], _| {
        let mut controller = switch.controller(Version::V1_3);
        let to = |flow: u8| Match::any().with(Field::EthDst, 0x0200_0000_0000 | u128::from(flow));
        let towards = |flow: u8, round: u32| if flow < 32 && round % 2 == 1 { 3 } else { 2 };
        let numbered = |flow: u8, number: u32| {
            let mut bytes = vec![0; 60];
            bytes[0] = 2;
            bytes[5] = flow;
            bytes[6..14].copy_from_slice(&[2, 0, 0, 0, 1, 0, 0x12, 0x34]);
            bytes[20..24].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        let mut number = 0;
        let mut in_kernel = 0;
        let rounds = tier_rig::number("WEIR_TIER_ROUNDS", 30) as u32;
        for round in 0..rounds {
            for flow in (0..FLOWS).filter(|flow| *flow < 32 || round == 0) {
                let output = Action::output(PortNo(towards(flow, round)));
                controller.send(&add_flow(1, to(flow), vec![output]));
            }
            controller.barrier();
            let before = kernel_hits(switch);
            for _ in 0..4 {
                for flow in 0..FLOWS {
                    number += 1;
                    let bytes = numbered(flow, number);
                    one.send(&bytes);
                    let (to, other) = match towards(flow, round) {
                        2 => (&mut *two, &mut *three),
                        _ => (&mut *three, &mut *two),
                    };
                    assert_eq!(to.receive(), bytes, "round {round}");
                    assert_eq!(other.received(), 0, "round {round}");
                }
            }
            let hits = kernel_hits(switch) - before;
            in_kernel += hits;
            // The half without changes has its entries since the first round.
            assert!(round == 0 || hits >= 4 * 32, "round {round}: {hits} in the kernel");
        }
        assert!(in_kernel > u64::from(rounds) * 4 * 32, "{in_kernel}");
        assert_eq!(controller.table_stats()[0].matched_count, u64::from(number));
    });
}
