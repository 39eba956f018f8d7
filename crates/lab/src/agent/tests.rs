//! Agents on threads of this process, with ends in memory: no root, no namespace.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use generator::method::on_ports::SessionMeasurer;
use generator::method::{Measurer as _, TrialInput};
use generator::profile::{FrameSize, Mode, Rate, StreamSpec};
use generator::session::Waiting;
use generator::statistics::{PortStatistics, PortStop, SessionStatistics};
use programs::cancel::Cancel;

use super::client::AgentLink;
use super::clock::ClockComparison;
use super::protocol::{self, AgentHello, AgentRequest, AgentWelcome, BoxReport, VERSION};
use super::server::{self, Agent};
use crate::host_program::HostProgram;
use crate::hosts::HOSTS;
use crate::stall::{Nap, Stall};
use crate::testbed::Testbed;
use crate::testbed::external::ExternalTestbed;

/// An agent that runs, and how it ended.
type Running = JoinHandle<Result<(), String>>;

/// An agent, and the lab's end of its stream; its watchers of stalls sleep by `nap`.
fn start(nap: Nap) -> (Running, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let run = move || {
        let agent = Agent::opening(netdev::open_text, nap);
        let mut from = BufReader::new(theirs.try_clone().unwrap());
        let ended = server::serve((&mut from, &mut &theirs), agent, |_| Ok(()));
        // As the end of a process does.
        let _ = theirs.shutdown(Shutdown::Both);
        ended.map(drop).map_err(|error| error.to_string())
    };
    (std::thread::spawn(run), ours)
}

/// The same with a lab, as an agent of that name.
fn joined(name: &str, nap: Nap) -> (Running, AgentLink) {
    let (agent, stream) = start(nap);
    (agent, AgentLink::over(stream, name, &[], None).unwrap())
}

/// Waits until agents have ended with their lab.
fn end(bed: Testbed, agents: impl IntoIterator<Item = Running>) {
    drop(bed);
    agents.into_iter().for_each(|agent| agent.join().unwrap().unwrap());
}

/// An agent that gives these answers to the first requests and ends, and the requests that came.
fn scripted(name: &str, answers: &[&str]) -> (JoinHandle<String>, AgentLink) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let welcome = format!(r#"{{"version":{VERSION},"host":"box","weir":"1"}}"#);
    let mut lines = vec![format!("{welcome}\n")];
    lines.extend(answers.iter().map(|answer| format!("{answer}\n")));
    let run = move || {
        let (mut from, mut came) = (BufReader::new(theirs.try_clone().unwrap()), String::new());
        for answer in lines {
            from.read_line(&mut came).unwrap();
            theirs.write_all(answer.as_bytes()).unwrap();
        }
        came
    };
    (std::thread::spawn(run), AgentLink::over(ours, name, &[], None).unwrap())
}

fn open(interface: &str, first_stream: u16, zero_ns: Option<i64>, rate_bps: f64) -> AgentRequest {
    AgentRequest::Open {
        interfaces: vec![None, Some(interface.to_owned())],
        first_stream,
        is_precise: false,
        zero_ns,
        line_rate_bps: rate_bps,
    }
}

#[test]
fn an_agent_ends_with_its_lab_and_closes_what_is_open() {
    let (agent, mut link) = joined("a", std::thread::sleep);
    let facts: Vec<([u8; 6], f64)> =
        link.ask(&open("memory:agent-two?end=a", 5, None, 0.0)).unwrap();
    assert_eq!(facts.len(), 2);
    drop(link);
    assert_eq!(agent.join().unwrap(), Ok(()));
    // Of memory ports one has the end at a time.
    netdev::open_text("memory:agent-two?end=a").unwrap();
}

#[test]
fn an_agent_that_ends_is_named_with_its_box() {
    let (agent, mut link) = scripted("root@b", &[]);
    agent.join().unwrap();
    let mut error = || link.exchanges(Instant::now(), 1).unwrap_err().to_string();
    assert_eq!(error(), "box (the agent root@b): it has ended");
    // And it is not asked again as if nothing had been.
    assert_eq!(error(), "box (the agent root@b): it was lost before: it has ended");
}

