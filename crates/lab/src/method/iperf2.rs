//! Running `iperf` (version 2) between the hosts and reading what its server prints.
//!
//! The server's own report is read, not the copy that it sends to the client: that copy has to
//! cross a jammed path.

use std::time::Duration;

use super::{MethodContext, TrialError};
use crate::host_program::HostProgram;
use crate::hosts::HOSTS;
use crate::load::Load;

const SLACK: Duration = Duration::from_secs(30);

/// A line of the server's report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ServerReport {
    /// Payload that arrived, bit/s.
    pub(super) bps: f64,
    /// RFC 3550 jitter, ms.
    pub(super) jitter_ms: f64,
    /// Datagrams that did not arrive.
    pub(super) lost: f64,
    /// Datagrams in all.
    pub(super) total: f64,
}

/// A finished run.
#[derive(Debug)]
pub(super) struct Iperf2Result {
    pub(super) report: ServerReport,
    pub(super) load: Option<Load>,
}

/// Runs a UDP server at host 2 and a client at host 1 as E1 does: `-u -b RATE`, 1,470 bytes.
pub(super) fn run(context: &MethodContext<'_>, bps: u64) -> Result<Iperf2Result, TrialError> {
    let (server, seconds) = (HostProgram::IperfServer {}, context.settings.whole_seconds());
    let client = HostProgram::IperfClient { target: HOSTS[1].ip, seconds, bps };
    context.bed.with_hosts((context.dir, context.cancel), |hosts| {
        let mut server = hosts.start(1, &server)?;
        let is_ready = |text: &str| text.contains("Server listening");
        server.wait_until("say \"Server listening\"", SLACK, is_ready)?;
        let limit = Duration::from_secs(u64::from(seconds)) + SLACK;
        let (output, load) = context.observe(|| hosts.run(0, &client, limit));
        output?;
        let text = server.wait_until("report", SLACK, |text| parse(text).is_some())?;
        // Its report is here, and SIGTERM takes it up to half a second to obey.
        server.kill()?;
        let report = parse(&text).ok_or(TrialError::Output { program: "iperf", what: text })?;
        Ok(Iperf2Result { report, load })
    })
}

/// Reads the last report line: `[ 1] 0.00-1.00 sec 9.3 MBytes 77.9 Mbits/sec 0.5 ms 0/6677 (0%)`.
fn parse(text: &str) -> Option<ServerReport> {
    text.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let unit = words.iter().position(|word| word.ends_with("bits/sec"))?;
        let factor = match *words.get(unit)? {
            "bits/sec" => 1.0,
            "Kbits/sec" => 1e3,
            "Mbits/sec" => 1e6,
            "Gbits/sec" => 1e9,
            _ => return None,
        };
        let number = |index: usize| words.get(index)?.parse::<f64>().ok();
        let bps = number(unit.checked_sub(1)?)? * factor;
        let jitter_ms = number(unit + 1)?;
        // "7/81408", or "7/ 81408" when the width of the column forces a blank.
        let rest = words.get(unit + 3..)?.concat();
        let (lost, total) = rest.split_once('(')?.0.split_once('/')?;
        Some(ServerReport { bps, jitter_ms, lost: lost.parse().ok()?, total: total.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::{ServerReport, parse};

    #[test]
    fn recorded_reports_are_read() {
        let clean = parse(include_str!("../../tests/data/iperf2-server.txt")).unwrap();
        assert_eq!(clean, ServerReport { bps: 77.9e6, jitter_ms: 0.565, lost: 0.0, total: 6677.0 });
        let lossy = parse(include_str!("../../tests/data/iperf2-loss.txt")).unwrap();
        assert_eq!(
            lossy,
            ServerReport { bps: 56.9e6, jitter_ms: 1.350, lost: 3963.0, total: 8921.0 }
        );
    }

    #[test]
    fn a_blank_in_the_counts_and_other_units() {
        let line =
            "[  3]  0.0-10.0 sec   117 MBytes  98111 Kbits/sec   0.063 ms    5/ 8140 (0.06%)";
        let report = ServerReport { bps: 98_111e3, jitter_ms: 0.063, lost: 5.0, total: 8140.0 };
        assert_eq!(parse(line), Some(report));
    }

    #[test]
    fn other_lines_are_no_report() {
        for text in [
            "",
            "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams",
            "[  1] 0.0000-1.0001 sec  12.5 MBytes   105 Mbits/sec",
            "bits/sec",
            "read failed: Connection refused",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
