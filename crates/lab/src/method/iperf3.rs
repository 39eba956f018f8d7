//! TCP, and small UDP datagrams without pause, between the hosts by `iperf3`, counted at the
//! receiver.

use std::time::Duration;

use programs::tools::Tool;
use serde::Deserialize;

use super::{Method, MethodContext, Metric, Trial, TrialError};
use crate::host_program::{HostProgram, Iperf3Payload};
use crate::hosts::HOSTS;
use crate::load::Load;
use crate::settings::Settings;
use crate::testbed::lab_hosts::HostRun;

/// A start on a busy machine, and the exchange of results at the end through a jammed path.
pub(super) const SLACK: Duration = Duration::from_secs(30);

/// Bytes of a frame that are no payload: Ethernet 14, IPv4 20, UDP 8, FCS 4.
const OVERHEAD: u32 = 46;

/// A method by `iperf3`.
const BY_IPERF3: Method = Method {
    saturates: true,
    tools: &[Tool::Iperf3],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 0.4),
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
    fits: |bed| bed.check_hosts("in-memory ports have no kernel UDP"),
    run: datagrams,
    ..BY_IPERF3
};

fn tcp(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let is_reverse = context.settings.is_reverse == Some(true);
    measure(context, Iperf3Payload::Tcp { is_reverse }, |sent, received| {
        vec![("tcp_mbps", received.bits_per_second / 1e6), ("tcp_retransmits", sent.retransmits)]
    })
}

fn datagrams(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let len = payload(context.settings);
    measure(context, Iperf3Payload::Udp { bps: 0, len }, |sent, received| {
        vec![
            ("datagrams_pps", received.datagrams_ps(len)),
            ("datagrams_offered_pps", sent.datagrams_ps(len)),
        ]
    })
}

/// Payload of a datagram in a frame of the cell's size, bytes.
fn payload(settings: &Settings) -> u32 {
    settings.frame_size().saturating_sub(OVERHEAD)
}

/// Sends `payload` from host 1 to host 2, or back; the figures are made of the counts of sender and
/// receiver.
fn measure(
    context: &MethodContext<'_>,
    payload: Iperf3Payload,
    values: impl FnOnce(&Sum, &Sum) -> super::Values,
) -> Result<Trial, TrialError> {
    let seconds = context.settings.whole_seconds();
    let streams = context.settings.streams.unwrap_or(1);
    let client = HostProgram::Iperf3Client { target: HOSTS[1].ip, seconds, streams, payload };
    let (sums, load) =
        served(context, &HostProgram::Iperf3Server {}, &client, |text, _| parse(text))?;
    let (sent, received) = sums;
    if received.bytes <= 0.0 {
        let what = "no payload arrived".to_owned();
        return Err(TrialError::Output { program: "iperf3", what });
    }
    Ok(Trial {
        values: values(&sent, &received),
        tool: "iperf3".into(),
        load,
        raw: serde_json::json!({
            "received_bytes": received.bytes,
            "received_s": received.seconds,
            "sent_bps": sent.bits_per_second,
        }),
        ..Trial::default()
    })
}

/// Runs a server at host 2 and a client at host 1 to its end; what is read of the client's output
/// or from the server, and the load meanwhile.
pub(super) fn served<T>(
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
#[derive(Clone, Debug, Deserialize)]
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
/// receiver.
///
/// # Errors
/// [`TrialError::Output`] with what iperf3 says, or what is missing.
fn parse(text: &str) -> Result<(Sum, Sum), TrialError> {
    let wrong = |what: String| TrialError::Output { program: "iperf3", what };
    let json = text
        .find('{')
        .zip(text.rfind('}'))
        .and_then(|(start, end)| text.get(start..=end))
        .ok_or_else(|| wrong(format!("no JSON: {}", text.trim_end())))?;
    let document: serde_json::Value =
        serde_json::from_str(json).map_err(|error| wrong(format!("unreadable JSON: {error}")))?;
    if let Some(error) = document["error"].as_str() {
        return Err(wrong(error.to_owned()));
    }
    let sum = |name: &str| {
        let sum = Sum::deserialize(&document["end"][name]);
        sum.map_err(|error| wrong(format!("no {name}: {error}")))
    };
    Ok((sum("sum_sent")?, sum("sum_received")?))
}

#[cfg(test)]
mod tests {
    use super::{parse, payload};
    use crate::settings::Settings;

    #[test]
    fn a_recorded_tcp_run_is_read() {
        let (sent, received) = parse(include_str!("../../tests/data/iperf3-tcp.json")).unwrap();
        assert!((received.bits_per_second - 76_468_852.69).abs() < 0.1);
        assert!((sent.retransmits - 21.0).abs() < 1e-9);
        assert!(received.seconds > 1.0 && received.bytes > 9e6);
    }

    #[test]
    fn datagrams_are_counted_by_their_bytes() {
        let of = |size| payload(&Settings { frame_size: Some(size), ..<_>::default() });
        assert_eq!((of(64), of(1516)), (18, 1470));
        let text = include_str!("../../tests/data/iperf3-udp-loss.json");
        let (_, received) = parse(&format!("warning: something\n{text}\nwarning: more\n")).unwrap();
        let came = received.datagrams_ps(1470) * received.seconds;
        assert!((came - 1_242.0).abs() < 1e-6, "{came}");
    }

    #[test]
    fn an_error_of_iperf3_is_passed_on() {
        let error = parse(include_str!("../../tests/data/iperf3-err.json")).unwrap_err();
        assert!(error.to_string().contains("No route to host"), "{error}");
        for text in ["", "no json", "{}", "{\"end\": 3}", "} {"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
