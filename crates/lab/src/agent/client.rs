//! The lab's side: an agent that it starts, or the lab's own machine in the place of one.
//!
//! An error names the agent, and has the last lines that it or `ssh` wrote. It must never take one
//! box's clock for another's: a request for the time names the box.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clock::Exchange;
use super::executor::Executor;
use super::protocol::{self, AgentAnswer, AgentHello, AgentRequest, VERSION, Welcome};
use crate::facts::Machine;

/// The longest wait for an agent to start, by way of other boxes too.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The longest wait for an answer: opening an interface and its threads is the longest of them.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Longest time that an agent may take to end: the next lab needs its interfaces.
const FAREWELL: Duration = Duration::from_secs(5);

/// Asks for no password, and sees within seconds that a box has lost its power.
const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=2 --";

/// The most that is read of what an agent wrote to its standard error.
const LOG_MAX: u64 = 1 << 16;

/// Why an agent does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It does not start, or refuses this lab.
    #[error("the agent {address}: {why}")]
    Refused {
        /// The agent.
        address: String,
        /// Why.
        why: String,
    },
    /// It has ended, or its box has, or it says what is no message.
    #[error("the agent {address} on {host}: {what}")]
    Lost {
        /// The agent.
        address: String,
        /// The box's name.
        host: String,
        /// The loss, in words.
        what: String,
    },
    /// It cannot do it.
    #[error("{at}: {why}")]
    Failed {
        /// The box's name.
        at: String,
        /// In its words.
        why: String,
    },
}

/// A box with an agent: where it is reached, and what figures of it hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxFacts {
    /// The agent, as the inventory names it.
    pub address: String,
    /// The box's name.
    pub host: String,
    /// The version of Weir there.
    pub weir: String,
    /// The machine.
    pub machine: Option<Machine>,
}

/// A box with ends of the switch under test.
#[derive(Debug)]
pub enum TrafficBox {
    /// Another machine, by its agent.
    Agent(AgentLink),
    /// This machine.
    Local(Executor),
}

impl TrafficBox {
    /// Its name, for errors and notes.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Agent(link) => format!("{} ({})", link.facts.host, link.facts.address),
            Self::Local(_) => "the lab's own machine".to_owned(),
        }
    }

    /// Conditions that figures of a box hold for, in words; none of the lab's own machine, which
    /// every report names.
    #[must_use]
    pub fn conditions(&self) -> Option<String> {
        let facts = self.facts()?;
        Some(format!("{}: {}", self.name(), conditions(facts)))
    }

    /// Known facts about the box; none of the lab's own machine.
    #[must_use]
    pub fn facts(&self) -> Option<&BoxFacts> {
        match self {
            Self::Agent(link) => Some(&*link.facts),
            Self::Local(_) => None,
        }
    }

    /// Asks for something and waits for the answer.
    ///
    /// # Errors
    /// [`AgentError::Lost`], and [`AgentError::Failed`] in place of [`AgentAnswer::Failed`].
    pub fn ask(&mut self, request: AgentRequest) -> Result<AgentAnswer, AgentError> {
        let answer = match self {
            Self::Agent(link) => link.ask(&request)?,
            Self::Local(executor) => {
                let now_ns = executor.now_ns();
                executor.carry_out(request, now_ns)
            }
        };
        if let AgentAnswer::Failed { why } = answer {
            return Err(AgentError::Failed { at: self.name(), why });
        }
        Ok(answer)
    }

    /// Asks for the time, by a clock that was zero at `zero`.
    ///
    /// # Errors
    /// As [`TrafficBox::ask`].
    pub fn exchange(&mut self, zero: Instant) -> Result<Exchange, AgentError> {
        let now_ns = || i64::try_from(zero.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let asked_ns = now_ns();
        let answer = self.ask(AgentRequest::Clock {})?;
        let returned_ns = now_ns();
        let AgentAnswer::Clock { received_ns, answered_ns } = answer else {
            return Err(self.odd(&answer));
        };
        Ok(Exchange { asked_ns, received_ns, answered_ns, returned_ns })
    }

    /// The error of an answer to another question.
    #[must_use]
    pub fn odd(&self, answer: &AgentAnswer) -> AgentError {
        AgentError::Failed { at: self.name(), why: format!("an answer out of place: {answer:?}") }
    }
}

/// An agent at work. Dropping it ends the agent, and with it all that is open there.
#[derive(Debug)]
pub struct AgentLink {
    facts: Box<BoxFacts>,
    stream: BufReader<UnixStream>,
    is_lost: bool,
    /// The program that carries the stream, and what it wrote to its standard error.
    program: Option<(Child, File)>,
}

