//! Discovery and shortest paths: links, hosts, loops, failures, and those who lie.

use super::fabric::{At, Fabric, arp_reply, arp_request, mac, seconds, udp};
use controller::apps::{AppConfig, AppName, ReadyApps};
use controller::discovery::ProbeKey;
use controller::testing::{TestNetwork, TestSwitch};
use controller::topology::{SwitchPort, TopologyLink};
use openflow::{Action, DatapathId, Message, PortNo, Version};
use packet::build::FrameBuilder;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const APPS: &[AppName] = &[AppName::ShortestPath];

fn place((dpid, port): At) -> SwitchPort {
    SwitchPort { dpid: DatapathId(dpid), port: PortNo(port) }
}

fn link(from: At, to: At) -> TopologyLink {
    TopologyLink { from: place(from), to: place(to) }
}

/// Switches 1 to `n` in a ring by their ports 1 and 2; hosts are at port 3 and 4.
fn ring(n: u64, version: Version) -> Fabric {
    let mut fabric = Fabric::new(APPS, "");
    for dpid in 1..=n {
        fabric.link((dpid, 2), (dpid % n + 1, 1));
    }
    for dpid in 1..=n {
        fabric.add_switch(dpid, 4, version);
    }
    fabric.advance(seconds(5));
    assert_eq!(fabric.errors, []);
    fabric
}

fn host_ports(n: u64) -> Vec<At> {
    (1..=n).flat_map(|dpid| [(dpid, 3), (dpid, 4)]).collect()
}

#[test]
fn links_are_found_in_both_directions_and_go_with_a_port() {
    for &version in Version::ALL {
        let mut fabric = ring(3, version);
        let mut links = Vec::new();
        for dpid in 1..=3 {
            let there = link((dpid, 2), (dpid % 3 + 1, 1));
            links.extend([there, there.reversed()]);
        }
        links.sort();
        assert_eq!(fabric.topology.links(), links);
        assert_eq!(fabric.topology.switches().len(), 3);
        fabric.set_link_up((1, 2), false);
        let gone = link((1, 2), (2, 1));
        links.retain(|link| *link != gone && link.reversed() != gone);
        assert_eq!(fabric.topology.links(), links, "at once");
        fabric.set_link_up((1, 2), true);
        fabric.advance(seconds(2));
        assert_eq!(fabric.topology.links().len(), 6);
        fabric.disconnect(3);
        assert_eq!(fabric.topology.links().len(), 2, "those of the switch are gone");
    }
}

#[test]
fn link_that_carries_nothing_is_forgotten_though_ports_are_up() {
    let mut fabric = ring(3, Version::V1_3);
    fabric.cut((1, 2));
    fabric.advance(seconds(10));
    assert_eq!(fabric.topology.links().len(), 6, "three probes may be lost");
    fabric.advance(seconds(15));
    assert_eq!(fabric.topology.links().len(), 4);
}

#[test]
fn a_broadcast_in_a_ring_arrives_once_everywhere() {
    for &version in Version::ALL {
        let mut fabric = ring(4, version);
        fabric.arrived();
        fabric.send((2, 3), &arp_request(1, 99));
        let others: Vec<_> = host_ports(4).into_iter().filter(|at| *at != (2, 3)).collect();
        assert_eq!(fabric.arrived_at(), others, "{version}");
    }
}

#[test]
fn nothing_is_flooded_into_a_loop_that_is_not_known_yet() {
    let mut fabric = Fabric::new(APPS, "");
    for dpid in 1..=4 {
        fabric.link((dpid, 2), (dpid % 4 + 1, 1));
        fabric.add_switch(dpid, 4, Version::V1_3);
        fabric.send((dpid, 3), &arp_request(1, 99));
    }
    for _ in 0..50 {
        // A storm would go beyond what the fabric carries.
        fabric.send((1, 3), &arp_request(1, 99));
        fabric.advance(Duration::from_millis(100));
    }
    fabric.arrived();
    fabric.send((1, 3), &arp_request(1, 99));
    assert_eq!(fabric.arrived().len(), 7);
}

#[test]
fn pairs_talk_over_the_shortest_path_and_around_a_failure() {
    for &version in Version::ALL {
        let mut fabric = ring(6, version);
        fabric.send((1, 3), &arp_request(1, 2));
        fabric.send((3, 3), &arp_reply(2, 1));
        fabric.arrived();
        fabric.send((1, 3), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(3, 3)]);
        let before = fabric.packet_ins;
        for _ in 0..10 {
            fabric.send((1, 3), &udp(1, 2, 53));
        }
        assert_eq!((fabric.arrived().len(), fabric.packet_ins), (10, before), "{version}");
        let pair = "dl_dst=0a:00:00:00:00:02";
        let on_path = |fabric: &Fabric| {
            (1..=6).filter(|dpid| fabric.count_entries(*dpid, pair) > 0).collect::<Vec<_>>()
        };
        assert_eq!(on_path(&fabric), [1, 2, 3]);
        fabric.set_link_up((2, 2), false);
        fabric.send((1, 3), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(3, 3)], "around, without a wait");
        fabric.advance(seconds(2));
        fabric.send((1, 3), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(3, 3)]);
        assert_eq!(on_path(&fabric), [1, 3, 4, 5, 6], "{version}");
        fabric.set_link_up((2, 2), true);
        fabric.advance(seconds(8));
        fabric.send((1, 3), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(3, 3)]);
        assert_eq!(on_path(&fabric), [1, 2, 3], "the short way again");
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn hosts_are_known_by_their_addresses_and_followed_on_moves() {
    for &version in Version::ALL {
        let mut fabric = ring(4, version);
        fabric.send((1, 3), &arp_request(1, 2));
        fabric.send((3, 3), &arp_reply(2, 1));
        let host = fabric.topology.host(mac(2)).unwrap();
        assert_eq!((host.at, host.ipv4), (place((3, 3)), vec![super::fabric::ip(2)]));
        fabric.send((1, 3), &udp(1, 2, 53));
        fabric.advance(seconds(2));
        fabric.arrived();
        fabric.send((2, 4), &arp_request(2, 1));
        assert_eq!(fabric.topology.place_of(mac(2)), Some(place((2, 4))));
        fabric.advance(seconds(2));
        fabric.arrived();
        fabric.send((1, 3), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(2, 4)], "{version}");
        fabric.set_port_up((2, 4), false);
        assert_eq!(fabric.topology.host(mac(2)), None);
    }
}

