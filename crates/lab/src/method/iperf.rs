//! TCP and UDP from host 1 to host 2 by `iperf3`, and UDP at a fixed offered load by `iperf` 2, as
//! E1 did it: datagrams of 1,470 bytes; what arrives, loss, and RFC 3550 jitter at the receiver.
//!
//! The receiver counts. Of `iperf` 2 the server's own report is read, not the copy that it sends to
//! the client: that copy has to cross a jammed path.

use std::time::Duration;

use programs::tools::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Method, MethodContext, Metric, Trial, TrialError, exactly, wrong};
use crate::host_program::{HostProgram, Iperf3Payload};
use crate::hosts::HOSTS;
use crate::load::Load;
use crate::testbed::lab_hosts::HostRun;

/// A start on a busy machine, and the exchange of results at the end through a jammed path.
const SLACK: Duration = Duration::from_secs(30);

/// Bytes of a frame that are no payload: Ethernet 14, IPv4 20, UDP 8, FCS 4.
const OVERHEAD: u32 = 46;

/// A method by `iperf3`.
const BY_IPERF3: Method = Method {
    saturates: true,
    tools: &[Tool::IPERF3],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 0.4),
    fits: |bed| bed.check_hosts("in-memory ports have no kernel UDP"),
    ..Method::USUAL
};

pub(super) const TCP: Method = Method {
    id: "tcp",
    label: "TCP",
    about: "TCP from host 1 to host 2, or back, in one stream or `streams`, payload counted at the \
            receiver",
    metrics: &[
        Metric::higher("tcp_mbps", "TCP", "Mb/s", 2),
        Metric::lower("tcp_retransmits", "TCP retransmits", "segments", 0),
    ],
    fits: |bed| bed.check_hosts("in-memory ports have no kernel TCP"),
    run: tcp,
    ..BY_IPERF3
};

/// In a system call each, and in frames of the cell's size. `iperf3` receives too, and is the limit
/// where all else is fast.
pub(super) const DATAGRAMS: Method = Method {
    id: "datagrams",
    label: "Small datagrams",
    about: "UDP by iperf3 without a limit, in frames of the cell's size: what came a second, and \
            what was sent",
    metrics: &[
        Metric::higher("datagrams_pps", "datagrams that came", "datagrams/s", 0),
        Metric::higher("datagrams_offered_pps", "datagrams sent", "datagrams/s", 0),
    ],
    run: datagrams,
    ..BY_IPERF3
};

pub(super) const UDP2: Method = Method {
    id: "udp2",
    label: "UDP (iperf 2)",
    about: "UDP by iperf 2 as in E1: -u -b 100M (M is 2^20), 1,470-byte datagrams",
    metrics: &[
        Metric::higher("udp2_mbps", "UDP (iperf 2)", "Mb/s", 2),
        Metric::lower("udp2_loss_pct", "UDP loss (iperf 2)", "%", 2),
        Metric::lower("udp2_jitter_ms", "UDP jitter (iperf 2)", "ms", 3),
    ],
    tools: &[Tool::IPERF2],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 1.0),
    run: udp2,
    ..BY_IPERF3
};

fn tcp(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let is_reverse = context.settings.is_reverse == Some(true);
    by_iperf3(context, Iperf3Payload::Tcp { is_reverse }, |sent, received| {
        [("tcp_mbps", received.bits_per_second / 1e6), ("tcp_retransmits", sent.retransmits)]
    })
}

fn datagrams(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let len = context.settings.frame_size().saturating_sub(OVERHEAD);
    by_iperf3(context, Iperf3Payload::Udp { bps: 0, len }, |sent, received| {
        [
            ("datagrams_pps", received.datagrams_ps(len)),
            ("datagrams_offered_pps", sent.datagrams_ps(len)),
        ]
    })
}

