//! The contract of `Port`, held against every kind: a table of wires, each with a port at both
//! ends, and the same checks over all. A kind that carries nothing from end to end (null, pcap) has
//! its own checks below; a test makes sure that no kind is left out.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use netdev::sys::event::wait;
use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::sys::netns::Namespace;
use netdev::{KINDS, Port, PortCounters, PortError, PortSpec, open_text};
use packet::{Batch, PacketBuf};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::testbed::{PATIENCE, namespace, until};

/// Two joined ports, and what holds the place where they are.
pub(crate) struct Wire {
    name: &'static str,
    specs: [String; 2],
    ns: Option<Namespace>,
    /// The device whose removal must be seen by the first port.
    device: Option<&'static str>,
    /// Frames that the wire holds while nobody receives.
    capacity: usize,
    /// The longest frame, in bytes.
    longest: usize,
    _files: Option<tempfile::TempDir>,
}

impl Wire {
    pub(crate) fn open(&self) -> [Port; 2] {
        let open = || self.specs.each_ref().map(|spec| open_text(spec).unwrap());
        match &self.ns {
            None => open(),
            Some(ns) => {
                let ports = ns.enter(open).unwrap();
                self.wait_for_link(ports)
            }
        }
    }

    /// Waits for the link, and takes what the kernel sent meanwhile.
    fn wait_for_link(&self, mut ports: [Port; 2]) -> [Port; 2] {
        for port in &mut ports {
            until("the link", || port.info().link_up);
        }
        ports
    }
}

fn memory_wires() -> Vec<Wire> {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("wire");
    let ends = |name: &str| {
        ["a", "b"].map(|end| format!("memory:{name}?end={end}&slots=512&frame_max=9216"))
    };
    let wire = |name, specs, files| Wire {
        name,
        specs,
        ns: None,
        device: None,
        capacity: 512,
        longest: 9_216,
        _files: files,
    };
    // Tests run beside each other in one process, where two wires of one name are one.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("contract-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    vec![
        wire("memory", ends(&name), None),
        wire("memory file", ends(path.to_str().unwrap()), Some(files)),
    ]
}

pub(crate) fn patch_wire() -> Wire {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let [a, b] = ["a", "b"].map(|end| format!("contract-{end}{number}"));
    Wire {
        name: "patch",
        specs: [format!("patch:{a}?peer={b}"), format!("patch:{b}?peer={a}")],
        ns: None,
        device: None,
        capacity: 500,
        longest: 65_553,
        _files: None,
    }
}

/// A namespace in which the kernel says nothing by itself.
pub(crate) fn quiet_namespace() -> (Namespace, Rtnl) {
    let ns = namespace();
    ns.enter(|| disable_ipv6("default")).unwrap().unwrap();
    let rtnl = Rtnl::open_in(&ns).unwrap();
    (ns, rtnl)
}

fn veth_wire(name: &'static str, mtu: u32, options: &str) -> Wire {
    let (ns, rtnl) = quiet_namespace();
    let end = |name| VethEnd { mtu: Some(mtu), ..VethEnd::new(name) };
    let pair = VethPair { here: end("x0"), there: end("x1"), there_in: None };
    rtnl.add_veth(&pair).unwrap();
    rtnl.set_up("x0", true).unwrap();
    rtnl.set_up("x1", true).unwrap();
    Wire {
        name,
        specs: ["x0", "x1"].map(|device| format!("af_packet:{device}{options}")),
        ns: Some(ns),
        device: Some("x0"),
        capacity: 500,
        longest: mtu as usize + 14,
        _files: None,
    }
}

/// A wire with a TAP port at one end: what it sends comes in at its device, where a packet socket
/// takes it; and back.
fn tap_wire(name: &'static str, options: &str) -> Wire {
    let (ns, _) = quiet_namespace();
    let specs = [format!("tap:t0?mtu=9000{options}"), "af_packet:t0".into()];
    Wire {
        name,
        specs,
        ns: Some(ns),
        device: Some("t0"),
        capacity: 400,
        longest: 9_014,
        _files: None,
    }
}

