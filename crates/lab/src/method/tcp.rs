//! TCP throughput from host 1 to host 2, or back, counted at the receiver.

use std::time::Duration;

use programs::tools::Tool;

use super::{Method, MethodContext, Metric, Trial, TrialError, blast, iperf3};
use crate::host_program::Iperf3Payload;
use crate::testbed::Testbed;

pub(super) const TCP: Method = Method {
    id: "tcp",
    label: "TCP",
    about: "TCP from host 1 to host 2, or back, in one stream or `streams`, payload counted at the \
            receiver",
    metrics: &[
        Metric::higher("tcp_mbps", "TCP", "Mb/s", 2),
        Metric::lower("tcp_retransmits", "TCP retransmits", "segments", 0),
    ],
    saturates: true,
    tools: &[Tool::Iperf3],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 0.4),
    fits: |bed| bed.check_hosts("in-memory ports have no kernel TCP"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let is_reverse = context.settings.is_reverse == Some(true);
    if let (Testbed::Kernel(_), Err(missing)) = (context.bed, Tool::Iperf3.find()) {
        if context.settings.streams.is_some_and(|streams| streams > 1) {
            return Err(TrialError::Unfit("several TCP streams at once need iperf3"));
        }
        if is_reverse {
            return Err(TrialError::Unfit("TCP from host 2 to host 1 needs iperf3"));
        }
        return own(context, &missing.0);
    }
    let done = iperf3::run(context, Iperf3Payload::Tcp { is_reverse })?;
    let received = &done.sums.received;
    if received.bytes <= 0.0 {
        return Err(nothing());
    }
    Ok(Trial {
        values: vec![
            ("tcp_mbps", received.bits_per_second / 1e6),
            ("tcp_retransmits", done.sums.sent.retransmits),
        ],
        tool: "iperf3".into(),
        load: done.load,
        raw: serde_json::json!({
            "received_bytes": received.bytes,
            "received_s": received.seconds,
            "sent_bps": done.sums.sent.bits_per_second,
        }),
        ..Trial::default()
    })
}

fn nothing() -> TrialError {
    TrialError::Output { program: "TCP", what: "no payload arrived".into() }
}

fn own(context: &MethodContext<'_>, missing: &str) -> Result<Trial, TrialError> {
    let (received, load) = context.observe(|| blast::tcp(context));
    let received = received?;
    if received.bytes == 0 || received.seconds <= 0.0 {
        return Err(nothing());
    }
    Ok(Trial {
        values: vec![("tcp_mbps", received.bytes as f64 * 8.0 / received.seconds / 1e6)],
        tool: format!("Weir's own TCP sender ({missing})"),
        load,
        raw: serde_json::json!({
            "received_bytes": received.bytes,
            "received_s": received.seconds,
        }),
        ..Trial::default()
    })
}