/// Sends `payload` from host 1 to host 2, or back; the figures are made of the counts of sender and
/// receiver.
fn by_iperf3(
    context: &MethodContext<'_>,
    payload: Iperf3Payload,
    values: impl FnOnce(&Sum, &Sum) -> [(&'static str, f64); 2],
) -> Result<Trial, TrialError> {
    let seconds = context.settings.whole_seconds();
    let streams = context.settings.streams.unwrap_or(1);
    let client = HostProgram::Iperf3Client { target: HOSTS[1].ip, seconds, streams, payload };
    let ((sent, received), load) =
        served(context, &HostProgram::Iperf3Server {}, &client, |text, _| parse_iperf3(text))?;
    if received.bytes <= 0.0 {
        return Err(wrong("iperf3", "no payload arrived"));
    }
    let values = exactly(values(&sent, &received));
    let raw = json!({
        "received_bytes": received.bytes,
        "received_s": received.seconds,
        "sent_bps": sent.bits_per_second,
    });
    Ok(Trial { values, tool: "iperf3".into(), load, raw, ..Trial::default() })
}

fn udp2(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let (bps, seconds) = (context.settings.load_bps(), context.settings.whole_seconds());
    let client = HostProgram::IperfClient { target: HOSTS[1].ip, seconds, bps };
    let ([arrived_bps, jitter_ms, lost, total], load) =
        served(context, &HostProgram::IperfServer {}, &client, |_, server| {
            let text = server.wait_until("report", SLACK, |text| parse_iperf2(text).is_some())?;
            // Its report is here, and SIGTERM takes it up to half a second to obey.
            server.kill()?;
            parse_iperf2(&text).ok_or_else(|| wrong("iperf", text))
        })?;
    Ok(Trial {
        values: exactly([
            ("udp2_mbps", arrived_bps / 1e6),
            ("udp2_loss_pct", 100.0 * lost / total.max(1.0)),
            ("udp2_jitter_ms", jitter_ms),
        ]),
        tool: "iperf 2".into(),
        load,
        // The rate, not the count: behind a full link everything arrives, only later.
        carried: Some(arrived_bps / bps as f64),
        raw: json!({ "lost": lost, "datagrams": total }),
        ..Trial::default()
    })
}

/// Runs a server at host 2 and a client at host 1 to its end; what is read of the client's output
/// or from the server, and the load meanwhile.
fn served<T>(
    context: &MethodContext<'_>,
    server: &HostProgram,
    client: &HostProgram,
    read: impl FnOnce(&str, &mut HostRun<'_>) -> Result<T, TrialError>,
) -> Result<(T, Option<Load>), TrialError> {
    context.bed.with_hosts((context.dir, context.cancel), |hosts| {
        let mut server = hosts.start(1, server)?;
        let is_ready = |text: &str| text.contains("Server listening");
        server.wait_until("say \"Server listening\"", SLACK, is_ready)?;
        let limit = Duration::from_secs(u64::from(context.settings.whole_seconds())) + SLACK;
        let (output, load) = context.observe(|| hosts.run(0, client, limit));
        Ok((read(&output?.text, &mut server)?, load))
    })
}

/// One of the sums at the end of iperf3's document.
#[derive(Debug, Deserialize)]
struct Sum {
    /// Length of the run, seconds.
    seconds: f64,
    /// Payload bytes.
    bytes: f64,
    /// Payload bit/s.
    bits_per_second: f64,
    /// TCP segments sent again; only in the sender's sum.
    #[serde(default)]
    retransmits: f64,
}

impl Sum {
    /// Datagrams a second, of so much payload each.
    fn datagrams_ps(&self, payload: u32) -> f64 {
        let datagrams = self.bytes / f64::from(payload.max(1));
        if self.seconds > 0.0 { datagrams / self.seconds } else { 0.0 }
    }
}

/// Reads iperf3's document, in which warnings may stand before or behind: the counts of sender and
/// receiver; or the error that iperf3 names, or what is missing.
fn parse_iperf3(text: &str) -> Result<(Sum, Sum), TrialError> {
    let wrong = |what: String| wrong("iperf3", what);
    let begin = text.find('{').ok_or_else(|| wrong(format!("no JSON: {}", text.trim_end())))?;
    let document = Value::deserialize(&mut serde_json::Deserializer::from_str(&text[begin..]));
    let document = document.map_err(|error| wrong(format!("unreadable JSON: {error}")))?;
    if let Some(error) = document["error"].as_str() {
        return Err(wrong(error.to_owned()));
    }
    let sum = |name: &str| {
        let sum = Sum::deserialize(&document["end"][name]);
        sum.map_err(|error| wrong(format!("no {name}: {error}")))
    };
    Ok((sum("sum_sent")?, sum("sum_received")?))
}

/// Payload bit/s that arrived, RFC 3550 jitter in ms, datagrams that did not arrive, and all of
/// them, of the last report line of iperf 2:
/// `[ 1] 0.00-1.00 sec 9.3 MBytes 77.9 Mbits/sec 0.5 ms 0/6677 (0%)`.
fn parse_iperf2(text: &str) -> Option<[f64; 4]> {
    text.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let unit = words.iter().position(|word| word.ends_with("bits/sec"))?;
        let factor = match words[unit] {
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
    use super::{OVERHEAD, parse_iperf2, parse_iperf3};

    #[test]
    fn a_recorded_tcp_run_is_read() {
        let text = include_str!("../../tests/data/iperf3-tcp.json");
        let (sent, received) = parse_iperf3(text).unwrap();
        assert!((received.bits_per_second - 76_468_852.69).abs() < 0.1);
        assert!((sent.retransmits - 21.0).abs() < 1e-9);
        assert!(received.seconds > 1.0 && received.bytes > 9e6);
    }

    #[test]
    fn datagrams_are_counted_by_their_bytes() {
        let text = include_str!("../../tests/data/iperf3-udp-loss.json");
        let text = format!("warning: something\n{text}\nwarning: more\n");
        let (_, received) = parse_iperf3(&text).unwrap();
        let came = received.datagrams_ps(1516 - OVERHEAD) * received.seconds;
        assert!((came - 1_242.0).abs() < 1e-6, "{came}");
    }

    #[test]
    fn an_error_of_iperf3_is_passed_on() {
        let error = parse_iperf3(include_str!("../../tests/data/iperf3-err.json")).unwrap_err();
        assert!(error.to_string().contains("No route to host"), "{error}");
        for text in ["", "no json", "{}", "{\"end\": 3}", "} {"] {
            assert!(parse_iperf3(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_report_of_iperf2_is_read_and_other_lines_are_none() {
        let clean = include_str!("../../tests/data/iperf2-server.txt");
        let lossy = include_str!("../../tests/data/iperf2-loss.txt");
        let blank =
            "[  3]  0.0-10.0 sec   117 MBytes  98111 Kbits/sec   0.063 ms    5/ 8140 (0.06%)";
        for (text, found) in [
            (clean, Some([77.9e6, 0.565, 0.0, 6677.0])),
            (lossy, Some([56.9e6, 1.35, 3963.0, 8921.0])),
            (blank, Some([98_111e3, 0.063, 5.0, 8140.0])),
            ("", None),
            ("[ ID] Interval       Transfer     Bandwidth   Jitter   Lost/Total Datagrams", None),
            ("[  1] 0.0000-1.0001 sec  12.5 MBytes   105 Mbits/sec", None),
            ("bits/sec", None),
            ("read failed: Connection refused", None),
        ] {
            assert_eq!(parse_iperf2(text), found, "{text}");
        }
    }
}
