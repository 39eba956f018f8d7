//! A port is pulled while frames leave by it: how long nothing arrives until they leave by another,
//! and how many are lost.

use std::time::Duration;

use generator::receiver::StreamReport;
use generator::statistics::SessionStatistics;

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, traffic};
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
        if bed.host_count() > OTHER { Ok(()) } else { Err("needs three ports: set ports = 3") }
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
    let (seen, times) = outcome?;
    let Some(stream) = seen.streams.first() else {
        return Err(wrong("nothing was sent".to_owned()));
    };
    let rate_pps = context.settings.rate_pps.unwrap_or(RATE_PPS);
    let reports = [PULLED, OTHER].map(|port| traffic::report(stream, port));
    let takeover = Takeover::of(times, stream.sent, reports, rate_pps);
    let Takeover { gap, lost, had_carried } = takeover.map_err(wrong)?;
    Ok(Trial {
        values: vec![("failover_ms", gap.ms), ("failover_lost", lost as f64)],
        tool: traffic::TOOL.into(),
        load,
        resolutions: vec![Resolution::new("failover_ms", gap.least_ms, gap.most_ms)],
        raw: serde_json::json!({
            "sent": stream.sent,
            "port_2": traffic::received(stream, PULLED),
            "port_3": traffic::received(stream, OTHER),
            "port_3_carried_before": had_carried,
        }),
        ..Trial::default()
    })
}

/// The time without frames, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gap {
    /// From the last frame before to the first behind it.
    pub(super) ms: f64,
    /// The shortest outage that explains it: it began just before the frame behind the last one
    /// and ended just behind the frame before the first one, which took the longest way.
    pub(super) least_ms: f64,
    /// The longest: the last frame took the longest way.
    pub(super) most_ms: f64,
}

impl Gap {
    /// Between the arrivals at one port and those at another, of frames at that rate; none where
    /// one of them saw nothing, or where the other began before the one ended.
    pub(super) fn between(
        before: Option<&StreamReport>,
        behind: Option<&StreamReport>,
        rate_pps: f64,
    ) -> Option<Self> {
        let (before, behind) = before.zip(behind)?;
        let silent_ns = behind.first_ns?.checked_sub(before.last_ns?)?;
        Some(Self::of(silent_ns, spread_ms(before).max(spread_ms(behind)), rate_pps))
    }

    /// Such a silence, of frames at that rate whose delays vary by so much.
    fn of(silent_ns: u64, spread_ms: f64, rate_pps: f64) -> Self {
        let (ms, interval_ms) = (silent_ns as f64 / 1e6, 1e3 / rate_pps);
        let least_ms = (ms - 2.0 * interval_ms - spread_ms).max(0.0);
        Self { ms, least_ms, most_ms: ms + spread_ms }
    }
}

/// By how much the delays of a port's frames vary, milliseconds.
fn spread_ms(report: &StreamReport) -> f64 {
    let spread = report.delay.as_ref().map_or(0.0, |delay| delay.at_ns(0.99) - delay.at_ns(0.0));
    spread.max(0.0) / 1e6
}

/// Moments at which the link was pulled and the last frame was due, nanoseconds of the generator's
/// clock.
type Times = (u64, u64);

/// Fate of the frames.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Takeover {
    /// The longest silence.
    gap: Gap,
    /// Frames that came nowhere.
    lost: u64,
    /// Whether the other port had frames before the pull, as of a group that sends to all.
    had_carried: bool,
}

impl Takeover {
    /// From the accounts of the pulled port and of the other. Where the other carried from the
    /// start, its own longest silence counts and the frames that it missed.
    ///
    /// # Errors
    /// Accounts that show no takeover, in words.
    fn of(
        (pulled_ns, end_ns): Times,
        sent: u64,
        [pulled, other]: [Option<&StreamReport>; 2],
        rate_pps: f64,
    ) -> Result<Self, String> {
        let count = |report: Option<&StreamReport>| report.map_or(0, |report| report.received);
        let counts = format!(
            "{} frames came to port 2 and {} to port 3 of {sent} sent",
            count(pulled),
            count(other)
        );
        let Some((before, behind)) = pulled.zip(other) else {
            return Err(format!("{counts}: no other port took over"));
        };
        let had_carried = behind.first_ns.is_some_and(|first_ns| first_ns < pulled_ns);
        let (gap, arrived) = if had_carried {
            // Silence up to the end of the schedule is a gap too.
            let at_end_ns = end_ns.saturating_sub(behind.last_ns.unwrap_or(0));
            let silent_ns = behind.longest_gap_ns.max(at_end_ns);
            (Some(Gap::of(silent_ns, spread_ms(behind), rate_pps)), behind.received)
        } else {
            (Gap::between(pulled, other, rate_pps), before.received + behind.received)
        };
        let gap = gap
            .ok_or_else(|| format!("{counts}: to both behind the pull, so that none took over"))?;
        let lost = sent
            .checked_sub(arrived)
            .ok_or_else(|| format!("{counts}: more than were sent, so that losses do not show"))?;
        Ok(Self { gap, lost, had_carried })
    }
}