impl AgentLink {
    /// Starts an agent for these interfaces: by `ssh` where one word names a box, else by a command
    /// that starts one.
    ///
    /// # Errors
    /// [`AgentError::Refused`] where it does not start, speaks another version, or cannot have an
    /// interface.
    pub fn start(agent: &str, interfaces: &[String]) -> Result<Self, AgentError> {
        let refused = |error: io::Error| {
            let (address, why) = (agent.to_owned(), error.to_string());
            AgentError::Refused { address, why }
        };
        let line = match agent.trim().contains(' ') {
            true => agent.to_owned(),
            false => format!("{SSH} {agent} weir lab agent"),
        };
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        let (ours, theirs) = UnixStream::pair().map_err(refused)?;
        let log = tempfile::tempfile().map_err(refused)?;
        let input = OwnedFd::from(theirs.try_clone().map_err(refused)?);
        command.args(words).stdin(input).stdout(OwnedFd::from(theirs));
        // Of Ctrl-C it hears from the lab.
        command.stderr(Stdio::from(log.try_clone().map_err(refused)?)).process_group(0);
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            refused(io::Error::other(format!("{program}: {error}")))
        })?;
        // Its copy of the agent's end would hide that the agent has ended.
        drop(command);
        Self::over(ours, agent, interfaces, Some((child, log)))
    }

    /// An agent at the other end of a stream.
    pub(super) fn over(
        stream: UnixStream,
        address: &str,
        interfaces: &[String],
        program: Option<(Child, File)>,
    ) -> Result<Self, AgentError> {
        let facts = BoxFacts { address: address.to_owned(), ..BoxFacts::default() };
        let (facts, stream) = (Box::new(facts), BufReader::new(stream));
        let mut link = Self { facts, stream, is_lost: false, program };
        let hello = AgentHello { version: VERSION, interfaces: interfaces.to_vec() };
        let welcome = link.exchange_messages(&hello, START_LIMIT);
        let address = || address.to_owned();
        let welcome: Welcome = match welcome {
            Ok(welcome) => welcome,
            Err(why) => return Err(AgentError::Refused { address: address(), why }),
        };
        let other = || format!("it speaks version {}, this lab {VERSION}", welcome.version);
        let other = (welcome.version != VERSION).then(other);
        if let Some(why) = welcome.refusal.or(other) {
            return Err(AgentError::Refused { address: address(), why });
        }
        let Welcome { host, weir, machine, .. } = welcome;
        *link.facts = BoxFacts { address: address(), host, weir, machine };
        Ok(link)
    }

    /// Sends a message and waits for the answer. Behind an error nothing is sent any more: what
    /// comes later would answer another question.
    fn exchange_messages<T: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
    ) -> Result<T, String> {
        if self.is_lost {
            return Err("it was lost before".to_owned());
        }
        let mut exchange = || {
            let stream = self.stream.get_mut();
            stream.set_write_timeout(Some(limit))?;
            stream.set_read_timeout(Some(limit))?;
            stream.write_all(&protocol::encode(message)?)?;
            let line = protocol::read_line(&mut self.stream)?;
            protocol::decode(&line.ok_or(io::ErrorKind::UnexpectedEof)?)
        };
        exchange().map_err(|error: io::Error| {
            self.is_lost = true;
            self.explain(&error, limit)
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
        let mut lines = String::new();
        if let Some((child, log)) = &mut self.program {
            // Its last words are written when it has ended.
            await_end(child, Duration::from_secs(1));
            lines =
                last_words(log).unwrap_or_else(|error| format!("its log cannot be read: {error}"));
        }
        let tail = programs::process::tail_of(&lines);
        if tail.is_empty() { what } else { format!("{what}: {tail}") }
    }

    fn ask(&mut self, request: &AgentRequest) -> Result<AgentAnswer, AgentError> {
        self.exchange_messages(request, ANSWER_LIMIT).map_err(|what| {
            let BoxFacts { address, host, .. } = (*self.facts).clone();
            AgentError::Lost { address, host, what }
        })
    }
}

/// The end of a log, as far as it is text.
fn last_words(log: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let begin = log.seek(SeekFrom::End(0))?.saturating_sub(LOG_MAX);
    log.seek(SeekFrom::Start(begin))?;
    log.take(LOG_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a program has ended within a time.
fn await_end(child: &mut Child, limit: Duration) -> bool {
    let begun = Instant::now();
    while let Ok(None) = child.try_wait() {
        if begun.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

impl Drop for AgentLink {
    fn drop(&mut self) {
        // An agent that has gone needs no farewell.
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
        if let Some((child, _)) = &mut self.program
            && !await_end(child, FAREWELL)
        {
            // One that ends in this very moment cannot be killed any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn conditions(of: &BoxFacts) -> String {
    let machine = |machine: &Machine| {
        let real_time = machine.real_time_error.as_deref().unwrap_or("permitted");
        let Machine { cpu, cores, kernel, os, .. } = machine;
        format!("{cpu}, {cores} cores; {kernel}; {os}; real time: {real_time}")
    };
    let unknown = || "unknown".to_owned();
    format!("weir {}; {}", of.weir, of.machine.as_ref().map_or_else(unknown, machine))
}
