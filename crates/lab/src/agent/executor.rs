//! An agent's work at its interfaces for a lab; the lab does the same at its own.
//!
//! One program at a time at each interface, each for one trial. Frames of a stream are counted by
//! their number, wherever they are sent. Everything that a request says is looked at before
//! anything is opened. Dropping an executor closes all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use generator::profile::StreamSpec;
use generator::session::{Session, SessionOptions, StartOptions, Waiting};
use generator::statistics::{SessionStatistics, StreamStatistics};
use netdev::{Port, PortError};

use super::host::BoxHost;
use super::protocol::{
    AgentAnswer, AgentRequest, EndProgram, EndSeen, EndTask, SeenStream, Traffic,
};
use crate::host_program::HostProgram;
use crate::hosts::HostAddress;
use crate::hosts::reflect;
use crate::stall::{Nap, Watcher};

/// Streams of a program, at most: as many phases a trial has.
const STREAMS_MAX: usize = 256;

/// The interface's port of a session; behind it are those that lead nowhere.
const OWN: usize = 0;

/// Line rate of an interface at which nothing is sent: above any rate that a stream has, bit/s.
const ANY_RATE_BPS: f64 = 1e15;

/// Bounds of the zero of the frames' clock, nanoseconds from now: a day back, a minute ahead.
const ZERO_BACK_NS: i64 = 86_400_000_000_000;
const ZERO_AHEAD_NS: i64 = 60_000_000_000;

/// Opens the port of an interface.
pub(super) type Opener = fn(&str) -> Result<Port, PortError>;

/// See the module.
pub struct Executor {
    zero: Instant,
    open: Opener,
    nap: Nap,
    programs: BTreeMap<String, Program>,
}

/// A program, and the stalls of the machine since it was opened.
struct Program {
    running: Running,
    stalls: Watcher,
}

/// A program that runs.
enum Running {
    Traffic(Box<Session>),
    Reflector {
        stop: Arc<AtomicBool>,
        reflected: Arc<AtomicU64>,
        thread: Option<JoinHandle<Result<(), PortError>>>,
    },
    Host(BoxHost),
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<&String> = self.programs.keys().collect();
        f.debug_struct("Executor").field("open", &open).finish_non_exhaustive()
    }
}

impl Executor {
    /// For network devices of this machine.
    #[must_use]
    pub fn new() -> Self {
        Self::opening(|name| netdev::open_text(&format!("af_packet:{name}")))
    }

    /// For interfaces that `open` opens.
    pub(super) fn opening(open: Opener) -> Self {
        let (nap, programs) = (std::thread::sleep as Nap, BTreeMap::new());
        Self { zero: Instant::now(), open, nap, programs }
    }

    /// The same with watchers of stalls that sleep by `nap`.
    #[cfg(test)]
    pub(super) fn napping(self, nap: Nap) -> Self {
        Self { nap, ..self }
    }