/// Sends, and pulls the link meanwhile.
fn pull(
    context: &MethodContext<'_>,
    bed: &NetnsTestbed,
) -> Result<(SessionStatistics, Times), TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s());
    context.bed.with_session(traffic::waiting_for(rate_pps), |session| {
        let mut pulled_ns = None;
        let seen =
            traffic::exchange(session, &[(0, vec![burst])], context, |session, start_ns| {
                let due_ns = start_ns + (settings.duration_s() * PULLED_AT * 1e9) as u64;
                if pulled_ns.is_none() && session.now_ns() >= due_ns {
                    pulled_ns = Some(session.now_ns());
                    set_link(bed, false)?;
                }
                Ok(())
            })?;
        let Some(pulled_ns) = pulled_ns else {
            return Err(wrong(
                "the frames were over before the pull: set duration_s higher".into(),
            ));
        };
        let end_ns = seen.start_ns + (settings.duration_s() * 1e9) as u64;
        Ok((seen.statistics, (pulled_ns, end_ns)))
    })
}

fn set_link(bed: &NetnsTestbed, is_up: bool) -> Result<(), TrialError> {
    bed.set_link(PULLED, is_up).map_err(|error| wrong(error.to_string()))
}

fn wrong(what: String) -> TrialError {
    TrialError::Output { program: "failover", what }
}

#[cfg(test)]
mod tests {
    use super::{Takeover, Times};
    use generator::receiver::StreamReport;

    const TIMES: Times = (300_000_000, 900_000_000);

    fn report(received: u64, first_ms: u64, last_ms: u64, longest_gap_ms: u64) -> StreamReport {
        let ns = |ms: u64| ms * 1_000_000;
        StreamReport {
            received,
            first_ns: Some(ns(first_ms)),
            last_ns: Some(ns(last_ms)),
            longest_gap_ns: ns(longest_gap_ms),
            ..crate::method::mock::carry(
                &mut crate::method::mock::path(crate::method::mock::perfect()),
                10.0,
            )
            .report
        }
    }

    fn takeover(pulled: &StreamReport, other: &StreamReport) -> Result<Takeover, String> {
        Takeover::of(TIMES, 900, [Some(pulled), Some(other)], 1_000.0)
    }

    /// Milliseconds of silence, frames lost, and whether the other port carried before.
    fn figures(pulled: &StreamReport, other: &StreamReport) -> (f64, u64, bool) {
        let Takeover { gap, lost, had_carried } = takeover(pulled, other).unwrap();
        (gap.ms, lost, had_carried)
    }

    #[test]
    fn one_port_after_the_other_is_silent_in_between() {
        let found = figures(&report(300, 0, 300, 1), &report(590, 310, 899, 1));
        assert_eq!(found, (10.0, 10, false));
    }

    #[test]
    fn a_port_that_carried_all_along_shows_its_own_silence() {
        let (pulled, whole) = (report(300, 0, 300, 1), report(900, 0, 899, 1));
        let found = figures(&pulled, &whole);
        assert_eq!(found, (1.0, 0, true));
        let found = figures(&pulled, &report(880, 0, 899, 20));
        assert_eq!(found, (20.0, 20, true));
        let found = figures(&pulled, &report(300, 0, 300, 1));
        assert_eq!(found, (600.0, 600, true));
    }

    #[test]
    fn accounts_without_a_takeover_are_no_figure() {
        let pulled = report(300, 0, 320, 1);
        assert!(Takeover::of(TIMES, 900, [Some(&pulled), None], 1_000.0).is_err());
        let both = takeover(&pulled, &report(590, 310, 899, 1)).unwrap_err();
        assert!(both.contains("300 frames came to port 2 and 590 to port 3"), "{both}");
        assert!(takeover(&report(300, 0, 300, 1), &report(601, 310, 899, 1)).is_err());
    }
}
