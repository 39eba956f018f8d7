//! The lab's side of an agent: it is started, asked, and ended with the value that has it.
//!
//! An error names the box, and has the last lines that the agent or `ssh` wrote.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use generator::method::on_ports::PortTrialError;
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
const LAST_LINES: Duration = Duration::from_secs(1);

/// Asks for no password, and sees within seconds that a box has lost its power.
const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=2 --";

/// Why an agent does not do what it is asked for, with the box's name.
#[derive(Debug, thiserror::Error)]
#[error("{at}: {why}")]
pub struct AgentError {
    at: String,
    why: String,
}

impl From<AgentError> for PortTrialError {
    fn from(error: AgentError) -> Self {
        Self::Port(error.to_string())
    }
}

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

/// An agent at work. Dropping it ends the agent, and with it all that is open there.
#[derive(Debug)]
pub struct AgentLink {
    facts: BoxFacts,
    stream: BufReader<UnixStream>,
    is_lost: bool,
    /// The program that carries the stream.
    program: Option<Process>,
}

impl AgentLink {
    /// Starts an agent for these interfaces, with its log in `dir`; `agent` is none for one of this
    /// machine.
    ///
    /// # Errors
    /// It does not start, is of another version, or cannot have an interface.
    pub fn start(
        agent: Option<&str>,
        interfaces: &[String],
        (weir, dir): (&Path, &Path),
    ) -> Result<Self, AgentError> {
        let address = agent.unwrap_or_default();
        let facts = BoxFacts { address: address.to_owned(), ..BoxFacts::default() };
        let failed = |error: &dyn std::fmt::Display| AgentError {
            at: box_name(&facts),
            why: error.to_string(),
        };
        let logs = tempfile::tempdir_in(dir).map_err(|error| failed(&error))?.keep();
        let program = Process::start_over_stream("agent", command(agent, weir), true, &logs)
            .map_err(|error| failed(&error))?;
        let stream = program.stream().map(UnixStream::try_clone).transpose();
        match stream.map_err(|error| failed(&error))? {
            Some(stream) => Self::over(stream, address, interfaces, Some(program)),
            None => Err(failed(&"it has no stream")),
        }
    }

    /// An agent at the other end of a stream.
    pub(super) fn over(
        stream: UnixStream,
        address: &str,
        interfaces: &[String],
        program: Option<Process>,
    ) -> Result<Self, AgentError> {
        let facts = BoxFacts { address: address.to_owned(), ..BoxFacts::default() };
        let mut link = Self { facts, stream: BufReader::new(stream), is_lost: false, program };
        let hello = AgentHello { version: VERSION, interfaces: interfaces.to_vec() };
        let welcome: AgentWelcome = link.exchange_lines(&hello, START_LIMIT)?;
        let other = || format!("it speaks version {}, this lab {VERSION}", welcome.version);
        let other = (welcome.version != VERSION).then(other);
        if let Some(why) = welcome.refusal.or(other) {
            return Err(link.error(why));
        }
        link.facts = BoxFacts { address: address.to_owned(), ..welcome.facts };
        Ok(link)
    }

    /// Known facts about the box; none of the lab's own machine, which every report names.
    #[must_use]
    pub fn facts(&self) -> Option<&BoxFacts> {
        Some(&self.facts).filter(|facts| !facts.address.is_empty())
    }

    /// The box's name, for errors and notes.
    #[must_use]
    pub fn name(&self) -> String {
        box_name(&self.facts)
    }

    fn error(&self, why: String) -> AgentError {
        AgentError { at: self.name(), why }
    }

    /// Asks for something and waits for the answer.
    ///
    /// # Errors
    /// The box is lost, or cannot do it.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &AgentRequest) -> Result<T, AgentError> {
        let answer: Result<T, String> = self.exchange_lines(request, ANSWER_LIMIT)?;
        answer.map_err(|why| self.error(why))
    }

    /// Asks for the time so often, by a clock that was zero at `zero`.
    ///
    /// # Errors
    /// As [`AgentLink::ask`].
    pub fn exchanges(&mut self, zero: Instant, times: usize) -> Result<Vec<Exchange>, AgentError> {
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
    ) -> Result<T, AgentError> {
        if self.is_lost {
            return Err(self.error("it was lost before".to_owned()));
        }
        let mut exchange = || {
            let stream = self.stream.get_mut();
            stream.set_write_timeout(Some(limit))?;
            stream.set_read_timeout(Some(limit))?;
            write_line(stream, message)?;
            let line = protocol::read_line(&mut self.stream)?;
            protocol::decode(&line.ok_or(io::ErrorKind::UnexpectedEof)?)
        };
        exchange().map_err(|error: io::Error| {
            self.is_lost = true;
            let why = self.explain(&error, limit);
            self.error(why)
        })
    }

    /// An error of the stream, with the last lines of the program that carries it.
    fn explain(&mut self, error: &io::Error, limit: Duration) -> String {
        const ENDS: [io::ErrorKind; 3] = [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::ConnectionReset,
        ];
        let what = if ENDS.contains(&error.kind()) {
            "it has ended".to_owned()
        } else if error.kind() == io::ErrorKind::WouldBlock {
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
