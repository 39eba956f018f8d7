//! The router: ARP, ICMP, connected networks, routes, and packets that go nowhere.

use super::fabric::{At, Fabric, seconds};
use controller::apps::{AppConfig, AppName};
use openflow::{Field, MacAddr, PortNo, Version};
use packet::build::{Arp, FrameBuilder, Ipv4};
use packet::{FlowKey, Meta, extract, verify};
use std::net::Ipv4Addr;

const ROUTES: &str = r#"
    [[router.interface]]
    switch = 7
    port = 1
    address = "10.0.1.1/24"

    [[router.interface]]
    switch = 7
    port = 2
    address = "10.0.2.1/24"

    [[router.route]]
    switch = 7
    to = "192.168.0.0/16"
    via = "10.0.2.9"

    [[router.route]]
    switch = 7
    to = "192.168.5.0/24"
    via = "10.0.1.9"
"#;

const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
const A: Host =
    Host { at: (7, 1), ip: Ipv4Addr::new(10, 0, 1, 2), mac: MacAddr([4, 0, 0, 0, 0, 1]) };
const B: Host =
    Host { at: (7, 2), ip: Ipv4Addr::new(10, 0, 2, 2), mac: MacAddr([4, 0, 0, 0, 0, 2]) };
/// Next hops of the routes.
const C: Host =
    Host { at: (7, 2), ip: Ipv4Addr::new(10, 0, 2, 9), mac: MacAddr([4, 0, 0, 0, 0, 3]) };
const D: Host =
    Host { at: (7, 1), ip: Ipv4Addr::new(10, 0, 1, 9), mac: MacAddr([4, 0, 0, 0, 0, 4]) };

#[derive(Clone, Copy)]
struct Host {
    at: At,
    ip: Ipv4Addr,
    mac: MacAddr,
}

impl Host {
    fn arp(self, op: u16, dst: MacAddr, tha: MacAddr, tpa: Ipv4Addr) -> Vec<u8> {
        let arp = Arp { op, sha: self.mac, spa: self.ip, tha, tpa };
        FrameBuilder::ethernet(dst, self.mac).arp(arp).fill_to(60).build()
    }

    fn udp(self, to: Ipv4Addr, ttl: u8) -> Vec<u8> {
        let header = Ipv4 { ttl, ..Ipv4::new(self.ip, to) };
        FrameBuilder::ethernet(ROUTER, self.mac).ipv4(header).udp(4_000, 53).fill_to(60).build()
    }

    /// Answers the ARP request for it that has arrived among these frames.
    fn answer(self, fabric: &mut Fabric, arrived: &[(At, Vec<u8>)]) {
        let [(at, request)] = arrived else { panic!("{arrived:?}") };
        let key = key_of(request);
        assert_eq!(*at, self.at);
        assert_eq!(key.get(Field::ArpOp), 1);
        assert_eq!(key.get(Field::ArpTpa), u128::from(self.ip.to_bits()));
        let asker = Ipv4Addr::from(key.get(Field::ArpSpa) as u32);
        fabric.send(self.at, &self.arp(2, ROUTER, ROUTER, asker));
    }
}

fn key_of(frame: &[u8]) -> FlowKey {
    verify(frame).unwrap();
    extract(frame, &Meta::port(PortNo(1)))
}

fn router(version: Version) -> Fabric {
    let mut fabric = Fabric::new(&[AppName::Router], ROUTES);
    fabric.add_switch(7, 3, version);
    assert_eq!(fabric.errors, []);
    fabric
}

/// The one frame that has arrived, as it is read by the host there.
fn the_one(fabric: &mut Fabric) -> (At, FlowKey, Vec<u8>) {
    let mut arrived = fabric.arrived();
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    let (at, frame) = arrived.remove(0);
    (at, key_of(&frame), frame)
}