fn kernel_wires() -> Vec<Wire> {
    vec![
        veth_wire("af_packet", 1_500, ""),
        veth_wire("af_packet jumbo", 9_000, "?slots=1024"),
        veth_wire("af_packet past the qdisc", 1_500, "?qdisc_bypass=true"),
        tap_wire("tap", ""),
        tap_wire("tap with vnet_hdr", "&vnet_hdr=true"),
        Wire {
            specs: ["internal:t0?mtu=9000".into(), "af_packet:t0".into()],
            ..tap_wire("internal", "")
        },
    ]
}

/// A frame of an ethertype for experiments (IEEE 802), told apart by `number`.
pub(crate) fn frame(len: usize, number: usize) -> PacketBuf {
    let mut bytes = vec![0; len.max(14)];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    for (n, byte) in bytes[14..].iter_mut().enumerate() {
        *byte = (number >> (8 * (n % 3))) as u8 ^ n as u8;
    }
    PacketBuf::from_slice(&bytes[..len])
}

pub(crate) fn send_all(port: &mut Port, frames: &[PacketBuf]) {
    let mut sent = 0;
    until("room to send", || {
        sent += port.tx(&frames[sent..]).unwrap();
        sent == frames.len()
    });
}

pub(crate) fn receive(port: &mut Port, count: usize) -> Vec<PacketBuf> {
    let mut batch = Batch::default();
    until("frames to receive", || {
        let missing = count - batch.len();
        port.rx(&mut batch, missing).unwrap();
        batch.len() == count
    });
    batch.frames().to_vec()
}

pub(crate) fn assert_nothing_waits(port: &mut Port) {
    let mut batch = Batch::default();
    assert_eq!(port.rx(&mut batch, 64).unwrap(), 0);
    assert!(batch.is_empty());
    let fd = port.fd().expect("a wire has a descriptor to sleep on");
    assert!(!wait(&[fd], Some(Duration::ZERO)).unwrap(), "readable, and nothing there");
}

fn lengths_and_order(wire: &Wire, from: &mut Port, to: &mut Port) {
    let mut lengths: Vec<usize> = (14..=1_514.min(wire.longest)).collect();
    lengths.extend((2_000..wire.longest).step_by(601));
    lengths.push(wire.longest);
    let frames: Vec<PacketBuf> =
        lengths.iter().enumerate().map(|(n, &len)| frame(len, n)).collect();
    for part in frames.chunks(50) {
        send_all(from, part);
        assert_eq!(receive(to, part.len()), part, "{}", wire.name);
    }
    assert_nothing_waits(to);
}

fn nothing_is_lost_within_capacity(wire: &Wire, from: &mut Port, to: &mut Port) {
    for round in 0..5 {
        let frames: Vec<PacketBuf> =
            (0..wire.capacity).map(|n| frame(60 + n % 7, n + round)).collect();
        send_all(from, &frames);
        assert_eq!(receive(to, frames.len()), frames, "{}", wire.name);
    }
    assert_nothing_waits(to);
    assert_eq!(to.counters().rx_drops, 0, "{}", wire.name);
}

fn counters_are_right(wire: &Wire, from: &mut Port, to: &mut Port) {
    let (before_tx, before_rx) = (from.counters(), to.counters());
    let too_long = frame(wire.longest + 100, 0);
    let frames = [frame(100, 1), too_long, frame(200, 2)];
    send_all(from, &frames);
    assert_eq!(receive(to, 2), [frame(100, 1), frame(200, 2)], "{}", wire.name);
    let sent = PortCounters {
        tx_packets: before_tx.tx_packets + 2,
        tx_bytes: before_tx.tx_bytes + 300,
        tx_errors: before_tx.tx_errors + 1,
        ..before_tx
    };
    let received = PortCounters {
        rx_packets: before_rx.rx_packets + 2,
        rx_bytes: before_rx.rx_bytes + 300,
        ..before_rx
    };
    assert_eq!(from.counters(), sent, "{}", wire.name);
    assert_eq!(to.counters(), received, "{}", wire.name);
}

fn a_sleeper_is_woken(wire: &Wire, from: &mut Port, to: &mut Port) {
    for round in 0..10 {
        assert_nothing_waits(to);
        std::thread::scope(|scope| {
            let fd = to.fd().unwrap();
            let sleeper = scope.spawn(move || {
                until("being woken", || wait(&[fd], Some(PATIENCE)).unwrap());
            });
            send_all(from, &[frame(60, round)]);
            sleeper.join().unwrap();
        });
        assert_eq!(receive(to, 1), [frame(60, round)], "{}", wire.name);
    }
}

