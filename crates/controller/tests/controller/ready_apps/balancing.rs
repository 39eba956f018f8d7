//! The load balancer: connections spread by weight, both ways rewritten, dead servers left out.

use super::fabric::{At, Fabric, ip, mac, seconds};
use controller::apps::AppName;
use openflow::{Field, MacAddr, PortNo, Version};
use packet::build::{Arp, FrameBuilder, Ipv4, Tcp};
use packet::{FlowKey, Meta, extract, verify};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const SETTINGS: &str = r#"
    [load-balancer]
    switch = 1
    address = "10.0.0.100"
    mac = "02:00:00:00:01:00"
    service = "tcp:80"

    [[load-balancer.server]]
    address = "10.0.0.2"
    mac = "0a:00:00:00:00:02"
    port = 2

    [[load-balancer.server]]
    address = "10.0.0.3"
    mac = "0a:00:00:00:00:03"
    port = 3
    weight = 3
"#;

const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);
const SERVICE_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 0]);
const CLIENT: At = (1, 1);

fn key_of(frame: &[u8]) -> FlowKey {
    verify(frame).unwrap();
    extract(frame, &Meta::port(PortNo(1)))
}

fn request(src_port: u16) -> Vec<u8> {
    let ethernet = FrameBuilder::ethernet(SERVICE_MAC, mac(1));
    ethernet.ipv4(Ipv4::new(ip(1), SERVICE)).tcp(Tcp::new(src_port, 80)).fill_to(60).build()
}

fn answer(server: u32, dst_port: u16) -> Vec<u8> {
    let ethernet = FrameBuilder::ethernet(mac(1), mac(server.into()));
    ethernet.ipv4(Ipv4::new(ip(server), ip(1))).tcp(Tcp::new(80, dst_port)).fill_to(60).build()
}

fn arp_for_service() -> Vec<u8> {
    let arp = Arp { op: 1, sha: mac(1), spa: ip(1), tha: MacAddr::default(), tpa: SERVICE };
    FrameBuilder::ethernet(MacAddr([0xff; 6]), mac(1)).arp(arp).fill_to(60).build()
}

fn balancer() -> Fabric {
    let mut fabric = Fabric::new(&[AppName::LoadBalancer], SETTINGS);
    fabric.add_switch(1, 4, Version::V1_3);
    assert_eq!(fabric.errors, []);
    fabric
}

#[test]
fn the_service_answers_arp_and_its_answers_come_from_it() {
    let mut fabric = balancer();
    fabric.send(CLIENT, &arp_for_service());
    let arrived = fabric.arrived();
    let [(at, reply)] = &arrived[..] else { panic!("{arrived:?}") };
    let key = key_of(reply);
    assert_eq!((*at, key.get(Field::ArpSha)), (CLIENT, u128::from(SERVICE_MAC.to_u64())));
    fabric.send(CLIENT, &request(1_000));
    let arrived = fabric.arrived();
    let [((1, port), frame)] = &arrived[..] else { panic!("{arrived:?}") };
    let key = key_of(frame);
    assert_eq!(key.get(Field::EthDst), u128::from(mac(u64::from(*port)).to_u64()));
    assert_eq!(key.get(Field::Ipv4Dst), u128::from(ip(*port).to_bits()));
    for _ in 0..2 {
        fabric.send((1, *port), &answer(*port, 1_000));
        let arrived = fabric.arrived();
        let [(at, frame)] = &arrived[..] else { panic!("{arrived:?}") };
        let key = key_of(frame);
        assert_eq!((*at, key.get(Field::Ipv4Src)), (CLIENT, u128::from(SERVICE.to_bits())));
        assert_eq!(key.get(Field::EthSrc), u128::from(SERVICE_MAC.to_u64()));
    }
    let before = fabric.packet_ins;
    fabric.send(CLIENT, &request(1_000));
    fabric.send((1, *port), &answer(*port, 1_000));
    assert_eq!(fabric.packet_ins, before, "the controller is not in the way");
    assert_eq!(fabric.errors, []);
}

#[test]
fn connections_go_by_weight_and_stay_where_they_are() {
    let mut fabric = balancer();
    fabric.send(CLIENT, &arp_for_service());
    fabric.arrived();
    let mut shares = BTreeMap::new();
    for src_port in 1_000..1_400 {
        fabric.send(CLIENT, &request(src_port));
        fabric.send(CLIENT, &request(src_port));
        let places = fabric.arrived_at();
        assert_eq!(places[0], places[1], "one connection, one server");
        *shares.entry(places[0]).or_insert(0) += 1;
    }
    // Weights 1 and 3 of 400.
    assert!((50..=150).contains(&shares[&(1, 2)]), "{shares:?}");
    fabric.set_port_up((1, 3), false);
    for src_port in 1_000..1_100 {
        fabric.send(CLIENT, &request(src_port));
    }
    assert!(fabric.arrived_at().iter().all(|at| *at == (1, 2)), "a dead server gets nothing");
}

#[test]
fn a_client_of_whom_nothing_was_heard_is_asked_for() {
    let mut fabric = balancer();
    fabric.send((1, 2), &answer(2, 1_000));
    let arrived = fabric.arrived();
    let asked = arrived.iter().filter(|(_, frame)| key_of(frame).has(Field::ArpOp));
    let asked: Vec<_> = asked.map(|(at, _)| *at).collect();
    assert!(asked.contains(&CLIENT), "{asked:?}");
    let arp = Arp { op: 2, sha: mac(1), spa: ip(1), tha: SERVICE_MAC, tpa: SERVICE };
    let reply = FrameBuilder::ethernet(SERVICE_MAC, mac(1)).arp(arp).fill_to(60).build();
    fabric.send(CLIENT, &reply);
    assert_eq!(fabric.arrived(), [], "an answer is not answered");
    fabric.send((1, 2), &answer(2, 1_000));
    assert_eq!(fabric.arrived_at(), [CLIENT]);
}

#[test]
fn other_packets_are_switched_and_odd_ones_for_the_service_drop() {
    let mut fabric = balancer();
    fabric.send((1, 4), &super::fabric::arp_request(4, 1));
    assert_eq!(fabric.arrived_at(), [(1, 1), (1, 2), (1, 3)]);
    let ethernet = FrameBuilder::ethernet(SERVICE_MAC, mac(1)).ipv4(Ipv4::new(ip(1), SERVICE));
    fabric.send(CLIENT, &ethernet.udp(1, 80).fill_to(60).build());
    assert_eq!(fabric.arrived(), []);
}

#[test]
fn a_switch_without_groups_is_left_alone() {
    let mut fabric = Fabric::new(&[AppName::LoadBalancer], SETTINGS);
    fabric.add_switch(1, 4, Version::V1_0);
    fabric.send(CLIENT, &arp_for_service());
    fabric.advance(seconds(2));
    assert_eq!((fabric.arrived(), fabric.entries(1).len()), (vec![], 0));
}
