//! Headers that the kernel tier rewrites: byte for byte what the worker would send, also where the
//! sender left checksums and segments to its device.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use netdev::sys::link::{Rtnl, VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use openflow::flow::FlowModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::parse_flow_mod;
use openflow::{MacAddr, Message, PortNo, Version};
use packet::build::{FrameBuilder, Ipv4};

use crate::harness::{Host, Switch, until};
use crate::kernel_tier::{kernel_hits, with_tier};
use crate::veth::in_namespace;

fn add(text: &str) -> Message {
    Message::FlowMod(parse_flow_mod(text, FlowModCommand::Add).unwrap())
}

/// A frame from an Ethernet address, an address of IPv4 and a port, with a TTL.
fn udp(mac: u64, last: u8, port: u16, ttl: u8) -> Vec<u8> {
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(mac + 1), MacAddr::from_u64(mac));
    let mut addresses = Ipv4::new([10, 0, 0, last].into(), [10, 0, 0, 99].into());
    addresses.ttl = ttl;
    frame.ipv4(addresses).udp(port, 2).payload(&[7; 40]).build()
}

#[test]
#[ignore = "needs root"]
fn headers_are_rewritten_with_their_checksums() {
    with_tier(|switch, [one, two, _], _| {
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&add("in_port=1,eth_type=0x800,ip_proto=17,actions=dec_nw_ttl,\
             set_field:02:00:00:00:00:10->eth_src,set_field:02:00:00:00:00:11->eth_dst,\
             set_field:10.0.0.77->ip_src,set_field:4242->udp_src,output:2"));
        controller.barrier();
        let (given, expected) = (udp(2, 1, 1, 64), udp(0x0200_0000_0010, 77, 4242, 63));
        let before = kernel_hits(switch);
        until("a decision of the kernel", || {
            one.send(&given);
            assert_eq!(two.receive(), expected);
            (kernel_hits(switch) > before + 5).then_some(())
        });
        // No checksum stays none.
        let (mut given, mut expected) = (given, expected);
        for frame in [&mut given, &mut expected] {
            frame[40..42].fill(0);
        }
        let before = kernel_hits(switch);
        one.send(&given);
        assert_eq!(two.receive(), expected);
        assert_eq!(kernel_hits(switch), before + 1);
        // A TTL that is used up is the worker's business.
        let last = udp(2, 1, 1, 1);
        one.send(&last);
        one.send(&given);
        assert_eq!(two.receive(), expected);
        assert_eq!((two.received(), kernel_hits(switch)), (0, before + 2));
    });
}

/// A frame that may be shorter than a wire allows.
fn short(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34]);
    bytes[len - 1] = 9;
    bytes
}

#[test]
#[ignore = "needs root"]
fn short_and_full_frames_are_the_kernels_business_too() {
    with_tier(|switch, [one, two, _], rtnl| {
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&add("in_port=1,actions=output:2"));
        controller.barrier();
        let full = rtnl.link("sw2").unwrap().mtu as usize + 14;
        let tagged = |len: usize| {
            let mut frame = short(len);
            frame.splice(12..12, [0x81, 0, 0, 7]);
            frame
        };
        for given in [short(42), short(59), tagged(42), short(full), tagged(full)] {
            let mut expected = given.clone();
            expected.resize(given.len().max(60), 0);
            let before = kernel_hits(switch);
            until("a decision of the kernel", || {
                one.send(&given);
                assert_eq!(two.receive(), expected);
                (kernel_hits(switch) > before + 3).then_some(())
            });
        }
        let counts = |controller: &mut crate::harness::Controller| {
            let body = MultipartRequestBody::PortStats(PortNo::ANY);
            let MultipartReplyBody::PortStats(ports) = controller.multipart(body) else { panic!() };
            [(ports[0].rx_packets, ports[0].rx_bytes), (ports[1].tx_packets, ports[1].tx_bytes)]
        };
        let before = counts(&mut controller);
        let hits = kernel_hits(switch);
        for _ in 0..5 {
            one.send(&short(42));
            two.receive();
        }
        assert_eq!(kernel_hits(switch), hits + 5);
        let after = counts(&mut controller);
        let grown = [0, 1].map(|at| (after[at].0 - before[at].0, after[at].1 - before[at].1));
        assert_eq!(grown, [(5, 5 * 42), (5, 5 * 60)]);
        // The tag that a pop leaves does not count for the MTU.
        ["sw1", "host1"].iter().for_each(|name| rtnl.set_mtu(name, 1_508).unwrap());
        *one = Host::open("af_packet:host1");
        controller.send(&add("priority=40000,in_port=1,vlan_vid=0x1009,actions=pop_vlan,output:2"));
        controller.barrier();
        let mut twice = tagged(full);
        twice.splice(12..12, [0x81, 0, 0, 9]);
        let before = kernel_hits(switch);
        until("a decision of the kernel", || {
            one.send(&twice);
            assert_eq!(two.receive(), tagged(full));
            (kernel_hits(switch) > before + 3).then_some(())
        });
    });
}