#[test]
fn a_host_that_feigns_probes_makes_no_link() {
    let mut fabric = ring(3, Version::V1_3);
    let links = fabric.topology.links();
    // A probe of another run: right in everything but the key.
    let mut other = Fabric::new(APPS, "");
    other.add_switch(1, 4, Version::V1_3);
    let probes = other.probes_arrived();
    assert!(!probes.is_empty());
    for (_, probe) in &probes {
        fabric.send((3, 4), probe);
    }
    let lldp = FrameBuilder::ethernet(mac(2), mac(1)).ether_type(0x88cc);
    fabric.send((3, 4), &lldp.payload(&[0xff; 1_000]).build());
    assert_eq!(fabric.topology.links(), links);
    // One of this run that a host has kept for too long.
    fabric.probes_arrived();
    fabric.advance(seconds(6));
    let kept = fabric.probes_arrived();
    let (_, probe) = kept.first().unwrap();
    fabric.advance(seconds(60));
    fabric.send((3, 4), probe);
    assert_eq!(fabric.topology.links(), links);
}

#[test]
fn address_flood_and_a_flapping_port_leave_the_others_alone() {
    let mut fabric = ring(3, Version::V1_3);
    for number in 1_000..3_000 {
        fabric.send((1, 4), &arp_request(number, 1));
        if number % 500 == 0 {
            fabric.arrived();
        }
    }
    assert_eq!(fabric.topology.hosts().len(), 1_024);
    for _ in 0..20 {
        fabric.set_port_up((1, 4), false);
        fabric.set_port_up((1, 4), true);
        fabric.send((1, 4), &arp_request(5, 1));
    }
    assert_eq!(fabric.topology.hosts().len(), 0, "a port that flaps is no edge");
    fabric.send((2, 3), &arp_request(1, 2));
    fabric.send((3, 3), &arp_reply(2, 1));
    fabric.arrived();
    fabric.send((2, 3), &udp(1, 2, 53));
    assert_eq!(fabric.arrived_at(), [(3, 3)]);
}

#[test]
fn a_probe_key_is_not_shown() {
    let key = ProbeKey::from_secret(b"secret words");
    assert_eq!(format!("{key:?}"), "ProbeKey(secret)");
}

/// The ports to which the controller has sent probes.
fn probed(messages: &[Message]) -> Vec<PortNo> {
    let port = |message: &Message| match message {
        Message::PacketOut(packet_out) => match packet_out.actions[..] {
            [Action::Output { port, .. }] if packet_out.in_port == PortNo::CONTROLLER => Some(port),
            _ => None,
        },
        _ => None,
    };
    messages.iter().filter_map(port).collect()
}

#[test]
fn a_switch_of_65000_ports_is_probed_in_turns_beside_others() {
    const PORTS: u32 = 65_000;
    /// Probes of one turn, and the turns in a second.
    const TURN: (usize, u64) = (512, 8);
    let names = [AppName::Discovery, AppName::Hub];
    let ready = ReadyApps::new(&names, &AppConfig::default(), &(Arc::new(|_: &str| {}) as _));
    let mut network = TestNetwork::new(ready.unwrap().list);
    let small = network.add_switch(TestSwitch::new(1, 4));
    let large = network.add_switch(TestSwitch::new(2, PORTS));
    network.take_messages(small);
    let mut seen = BTreeSet::new();
    let turns = u64::from(PORTS) / TURN.0 as u64 + 1;
    for turn in 0..=turns {
        let ports = probed(&network.take_messages(large));
        assert!((1..=TURN.0).contains(&ports.len()), "{turn}: {}", ports.len());
        seen.extend(ports);
        network.packet_in(small, 1, &arp_request(1, 99));
        let came = network.take_messages(small);
        let is_flood = |it: &&Message| matches!(it, Message::PacketOut(out) if out.in_port.0 == 1);
        assert_eq!(came.iter().filter(is_flood).count(), 1);
        network.advance(Duration::from_millis(1_000 / TURN.1));
    }
    assert_eq!(seen.len(), PORTS as usize, "every port has its turn");
}