/// The parts of a port are used by three threads at once, and one port's parts may be dropped one
/// by one.
fn parts_work_apart(wire: &Wire) {
    const COUNT: usize = 200;
    let [Port { device: mut near, tx: mut near_tx, rx: near_rx, .. }, far] = wire.open();
    let Port { device: mut far, rx: mut far_rx, tx: far_tx, .. } = far;
    let before = far.counters();
    drop((near_rx, far_tx));
    let sending = std::thread::spawn(move || {
        let frames: Vec<PacketBuf> = (0..COUNT).map(|number| frame(60, number)).collect();
        let mut sent = 0;
        until("room to send", || {
            sent += near_tx.tx(&frames[sent..]).unwrap();
            sent == COUNT
        });
    });
    let receiving = std::thread::spawn(move || {
        let mut batch = Batch::default();
        until("frames to receive", || {
            let missing = COUNT - batch.len();
            far_rx.rx(&mut batch, missing).unwrap();
            batch.len() == COUNT
        });
    });
    until("all frames to be counted", || {
        let received = far.counters().rx_packets - before.rx_packets;
        received == COUNT as u64 && near.counters().tx_packets == COUNT as u64
    });
    sending.join().unwrap();
    receiving.join().unwrap();
    assert!(near.info().exists && far.info().exists, "{}", wire.name);
}

fn facts_are_plausible(wire: &Wire, ports: &mut [Port; 2]) {
    for (port, spec) in ports.iter_mut().zip(&wire.specs) {
        let info = port.info();
        let spec: PortSpec = spec.parse().unwrap();
        assert_eq!((info.kind, info.name.as_str()), (spec.kind().word, spec.name()));
        assert!(info.exists && info.link_up, "{info:?}");
        assert_eq!(info.mac[0] & 1, 0, "a multicast address: {info:?}");
        assert!((info.mtu as usize).abs_diff(wire.longest) <= 18, "{info:?}");
    }
}

fn hold(wire: &Wire) {
    let mut ports = wire.open();
    facts_are_plausible(wire, &mut ports);
    for swap in [false, true] {
        let [a, b] = &mut ports;
        let (from, to) = if swap { (b, a) } else { (a, b) };
        assert_nothing_waits(to);
        assert_eq!(from.tx(&[]).unwrap(), 0);
        lengths_and_order(wire, from, to);
        nothing_is_lost_within_capacity(wire, from, to);
        counters_are_right(wire, from, to);
        a_sleeper_is_woken(wire, from, to);
    }
    drop(ports);
    parts_work_apart(wire);
    // All that a port held is free again: the same names can be opened, time after time.
    for _ in 0..5 {
        let [mut a, mut b] = wire.open();
        send_all(&mut a, &[frame(60, 1)]);
        assert_eq!(receive(&mut b, 1), [frame(60, 1)]);
    }
}

#[test]
fn memory_holds_the_contract() {
    memory_wires().iter().for_each(hold);
}

#[test]
fn patch_ports_hold_the_contract() {
    hold(&patch_wire());
}

#[test]
#[ignore = "needs root"]
fn kernel_ports_hold_the_contract() {
    kernel_wires().iter().for_each(hold);
}

#[test]
#[ignore = "needs root"]
fn a_device_that_disappears_is_gone_for_good() {
    for wire in kernel_wires() {
        let ns = wire.ns.as_ref().unwrap();
        let [mut port, mut other] = wire.open();
        send_all(&mut port, &[frame(60, 1)]);
        receive(&mut other, 1);
        Rtnl::open_in(ns).unwrap().delete(wire.device.unwrap()).unwrap();
        let mut batch = Batch::default();
        until("the port to see it", || {
            // A worker that sleeps is woken by it.
            wait(&[port.fd().unwrap()], Some(PATIENCE)).unwrap();
            match port.rx(&mut batch, 64) {
                Ok(_) => false,
                Err(PortError::Gone(name)) => name == wire.device.unwrap(),
                Err(error) => panic!("{}: {error}", wire.name),
            }
        });
        assert!(matches!(port.tx(&[frame(60, 1)]), Err(PortError::Gone(_))), "{}", wire.name);
        let sending = other.tx(&[frame(60, 1)]);
        assert!(matches!(sending, Err(PortError::Gone(_))), "{}: {sending:?}", wire.name);
        for port in [&mut port, &mut other] {
            let info = port.info();
            assert!(!info.exists && !info.link_up, "{}: {info:?}", wire.name);
            port.counters();
        }
    }
}

