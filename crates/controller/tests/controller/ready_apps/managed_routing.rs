//! Routers that are managed over REST: addresses and routes that come and go under traffic.

use super::fabric::{At, Fabric, seconds};
use controller::AppList;
use controller::apps::{
    ManagedRouter, ManagedRouters, NetworkPrefix, RouterChange, RouterRefusal, RouterUpdate,
};
use openflow::{DatapathId, Field, MacAddr, PortNo, Version};
use packet::build::{Arp, FrameBuilder, Ipv4};
use packet::{FlowKey, Meta, extract, verify};
use std::net::Ipv4Addr;
use std::sync::Arc;

const DPID: DatapathId = DatapathId(7);
const BROADCAST: MacAddr = MacAddr([0xff; 6]);
/// The VLANs that the tests are run in.
const VLANS: [u16; 2] = [0, 2];

#[derive(Clone, Copy)]
struct Host {
    port: u32,
    ip: Ipv4Addr,
    mac: MacAddr,
    vlan: u16,
}

const fn host(port: u32, ip: Ipv4Addr, vlan: u16) -> Host {
    let [_, _, third, last] = ip.octets();
    Host { port, ip, mac: MacAddr([4, 0, 0, 0, third, last]), vlan }
}

/// The router's Ethernet address at a port, as the test kit numbers them.
fn router_mac(port: u32) -> MacAddr {
    MacAddr::from_u64(0x0200_0007_0000 | u64::from(port))
}

impl Host {
    fn frame(self, dst: MacAddr) -> FrameBuilder {
        let frame = FrameBuilder::ethernet(dst, self.mac);
        if self.vlan == 0 { frame } else { frame.vlan(0, self.vlan) }
    }

    fn at(self) -> At {
        (DPID.0, self.port)
    }

    fn arp(self, op: u16, tpa: Ipv4Addr) -> Vec<u8> {
        let dst = if op == 1 { BROADCAST } else { router_mac(self.port) };
        let arp = Arp { op, sha: self.mac, spa: self.ip, tha: MacAddr::default(), tpa };
        self.frame(dst).arp(arp).fill_to(60).build()
    }

    fn udp(self, to: Ipv4Addr, ttl: u8) -> Vec<u8> {
        let header = Ipv4 { ttl, ..Ipv4::new(self.ip, to) };
        self.frame(router_mac(self.port)).ipv4(header).udp(4_000, 53).fill_to(64).build()
    }
}

fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn address(text: &str) -> RouterChange {
    RouterChange::AddAddress(NetworkPrefix::try_from(text.to_owned()).unwrap())
}

fn route(to: &str, via: &str) -> RouterChange {
    let to = NetworkPrefix::try_from(to.to_owned()).unwrap();
    RouterChange::AddRoute { to, via: ip(via) }
}

struct Managed {
    fabric: Fabric,
    routers: Arc<ManagedRouters>,
    version: Version,
    vlan: u16,
}

impl Managed {
    fn new(version: Version, vlan: u16) -> Self {
        let routers: Arc<ManagedRouters> = Arc::default();
        let shared = Arc::clone(&routers);
        let apps = AppList::one(move || ManagedRouter::new(Arc::clone(&shared)));
        let mut fabric = Fabric::of(apps);
        fabric.add_switch(DPID.0, 3, version);
        Self { fabric, routers, version, vlan }
    }

    /// One with two networks, which its hosts have heard of.
    fn with_networks(version: Version, vlan: u16) -> Self {
        let mut managed = Self::new(version, vlan);
        managed.change(address("10.0.1.1/24"));
        managed.change(address("10.0.2.1/24"));
        managed.fabric.arrived();
        managed
    }

    fn try_change(&mut self, change: RouterChange) -> Result<RouterUpdate, RouterRefusal> {
        let info = self.fabric.network.handle().switch(DPID).unwrap();
        let ports: Vec<_> = info.ports.values().cloned().collect();
        self.routers.change(DPID, self.version, &ports, self.vlan, change)
    }

