//! Messages between a lab and an agent: requests and answers, each of them JSON after its length.
//!
//! A message is a number of four bytes, most significant first, and as many bytes of JSON. The lab
//! asks, the agent answers every request by one answer, in order. The first request is
//! [`AgentHello`], which each version can read; an agent of another version refuses it by name. One
//! row of [`AgentRequest`] is one thing that an agent does. It must never wait for more bytes than
//! [`MESSAGE_MAX`], and nothing that comes may cause a panic.

use generator::profile::StreamSpec;
use generator::receiver::StreamReport;
use serde::{Deserialize, Serialize};

use crate::facts::Machine;
use crate::host_program::HostProgram;
use crate::hosts::HostAddress;

/// The version of the messages: that of both sides has to be this one.
pub const VERSION: u32 = 4;

/// The longest message, bytes: more than any answer has, and the streams of any cell.
pub const MESSAGE_MAX: usize = 1 << 20;

/// Bytes of the length before each message.
const LENGTH_LEN: usize = 4;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Its length is out of range.
    #[error("a message of {0} bytes: {MESSAGE_MAX} at most; does the peer speak this protocol?")]
    TooLong(usize),
    /// It holds something else.
    #[error("no message of version {VERSION}: {0}")]
    Content(String),
}

/// The first request on a connection. Later versions keep these two members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// [`VERSION`] of the lab.
    pub version: u32,
    /// The measuring party: machine and process, as the agent names it to other labs.
    pub lab: String,
}

/// The answer to it. Later versions keep these members; earlier ones have no optional ones but the
/// refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`VERSION`] of the agent.
    pub version: u32,
    /// The box's name.
    pub host: String,
    /// The interfaces that the agent was given.
    pub interfaces: Vec<String>,
    /// Why the agent does not work for this lab; then the connection ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Whether it makes hosts with addresses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub makes_hosts: bool,
    /// The version of Weir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weir: Option<String>,
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
    /// the interface. Only an agent that was started with `--hosts` makes one.
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

/// A message with its length in front.
///
/// # Errors
/// [`MessageError`] where it is too long.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let content =
        serde_json::to_vec(message).map_err(|error| MessageError::Content(error.to_string()))?;
    let len = u32::try_from(content.len()).ok().filter(|_| content.len() <= MESSAGE_MAX);
    let len = len.ok_or(MessageError::TooLong(content.len()))?;
    let mut bytes = len.to_be_bytes().to_vec();
    bytes.extend(content);
    Ok(bytes)
}

/// Takes the first message off bytes that came; `None` as long as it is not whole.
///
/// # Errors
/// [`MessageError::TooLong`], before any of its content is waited for.
pub fn take(inbox: &mut Vec<u8>) -> Result<Option<Vec<u8>>, MessageError> {
    let Some(length) = inbox.first_chunk::<LENGTH_LEN>() else { return Ok(None) };
    let len = u32::from_be_bytes(*length) as usize;
    if len > MESSAGE_MAX {
        return Err(MessageError::TooLong(len));
    }
    if inbox.len() - LENGTH_LEN < len {
        return Ok(None);
    }
    let content = inbox[LENGTH_LEN..LENGTH_LEN + len].to_vec();
    inbox.drain(..LENGTH_LEN + len);
    Ok(Some(content))
}

/// Reads the content of a message.
///
/// # Errors
/// [`MessageError::Content`] with the place in the JSON.
pub fn decode<'de, T: Deserialize<'de>>(content: &'de [u8]) -> Result<T, MessageError> {
    serde_json::from_slice(content).map_err(|error| MessageError::Content(error.to_string()))
}

#[cfg(test)]
mod tests {
    use generator::profile::StreamSpec;
    use generator::receiver::StreamReport;

    use super::{
        AgentAnswer, AgentHello, AgentRequest, EndHost, EndProgram, EndSeen, EndTask, HostProgram,
        MESSAGE_MAX, MessageError, OutputPart, ProgramSeen, SeenStream, Traffic, VERSION, Welcome,
        decode, encode, take,
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
    fn every_row_comes_as_it_was_sent_whole_or_in_pieces() {
        let (mut inbox, mut all) = (Vec::new(), Vec::new());
        for request in requests() {
            all.extend(encode(&request).unwrap());
        }
        for answer in answers() {
            all.extend(encode(&answer).unwrap());
        }
        let mut came = Vec::new();
        for byte in all {
            inbox.push(byte);
            came.extend(take(&mut inbox).unwrap());
        }
        assert!(inbox.is_empty());
        let (first, rest) = came.split_at(requests().len());
        let first: Vec<AgentRequest> = first.iter().map(|one| decode(one).unwrap()).collect();
        let rest: Vec<AgentAnswer> = rest.iter().map(|one| decode(one).unwrap()).collect();
        assert_eq!((first, rest), (requests(), answers()));
    }

    #[test]
    fn another_version_s_hello_is_read() {
        let hello: AgentHello = decode(br#"{"version":99,"lab":"a","more":[1]}"#).unwrap();
        assert_eq!((hello.version, hello.lab.as_str()), (99, "a"));
        let welcome = br#"{"version":99,"host":"b","interfaces":[],"speed":1}"#;
        assert_eq!(decode::<Welcome>(welcome).unwrap().version, 99);
        assert_ne!(VERSION, 99);
        let first = br#"{"version":1,"host":"b","interfaces":[],"refusal":"no"}"#;
        assert_eq!(decode::<Welcome>(first).unwrap().refusal.as_deref(), Some("no"));
    }

    #[test]
    fn a_length_out_of_range_is_refused_before_its_content() {
        let mut inbox = b"GET / HTTP/1.1\r\n".to_vec();
        assert_eq!(take(&mut inbox), Err(MessageError::TooLong(0x4745_5420)));
        let long = "x".repeat(MESSAGE_MAX + 1);
        assert!(matches!(encode(&long), Err(MessageError::TooLong(_))));
    }

    #[test]
    fn random_and_cut_bytes_are_errors_or_wait_and_never_panic() {
        let mut random = fastrand::Rng::with_seed(12);
        let whole: Vec<Vec<u8>> = requests().iter().map(|one| encode(one).unwrap()).collect();
        for round in 0..20_000 {
            let mut inbox: Vec<u8> = match round % 2 {
                0 => (0..random.usize(..64)).map(|_| random.u8(..)).collect(),
                // A message with some bytes changed and its length right.
                _ => {
                    let mut bytes = whole[random.usize(..whole.len())].clone();
                    for _ in 0..random.usize(1..4) {
                        let at = random.usize(4..bytes.len());
                        bytes[at] = random.u8(..);
                    }
                    bytes
                }
            };
            if let Ok(Some(content)) = take(&mut inbox) {
                // What is still a message is one: what it asks for is looked at where it is done.
                drop(decode::<AgentRequest>(&content));
                drop(decode::<AgentHello>(&content));
            }
        }
    }
}
