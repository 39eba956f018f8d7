//! Hub, repeater, patch panel, learning switches: what they forward, and what they never do.

use super::fabric::{Fabric, arp_reply, arp_request, mac, seconds, udp};
use controller::apps::AppName;
use openflow::Version;
use packet::build::FrameBuilder;

const PATCHES: &str = "
    [[patch-panel.patch]]
    switch = 1
    ports = [1, 3]
";

fn one_switch(app: AppName, settings: &str, version: Version) -> Fabric {
    let mut fabric = Fabric::new(&[app], settings);
    fabric.add_switch(1, 4, version);
    assert_eq!(fabric.errors, []);
    fabric
}

#[test]
fn no_app_forwards_what_a_bridge_keeps_to_its_link() {
    let floods = [
        AppName::Hub,
        AppName::Repeater,
        AppName::LearningSwitch,
        AppName::MultiTableSwitch,
        AppName::ShortestPath,
    ];
    for app in floods {
        for &version in Version::ALL {
            let mut fabric = one_switch(app, "", version);
            fabric.advance(seconds(10));
            fabric.arrived();
            for last in 0..16 {
                let group = openflow::MacAddr([0x01, 0x80, 0xc2, 0, 0, last]);
                let frame = FrameBuilder::ethernet(group, mac(1)).fill_to(60).build();
                fabric.send((1, 1), &frame);
            }
            let nearest = openflow::MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
            for dst in [nearest, mac(2), openflow::MacAddr([0xff; 6])] {
                let lldp = FrameBuilder::ethernet(dst, mac(1)).ether_type(0x88cc);
                fabric.send((1, 1), &lldp.payload(&[0; 46]).build());
            }
            assert_eq!(fabric.lldp_arrived(), 0, "{app:?} {version}");
            assert_eq!(fabric.arrived(), [], "{app:?} {version}");
        }
    }
}

#[test]
fn repeater_sends_everything_everywhere_without_the_controller() {
    for &version in Version::ALL {
        let mut fabric = one_switch(AppName::Repeater, "", version);
        fabric.send((1, 2), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(1, 1), (1, 3), (1, 4)]);
        assert_eq!(fabric.packet_ins, 0);
    }
}

#[test]
fn a_patch_joins_two_ports_and_the_others_are_apart() {
    for &version in Version::ALL {
        let mut fabric = one_switch(AppName::PatchPanel, PATCHES, version);
        fabric.send((1, 1), &udp(1, 2, 53));
        fabric.send((1, 3), &arp_request(2, 1));
        fabric.send((1, 2), &arp_request(2, 1));
        assert_eq!(fabric.arrived_at(), [(1, 1), (1, 3)]);
        assert_eq!(fabric.packet_ins, 0);
    }
}

/// Two hosts find each other and talk; what every learning switch does.
fn talk(fabric: &mut Fabric) {
    fabric.send((1, 1), &arp_request(1, 2));
    assert_eq!(fabric.arrived_at(), [(1, 2), (1, 3), (1, 4)]);
    fabric.send((1, 2), &arp_reply(2, 1));
    assert_eq!(fabric.arrived_at(), [(1, 1)]);
    fabric.send((1, 1), &udp(1, 2, 53));
    assert_eq!(fabric.arrived_at(), [(1, 2)]);
    fabric.send((1, 2), &udp(2, 1, 53));
    assert_eq!(fabric.arrived_at(), [(1, 1)]);
    let before = fabric.packet_ins;
    for _ in 0..10 {
        fabric.send((1, 1), &udp(1, 2, 53));
        fabric.send((1, 2), &udp(2, 1, 53));
    }
    assert_eq!(fabric.arrived().len(), 20);
    assert_eq!(fabric.packet_ins, before, "entries forward them");
}

#[test]
fn both_learning_switches_learn_and_follow_a_host_that_moves() {
    for (app, version) in [
        (AppName::LearningSwitch, Version::V1_0),
        (AppName::LearningSwitch, Version::V1_3),
        (AppName::MultiTableSwitch, Version::V1_3),
    ] {
        let mut fabric = one_switch(app, "", version);
        talk(&mut fabric);
        fabric.send((1, 4), &arp_request(2, 1));
        fabric.arrived();
        fabric.send((1, 1), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(1, 4)], "{app:?} {version}");
        fabric.set_port_up((1, 4), false);
        fabric.send((1, 1), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(1, 2), (1, 3)], "its place is forgotten");
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn rounds_of_ageing_and_moving_all_cost_the_same() {
    for &version in Version::ALL {
        let mut fabric = one_switch(AppName::LearningSwitch, "", version);
        let empty = fabric.entries(1).len();
        talk(&mut fabric);
        let mut costs = Vec::new();
        for round in 0..50 {
            // Longer than an entry's idle timeout: the first packet of each pair is a miss.
            fabric.advance(seconds(61));
            assert_eq!(fabric.entries(1).len(), empty, "the silent pairs' entries are gone");
            let before = fabric.packet_ins;
            fabric.send((1, 1), &udp(1, 2, 53));
            let place = if round % 2 == 0 { 2 } else { 3 };
            assert_eq!(fabric.arrived_at(), [(1, place)], "an address outlives its entries");
            fabric.send((1, place), &udp(2, 1, 53));
            for _ in 0..5 {
                fabric.send((1, 1), &udp(1, 2, 53));
                fabric.send((1, place), &udp(2, 1, 53));
            }
            // The second host moves, is heard there, and is found there.
            let place = 5 - place;
            fabric.send((1, place), &udp(2, 1, 53));
            fabric.arrived();
            fabric.send((1, 1), &udp(1, 2, 53));
            assert_eq!(fabric.arrived_at(), [(1, place)], "{version}, round {round}");
            costs.push((fabric.packet_ins - before, fabric.entries(1).len()));
        }
        assert!(costs.iter().all(|cost| *cost == costs[0]), "{version}: {costs:?}");
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn two_tables_have_two_entries_an_address() {
    let mut fabric = one_switch(AppName::MultiTableSwitch, "", Version::V1_3);
    let before = fabric.entries(1).len();
    for host in 1..=20 {
        let port = host % 4 + 1;
        fabric.send((1, port), &arp_request(host, 99));
    }
    for (from, to) in (1..=20).flat_map(|from| (1..=20).map(move |to| (from, to))) {
        fabric.send((1, from % 4 + 1), &udp(from, to, 53));
    }
    assert_eq!(fabric.entries(1).len() - before, 2 * 20);
    let before = fabric.packet_ins;
    fabric.advance(seconds(200));
    fabric.send((1, 2), &udp(1, 2, 53));
    assert_eq!(fabric.packet_ins, before + 1, "a source is learned again");
    fabric.advance(seconds(400));
    assert_eq!(fabric.count_entries(1, "hard_timeout"), 0, "the silent are forgotten");
}

#[test]
fn a_switch_with_one_table_gets_no_two() {
    let mut fabric = Fabric::new(&[AppName::MultiTableSwitch], "");
    fabric.add_switch(1, 4, Version::V1_0);
    fabric.send((1, 1), &arp_request(1, 2));
    assert_eq!(fabric.arrived(), []);
    assert_eq!(fabric.entries(1), Vec::<String>::new());
}
