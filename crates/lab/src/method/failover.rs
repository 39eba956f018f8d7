//! A port is pulled while frames leave by it: how long nothing arrives until they leave by another,
//! and how many are lost.

use std::time::Duration;

use generator::receiver::StreamReport;
use generator::statistics::SessionStatistics;
use stats::Observed;

use super::{Method, MethodContext, Metric, Trial, TrialError, traffic, wrong};
use crate::testbed::netns::NetnsTestbed;

/// Frames a second, where the cell says nothing else: the resolution of the time.
const RATE_PPS: f64 = 10_000.0;

/// The share of a trial behind which the port is pulled.
const PULLED_AT: f64 = 1.0 / 3.0;

/// The host whose link is pulled, behind port 2, and the session's port of the other.
const PULLED: usize = 1;
const OTHER: usize = 2;

/// Longest time for a switch to see that the link is up again.
const LINK_UP: Duration = Duration::from_millis(300);

pub(super) const FAILOVER: Method = Method {
    id: "failover",
    label: "Failover",
    about: "Frames into port 1; the link of port 2 is pulled: from the last frame at port 2 to the \
            first at port 3 behind it, and the frames that came to neither",
    metrics: &[
        Metric::lower("failover_ms", "time until the other port carries", "ms", 2),
        Metric::lower("failover_lost", "frames lost", "frames", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.2) + LINK_UP,
    fits: |bed| {
        let bed = bed.kernel_or("the link of an in-memory port cannot be pulled")?;
        if bed.hosts.len() > OTHER { Ok(()) } else { Err("needs three ports: set ports = 3") }
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    drop(context.client("has no groups")?);
    let (outcome, load) = context.observe(|| pull(context, bed));
    // Whatever came of it, the next trial finds the link up.
    set_link(bed, true)?;
    context.cancel.sleep(LINK_UP)?;
    let (seen, pulled_ns, end_ns) = outcome?;
    let stream = seen.streams.first().ok_or_else(|| wrong("failover", "nothing was sent"))?;
    let rate_pps = context.settings.rate_pps.unwrap_or(RATE_PPS);
    let reports = [PULLED, OTHER].map(|port| traffic::report(stream, port));
    let found = takeover((pulled_ns, end_ns), stream.sent, reports, rate_pps);
    let (gap_ms, lost, had_carried) = found?;
    let values = vec![("failover_ms", gap_ms), ("failover_lost", (lost as f64).into())];
    let raw = serde_json::json!({
        "sent": stream.sent,
        "port_2": traffic::received(stream, PULLED),
        "port_3": traffic::received(stream, OTHER),
        "port_3_carried_before": had_carried,
    });
    Ok(Trial { values, tool: traffic::TOOL.into(), load, raw, ..Trial::default() })
}

/// The time in milliseconds between the arrivals at one port and those at another, of frames at
/// that rate; none where one of them saw nothing, or where the other began before the one ended.
pub(super) fn gap_ms([before, behind]: [&StreamReport; 2], rate_pps: f64) -> Option<Observed> {
    let silent_ns = behind.first_ns?.checked_sub(before.last_ns?)?;
    Some(silence_ms(silent_ns, spread_ms(before).max(spread_ms(behind)), rate_pps))
}

/// Such a silence, of frames at that rate whose delays vary by so much: the shortest outage that
/// explains it began just before the frame behind the last one and ended just behind the frame
/// before the first one, which took the longest way; in the longest the last frame took it.
fn silence_ms(silent_ns: u64, spread_ms: f64, rate_pps: f64) -> Observed {
    let (value, interval_ms) = (silent_ns as f64 / 1e6, 1e3 / rate_pps);
    let low = (value - 2.0 * interval_ms - spread_ms).max(0.0);
    Observed { value, low, high: value + spread_ms }
}

/// By how much the delays of a port's frames vary, milliseconds.
fn spread_ms(report: &StreamReport) -> f64 {
    let spread = report.delay.as_ref().map_or(0.0, |delay| delay.at_ns(0.99) - delay.at_ns(0.0));
    spread.max(0.0) / 1e6
}

/// The longest silence in milliseconds, the frames that came nowhere, and whether the other port
/// carried before the pull, as of a group that sends to all: then its own silence and losses count.
/// Taken from the accounts of both ports and the moments of the pull and of the last frame's due
/// time; an error where they show no takeover.
fn takeover(
    (pulled_ns, end_ns): (u64, u64),
    sent: u64,
    [pulled, other]: [Option<&StreamReport>; 2],
    rate_pps: f64,
) -> Result<(Observed, u64, bool), TrialError> {
    let [before, behind] = [pulled, other].map(|report| report.map_or(0, |report| report.received));
    let counts = format!("{before} frames came to port 2 and {behind} to port 3 of {sent} sent");
    let failed = |why: &str| wrong("failover", format!("{counts}: {why}"));
    let (Some(of_pulled), Some(of_other)) = (pulled, other) else {
        return Err(failed("no other port took over"));
    };
    let had_carried = of_other.first_ns.is_some_and(|first_ns| first_ns < pulled_ns);
    let (gap, arrived) = if had_carried {
        // Silence up to the end of the schedule is a gap too.
        let at_end_ns = end_ns.saturating_sub(of_other.last_ns.unwrap_or(0));
        let silent_ns = of_other.longest_gap_ns.max(at_end_ns);
        (Some(silence_ms(silent_ns, spread_ms(of_other), rate_pps)), behind)
    } else {
        (gap_ms([of_pulled, of_other], rate_pps), before + behind)
    };
    let gap = gap.ok_or_else(|| failed("to both behind the pull, so that none took over"))?;
    let lost = sent.checked_sub(arrived);
    let lost = lost.ok_or_else(|| failed("more than were sent, so that losses do not show"))?;
    Ok((gap, lost, had_carried))
}

/// Sends, and pulls the link meanwhile: what came, and the moments at which the link was pulled and
/// the last frame was due, nanoseconds of the generator's clock.
fn pull(
    context: &MethodContext<'_>,
    bed: &NetnsTestbed,
) -> Result<(SessionStatistics, u64, u64), TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s());
    context.bed.with_session(traffic::waiting_for(rate_pps), |session| {
        let mut pulled_ns = None;
        let (seen, start_ns) =
            traffic::exchange(session, &[(0, burst)], context, |session, start_ns| {
                let due_ns = start_ns + (settings.duration_s() * PULLED_AT * 1e9) as u64;
                if pulled_ns.is_none() && session.now_ns() >= due_ns {
                    pulled_ns = Some(session.now_ns());
                    set_link(bed, false)?;
                }
                Ok(())
            })?;
        let early = "the frames were over before the pull: set duration_s higher";
        let pulled_ns = pulled_ns.ok_or_else(|| wrong("failover", early))?;
        Ok((seen, pulled_ns, start_ns + (settings.duration_s() * 1e9) as u64))
    })
}