    fn change(&mut self, change: RouterChange) -> Vec<u16> {
        let update = self.try_change(change).unwrap();
        self.fabric.send_all(DPID.0, update.messages);
        self.fabric.send_all(DPID.0, update.questions);
        assert_eq!(self.fabric.errors, []);
        update.ids
    }

    fn a(&self) -> Host {
        host(1, Ipv4Addr::new(10, 0, 1, 2), self.vlan)
    }

    fn b(&self) -> Host {
        host(2, Ipv4Addr::new(10, 0, 2, 2), self.vlan)
    }

    fn send(&mut self, from: Host, frame: &[u8]) {
        self.fabric.send(from.at(), frame);
    }

    /// Packets that have arrived: ports and keys, in the VLAN.
    fn arrived(&mut self) -> Vec<(u32, FlowKey, Vec<u8>)> {
        let arrived = self.fabric.arrived().into_iter();
        let read = arrived.map(|((_, port), frame)| {
            verify(&frame).unwrap();
            let key = extract(&frame, &Meta::port(PortNo(port)));
            assert_eq!(key.get(Field::VlanVid) & 0xfff, u128::from(self.vlan));
            (port, key, frame)
        });
        read.collect()
    }

    fn the_one(&mut self) -> (u32, FlowKey, Vec<u8>) {
        let mut arrived = self.arrived();
        assert_eq!(arrived.len(), 1, "{arrived:?}");
        arrived.remove(0)
    }

    /// The TTL of a frame.
    fn ttl(&self, frame: &[u8]) -> u8 {
        frame[if self.vlan == 0 { 22 } else { 26 }]
    }

    fn everywhere(test: impl Fn(Self)) {
        for &version in Version::ALL {
            for vlan in VLANS {
                test(Self::with_networks(version, vlan));
            }
        }
    }
}

#[test]
fn a_switch_is_no_router_before_its_first_address() {
    let mut managed = Managed::new(Version::V1_3, 0);
    assert_eq!(managed.fabric.entries(DPID.0), Vec::<String>::new());
    assert_eq!(managed.change(RouterChange::DeleteAddresses(None)), Vec::<u16>::new());
    assert_eq!(managed.fabric.entries(DPID.0), Vec::<String>::new());
    assert_eq!(managed.change(address("10.0.1.1/24")), [1]);
    let announced = managed.arrived();
    assert_eq!(announced.len(), 3, "out of every port");
    for (port, key, _) in announced {
        assert_eq!(key.get(Field::ArpSpa), key.get(Field::ArpTpa));
        assert_eq!(key.get(Field::ArpSha), u128::from(router_mac(port).to_u64()));
    }
}

#[test]
fn it_answers_arp_and_ping_and_switches_within_a_network() {
    Managed::everywhere(|mut managed| {
        let (a, own) = (managed.a(), ip("10.0.1.1"));
        managed.send(a, &a.arp(1, own));
        let (port, key, _) = managed.the_one();
        assert_eq!((port, key.get(Field::ArpOp)), (1, 2));
        assert_eq!(key.get(Field::ArpSha), u128::from(router_mac(1).to_u64()));
        let ping = a.frame(router_mac(1)).ipv4(Ipv4::new(a.ip, own)).echo_request(1, 2);
        managed.send(a, &ping.payload(b"ping").fill_to(64).build());
        let (port, key, _) = managed.the_one();
        assert_eq!((port, key.get(Field::Icmpv4Type)), (1, 0));
        managed.send(a, &a.udp(own, 64));
        let (_, key, _) = managed.the_one();
        assert_eq!((key.get(Field::Icmpv4Type), key.get(Field::Icmpv4Code)), (3, 3));
        // A question of one host for another, and a packet between them, as a switch does it.
        managed.send(a, &a.arp(1, ip("10.0.1.9")));
        assert_eq!(managed.arrived().len(), 2);
        let other = MacAddr([4, 0, 0, 0, 1, 9]);
        let near = a.frame(other).ipv4(Ipv4::new(a.ip, ip("10.0.1.9"))).udp(1, 2).fill_to(64);
        managed.send(a, &near.build());
        for (_, key, frame) in managed.arrived() {
            assert_eq!(key.get(Field::EthDst), u128::from(other.to_u64()));
            assert_eq!(managed.ttl(&frame), 64);
        }
    });
}

