//! Agents on the loopback interface, with ends in memory: no root, no namespace.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::pki::{self, CertificateRequest};
use channel::{Endpoint, Tls, TlsFiles};
use generator::profile::{CaptureReplay, CaptureTiming, StreamSpec};
use programs::cancel::Cancel;

use super::client::{AgentError, AgentLink, TrafficBox};
use super::executor::Executor;
use super::protocol::{
    self, AgentAnswer, AgentHello, AgentRequest, EndProgram, EndTask, Traffic, VERSION, Welcome,
};
use super::server::Agent;

/// The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that runs.
struct Running {
    address: SocketAddr,
    cancel: Cancel,
    log: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(interfaces: &[&str], tls: Option<Tls>) -> Self {
        Self::start_napping(interfaces, tls, std::thread::sleep)
    }

    /// The same with watchers of stalls that sleep by `nap`.
    fn start_napping(interfaces: &[&str], tls: Option<Tls>, nap: fn(Duration)) -> Self {
        let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
        let executor = Executor::opening(interfaces, netdev::open_text).napping(nap);
        let (cancel, log) = (Cancel::default(), Arc::new(Mutex::new(Vec::new())));
        let lines = Arc::clone(&log);
        let say = Arc::new(move |line: &str| {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
        });
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let agent = Agent::bind(any, tls, executor, (cancel.clone(), say)).unwrap();
        let address = agent.address().unwrap();
        let thread = std::thread::spawn(move || agent.serve().unwrap());
        Self { address, cancel, log, thread: Some(thread) }
    }

    fn endpoint(&self, scheme: &str) -> Endpoint {
        format!("{scheme}:{}", self.address).parse().unwrap()
    }

    fn connect(&self) -> Result<AgentLink, AgentError> {
        AgentLink::connect(&self.endpoint("tcp"), None, "test")
    }