#[test]
#[ignore = "needs root"]
fn a_device_set_down_comes_back() {
    let wire = veth_wire("af_packet", 1_500, "");
    let rtnl = Rtnl::open_in(wire.ns.as_ref().unwrap()).unwrap();
    let [mut a, mut b] = wire.open();
    rtnl.set_up("x0", false).unwrap();
    assert_eq!(a.tx(&[frame(60, 1)]).unwrap(), 0, "not taken while down");
    let mut batch = Batch::default();
    for _ in 0..100 {
        assert_eq!(a.rx(&mut batch, 8).unwrap(), 0);
    }
    assert!(!wait(&[a.fd().unwrap()], Some(Duration::ZERO)).unwrap(), "no cause to wake");
    let info = a.info();
    assert!(info.exists && !info.link_up, "{info:?}");
    rtnl.set_up("x0", true).unwrap();
    until("the link", || a.info().link_up && b.info().link_up);
    send_all(&mut a, &[frame(60, 2)]);
    assert_eq!(receive(&mut b, 1), [frame(60, 2)]);
    send_all(&mut b, &[frame(60, 3)]);
    assert_eq!(receive(&mut a, 1), [frame(60, 3)]);
}

#[test]
#[ignore = "needs root"]
fn a_shaped_port_takes_fewer_and_does_not_wait() {
    let wire = veth_wire("af_packet", 1_500, "");
    let rtnl = Rtnl::open_in(wire.ns.as_ref().unwrap()).unwrap();
    let tbf = netdev::sys::qdisc::Tbf::ethernet(1_000_000, 10);
    rtnl.set_tbf("x0", &tbf).unwrap();
    let [mut a, _b] = wire.open();
    let frames: Vec<PacketBuf> = (0..2_000).map(|n| frame(1_000, n)).collect();
    let taken = a.tx(&frames).unwrap();
    assert!(taken > 0 && taken < frames.len(), "{taken}");
    assert_eq!(a.counters().tx_packets, taken as u64);
}

#[test]
fn a_full_ring_takes_fewer_and_loses_nothing() {
    for wire in memory_wires() {
        let [mut a, mut b] = wire.open();
        let frames: Vec<PacketBuf> = (0..wire.capacity + 9).map(|n| frame(60, n)).collect();
        assert_eq!(a.tx(&frames).unwrap(), wire.capacity);
        assert_eq!(a.tx(&frames[wire.capacity..]).unwrap(), 0);
        assert_eq!(receive(&mut b, 10), frames[..10]);
        assert_eq!(a.tx(&frames[wire.capacity..]).unwrap(), 9);
        assert_eq!(receive(&mut b, wire.capacity - 1), frames[10..]);
        assert_eq!(a.counters().tx_packets, frames.len() as u64);
    }
}

#[test]
fn null_takes_all_and_gives_none() {
    let mut port = open_text("null:").unwrap();
    assert_nothing_waits(&mut port);
    assert_eq!(port.tx(&[frame(60, 1), frame(70, 1)]).unwrap(), 2);
    let counters = port.counters();
    assert_eq!((counters.tx_packets, counters.tx_bytes), (2, 130));
    assert!(port.info().link_up);
}

