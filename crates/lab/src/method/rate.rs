//! Rates found by one search: of the cell's own frames at the ports, one way or both ways at once,
//! and of small datagrams from host to host. Each has the highest rate at which next to nothing is
//! lost, and the most that came through at any rate.

use std::ops::AddAssign;
use std::time::Duration;

use generator::method::on_ports::{SessionMeasurer, TrialPorts};
use generator::method::{Measurer as _, TrialInput};
use generator::session::Waiting;

use super::search::{Attempt, Found, LOSS_MAX, Path, Range, TimedPath, beyond_pps, search};
use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic};
use crate::ceilings::frame_line_bits;
use crate::load::Load;
use crate::settings::Settings;
use crate::testbed::method_error;

/// Start of the search, frames a second: of frames, and of datagrams.
const START_PPS: f64 = 20_000.0;
const DATAGRAMS_START_PPS: f64 = 2_000.0;

/// The most that is offered, frames a second: more than the sender can make, so that what it can
/// make shows as its own CPU and not as a round number.
const MAX_PPS: f64 = 4_000_000.0;
const DATAGRAMS_MAX_PPS: f64 = 1_000_000.0;

/// Frames that arrive this long after the end of the schedule are in time, as a share of it: a
/// sender or a switch that stood still for a moment catches up, and one that is too slow does not.
const GRACE: f64 = 0.1;
const DATAGRAMS_GRACE_S: f64 = 0.05;

/// A share of frames that is due to the schedule being a whole number of frames.
const ROUNDING: f64 = 0.001;

/// Trials of a search, about, and what each takes beside its duration, seconds.
const TRIALS: f64 = 9.0;
const TRIAL_EXTRA_S: f64 = 0.1;

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
    cost,
    run,
    ..Method::USUAL
};

pub(super) const PPS: Method = Method {
    id: "pps",
    label: "Packet rate",
    about: "Small UDP frames from host 1 to host 2: the highest offered load that passes with at \
            most 0.1 % loss, and the most that arrived in any trial (saturation)",
    metrics: &[
        Metric::higher("pps_saturated", "rate at saturation", "packets/s", 0),
        Metric::higher("pps_carried", "rate carried, loss up to 0.1 %", "packets/s", 0),
    ],
    saturates: true,
    cost,
    run: datagrams,
    ..Method::USUAL
};

/// About how long a search takes, with the trial after it.
pub(super) fn cost(settings: &Settings) -> Duration {
    let each_s = settings.duration_s() + TRIAL_EXTRA_S;
    let overload_s = overload_s(settings.duration_s()) + TRIAL_EXTRA_S;
    Duration::from_secs_f64(TRIALS * each_s + overload_s)
}

fn datagrams(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let range = Range {
        start_pps: DATAGRAMS_START_PPS,
        max_pps: DATAGRAMS_MAX_PPS.min(traffic::line_pps(context).unwrap_or(f64::MAX)),
        known_pps: context.before,
        loss_max: LOSS_MAX,
    };
    let most = |found: &Found| found.most_received_pps;
    let searched = measure("pps", context, (range, most), |offered_pps, duration_s| {
        let input = trial(context.settings, offered_pps, duration_s, DATAGRAMS_GRACE_S);
        context.bed.one_way(&input, context.cancel).map(|outcome| Attempt::of(&outcome))
    })?;
    let (mut values, resolutions) = searched.found.figures("pps_carried", "pps_saturated");
    // The headline is what saturates.
    values.reverse();
    Ok(Trial { values, resolutions, ..searched.trial(context.settings) })
}

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let line_pps = traffic::line_pps(context).unwrap_or(f64::MAX);
    let range = Range {
        start_pps: START_PPS.min(line_pps),
        max_pps: MAX_PPS.min(line_pps),
        known_pps: context.before,
        loss_max: settings.loss.unwrap_or(LOSS_MAX),
    };
    let is_bidirectional = settings.is_bidirectional == Some(true);
    let found = if is_bidirectional {
        context.bed.with_ports(context.cancel.flag(), |ports| {
            // Half the sum leaves by each port.
            let (start_pps, max_pps) = (2.0 * range.start_pps, 2.0 * range.max_pps);
            let range = Range { start_pps, max_pps, ..range };
            measure("rate", context, (range, Found::rate_pps), |offered_pps, duration_s| {
                both_ways(ports, context, offered_pps, duration_s)
            })
        })
    } else {
        let plan = traffic::plan(context, Waiting::Sleeping, traffic::QUIET);
        let found = context.bed.with_measurer(plan, |measurer| {
            measure("rate", context, (range, Found::rate_pps), |offered_pps, duration_s| {
                one_way(measurer, settings, offered_pps, duration_s)
            })
        });
        found.map(|(found, _)| found)
    };
    let searched = found?;
    let (values, resolutions) = figures(&searched.found, frame_line_bits(settings.frame_size()));
    Ok(Trial { values, resolutions, ..searched.trial(settings) })
}