#[test]
fn the_router_answers_arp_and_ping() {
    for &version in Version::ALL {
        let mut fabric = router(version);
        let gateway = Ipv4Addr::new(10, 0, 1, 1);
        let broadcast = MacAddr([0xff; 6]);
        fabric.send(A.at, &A.arp(1, broadcast, MacAddr::default(), gateway));
        let (at, key, _) = the_one(&mut fabric);
        assert_eq!((at, key.get(Field::ArpOp)), (A.at, 2));
        assert_eq!(key.get(Field::ArpSha), u128::from(ROUTER.to_u64()));
        for address in [gateway, Ipv4Addr::new(10, 0, 2, 1)] {
            let ping = FrameBuilder::ethernet(ROUTER, A.mac).ipv4(Ipv4::new(A.ip, address));
            fabric.send(A.at, &ping.echo_request(1, 2).payload(b"ping").fill_to(60).build());
            let (at, key, _) = the_one(&mut fabric);
            assert_eq!((at, key.get(Field::Icmpv4Type)), (A.at, 0), "{version}");
            assert_eq!(key.get(Field::Ipv4Src), u128::from(address.to_bits()));
        }
        // Of another network, or not the sender's own address: not believed, not answered.
        let elsewhere = Host { ip: Ipv4Addr::new(10, 0, 2, 2), ..A };
        fabric.send(A.at, &elsewhere.arp(1, broadcast, MacAddr::default(), gateway));
        let mut feigned = A.arp(1, broadcast, MacAddr::default(), gateway);
        feigned[11] ^= 1;
        fabric.send(A.at, &feigned);
        assert_eq!(fabric.arrived(), []);
    }
}

