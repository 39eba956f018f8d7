//! Messages between a lab and an agent: requests and answers, each of them a line of JSON.
//!
//! The lab asks, the agent answers every request by one answer, in order. The first request is
//! [`AgentHello`], which each version can read; an agent of another version refuses it by name. One
//! row of [`AgentRequest`] is one thing that an agent does. It must never keep more of a line than
//! [`MESSAGE_MAX`], and nothing that comes may cause a panic.

use std::io::{self, BufRead, Read as _};

use generator::profile::StreamSpec;
use generator::receiver::StreamReport;
use serde::{Deserialize, Serialize};

use crate::facts::Machine;
use crate::host_program::HostProgram;
use crate::hosts::HostAddress;

/// The version of the messages: that of both sides has to be this one.
pub const VERSION: u32 = 5;

/// The longest message, bytes: more than any answer has, and the streams of any cell.
pub const MESSAGE_MAX: usize = 1 << 20;

/// The first request. Later versions keep these members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// [`VERSION`] of the lab.
    pub version: u32,
    /// The interfaces of the box at which the lab sends and receives.
    pub interfaces: Vec<String>,
}

/// The answer to it. Later versions keep these members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`VERSION`] of the agent.
    pub version: u32,
    /// The box's name.
    pub host: String,
    /// Why the agent does not work for this lab; then it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The version of Weir.
    pub weir: String,
    /// The box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// A request of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AgentRequest {
    /// The time.
    Clock {},
    /// Opens an interface for one trial; what was open there before ends.
    Open(EndProgram),
    /// Sends the streams of a program, which goes on to receive.
    Start {
        /// The interface's name.
        interface: String,
        /// When the first frame is due, by the clock in the frames: ends that send at one time are
        /// told the same. As soon as may be where none is given or it has passed.
        at_ns: Option<u64>,
    },
    /// Asks for the counts so far, sent and received.
    Look {
        /// The interface's name.
        interface: String,
    },
    /// Runs a program at the host behind an interface; one that ran there before is ended.
    Run {
        /// The interface's name.
        interface: String,
        /// The program.
        program: HostProgram,
    },
    /// Reads the output of the program at a host.
    Read {
        /// The interface's name.
        interface: String,
        /// From which byte on.
        from: u64,
    },
    /// Ends a program and closes the interface.
    Close {
        /// The interface's name.
        interface: String,
    },
}

/// The use of an interface that is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndProgram {
    /// The interface's name.
    pub interface: String,
    /// The task there.
    pub part: EndTask,
}

/// A task at an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum EndTask {
    /// Streams are sent, once they are started, and frames of them are counted that come, also
    /// where another box sends them.
    Traffic(Traffic),
    /// Datagrams for a host are sent back to where they came from.
    Reflector {
        /// The Ethernet address of the host.
        mac: [u8; 6],
        /// Its IPv4 address.
        ip: std::net::Ipv4Addr,
    },
    /// A host with a kernel of its own, which runs programs: a network namespace with a macvlan on
    /// the interface.
    Host {
        /// Its addresses.
        host: EndHost,
        /// The hosts that it can reach.
        others: Vec<EndHost>,
    },
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndHost {
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its IPv4 address, in a network of 24 bits.
    pub ip: std::net::Ipv4Addr,
}

impl From<HostAddress> for EndHost {
    fn from(of: HostAddress) -> Self {
        Self { mac: of.mac, ip: of.ip }
    }
}

/// Frames to be sent and to be counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The number of the first stream in its frames, from 1 on: the same where it is sent and
    /// where it is counted.
    pub first_stream: u16,
    /// Whether the threads run in real time, so that delays are exact.
    pub is_precise: bool,
    /// Zero of the clock in the frames, in nanoseconds of the agent's own.
    pub zero_ns: i64,
    /// Line rate at layer 1, bit/s; where it is 0, the rate that the interface itself names.
    pub line_rate_bps: f64,
    /// The streams of all ends, in the order of their numbers. Those of one `port` follow each
    /// other.
    pub streams: Vec<StreamSpec>,
    /// The streams with this `port` are sent here, once they are started; the others are counted
    /// only.
    pub port: usize,
}

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AgentAnswer {
    /// To a question for the time, nanoseconds of the agent's clock.
    Clock {
        /// When the question came.
        received_ns: i64,
        /// When the answer left.
        answered_ns: i64,
    },
    /// The interface is open.
    Opened {
        /// Its Ethernet address.
        mac: [u8; 6],
        /// Line rate at layer 1, bit/s.
        line_rate_bps: f64,
    },
    /// The streams are started.
    Started {
        /// When the first frame is due, by the clock in the frames.
        start_ns: u64,
    },
    /// Progress of an interface's program.
    EndSeen(EndSeen),
    /// The program runs.
    Runs {},
    /// A part of the program's output.
    Printed(OutputPart),
    /// The interface is closed.
    Closed {},
    /// It cannot be done.
    Failed {
        /// Why.
        why: String,
    },
}