#[test]
#[ignore = "needs root"]
fn tags_come_and_go_in_the_kernel() {
    with_tier(|switch, [one, two, three], _| {
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&add("in_port=1,vlan_vid=0,eth_type=0x800,actions=dec_nw_ttl,\
             push_vlan:0x8100,set_field:0x1123->vlan_vid,set_field:6->vlan_pcp,output:2"));
        controller.send(&add("in_port=1,vlan_vid=0x1005,actions=pop_vlan,output:3"));
        controller.send(&add("in_port=1,vlan_vid=0x1006,eth_type=0x800,actions=\
             set_field:0x1007->vlan_vid,set_field:10.0.0.44->ip_dst,output:2"));
        controller.barrier();
        let plain = |ttl| udp(2, 1, 1, ttl);
        let tagged = |tci: u16, mut frame: Vec<u8>| {
            let [high, low] = tci.to_be_bytes();
            frame.splice(12..12, [0x81, 0, high, low]);
            frame
        };
        let mut other = FrameBuilder::ethernet(MacAddr::from_u64(3), MacAddr::from_u64(2));
        other = other.vlan(3, 7);
        let to = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 44].into());
        let other_given = tagged(3 << 13 | 6, plain(to.ttl));
        let other = other.ipv4(to).udp(1, 2).payload(&[7; 40]).build();
        let mut cases = [
            (plain(9), tagged(6 << 13 | 0x123, plain(8)), false),
            (tagged(5, plain(9)), plain(9), true),
            (other_given, other, false),
        ];
        for (given, expected, is_third) in &mut cases {
            let to = if *is_third { &mut *three } else { &mut *two };
            let before = kernel_hits(switch);
            until("a decision of the kernel", || {
                one.send(given);
                assert_eq!(to.receive(), *expected);
                (kernel_hits(switch) > before + 5).then_some(())
            });
        }
        // What leaves has another length than what came.
        let body = MultipartRequestBody::PortStats(PortNo::ANY);
        let MultipartReplyBody::PortStats(ports) = controller.multipart(body) else { panic!() };
        let stats = &ports[2];
        let expected = stats.tx_packets * plain(9).len() as u64;
        assert!(stats.tx_packets > 5 && stats.tx_bytes == expected, "{stats:?}");
    });
}

/// A host in a namespace of its own, behind a port of the switch.
struct Station {
    namespace: Namespace,
    mac: [u8; 6],
}

/// The address of a host, of either family.
fn address(last: u8, is_v6: bool) -> IpAddr {
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into());
    if is_v6 { v6.into() } else { Ipv4Addr::new(10, 0, 0, last).into() }
}

