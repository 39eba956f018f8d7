//! Super-frames whole through ports, by kernels' sockets: what a port of each kind makes of them,
//! with and without changes of their headers, must be frames with right checksums, and all of them.
//!
//! Host a sends by way of a first pair of ports, which keeps offloads and changes frames, and of a
//! second one, which does not keep them, looks at each frame as a wire would carry it, and changes
//! it back. Host b does not trust these and checks them as well.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use netdev::sys::event::wait;
use netdev::sys::link::{VethEnd, VethPair};
use netdev::sys::udp::set_segment_size;
use netdev::{KernelTier, Port, TierPrograms, open_text};
use packet::{Batch, Layout, Network, PacketBuf, Transport, fill_checksums, rewrite, verify};

use crate::testbed::{Host, Line, MAC_A, PATIENCE, line, until, v4, v6};

/// A change of frames, and the one that takes it back; each fits the frames of every protocol here.
#[derive(Clone, Copy)]
struct Change {
    name: &'static str,
    there: fn(&mut PacketBuf),
    back: fn(&mut PacketBuf),
}

const CHANGES: [Change; 5] = [
    Change { name: "none", there: |_| {}, back: |_| {} },
    Change {
        name: "VLAN",
        there: |frame| {
            rewrite::push_vlan(frame, 0x8100);
            rewrite::set_vlan_vid(frame, 7);
        },
        back: |frame| {
            rewrite::pop_vlan(frame);
        },
    },
    Change {
        name: "QinQ",
        there: |frame| {
            rewrite::push_vlan(frame, 0x8100);
            rewrite::push_vlan(frame, 0x88a8);
            rewrite::set_vlan_vid(frame, 9);
        },
        back: |frame| {
            rewrite::pop_vlan(frame);
            rewrite::pop_vlan(frame);
        },
    },
    Change { name: "addresses", there: change_addresses, back: change_addresses },
    Change {
        name: "ports, TTL and DSCP",
        there: |frame| {
            change_ports(frame);
            // Whether that was possible does not matter here: some are not to leave their link.
            let _ = rewrite::dec_nw_ttl(frame);
            rewrite::set_nw_tos(frame, 0x14);
        },
        back: change_ports,
    },
];

/// Changes one bit of both addresses, or changes it back.
fn change_addresses(frame: &mut PacketBuf) {
    let Some(layout) = Layout::of(frame.bytes()) else { return };
    let ends = match layout.network {
        Network::Ipv4 => [15, 19],
        Network::Ipv6 => [22, 38],
        _ => return,
    };
    flip(frame, ends.map(|end| layout.l3 + end));
}

/// The same of both ports.
fn change_ports(frame: &mut PacketBuf) {
    let Some(layout) = Layout::of(frame.bytes()) else { return };
    if matches!(layout.transport, Transport::Tcp | Transport::Udp) {
        flip(frame, [layout.l4 + 1, layout.l4 + 3]);
    }
}

fn flip(frame: &mut PacketBuf, places: [usize; 2]) {
    for place in places {
        frame.bytes_mut()[place] ^= 0x10;
    }
    fill_checksums(frame.bytes_mut());
}

/// Two ports joined on a thread.
struct Pair {
    stop: Arc<AtomicBool>,
    super_frames: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<[Port; 2]>,
}

/// A change that a pair makes to frames before it sends them.
type Pass = fn(&mut PacketBuf, Change, bool);