/// Progress of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndSeen {
    /// Whether it has frames to send.
    pub is_transmitting: bool,
    /// The time by the clock in the frames.
    pub now_ns: u64,
    /// Why its streams ended before their time.
    pub stopped: Option<String>,
    /// Why nothing can be received any more.
    pub receive_error: Option<String>,
    /// The streams, in their order.
    pub streams: Vec<SeenStream>,
    /// Datagrams that a reflector sent back.
    pub reflected: u64,
    /// The longest time, in milliseconds, in which the box ran none of the agent's threads since
    /// the interface was opened.
    pub stall_ms: f64,
    /// The program that runs at a host.
    pub program: Option<ProgramSeen>,
}

/// Progress of a program of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSeen {
    /// The status that it ended with, as `wait` has it.
    pub status: Option<i32>,
    /// Bytes that it has printed; [`AgentRequest::Read`] asks for them.
    pub printed: u64,
}

/// A part of a program's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPart {
    /// Its text.
    pub text: String,
    /// The byte behind it, at which the next part begins.
    pub next: u64,
}

/// Progress of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenStream {
    /// Whether its frames have room for a number.
    pub is_numbered: bool,
    /// Frames that left with a number.
    pub probes: u64,
    /// Frames that were due and never left.
    pub unsent: u64,
    /// Those of them that were due while the link was down.
    pub unsent_down: u64,
    /// Frames that left late.
    pub late: u64,
    /// Frames of it that arrived here.
    pub arrived: Option<StreamReport>,
}

/// A message as a line.
///
/// # Errors
/// It is too long.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > MESSAGE_MAX {
        return Err(io::Error::other(format!("a message of {} bytes", line.len())));
    }
    Ok(line)
}

/// The next line; `None` where the peer has ended, in the midst of one too.
///
/// # Errors
/// The stream's, and a line that is too long or no text.
pub fn read_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    match from.take(MESSAGE_MAX as u64).read_line(&mut line)? {
        MESSAGE_MAX if !line.ends_with('\n') => {
            Err(io::Error::other(format!("a message of more than {MESSAGE_MAX} bytes")))
        }
        _ => Ok(Some(line).filter(|line| line.ends_with('\n'))),
    }
}

