//! The agent: carries out what a lab requests over a pair of streams, and ends with them.
//!
//! The streams are its standard input and output, and ssh carries them: whoever may log in may do
//! it. A lab that ends, dies or sends what is no message ends its agent, and with it all that is
//! open. It must never go on without its lab.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use generator::session::{Session, SessionOptions, StartOptions, Waiting};
use netdev::{Port, PortError};
use serde_json::{Value, json};

use super::host::BoxHost;
use super::protocol::{
    self, AgentHello, AgentRequest, AgentWelcome, BoxReport, VERSION, write_line,
};
use crate::facts::{self, BoxFacts, Machine};
use crate::host_program::HostProgram;
use crate::hosts::{HostAddress, reflect};
use crate::stall::{Nap, Watcher};

/// Line rate of a port at which nothing is sent: above any rate that a stream has, bit/s.
const ANY_RATE_BPS: f64 = 1e15;

/// All that is open at a box.
pub struct Agent {
    zero: Instant,
    /// Opens the port of an interface.
    open: fn(&str) -> Result<Port, PortError>,
    /// Sleep of the watcher of stalls.
    nap: Nap,
    session: Option<Session>,
    reflector: Option<Reflector>,
    host: Option<BoxHost>,
    stalls: Option<Watcher>,
}