    /// Waits until it has said that.
    fn await_line(&self, part: &str) {
        let begun = Instant::now();
        while !self.log.lock().unwrap().iter().any(|line| line.contains(part)) {
            assert!(begun.elapsed() < PATIENCE, "{part:?}: {:?}", self.log.lock().unwrap());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(mut self) {
        self.cancel.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn traffic(interface: &str, streams: Vec<StreamSpec>) -> AgentRequest {
    let traffic = Traffic {
        first_stream: 5,
        is_precise: false,
        zero_ns: 0,
        line_rate_bps: 0.0,
        streams,
        port: 0,
    };
    AgentRequest::Open(EndProgram {
        interface: interface.to_owned(),
        part: EndTask::Traffic(traffic),
    })
}

#[test]
fn a_second_lab_is_refused_by_name_until_the_first_has_gone() {
    let agent = Running::start(&["memory:agent-two?end=a"], None);
    let first = agent.connect().unwrap();
    let mut first = TrafficBox::Agent(first);
    assert_eq!(first.interfaces(), ["memory:agent-two?end=a"]);
    let Err(AgentError::Refused { why, .. }) = agent.connect() else { panic!("taken") };
    assert!(why.contains("it works for test at 127.0.0.1:"), "{why}");
    // It dies with an interface open.
    let opened = first.ask(traffic("memory:agent-two?end=a", vec![StreamSpec::default()]));
    assert!(matches!(opened, Ok(AgentAnswer::Opened { .. })), "{opened:?}");
    drop(first);
    agent.await_line("is closed in the middle of a trial: 0 frames sent, 0 received");
    let begun = Instant::now();
    while agent.connect().is_err() {
        assert!(begun.elapsed() < PATIENCE, "it still works for the first");
    }
    agent.end();
}

#[test]
fn an_agent_that_ends_is_named_with_its_box() {
    let agent = Running::start(&["memory:agent-end?end=a"], None);
    let mut link = TrafficBox::Agent(agent.connect().unwrap());
    assert!(link.exchange(Instant::now()).is_ok());
    let address = agent.address;
    agent.end();
    let error = link.exchange(Instant::now()).unwrap_err();
    let text = error.to_string();
    let host = crate::facts::host_name();
    assert!(text.contains(&format!("the agent at tcp:{address} on {host}: ")), "{text}");
    // And it is not asked again as if nothing had been.
    assert!(link.exchange(Instant::now()).unwrap_err().to_string().contains("lost before"));
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let agent = Running::start(&["memory:agent-version?end=a"], None);
    let mut stream = TcpStream::connect(agent.address).unwrap();
    let hello = AgentHello { version: VERSION + 1, lab: "later".to_owned() };
    stream.write_all(&protocol::encode(&hello).unwrap()).unwrap();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    let content = protocol::take(&mut came).unwrap().unwrap();
    let welcome: Welcome = protocol::decode(&content).unwrap();
    let why = welcome.refusal.unwrap();
    assert_eq!(why, format!("it speaks version {VERSION}, and this lab {}", VERSION + 1));
    agent.end();
}

#[test]
fn hostile_bytes_end_their_own_connection_and_no_other() {
    let agent = Running::start(&["memory:agent-hostile?end=a"], None);
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..60_u32 {
        let mut stream = TcpStream::connect(agent.address).unwrap();
        // Whole hellos before some of them, so that requests are reached too.
        if round % 2 == 0 {
            let hello =
                AgentHello { version: VERSION, lab: format!("\u{1b}[2J{}", "x".repeat(999)) };
            stream.write_all(&protocol::encode(&hello).unwrap()).unwrap();
        }
        let bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        // The agent may have hung up by now.
        let _ = stream.write_all(&bytes);
        if round % 3 == 0 {
            let _ = stream.write_all(&u32::MAX.to_be_bytes());
        }
        // One at a time: of many of one address most are refused unread.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let begun = Instant::now();
    let mut link = loop {
        match agent.connect() {
            Ok(link) => break TrafficBox::Agent(link),
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    };
    assert!(link.exchange(Instant::now()).is_ok());
    let log = agent.log.lock().unwrap().join("\n");
    assert!(!log.contains('\u{1b}') && !log.contains(&"x".repeat(101)), "{log}");
    agent.end();
}

/// A connection from another address of this machine.
fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((from, 0))).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

#[test]
fn one_address_that_says_nothing_keeps_no_lab_of_another_out() {
    let agent = Running::start(&["memory:agent-idle?end=a"], None);
    let other = Ipv4Addr::new(127, 0, 0, 2);
    let idle: Vec<TcpStream> = (0..16).map(|_| connect_from(other, agent.address)).collect();
    agent.await_line("127.0.0.2");
    let link = agent.connect().unwrap();
    let log = agent.log.lock().unwrap().join("\n");
    let refused = log.matches("refused, 4 connections of this address wait").count();
    assert_eq!(refused, 12, "{log}");
    // Their places come back, those of the lab's own too.
    drop((idle, link));
    let begun = Instant::now();
    for _ in 0..40 {
        while agent.connect().is_err() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", agent.log.lock().unwrap());
        }
    }
    agent.end();
}

#[test]
fn what_a_lab_may_not_ask_for_is_refused_in_words() {
    let mut executor = Executor::opening(vec!["memory:agent-odd?end=a".into()], netdev::open_text);
    let mut why = |request: AgentRequest| {
        let answer = executor.carry_out(request, 0);
        let AgentAnswer::Failed { why } = answer else { panic!("{answer:?}") };
        why
    };
    let own = || "memory:agent-odd?end=a".to_owned();
    let capture =
        CaptureReplay { file: "/etc/shadow".into(), timing: CaptureTiming::default(), loops: 1 };
    let file = StreamSpec { capture: Some(capture), ..StreamSpec::default() };
    assert!(why(traffic("eth0", vec![StreamSpec::default()])).contains("--interface"));
    assert!(why(traffic(&own(), vec![])).contains("0 streams"));
    assert!(why(traffic(&own(), vec![file])).contains("no capture files"));
    assert!(why(AgentRequest::Start { interface: own(), at_ns: None }).contains("is not open"));
    assert!(why(AgentRequest::Read { interface: own(), from: 0 }).contains("is not open"));
    // The streams of an end are of one piece, so that all ends number them alike.
    let of_end = |port| StreamSpec { port, ..StreamSpec::default() };
    let apart = vec![of_end(0), of_end(1), of_end(0)];
    assert!(why(traffic(&own(), apart)).contains("end 0 stand in two places"));
    for (zero_ns, line_rate_bps, log) in
        [(i64::MIN, 0.0, "a clock"), (i64::MAX, 0.0, "a clock"), (0, -1.0, "line rate")]
    {
        let streams = vec![StreamSpec::default()];
        let traffic = Traffic {
            first_stream: 1,
            is_precise: false,
            zero_ns,
            line_rate_bps,
            streams,
            port: 0,
        };
        let part = EndTask::Traffic(traffic);
        let why = why(AgentRequest::Open(EndProgram { interface: own(), part }));
        assert!(why.contains(log), "{why}");
    }
    // Only what a program of a host has printed can be read.
    executor.carry_out(traffic(&own(), vec![StreamSpec::default()]), 0);
    let answer = executor.carry_out(AgentRequest::Read { interface: own(), from: 0 }, 0);
    let AgentAnswer::Failed { why } = answer else { panic!("{answer:?}") };
    assert!(why.contains("is not opened for a host"), "{why}");
}

/// An authority's keys for a name, and trust in that authority.
fn keys(folder: &std::path::Path, name: &str) -> Tls {
    keys_trusting(folder, name, folder)
}

/// An authority's keys for a name, and trust in another authority.
fn keys_trusting(folder: &std::path::Path, name: &str, trusted: &std::path::Path) -> Tls {
    let now = std::time::SystemTime::now();
    let request = CertificateRequest { name: name.to_owned(), hosts: Vec::new(), days: 2 };
    pki::issue(folder, &request, now).unwrap();
    let files = TlsFiles {
        private_key: folder.join(format!("{name}-privkey.pem")),
        certificate: folder.join(format!("{name}-cert.pem")),
        ca_cert: trusted.join("cacert.pem"),
    };
    Tls::load(files, false).unwrap()
}

#[test]
fn only_a_lab_with_a_certificate_of_the_authority_is_let_in() {
    let [ours, others] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for folder in [&ours, &others] {
        pki::init(folder.path(), std::time::SystemTime::now()).unwrap();
    }
    let agent = Running::start(&["memory:agent-tls?end=a"], Some(keys(ours.path(), "box")));
    let connect = |tls: &Tls| AgentLink::connect(&agent.endpoint("ssl"), Some(tls), "test");
    // A lab that does not know the agent's authority does not speak to it.
    let error = connect(&keys(others.path(), "lab")).unwrap_err();
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error}");
    // One that does, and whose own certificate is another's, is refused by the agent; in TLS 1.3
    // it learns so by its first read.
    let error = connect(&keys_trusting(others.path(), "intruder", ours.path())).unwrap_err();
    let is_refused = matches!(error, AgentError::Unreachable { .. } | AgentError::Lost { .. });
    assert!(is_refused, "{error}");
    agent.await_line("is not signed by the CA in --ca-cert");
    // Nor one that speaks no TLS.
    assert!(agent.connect().is_err());
    let log = agent.log.lock().unwrap().join("\n");
    assert!(!log.contains("works for"), "{log}");
    let link = connect(&keys(ours.path(), "lab")).unwrap();
    let mut link = TrafficBox::Agent(link);
    for _ in 0..100 {
        let exchange = link.exchange(Instant::now()).unwrap();
        assert!(exchange.round_trip_ns() > 0);
    }
    // A request that needs several records.
    let streams =
        vec![
            StreamSpec { packet: format!("eth/ipv4/udp{}", " ".repeat(5_000)), ..<_>::default() };
            40
        ];
    let answer = link.ask(traffic("memory:agent-tls?end=a", streams));
    assert!(!matches!(answer, Err(AgentError::Lost { .. })), "{answer:?}");
    drop(link);
    agent.await_line("has gone");
    agent.end();
}

mod testbed {
    use generator::method::{Measurer as _, TrialInput};
    use generator::profile::{FrameSize, Mode, Rate};
    use generator::session::Waiting;

    use super::{AtomicBool, Duration, Executor, Running, StreamSpec, TrafficBox};
    use crate::stall::Stall;
    use crate::testbed::MeasurerPlan;
    use crate::testbed::agents::{AgentsTestbed, ExchangePlan};

    fn plan(stop: &AtomicBool) -> MeasurerPlan<'_> {
        let quiet = Duration::from_secs(1);
        let (stream, waiting) = (StreamSpec::default(), Waiting::Sleeping);
        MeasurerPlan { stream, is_learning: true, waiting, quiet, stop }
    }

    const INPUT: TrialInput =
        TrialInput { frame_size: 128, rate_pps: 500.0, duration_s: 0.4, grace_s: 30.0 };

    /// Two agents whose clocks began at other times, and a wire between their ends: what is sent
    /// at one is counted at the other, and the delays are those of the wire.
    #[test]
    fn two_boxes_measure_a_wire_and_the_error_of_their_clocks() {
        let ends = ["memory:agent-wire?end=a", "memory:agent-wire?end=b"];
        let first = Running::start(&ends[..1], None);
        // Their clocks differ by so much at least.
        std::thread::sleep(Duration::from_millis(300));
        let second = Running::start(&ends[1..], None);
        let boxes = [&first, &second].map(|agent| TrafficBox::Agent(agent.connect().unwrap()));
        let bed = AgentsTestbed::new(boxes.into(), &[(0, None), (1, None)], None).unwrap();
        let stop = AtomicBool::new(false);
        // What their figures hold for.
        let (kernel, notes) = (crate::facts::Machine::read().kernel, bed.notes());
        let names_kernel = |note: &&String| note.contains(&kernel) && note.contains("weir ");
        assert_eq!(notes.iter().filter(names_kernel).count(), 2, "{notes:?}");
        let mut measurer = bed.measurer(plan(&stop));
        // The second trial finds everything as the first did.
        for _ in 0..2 {
            let output = measurer.trial(INPUT).unwrap();
            let report = &output.report;
            assert_eq!(report.sent, 200);
            assert_eq!(report.received + output.unsent, 200, "{output:?}");
            assert_eq!((report.late, report.stale, report.duplicated), (0, 0, 0));
            let clock = measurer.clock().unwrap();
            assert!(clock.error_us > 0.0 && clock.comparisons >= 3, "{clock:?}");
            // The second agent's clock is behind by the time between their starts.
            assert!(clock.offset_us < -299_000.0, "{clock:?}");
            // Not below zero but by the error, and nowhere near the offset of the clocks.
            let delay = report.delay.as_ref().unwrap();
            let shortest_us = delay.min_ns as f64 / 1e3;
            assert!(shortest_us > -clock.error_us, "{delay:?} {clock:?}");
            assert!(shortest_us < 200_000.0, "{delay:?}");
            assert!(output.start_ns < report.last_ns.unwrap());
        }
        drop(measurer);
        drop(bed);
        first.end();
        second.end();
    }

    /// Both ends send from one moment on, and each counts what the other has sent.
    #[test]
    fn two_boxes_send_at_one_time_and_count_each_other_s_frames() {
        let ends = ["memory:agent-both?end=a", "memory:agent-both?end=b"];
        let first = Running::start(&ends[..1], None);
        std::thread::sleep(Duration::from_millis(200));
        let second = Running::start(&ends[1..], None);
        let boxes = [&first, &second].map(|agent| TrafficBox::Agent(agent.connect().unwrap()));
        let bed = AgentsTestbed::new(boxes.into(), &[(0, None), (1, None)], None).unwrap();
        let stop = AtomicBool::new(false);
        let plan = ExchangePlan { quiet: Duration::from_secs(1), stop: &stop };
        let burst = |frames| StreamSpec {
            mode: Mode::Burst(frames),
            rate: Rate::PacketsPerSecond(500.0),
            size: FrameSize::Fixed(128),
            probe: true,
            ..StreamSpec::default()
        };
        // The order in which they are given is not that of their numbers.
        let loads = [(1, vec![burst(60), burst(30)]), (0, vec![burst(100)])];
        // The second finds everything as the first did.
        for _ in 0..2 {
            let (start_ns, seen) = bed.exchange(&loads, plan).unwrap();
            assert_eq!(seen.ports.len(), 2);
            let counts: Vec<(usize, u64)> =
                seen.streams.iter().map(|stream| (stream.port, stream.sent)).collect();
            let unsent: Vec<u64> = seen.streams.iter().map(|stream| stream.unsent).collect();
            let due = [(0, 100 - unsent[0]), (1, 60 - unsent[1]), (1, 30 - unsent[2])];
            assert_eq!(counts, due);
            for stream in &seen.streams {
                let [arrival] = &stream.arrivals[..] else { panic!("{stream:?}") };
                assert_eq!((arrival.port, arrival.report.received), (1 - stream.port, stream.sent));
                // By the sender's clock: frames are due for a part of a second behind the start.
                let last_ns = arrival.report.last_ns.unwrap();
                assert!(last_ns > start_ns, "{last_ns} {start_ns}");
            }
        }
        drop(bed);
        first.end();
        second.end();
    }

    #[test]
    fn one_box_with_both_ends_has_one_clock() {
        let ends = ["memory:agent-one?end=a", "memory:agent-one?end=b"];
        let names = ends.map(str::to_owned).to_vec();
        let executor = Executor::opening(names, netdev::open_text);
        let places = [(0, Some(ends[0].to_owned())), (0, Some(ends[1].to_owned()))];
        let bed =
            AgentsTestbed::new(vec![TrafficBox::Local(executor)], &places, Some(1_000_000_000));
        let (bed, stop) = (bed.unwrap(), AtomicBool::new(false));
        let mut measurer = bed.measurer(plan(&stop));
        let output = measurer.trial(INPUT).unwrap();
        assert_eq!(output.report.received + output.unsent, 200);
        assert!(measurer.clock().is_none());
        assert!(output.report.delay.unwrap().min_ns > 0);
    }

    /// A trial in which one of the boxes stood still is told, as one of the lab's own machine is.
    #[test]
    fn a_stall_of_a_box_is_reported_once() {
        let ends = ["memory:agent-stall?end=a", "memory:agent-stall?end=b"];
        // Longer than this machine may stall meanwhile.
        let stands_still = |_| std::thread::sleep(Duration::from_secs(1));
        let own = Executor::opening(vec![ends[0].to_owned()], netdev::open_text);
        let agent = Running::start_napping(&ends[1..], None, stands_still);
        let link = agent.connect().unwrap();
        let boxes = [TrafficBox::Local(own), TrafficBox::Agent(link)];
        let bed = AgentsTestbed::new(boxes.into(), &[(0, None), (1, None)], None).unwrap();
        let stop = AtomicBool::new(false);
        bed.measurer(plan(&stop)).trial(INPUT).unwrap();
        let stall = bed.take_stall();
        assert!(stall.ms >= 80.0, "{stall:?}");
        let address = agent.address.to_string();
        assert!(stall.at.as_ref().is_some_and(|at| at.contains(&address)), "{stall:?}");
        assert_eq!(bed.take_stall(), Stall::default(), "it was of that trial");
        drop(bed);
        agent.end();
    }

    #[test]
    fn ends_that_are_not_there_are_named() {
        let executor =
            || Executor::opening(vec!["x".to_owned(), "y".to_owned()], netdev::open_text);
        let new = |places: &[(usize, Option<String>)]| {
            let boxes = vec![TrafficBox::Local(executor())];
            AgentsTestbed::new(boxes, places, None).unwrap_err().to_string()
        };
        assert!(new(&[(0, None)]).contains("it has x, y"));
        assert!(new(&[(0, Some("z".to_owned()))]).contains("interface z is wanted"));
        let twice = new(&[(0, Some("x".to_owned())), (0, Some("x".to_owned()))]);
        assert!(twice.contains("x is named twice"), "{twice}");
    }

    #[test]
    fn a_stop_ends_a_trial_and_closes_both_ends() {
        let ends = ["memory:agent-stop?end=a", "memory:agent-stop?end=b"];
        let agent = Running::start(&ends, None);
        let boxes = vec![TrafficBox::Agent(agent.connect().unwrap())];
        let places = ends.map(|end| (0, Some(end.to_owned())));
        let bed = AgentsTestbed::new(boxes, &places, None).unwrap();
        let stop = AtomicBool::new(false);
        let long = TrialInput { duration_s: 1_000.0, ..INPUT };
        std::thread::scope(|scope| {
            let trial = scope.spawn(|| bed.measurer(plan(&stop)).trial(long));
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(trial.join().unwrap().unwrap_err().to_string().contains("stopped"));
        });
        drop(bed);
        agent.await_line("has gone");
        // Nothing was left open for the end of the connection to close.
        assert!(!agent.log.lock().unwrap().iter().any(|line| line.contains("is closed")));
        agent.end();
    }
}
