//! Sessions over ports in memory, with their threads.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use netdev::open_text;
use packet::{Batch, PacketBuf};

use super::Waiting;
use super::{Session, SessionError, SessionOptions, StartOptions, speed_bps};
use crate::profile::{Mode, Rate, StreamSpec};
use crate::statistics::SessionStatistics;

const LIMIT: Duration = Duration::from_secs(60);

/// Both ends of a wire. The machine may be busy: nothing is given up.
fn wire(name: &str) -> Session {
    let ports = ['a', 'b'].map(|end| open_text(&format!("memory:session-{name}?end={end}")));
    let options = SessionOptions { unsent_after_ns: u64::MAX / 2, ..SessionOptions::default() };
    Session::from_ports(ports.map(Result::unwrap).into(), options).unwrap()
}

fn burst(name: &str, frames: u64) -> StreamSpec {
    StreamSpec {
        name: name.into(),
        mode: Mode::Burst(frames),
        rate: Rate::PacketsPerSecond(50_000.0),
        ..StreamSpec::default()
    }
}

fn endless() -> StreamSpec {
    StreamSpec { rate: Rate::PacketsPerSecond(10_000.0), ..StreamSpec::default() }
}

fn finish(session: &mut Session) -> SessionStatistics {
    assert!(session.wait(Some(LIMIT)));
    session.wait_until_quiet(Duration::from_millis(50), LIMIT);
    session.statistics()
}

/// Looks until something is so.
fn poll(session: &mut Session, is_so: impl Fn(&SessionStatistics) -> bool) {
    let begun = Instant::now();
    while !is_so(&session.statistics()) {
        assert!(begun.elapsed() < LIMIT, "{:#?}", session.statistics());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_sessions_with_one_zero_account_for_each_other() {
    let [near, far] =
        ['a', 'b'].map(|end| open_text(&format!("memory:session-zeros?end={end}")).unwrap());
    let now = Instant::now();
    // The receiver's clock is ahead by a second, as a reader that knows it takes off again.
    let zeros = [now, now.checked_sub(Duration::from_secs(1)).unwrap()];
    let options = |zero: Instant| SessionOptions {
        zero: Some(zero),
        first_stream: 77,
        unsent_after_ns: u64::MAX / 2,
        ..SessionOptions::default()
    };
    let mut sender = Session::from_ports(vec![near], options(zeros[0])).unwrap();
    let mut receiver = Session::from_ports(vec![far], options(zeros[1])).unwrap();
    for session in [&mut sender, &mut receiver] {
        session.load(0, &[burst("same", 400)]).unwrap();
    }
    sender.start(&[0], &StartOptions::default()).unwrap();
    assert!(sender.wait(Some(LIMIT)));
    receiver.wait_until_quiet(Duration::from_millis(50), LIMIT);
    let seen = receiver.statistics();
    let report = &seen.streams[0].arrivals[0].report;
    assert_eq!((report.received, report.stale, report.reordered), (400, 0, 0));
    assert!(report.delay.as_ref().unwrap().min_ns >= 1_000_000_000, "{report:?}");
}

#[test]
fn every_frame_of_every_stream_is_accounted_for() {
    let mut session = wire("account");
    session.load(0, &[burst("one", 700), burst("two", 300)]).unwrap();
    session.load(1, &[burst("back", 500)]).unwrap();
    session.start(&[0, 1], &StartOptions::default()).unwrap();
    let statistics = finish(&mut session);
    let sent = statistics.ports.iter().map(|port| port.tx.traffic.packets);
    assert_eq!(sent.collect::<Vec<u64>>(), [1_000, 500]);
    let received = statistics.ports.iter().map(|port| port.rx.traffic.packets);
    assert_eq!(received.collect::<Vec<u64>>(), [500, 1_000]);
    assert_eq!(statistics.streams.len(), 3);
    for stream in &statistics.streams {
        assert_eq!((stream.lost, stream.unsent, stream.active), (Some(0), 0, false));
        let [arrival] = &stream.arrivals[..] else { panic!("{stream:?}") };
        assert_eq!((arrival.port, arrival.report.received), (1 - stream.port, stream.sent));
        assert_eq!(arrival.report.reordered, 0);
        assert!(arrival.report.delay.is_some());
    }
    session.clear();
    let cleared = session.statistics();
    assert_eq!((cleared.ports[0].tx.traffic.packets, cleared.streams[0].sent), (0, 0));
    session.start(&[0], &StartOptions::default()).unwrap();
    let again = finish(&mut session);
    assert_eq!((again.streams[0].sent, again.streams[0].lost), (700, Some(0)));
}

/// The defect of a report of streams that was lost when another asked the thread meanwhile.
#[test]
fn counts_are_read_beside_the_session_until_its_end() {
    let mut session = wire("counts");
    let reader = session.counts_reader();
    session.load(0, &[burst("one", 700)]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    finish(&mut session);
    let counts = reader.read();
    assert_eq!((counts[0].tx_packets, counts[1].rx_packets, counts[1].rx_foreign), (700, 700, 0));
    assert_eq!((counts[0].is_up, counts[0].is_transmitting), (true, false));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| (0..500).all(|_| reader.read() == counts));
        while !reading.is_finished() {
            assert_eq!(session.statistics().ports[1].rx.traffic.packets, 700);
        }
        assert!(reading.join().unwrap());
    });
    // It ends while others read, and sends meanwhile.
    session.load(1, &[endless()]).unwrap();
    session.start(&[1], &StartOptions::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| while !reader.read().is_empty() {});
        drop(session);
    });
    let mut ended = wire("counts");
    let reader = ended.counts_reader();
    assert_eq!((ended.into_ports().len(), reader.read()), (2, Vec::new()));
}

