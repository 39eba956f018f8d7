//! The forwarding rate of the cell's own frames: the highest rate at which next to nothing is
//! lost, and the most that came through at any rate; one way, or both ways at once.

use std::ops::AddAssign;
use std::time::Duration;

use generator::method::{Measurer as _, TrialInput};
use generator::session::Waiting;

use super::pps::{attempt, json};
use super::search::{
    Attempt, Found, LOSS_MAX, Path, Range, TimedPath, beyond_pps, received_resolution, search,
};
use super::traffic::Exchanger;
use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic};
use crate::ceilings::frame_line_bits;
use crate::load::Load;
use crate::settings::Settings;
use crate::testbed::{LabMeasurer, method_error};

/// Start of the search, frames a second.
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
const TRIALS: f64 = 8.5;
const TRIAL_EXTRA_S: f64 = 0.08;

pub(super) const RATE: Method = Method {
    id: "rate",
    label: "Forwarding rate",
    about: "The cell's frames from port 1 to port 2, or both ways at once: the highest offered \
            load that passes with at most the allowed loss (0.1 % where the cell says nothing \
            else), and the most that came through at any load; both ways, the sum",
    metrics: &[
        Metric::higher("rate_pps", "rate carried", "packets/s", 0),
        Metric::higher("rate_most_pps", "most that came through", "packets/s", 0),
        Metric::higher("rate_mbps", "rate carried, at layer 1", "Mbit/s", 1),
    ],
    saturates: true,
    cost: |settings| {
        let search_s = TRIALS * (settings.duration_s() + TRIAL_EXTRA_S);
        Duration::from_secs_f64(search_s + beyond_cost_s(settings))
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let size = settings.frame_size();
    let line_pps = traffic::line_pps(context).unwrap_or(f64::MAX);
    let range = Range {
        start_pps: START_PPS.min(line_pps),
        max_pps: MAX_PPS.min(line_pps),
        known_pps: context.before,
        loss_max: settings.loss.unwrap_or(LOSS_MAX),
    };
    let is_bidirectional = settings.is_bidirectional == Some(true);
    let found = if is_bidirectional {
        traffic::with_exchanger(context.bed, |exchanger| {
            // Half the sum leaves by each port.
            let (start_pps, max_pps) = (2.0 * range.start_pps, 2.0 * range.max_pps);
            let range = Range { start_pps, max_pps, ..range };
            measure("rate", context, range, |offered_pps, duration_s| {
                both_ways(exchanger, context, offered_pps, duration_s)
            })
        })
    } else {
        let plan = traffic::plan(context, Waiting::Sleeping, traffic::QUIET);
        context.bed.with_measurer(plan, |measurer| {
            measure("rate", context, range, |offered_pps, duration_s| {
                one_way(measurer, settings, offered_pps, duration_s)
            })
        })
    };
    let (found, saturating, load) = found?;
    let (values, resolutions) = figures(&found, frame_line_bits(size));
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        resolutions,
        raw: serde_json::json!({
            "frame_bytes": size,
            "search": found.attempts.iter().map(json).collect::<Vec<_>>(),
            "saturation": json(&saturating),
        }),
        ..Trial::default()
    })
}

/// The figures of a search with their bounds, for frames of that size in bits on the line.
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

/// The search, then one longer trial beyond what was carried, and the load of every part in it:
/// between the short trials of a search nothing is sent, so that no part is busy all the while.
///
/// `trial` offers a rate in frames a second for a time in seconds.
pub(super) fn measure(
    program: &'static str,
    context: &MethodContext<'_>,
    range: Range,
    trial: impl FnMut(f64, f64) -> Result<Attempt, TrialError>,
) -> Result<(Found, Attempt, Option<Load>), TrialError> {
    let duration_s = context.settings.duration_s();
    let mut path = TimedPath { trial, duration_s };
    let mut found = search(&mut path, range)?.if_any_arrived(program)?;
    // Where no load passed, beyond what came through.
    let passed = found.carried_pps > 0.0;
    let rate_pps = if passed { found.carried_pps } else { found.most_received_pps };
    let offered_pps = beyond_pps(rate_pps, range.max_pps);
    path.duration_s = overload_s(duration_s);
    let (saturating, load) = context.observe(|| path.trial(offered_pps));
    let saturating = saturating?;
    found.most_received_pps = found.most_received_pps.max(saturating.received_pps);
    Ok((found, saturating, load))
}

