//! A port is pulled while frames leave by it: how long nothing arrives until they leave by another,
//! and how many are lost.

use std::time::Duration;

use super::{Better, Method, MethodContext, Metric, Resolution, Trial, TrialError, traffic};
use crate::settings::Settings;
use crate::testbed::Testbed;
use crate::testbed::netns::NetnsTestbed;
use generator::receiver::StreamReport;
use generator::session::Waiting;

/// The method.
pub(super) struct Failover;

const METRICS: &[Metric] = &[
    figure("failover_ms", "time until the other port carries", "ms", 2),
    figure("failover_lost", "frames lost", "frames", 0),
];

const fn figure(
    id: &'static str,
    label: &'static str,
    unit: &'static str,
    decimals: usize,
) -> Metric {
    Metric { id, label, unit, better: Better::Lower, decimals }
}

/// Frames a second, where the cell says nothing else: the resolution of the time.
const RATE_PPS: f64 = 10_000.0;

/// The share of a trial behind which the port is pulled.
const PULLED_AT: f64 = 1.0 / 3.0;

/// The host whose link is pulled, behind port 2, and the session's port of the other.
const PULLED: usize = 1;
const OTHER: usize = 2;

/// What a switch takes at most to see that the link is up again.
const LINK_UP: Duration = Duration::from_millis(300);

impl Method for Failover {
    fn id(&self) -> &'static str {
        "failover"
    }

    fn label(&self) -> &'static str {
        "Failover"
    }

    fn about(&self) -> &'static str {
        "Frames into port 1; the link of port 2 is pulled: from the last frame at port 2 to the \
         first at port 3 behind it, and the frames that came to neither"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        false
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(settings.duration_s() + 0.2) + LINK_UP
    }

    fn fits(&self, bed: &Testbed) -> Result<(), &'static str> {
        match bed.kernel() {
            Some(bed) if bed.host_count() > OTHER => Ok(()),
            Some(_) => Err("needs three ports: set ports = 3"),
            None => Err("the link of an in-memory port cannot be pulled"),
        }
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
        if context.setup.is_none_or(|setup| setup.client().is_none()) {
            return Err(TrialError::Unfit("has no groups"));
        }
        let (outcome, load) = context.observe(|| pull(context, bed));
        // Whatever came of it, the next trial finds the link up.
        set_link(bed, true)?;
        context.cancel.sleep(LINK_UP)?;
        let seen = outcome?;
        let Some(stream) = seen.streams.first() else {
            return Err(wrong("nothing was sent".to_owned()));
        };
        let report = |port: usize| {
            let arrival = stream.arrivals.iter().find(|arrival| arrival.port == port);
            arrival.map(|arrival| &arrival.report)
        };
        let rate_pps = context.settings.rate_pps.unwrap_or(RATE_PPS);
        let gap = Gap::between(report(PULLED), report(OTHER), rate_pps);
        let Some(gap) = gap else {
            let count = |port| traffic::received(stream, port);
            let what = format!(
                "{} frames came to port 2 and {} to port 3 of {} sent: no other port took over",
                count(PULLED),
                count(OTHER),
                stream.sent
            );
            return Err(wrong(what));
        };
        let arrived = traffic::received(stream, PULLED) + traffic::received(stream, OTHER);
        let lost = stream.sent.saturating_sub(arrived);
        Ok(Trial {
            values: vec![("failover_ms", gap.ms), ("failover_lost", lost as f64)],
            tool: traffic::TOOL.into(),
            commands: vec!["ip link set eth0 down (at host 2)".to_owned()],
            load,
            carried: None,
            distributions: Vec::new(),
            resolutions: vec![Resolution::new("failover_ms", gap.least_ms, gap.most_ms)],
            raw: serde_json::json!({
                "sent": stream.sent,
                "port_2": traffic::received(stream, PULLED),
                "port_3": traffic::received(stream, OTHER),
            }),
        })
    }
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
    /// one of them saw nothing.
    pub(super) fn between(
        before: Option<&StreamReport>,
        behind: Option<&StreamReport>,
        rate_pps: f64,
    ) -> Option<Self> {
        let ((before, behind), interval_ms) = (before.zip(behind)?, 1e3 / rate_pps);
        let ms = behind.first_ns?.saturating_sub(before.last_ns?) as f64 / 1e6;
        let spread = |report: &StreamReport| {
            report.delay.as_ref().map_or(0.0, |delay| delay.at_ns(0.99) - delay.at_ns(0.0))
        };
        let spread_ms = spread(before).max(spread(behind)).max(0.0) / 1e6;
        let least_ms = (ms - 2.0 * interval_ms - spread_ms).max(0.0);
        Some(Self { ms, least_ms, most_ms: ms + spread_ms })
    }
}

/// Sends, and pulls the link meanwhile.
fn pull(
    context: &MethodContext<'_>,
    bed: &NetnsTestbed,
) -> Result<generator::statistics::SessionStatistics, TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s());
    context.bed.with_session(Waiting::Sparing, |session| {
        let begun_ns = session.now_ns() + session.lead_ns();
        let pulled_ns = begun_ns + (settings.duration_s() * PULLED_AT * 1e9) as u64;
        let mut is_pulled = false;
        traffic::exchange(session, &[(0, vec![burst])], context, |session| {
            if !is_pulled && session.now_ns() >= pulled_ns {
                is_pulled = true;
                set_link(bed, false)?;
            }
            Ok(())
        })
    })
}

fn set_link(bed: &NetnsTestbed, is_up: bool) -> Result<(), TrialError> {
    bed.set_link(PULLED, is_up).map_err(|error| wrong(error.to_string()))
}

fn wrong(what: String) -> TrialError {
    TrialError::Output { program: "failover", what }
}