/// Five streams by two queues each way, two of them a chain: order, counts and the streams' own
/// order in the report are those of a port with one queue.
#[test]
fn a_port_of_several_queues_is_one_port() {
    let spec = |end| format!("memory:session-queues?end={end}&queues=2").parse().unwrap();
    let options = SessionOptions { unsent_after_ns: u64::MAX / 2, ..SessionOptions::default() };
    let mut session = Session::open(&[spec('a'), spec('b')], options).unwrap();
    let chained = |name: &str, frames, next: Option<&str>, self_start| StreamSpec {
        next: next.map(str::to_owned),
        self_start,
        ..burst(name, frames)
    };
    let streams = [
        burst("one", 100),
        burst("two", 200),
        chained("last", 300, None, false),
        chained("first", 400, Some("last"), true),
        burst("five", 500),
    ];
    session.load(0, &streams).unwrap();
    for round in 1..=2 {
        session.start(&[0], &StartOptions::default()).unwrap();
        let statistics = finish(&mut session);
        assert_eq!(statistics.ports[0].tx.traffic.packets, 1_500 * round);
        assert_eq!(statistics.ports[1].rx.traffic.packets, 1_500 * round);
        for (stream, spec) in statistics.streams.iter().zip(&streams) {
            assert_eq!(stream.name, spec.name);
            assert_eq!(Some(stream.sent), spec.mode.frames().map(|frames| frames * round));
            assert_eq!((stream.lost, stream.active), (Some(0), false), "{stream:?}");
            assert_eq!(stream.arrivals[0].report.reordered, 0);
        }
    }
    session.clear();
    assert_eq!(session.statistics().ports[0].tx.traffic.packets, 0);
}

