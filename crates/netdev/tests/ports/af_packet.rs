//! `af_packet` between kernels that leave everything to their network card: what arrives must be
//! frames of a wire all the same.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};

use netdev::sys::udp::set_segment_size;
use netdev::{Port, PortError, open_text};
use packet::{Batch, PacketBuf};

use crate::testbed::{Forwarder, Line, MAC_A, MAC_B, PATIENCE, line, until, v4, v6};

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
