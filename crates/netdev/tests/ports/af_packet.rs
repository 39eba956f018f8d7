//! `af_packet` between kernels that leave everything to their network card: what arrives must be
//! frames of a wire all the same.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use netdev::sys::udp::set_segment_size;
use netdev::{Port, open_text};
use packet::{Batch, PacketBuf};

use crate::testbed::{Forwarder, Host, Line, MAC_A, PATIENCE, line, until, v4, v6};

fn forwarder(line: &Line) -> Forwarder {
    Forwarder::start(&line.switch.ns, ["af_packet:sa", "af_packet:sb"])
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + n / 251) as u8).collect()
}

/// Sends `len` bytes from a to b and back over TCP and compares.
fn tcp_echo(line: &Line, len: usize, from: IpAddr, to: IpAddr) {
    let listener = line.b.ns.enter(|| TcpListener::bind((to, 7)).unwrap()).unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        peer
    });
    let mut stream = line.a.ns.enter(|| TcpStream::connect((to, 7)).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent = pattern(len);
    stream.write_all(&sent).unwrap();
    let mut back = vec![0; len];
    stream.read_exact(&mut back).unwrap();
    assert!(back == sent, "the bytes came back changed");
    assert_eq!(echo.join().unwrap().ip(), from);
}

#[test]
#[ignore = "needs root"]
fn tcp_in_bulk_passes_with_offloads_on() {
    let line = line(1_500);
    let forwarder = forwarder(&line);
    tcp_echo(&line, 20_000_000, v4(1), v4(2));
    tcp_echo(&line, 20_000_000, v6(1), v6(2));
    let counters = forwarder.stop();
    for counters in counters {
        assert_eq!((counters.rx_errors, counters.tx_errors), (0, 0), "{counters:?}");
        // Frames of a wire: no longer than the MTU, on average as well.
        assert!(counters.rx_bytes / counters.rx_packets <= 1_514, "{counters:?}");
        assert!(counters.rx_packets > 2 * 20_000_000 / 1_500, "{counters:?}");
    }
}

#[test]
#[ignore = "needs root"]
fn tcp_passes_jumbo_frames() {
    let line = line(9_000);
    let forwarder = forwarder(&line);
    tcp_echo(&line, 5_000_000, v4(1), v4(2));
    let [a, _] = forwarder.stop();
    assert_eq!((a.rx_errors, a.tx_errors), (0, 0), "{a:?}");
    assert!(a.rx_bytes / a.rx_packets > 4_000, "{a:?}");
}

#[test]
#[ignore = "needs root"]
fn tcp_passes_between_a_tap_and_a_veth() {
    for options in ["", "?vnet_hdr=true"] {
        let line = line(1_500);
        // Host a loses its veth and gets a TAP device in its place.
        line.a.rtnl.delete("va").unwrap();
        let open = |host: &Host, spec: &str| host.ns.enter(|| open_text(spec).unwrap()).unwrap();
        let tap = open(&line.a, &format!("tap:t0{options}"));
        line.a.rtnl.set_mac("t0", MAC_A).unwrap();
        line.a.configure("t0", 1);
        let forwarder = Forwarder::join([tap, open(&line.switch, "af_packet:sb")]);
        tcp_echo(&line, 5_000_000, v4(1), v4(2));
        let counters = forwarder.stop();
        for counters in counters {
            assert_eq!((counters.rx_errors, counters.tx_errors), (0, 0), "{counters:?}");
            assert!(counters.rx_bytes / counters.rx_packets <= 1_514, "{counters:?}");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn udp_and_udp_gso_pass_with_offloads_on() {
    let line = line(1_500);
    let forwarder = forwarder(&line);
    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let receiver = line.b.ns.enter(|| UdpSocket::bind((to, 5_000)).unwrap()).unwrap();
        let sender = line.a.ns.enter(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = [0; 2_000];
        for len in [0, 1, 2, 17, 1_000, 1_451, 1_452] {
            let sent = pattern(len);
            sender.send_to(&sent, (to, 5_000)).unwrap();
            let got = receiver.recv(&mut bytes).unwrap();
            assert_eq!(bytes[..got], sent);
        }
        set_segment_size(&sender, 1_000).unwrap();
        let sent = pattern(10_300);
        sender.send_to(&sent, (to, 5_000)).unwrap();
        for chunk in sent.chunks(1_000) {
            let got = receiver.recv(&mut bytes).unwrap();
            assert_eq!(bytes[..got], *chunk);
        }
    }
    let [a, b] = forwarder.stop();
    assert_eq!((a.rx_errors, a.rx_drops, b.tx_errors), (0, 0, 0), "{a:?} {b:?}");
}

/// Opens the switch's end towards host a.
fn port_to_a(line: &Line) -> Port {
    line.switch.ns.enter(|| open_text("af_packet:sa").unwrap()).unwrap()
}

/// Receives until `count` UDP datagrams have come, and gives their frames.
fn udp_frames(port: &mut Port, count: usize) -> Vec<PacketBuf> {
    let mut found = Vec::new();
    let mut batch = Batch::default();
    until("UDP frames", || {
        port.rx(&mut batch, 3).unwrap();
        let udp = |frame: &&PacketBuf| {
            let sliced = SlicedPacket::from_ethernet(frame.bytes());
            matches!(sliced.unwrap().transport, Some(TransportSlice::Udp(_)))
        };
        found.extend(batch.frames().iter().filter(udp).cloned());
        batch.clear();
        found.len() == count
    });
    found
}

/// The payload of a UDP frame whose checksum a parser finds right.
fn checked_payload(frame: &PacketBuf) -> Vec<u8> {
    let sliced = SlicedPacket::from_ethernet(frame.bytes()).unwrap();
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("{frame:?}") };
    let header = udp.to_header();
    let right = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload()).unwrap()
        }
        NetSlice::Ipv6(ip) => {
            header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload()).unwrap()
        }
        other @ NetSlice::Arp(_) => panic!("{other:?}"),
    };
    assert_eq!(header.checksum, right, "{frame:?}");
    udp.payload().to_vec()
}