#[test]
fn what_comes_nowhere_is_lost() {
    let ports = vec![open_text("null:session-a").unwrap(), open_text("null:session-b").unwrap()];
    let mut session = Session::from_ports(ports, SessionOptions::default()).unwrap();
    session.load(0, &[burst("away", 200)]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    let stream = finish(&mut session).streams.remove(0);
    assert_eq!((stream.sent + stream.unsent, stream.lost), (200, Some(stream.sent)));
}

#[test]
fn streams_are_changed_paused_and_stopped_while_they_are_sent() {
    let mut session = wire("live");
    session.load(0, &[endless()]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    poll(&mut session, |now| now.ports[0].tx.traffic.packets > 0);
    session.pause(&[0]).unwrap();
    poll(&mut session, |now| now.ports[0].paused && now.ports[0].transmitting);
    let held = session.statistics().ports[0].tx.traffic.packets;
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(session.statistics().ports[0].tx.traffic.packets, held);
    session.resume(&[0]).unwrap();
    session.update(&[0], 5.0).unwrap();
    poll(&mut session, |now| now.ports[0].tx.traffic.packets > held);
    session.load(0, &[endless()]).unwrap();
    let ports = session.statistics().ports;
    assert!(ports[0].tx.traffic.packets > held, "the port's counts go on");
    // Other streams take over at once, with numbers of their own.
    session.load(0, &[burst("new", 50), endless()]).unwrap();
    poll(&mut session, |now| now.streams.len() == 2 && now.streams[0].sent == 50);
    session.stop(&[0]).unwrap();
    assert!(!session.is_transmitting(0));
    let statistics = finish(&mut session);
    for stream in &statistics.streams {
        assert_eq!(stream.lost, Some(0), "{stream:?}");
    }
}

#[test]
fn a_load_while_sending_goes_on_at_the_given_factor() {
    let mut session = wire("factor");
    let slow = StreamSpec { rate: Rate::PacketsPerSecond(1.0), ..StreamSpec::default() };
    let two = StreamSpec { mode: Mode::Burst(2), ..slow.clone() };
    session.load(0, &[slow]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    session.update(&[0], 100.0).unwrap();
    for _ in 0..200 {
        session.load_at(0, std::slice::from_ref(&two), Some(1.0)).unwrap();
        assert!(session.is_transmitting(0), "from the call on");
    }
    // The second is due a second after the first, not a hundredth.
    assert!(session.wait(Some(LIMIT)));
    let span_ns = session.statistics().ports[0].tx.span_ns;
    assert!(span_ns > 500_000_000, "{span_ns}");
    assert!(session.load_at(0, &[two], Some(f64::NAN)).is_err());
}

#[test]
fn a_duration_ends_endless_streams() {
    let mut session = wire("duration");
    session.load(0, &[endless()]).unwrap();
    let how = StartOptions { duration_s: Some(0.05), multiplier: 2.0, at_ns: None };
    session.start(&[0], &how).unwrap();
    let statistics = finish(&mut session);
    assert_eq!(statistics.streams[0].sent + statistics.streams[0].unsent, 1_000);
}

#[test]
fn a_stream_that_cannot_be_leaves_the_others_as_they_were() {
    let mut session = wire("refused");
    session.load(0, &[burst("good", 10)]).unwrap();
    let bad = StreamSpec { packet: "eth/ipv9".into(), ..burst("bad", 5) };
    let error = session.load(0, &[burst("other", 1), bad]).unwrap_err();
    assert!(error.to_string().starts_with("stream \"bad\", packet: unknown header"), "{error}");
    let long = StreamSpec { size: "4000".parse().unwrap(), ..burst("long", 1) };
    let error = session.load(0, &[long]).unwrap_err().to_string();
    assert!(error.contains("takes at most 2104 with these"), "{error}");
    let none = StreamSpec { mode: Mode::Burst(0), ..burst("none", 1) };
    assert!(session.load(0, &[none]).unwrap_err().to_string().contains("use 1 or more"));
    let gap = Mode::Bursts { count: 2, packets: 1, gap_us: 1e17 };
    let gap = session.load(0, &[StreamSpec { mode: gap, ..burst("gap", 1) }]).unwrap_err();
    assert!(gap.to_string().contains("a gap of"), "{gap}");
    let after = StreamSpec { start_after_s: 1e12, ..burst("after", 1) };
    assert!(session.load(0, &[after]).unwrap_err().to_string().contains("start_after_s"));
    let device = crate::profile::CaptureReplay {
        file: "/dev/zero".into(),
        timing: crate::profile::CaptureTiming::Original,
        loops: 1,
    };
    let device = StreamSpec { capture: Some(device), ..burst("device", 1) };
    let error = session.load(0, &[device]).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let file = crate::profile::CaptureReplay {
        file: "/nowhere.pcap".into(),
        timing: crate::profile::CaptureTiming::Original,
        loops: 1,
    };
    let file = StreamSpec { capture: Some(file), ..burst("file", 1) };
    assert!(session.load(0, &[file]).unwrap_err().to_string().contains("/nowhere.pcap"));
    session.start(&[0], &StartOptions::default()).unwrap();
    let statistics = finish(&mut session);
    assert_eq!((statistics.streams[0].name.as_str(), statistics.streams[0].sent), ("good", 10));
}

#[test]
fn rates_above_the_line_are_refused_at_each_door() {
    let ports = vec![open_text("null:session-line").unwrap()];
    let options = SessionOptions { line_rate_bps: vec![1e9], ..SessionOptions::default() };
    let mut session = Session::from_ports(ports, options).unwrap();
    let rated = |name: &str, rate: &str| StreamSpec {
        name: name.into(),
        rate: rate.parse().unwrap(),
        ..StreamSpec::default()
    };
    let error = session.load(0, &[rated("fast", "1.5Mpps")]).unwrap_err().to_string();
    let expected = "stream \"fast\", rate: 1.5Mpps takes 1.008000 Gbit/s at layer 1, and \
                    the line has 1.000000";
    assert_eq!(error, expected);
    let sum = session.load(0, &[rated("a", "60%"), rated("b", "41%")]).unwrap_err().to_string();
    assert!(sum.starts_with("stream \"b\", rate: 41% with the streams before it"), "{sum}");
    // What sends in turn, or with gaps, is not added.
    let gaps = Mode::Bursts { count: 2, packets: 2, gap_us: 1e6 };
    let turns = [
        StreamSpec { next: Some("b".into()), mode: Mode::Burst(1), ..rated("a", "100%") },
        StreamSpec { self_start: false, mode: Mode::Burst(1), ..rated("b", "100%") },
        StreamSpec { mode: gaps, ..rated("c", "100%") },
        rated("d", "max"),
    ];
    session.load(0, &turns).unwrap();
    session.load(0, &[rated("half", "50%")]).unwrap();
    let how = |multiplier| StartOptions { multiplier, ..StartOptions::default() };
    let error = session.start(&[0], &how(2.1)).unwrap_err().to_string();
    assert!(error.contains("105%") && !session.is_transmitting(0), "{error}");
    session.start(&[0], &how(2.0)).unwrap();
    assert!(session.update(&[0], 3.0).unwrap_err().to_string().contains("150%"));
    assert!(session.load(0, &[rated("more", "51%")]).is_err(), "times the multiplier");
    session.load_at(0, &[rated("more", "51%")], Some(1.0)).unwrap();
}

#[test]
fn the_mtu_counts_bytes_after_ethernet_header_and_one_tag() {
    let mut session = wire("mtu");
    let mut load = |packet: &str, size: &str| {
        let (packet, size) = (packet.into(), size.parse().unwrap());
        session.load(0, &[StreamSpec { packet, size, ..burst("one", 1) }]).is_ok()
    };
    assert!(load("eth/ipv4/udp", "2104") && !load("eth/ipv4/udp", "2105"));
    assert!(load("eth/vlan/ipv4/udp", "2108") && !load("eth/vlan/vlan/ipv4/udp", "2109"));
}

#[test]
fn wrong_ports_options_and_multipliers_are_refused() {
    let mut session = wire("wrong");
    let error = session.start(&[2], &StartOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "port 2: there are 2 ports, from 0 on");
    let empty = session.start(&[0], &StartOptions::default()).unwrap_err();
    assert!(matches!(empty, SessionError::NoStreams(0)), "{empty}");
    session.load(0, &[burst("x", 1)]).unwrap();
    let how = StartOptions { multiplier: -1.0, ..StartOptions::default() };
    assert!(session.start(&[0], &how).unwrap_err().to_string().contains("above 0"));
    assert!(session.load(7, &[burst("x", 1)]).unwrap_err().to_string().contains("2 ports"));
    for options in [
        SessionOptions { burst: 0, ..SessionOptions::default() },
        SessionOptions { cores: vec![100_000], ..SessionOptions::default() },
        SessionOptions { line_rate_bps: vec![f64::NAN], ..SessionOptions::default() },
    ] {
        assert!(Session::from_ports(Vec::new(), options).is_err());
    }
}

#[test]
fn a_port_that_goes_down_stops_its_streams_and_says_when() {
    let near = open_text("memory:session-down?end=a").unwrap();
    let far = open_text("memory:session-down?end=b").unwrap();
    let options = SessionOptions { unsent_after_ns: 1_000, ..SessionOptions::default() };
    let mut session = Session::from_ports(vec![near], options).unwrap();
    session.load(0, &[endless()]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    drop(far);
    assert!(session.wait(Some(LIMIT)));
    let port = session.statistics().ports.remove(0);
    let stop = port.stopped.unwrap();
    assert_eq!(stop.reason, "the port went down");
    assert!(stop.at_ns > 0 && !port.link_up);
}

/// The defect of a reset that took the link down and ended the trial that was to measure it.
#[test]
fn streams_that_outlast_a_link_go_on_when_it_is_back() {
    let near = open_text("memory:session-outlast?end=a").unwrap();
    let far = open_text("memory:session-outlast?end=b").unwrap();
    let mut session = Session::from_ports(vec![near], SessionOptions::default()).unwrap();
    session.outlast_down(&[0], true).unwrap();
    assert!(session.outlast_down(&[1], true).is_err());
    session.load(0, &[endless()]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    poll(&mut session, |now| now.ports[0].tx.traffic.packets > 0);
    drop(far);
    poll(&mut session, |now| !now.ports[0].link_up && now.streams[0].unsent_down > 1_000);
    let before = session.statistics().ports[0].tx.traffic.packets;
    // What fills the wire must be taken.
    let far = RefCell::new(open_text("memory:session-outlast?end=b").unwrap());
    poll(&mut session, |now| {
        far.borrow_mut().rx(&mut Batch::default(), 4_096).unwrap();
        now.ports[0].tx.traffic.packets > before + 100
    });
    session.stop(&[0]).unwrap();
    assert_eq!(session.statistics().ports[0].stopped, None);
}

#[test]
fn a_capture_is_sent_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("three.pcap");
    let mut bytes = netdev::pcap::file_header();
    for number in 0..3_u8 {
        let time = Duration::from_millis(u64::from(number));
        assert!(netdev::pcap::append_record(&mut bytes, time, &[number; 70]));
    }
    std::fs::write(&path, bytes).unwrap();
    let near = open_text("memory:session-capture?end=a").unwrap();
    let mut far = open_text("memory:session-capture?end=b").unwrap();
    let options = SessionOptions { unsent_after_ns: u64::MAX / 2, ..SessionOptions::default() };
    let mut session = Session::from_ports(vec![near], options).unwrap();
    let capture = crate::profile::CaptureReplay {
        file: path,
        timing: crate::profile::CaptureTiming::Scale(0.5),
        loops: 2,
    };
    let spec = StreamSpec { capture: Some(capture), ..StreamSpec::default() };
    session.load(0, &[spec]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    assert!(session.wait(Some(LIMIT)));
    let mut came = packet::Batch::default();
    far.rx(&mut came, 64).unwrap();
    let first: Vec<u8> = came.frames().iter().map(|frame| frame.bytes()[0]).collect();
    assert_eq!(first, [0, 1, 2, 0, 1, 2]);
    assert_eq!(came.frames()[1], PacketBuf::from_slice(&[1; 70]));
}

#[test]
fn the_nominal_speed_of_a_tap_device_limits_nothing() {
    let info = netdev::open_text("null:speed").unwrap().info();
    let of = |has_line_rate| {
        speed_bps(&netdev::PortInfo { has_line_rate, speed_bps: 10_000_000, ..info.clone() })
    };
    assert_eq!((of(true), of(false)), (1e7, 0.0));
}

#[test]
fn a_port_that_is_down_is_not_started() {
    let near = open_text("memory:session-unplugged?end=a").unwrap();
    let mut session = Session::from_ports(vec![near], SessionOptions::default()).unwrap();
    session.load(0, &[endless()]).unwrap();
    let refused = session.start(&[0], &StartOptions::default()).unwrap_err();
    assert!(refused.to_string().ends_with("is down"), "{refused}");
    assert!(!session.is_transmitting(0));
    let _far = open_text("memory:session-unplugged?end=b").unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
}

/// The defect of a page that had more received than sent: senders were asked before receivers.
#[test]
fn no_snapshot_has_more_received_than_sent() {
    let mut session = wire("snapshots");
    let fast = StreamSpec { rate: Rate::PacketsPerSecond(200_000.0), ..StreamSpec::default() };
    session.load(0, &[fast]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    for _ in 0..300 {
        let statistics = session.statistics();
        let received = &statistics.ports[1].rx.traffic.packets;
        assert!(statistics.ports[0].tx.traffic.packets >= *received, "{statistics:?}");
        let stream = &statistics.streams[0];
        let arrived = stream.arrivals.first().map_or(0, |arrival| arrival.report.received);
        assert!(stream.sent >= arrived, "{stream:?}");
    }
}

#[test]
fn ports_come_back_open_and_carry_the_next_session() {
    let mut session = wire("returned");
    let mut ports = Vec::new();
    for first_stream in [7, 8] {
        session.load(0, &[burst("one", 20)]).unwrap();
        session.start(&[0], &StartOptions::default()).unwrap();
        let report = finish(&mut session);
        let stream = &report.streams[0];
        assert_eq!((stream.sent, stream.lost), (20, Some(0)), "{stream:?}");
        ports = session.into_ports();
        assert_eq!(ports.len(), 2);
        assert!(ports[0].info().link_up);
        let options = SessionOptions {
            waiting: Waiting::Sleeping,
            first_stream,
            unsent_after_ns: u64::MAX / 2,
            ..SessionOptions::default()
        };
        session = Session::from_ports(std::mem::take(&mut ports), options).unwrap();
        session.load(0, &[endless()]).unwrap();
        assert_eq!(session.statistics().streams[0].id, first_stream);
    }
    assert!(ports.is_empty());
    let none = SessionOptions { first_stream: 0, ..SessionOptions::default() };
    assert!(matches!(Session::from_ports(Vec::new(), none), Err(SessionError::Option(_))));
}

/// Statistics behind a device that changes frames: a session with a port on either side of it.
fn through(name: &str, spec: &StreamSpec, change: fn(&mut [u8])) -> SessionStatistics {
    let open = |wire: usize, end: char| {
        open_text(&format!("memory:session-{name}-{wire}?end={end}")).unwrap()
    };
    let (mut near, mut far) = (open(1, 'b'), open(2, 'b'));
    let options = SessionOptions { unsent_after_ns: u64::MAX / 2, ..SessionOptions::default() };
    let mut session = Session::from_ports(vec![open(1, 'a'), open(2, 'a')], options).unwrap();
    session.load(0, std::slice::from_ref(spec)).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    let (mut batch, mut carried) = (packet::Batch::default(), 0);
    let begun = Instant::now();
    while carried < 10 {
        assert!(begun.elapsed() < LIMIT, "{carried} frames");
        carried += near.rx(&mut batch, 64).unwrap();
        batch.frames_mut().iter_mut().for_each(|frame| change(frame.bytes_mut()));
        far.tx(batch.frames()).unwrap();
        batch.clear();
    }
    finish(&mut session)
}

#[test]
fn lateness_and_checksum_checks_are_options_of_a_stream() {
    let hit = |frame: &mut [u8]| frame[30] ^= 1;
    let plain = burst("all", 10);
    let checked = StreamSpec { verify_checksums: true, ..plain.clone() };
    let late = StreamSpec { late_after_us: Some(0.0), ..plain.clone() };
    for (name, spec, (received, corrupted, late)) in [
        ("plain", &plain, (10, 0, 0)),
        ("checked", &checked, (0, 10, 0)),
        ("late", &late, (10, 0, 10)),
    ] {
        let mut statistics = through(name, spec, hit);
        let stream = statistics.streams.remove(0);
        let report = stream.arrivals.first().map(|arrival| arrival.report.clone());
        let report = report.unwrap_or_default();
        assert_eq!(report.received, received, "{name}: {stream:?}");
        assert_eq!(report.late, late, "{name}: {stream:?}");
        assert_eq!((stream.lost, report.corrupted), (Some(10 - received), corrupted), "{name}");
    }
}

#[test]
fn what_cannot_be_accounted_for_or_does_not_differ_is_refused() {
    let mut session = wire("refused");
    let modifier: crate::profile::Profile = crate::profile::Profile::from_toml(
        "[[streams]]\nmodifiers = [{ field = \"udp.dst\", op = \"increment\", step = 0 }]",
    )
    .unwrap();
    let beyond: crate::profile::Profile = crate::profile::Profile::from_toml(
        "[[streams]]\nmodifiers = [{ field = \"udp.dst\", op = \"increment\", step = 65536 }]",
    )
    .unwrap();
    let without = StreamSpec { probe: false, ..StreamSpec::default() };
    for (spec, says) in [
        (StreamSpec { verify_checksums: true, ..without.clone() }, "verify_checksums"),
        (StreamSpec { late_after_us: Some(5.0), ..without }, "late_after_us"),
        (StreamSpec { late_after_us: Some(f64::NAN), ..StreamSpec::default() }, "late_after_us"),
        (modifier.streams[0].clone(), "modifiers[0].step"),
        (beyond.streams[0].clone(), "modifiers[0].step"),
    ] {
        let refused = session.load(0, &[spec]).unwrap_err();
        assert_eq!(refused.field, says, "{refused}");
    }
}

/// The defect of a profile that sent nothing, without a word.
#[test]
fn a_stream_that_nothing_starts_is_refused() {
    let mut session = wire("waits-for-ever");
    let waits = |name: &str| StreamSpec { self_start: false, ..burst(name, 1) };
    let next = |spec: StreamSpec, next: &str| StreamSpec { next: Some(next.into()), ..spec };
    for streams in [
        vec![waits("a")],
        vec![burst("a", 1), waits("b")],
        // A circle without a beginning, and one behind a stream without an end.
        vec![next(waits("a"), "b"), next(waits("b"), "a")],
        vec![next(endless(), "b"), waits("b")],
    ] {
        session.load(0, &streams).unwrap();
        let error = session.start(&[0], &StartOptions::default()).unwrap_err().to_string();
        assert!(error.contains("self_start"), "{error}");
        assert!(!session.is_transmitting(0));
    }
    session.load(0, &[next(burst("a", 1), "b"), waits("b")]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    assert_eq!(finish(&mut session).ports[0].tx.traffic.packets, 2);
}

/// The defect of 64 bytes of TCP, which were sent and not accounted for, without a word.
#[test]
fn frames_without_room_for_a_number_are_counted() {
    let mut session = wire("no-room");
    let tcp = StreamSpec { packet: "eth/ipv4/tcp".into(), ..burst("tcp", 30) };
    let sizes = crate::profile::FrameSize::Cycle(vec![64, 80, 96]);
    let mixed = StreamSpec { name: "mixed".into(), size: sizes, ..tcp.clone() };
    let without = StreamSpec { name: "none".into(), probe: false, ..tcp.clone() };
    session.load(0, &[tcp, mixed, without]).unwrap();
    session.start(&[0], &StartOptions::default()).unwrap();
    let streams = finish(&mut session).streams;
    let counts: Vec<_> = streams.iter().map(|s| (s.probes, s.unnumbered, s.lost)).collect();
    assert_eq!(counts, [(0, 30, None), (20, 10, Some(0)), (0, 0, None)]);
    // Ethernet, IPv4, TCP, FCS, and the 14 bytes of a probe.
    assert!(streams.iter().all(|stream| stream.probe_size == 14 + 20 + 20 + 4 + 14));
}

/// The defect of records that were cut by a snap length and sent as short frames.
#[test]
fn a_capture_with_a_cut_record_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.pcap");
    let mut bytes = netdev::pcap::file_header();
    for _ in 0..2 {
        assert!(netdev::pcap::append_record(&mut bytes, Duration::ZERO, &[1; 70]));
    }
    // The length on the wire of the last record.
    let at = bytes.len() - 70 - 4;
    bytes[at..at + 4].copy_from_slice(&1_000_u32.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
    let json = serde_json::json!({ "capture": { "file": path } });
    let spec: StreamSpec = serde_json::from_value(json).unwrap();
    let error = wire("cut").load(0, &[spec]).unwrap_err().to_string();
    assert!(error.contains("frame 2: only 70 of its 1000 bytes"), "{error}");
}

#[test]
fn a_single_frame_leaves_beside_the_streams() {
    let near = open_text("memory:session-single?end=a").unwrap();
    let mut far = open_text("memory:session-single?end=b").unwrap();
    let session = Session::from_ports(vec![near], SessionOptions::default()).unwrap();
    assert!(session.send_frame(0, vec![9; 60]).unwrap());
    assert!(session.send_frame(1, vec![9; 60]).is_err());
    let (mut batch, begun) = (packet::Batch::default(), Instant::now());
    while far.rx(&mut batch, 1).unwrap() == 0 {
        assert!(begun.elapsed() < LIMIT, "no frame");
    }
    assert_eq!(batch.frames()[0].bytes(), [9; 60]);
}

/// The defect of a file that was not there before its port wrote it, and was sent as an empty one.
#[test]
fn a_capture_that_a_port_writes_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.pcap");
    let ports = [format!("pcap:{}?write=true", file.display()), "null:".to_owned()];
    let ports = ports.map(|port| port.parse().unwrap());
    let mut session = Session::open(&ports, SessionOptions::default()).unwrap();
    let linked = folder.path().join("linked.pcap");
    std::fs::hard_link(&file, &linked).unwrap();
    let timing = crate::profile::CaptureTiming::Original;
    let replay = crate::profile::CaptureReplay { file: linked, timing, loops: 1 };
    let stream = StreamSpec { capture: Some(replay), ..StreamSpec::default() };
    let error = session.load(1, &[stream]).unwrap_err();
    assert!(error.reason.contains("are the same file"), "{error}");
}