    /// The time of its clock, nanoseconds since it was made.
    #[must_use]
    pub fn now_ns(&self) -> i64 {
        i64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Does what a request asks for that came at `received_ns`.
    pub fn carry_out(&mut self, request: AgentRequest, received_ns: i64) -> AgentAnswer {
        let done = match request {
            AgentRequest::Clock {} => {
                return AgentAnswer::Clock { received_ns, answered_ns: self.now_ns() };
            }
            AgentRequest::Open(program) => self.open(program),
            AgentRequest::Start { interface, at_ns } => self.start(&interface, at_ns),
            AgentRequest::Look { interface } => self.look(&interface).map(AgentAnswer::EndSeen),
            AgentRequest::Run { interface, program } => self.run(&interface, &program),
            AgentRequest::Read { interface, from } => self.read(&interface, from),
            AgentRequest::Close { interface } => {
                self.programs.remove(&interface);
                Ok(AgentAnswer::Closed {})
            }
        };
        done.unwrap_or_else(|why| AgentAnswer::Failed { why })
    }

    fn open(&mut self, program: EndProgram) -> Result<AgentAnswer, String> {
        let EndProgram { interface, part } = program;
        // What was open there, first: two programs would both count.
        self.programs.remove(&interface);
        let open = || {
            (self.open)(&interface).map_err(|error| {
                format!("{interface}: {error}; it needs to be up, and the agent root")
            })
        };
        let (running, answer) = match part {
            EndTask::Traffic(traffic) => {
                let zero = self.zero_of(&traffic)?;
                check_streams(&traffic)?;
                let mut session = loaded(open()?, &traffic, zero)?;
                let mac = session.port_info(OWN).mac;
                let line_rate_bps = session.line_rate_bps(OWN);
                (Running::Traffic(Box::new(session)), AgentAnswer::Opened { mac, line_rate_bps })
            }
            EndTask::Reflector { mac, ip } => {
                let mut port = open()?;
                let line_rate_bps = port.info().speed_bps as f64;
                let answer = AgentAnswer::Opened { mac: port.info().mac, line_rate_bps };
                (Running::reflector(port, HostAddress { ip, mac })?, answer)
            }
            EndTask::Host { host, others } => {
                let made = BoxHost::make(&interface, &host, &others)?;
                let answer = AgentAnswer::Opened { mac: host.mac, line_rate_bps: 0.0 };
                (Running::Host(made), answer)
            }
        };
        let stalls = Watcher::start(self.nap)
            .map_err(|error| format!("no thread that watches for stalls: {error}"))?;
        self.programs.insert(interface, Program { running, stalls });
        Ok(answer)
    }

    /// The zero of the clock in a program's frames.
    fn zero_of(&self, traffic: &Traffic) -> Result<Instant, String> {
        let (zero_ns, now_ns) = (traffic.zero_ns, self.now_ns());
        let from_now_ns = zero_ns.saturating_sub(now_ns);
        let zero = Duration::from_nanos(zero_ns.unsigned_abs());
        let zero = match zero_ns >= 0 {
            true => self.zero.checked_add(zero),
            false => self.zero.checked_sub(zero),
        };
        zero.filter(|_| (-ZERO_BACK_NS..=ZERO_AHEAD_NS).contains(&from_now_ns)).ok_or_else(|| {
            format!("a clock that is zero at {zero_ns} ns, where it is {now_ns} ns now")
        })
    }

    fn program(&mut self, interface: &str) -> Result<&mut Program, String> {
        let is_closed = || format!("{interface} is not open");
        self.programs.get_mut(interface).ok_or_else(is_closed)
    }

    fn start(&mut self, interface: &str, at_ns: Option<u64>) -> Result<AgentAnswer, String> {
        match &mut self.program(interface)?.running {
            Running::Traffic(session) => {
                let start_ns = session
                    .start(&[OWN], &StartOptions { at_ns, ..StartOptions::default() })
                    .map_err(|error| format!("{interface}: {error}"))?;
                Ok(AgentAnswer::Started { start_ns })
            }
            Running::Reflector { .. } | Running::Host(_) => {
                Err(format!("{interface} has no streams that could be started"))
            }
        }
    }

    fn run(&mut self, interface: &str, program: &HostProgram) -> Result<AgentAnswer, String> {
        self.host(interface)?.run(program).map(|()| AgentAnswer::Runs {})
    }

    fn read(&mut self, interface: &str, from: u64) -> Result<AgentAnswer, String> {
        self.host(interface)?.read(from).map(AgentAnswer::Printed)
    }

    fn host(&mut self, interface: &str) -> Result<&mut BoxHost, String> {
        match &mut self.program(interface)?.running {
            Running::Host(host) => Ok(host),
            Running::Traffic(_) | Running::Reflector { .. } => {
                Err(format!("{interface} is not opened for a host, which could run programs"))
            }
        }
    }

    fn look(&mut self, interface: &str) -> Result<EndSeen, String> {
        let Program { running, stalls } = self.program(interface)?;
        let seen = match running {
            Running::Traffic(session) => {
                let is_transmitting = session.is_transmitting(OWN);
                let statistics = session.statistics();
                seen(&statistics, is_transmitting, session.now_ns())
            }
            Running::Reflector { reflected, thread, .. } => {
                let ended = thread.take_if(|thread| thread.is_finished()).map(JoinHandle::join);
                let receive_error = match ended {
                    None | Some(Ok(Ok(()))) => None,
                    Some(Ok(Err(error))) => Some(error.to_string()),
                    Some(Err(_)) => Some("the reflector has panicked".to_owned()),
                };
                let reflected = reflected.load(Ordering::Relaxed);
                EndSeen { receive_error, reflected, ..EndSeen::default() }
            }
            Running::Host(host) => EndSeen { program: host.seen()?, ..EndSeen::default() },
        };
        // Behind what was seen: a stall before it is in it.
        Ok(EndSeen { stall_ms: stalls.longest_ms(), ..seen })
    }
}

impl Running {
    fn reflector(mut port: Port, host: HostAddress) -> Result<Self, String> {
        let (stop, reflected) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (Arc::clone(&stop), Arc::clone(&reflected));
        let run = move || reflect(&mut port, &host, &is_over, &count);
        let thread = std::thread::Builder::new().name("reflector".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for the reflector: {error}"))?;
        Ok(Self::Reflector { stop, reflected, thread: Some(thread) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self {
            // It ends its threads itself.
            Self::Traffic(_) | Self::Host(_) => {}
            Self::Reflector { stop, thread, .. } => {
                stop.store(true, Ordering::Relaxed);
                // A panic has been printed by the thread; an error has nobody to hear it any more.
                drop(thread.take().map(JoinHandle::join));
            }
        }
    }
}

/// Whether streams may be sent for somebody else: a capture would be a file of this machine.
fn check_streams(traffic: &Traffic) -> Result<(), String> {
    let count = traffic.streams.len();
    if !(1..=STREAMS_MAX).contains(&count) {
        return Err(format!("{count} streams: 1 to {STREAMS_MAX}"));
    }
    if let Some(stream) = traffic.streams.iter().find(|stream| stream.capture.is_some()) {
        return Err(format!("stream {:?}: an agent sends no capture files", stream.name));
    }
    let mut ends = BTreeSet::new();
    match by_end(&traffic.streams).find(|streams| !ends.insert(streams[0].port)) {
        Some(again) => Err(format!("streams of end {} stand in two places", again[0].port)),
        None => Ok(()),
    }
}

/// The streams by the end that sends them, in the order of their numbers.
fn by_end(streams: &[StreamSpec]) -> impl Iterator<Item = &[StreamSpec]> {
    streams.chunk_by(|one, next| one.port == next.port)
}

/// A session with all streams: those of this end at its port, those of each other end at a port
/// that leads nowhere, which has their frames known to all ports and sends none.
fn loaded(port: Port, traffic: &Traffic, zero: Instant) -> Result<Session, String> {
    let (mut ports, mut places) = (vec![port], Vec::new());
    for streams in by_end(&traffic.streams) {
        if streams[0].port == traffic.port {
            places.push(OWN);
        } else {
            places.push(ports.len());
            let nowhere = format!("null:end{}", streams[0].port);
            ports.push(netdev::open_text(&nowhere).map_err(|error| error.to_string())?);
        }
    }
    let mut rates = vec![ANY_RATE_BPS; ports.len()];
    rates[OWN] = traffic.line_rate_bps;
    let options = options(traffic, zero, rates);
    let mut session = Session::from_ports(ports, options).map_err(|error| error.to_string())?;
    for (streams, place) in by_end(&traffic.streams).zip(places) {
        session.load(place, streams).map_err(|error| error.to_string())?;
    }
    Ok(session)
}

fn options(traffic: &Traffic, zero: Instant, line_rate_bps: Vec<f64>) -> SessionOptions {
    SessionOptions {
        line_rate_bps,
        waiting: if traffic.is_precise { Waiting::Precise } else { Waiting::Sleeping },
        first_stream: traffic.first_stream,
        zero: Some(zero),
        ..SessionOptions::default()
    }
}

fn seen(statistics: &SessionStatistics, is_transmitting: bool, now_ns: u64) -> EndSeen {
    let stream = |stream: &StreamStatistics| SeenStream {
        is_numbered: stream.lost.is_some(),
        probes: stream.probes,
        unsent: stream.unsent,
        unsent_down: stream.unsent_down,
        late: stream.late,
        arrived: (stream.arrivals.iter().find(|arrival| arrival.port == OWN))
            .map(|arrival| arrival.report.clone()),
    };
    let port = statistics.ports.get(OWN);
    let mut streams: Vec<&StreamStatistics> = statistics.streams.iter().collect();
    streams.sort_by_key(|stream| stream.id);
    EndSeen {
        is_transmitting,
        now_ns,
        stopped: port.and_then(|port| port.stopped.as_ref()).map(|stop| stop.reason.clone()),
        receive_error: port.and_then(|port| port.rx.error.clone()),
        streams: streams.into_iter().map(stream).collect(),
        reflected: 0,
        stall_ms: 0.0,
        program: None,
    }
}