/// Answers request after request of a lab until it ends; `take` has its interfaces for so long. The
/// host and the program with which it is to end, where the lab has one run. An error is a lab that
/// is refused, a message that is none, a host that cannot be made, a stream that fails.
pub fn serve<T>(
    (from, to): (&mut impl BufRead, &mut impl Write),
    mut agent: Agent,
    take: impl FnOnce(&[String]) -> io::Result<T>,
) -> io::Result<Option<(BoxHost, HostProgram)>> {
    let Some(line) = protocol::read_line(from)? else { return Ok(None) };
    let hello: AgentHello = protocol::decode(&line)?;
    let taken = match hello.version {
        VERSION => take(&hello.interfaces),
        other => {
            Err(io::Error::other(format!("it speaks version {VERSION}, and this lab {other}")))
        }
    };
    let facts = BoxFacts {
        host: facts::host_name(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Some(Machine::read()),
        ..BoxFacts::default()
    };
    let refusal = taken.as_ref().err().map(ToString::to_string);
    write_line(to, &AgentWelcome { version: VERSION, refusal, facts })?;
    let _taken = taken?;
    while let Some(line) = protocol::read_line(from)? {
        let received_ns = agent.now_ns();
        let request = protocol::decode(&line)?;
        if let AgentRequest::Run { program } = request {
            let host = agent.host.take();
            let host = host.ok_or_else(|| io::Error::other("no host that could run it"))?;
            return Ok(Some((host, program)));
        }
        if let AgentRequest::Host { interface, host, others } = &request {
            agent.host = Some(BoxHost::make(interface, *host, others)?);
        }
        let answer = agent.answer(request, received_ns);
        write_line(to, &answer.map_err(|error| error.to_string()))?;
    }
    Ok(None)
}

impl Agent {
    /// For network devices of this machine.
    pub fn new() -> Self {
        Self::opening(|name| netdev::open_text(&format!("af_packet:{name}")), std::thread::sleep)
    }

    /// For interfaces that `open` opens, with watchers of stalls that sleep by `nap`.
    pub(super) fn opening(open: fn(&str) -> Result<Port, PortError>, nap: Nap) -> Self {
        let zero = Instant::now();
        Self { zero, open, nap, session: None, reflector: None, host: None, stalls: None }
    }

    /// The time of its clock, nanoseconds since it was made.
    fn now_ns(&self) -> i64 {
        i64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Carries out a request that came at `received_ns`: its answer, or why there is none.
    fn answer(&mut self, request: AgentRequest, received_ns: i64) -> Result<Value> {
        Ok(match request {
            AgentRequest::Clock {} => json!([received_ns, self.now_ns()]),
            AgentRequest::Open { interfaces, first_stream, is_precise, zero_ns, line_rate_bps } => {
                let waiting = if is_precise { Waiting::Precise } else { Waiting::Sleeping };
                let options = SessionOptions { waiting, first_stream, ..SessionOptions::default() };
                json!(self.open_session(&interfaces, options, zero_ns, line_rate_bps)?)
            }
            AgentRequest::Load { port, streams } => json!(self.session()?.load(port, &streams)?),
            AgentRequest::Start { ports, at_ns } => {
                let how = StartOptions { at_ns, ..StartOptions::default() };
                json!(self.session()?.start(&ports, &how)?)
            }
            AgentRequest::Reflect { interface, host } => json!(self.reflect(interface, host)?),
            AgentRequest::Watch {} => json!(self.watch()?),
            AgentRequest::Look {} => json!(self.report()),
            AgentRequest::Close {} => {
                (self.session, self.reflector, self.stalls) = (None, None, None);
                Value::Null
            }
            // Carried out by the caller.
            AgentRequest::Host { .. } | AgentRequest::Run { .. } => Value::Null,
        })
    }

    fn session(&mut self) -> Result<&mut Session> {
        self.session.as_mut().context("no session is open")
    }

    fn open_port(&self, interface: &str) -> Result<Port> {
        (self.open)(interface)
            .map_err(|error| anyhow!("{interface}: {error}; it needs to be up, and the agent root"))
    }

    /// Opens a session of which the ports without an interface lead nowhere: they have the streams
    /// of other boxes known to all ports and send none.
    fn open_session(
        &mut self,
        interfaces: &[Option<String>],
        options: SessionOptions,
        zero_ns: Option<i64>,
        line_rate_bps: f64,
    ) -> Result<Vec<([u8; 6], f64)>> {
        // What was open there, first: two sessions would both count.
        self.session = None;
        let zero_of = |zero_ns: i64| {
            let apart = Duration::from_nanos(zero_ns.unsigned_abs());
            let move_by = if zero_ns < 0 { Instant::checked_sub } else { Instant::checked_add };
            let moved = move_by(&self.zero, apart);
            moved.with_context(|| format!("a clock that is zero at {zero_ns} ns"))
        };
        let zero = zero_ns.map(zero_of).transpose()?;
        let open = |(number, interface): (usize, &Option<String>)| -> Result<(Port, f64)> {
            Ok(match interface {
                Some(interface) => (self.open_port(interface)?, line_rate_bps),
                None => (netdev::open_text(&format!("null:end{number}"))?, ANY_RATE_BPS),
            })
        };
        let opened = interfaces.iter().enumerate().map(open).collect::<Result<_>>();
        let (ports, rates): (Vec<Port>, Vec<f64>) = opened?;
        let options = SessionOptions { line_rate_bps: rates, zero, ..options };
        let session = self.session.insert(Session::from_ports(ports, options)?);
        let facts = |port| (session.port_info(port).mac, session.line_rate_bps(port));
        let facts = (0..interfaces.len()).map(facts).collect();
        self.watch()?;
        Ok(facts)
    }

    fn reflect(&mut self, interface: String, host: HostAddress) -> Result<()> {
        self.reflector = None;
        self.reflector = Some(Reflector::start(self.open_port(&interface)?, interface, host)?);
        self.watch()
    }

    fn watch(&mut self) -> Result<()> {
        let watcher = Watcher::start(self.nap)
            .map_err(|error| anyhow!("no thread that watches for stalls: {error}"))?;
        self.stalls = Some(watcher);
        Ok(())
    }

    fn report(&mut self) -> BoxReport {
        BoxReport {
            statistics: self.session.as_mut().map(Session::statistics).unwrap_or_default(),
            reflect_error: self.reflector.as_mut().and_then(Reflector::error),
            // After what was counted: a stall before it is in it.
            stall_ms: self.stalls.as_ref().map_or(0.0, Watcher::longest_ms),
        }
    }
}

/// A host that reflects, on a thread of its own, until it is dropped.
struct Reflector {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Reflector {
    fn start(mut port: Port, interface: String, host: HostAddress) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let run = move || {
            let reflected = reflect(&mut port, &host, &is_over);
            reflected.map_err(|error| format!("{interface}: {error}"))
        };
        let thread = std::thread::Builder::new().name("reflector".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// The error with which it has ended.
    fn error(&mut self) -> Option<String> {
        let ended = self.thread.take_if(|thread| thread.is_finished())?.join();
        ended.unwrap_or_else(|_| Err("the reflector has panicked".to_owned())).err()
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic has been printed by the thread; an error has nobody to hear it any more.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
