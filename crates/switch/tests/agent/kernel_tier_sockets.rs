//! Connections of kernel sockets through the kernel tier, which rewrites their headers: the sender
//! left checksums and segments to its device.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use netdev::sys::link::{Rtnl, VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use openflow::flow::FlowModCommand;
use openflow::{MacAddr, Message, Version};

use crate::harness::Switch;
use crate::tier_rig::{flow, kernel_hits};
use crate::veth::in_namespace;

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
                // An address that is not there is the switch's, which translates.
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
    [there, back].map(|text| flow(&text, FlowModCommand::Add))
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
