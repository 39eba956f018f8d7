//! The requests of a lab to an agent, and their answers: a line of JSON each, in order.
//!
//! The first line is [`AgentHello`], which each version can read; an agent of another version
//! refuses it by name. The answer to a request is `{"Ok":..}` or `{"Err":"why"}`. It must never
//! keep more of a line than [`MESSAGE_MAX`], and nothing that comes may cause a panic.

use std::io::{self, BufRead, Read as _, Write};

use generator::profile::StreamSpec;
use generator::statistics::SessionStatistics;
use serde::{Deserialize, Serialize};

use crate::facts::BoxFacts;
use crate::host_program::HostProgram;
use crate::hosts::HostAddress;

/// The version of the messages: that of both sides has to be this one.
pub const VERSION: u32 = 6;

/// The longest message, bytes: more than any answer has, and the streams of any cell.
pub const MESSAGE_MAX: usize = 1 << 20;

/// The first line. Later versions keep these members.
#[derive(Debug, Serialize, Deserialize)]
pub struct AgentHello {
    pub version: u32,
    /// The interfaces of the box that the lab takes for itself.
    pub interfaces: Vec<String>,
}

/// The answer to it. Later versions keep these members.
#[derive(Debug, Serialize, Deserialize)]
pub struct AgentWelcome {
    pub version: u32,
    /// Why the agent does not work for this lab; then it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(flatten)]
    pub facts: BoxFacts,
}

/// A request of a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AgentRequest {
    /// The time: when the question came and when the answer leaves, nanoseconds of the box's clock.
    Clock {},
    /// Opens a session; the answer has the address and the line rate of each port.
    Open {
        /// The interface of each port of the session; none for a port on another box, whose
        /// streams are counted only.
        interfaces: Vec<Option<String>>,
        /// The number of the first stream in its frames: the same on all boxes.
        first_stream: u16,
        /// Whether the threads run in real time, so that delays are exact.
        is_precise: bool,
        /// Zero of the clock in the frames, in nanoseconds of the box's own; now where none is
        /// given.
        zero_ns: Option<i64>,
        /// Line rate at layer 1, bit/s; where it is 0, the rate that the interface itself names.
        line_rate_bps: f64,
    },
    /// Replaces the streams of a port of the session.
    Load { port: usize, streams: Vec<StreamSpec> },
    /// Sends the streams of ports; the answer is when the first frame is due.
    Start {
        ports: Vec<usize>,
        /// When it is to be due, by the clock in the frames; as soon as may be where none is given
        /// or it has passed.
        at_ns: Option<u64>,
    },
    /// Sends datagrams for a host back to where they came from.
    Reflect { interface: String, host: HostAddress },
    /// Watches for stalls of the box from now on, as where something is opened.
    Watch {},
    /// Asks for the [`BoxReport`].
    Look {},
    /// Closes what is open and ends the watch.
    Close {},
    /// Makes a host with a kernel of its own behind an interface, which reaches the others.
    Host { interface: String, host: HostAddress, others: Vec<HostAddress> },
    /// Runs a program at that host, the last request: what follows is the program's output, and the
    /// agent ends with it and with its exit code.
    Run { program: HostProgram },
}

/// State of an agent's box.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxReport {
    pub statistics: SessionStatistics,
    /// Why nothing is reflected any more.
    pub reflect_error: Option<String>,
    /// The longest stall of the box since the watch began, milliseconds.
    pub stall_ms: f64,
}

/// Writes a message as a line. An error is the stream's, or that the line is too long.
pub fn write_line(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > MESSAGE_MAX {
        return Err(io::Error::other(format!("a message of {} bytes", line.len())));
    }
    to.write_all(&line)?;
    to.flush()
}

/// The next line; `None` where the peer has ended, in the midst of one too.
pub fn read_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    match from.take(MESSAGE_MAX as u64).read_line(&mut line)? {
        MESSAGE_MAX if !line.ends_with('\n') => {
            Err(io::Error::other(format!("a message of more than {MESSAGE_MAX} bytes")))
        }
        _ => Ok(Some(line).filter(|line| line.ends_with('\n'))),
    }
}

/// Reads a message. An error has the place in the JSON, and the beginning of the line.
pub fn decode<'de, T: Deserialize<'de>>(line: &'de str) -> io::Result<T> {
    serde_json::from_str(line).map_err(|error| {
        let begin: String = line.trim_end().chars().take(200).collect();
        io::Error::other(format!("no message of version {VERSION}: {begin:?}: {error}"))
    })
}
