//! Rates found by one search: of the cell's own frames at the ports, one way or both ways at once,
//! and of small datagrams from host to host. Each has the highest rate at which next to nothing is
//! lost, and the most that came through at any rate.

use std::time::Duration;

use generator::method::Measurer as _;
use generator::method::on_ports::TrialPorts;
use generator::session::Waiting;
use stats::Observed;

use super::search::{Attempt, Found, LOSS_MAX, Range, beyond_pps, received_pps, search};
use super::{Method, MethodContext, Metric, Trial, TrialError, Values, traffic};
use crate::ceilings::frame_line_bits;
use crate::settings::Settings;

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

/// Bounds of a search, up to the line rate where there is one; a later start begins at the result
/// of the one before.
pub(super) fn range(
    context: &MethodContext<'_>,
    (start_pps, max_pps): (f64, f64),
    loss_max: f64,
) -> Range {
    let max_pps = traffic::line_pps(context).map_or(max_pps, |line_pps| max_pps.min(line_pps));
    Range { start_pps, max_pps, known_pps: context.before, loss_max }
}

fn datagrams(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let range = range(context, (DATAGRAMS_START_PPS, DATAGRAMS_MAX_PPS), LOSS_MAX);
    let most = |found: &Found| found.most_received_pps;
    let (found, rest) = measure("pps", context, (range, most), |offered_pps, duration_s| {
        let settings = context.settings;
        let input = traffic::input(settings, offered_pps, duration_s, DATAGRAMS_GRACE_S);
        Ok(Attempt::of(&context.bed.one_way(&input, context.cancel)?))
    })?;
    let mut values = found.figures("pps_carried", "pps_saturated");
    // The headline is what saturates.
    values.reverse();
    Ok(Trial { values, ..rest })
}

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let mut range = range(context, (START_PPS, MAX_PPS), settings.loss.unwrap_or(LOSS_MAX));
    let (found, rest) = if settings.is_bidirectional == Some(true) {
        // Half the sum leaves by each port.
        range.start_pps *= 2.0;
        range.max_pps *= 2.0;
        context.bed.with_ports(context.cancel.flag(), |ports| {
            measure("rate", context, (range, Found::rate_pps), |offered_pps, duration_s| {
                both_ways(ports, context, offered_pps, duration_s)
            })
        })?
    } else {
        let quiet = traffic::QUIET;
        let found = traffic::with_measurer(context, Waiting::Sleeping, quiet, |measurer| {
            measure("rate", context, (range, Found::rate_pps), |offered_pps, duration_s| {
                let grace_s = GRACE * duration_s;
                let input = traffic::input(settings, offered_pps, duration_s, grace_s);
                Ok(Attempt::of(&measurer.trial(input)?))
            })
        });
        found?.0
    };
    let values = figures(&found, frame_line_bits(settings.frame_size()));
    Ok(Trial { values, ..rest })
}

/// The figures of a search, for frames of that size in bits on the line.
pub(super) fn figures(found: &Found, line_bits: f64) -> Values {
    let mut values = found.figures("rate_pps", "rate_most_pps");
    let carried = values[0].1;
    let [value, low, high] =
        [carried.value, carried.low, carried.high].map(|pps| pps * line_bits / 1e6);
    values.push(("rate_mbps", Observed { value, low, high }));
    values
}

/// The search, then one longer trial beyond a rate that it found, and the load of every part in it:
/// between the short trials of a search nothing is sent, so that no part is busy all the while.
/// That search, and the trial without its values.
///
/// `trial` offers a rate in frames a second for a time in seconds.
pub(super) fn measure(
    program: &'static str,
    context: &MethodContext<'_>,
    (range, rate_pps): (Range, fn(&Found) -> f64),
    mut trial: impl FnMut(f64, f64) -> Result<Attempt, TrialError>,
) -> Result<(Found, Trial), TrialError> {
    let duration_s = context.settings.duration_s();
    let found = search(range, |offered_pps| trial(offered_pps, duration_s))?;
    let mut found = found.if_any_arrived(program)?;
    let offered_pps = beyond_pps(rate_pps(&found), range.max_pps);
    let (beyond, load) = context.observe(|| trial(offered_pps, overload_s(duration_s)));
    let beyond = beyond?;
    found.most_received_pps = found.most_received_pps.max(beyond.received_pps);
    let raw = serde_json::json!({
        "frame_bytes": context.settings.frame_size(),
        "search": found.attempts,
        "saturation": beyond,
    });
    Ok((found, Trial { tool: traffic::TOOL.into(), load, raw, ..Trial::default() }))
}

/// The duration of the trial whose load is looked at, from that of the others, seconds.
fn overload_s(duration_s: f64) -> f64 {
    duration_s.max((3.0 * duration_s).clamp(0.5, 1.0))
}

/// A trial with half the frames each way.
fn both_ways(
    ports: &mut dyn TrialPorts,
    context: &MethodContext<'_>,
    offered_pps: f64,
    duration_s: f64,
) -> Result<Attempt, TrialError> {
    let there = traffic::burst(context.settings, offered_pps / 2.0, duration_s);
    let loads = [(1, traffic::reversed(&there)), (0, there)];
    let (seen, start_ns) = traffic::exchange(ports, &loads, context, |_, _| Ok(()))?;
    let (mut offered, mut arrived) = (0, 0);
    // With the grace, which a sender that stood still for a moment has, and without it.
    let (mut in_grace_pps, mut arrived_pps) = (0.0, 0.0);
    for stream in &seen.streams {
        offered += stream.probes + stream.unsent;
        let Some(report) = traffic::report(stream, 1 - stream.port) else { continue };
        arrived += report.received;
        in_grace_pps += received_pps(report, start_ns, (duration_s, GRACE * duration_s));
        arrived_pps += received_pps(report, start_ns, (duration_s, 0.0));
    }
    let lost = 1.0 - arrived as f64 / (offered as f64).max(1.0);
    let loss = lost.max(1.0 - in_grace_pps / offered_pps - ROUNDING);
    Ok(Attempt { offered_pps, received_pps: arrived_pps, loss })
}

#[cfg(test)]
mod tests {
    use super::overload_s;

    #[test]
    fn the_load_is_looked_at_for_long_enough() {
        assert_eq!([0.1, 0.2, 0.5, 5.0].map(overload_s), [0.5, 0.6000000000000001, 1.0, 5.0]);
    }
}
