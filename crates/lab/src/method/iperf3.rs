//! Running `iperf3` between the hosts and reading its JSON.

use std::time::Duration;

use serde::Deserialize;

use super::{MethodContext, TrialError};
use crate::host_program::{HostProgram, Iperf3Payload};
use crate::hosts::HOSTS;
use crate::load::Load;

/// A start on a busy machine, and the exchange of results at the end through a jammed path.
const SLACK: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    sum: Option<Sum>,
}

/// One of the sums at the end of iperf3's document.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sum {
    /// Length of the run, seconds.
    pub(crate) seconds: f64,
    /// Payload bytes.
    pub(crate) bytes: f64,
    /// Payload bit/s.
    pub(crate) bits_per_second: f64,
    /// TCP segments sent again; only in the sender's sum.
    #[serde(default)]
    pub(crate) retransmits: f64,
    /// UDP datagrams.
    #[serde(default)]
    pub(crate) packets: f64,
    /// UDP datagrams that did not arrive.
    #[serde(default)]
    pub(crate) lost_packets: f64,
    /// RFC 3550 jitter, ms.
    #[serde(default)]
    pub(crate) jitter_ms: f64,
}

/// The sums that the methods use.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// Count of the sender.
    pub(crate) sent: Sum,
    /// Count of the receiver.
    pub(crate) received: Sum,
    /// UDP: the receiver's loss and jitter.
    pub(crate) both: Option<Sum>,
}

/// A finished run.
#[derive(Debug)]
pub(super) struct Iperf3Result {
    pub(super) sums: Sums,
    pub(super) load: Option<Load>,
}

/// Runs a server at host 2 and a client at host 1, which sends `payload` or asks for it.
pub(super) fn run(
    context: &MethodContext<'_>,
    payload: Iperf3Payload,
) -> Result<Iperf3Result, TrialError> {
    let (server, seconds) = (HostProgram::Iperf3Server {}, context.settings.whole_seconds());
    let streams = context.settings.streams.unwrap_or(1);
    let client = HostProgram::Iperf3Client { target: HOSTS[1].ip, seconds, streams, payload };
    context.bed.with_hosts((context.dir, context.cancel), |hosts| {
        let mut server = hosts.start(1, &server)?;
        let is_ready = |text: &str| text.contains("Server listening");
        server.wait_until("say \"Server listening\"", SLACK, is_ready)?;
        let limit = Duration::from_secs(u64::from(seconds)) + SLACK;
        let (output, load) = context.observe(|| hosts.run(0, &client, limit));
        Ok(Iperf3Result { sums: parse(&output?.text)?, load })
    })
}

/// Reads iperf3's document; warnings may stand before or behind it.
///
/// # Errors
/// [`TrialError::Output`] with what iperf3 says, or what is missing.
pub(crate) fn parse(text: &str) -> Result<Sums, TrialError> {
    let wrong = |what: String| TrialError::Output { program: "iperf3", what };
    let json = text
        .find('{')
        .zip(text.rfind('}'))
        .and_then(|(start, end)| text.get(start..=end))
        .ok_or_else(|| wrong(format!("no JSON: {}", text.trim_end())))?;
    let document: Document =
        serde_json::from_str(json).map_err(|error| wrong(format!("unreadable JSON: {error}")))?;
    if let Some(error) = document.error {
        return Err(wrong(error));
    }
    let End { sum_sent, sum_received, sum } = document.end;
    let sent = sum_sent.ok_or_else(|| wrong("no sum_sent".into()))?;
    let received = sum_received.ok_or_else(|| wrong("no sum_received".into()))?;
    Ok(Sums { sent, received, both: sum })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_recorded_tcp_run_is_read() {
        let sums = parse(include_str!("../../tests/data/iperf3-tcp.json")).unwrap();
        assert!((sums.received.bits_per_second - 76_468_852.69).abs() < 0.1);
        assert!((sums.sent.retransmits - 21.0).abs() < 1e-9);
        assert!(sums.received.seconds > 1.0 && sums.received.bytes > 9e6);
    }

    #[test]
    fn a_recorded_udp_run_is_read() {
        let text = include_str!("../../tests/data/iperf3-udp.json");
        let sums = parse(&format!("warning: something\n{text}\nwarning: more\n")).unwrap();
        let both = sums.both.unwrap();
        assert_eq!((both.packets, both.lost_packets), (6592.0, 0.0));
        assert!((both.jitter_ms - 0.0233).abs() < 1e-3);
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