#[test]
fn networks_talk_and_entries_take_over() {
    Managed::everywhere(|mut managed| {
        let (a, b) = (managed.a(), managed.b());
        managed.send(a, &a.udp(b.ip, 64));
        let asked = managed.arrived();
        assert_eq!(asked.iter().map(|(port, ..)| *port).collect::<Vec<_>>(), [2, 3]);
        assert!(asked.iter().all(|(_, key, _)| key.get(Field::ArpTpa) == b.ip.to_bits().into()));
        managed.send(b, &b.arp(2, ip("10.0.2.1")));
        let (port, key, frame) = managed.the_one();
        assert_eq!((port, key.get(Field::EthDst)), (2, u128::from(b.mac.to_u64())));
        assert_eq!(key.get(Field::EthSrc), u128::from(router_mac(2).to_u64()));
        assert_eq!(managed.ttl(&frame), 63);
        let before = managed.fabric.packet_ins;
        managed.send(a, &a.udp(b.ip, 64));
        let (_, _, frame) = managed.the_one();
        assert_eq!(managed.ttl(&frame), 63);
        let by_controller = !managed.version.has_pipeline();
        assert_eq!(managed.fabric.packet_ins - before, usize::from(by_controller));
        managed.send(a, &a.udp(b.ip, 1));
        let (port, key, _) = managed.the_one();
        assert_eq!((port, key.get(Field::Icmpv4Type)), (1, 11), "{}", managed.version);
        // Nobody is there.
        managed.send(a, &a.udp(ip("10.0.2.77"), 64));
        managed.arrived();
        managed.fabric.advance(seconds(5));
        let to_a: Vec<_> = managed.arrived().into_iter().filter(|(port, ..)| *port == 1).collect();
        let is_complaint = |key: &FlowKey| key.has(Field::Icmpv4Type);
        assert_eq!(to_a.iter().filter(|(_, key, _)| is_complaint(key)).count(), 1, "{to_a:?}");
        assert_eq!(managed.fabric.errors, []);
    });
}

#[test]
fn a_route_leads_to_its_gateway_once_that_is_heard() {
    Managed::everywhere(|mut managed| {
        let (a, gateway) = (managed.a(), host(2, ip("10.0.2.9"), managed.vlan));
        let far = ip("192.0.2.1");
        managed.send(a, &a.udp(far, 64));
        assert_eq!(managed.arrived().len(), 0, "no route");
        assert_eq!(managed.change(route("0.0.0.0/0", "10.0.2.9")), [1]);
        let asked = managed.arrived();
        assert!(
            asked.iter().all(|(_, key, _)| key.get(Field::ArpTpa) == gateway.ip.to_bits().into())
        );
        let heard = |managed: &Managed| {
            let shown = managed.routers.show(DPID);
            let router = shown.iter().find(|router| router.vlan == managed.vlan).unwrap();
            router.routes[0].heard_at.is_some()
        };
        assert!(!heard(&managed));
        managed.send(gateway, &gateway.arp(2, ip("10.0.2.1")));
        assert!(heard(&managed));
        for _ in 0..2 {
            managed.send(a, &a.udp(far, 64));
            let (port, key, frame) = managed.the_one();
            assert_eq!((port, key.get(Field::EthDst)), (2, u128::from(gateway.mac.to_u64())));
            assert_eq!(managed.ttl(&frame), 63);
        }
        // A host beside the gateway: back out of the port that it came in by.
        let b = managed.b();
        managed.send(b, &b.udp(far, 64));
        assert_eq!(managed.the_one().0, 2);
        // The gateway is gone with its port, and is asked for again.
        managed.fabric.set_port_up((DPID.0, 2), false);
        assert!(!heard(&managed));
        assert_eq!(managed.fabric.count_entries(DPID.0, "dec_ttl"), 0);
        managed.fabric.set_port_up((DPID.0, 2), true);
        managed.arrived();
        managed.fabric.advance(seconds(11));
        assert!(managed.arrived().iter().any(|(port, ..)| *port == 2));
        managed.send(gateway, &gateway.arp(2, ip("10.0.2.1")));
        // The address that the gateway needs stays; without the route nothing is forwarded.
        let update = managed.try_change(RouterChange::DeleteAddresses(Some(2))).unwrap();
        assert_eq!((update.ids, update.kept), (vec![], vec![2]));
        assert_eq!(managed.change(RouterChange::DeleteRoutes(None)), [1]);
        managed.send(a, &a.udp(far, 64));
        assert_eq!(managed.arrived().len(), 0, "{}", managed.version);
    });
}

