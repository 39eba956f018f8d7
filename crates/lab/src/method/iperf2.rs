//! UDP from host 1 to host 2 at a fixed offered load by `iperf` 2, as E1 did it: datagrams of 1,470
//! bytes; what arrives, loss, and RFC 3550 jitter at the receiver.
//!
//! The server's own report is read, not the copy that it sends to the client: that copy has to
//! cross a jammed path.

use std::time::Duration;

use programs::tools::Tool;

use super::iperf3::{SLACK, served};
use super::{Method, MethodContext, Metric, Trial, TrialError};
use crate::host_program::HostProgram;
use crate::hosts::HOSTS;

pub(super) const UDP2: Method = Method {
    id: "udp2",
    label: "UDP (iperf 2)",
    about: "UDP by iperf 2 as in E1: -u -b 100M (M is 2^20), 1,470-byte datagrams",
    metrics: &[
        Metric::higher("udp2_mbps", "UDP (iperf 2)", "Mb/s", 2),
        Metric::lower("udp2_loss_pct", "UDP loss (iperf 2)", "%", 2),
        Metric::lower("udp2_jitter_ms", "UDP jitter (iperf 2)", "ms", 3),
    ],
    saturates: true,
    tools: &[Tool::Iperf2],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 1.0),
    fits: |bed| bed.check_hosts("in-memory ports have no kernel UDP"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let (bps, seconds) = (context.settings.load_bps(), context.settings.whole_seconds());
    let client = HostProgram::IperfClient { target: HOSTS[1].ip, seconds, bps };
    let ([arrived_bps, jitter_ms, lost, total], load) =
        served(context, &HostProgram::IperfServer {}, &client, |_, server| {
            let text = server.wait_until("report", SLACK, |text| parse(text).is_some())?;
            // Its report is here, and SIGTERM takes it up to half a second to obey.
            server.kill()?;
            parse(&text).ok_or(TrialError::Output { program: "iperf", what: text })
        })?;
    Ok(Trial {
        values: vec![
            ("udp2_mbps", arrived_bps / 1e6),
            ("udp2_loss_pct", 100.0 * lost / total.max(1.0)),
            ("udp2_jitter_ms", jitter_ms),
        ],
        tool: "iperf 2".into(),
        load,
        // The rate, not the count: behind a full link everything arrives, only later.
        carried: Some(arrived_bps / bps as f64),
        raw: serde_json::json!({ "lost": lost, "datagrams": total }),
        ..Trial::default()
    })
}

/// Payload bit/s that arrived, RFC 3550 jitter in ms, datagrams that did not arrive, and all of
/// them, of the last report line:
/// `[ 1] 0.00-1.00 sec 9.3 MBytes 77.9 Mbits/sec 0.5 ms 0/6677 (0%)`.
fn parse(text: &str) -> Option<[f64; 4]> {
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
        Some([bps, jitter_ms, lost.parse().ok()?, total.parse().ok()?])
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn recorded_reports_are_read() {
        let clean = parse(include_str!("../../tests/data/iperf2-server.txt")).unwrap();
        assert_eq!(clean, [77.9e6, 0.565, 0.0, 6677.0]);
        let lossy = parse(include_str!("../../tests/data/iperf2-loss.txt")).unwrap();
        assert_eq!(lossy, [56.9e6, 1.350, 3963.0, 8921.0]);
    }

    #[test]
    fn a_blank_in_the_counts_and_other_units() {
        let line =
            "[  3]  0.0-10.0 sec   117 MBytes  98111 Kbits/sec   0.063 ms    5/ 8140 (0.06%)";
        assert_eq!(parse(line), Some([98_111e3, 0.063, 5.0, 8140.0]));
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
