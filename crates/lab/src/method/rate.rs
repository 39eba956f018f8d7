//! The forwarding rate of the cell's own frames: the highest rate at which next to nothing is
//! lost, and the most that came through at any rate.

use std::time::Duration;

use generator::method::on_ports::SessionMeasurer;
use generator::method::{Measurer as _, TrialInput};
use generator::session::Waiting;

use super::pps::{json, received_pps};
use super::search::{Attempt, Path, Range, search};
use super::{Better, Method, MethodContext, Metric, Trial, TrialError, traffic};
use crate::ceilings::LINE_MINIMUM;
use crate::settings::Settings;
use crate::testbed::{Testbed, method_error};

/// The method.
pub(super) struct ForwardingRate;

const METRICS: &[Metric] = &[
    Metric {
        id: "rate_pps",
        label: "rate carried, loss up to 0.1 %",
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
        label: "rate carried, layer 1",
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

/// Frames that arrive this long after the end of the schedule are in time.
const GRACE_S: f64 = 0.05;

/// Trials of a search, about.
const TRIALS: f64 = 12.0;

impl Method for ForwardingRate {
    fn id(&self) -> &'static str {
        "rate"
    }

    fn label(&self) -> &'static str {
        "Forwarding rate"
    }

    fn about(&self) -> &'static str {
        "The cell's frames from port 1 to port 2: the highest offered load that passes with at \
         most 0.1 % loss, and the most that came through at any load"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        true
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(TRIALS * (settings.duration_s() + 0.2))
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
        let range = Range { start_pps: START_PPS.min(line_pps), max_pps: MAX_PPS.min(line_pps) };
        let (found, load) = context.observe(|| {
            context.bed.with_session(Waiting::Sparing, |session| {
                let measurer = SessionMeasurer {
                    session,
                    from: 0,
                    to: 1,
                    stream: traffic::stream(settings),
                    is_learning: traffic::is_learning(settings),
                    stop: context.cancel.flag(),
                };
                search(&mut SessionPath { measurer, settings }, range)
            })
        });
        let found = found?;
        let line_bits = (line_bytes * 8) as f64;
        Ok(Trial {
            values: vec![
                ("rate_pps", found.carried_pps),
                ("rate_most_pps", found.most_received_pps),
                ("rate_mbps", found.carried_pps * line_bits / 1e6),
            ],
            tool: "Weir's open-loop generator".into(),
            commands: Vec::new(),
            load,
            carried: None,
            distributions: Vec::new(),
            raw: serde_json::json!({
                "frame_bytes": size,
                "search": found.attempts.iter().map(json).collect::<Vec<_>>(),
            }),
        })
    }
}

struct SessionPath<'a> {
    measurer: SessionMeasurer<'a>,
    settings: &'a Settings,
}

impl Path for SessionPath<'_> {
    type Error = TrialError;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, TrialError> {
        let duration_s = self.settings.duration_s();
        let input = TrialInput {
            frame_size: self.settings.frame_size() as usize,
            rate_pps: offered_pps,
            duration_s,
            grace_s: GRACE_S,
        };
        let outcome = self.measurer.trial(input).map_err(method_error)?;
        Ok(Attempt {
            offered_pps,
            received_pps: received_pps(&outcome.report, outcome.start_ns, duration_s),
            loss: outcome.report.loss_ratio(),
        })
    }
}
