//! Headers that the kernel tier rewrites: byte for byte what the worker would send, also where the
//! sender left checksums and segments to its device.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use netdev::sys::link::{Rtnl, VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use openflow::Message;
use openflow::flow::FlowModCommand;
use openflow::text::parse_flow_mod;
use openflow::{MacAddr, Version};
use packet::build::{FrameBuilder, Ipv4};

use crate::harness::{Switch, until};
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

/// A host in a namespace of its own, behind a port of the switch.
struct Station {
    namespace: Namespace,
    mac: [u8; 6],
    address: Ipv4Addr,
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
        let address = Ipv4Addr::new(10, 0, 0, number);
        let set_up = || {
            let rtnl = Rtnl::open().unwrap();
            netdev::sys::link::quiet_ipv6("eth0").unwrap();
            rtnl.set_up("eth0", true).unwrap();
            rtnl.add_address("eth0", IpAddr::V4(address), 24).unwrap();
            // Whoever is not there is the switch, which translates.
            for last in [1, 2, 100] {
                let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
                if last != number {
                    rtnl.add_neighbour("eth0", other, [2, 0, 0, 0, 0, 100]).unwrap();
                }
            }
        };
        namespace.enter(set_up).unwrap();
        Self { namespace, mac, address }
    }
}

/// A client that speaks to 10.0.0.100, port 80, and a server at 10.0.0.2, port 8080, that sees
/// 10.0.0.100 as its client: both ways through kernel sockets, which leave checksums and segments
/// to their devices.
#[test]
#[ignore = "needs root"]
fn connections_of_kernel_sockets_are_translated() {
    const BYTES: usize = 4 << 20;
    in_namespace(|rtnl| {
        let [client, server] = [1, 2].map(|number| Station::new(rtnl, number));
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "caches = \"frame,key,kernel\"\n");
        let mut controller = switch.controller(Version::V1_3);
        let text = |mac: [u8; 6]| MacAddr(mac).to_string();
        controller.send(&add(&format!(
            "in_port=1,eth_type=0x800,ip_proto=6,ip_dst=10.0.0.100,tcp_dst=80,actions=dec_nw_ttl,\
             set_field:{}->eth_dst,set_field:10.0.0.100->ip_src,set_field:{}->ip_dst,\
             set_field:8080->tcp_dst,output:2",
            text(server.mac),
            server.address
        )));
        controller.send(&add(&format!(
            "in_port=2,eth_type=0x800,ip_proto=6,ip_dst=10.0.0.100,tcp_src=8080,actions=\
             dec_nw_ttl,set_field:{}->eth_dst,set_field:10.0.0.100->ip_src,set_field:{}->ip_dst,\
             set_field:80->tcp_src,output:1",
            text(client.mac),
            client.address
        )));
        controller.barrier();
        let listener = server.namespace.enter(|| TcpListener::bind("10.0.0.2:8080").unwrap());
        let listener = listener.unwrap();
        let echo = std::thread::spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
            (all.len(), peer.ip())
        });
        let to = "10.0.0.100:80".parse().unwrap();
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(30)).unwrap();
        let mut stream = client.namespace.enter(connect).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let sent: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8).collect();
        stream.write_all(&sent).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert!(back == sent, "{} bytes came back", back.len());
        let (seen, peer) = echo.join().unwrap();
        assert_eq!((seen, peer), (BYTES, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100))));
        let hits = kernel_hits(&switch);
        // Packets of a wire: at least those of the bytes, most of them by the kernel.
        assert!(hits > (2 * BYTES / 1_500 / 2) as u64, "{hits}");
        switch.stop();
    });
}
