//! The lab's side: a connection to an agent, or the lab's own machine in the place of one.
//!
//! An error names the agent. It must never take one box's clock for another's: a request for the
//! time names the box.

use std::time::{Duration, Instant};

use channel::{BlockingStream, Endpoint, Tls, TransportError};
use serde::{Deserialize, Serialize};

use super::clock::Exchange;
use super::executor::Executor;
use super::protocol::{self, AgentAnswer, AgentHello, AgentRequest, VERSION, Welcome};
use super::stream::{MessageStream, StreamError};
use crate::facts::Machine;

/// The longest wait for an answer: opening an interface and its threads is the longest of them.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Longest time that a farewell may take: after it the agent works for the next lab.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why an agent does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It cannot be reached, or refuses the certificate.
    #[error("the agent at {address}: {source}; does weir lab agent run there?")]
    Unreachable {
        /// Address of the agent.
        address: String,
        /// Why.
        source: TransportError,
    },
    /// It works for nobody, or for somebody else.
    #[error("the agent at {address} refuses: {why}")]
    Refused {
        /// Address of the agent.
        address: String,
        /// In its words.
        why: String,
    },
    /// It has ended, or its box has, or it says what is no message.
    #[error("the agent at {address} on {host}: {what}")]
    Lost {
        /// Address of the agent.
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
    /// Address at which the agent listens.
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

    /// The interfaces that may be used there.
    #[must_use]
    pub fn interfaces(&self) -> &[String] {
        match self {
            Self::Agent(link) => &link.interfaces,
            Self::Local(executor) => executor.interfaces(),
        }
    }

    /// Whether it makes hosts with addresses: the lab's own machine does.
    #[must_use]
    pub fn makes_hosts(&self) -> bool {
        match self {
            Self::Agent(link) => link.makes_hosts,
            Self::Local(executor) => executor.makes_hosts(),
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

/// A connection to an agent. Dropping it ends the connection, and with it all that is open there.
#[derive(Debug)]
pub struct AgentLink {
    facts: Box<BoxFacts>,
    interfaces: Vec<String>,
    makes_hosts: bool,
    stream: Option<MessageStream>,
}

impl AgentLink {
    /// Connects to `tcp:HOST:PORT`, or with TLS to `ssl:HOST:PORT`, as the lab of that name.
    ///
    /// # Errors
    /// [`AgentError::Unreachable`], [`AgentError::Refused`] where it works for another lab or
    /// speaks another version, [`AgentError::Lost`].
    pub fn connect(endpoint: &Endpoint, tls: Option<&Tls>, lab: &str) -> Result<Self, AgentError> {
        let address = endpoint.to_string();
        let unreachable = |source| AgentError::Unreachable { address: address.clone(), source };
        let stream = BlockingStream::connect(endpoint, tls).map_err(unreachable)?;
        let mut link = Self {
            facts: Box::new(BoxFacts {
                address: address.clone(),
                host: "a box that has not said its name".to_owned(),
                ..BoxFacts::default()
            }),
            interfaces: Vec::new(),
            makes_hosts: false,
            stream: Some(MessageStream::new(stream)),
        };
        let hello = AgentHello { version: VERSION, lab: lab.to_owned() };
        let content = link.exchange_messages(&hello)?;
        let welcome: Welcome =
            protocol::decode(&content).map_err(|error| link.lost(&error.to_string()))?;
        if let Some(why) = welcome.refusal {
            return Err(AgentError::Refused { address, why });
        }
        if welcome.version != VERSION {
            let why = format!("it speaks version {}, this lab {VERSION}", welcome.version);
            return Err(AgentError::Refused { address, why });
        }
        let Welcome { host, weir, machine, interfaces, makes_hosts, .. } = welcome;
        let weir = weir.unwrap_or_else(|| "unknown".to_owned());
        *link.facts = BoxFacts { address, host, weir, machine };
        (link.interfaces, link.makes_hosts) = (interfaces, makes_hosts);
        Ok(link)
    }

    fn lost(&mut self, what: &str) -> AgentError {
        // What comes later would answer another question.
        self.stream = None;
        let BoxFacts { address, host, .. } = (*self.facts).clone();
        AgentError::Lost { address, host, what: what.to_owned() }
    }

    fn exchange_messages(
        &mut self,
        message: &impl serde::Serialize,
    ) -> Result<Vec<u8>, AgentError> {
        let Some(stream) = &mut self.stream else {
            return Err(self.lost("the connection was lost before"));
        };
        let sent = stream.send(message, ANSWER_LIMIT);
        let answer = sent.and_then(|()| stream.receive(ANSWER_LIMIT, &|| true));
        match answer {
            Ok(Some(content)) => Ok(content),
            Ok(None) => Err(self.lost("no answer")),
            Err(StreamError::Ended) => {
                Err(self.lost("it has ended the connection; its log may say why"))
            }
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    fn ask(&mut self, request: &AgentRequest) -> Result<AgentAnswer, AgentError> {
        let content = self.exchange_messages(request)?;
        protocol::decode(&content).map_err(|error| self.lost(&error.to_string()))
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

impl Drop for AgentLink {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.finish(FAREWELL);
        }
    }
}