fn set_link(bed: &NetnsTestbed, is_up: bool) -> Result<(), TrialError> {
    bed.set_link(PULLED, is_up).map_err(|error| wrong("failover", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::takeover;
    use generator::receiver::StreamReport;

    fn report(received: u64, first_ms: u64, last_ms: u64, longest_gap_ms: u64) -> StreamReport {
        let ns = |ms: u64| ms * 1_000_000;
        StreamReport {
            received,
            first_ns: Some(ns(first_ms)),
            last_ns: Some(ns(last_ms)),
            longest_gap_ns: ns(longest_gap_ms),
            ..<_>::default()
        }
    }

    /// Milliseconds of silence, frames lost, and whether the other port carried before.
    fn figures(pulled: &StreamReport, other: &StreamReport) -> Result<(f64, u64, bool), String> {
        let (pulled, other) = (Some(pulled), Some(other));
        let found = takeover((300_000_000, 900_000_000), 900, [pulled, other], 1_000.0);
        let values = found.map(|(gap_ms, lost, had_carried)| (gap_ms.value, lost, had_carried));
        values.map_err(|error| error.to_string())
    }

    #[test]
    fn the_silence_of_a_takeover_and_its_losses_are_found() {
        let pulled = report(300, 0, 300, 1);
        for (other, found) in [
            (report(590, 310, 899, 1), (10.0, 10, false)),
            (report(900, 0, 899, 1), (1.0, 0, true)),
            (report(880, 0, 899, 20), (20.0, 20, true)),
            (report(300, 0, 300, 1), (600.0, 600, true)),
        ] {
            assert_eq!(figures(&pulled, &other), Ok(found));
        }
    }

    #[test]
    fn accounts_without_a_takeover_are_no_figure() {
        let pulled = report(300, 0, 320, 1);
        assert!(takeover((0, 1), 900, [Some(&pulled), None], 1_000.0).is_err());
        let both = figures(&pulled, &report(590, 310, 899, 1)).unwrap_err();
        assert!(both.contains("300 frames came to port 2 and 590 to port 3"), "{both}");
        assert!(figures(&report(300, 0, 300, 1), &report(601, 310, 899, 1)).is_err());
    }
}