/// Of two boxes one is lost, and the other is closed all the same.
#[test]
fn every_box_is_closed_whichever_is_lost() {
    let ((lost, one), (closed, two)) = (scripted("a", &[]), scripted("b", &[r#"{"Ok":null}"#]));
    let (bed, stop) = (bed(vec![one, two], [0, 1], "lost"), AtomicBool::new(false));
    lost.join().unwrap();
    let errors = bed.with_ports(&stop, |ports| {
        Ok([(); 2].map(|()| ports.stop(&[0, 1]).unwrap_err().to_string()))
    });
    let [first, second] = errors.unwrap();
    assert_eq!(first, "box (the agent a): it has ended");
    assert!(second.contains("a): it was lost") && second.contains("; box (the agent b): "));
    assert!(closed.join().unwrap().contains(r#"{"request":"close"}"#));
}

#[test]
fn a_port_that_stops_is_named_with_its_box() {
    let stopped = Some(PortStop { at_ns: 7, reason: "the port went down".to_owned() });
    let port = PortStatistics { name: "eth1".to_owned(), stopped, ..PortStatistics::default() };
    let statistics = SessionStatistics { ports: vec![port], ..SessionStatistics::default() };
    let report = BoxReport { statistics, ..BoxReport::default() };
    let (_, link) = scripted("a", &[&serde_json::to_string(&Ok::<_, ()>(report)).unwrap()]);
    let (bed, stop) = (bed(vec![link], [0, 0], "down"), AtomicBool::new(false));
    let seen = bed.with_ports(&stop, |ports| Ok(ports.statistics().unwrap())).unwrap();
    let reason = seen.ports[0].stopped.as_ref().map(|stop| &*stop.reason);
    assert_eq!(reason, Some("box (the agent a): eth1: the port went down"));
}

#[test]
fn an_agent_that_does_not_start_is_an_error_with_its_last_lines() {
    let (folder, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
    let start = |agent: &str| {
        let places = (Path::new("weir"), folder.path());
        let started = AgentLink::start(Some(agent), &["eth1".to_owned()], places, &cancel);
        started.unwrap_err().to_string()
    };
    let absent = start("no-such-program-here lab agent");
    assert!(absent.contains("no-such-program-here lab agent`: No such file"), "{absent}");
    let script = |text: &str| {
        let path = folder.path().join("agent.sh");
        std::fs::write(&path, text).unwrap();
        start(&format!("sh {}", path.display()))
    };
    for (text, end) in [
        (
            "read hello; echo 'Permission denied (publickey).' >&2",
            "it has ended: Permission denied (publickey).",
        ),
        ("read hello; printf 'no \\377 bytes\\n' >&2", "no \u{fffd} bytes"),
        (
            r#"read hello; echo '{"version":9,"host":"b","weir":"2","x":1}'"#,
            "it speaks version 9, this lab 6",
        ),
        (
            r#"read hello; echo '{"version":6,"host":"b","weir":"2","refusal":"eth1: taken"}'"#,
            ": eth1: taken",
        ),
    ] {
        let error = script(text);
        assert!(error.ends_with(end), "{text}: {error}");
    }
    let banner = script("echo Welcome to box; read hello");
    assert!(banner.contains("no message of version 6: \"Welcome to box\""), "{banner}");
    // An interrupted run waits for no agent.
    cancel.stop();
    let stopped = script("cat > /dev/null");
    assert!(stopped.contains(": interrupted"), "{stopped}");
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let (agent, mut stream) = start(std::thread::sleep);
    stream.write_all(b"{\"version\":7,\"interfaces\":[],\"more\":[1]}\n").unwrap();
    let mut came = String::new();
    stream.read_to_string(&mut came).unwrap();
    let welcome: AgentWelcome = protocol::decode(&came).unwrap();
    let why = format!("it speaks version {VERSION}, and this lab 7");
    assert_eq!(welcome.refusal.as_ref(), Some(&why));
    assert_eq!(agent.join().unwrap(), Err(why));
}

#[test]
fn hostile_bytes_end_an_agent_with_an_error() {
    let mut random = fastrand::Rng::with_seed(3);
    let run = AgentRequest::Run { program: HostProgram::Ping { target: HOSTS[1].ip, requests: 3 } };
    for round in 0..60_u32 {
        let (agent, mut stream) = start(std::thread::sleep);
        // Whole hellos before some of them, so that requests are reached too.
        let hello = AgentHello { version: VERSION, interfaces: vec!["x".repeat(999)] };
        let mut bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        bytes.push(b'\n');
        if round % 3 > 0 {
            protocol::write_line(&mut stream, &hello).unwrap();
        }
        if round % 3 > 1 {
            bytes.clear();
            // There is no host that could run it.
            protocol::write_line(&mut bytes, &run).unwrap();
        }
        // The agent may have ended by now.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        agent.join().unwrap().unwrap_err();
    }
    let long = format!("\"{}\"\n", "x".repeat(protocol::MESSAGE_MAX));
    let error = protocol::read_line(&mut long.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let (_agent, mut link) = joined("a", std::thread::sleep);
    let mut why = |request: &AgentRequest| {
        let answer: Result<serde_json::Value, _> = link.ask(request);
        answer.unwrap_err().to_string()
    };
    let own = "memory:agent-odd?end=a";
    let absent = why(&open("memory:agent-odd?end=c", 1, None, 0.0));
    assert!(absent.contains("it needs to be up, and the agent root"), "{absent}");
    assert!(why(&open(own, 1, None, -1.0)).contains("line rate"));
    assert!(why(&open(own, 0, None, 0.0)).contains("numbered from 1"));
    let start = AgentRequest::Start { ports: vec![1], at_ns: None };
    assert!(why(&start).contains("no session is open"));
    let (_agent, mut link) = joined("a", std::thread::sleep);
    // A clock far away is none that counts, and breaks nothing.
    for zero_ns in [Some(i64::MIN), Some(i64::MAX), None] {
        link.ask::<serde_json::Value>(&open(own, 1, zero_ns, 0.0)).unwrap();
        link.ask::<BoxReport>(&AgentRequest::Look {}).unwrap();
    }
    assert!(link.ask::<u64>(&start).unwrap_err().to_string().contains("no streams"));
    let load = AgentRequest::Load { port: 2, streams: vec![StreamSpec::default()] };
    assert!(link.ask::<()>(&load).unwrap_err().to_string().contains("none 2"));
    assert_eq!(link.ask::<BoxReport>(&AgentRequest::Look {}).unwrap().statistics.ports.len(), 2);
}

/// Measures between the first two ports.
fn measure<T>(
    bed: &Testbed,
    stop: &AtomicBool,
    work: impl FnOnce(&mut SessionMeasurer<'_>) -> T,
) -> (T, Option<ClockComparison>) {
    let (stream, quiet, is_learning) = (StreamSpec::default(), Duration::from_secs(1), true);
    let measured = bed.with_two_ports(Waiting::Sleeping, stop, |session| {
        let (from, to) = (0, 1);
        let mut measurer = SessionMeasurer { session, from, to, stream, is_learning, quiet, stop };
        Ok(work(&mut measurer))
    });
    measured.unwrap()
}

/// A testbed over boxes, with its ends at those that `places` names.
fn bed(links: Vec<AgentLink>, places: [usize; 2], name: &str) -> Testbed {
    let [one, two] = places;
    let end = |at, end| (at, format!("memory:agent-{name}?end={end}"));
    Testbed::External(ExternalTestbed::new(links, vec![end(one, "a"), end(two, "b")]).unwrap())
}

const INPUT: TrialInput =
    TrialInput { frame_size: 128, rate_pps: 500.0, duration_s: 0.4, grace_s: 30.0 };

/// Two agents whose clocks began at other times.
fn two_boxes(name: &str) -> ([Running; 2], Testbed) {
    let (first, one) = joined("one", std::thread::sleep);
    // Their clocks differ by so much at least.
    std::thread::sleep(Duration::from_millis(300));
    let (second, two) = joined("two", std::thread::sleep);
    ([first, second], bed(vec![one, two], [0, 1], name))
}

/// Frames sent at one box are counted at the other, and the delays are those of the wire.
#[test]
fn two_boxes_measure_a_wire_and_the_error_of_their_clocks() {
    let (agents, bed) = two_boxes("wire");
    let stop = AtomicBool::new(false);
    // What their figures hold for.
    let (kernel, notes) = (crate::facts::Machine::read().kernel, bed.notes());
    let names_kernel = |note: &&String| note.contains(&kernel) && note.contains("weir ");
    assert_eq!(notes.iter().filter(names_kernel).count(), 2, "{notes:?}");
    // The second trial finds everything as the first did.
    let (outputs, clock) =
        measure(&bed, &stop, |measurer| [(); 2].map(|()| measurer.trial(INPUT).unwrap()));
    let clock = clock.unwrap();
    assert!(clock.error_us > 0.0 && clock.comparisons >= 3, "{clock:?}");
    // The second agent's clock is behind by the time between their starts.
    assert!(clock.offset_us < -299_000.0, "{clock:?}");
    for output in outputs {
        let report = &output.report;
        assert_eq!(report.sent, 200);
        assert_eq!(report.received + output.unsent, 200, "{output:?}");
        assert_eq!((report.late, report.stale, report.duplicated), (0, 0, 0));
        // Not below zero but by the error, and nowhere near the offset of the clocks.
        let delay = report.delay.as_ref().unwrap();
        let shortest_us = delay.min_ns as f64 / 1e3;
        assert!(shortest_us > -clock.error_us, "{delay:?} {clock:?}");
        assert!(shortest_us < 200_000.0, "{delay:?}");
        assert!(output.start_ns < report.last_ns.unwrap());
    }
    end(bed, agents);
}

/// Both ends send from one moment on, and each counts what the other has sent.
#[test]
fn two_boxes_send_at_one_time_and_count_each_other_s_frames() {
    let (agents, bed) = two_boxes("both");
    let stop = AtomicBool::new(false);
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
        let exchanged = bed.with_ports(&stop, |ports| {
            loads.iter().for_each(|(port, streams)| ports.load(*port, streams).unwrap());
            let start_ns = ports.start(&[1, 0]).unwrap();
            assert!(ports.wait(Duration::from_secs(60)).unwrap());
            ports.wait_until_quiet(Duration::from_secs(1), Duration::from_secs(60)).unwrap();
            Ok((start_ns, ports.statistics().unwrap()))
        });
        let (start_ns, seen) = exchanged.unwrap();
        assert_eq!(seen.ports.len(), 2);
        let due = [(0, 100), (1, 60), (1, 30)];
        for (stream, (port, frames)) in seen.streams.iter().zip(due) {
            assert_eq!((stream.port, stream.sent + stream.unsent), (port, frames));
            assert_eq!(stream.lost, Some(0));
            let [arrival] = &stream.arrivals[..] else { panic!("{stream:?}") };
            assert_eq!((arrival.port, arrival.report.received), (1 - stream.port, stream.sent));
            // By the sender's clock: frames are due for a part of a second after the start.
            let last_ns = arrival.report.last_ns.unwrap();
            assert!(last_ns > start_ns, "{last_ns} {start_ns}");
        }
        assert_eq!(seen.streams.len(), due.len());
    }
    end(bed, agents);
}

#[test]
fn one_box_with_both_ends_has_one_clock_and_reflects() {
    let (agent, link) = joined("a", std::thread::sleep);
    let (bed, stop) = (bed(vec![link], [0, 0], "one"), AtomicBool::new(false));
    let (output, clock) = measure(&bed, &stop, |measurer| measurer.trial(INPUT).unwrap());
    assert_eq!(output.report.received + output.unsent, 200);
    assert!(clock.is_none());
    assert!(output.report.delay.unwrap().min_ns > 0);
    let back = bed.round_trip(&INPUT, &Cancel::default()).unwrap();
    assert_eq!(back.report.received + back.unsent, 200);
    end(bed, [agent]);
}

/// A trial in which one of the boxes stood still is named, as one of the lab's own machine is.
#[test]
fn a_stall_of_a_box_is_reported_once() {
    // Longer than this machine may stall meanwhile.
    let stands_still = |_| std::thread::sleep(Duration::from_secs(1));
    let (_first, one) = joined("root@one", std::thread::sleep);
    let (_second, two) = joined("root@still", stands_still);
    let (bed, stop) = (bed(vec![one, two], [0, 1], "stall"), AtomicBool::new(false));
    measure(&bed, &stop, |measurer| measurer.trial(INPUT).unwrap());
    let stall = bed.take_stall();
    assert!(stall.ms >= 80.0, "{stall:?}");
    assert!(stall.at.as_ref().is_some_and(|at| at.contains("root@still")), "{stall:?}");
    assert_eq!(bed.take_stall(), Stall::default(), "it was of that trial");
}

#[test]
fn one_interface_has_one_end() {
    let ends = vec![(0, "x".to_owned()), (0, "x".to_owned())];
    let error = ExternalTestbed::new(Vec::new(), ends).unwrap_err().to_string();
    assert!(error.contains("x is named twice"), "{error}");
}

#[test]
fn a_stop_ends_a_trial_and_closes_both_ends() {
    let (agent, link) = joined("a", std::thread::sleep);
    let (bed, stop) = (bed(vec![link], [0, 0], "stop"), AtomicBool::new(false));
    let long = TrialInput { duration_s: 1_000.0, ..INPUT };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let (stopped, _) = measure(&bed, &stop, |measurer| measurer.trial(long));
        assert!(stopped.unwrap_err().to_string().contains("stopped"));
    });
    // Nothing is left open.
    for end in ["a", "b"] {
        netdev::open_text(&format!("memory:agent-stop?end={end}")).unwrap();
    }
    end(bed, [agent]);
}