/// Reads a message.
///
/// # Errors
/// The place in the JSON, and the beginning of the line.
pub fn decode<'de, T: Deserialize<'de>>(line: &'de str) -> io::Result<T> {
    serde_json::from_str(line).map_err(|error| {
        let begin: String = line.trim_end().chars().take(200).collect();
        io::Error::other(format!("no message of version {VERSION}: {begin:?}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use generator::profile::StreamSpec;
    use generator::receiver::StreamReport;

    use super::{
        AgentAnswer, AgentHello, AgentRequest, EndHost, EndProgram, EndSeen, EndTask, HostProgram,
        MESSAGE_MAX, OutputPart, ProgramSeen, SeenStream, Traffic, VERSION, Welcome, decode,
        encode, read_line,
    };

    fn requests() -> Vec<AgentRequest> {
        let interface = || "eth1".to_owned();
        let traffic = Traffic {
            first_stream: 9,
            is_precise: true,
            zero_ns: -5,
            line_rate_bps: 1e10,
            streams: vec![StreamSpec::default(); 2],
            port: 0,
        };
        let reflector = EndTask::Reflector { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 0, 2].into() };
        let host = EndHost { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1].into() };
        let host = EndTask::Host { host, others: vec![host; 2] };
        let program = HostProgram::Ping { target: [10, 0, 0, 2].into(), requests: 3 };
        vec![
            AgentRequest::Clock {},
            AgentRequest::Open(EndProgram {
                interface: interface(),
                part: EndTask::Traffic(traffic),
            }),
            AgentRequest::Open(EndProgram { interface: interface(), part: reflector }),
            AgentRequest::Start { interface: interface(), at_ns: Some(8) },
            AgentRequest::Look { interface: interface() },
            AgentRequest::Open(EndProgram { interface: interface(), part: host }),
            AgentRequest::Run { interface: interface(), program },
            AgentRequest::Read { interface: interface(), from: 3 },
            AgentRequest::Close { interface: interface() },
        ]
    }

    fn answers() -> Vec<AgentAnswer> {
        let arrived = Some(StreamReport { received: 3, ..StreamReport::default() });
        let stream = SeenStream { arrived, probes: 4, ..SeenStream::default() };
        vec![
            AgentAnswer::Clock { received_ns: 1, answered_ns: 2 },
            AgentAnswer::Opened { mac: [1, 2, 3, 4, 5, 6], line_rate_bps: 1e9 },
            AgentAnswer::Started { start_ns: 7 },
            AgentAnswer::EndSeen(EndSeen { streams: vec![stream], ..EndSeen::default() }),
            AgentAnswer::EndSeen(EndSeen {
                program: Some(ProgramSeen { status: Some(256), printed: 3 }),
                ..EndSeen::default()
            }),
            AgentAnswer::Runs {},
            AgentAnswer::Printed(OutputPart { text: "so\n".to_owned(), next: 3 }),
            AgentAnswer::Closed {},
            AgentAnswer::Failed { why: "no".to_owned() },
        ]
    }

    #[test]
    fn every_row_comes_as_it_was_sent() {
        let mut all = Vec::new();
        for request in requests() {
            all.extend(encode(&request).unwrap());
        }
        for answer in answers() {
            all.extend(encode(&answer).unwrap());
        }
        // The last one is cut off.
        all.extend(b"{\"answer\":");
        let mut from = all.as_slice();
        for request in requests() {
            let line = read_line(&mut from).unwrap().unwrap();
            assert_eq!(decode::<AgentRequest>(&line).unwrap(), request);
        }
        for answer in answers() {
            let line = read_line(&mut from).unwrap().unwrap();
            assert_eq!(decode::<AgentAnswer>(&line).unwrap(), answer);
        }
        assert_eq!(read_line(&mut from).unwrap(), None);
    }

    #[test]
    fn another_version_s_hello_is_read() {
        let hello: AgentHello = decode(r#"{"version":99,"interfaces":["a"],"more":[1]}"#).unwrap();
        assert_eq!((hello.version, hello.interfaces), (99, vec!["a".to_owned()]));
        let welcome = r#"{"version":99,"host":"b","weir":"9","speed":1}"#;
        assert_eq!(decode::<Welcome>(welcome).unwrap().version, 99);
        assert_ne!(VERSION, 99);
        let error = decode::<Welcome>("Last login: \u{1b}[2J").unwrap_err().to_string();
        assert!(error.contains(r#""Last login: \u{1b}[2J""#), "{error}");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let long = "x".repeat(MESSAGE_MAX);
        assert!(encode(&long).is_err());
        let error = read_line(&mut format!("{long}xx\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
    }

    #[test]
    fn random_and_changed_lines_are_errors_and_never_panic() {
        let mut random = fastrand::Rng::with_seed(12);
        let whole: Vec<Vec<u8>> = requests().iter().map(|one| encode(one).unwrap()).collect();
        for round in 0..20_000 {
            let bytes: Vec<u8> = match round % 2 {
                0 => (0..random.usize(..64)).map(|_| random.u8(..)).collect(),
                _ => {
                    let mut bytes = whole[random.usize(..whole.len())].clone();
                    for _ in 0..random.usize(1..4) {
                        let at = random.usize(..bytes.len());
                        bytes[at] = random.u8(..);
                    }
                    bytes
                }
            };
            if let Ok(Some(line)) = read_line(&mut bytes.as_slice()) {
                // What is still a message is one: what it asks for is looked at where it is done.
                drop(decode::<AgentRequest>(&line));
                drop(decode::<AgentHello>(&line));
            }
        }
    }
}
