//! Agents on threads of this process, with ends in memory: no root, no namespace.

use std::io::{BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use generator::profile::{CaptureReplay, CaptureTiming, StreamSpec};

use super::client::{AgentLink, TrafficBox};
use super::executor::Executor;
use super::protocol::{
    self, AgentAnswer, AgentHello, AgentRequest, EndProgram, EndTask, Traffic, VERSION, Welcome,
};
use super::server;

/// An agent that runs, and how it ended.
struct Running(JoinHandle<Result<(), String>>);

impl Running {
    /// An agent, and the lab's end of its stream; its watchers of stalls sleep by `nap`.
    fn start(nap: fn(Duration)) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let run = move || {
            let executor = Executor::opening(netdev::open_text).napping(nap);
            let mut from = BufReader::new(theirs.try_clone().unwrap());
            let ended = server::serve((&mut from, &mut &theirs), executor, |_| Ok(()));
            // As the end of a process does.
            let _ = theirs.shutdown(Shutdown::Both);
            ended.map_err(|error| error.to_string())
        };
        (Self(std::thread::spawn(run)), ours)
    }

    /// The same with a lab, as an agent of that name.
    fn joined(name: &str, nap: fn(Duration)) -> (Self, TrafficBox) {
        let (agent, stream) = Self::start(nap);
        let link = AgentLink::over(stream, name, &[], None).unwrap();
        (agent, TrafficBox::Agent(link))
    }

    /// Waits until it has ended with its lab.
    fn ended(self) -> Result<(), String> {
        self.0.join().unwrap()
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
fn an_agent_ends_with_its_lab_and_closes_what_is_open() {
    let (agent, mut link) = Running::joined("a", std::thread::sleep);
    let opened = link.ask(traffic("memory:agent-two?end=a", vec![StreamSpec::default()]));
    assert!(matches!(opened, Ok(AgentAnswer::Opened { .. })), "{opened:?}");
    drop(link);
    assert_eq!(agent.ended(), Ok(()));
    // Of memory ports one has the end at a time.
    netdev::open_text("memory:agent-two?end=a").unwrap();
}

#[test]
fn an_agent_that_ends_is_named_with_its_box() {
    let (mut of_agent, stream) = UnixStream::pair().unwrap();
    let welcome = Welcome {
        version: VERSION,
        host: "box".to_owned(),
        refusal: None,
        weir: "1".to_owned(),
        machine: None,
    };
    of_agent.write_all(&protocol::encode(&welcome).unwrap()).unwrap();
    let link = AgentLink::over(stream, "root@b", &[], None).unwrap();
    let mut link = TrafficBox::Agent(link);
    drop(of_agent);
    let error = link.exchange(Instant::now()).unwrap_err().to_string();
    assert_eq!(error, "the agent root@b on box: it has ended");
    // And it is not asked again as if nothing had been.
    assert!(link.exchange(Instant::now()).unwrap_err().to_string().contains("lost before"));
}

#[test]
fn an_agent_that_does_not_start_is_an_error_with_its_words() {
    let interfaces = ["eth1".to_owned()];
    let start = |agent: &str| AgentLink::start(agent, &interfaces).unwrap_err().to_string();
    let absent = start("no-such-program-here lab agent");
    assert!(absent.contains("no-such-program-here: No such file"), "{absent}");
    let folder = tempfile::tempdir().unwrap();
    let script = |text: &str| {
        let path = folder.path().join("agent.sh");
        std::fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    };
    let refused = start(&script("read hello; echo 'Permission denied (publickey).' >&2"));
    assert!(refused.ends_with("it has ended: Permission denied (publickey)."), "{refused}");
    let long = "head -c 70000 /dev/zero | tr '\\0' x >&2; printf '\\nno \\377 bytes\\n' >&2";
    let odd = start(&script(&format!("read hello; {long}")));
    assert!(odd.ends_with("\nno \u{fffd} bytes"), "{}", odd.len());
    let banner = start(&script("echo Welcome to box; read hello"));
    assert!(banner.contains("no message of version 5: \"Welcome to box\""), "{banner}");
    let other = start(&script(r#"read hello; echo '{"version":9,"host":"b","weir":"2"}'"#));
    assert!(other.ends_with(&format!("it speaks version 9, this lab {VERSION}")), "{other}");
    let taken = r#"read hello; echo '{"version":5,"host":"b","weir":"2","refusal":"eth1: taken"}'"#;
    assert!(start(&script(taken)).ends_with(": eth1: taken"));
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let (agent, mut stream) = Running::start(std::thread::sleep);
    let hello = AgentHello { version: VERSION + 1, interfaces: Vec::new() };
    stream.write_all(&protocol::encode(&hello).unwrap()).unwrap();
    let mut came = String::new();
    stream.read_to_string(&mut came).unwrap();
    let welcome: Welcome = protocol::decode(&came).unwrap();
    let why = format!("it speaks version {VERSION}, and this lab {}", VERSION + 1);
    assert_eq!(welcome.refusal.as_ref(), Some(&why));
    assert_eq!(agent.ended(), Err(why));
}

#[test]
fn hostile_bytes_end_an_agent_with_an_error() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..60_u32 {
        let (agent, mut stream) = Running::start(std::thread::sleep);
        // Whole hellos before some of them, so that requests are reached too.
        if round % 2 == 0 {
            let hello = AgentHello { version: VERSION, interfaces: vec!["x".repeat(999)] };
            stream.write_all(&protocol::encode(&hello).unwrap()).unwrap();
        }
        let mut bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        bytes.push(b'\n');
        // The agent may have ended by now.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        agent.ended().unwrap_err();
    }
}

#[test]
fn what_a_lab_may_not_ask_for_is_refused_in_words() {
    let mut executor = Executor::opening(netdev::open_text);
    let mut why = |request: AgentRequest| {
        let answer = executor.carry_out(request, 0);
        let AgentAnswer::Failed { why } = answer else { panic!("{answer:?}") };
        why
    };
    let own = || "memory:agent-odd?end=a".to_owned();
    let capture =
        CaptureReplay { file: "/etc/shadow".into(), timing: CaptureTiming::default(), loops: 1 };
    let file = StreamSpec { capture: Some(capture), ..StreamSpec::default() };
    let open = why(traffic("memory:agent-odd?end=c", vec![StreamSpec::default()]));
    assert!(open.contains("it needs to be up, and the agent root"), "{open}");
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

    /// A testbed over two boxes, each with one of the ends.
    fn bed(boxes: [(Running, TrafficBox); 2], ends: [&str; 2]) -> ([Running; 2], AgentsTestbed) {
        let [(first, one), (second, two)] = boxes;
        let places = [(0, ends[0].to_owned()), (1, ends[1].to_owned())];
        let bed = AgentsTestbed::new(vec![one, two], &places, None).unwrap();
        ([first, second], bed)
    }

    const INPUT: TrialInput =
        TrialInput { frame_size: 128, rate_pps: 500.0, duration_s: 0.4, grace_s: 30.0 };

    /// Two agents whose clocks began at other times, and a wire between their ends: what is sent
    /// at one is counted at the other, and the delays are those of the wire.
    #[test]
    fn two_boxes_measure_a_wire_and_the_error_of_their_clocks() {
        let ends = ["memory:agent-wire?end=a", "memory:agent-wire?end=b"];
        let first = Running::joined("one", std::thread::sleep);
        // Their clocks differ by so much at least.
        std::thread::sleep(Duration::from_millis(300));
        let second = Running::joined("two", std::thread::sleep);
        let (agents, bed) = bed([first, second], ends);
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
        for agent in agents {
            agent.ended().unwrap();
        }
    }

    /// Both ends send from one moment on, and each counts what the other has sent.
    #[test]
    fn two_boxes_send_at_one_time_and_count_each_other_s_frames() {
        let ends = ["memory:agent-both?end=a", "memory:agent-both?end=b"];
        let first = Running::joined("one", std::thread::sleep);
        std::thread::sleep(Duration::from_millis(200));
        let second = Running::joined("two", std::thread::sleep);
        let (agents, bed) = bed([first, second], ends);
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
        for agent in agents {
            agent.ended().unwrap();
        }
    }

    #[test]
    fn one_box_with_both_ends_has_one_clock() {
        let ends = ["memory:agent-one?end=a", "memory:agent-one?end=b"];
        let executor = Executor::opening(netdev::open_text);
        let places = ends.map(|end| (0, end.to_owned()));
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
        let own = TrafficBox::Local(Executor::opening(netdev::open_text));
        let (agent, link) = Running::joined("root@still", stands_still);
        let places = [(0, ends[0].to_owned()), (1, ends[1].to_owned())];
        let bed = AgentsTestbed::new(vec![own, link], &places, None).unwrap();
        let stop = AtomicBool::new(false);
        bed.measurer(plan(&stop)).trial(INPUT).unwrap();
        let stall = bed.take_stall();
        assert!(stall.ms >= 80.0, "{stall:?}");
        assert!(stall.at.as_ref().is_some_and(|at| at.contains("root@still")), "{stall:?}");
        assert_eq!(bed.take_stall(), Stall::default(), "it was of that trial");
        drop(bed);
        agent.ended().unwrap();
    }

    #[test]
    fn one_interface_has_one_end() {
        let boxes = vec![TrafficBox::Local(Executor::opening(netdev::open_text))];
        let twice = AgentsTestbed::new(boxes, &["x", "x"].map(|end| (0, end.to_owned())), None);
        let error = twice.unwrap_err().to_string();
        assert!(error.contains("x is named twice"), "{error}");
    }

    #[test]
    fn a_stop_ends_a_trial_and_closes_both_ends() {
        let ends = ["memory:agent-stop?end=a", "memory:agent-stop?end=b"];
        let (agent, link) = Running::joined("a", std::thread::sleep);
        let places = ends.map(|end| (0, end.to_owned()));
        let bed = AgentsTestbed::new(vec![link], &places, None).unwrap();
        let stop = AtomicBool::new(false);
        let long = TrialInput { duration_s: 1_000.0, ..INPUT };
        std::thread::scope(|scope| {
            let trial = scope.spawn(|| bed.measurer(plan(&stop)).trial(long));
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(trial.join().unwrap().unwrap_err().to_string().contains("stopped"));
        });
        // Nothing is left open.
        for end in ends {
            netdev::open_text(end).unwrap();
        }
        drop(bed);
        agent.ended().unwrap();
    }
}
