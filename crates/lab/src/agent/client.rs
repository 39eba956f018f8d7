//! The lab's side of an agent: it is started, asked, and ended with the value that has it.
//!
//! An error names the box, and has the last lines that the agent or `ssh` wrote.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof, WouldBlock};
use std::io::{self, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use generator::method::on_ports::PortTrialError;
use netdev::sys::event::wait;
use programs::cancel::Cancel;
use programs::process::Process;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::Exchange;
use super::protocol::{self, AgentHello, AgentRequest, AgentWelcome, VERSION, write_line};
use crate::facts::BoxFacts;

/// The longest wait for an agent to start, by way of other boxes too.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(60);

/// The longest wait for an answer: opening an interface and its threads is the longest of them.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The longest wait for the last lines of an agent that has closed its stream.
pub(crate) const LAST_LINES: Duration = Duration::from_secs(1);

/// Asks for no password, and sees within seconds that a box has lost its power.
const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=2 --";

/// The command of an agent: of `weir` on this machine where no box is named, by `ssh` where one
/// word names it, else a command that starts one.
pub(crate) fn command(agent: Option<&str>, weir: &Path) -> Command {
    let line = match agent {
        None => {
            let mut command = Command::new(weir);
            command.args(["lab", "agent"]);
            return command;
        }
        Some(line) if line.trim().contains(' ') => line.to_owned(),
        Some(address) => format!("{SSH} {address} weir lab agent"),
    };
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// A box's name, as far as it is known.
pub(crate) fn box_name(facts: &BoxFacts) -> String {
    match facts {
        BoxFacts { address, .. } if address.is_empty() => "the lab's own machine".to_owned(),
        BoxFacts { address, host, .. } if host.is_empty() => format!("the agent {address}"),
        BoxFacts { address, host, .. } => format!("{host} (the agent {address})"),
    }
}

/// Why a box does not do what it is asked for, with its name.
fn box_error(facts: &BoxFacts, why: &dyn std::fmt::Display) -> PortTrialError {
    PortTrialError::Port(format!("{}: {why}", box_name(facts)))
}

/// An agent at work. Dropping it ends the agent, and with it all that is open there.
#[derive(Debug)]
pub struct AgentLink {
    facts: BoxFacts,
    stream: BufReader<UnixStream>,
    /// Why it cannot be asked any more.
    lost: Option<String>,
    /// The program that carries the stream.
    program: Option<Process>,
}

impl AgentLink {
    /// Starts an agent for these interfaces, on this machine where none is named; its log in `dir`.
    pub fn start(
        agent: Option<&str>,
        interfaces: &[String],
        (weir, dir): (&Path, &Path),
        cancel: &Cancel,
    ) -> Result<Self, PortTrialError> {
        let address = agent.unwrap_or_default();
        let start = || -> io::Result<(UnixStream, Process)> {
            let logs = tempfile::tempdir_in(dir)?.keep();
            let program = Process::start_over_stream("agent", command(agent, weir), true, &logs);
            let program = program.map_err(io::Error::other)?;
            let stream = program.stream().map(UnixStream::try_clone).transpose()?;
            Ok((stream.ok_or_else(|| io::Error::other("it has no stream"))?, program))
        };
        let facts = BoxFacts { address: address.to_owned(), ..BoxFacts::default() };
        let (stream, program) = start().map_err(|error| box_error(&facts, &error))?;
        Self::over(stream, address, interfaces, Some((program, cancel)))
    }

    /// An agent at the other end of a stream, with the program that carries it.
    pub(crate) fn over(
        stream: UnixStream,
        address: &str,
        interfaces: &[String],
        program: Option<(Process, &Cancel)>,
    ) -> Result<Self, PortTrialError> {
        let facts = BoxFacts { address: address.to_owned(), ..BoxFacts::default() };
        let (program, cancel) = program.unzip();
        let mut link = Self { facts, stream: BufReader::new(stream), lost: None, program };
        let hello = AgentHello { version: VERSION, interfaces: interfaces.to_vec() };
        let welcome: AgentWelcome = link.exchange_lines(&hello, START_LIMIT, cancel)?;
        let other = || format!("it speaks version {}, this lab {VERSION}", welcome.version);
        let other = (welcome.version != VERSION).then(other);
        if let Some(why) = welcome.refusal.or(other) {
            return Err(box_error(&link.facts, &why));
        }
        link.facts = BoxFacts { address: address.to_owned(), ..welcome.facts };
        Ok(link)
    }

    /// Known facts about the box; none of the lab's own machine, which every report names.
    pub fn facts(&self) -> Option<&BoxFacts> {
        Some(&self.facts).filter(|facts| !facts.address.is_empty())
    }

    /// The box's name, for errors and notes.
    pub fn name(&self) -> String {
        box_name(&self.facts)
    }

    /// Asks for something and waits for the answer. Fails if the box is lost or cannot do it.
    pub fn ask<T: DeserializeOwned>(
        &mut self,
        request: &AgentRequest,
    ) -> Result<T, PortTrialError> {
        let answer: Result<T, String> = self.exchange_lines(request, ANSWER_LIMIT, None)?;
        answer.map_err(|why| box_error(&self.facts, &why))
    }

    /// Asks for the time so often, by a clock that was zero at `zero`.
    pub fn exchanges(
        &mut self,
        zero: Instant,
        times: usize,
    ) -> Result<Vec<Exchange>, PortTrialError> {
        let now_ns = || i64::try_from(zero.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let exchange = |_| {
            let asked_ns = now_ns();
            let (received_ns, answered_ns) = self.ask(&AgentRequest::Clock {})?;
            Ok(Exchange { asked_ns, received_ns, answered_ns, returned_ns: now_ns() })
        };
        (0..times).map(exchange).collect()
    }

    /// Sends a line and waits for the next. After an error nothing is sent any more: what comes
    /// later would answer another question.
    fn exchange_lines<T: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<T, PortTrialError> {
        if let Some(why) = &self.lost {
            return Err(box_error(&self.facts, &format_args!("it was lost before: {why}")));
        }
        let mut exchange = || -> io::Result<T> {
            let stream = self.stream.get_mut();
            stream.set_write_timeout(Some(limit))?;
            stream.set_read_timeout(Some(limit))?;
            write_line(stream, message)?;
            let comes = || wait(&[stream.as_fd()], Some(Duration::ZERO)).unwrap_or(true);
            // An agent may be long in starting, and nobody is to wait for the limit then.
            match cancel.map_or(Ok(true), |cancel| cancel.poll(limit, comes)) {
                Ok(true) => {}
                Ok(false) => return Err(WouldBlock.into()),
                Err(stopped) => return Err(io::Error::other(stopped)),
            }
            let line = protocol::read_line(&mut self.stream)?;
            protocol::decode(&line.ok_or(UnexpectedEof)?)
        };
        exchange().map_err(|error| {
            let why = self.explain(&error, limit);
            box_error(&self.facts, self.lost.insert(why))
        })
    }

    /// An error of the stream, with the last lines of the program that carries it.
    fn explain(&mut self, error: &io::Error, limit: Duration) -> String {
        let kind = error.kind();
        let what = if matches!(kind, UnexpectedEof | BrokenPipe | ConnectionReset) {
            "it has ended".to_owned()
        } else if kind == WouldBlock {
            format!("no answer within {} s", limit.as_secs())
        } else {
            error.to_string()
        };
        let tail = self.program.as_mut().map_or_else(String::new, |program| {
            // Its last lines are written when it has ended.
            let _ = program.ends_within(LAST_LINES);
            program.tail()
        });
        if tail.is_empty() { what } else { format!("{what}: {tail}") }
    }
}