impl Station {
    fn new(rtnl: &Rtnl, number: u8) -> Self {
        let namespace = Namespace::new().unwrap();
        let (port, mac) = (format!("sw{number}"), [2, 0, 0, 0, 0, number]);
        let there = VethEnd { mac: Some(mac), ..VethEnd::new("eth0") };
        let there_in = Some(&namespace);
        rtnl.add_veth(&VethPair { here: VethEnd::new(&port), there, there_in }).unwrap();
        netdev::sys::link::quiet_ipv6(&port).unwrap();
        rtnl.set_up(&port, true).unwrap();
        let set_up = || {
            let rtnl = Rtnl::open().unwrap();
            netdev::sys::link::quiet_ipv6("eth0").unwrap();
            rtnl.set_up("eth0", true).unwrap();
            for is_v6 in [false, true] {
                let len = if is_v6 { 64 } else { 24 };
                rtnl.add_address("eth0", address(number, is_v6), len).unwrap();
                // Whoever is not there is the switch, which translates.
                for last in [1, 2, 100].into_iter().filter(|last| *last != number) {
                    let other = address(last, is_v6);
                    rtnl.add_neighbour("eth0", other, [2, 0, 0, 0, 0, 100]).unwrap();
                }
            }
        };
        namespace.enter(set_up).unwrap();
        Self { namespace, mac }
    }
}

/// The two entries that translate connections of a family.
fn translations(client: &Station, server: &Station, is_v6: bool) -> [Message; 2] {
    let (eth_type, ip) = if is_v6 { ("0x86dd", "ipv6") } else { ("0x800", "ipv4") };
    let front = address(100, is_v6);
    let [client_ip, server_ip] = [1, 2].map(|last| address(last, is_v6));
    let [client_mac, server_mac] = [client, server].map(|station| MacAddr(station.mac));
    let there = format!(
        "in_port=1,eth_type={eth_type},ip_proto=6,{ip}_dst={front},tcp_dst=80,actions=dec_nw_ttl,\
         set_field:{server_mac}->eth_dst,set_field:{front}->{ip}_src,\
         set_field:{server_ip}->{ip}_dst,set_field:8080->tcp_dst,output:2"
    );
    let back = format!(
        "in_port=2,eth_type={eth_type},ip_proto=6,{ip}_dst={front},tcp_src=8080,actions=\
         dec_nw_ttl,set_field:{client_mac}->eth_dst,set_field:{front}->{ip}_src,\
         set_field:{client_ip}->{ip}_dst,set_field:80->tcp_src,output:1"
    );
    [add(&there), add(&back)]
}

/// A client that speaks to host 100, port 80, and a server, host 2, port 8080, that sees host 100
/// as its client: both ways through kernel sockets, which leave checksums and segments to their
/// devices.
#[test]
#[ignore = "needs root"]
fn connections_of_kernel_sockets_are_translated() {
    const BYTES: usize = 4 << 20;
    in_namespace(|rtnl| {
        let [client, server] = [1, 2].map(|number| Station::new(rtnl, number));
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "caches = \"frame,key,kernel\"\n");
        let mut controller = switch.controller(Version::V1_3);
        for is_v6 in [false, true] {
            for entry in translations(&client, &server, is_v6) {
                controller.send(&entry);
            }
            controller.barrier();
            let before = kernel_hits(&switch);
            let own = SocketAddr::new(address(2, is_v6), 8080);
            let listener = server.namespace.enter(|| TcpListener::bind(own).unwrap()).unwrap();
            let echo = std::thread::spawn(move || {
                let (mut stream, peer) = listener.accept().unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                stream.write_all(&all).unwrap();
                (all.len(), peer.ip())
            });
            let to = SocketAddr::new(address(100, is_v6), 80);
            let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(30)).unwrap();
            let mut stream = client.namespace.enter(connect).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let sent: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8).collect();
            stream.write_all(&sent).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert!(back == sent, "{} bytes came back", back.len());
            assert_eq!(echo.join().unwrap(), (BYTES, address(100, is_v6)));
            let hits = kernel_hits(&switch) - before;
            // Packets of a wire: at least those of the bytes, most of them by the kernel.
            assert!(hits > (2 * BYTES / 1_500 / 2) as u64, "{hits}");
        }
        switch.stop();
    });
}