#[test]
fn gone_parts_leave_no_entry_and_refused_ones_change_nothing() {
    for &version in Version::ALL {
        let mut managed = Managed::with_networks(version, 2);
        let before = managed.fabric.entries(DPID.0);
        let refused = managed.try_change(address("10.0.1.77/25")).map(drop);
        assert_eq!(refused, Err(RouterRefusal::AddressOverlaps(1)));
        let update = managed.try_change(address("10.0.3.1/24")).unwrap();
        let undo = update.undo_messages.clone();
        managed.fabric.send_all(DPID.0, update.messages.clone());
        assert!(managed.fabric.entries(DPID.0).len() > before.len());
        managed.routers.undo(update);
        managed.fabric.send_all(DPID.0, undo);
        let without_counters = |entries: Vec<String>| -> Vec<String> {
            let kept = |entry: &String| entry.split_once("priority").map(|(_, it)| it.to_owned());
            entries.iter().filter_map(kept).collect()
        };
        assert_eq!(without_counters(managed.fabric.entries(DPID.0)), without_counters(before));
        let (a, b) = (managed.a(), managed.b());
        managed.send(a, &a.udp(b.ip, 64));
        managed.send(b, &b.arp(2, ip("10.0.2.1")));
        assert_eq!(managed.change(RouterChange::DeleteAddresses(None)), [1, 2]);
        assert_eq!(managed.fabric.count_entries(DPID.0, "dl_vlan=2"), 0, "{version}");
        assert_eq!(managed.fabric.count_entries(DPID.0, "dec_ttl"), 0);
        assert_eq!(managed.routers.show(DPID).len(), 1, "the VLAN's router is gone");
    }
}

#[test]
fn a_switch_that_comes_again_is_a_router_again() {
    for &version in Version::ALL {
        let mut managed = Managed::with_networks(version, 2);
        managed.change(route("192.168.0.0/16", "10.0.2.9"));
        let entries = managed.fabric.entries(DPID.0).len();
        managed.fabric.disconnect(DPID.0);
        managed.fabric.arrived();
        managed.fabric.add_switch(DPID.0, 3, version);
        assert_eq!(managed.fabric.entries(DPID.0).len(), entries);
        assert_eq!(managed.arrived().len(), 3, "the gateway is asked for");
        let a = managed.a();
        managed.send(a, &a.arp(1, ip("10.0.1.1")));
        assert_eq!(managed.the_one().0, 1);
    }
}

#[test]
fn frames_of_nobody_are_neither_believed_nor_a_panic() {
    Managed::everywhere(|mut managed| {
        let (a, own) = (managed.a(), ip("10.0.1.1"));
        let mut feigned = a.arp(1, own);
        feigned[11] ^= 1;
        managed.send(a, &feigned);
        managed.send(a, &Host { ip: own, ..a }.arp(1, own));
        managed.send(a, &Host { ip: ip("172.16.0.1"), ..a }.arp(1, own));
        let mut astray = a.udp(ip("10.0.2.2"), 64);
        astray[5] ^= 0x40;
        managed.send(a, &astray);
        assert_eq!(managed.arrived().len(), 0);
        for frame in [a.udp(own, 64), a.arp(1, own), a.udp(ip("10.0.2.2"), 64)] {
            for len in 0..frame.len() {
                managed.send(a, &frame[..len]);
            }
            for seed in 0..500_usize {
                let mut frame = frame.clone();
                let at = 14 + seed * 7 % (frame.len() - 14);
                frame[at] ^= (seed >> 3) as u8 | 1;
                managed.send(a, &frame);
            }
        }
        assert_eq!(managed.fabric.errors, []);
    });
}