/// The figures of a search with their bounds, for frames of that size in bits on the line.
pub(super) fn figures(found: &Found, line_bits: f64) -> (Values, Vec<Resolution>) {
    let mbps = |pps: f64| pps * line_bits / 1e6;
    let (mut values, mut resolutions) = found.figures("rate_pps", "rate_most_pps");
    values.push(("rate_mbps", mbps(found.carried_pps)));
    let carried = resolutions.iter().find(|of| of.metric == "rate_pps").copied();
    resolutions.extend(carried.map(|of| Resolution::new("rate_mbps", mbps(of.low), mbps(of.high))));
    (values, resolutions)
}

/// A search, the trial beyond what it found, and the load of every part in that.
pub(super) struct Searched {
    pub(super) found: Found,
    beyond: Attempt,
    load: Option<Load>,
}

impl Searched {
    /// All but the figures, with the raw data.
    pub(super) fn trial(self, settings: &Settings) -> Trial {
        let raw = serde_json::json!({
            "frame_bytes": settings.frame_size(),
            "search": self.found.attempts,
            "saturation": self.beyond,
        });
        Trial { tool: traffic::TOOL.into(), load: self.load, raw, ..Trial::default() }
    }
}

/// The search, then one longer trial beyond a rate that it found, and the load of every part in it:
/// between the short trials of a search nothing is sent, so that no part is busy all the while.
///
/// `trial` offers a rate in frames a second for a time in seconds.
pub(super) fn measure(
    program: &'static str,
    context: &MethodContext<'_>,
    (range, rate_pps): (Range, fn(&Found) -> f64),
    trial: impl FnMut(f64, f64) -> Result<Attempt, TrialError>,
) -> Result<Searched, TrialError> {
    let duration_s = context.settings.duration_s();
    let mut path = TimedPath { trial, duration_s };
    let mut found = search(&mut path, range)?.if_any_arrived(program)?;
    let offered_pps = beyond_pps(rate_pps(&found), range.max_pps);
    path.duration_s = overload_s(duration_s);
    let (beyond, load) = context.observe(|| path.trial(offered_pps));
    let beyond = beyond?;
    found.most_received_pps = found.most_received_pps.max(beyond.received_pps);
    Ok(Searched { found, beyond, load })
}

/// Trial of frames of the cell's size.
fn trial(settings: &Settings, rate_pps: f64, duration_s: f64, grace_s: f64) -> TrialInput {
    TrialInput { frame_size: settings.frame_size() as usize, rate_pps, duration_s, grace_s }
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
    measurer: &mut SessionMeasurer<'_>,
    settings: &Settings,
    offered_pps: f64,
    duration_s: f64,
) -> Result<Attempt, TrialError> {
    let input = trial(settings, offered_pps, duration_s, GRACE * duration_s);
    measurer.trial(input).map(|outcome| Attempt::of(&outcome)).map_err(method_error)
}

/// A trial with half the frames each way.
fn both_ways(
    ports: &mut dyn TrialPorts,
    context: &MethodContext<'_>,
    offered_pps: f64,
    duration_s: f64,
) -> Result<Attempt, TrialError> {
    let there = traffic::burst(context.settings, offered_pps / 2.0, duration_s);
    let loads = [(1, vec![traffic::reversed(&there)]), (0, vec![there])];
    let seen = traffic::exchange(ports, &loads, context, |_, _| Ok(()))?;
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