/// Duration of the trial after a search, seconds.
pub(super) fn beyond_cost_s(settings: &Settings) -> f64 {
    overload_s(settings.duration_s()) + TRIAL_EXTRA_S
}

/// The duration of the trial whose load is looked at, from that of the others, seconds.
fn overload_s(duration_s: f64) -> f64 {
    duration_s.max((3.0 * duration_s).clamp(0.5, 1.0))
}

/// Arrivals both ways, frames a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    /// Up to the end of the schedule or the last frame, whichever is later.
    arrived_pps: f64,
    /// The same with the grace taken off, which a sender that stood still for a moment has.
    in_grace_pps: f64,
}

impl Rate {
    /// Of one way, whose last frame came `last_s` after the start.
    fn of(received: u64, duration_s: f64, last_s: f64) -> Self {
        let over = |s: f64| received as f64 / duration_s.max(s);
        Self { arrived_pps: over(last_s), in_grace_pps: over(last_s - GRACE * duration_s) }
    }
}

impl AddAssign for Rate {
    fn add_assign(&mut self, other: Self) {
        self.arrived_pps += other.arrived_pps;
        self.in_grace_pps += other.in_grace_pps;
    }
}

/// A trial from port 1 to port 2.
fn one_way(
    measurer: &mut LabMeasurer<'_>,
    settings: &Settings,
    offered_pps: f64,
    duration_s: f64,
) -> Result<Attempt, TrialError> {
    let input = TrialInput {
        frame_size: settings.frame_size() as usize,
        rate_pps: offered_pps,
        duration_s,
        grace_s: GRACE * duration_s,
    };
    let outcome = measurer.trial(input).map_err(method_error)?;
    Ok(attempt(&outcome))
}

/// A trial with half the frames each way.
fn both_ways(
    exchanger: &mut Exchanger<'_>,
    context: &MethodContext<'_>,
    offered_pps: f64,
    duration_s: f64,
) -> Result<Attempt, TrialError> {
    let there = traffic::burst(context.settings, offered_pps / 2.0, duration_s);
    let loads = [(1, vec![traffic::reversed(&there)]), (0, vec![there])];
    let seen = exchanger.exchange(&loads, context)?;
    let (mut offered, mut arrived, mut rate) = (0, 0, Rate::default());
    for stream in &seen.statistics.streams {
        offered += stream.probes + stream.unsent;
        let arrival = stream.arrivals.iter().find(|arrival| arrival.port != stream.port);
        let Some(report) = arrival.map(|arrival| &arrival.report) else { continue };
        arrived += report.received;
        let last_s = report.last_ns.unwrap_or(0).saturating_sub(seen.start_ns) as f64 / 1e9;
        rate += Rate::of(report.received, duration_s, last_s);
    }
    let lost = 1.0 - arrived as f64 / (offered as f64).max(1.0);
    Ok(Attempt {
        offered_pps,
        received_pps: rate.arrived_pps,
        loss: lost.max(1.0 - rate.in_grace_pps / offered_pps - ROUNDING),
    })
}

#[cfg(test)]
mod tests {
    use super::{Rate, overload_s};

    #[test]
    fn grace_is_for_passing_and_not_for_the_figure() {
        // All of 1,000 frames, the last a twentieth after the schedule's end.
        let late = Rate::of(1_000, 1.0, 1.05);
        assert_eq!(late.in_grace_pps, 1_000.0);
        assert!((late.arrived_pps - 1_000.0 / 1.05).abs() < 1e-9);
        let early = Rate::of(1_000, 1.0, 0.999);
        assert_eq!(early, Rate { arrived_pps: 1_000.0, in_grace_pps: 1_000.0 });
    }

    #[test]
    fn the_load_is_looked_at_for_long_enough() {
        assert_eq!([0.1, 0.2, 0.5, 5.0].map(overload_s), [0.5, 0.6000000000000001, 1.0, 5.0]);
    }
}
