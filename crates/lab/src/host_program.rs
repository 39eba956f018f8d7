//! The programs of others that hosts run for methods: which, and by which words.
//!
//! A host runs on the lab's machine or on a box with an agent, and both make the command of it
//! here. An agent runs nothing but this, so no variant may hold words that a program would take for
//! a file or a command.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use programs::tools::{Missing, Tool};
use serde::{Deserialize, Serialize};

/// Time between two echo requests of `ping`.
pub const ECHO_INTERVAL: Duration = Duration::from_millis(10);

/// Payload of a datagram of iperf 2, bytes, as E1 has it.
const IPERF_LEN: &str = "1470";

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostProgram {
    /// `ping`: echo requests, one after the other.
    Ping { target: Ipv4Addr, requests: u32 },
    /// `iperf3 -s`, for one run.
    Iperf3Server {},
    /// `iperf3 -c`.
    Iperf3Client { target: Ipv4Addr, seconds: u32, streams: u32, payload: Iperf3Payload },
    /// `iperf -s -u`.
    IperfServer {},
    /// `iperf -c -u`.
    IperfClient {
        target: Ipv4Addr,
        seconds: u32,
        /// Payload, bit/s.
        bps: u64,
    },
}

/// Payload of `iperf3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Iperf3Payload {
    /// TCP, to the server; reversed, the server sends.
    Tcp { is_reverse: bool },
    /// UDP.
    Udp {
        /// Payload of each stream, bit/s; 0 is as fast as it goes.
        bps: u64,
        /// Payload of a datagram, bytes.
        len: u32,
    },
}

impl HostProgram {
    /// Its tool, the name of its log, and its words.
    fn parts(&self) -> (Tool, &'static str, String) {
        match self {
            Self::Ping { target, requests } => {
                let interval_s = ECHO_INTERVAL.as_secs_f64();
                let words = format!("-n -c {requests} -i {interval_s:.3} -W 2 {target}");
                (Tool::PING, "ping", words)
            }
            Self::Iperf3Server {} => {
                (Tool::IPERF3, "iperf3-server", "-s -1 --forceflush".to_owned())
            }
            Self::Iperf3Client { target, seconds, streams, payload } => {
                let several = if *streams > 1 { format!(" -P {streams}") } else { String::new() };
                let payload = match payload {
                    Iperf3Payload::Tcp { is_reverse: false } => String::new(),
                    Iperf3Payload::Tcp { is_reverse: true } => " -R".to_owned(),
                    Iperf3Payload::Udp { bps, len } => format!(" -u -b {bps} -l {len}"),
                };
                let usual = format!("-c {target} -J --connect-timeout 5000 -t {seconds}");
                (Tool::IPERF3, "iperf3", format!("{usual}{payload}{several}"))
            }
            Self::IperfServer {} => {
                (Tool::IPERF2, "iperf-server", format!("-s -u -l {IPERF_LEN} -f k"))
            }
            Self::IperfClient { target, seconds, bps } => {
                let words = format!("-c {target} -u -b {bps} -l {IPERF_LEN} -t {seconds}");
                (Tool::IPERF2, "iperf", words)
            }
        }
    }

    /// The name of its log.
    pub fn name(&self) -> &'static str {
        self.parts().1
    }

    /// The command; where it is not installed, the remedy.
    pub fn command(&self) -> Result<Command, Missing> {
        let (tool, _, words) = self.parts();
        let mut command = Command::new(tool.find()?);
        command.args(words.split(' '));
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::{HostProgram, Iperf3Payload};

    fn line(program: &HostProgram) -> String {
        let (tool, _, words) = program.parts();
        format!("{} {words}", tool.command)
    }

    #[test]
    fn the_words_are_those_that_a_user_types() {
        let target = [10, 0, 0, 2].into();
        let ping = HostProgram::Ping { target, requests: 5 };
        assert_eq!(line(&ping), "ping -n -c 5 -i 0.010 -W 2 10.0.0.2");
        let client = |payload, streams| {
            line(&HostProgram::Iperf3Client { target, seconds: 3, streams, payload })
        };
        let usual = "iperf3 -c 10.0.0.2 -J --connect-timeout 5000 -t 3";
        assert_eq!(client(Iperf3Payload::Tcp { is_reverse: false }, 1), usual);
        let back = client(Iperf3Payload::Tcp { is_reverse: true }, 4);
        assert_eq!(back, format!("{usual} -R -P 4"));
        let udp = client(Iperf3Payload::Udp { bps: 7, len: 22 }, 1);
        assert_eq!(udp, format!("{usual} -u -b 7 -l 22"));
        assert_eq!(line(&HostProgram::IperfServer {}), "iperf -s -u -l 1470 -f k");
        let second = HostProgram::IperfClient { target, seconds: 1, bps: 100 };
        assert_eq!(line(&second), "iperf -c 10.0.0.2 -u -b 100 -l 1470 -t 1");
    }
}
