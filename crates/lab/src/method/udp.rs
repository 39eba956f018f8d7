//! UDP from host 1 to host 2 at a fixed offered load, twice: by `iperf3` and, as E1 did it, by
//! `iperf` 2. Datagrams of 1,470 bytes; what arrives, loss, and RFC 3550 jitter at the receiver.

use std::time::Duration;

use generator::method::{TrialInput, TrialOutput};
use programs::tools::{Missing, Tool};

use super::{Method, MethodContext, Metric, Trial, TrialError, iperf2, iperf3};
use crate::ceilings::UDP_PAYLOAD;
use crate::host_program::Iperf3Payload;
use crate::testbed::Testbed;

const IPERF3: &[Metric] = &[
    Metric::higher("udp_mbps", "UDP", "Mb/s", 2),
    Metric::lower("udp_loss_pct", "UDP loss", "%", 2),
    Metric::lower("udp_jitter_ms", "UDP jitter", "ms", 3),
];

const IPERF2: &[Metric] = &[
    Metric::higher("udp2_mbps", "UDP (iperf 2)", "Mb/s", 2),
    Metric::lower("udp2_loss_pct", "UDP loss (iperf 2)", "%", 2),
    Metric::lower("udp2_jitter_ms", "UDP jitter (iperf 2)", "ms", 3),
];

/// Frame of a datagram of 1,470 bytes, FCS counted.
const FRAME: usize = UDP_PAYLOAD as usize + 46;

/// By `iperf3`.
pub(super) const UDP: Method = Method {
    id: "udp",
    label: "UDP",
    about: "UDP by iperf3 at a fixed offered load, 1,470-byte datagrams",
    metrics: IPERF3,
    saturates: true,
    tools: &[Tool::Iperf3],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 0.4),
    run: run_udp,
    ..Method::USUAL
};

fn run_udp(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    if let Some(why) = stand_in(context, Tool::Iperf3.find().err()) {
        return own(context, &why, IPERF3);
    }
    // Each stream sends at the rate that iperf3 is given.
    let streams = u64::from(context.settings.streams.unwrap_or(1).max(1));
    let bps = context.settings.load_bps() / streams;
    let len = UDP_PAYLOAD as u32;
    let done = iperf3::run(context, Iperf3Payload::Udp { bps, len })?;
    let received = &done.sums.received;
    let both = done.sums.both.as_ref().unwrap_or(received);
    let share = arrived_share(&done.sums);
    Ok(Trial {
        values: vec![
            ("udp_mbps", received.bits_per_second / 1e6),
            ("udp_loss_pct", 100.0 * (1.0 - share)),
            ("udp_jitter_ms", both.jitter_ms),
        ],
        tool: "iperf3".into(),
        load: done.load,
        // The rate, not the count: behind a full link everything arrives, only later.
        carried: Some(received.bits_per_second / context.settings.load_bps() as f64),
        raw: serde_json::json!({
            "sent_datagrams": done.sums.sent.packets,
            "received_datagrams": received.packets - received.lost_packets,
            "lost_by_receiver": both.lost_packets,
            "sent_bps": done.sums.sent.bits_per_second,
        }),
        ..Trial::default()
    })
}

/// By `iperf` 2.
pub(super) const UDP2: Method = Method {
    id: "udp2",
    label: "UDP (iperf 2)",
    about: "UDP by iperf 2 as in E1: -u -b 100M (M is 2^20), 1,470-byte datagrams",
    metrics: IPERF2,
    saturates: true,
    tools: &[Tool::Iperf2],
    cost: |settings| Duration::from_secs_f64(f64::from(settings.whole_seconds()) + 1.0),
    fits: |bed| {
        // On in-memory ports it would only repeat the other UDP method.
        bed.check_hosts("in-memory ports have no kernel UDP")
    },
    run: run_udp2,
    ..Method::USUAL
};

fn run_udp2(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    if let Some(why) = stand_in(context, Tool::Iperf2.find().err()) {
        return own(context, &why, IPERF2);
    }
    // iperf 2 takes plain bit/s as well; the rate is then the same number for both programs.
    let done = iperf2::run(context, context.settings.load_bps())?;
    let report = done.report;
    let share = 1.0 - report.lost / report.total.max(1.0);
    Ok(Trial {
        values: vec![
            ("udp2_mbps", report.bps / 1e6),
            ("udp2_loss_pct", 100.0 * (1.0 - share)),
            ("udp2_jitter_ms", report.jitter_ms),
        ],
        tool: "iperf 2".into(),
        load: done.load,
        carried: Some(report.bps / context.settings.load_bps() as f64),
        raw: serde_json::json!({ "lost": report.lost, "datagrams": report.total }),
        ..Trial::default()
    })
}