#[test]
fn pcap_gives_back_what_it_was_given() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("some.pcap");
    let path = path.to_str().unwrap();
    let frames: Vec<PacketBuf> = (14..1_514).map(|len| frame(len, len)).collect();
    let mut writer = open_text(&format!("pcap:{path}?write=true")).unwrap();
    assert!(!writer.info().receives && writer.info().link_up);
    assert_nothing_waits(&mut writer);
    send_all(&mut writer, &frames);
    assert_eq!(writer.counters().tx_packets, 1_500);
    // Without closing: each call writes whole records.
    let mut once = open_text(&format!("pcap:{path}")).unwrap();
    assert!(once.fd().is_none(), "always ready until the end");
    assert_eq!(receive(&mut once, 700), frames[..700]);
    assert_eq!(receive(&mut once, 800), frames[700..]);
    assert_nothing_waits(&mut once);
    assert_eq!(once.tx(&frames[..3]).unwrap(), 3);
    assert_eq!(once.counters().tx_drops, 3);
    let mut again = open_text(&format!("pcap:{path}?loop=true")).unwrap();
    for _ in 0..3 {
        assert_eq!(receive(&mut again, 1_500), frames);
    }
    assert!(again.fd().is_none());
}

#[test]
fn a_replayed_capture_has_a_rate_and_numbers() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("some.pcap");
    let path = path.to_str().unwrap();
    let mut writer = open_text(&format!("pcap:{path}?write=true")).unwrap();
    send_all(&mut writer, &[frame(60, 1), frame(61, 2)]);
    let spec = format!("pcap:{path}?loop=true&rate=1000000&slots=8&number=20");
    let mut port = open_text(&spec).unwrap();
    let numbers = |frames: &[PacketBuf]| -> Vec<u32> {
        frames.iter().map(|f| u32::from_be_bytes(f.bytes()[20..24].try_into().unwrap())).collect()
    };
    let frames = receive(&mut port, 40);
    assert_eq!(numbers(&frames), (0..40).collect::<Vec<u32>>());
    // Of what was not asked for in time, eight frames wait and the rest is dropped.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while port.counters().rx_drops == 0 {
        assert!(std::time::Instant::now() < deadline, "a slow receiver loses frames");
        std::thread::sleep(std::time::Duration::from_millis(1));
        let mut batch = packet::Batch::default();
        assert!(port.rx(&mut batch, 64).unwrap() <= 8);
    }
    let error = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
    assert!(error(&format!("pcap:{path}?loop=true&number=57")).contains("at most 56"));
    assert!(error(&format!("pcap:{path}?rate=7")).contains("loop=true"));
    assert!(error(&format!("pcap:{path}?loop=true&slots=7")).contains("rate"));
}

#[test]
fn ports_that_cannot_be_opened_say_why() {
    let error = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
    assert!(error("af_packet:nothere0").contains("there are: lo"), "{}", error("af_packet:x"));
    assert!(error("pcap:/no/such/file").contains("/no/such/file"));
    assert!(error("pcap:Cargo.toml").contains("magic number"));
    assert!(error("pcap:x?loop=true&write=true").contains("not both"));
    assert!(error("memory:x?end=c").contains("a or b"));
    assert!(error("memory:x?slots=0").contains("1 to 65536"));
    assert!(error("memory:/no/such/folder/x").contains("/no/such/folder"));
    assert!(error("dummy:x?mac=1").contains("02:00:00:00:00:01"));
    let _first = open_text("memory:twice").unwrap();
    assert!(error("memory:twice").contains("end a of memory:twice is in use"));
    assert!(error("memory:twice?end=b&slots=3").contains("slots=1024"));
}

#[test]
fn no_kind_is_left_out() {
    // By a wire of the tables above, or by tests of its own; dpdk's need a process of their own.
    let tests = [include_str!("contract.rs"), include_str!("dpdk.rs")];
    for row in KINDS {
        let opens = format!("\"{}:", row.word);
        let is_tested = tests.iter().any(|text| text.contains(&opens));
        assert!(is_tested, "{} has no test of the contract", row.word);
    }
}