impl Pair {
    /// Frames that the first port receives are changed there, those of the second back, or the
    /// other way round.
    fn start(mut ports: [Port; 2], change: Change, is_first: bool) -> Self {
        let (stop, super_frames) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        if is_first {
            for port in &mut ports {
                port.rx.keep_offloads();
            }
        }
        let pass: Pass = if is_first { changed } else { checked };
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&super_frames));
        let thread = std::thread::spawn(move || {
            let mut batch = Batch::default();
            while !stopped.load(Ordering::Relaxed) {
                let mut moved = 0;
                for is_there in [is_first, !is_first] {
                    let [a, b] = &mut ports;
                    let (from, to) = if is_there == is_first { (a, b) } else { (b, a) };
                    moved += from.rx(&mut batch, 64).unwrap();
                    for frame in batch.frames_mut() {
                        counted.fetch_add(u64::from(frame.on_wire().0 > 1), Ordering::Relaxed);
                        pass(frame, change, is_there);
                    }
                    let (frames, pool) = batch.parts_mut();
                    // What finds no room would be lost in a switch; TCP would hide it here.
                    while !frames.is_empty() && !stopped.load(Ordering::Relaxed) {
                        to.tx_batch(frames, pool).unwrap();
                    }
                    batch.clear();
                }
                if moved == 0 {
                    let fds: Vec<_> = ports.iter().filter_map(Port::fd).collect();
                    wait(&fds, Some(Duration::from_millis(50))).unwrap();
                }
            }
            ports
        });
        Self { stop, super_frames, thread }
    }

    fn stop(self) -> [Port; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn changed(frame: &mut PacketBuf, change: Change, is_there: bool) {
    if is_there { (change.there)(frame) } else { (change.back)(frame) }
}

fn checked(frame: &mut PacketBuf, change: Change, is_there: bool) {
    assert!(!frame.has_offload(), "{frame:?}");
    verify(frame.bytes()).unwrap_or_else(|wrong| panic!("{}: {wrong}: {frame:?}", change.name));
    assert!(frame.len() <= 1_522, "{}: {} bytes", change.name, frame.len());
    changed(frame, change, is_there);
}

fn open(host: &Host, spec: &str) -> Port {
    host.ns.enter(|| open_text(spec).unwrap()).unwrap()
}

/// The port to host a: by its veth, also with the kernel tier's program there, which has no entry
/// and hands all over, or by a TAP device that the host has in its place.
fn port_to_a(line: &Line, kind: &str) -> Port {
    if kind == "af_packet" {
        return open(&line.switch, "af_packet:sa");
    }
    if kind == "kernel tier" {
        let mut port = open(&line.switch, "af_packet:sa");
        let attach = || {
            let tier = KernelTier::new(1).unwrap();
            TierPrograms::attach(&[tier.programs().clone()], &mut port).unwrap();
        };
        line.switch.ns.enter(attach).unwrap();
        return port;
    }
    line.a.rtnl.delete("va").unwrap();
    let tap = open(&line.a, "tap:t0?vnet_hdr=true");
    line.a.rtnl.set_mac("t0", MAC_A).unwrap();
    line.a.configure("t0", 1);
    for to in [v4(2), v6(2)] {
        line.a.rtnl.add_neighbour("t0", to, crate::testbed::MAC_B).unwrap();
    }
    tap
}

/// The line between the pairs: the port that the first sends by, and the second's.
fn middle(line: &Line, kind: &str) -> [Port; 2] {
    let switch = &line.switch;
    if kind == "af_packet" {
        let end = |name| VethEnd { mtu: Some(1_508), ..VethEnd::new(name) };
        let pair = VethPair { here: end("ma"), there: end("mb"), there_in: None };
        switch.rtnl.add_veth(&pair).unwrap();
        for name in ["ma", "mb"] {
            switch.rtnl.set_up(name, true).unwrap();
        }
        until("carrier", || switch.rtnl.link("mb").unwrap().carrier);
        return ["af_packet:ma", "af_packet:mb"].map(|spec| open(switch, spec));
    }
    if kind == "memory" {
        return ["a", "b"].map(|end| open(switch, &format!("memory:offloads?end={end}")));
    }
    let tap = open(switch, &format!("tap:m0?mtu=1508&{kind}"));
    [tap, open(switch, "af_packet:m0")]
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + n / 251) as u8).collect()
}