#[test]
#[ignore = "needs root"]
fn partial_checksums_are_completed_and_gso_frames_cut() {
    let line = line(1_500);
    let mut port = port_to_a(&line);
    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let sender = line.a.ns.enter(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        for len in [1, 700, 1_400] {
            sender.send_to(&pattern(len), (to, 9)).unwrap();
            let frames = udp_frames(&mut port, 1);
            assert_eq!(checked_payload(&frames[0]), pattern(len));
        }
        // First so little that it fits a slot of the ring, then as much as there can be.
        for (size, len) in [(100, 950), (1_200, 64 * 1_000)] {
            set_segment_size(&sender, size).unwrap();
            sender.send_to(&pattern(len), (to, 9)).unwrap();
            let frames = udp_frames(&mut port, len.div_ceil(usize::from(size)));
            let payloads: Vec<Vec<u8>> = frames.iter().map(checked_payload).collect();
            assert!(payloads.iter().all(|p| p.len() <= usize::from(size)));
            assert_eq!(payloads.concat(), pattern(len));
        }
    }
    let counters = port.counters();
    assert_eq!((counters.rx_errors, counters.rx_drops), (0, 0), "{counters:?}");
}

#[test]
#[ignore = "needs root"]
fn vlan_tags_arrive_where_they_were() {
    let line = line(1_500);
    let mut sender = line.a.ns.enter(|| open_text("af_packet:va").unwrap()).unwrap();
    let mut port = port_to_a(&line);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let with = |tags: &[u8]| {
        let mut frame = frame.clone();
        frame.extend_from_slice(tags);
        frame.extend_from_slice(&[0x88, 0xb5]);
        frame.resize(1_514, 0x5a);
        PacketBuf::from_slice(&frame)
    };
    let mut sent = vec![
        // Priority, drop eligible, number; a priority tag; a service tag; both; and one unknown.
        with(&[0x81, 0x00, 0xb0, 0x2a]),
        with(&[0x81, 0x00, 0x20, 0x00]),
        with(&[0x88, 0xa8, 0x00, 0x07]),
        with(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x0f, 0xfe]),
        with(&[0x91, 0x00, 0x00, 0x07]),
    ];
    // With the tag, 4 bytes longer than any frame without.
    frame.extend_from_slice(&[0x81, 0x00, 0x00, 0x03, 0x88, 0xb5]);
    frame.resize(1_518, 0x77);
    sent.push(PacketBuf::from_slice(&frame));
    assert_eq!(sender.tx(&sent).unwrap(), sent.len());
    let mut received: Vec<PacketBuf> = Vec::new();
    let mut batch = Batch::default();
    until("tagged frames", || {
        port.rx(&mut batch, 2).unwrap();
        let ours = |frame: &&PacketBuf| frame.bytes()[..6] == [2, 0, 0, 0, 0, 1];
        received.extend(batch.frames().iter().filter(ours).cloned());
        batch.clear();
        received.len() == sent.len()
    });
    assert_eq!(received, sent);
}
