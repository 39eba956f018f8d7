//! The forwarding rate of the cell's own frames: the highest rate at which next to nothing is
//! lost, and the most that came through at any rate; one way, or both ways at once.

use std::time::Duration;

use generator::method::{Measurer as _, TrialInput};
use generator::session::{Session, Waiting};

use super::pps::{json, received_pps};
use super::search::{Attempt, Found, LOSS_MAX, Path, Range, received_resolution, search};
use super::{
    Better, Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic,
};
use crate::ceilings::LINE_MINIMUM;
use crate::settings::Settings;
use crate::testbed::{Testbed, method_error};

/// The method.
pub(super) struct ForwardingRate;

const METRICS: &[Metric] = &[
    Metric {
        id: "rate_pps",
        label: "rate carried",
        unit: "packets/s",
        better: Better::Higher,
        decimals: 0,
    },
    Metric {
        id: "rate_most_pps",
        label: "most that came through",
        unit: "packets/s",
        better: Better::Higher,
        decimals: 0,
    },
    Metric {
        id: "rate_mbps",
        label: "rate carried, at layer 1",
        unit: "Mbit/s",
        better: Better::Higher,
        decimals: 1,
    },
];

/// Where the search starts, frames a second.
const START_PPS: f64 = 20_000.0;

/// The most that is offered, frames a second: more than the sender can make, so that what it can
/// make shows as its own CPU and not as a round number.
const MAX_PPS: f64 = 4_000_000.0;

/// Frames that arrive this long after the end of the schedule are in time, as a share of it: a
/// sender or a switch that stood still for a moment catches up, and one that is too slow does not.
const GRACE: f64 = 0.1;

/// A share of frames that is due to the schedule being a whole number of frames.
const ROUNDING: f64 = 0.001;

/// Trials of a search, about, and what each takes beside its duration, seconds.
const TRIALS: f64 = 8.0;
const TRIAL_EXTRA_S: f64 = 0.1;

impl Method for ForwardingRate {
    fn id(&self) -> &'static str {
        "rate"
    }

    fn label(&self) -> &'static str {
        "Forwarding rate"
    }

    fn about(&self) -> &'static str {
        "The cell's frames from port 1 to port 2, or both ways at once: the highest offered load \
         that passes with at most the allowed loss (0.1 % where the cell says nothing else), and \
         the most that came through at any load; both ways, the sum"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        true
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(TRIALS * (settings.duration_s() + TRIAL_EXTRA_S))
    }

    fn fits(&self, _bed: &Testbed) -> Result<(), &'static str> {
        Ok(())
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let settings = context.settings;
        let size = settings.frame_size();
        let line_bytes = LINE_MINIMUM.max(u64::from(size) + 20);
        let line_pps =
            context.bed.port_rate().map_or(f64::MAX, |bps| bps as f64 / (8 * line_bytes) as f64);
        let range = Range {
            start_pps: START_PPS.min(line_pps),
            max_pps: MAX_PPS.min(line_pps),
            known_pps: context.before,
            loss_max: settings.loss.unwrap_or(LOSS_MAX),
        };
        let is_bidirectional = settings.is_bidirectional == Some(true);
        let (found, load) = context.observe(|| {
            context.bed.with_session(Waiting::Sparing, |session| {
                if is_bidirectional {
                    // Half the sum leaves by each port.
                    let (start_pps, max_pps) = (2.0 * range.start_pps, 2.0 * range.max_pps);
                    let range = Range { start_pps, max_pps, ..range };
                    search(&mut BothWays { session, context }, range)
                } else {
                    search(&mut OneWay { session, context }, range)
                }
            })
        });
        let found = found?;
        let (values, resolutions) = figures(&found, (line_bytes * 8) as f64);
        Ok(Trial {
            values,
            tool: traffic::TOOL.into(),
            commands: Vec::new(),
            load,
            carried: None,
            distributions: Vec::new(),
            resolutions,
            raw: serde_json::json!({
                "frame_bytes": size,
                "search": found.attempts.iter().map(json).collect::<Vec<_>>(),
            }),
        })
    }
}

/// The figures of a search, and what it leaves open, for frames of so many bits on the line.
pub(super) fn figures(found: &Found, line_bits: f64) -> (Values, Vec<Resolution>) {
    let mbps = |pps: f64| pps * line_bits / 1e6;
    let values = vec![
        ("rate_pps", found.carried_pps),
        ("rate_most_pps", found.most_received_pps),
        ("rate_mbps", mbps(found.carried_pps)),
    ];
    let (low, high) = received_resolution(found.most_received_pps);
    let mut resolutions = vec![Resolution::new("rate_most_pps", low, high)];
    if let Some((low, high)) = found.carried_resolution() {
        resolutions.push(Resolution::new("rate_pps", low, high));
        resolutions.push(Resolution::new("rate_mbps", mbps(low), mbps(high)));
    }
    (values, resolutions)
}

struct OneWay<'a, 'b> {
    session: &'a mut Session,
    context: &'a MethodContext<'b>,
}

impl Path for OneWay<'_, '_> {
    type Error = TrialError;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, TrialError> {
        let settings = self.context.settings;
        let input = TrialInput {
            frame_size: settings.frame_size() as usize,
            rate_pps: offered_pps,
            duration_s: settings.duration_s(),
            grace_s: GRACE * settings.duration_s(),
        };
        let mut measurer = traffic::measurer(self.session, self.context, traffic::QUIET);
        let outcome = measurer.trial(input).map_err(method_error)?;
        Ok(Attempt {
            offered_pps,
            received_pps: received_pps(&outcome.report, outcome.start_ns, input.duration_s),
            loss: outcome.report.loss_ratio(),
        })
    }
}

struct BothWays<'a, 'b> {
    session: &'a mut Session,
    context: &'a MethodContext<'b>,
}

impl Path for BothWays<'_, '_> {
    type Error = TrialError;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, TrialError> {
        let duration_s = self.context.settings.duration_s();
        let there = traffic::burst(self.context.settings, offered_pps / 2.0, duration_s);
        let loads = [(1, vec![traffic::reversed(&there)]), (0, vec![there])];
        let start_ns = self.session.now_ns() + self.session.lead_ns();
        let seen = traffic::exchange(self.session, &loads, self.context, |_| Ok(()))?;
        let (mut offered, mut arrived, mut arrived_pps) = (0, 0, 0.0);
        for stream in &seen.streams {
            offered += stream.probes + stream.unsent;
            let arrival = stream.arrivals.iter().find(|arrival| arrival.port != stream.port);
            let Some(report) = arrival.map(|arrival| &arrival.report) else { continue };
            arrived += report.received;
            // What a queue delivers after the end of the schedule and the grace is no faster.
            let last_s = report.last_ns.unwrap_or(0).saturating_sub(start_ns) as f64 / 1e9;
            arrived_pps += report.received as f64 / duration_s.max(last_s - GRACE * duration_s);
        }
        let lost = 1.0 - arrived as f64 / (offered as f64).max(1.0);
        Ok(Attempt {
            offered_pps,
            received_pps: arrived_pps,
            loss: lost.max(1.0 - arrived_pps / offered_pps - ROUNDING),
        })
    }
}