/// Sends bytes from a to b over TCP and back.
fn tcp(line: &Line, to: IpAddr) {
    const LEN: usize = 400_000;
    let listener = line.b.ns.enter(|| TcpListener::bind((to, 7)).unwrap()).unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = vec![0; LEN];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let mut stream = line.a.ns.enter(|| TcpStream::connect((to, 7)).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent = pattern(LEN);
    stream.write_all(&sent).unwrap();
    let mut back = vec![0; LEN];
    stream.read_exact(&mut back).unwrap();
    assert!(back == sent, "the bytes came back changed");
    echo.join().unwrap();
}

/// Sends datagrams from a to b, alone and as one super-frame; none may be lost.
fn udp(line: &Line, from: IpAddr, to: IpAddr) {
    let receiver = line.b.ns.enter(|| UdpSocket::bind((to, 5_000)).unwrap()).unwrap();
    let sender = line.a.ns.enter(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = [0; 2_000];
    for len in [0, 1, 17, 1_400] {
        sender.send_to(&pattern(len), (to, 5_000)).unwrap();
        let got = receiver.recv(&mut bytes).unwrap();
        assert_eq!(bytes[..got], pattern(len));
    }
    set_segment_size(&sender, 1_000).unwrap();
    for len in [1_001, 10_300, 60_000] {
        let sent = pattern(len);
        sender.send_to(&sent, (to, 5_000)).unwrap();
        for chunk in sent.chunks(1_000) {
            let got = receiver.recv(&mut bytes).unwrap();
            assert_eq!(bytes[..got], *chunk);
        }
    }
}

/// One in kind, one out kind and one change; how many super-frames came whole.
fn run(in_kind: &str, out_kind: &str, change: Change) -> u64 {
    let line = line(1_500);
    let [out, next] = middle(&line, out_kind);
    let first = Pair::start([port_to_a(&line, in_kind), out], change, true);
    let second = Pair::start([next, open(&line.switch, "af_packet:sb")], change, false);
    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        tcp(&line, to);
        udp(&line, from, to);
    }
    let whole = first.super_frames.load(Ordering::Relaxed);
    assert_eq!(second.super_frames.load(Ordering::Relaxed), 0);
    let [mut a, mut b] = first.stop();
    let [mut c, mut d] = second.stop();
    let (came, left) = (a.counters(), b.counters());
    for counters in [came, left, c.counters(), d.counters()] {
        let lost = (counters.rx_errors, counters.tx_errors, counters.rx_drops, counters.tx_drops);
        assert_eq!(lost, (0, 0, 0, 0), "{in_kind} {out_kind} {}: {counters:?}", change.name);
    }
    // Counted as a wire would carry them, whole or not.
    assert!(left.tx_packets >= came.rx_packets, "{came:?} {left:?}");
    assert!(came.rx_bytes / came.rx_packets <= 1_514, "{came:?}");
    whole
}

#[test]
#[ignore = "needs root"]
fn super_frames_pass_whole_and_come_out_right() {
    for in_kind in ["af_packet", "kernel tier", "tap"] {
        for out_kind in ["af_packet", "vnet_hdr=true", "vnet_hdr=false", "memory"] {
            for change in CHANGES {
                let whole = run(in_kind, out_kind, change);
                println!("in {in_kind}, out {out_kind}, {}: {whole} came whole", change.name);
                assert!(whole > 10, "{in_kind} {out_kind} {}: {whole}", change.name);
            }
        }
    }
}

/// Frames of a wire, which the kernel tier hands over where super-frames are not wanted.
#[test]
#[ignore = "needs root"]
fn the_tier_hands_over_cut_frames_where_these_are_wanted() {
    let line = line(1_500);
    let mut from = open(&line.switch, "af_packet:sa?gso=false");
    let attach = || {
        let tier = KernelTier::new(1).unwrap();
        TierPrograms::attach(&[tier.programs().clone()], &mut from).unwrap();
    };
    line.switch.ns.enter(attach).unwrap();
    assert!(!from.rx.keep_offloads());
    let sender = line.a.ns.enter(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
    set_segment_size(&sender, 1_200).unwrap();
    sender.send_to(&pattern(6_000), (v4(2), 5_000)).unwrap();
    let (mut batch, mut cut) = (Batch::default(), 0);
    until("the segments", || {
        batch.clear();
        from.rx(&mut batch, 64).unwrap();
        for frame in batch.frames() {
            assert!(!frame.has_offload());
            verify(frame.bytes()).unwrap();
            cut += usize::from(frame.len() == 1_242);
        }
        cut == 5
    });
}

/// Segments that are longer than the next device takes are refused there one by one, as they are
/// when they come one by one.
#[test]
#[ignore = "needs root"]
fn segments_beyond_the_mtu_are_counted_and_not_sent() {
    let line = line(1_500);
    line.switch.rtnl.set_mtu("sb", 1_000).unwrap();
    let mut from = open(&line.switch, "af_packet:sa");
    let mut to = open(&line.switch, "af_packet:sb");
    from.rx.keep_offloads();
    let sender = line.a.ns.enter(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
    set_segment_size(&sender, 1_200).unwrap();
    sender.send_to(&pattern(6_000), (v4(2), 5_000)).unwrap();
    let mut batch = Batch::default();
    until("the super-frame", || {
        from.rx(&mut batch, 64).unwrap();
        batch.frames().iter().any(|frame| frame.on_wire().0 == 5)
    });
    let (frames, pool) = batch.parts_mut();
    frames.retain(|frame| frame.on_wire().0 == 5);
    assert_eq!(to.tx_batch(frames, pool).unwrap(), 5);
    assert_eq!((to.counters().tx_errors, to.counters().tx_packets), (5, 0));
}
