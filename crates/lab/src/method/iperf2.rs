//! Running `iperf` (version 2) between the hosts and reading what its server prints.
//!
//! The server's own report is read, not the copy that it sends to the client: that copy has to
//! cross a jammed path.

use std::process::Command;
use std::time::Duration;

use super::{MethodContext, TrialError};
use crate::load::Load;
use crate::process::{self, Process, command_line};
use crate::testbed::HOSTS;
use crate::tools::Tool;

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
    pub(super) commands: Vec<String>,
    pub(super) load: Option<Load>,
}

/// Runs a UDP server at host 2 and a client at host 1 as E1 does: `-u -b RATE`, 1,470 bytes.
pub(super) fn run(context: &MethodContext<'_>, rate: &str) -> Result<Iperf2Result, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let path = Tool::Iperf2.find()?;
    let mut server = Command::new(&path);
    server.args(["-s", "-u", "-l", "1470", "-f", "k"]);
    let server_line = command_line(&server);
    let mut server = Process::start("iperf-server", server, Some(bed.host(1)), context.dir)?;
    server.wait_for_text("Server listening", SLACK, context.cancel)?;
    let mut client = Command::new(&path);
    client.args(["-c", &HOSTS[1].ip.to_string(), "-u", "-b", rate, "-l", "1470"]);
    client.args(["-t", &context.settings.whole_seconds().to_string()]);
    let commands = vec![server_line, command_line(&client)];
    let limit = Duration::from_secs(u64::from(context.settings.whole_seconds())) + SLACK;
    let host = Some(bed.host(0));
    let (output, load) =
        context.observe(|| process::run("iperf", client, host, context.dir, limit, context.cancel));
    output?;
    server
        .wait_until("report", SLACK, context.cancel, |server| parse(&server.output()).is_some())?;
    let text = server.output();
    // Its report is here, and SIGTERM takes it up to half a second to obey.
    server.kill()?;
    let report = parse(&text).ok_or(TrialError::Output { program: "iperf", what: text })?;
    Ok(Iperf2Result { report, commands, load })
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