#[test]
fn hosts_of_two_networks_talk_and_entries_take_over() {
    for &version in Version::ALL {
        let mut fabric = router(version);
        fabric.send(A.at, &A.udp(B.ip, 64));
        fabric.send(A.at, &A.udp(B.ip, 64));
        let arrived = fabric.arrived();
        B.answer(&mut fabric, &arrived);
        let arrived = fabric.arrived();
        assert_eq!(arrived.len(), 2, "both have waited");
        for (at, frame) in arrived {
            let key = key_of(&frame);
            assert_eq!((at, key.get(Field::EthDst)), (B.at, u128::from(B.mac.to_u64())));
            assert_eq!(key.get(Field::EthSrc), u128::from(ROUTER.to_u64()));
            assert_eq!(frame[22], 63, "TTL");
        }
        let before = fabric.packet_ins;
        fabric.send(A.at, &A.udp(B.ip, 64));
        let (_, _, frame) = the_one(&mut fabric);
        assert_eq!(frame[22], 63);
        let by_controller = !version.has_pipeline();
        assert_eq!(fabric.packet_ins - before, usize::from(by_controller), "{version}");
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn longest_prefix_decides_even_while_its_next_hop_is_unknown() {
    for &version in Version::ALL {
        let mut fabric = router(version);
        fabric.send(A.at, &A.udp(Ipv4Addr::new(192, 168, 1, 1), 64));
        let arrived = fabric.arrived();
        C.answer(&mut fabric, &arrived);
        let (at, key, _) = the_one(&mut fabric);
        assert_eq!((at, key.get(Field::EthDst)), (C.at, u128::from(C.mac.to_u64())));
        // Nearer, and back out of the port it came in by.
        fabric.send(A.at, &A.udp(Ipv4Addr::new(192, 168, 5, 1), 64));
        let arrived = fabric.arrived();
        D.answer(&mut fabric, &arrived);
        for _ in 0..2 {
            let (at, key, _) = the_one(&mut fabric);
            assert_eq!((at, key.get(Field::EthDst)), (D.at, u128::from(D.mac.to_u64())));
            fabric.send(A.at, &A.udp(Ipv4Addr::new(192, 168, 5, 1), 64));
        }
        the_one(&mut fabric);
        // From the other side.
        fabric.send(B.at, &B.udp(Ipv4Addr::new(192, 168, 5, 1), 64));
        let (at, ..) = the_one(&mut fabric);
        assert_eq!(at, D.at, "{version}");
    }
}

#[test]
fn the_sender_hears_why_a_packet_went_nowhere() {
    for &version in Version::ALL {
        let mut fabric = router(version);
        let complaint = |fabric: &mut Fabric| {
            let (at, key, _) = the_one(fabric);
            assert_eq!(at, A.at);
            (key.get(Field::Icmpv4Type), key.get(Field::Icmpv4Code))
        };
        fabric.send(A.at, &A.udp(Ipv4Addr::new(172, 16, 0, 1), 64));
        assert_eq!(complaint(&mut fabric), (3, 0), "no route");
        fabric.send(A.at, &A.udp(Ipv4Addr::new(10, 0, 1, 1), 64));
        assert_eq!(complaint(&mut fabric), (3, 3), "no such service");
        fabric.send(A.at, &A.udp(B.ip, 64));
        let arrived = fabric.arrived();
        B.answer(&mut fabric, &arrived);
        fabric.send(A.at, &A.udp(B.ip, 64));
        fabric.arrived();
        for ttl in [1, 0] {
            fabric.send(A.at, &A.udp(B.ip, ttl));
            assert_eq!(complaint(&mut fabric), (11, 0), "TTL {ttl} {version}");
        }
        fabric.send(A.at, &A.udp(Ipv4Addr::new(10, 0, 2, 77), 64));
        fabric.arrived();
        fabric.advance(seconds(5));
        let mut arrived = fabric.arrived();
        arrived.retain(|(at, _)| *at == A.at);
        assert_eq!(arrived.len(), 1);
        assert_eq!(key_of(&arrived[0].1).get(Field::Icmpv4Code), 1, "host unreachable");
    }
}

#[test]
fn a_scan_of_a_network_is_bounded_and_answers_still_come() {
    let mut fabric = router(Version::V1_3);
    for last in 3..=254 {
        fabric.send(A.at, &A.udp(Ipv4Addr::new(10, 0, 2, last), 64));
    }
    for host in 0..3_000_u32 {
        let address = Ipv4Addr::from(0xac10_0000 + host);
        fabric.send(A.at, &A.udp(address, 64));
    }
    let complaints = fabric.arrived().iter().filter(|(at, _)| *at == A.at).count();
    assert!(complaints <= 100, "{complaints} complaints in a second");
    fabric.advance(seconds(10));
    fabric.arrived();
    fabric.send(A.at, &A.udp(B.ip, 64));
    let arrived = fabric.arrived();
    B.answer(&mut fabric, &arrived);
    the_one(&mut fabric);
}

#[test]
fn damaged_frames_are_neither_answered_nor_a_panic() {
    let mut fabric = router(Version::V1_3);
    let whole = [A.udp(B.ip, 64), A.arp(1, ROUTER, ROUTER, Ipv4Addr::new(10, 0, 1, 1))];
    for frame in &whole {
        for len in 0..frame.len() {
            fabric.send(A.at, &frame[..len]);
        }
    }
    for seed in 0..2_000_u32 {
        let mut frame = whole[seed as usize % 2].clone();
        let at = 14 + seed as usize * 7 % (frame.len() - 14);
        frame[at] ^= (seed >> 3) as u8 | 1;
        fabric.send(A.at, &frame);
    }
    assert_eq!(fabric.errors, []);
}

#[test]
fn entries_go_with_a_port_and_come_again_with_it() {
    let mut fabric = router(Version::V1_3);
    fabric.send(A.at, &A.udp(B.ip, 64));
    let arrived = fabric.arrived();
    B.answer(&mut fabric, &arrived);
    fabric.arrived();
    let hop = "dec_ttl";
    assert_eq!(fabric.count_entries(7, hop), 2);
    fabric.set_port_up((7, 2), false);
    assert_eq!(fabric.count_entries(7, hop), 1, "that to the port is gone");
    fabric.set_port_up((7, 2), true);
    fabric.send(A.at, &A.udp(B.ip, 64));
    let arrived = fabric.arrived();
    B.answer(&mut fabric, &arrived);
    the_one(&mut fabric);
    fabric.advance(seconds(400));
    assert_eq!(fabric.count_entries(7, hop), 0, "asked for again after a while");
}

#[test]
fn settings_that_make_no_network_are_refused() {
    let interface = |address: &str| {
        format!("[[router.interface]]\nswitch = 1\nport = 1\naddress = \"{address}\"\n")
    };
    let two = |address: &str| {
        let other = interface(address).replace("port = 1", "port = 2");
        format!("{}{other}", interface("10.0.1.1/24"))
    };
    let route = |to: &str, via: &str| {
        let route = format!("[[router.route]]\nswitch = 1\nto = \"{to}\"\nvia = \"{via}\"\n");
        format!("{}{route}", interface("10.0.1.1/24"))
    };
    for (text, parts) in [
        (interface("10.0.1.1"), &["4:", "address", "10.1.0.1/16"][..]),
        (interface("10.0.1.0/24"), &["1:", "router.interface: address", "host"]),
        (interface("10.0.1.255/24"), &["1:", "host"]),
        (interface("10.0.1.1/33"), &["4:"]),
        (interface("10.0.1.1/08"), &["4:", "`08` begins with a zero"]),
        (two("10.0.0.1/16"), &["5:", "overlaps"]),
        (two("10.0.2.1/24").replace("port = 2", "port = 1"), &["5:", "port 1"]),
        (route("10.1.1.1/16", "10.0.1.2"), &["5:", "10.1.0.0/16"]),
        (route("10.2.0.0/16", "10.9.1.2"), &["5:", "via"]),
        (route("10.0.1.0/24", "10.0.1.2"), &["5:", "network of an interface"]),
        (route("10.2.0.0/16", "here"), &["8:", "via"]),
    ] {
        let error = AppConfig::parse(&text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?} about {text:?}");
        }
    }
}