#[test]
fn memory_files_leave_with_the_last_and_pass_from_the_dead() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("wire");
    let spec = |end: &str| format!("memory:{}?end={end}", path.display());
    let count = || std::fs::read_dir(files.path()).unwrap().count();
    let mut a = open_text(&spec("a")).unwrap();
    assert!(!a.info().link_up, "nobody at the other end");
    let mut b = open_text(&spec("b")).unwrap();
    assert!(a.info().link_up && b.info().link_up);
    assert!(matches!(open_text(&spec("a")).map(drop), Err(PortError::InUse(_))));
    // An end may leave and come back; what is under way stays.
    send_all(&mut a, &[frame(60, 1), frame(60, 2)]);
    assert_eq!(receive(&mut b, 1), [frame(60, 1)]);
    drop(b);
    assert_eq!(count(), 3);
    assert!(!a.info().link_up);
    let mut b = open_text(&spec("b")).unwrap();
    assert_eq!(receive(&mut b, 1), [frame(60, 2)]);
    // What a killed process leaves: files and no locks.
    let left = files.path().join("left");
    std::fs::copy(&path, &left).unwrap();
    drop(a);
    drop(b);
    assert_eq!(count(), 1, "all files are removed");
    std::fs::rename(&left, &path).unwrap();
    let mut a = open_text(&spec("a")).unwrap();
    let mut b = open_text(&spec("b")).unwrap();
    send_all(&mut b, &[frame(60, 3)]);
    assert_eq!(receive(&mut a, 1), [frame(60, 3)]);
}

/// Sends every frame back, sleeping in between, until a frame of 14 bytes comes.
fn echo(port: &mut Port) {
    let mut batch = Batch::default();
    loop {
        while port.rx(&mut batch, 8).unwrap() == 0 {
            assert!(wait(&[port.fd().unwrap()], Some(PATIENCE)).unwrap(), "a lost wake-up");
        }
        if batch.frames().iter().any(|frame| frame.len() == 14) {
            return;
        }
        send_all(port, batch.frames());
        batch.clear();
    }
}

/// Sends `rounds` frames one at a time and sleeps until each has come back.
fn ask_echo(port: &mut Port, rounds: usize) {
    let mut batch = Batch::default();
    for round in 0..rounds {
        send_all(port, &[frame(60, round)]);
        while port.rx(&mut batch, 8).unwrap() == 0 {
            assert!(wait(&[port.fd().unwrap()], Some(PATIENCE)).unwrap(), "a lost wake-up");
        }
        assert_eq!(batch.frames(), [frame(60, round)]);
        batch.clear();
    }
}

#[test]
fn no_wake_up_is_lost_when_both_ends_sleep() {
    for wire in memory_wires() {
        let [mut a, mut b] = wire.open();
        std::thread::scope(|scope| {
            scope.spawn(move || echo(&mut b));
            ask_echo(&mut a, 3_000);
            send_all(&mut a, &[frame(14, 0)]);
        });
    }
}

const CHILD_SPEC: &str = "WEIR_TEST_ECHO_SPEC";

/// The other process of the test below, which starts this one by name; by itself it does nothing.
#[test]
fn echo_for_another_process() {
    if let Ok(spec) = std::env::var(CHILD_SPEC) {
        echo(&mut open_text(&spec).unwrap());
    }
}

#[test]
fn two_processes_are_joined_and_one_may_be_killed() {
    let files = tempfile::tempdir().unwrap();
    let spec = format!("memory:{}", files.path().join("wire").display());
    let child = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "contract::echo_for_another_process"]);
        command.env(CHILD_SPEC, format!("{spec}?end=b")).stdout(std::process::Stdio::null());
        netdev::sys::spawn::spawn(command, None).unwrap()
    };
    let mut port = open_text(&spec).unwrap();
    let mut first = child();
    until("the other end", || port.info().link_up);
    ask_echo(&mut port, 200);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!port.info().link_up);
    let mut second = child();
    until("the other end again", || port.info().link_up);
    ask_echo(&mut port, 200);
    send_all(&mut port, &[frame(14, 0)]);
    assert!(second.wait().unwrap().success());
    drop(port);
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("letter");
    std::fs::write(&path, "to whom it may concern").unwrap();
    let opened = open_text(&format!("memory:{}", path.display())).map(drop);
    assert!(matches!(opened, Err(PortError::Format { .. })), "{opened:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "to whom it may concern");
}

#[test]
fn a_memory_file_spoilt_while_in_use_is_refused() {
    use std::os::unix::fs::FileExt;
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("wire");
    let spec = |end: &str| format!("memory:{}?end={end}", path.display());
    let mut a = open_text(&spec("a")).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0xee; 8_192], 0).unwrap();
    let second = open_text(&spec("b")).map(drop);
    assert!(matches!(second, Err(PortError::Format { .. })), "{second:?}");
    let sending = a.tx(&[frame(60, 1)]);
    assert!(matches!(sending, Err(PortError::Format { .. })), "{sending:?}");
    assert!(sending.unwrap_err().to_string().contains("impossible index"));
}