/// The share of the datagrams sent that arrived. The receiver's count goes up to the highest number
/// that came, lost ones included; what was lost at the end of the run is missing in its losses.
fn arrived_share(sums: &iperf3::Sums) -> f64 {
    let arrived = sums.received.packets - sums.received.lost_packets;
    (arrived / sums.sent.packets.max(1.0)).clamp(0.0, 1.0)
}

/// Why our own sender has to stand in, if it has to.
fn stand_in(context: &MethodContext<'_>, missing: Option<Missing>) -> Option<String> {
    match context.bed {
        Testbed::Kernel(_) => missing.map(|missing| missing.0),
        Testbed::Memory(_) => Some("in-memory ports".into()),
        Testbed::Agents(_) if context.bed.check_hosts("").is_ok() => None,
        Testbed::Wired(_) | Testbed::Agents(_) | Testbed::Replay(_) | Testbed::Fleet(_) => {
            Some("ends without kernel hosts".into())
        }
    }
}

fn own(
    context: &MethodContext<'_>,
    why: &str,
    metrics: &'static [Metric],
) -> Result<Trial, TrialError> {
    let wanted_pps = context.settings.load_bps() as f64 / (UDP_PAYLOAD * 8) as f64;
    let input = TrialInput {
        frame_size: FRAME,
        rate_pps: wanted_pps,
        duration_s: f64::from(context.settings.whole_seconds()),
        grace_s: 0.05,
    };
    let (outcome, load) = context.observe(|| context.bed.one_way(&input, context.cancel));
    let outcome = outcome?;
    let [mbps, loss_pct, jitter_ms] = figures(&outcome);
    Ok(Trial {
        values: metrics.iter().map(|m| m.id).zip([mbps, loss_pct, jitter_ms]).collect(),
        tool: format!("Weir's own UDP sender ({why})"),
        load,
        carried: Some(1.0 - outcome.report.loss_ratio()),
        raw: serde_json::json!({
            "sent_datagrams": sent(&outcome),
            "refused_by_the_port": outcome.unsent,
            "received_datagrams": outcome.report.received,
        }),
        ..Trial::default()
    })
}

/// Mb/s of payload, loss in percent of what left the host, jitter in ms.
fn figures(outcome: &TrialOutput) -> [f64; 3] {
    let report = &outcome.report;
    let rate = super::pps::received_pps(report, outcome.start_ns, outcome.input.duration_s);
    let lost = 1.0 - report.in_time() as f64 / sent(outcome).max(1) as f64;
    [rate * (UDP_PAYLOAD * 8) as f64 / 1e6, 100.0 * lost.max(0.0), report.jitter_ns / 1e6]
}

/// Frames that left the host.
fn sent(outcome: &TrialOutput) -> u64 {
    outcome.report.sent.saturating_sub(outcome.unsent)
}

#[cfg(test)]
mod tests {
    use super::{FRAME, arrived_share, figures};
    use crate::method::mock::{carry, path, perfect};
    use generator::stack::HeaderStack;
    use generator::testing::DeviceModel;

    #[test]
    fn a_frame_holds_a_datagram_of_1470_bytes() {
        let stack = HeaderStack::parse("eth/ipv4/udp").unwrap();
        // Behind the payload stands the FCS.
        assert_eq!(FRAME - stack.headers_len() - 4, 1470);
    }

    #[test]
    fn datagrams_that_iperf3_lost_did_not_arrive() {
        let share = |text| arrived_share(&crate::method::iperf3::parse(text).unwrap());
        let lossy = share(include_str!("../../tests/data/iperf3-udp-loss.json"));
        // 1,470 bytes each of the 1,825,740 that came.
        assert!((lossy - 1_242.0 / 1_700.0).abs() < 1e-9, "{lossy}");
        // One datagram was on its way at the end.
        let whole = share(include_str!("../../tests/data/iperf3-udp.json"));
        assert!((whole - 6591.0 / 6592.0).abs() < 1e-9, "{whole}");
    }

    #[test]
    fn known_loss_is_found() {
        let outcome = carry(&mut path(DeviceModel { loss: 0.05, ..perfect() }), 8_000.0);
        let truth = outcome.loss_ratio();
        assert!((truth - 0.05).abs() < 0.01, "{truth}");
        let [mbps, loss_pct, jitter_ms] = figures(&outcome);
        assert!((loss_pct - 100.0 * truth).abs() < 1e-6, "{loss_pct}");
        assert!((mbps - 8_000.0 * 1470.0 * 8.0 / 1e6 * (1.0 - truth)).abs() < 0.5, "{mbps}");
        assert!(jitter_ms < 0.01);
    }
}
