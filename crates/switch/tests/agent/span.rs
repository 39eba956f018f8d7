//! Mirrors, protected ports and ingress rates by configuration, while the switch runs too.

use openflow::{Action, Match, PortNo, Version};

use crate::harness::{Host, Switch, add_flow, frame, from_to, until};
use crate::veth::{add_veth, in_namespace};

const FILE: &str =
    "control = \"FOLDER/ctl\"\ndpid = \"a1\"\nlisten = [\"punix:FOLDER/of\"]\nport = [PORTS]\n";

/// A switch of memory ports of this name, and their hosts; and the file with more lines.
fn switch(name: &str, more: &str) -> (Switch, Vec<Host>, impl Fn(&str) -> String + use<>) {
    let numbers = 1..=4;
    let specs: Vec<String> =
        numbers.clone().map(|number| format!("\"{number}=memory:{name}{number}\"")).collect();
    let text = FILE.replace("PORTS", &specs.join(", "));
    let hosts = numbers.map(|number| Host::open(&format!("memory:{name}{number}?end=b"))).collect();
    let file = move |more: &str| format!("{text}{more}\n");
    let switch = Switch::of_file(&file(more));
    (switch, hosts, file)
}

#[test]
fn mirrors_come_and_go_with_the_file() {
    let (switch, mut hosts, file) = switch("mirrored", "");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.send(&from_to(2, 4));
    controller.barrier();
    let mut sends = |from: usize, number: u8, to: &[usize]| {
        hosts[from - 1].send(&frame(number));
        for to in to {
            assert_eq!(hosts[to - 1].receive(), frame(number), "port {to}");
        }
        assert!(hosts.iter_mut().all(|host| host.poll().is_none()));
    };
    sends(1, 1, &[2]);
    for (round, lines, to) in [
        (2, "mirror = [\"m0,src=1,output=4\"]", &[2, 4][..]),
        (3, "mirror = [\"m0,all,output=3\", \"m1,dst=2,output=4\"]", &[2, 3, 4]),
        (4, "", &[2]),
    ] {
        switch.rewrite(&file(lines));
        assert_eq!(switch.ctl(&["reload"]), "bridge br0: set: mirror\n");
        for turn in 0..3 {
            sends(1, 10 * round + turn, to);
        }
    }
    // The port of a mirror takes nothing else.
    switch.rewrite(&file("mirror = [\"m0,src=3,output=4\"]"));
    switch.ctl(&["reload"]);
    sends(2, 90, &[]);
    until("the drop", || (switch.counter("drop_mirror_output") == 1).then_some(()));
    for (bad, why) in [
        ("mirror = [\"m0,src=9,output=4\"]", "toml:5:11: mirror: there is no port 9"),
        ("mirror = [\"m0,src=1,output=9\"]", "mirror: there is no port 9"),
        ("mirror = [\"m0,all,output=4\", \"m0,all,output=3\"]", "mirror m0 is given twice"),
        ("mirror = [\"m0,src=4,output=4\"]", "port 4 is its output, which takes nothing else"),
        ("mirror = [\"m0,all\"]", "is no mirror; write NAME"),
        ("vlan = [\"1=protected\"]", "each may end in :protected"),
    ] {
        switch.rewrite(&file(bad));
        let (out, err) = switch.ctl_ends(1, &["reload"]);
        assert!(err.contains(why) && out.is_empty(), "{bad}: {out} {err}");
    }
    switch.stop();
}

#[test]
fn protected_ports_are_set_while_the_switch_runs() {
    let (switch, mut hosts, _) = switch("protected", "vlan = [\"1=trunk:protected\"]");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo::NORMAL)]));
    controller.barrier();
    let mut reaches = |number: u8, expected: [bool; 3]| {
        let mut frame = frame(number);
        frame[..6].fill(0xff);
        hosts[0].send(&frame);
        for (host, expected) in hosts[1..].iter_mut().zip(expected) {
            if expected {
                assert_eq!(host.receive(), frame);
            }
        }
        assert!(hosts.iter_mut().all(|host| host.poll().is_none()));
    };
    reaches(1, [true, true, true]);
    switch.ctl(&["set-port", "br0", "2", "--vlan", "trunk:protected"]);
    reaches(2, [false, true, true]);
    switch.ctl(&["set-port", "br0", "1", "--vlan", "trunk"]);
    reaches(3, [true, true, true]);
    switch.stop();
}

#[test]
fn what_comes_faster_than_the_ingress_rate_is_dropped() {
    let spec = |rest: &str| format!("1=memory:policed{rest}");
    let mut hosts = ["policed", "taker"].map(|name| Host::open(&format!("memory:{name}?end=b")));
    let (_, refused) = {
        let switch = Switch::with_ports("", Vec::new(), "");
        switch.ctl_fails(&["add-port", "br0", &spec("?police=fast")])
    };
    assert!(
        refused.contains("police=\"fast\"") && refused.contains("a number above 0"),
        "{refused}"
    );
    // Nothing comes back of the tokens while the test runs.
    let ports =
        format!("\"{}\", \"2=memory:taker\"", spec("?police_packets=1&police_packets_burst=7"));
    let switch = Switch::with_ports(&ports, Vec::new(), "");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.send(&from_to(2, 1));
    controller.barrier();
    let begun = std::time::Instant::now();
    for number in 0..50 {
        hosts[0].send(&frame(number));
    }
    let dropped = until("the drops", || {
        let dropped = switch.counter("rx_drop_policed");
        let passed = controller.port_stats(PortNo(2))[0].tx_packets;
        (dropped + passed == 50).then_some(dropped)
    });
    let most = 7 + begun.elapsed().as_secs() + 1;
    assert!(dropped <= 43 && 50 - dropped <= most, "{dropped} of 50");
    assert_eq!(controller.port_stats(PortNo(1))[0].rx_dropped, dropped);
    assert_eq!(hosts[1].receive(), frame(0));
    // The other way is not limited.
    for number in 0..20 {
        hosts[1].send(&frame(number));
        assert_eq!(hosts[0].receive(), frame(number));
    }
    switch.stop();
}

#[test]
#[ignore = "needs root"]
fn a_port_with_an_ingress_rate_is_not_in_the_kernel_tier() {
    in_namespace(|rtnl| {
        for number in 1..=2 {
            add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
        }
        let ports =
            "\"1=af_packet:sw1?police_packets=1&police_packets_burst=40\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let notes = || switch.records(&["ports"]).into_iter().map(|port| port["notes"].clone());
        let notes: Vec<_> = notes().collect();
        assert_eq!(notes[0][0], "no kernel tier: the port has an ingress rate");
        assert_eq!(notes[1], serde_json::json!([]));
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 2));
        controller.send(&from_to(2, 1));
        controller.barrier();
        let mut hosts = [1, 2].map(|number| Host::open(&format!("af_packet:host{number}")));
        for number in 0..200 {
            hosts[0].send(&frame(number));
            hosts[1].send(&frame(number));
            assert_eq!(hosts[0].receive(), frame(number), "the other way is free");
        }
        until("the drops", || {
            let passed = controller.port_stats(PortNo(2))[0].tx_packets;
            (switch.counter("rx_drop_policed") + passed == 200).then_some(())
        });
        assert!(switch.counter("rx_drop_policed") > 0);
        switch.stop();
    });
}