#[test]
fn a_memory_file_that_is_shortened_is_a_lost_device() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("wire");
    let open = |end: &str| open_text(&format!("memory:{}?end={end}", path.display()));
    for len in [0, 4_096, 100_000] {
        let (mut a, mut b) = (open("a").unwrap(), open("b").unwrap());
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        // All its room is there before a page is used.
        let facts = file.metadata().unwrap();
        assert!(facts.blocks() * 512 >= facts.len(), "{facts:?}");
        send_all(&mut a, &[frame(60, 1), frame(60, 2)]);
        file.set_len(len).unwrap();
        // The first slots may be there still; those of the other direction are not.
        let burst = [frame(60, 2)];
        until("the first loss", || matches!(a.tx(&burst), Err(PortError::Gone(_))));
        let mut batch = Batch::default();
        until("the second loss", || {
            let received = b.rx(&mut batch, 1);
            [received, b.tx(&burst)].iter().any(|done| matches!(done, Err(PortError::Gone(_))))
        });
        assert!(batch.frames().iter().all(|got| *got == frame(60, 1) || *got == frame(60, 2)));
        // Once both have closed it, it is made anew.
        drop((a, b));
        assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
    }
}

/// The process of the test below, with a file system of 1 MiB of its own; by itself it does
/// nothing.
#[test]
fn memory_port_on_a_small_file_system() {
    let Ok(folder) = std::env::var("WEIR_TEST_SMALL_FOLDER") else { return };
    let error = open_text(&format!("memory:{folder}/wire")).map(drop).unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.ends_with("give fewer slots"), "{error}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
    open_text(&format!("memory:{folder}/wire?slots=64")).unwrap();
}

#[test]
#[ignore = "needs root"]
fn a_memory_file_without_room_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("unshare");
    let mount = "mount -t tmpfs -o size=1m none \"$WEIR_TEST_SMALL_FOLDER\" && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", mount]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "contract::memory_port_on_a_small_file_system"]);
    command.env("WEIR_TEST_SMALL_FOLDER", folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

const FULL_DISK_FILE: &str = "WEIR_TEST_FULL_DISK_FILE";

/// The process of the test below, in which no file may exceed 64 KiB; by itself it does nothing.
#[test]
fn write_to_a_full_disk() {
    let Ok(path) = std::env::var(FULL_DISK_FILE) else { return };
    let mut port = open_text(&format!("pcap:{path}?write=true")).unwrap();
    let burst: Vec<PacketBuf> = (0..32).map(|number| frame(1_000, number)).collect();
    let mut sent = 0;
    while port.counters().tx_errors == 0 {
        assert!(port.info().link_up);
        assert_eq!(port.tx(&burst).unwrap(), burst.len());
        sent += 1;
    }
    let counters = port.counters();
    assert_eq!((counters.tx_packets, counters.tx_errors), (32 * (sent - 1), 32));
    let info = port.info();
    assert!(!info.link_up && info.exists, "{info:?}");
    assert!(info.notes[0].starts_with("cannot be written: "), "{info:?}");
    // The file has whole records only.
    let mut reader = open_text(&format!("pcap:{path}")).unwrap();
    assert_eq!(receive(&mut reader, 32), burst);
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit }).unwrap();
    until("room to be found", || port.info().link_up);
    assert_eq!(port.tx(&burst).unwrap(), burst.len());
    assert_eq!(port.counters().tx_packets, 32 * sent);
    let mut reader = open_text(&format!("pcap:{path}")).unwrap();
    receive(&mut reader, 32 * usize::try_from(sent).unwrap());
    assert_nothing_waits(&mut reader);
}

#[test]
fn a_capture_on_a_full_disk_counts_errors_and_its_link_is_down() {
    let files = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("sh");
    // A write beyond the limit fails like one to a full disk, where its signal is ignored.
    command.args(["-c", "trap '' XFSZ; ulimit -S -f 128; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "contract::write_to_a_full_disk"]);
    command.env(FULL_DISK_FILE, files.path().join("some.pcap"));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
    let error = open_text("pcap:/dev/full?write=true").map(drop).unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
}
