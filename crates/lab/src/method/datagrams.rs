//! Small UDP datagrams from host 1 to host 2 as fast as `iperf3` sends them, in a system call each:
//! how many came, and how many it sent.
//!
//! The frames have the cell's size. `iperf3` receives too, and is the limit where all else is fast.

use std::time::Duration;

use super::iperf3::{self, Sum};
use super::{Method, MethodContext, Metric, Trial, TrialError};
use crate::host_program::Iperf3Payload;

/// Bytes of a frame that are no payload: Ethernet 14, IPv4 20, UDP 8, FCS 4.
const OVERHEAD: u32 = 46;

pub(super) const DATAGRAMS: Method = Method {
    id: "datagrams",
    label: "Small datagrams",
    about: "UDP by iperf3 without a limit, in frames of the cell's size: what came a second, and \
            what was sent",
    metrics: &[
        Metric::higher("datagrams_pps", "datagrams that came", "datagrams/s", 0),
        Metric::higher("datagrams_offered_pps", "datagrams sent", "datagrams/s", 0),
    ],
    saturates: true,
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 0.4),
    fits: |bed| bed.check_hosts("in-memory ports have no kernel UDP"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let payload = payload(context.settings.frame_size());
    let done = iperf3::run(context, Iperf3Payload::Udp { bps: 0, len: payload })?;
    let [came, sent] = [&done.sums.received, &done.sums.sent].map(|sum| rate(sum, payload));
    if came <= 0.0 {
        let what = "no datagram has come".to_owned();
        return Err(TrialError::Output { program: "iperf3", what });
    }
    Ok(Trial {
        values: vec![("datagrams_pps", came), ("datagrams_offered_pps", sent)],
        tool: "iperf3".into(),
        load: done.load,
        raw: serde_json::json!({
            "payload_bytes": payload,
            "received_bytes": done.sums.received.bytes,
            "received_s": done.sums.received.seconds,
        }),
        ..Trial::default()
    })
}

/// Payload of a frame of that size in bytes, FCS included.
fn payload(frame_size: u32) -> u32 {
    frame_size.saturating_sub(OVERHEAD)
}

/// Datagrams a second.
fn rate(sum: &Sum, payload: u32) -> f64 {
    if sum.seconds > 0.0 { sum.bytes / f64::from(payload.max(1)) / sum.seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{payload, rate};
    use crate::method::iperf3;

    #[test]
    fn datagrams_are_counted_by_their_bytes() {
        assert_eq!((payload(64), payload(1516)), (18, 1470));
        let text = include_str!("../../tests/data/iperf3-udp-loss.json");
        let received = iperf3::parse(text).unwrap().received;
        let came = rate(&received, 1470) * received.seconds;
        assert!((came - 1_242.0).abs() < 1e-6, "{came}");
    }
}
