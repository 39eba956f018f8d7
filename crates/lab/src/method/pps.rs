//! Packets per second through the path: small frames at offered load, searched for the highest
//! rate without loss, then offered beyond it for what arrives at saturation.

use std::time::Duration;

use generator::method::{TrialInput, TrialOutput};
use generator::receiver::StreamReport;

use super::search::{
    Attempt, Found, LOSS_MAX, Path, Range, TimedPath, beyond_pps, received_resolution, search,
};
use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic};

/// Start of the search, frames a second.
const START_PPS: f64 = 2_000.0;

/// The most that is offered, frames a second: more than the sender can make, so that what it can
/// make shows as its own CPU and not as a round number.
const MAX_PPS: f64 = 1_000_000.0;

/// Frames that arrive this long after the end of the schedule are in time.
const GRACE_S: f64 = 0.05;

/// The saturating trial lasts at least so long, seconds: its load is looked at, and CPU time is
/// counted in steps of 10 ms.
const OVERLOAD_S: f64 = 1.0;

/// Trials of a search, about, and what each takes beside its duration, seconds.
const TRIALS: f64 = 10.0;
const TRIAL_EXTRA_S: f64 = 0.1;

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
    cost: |settings| {
        Duration::from_secs_f64(TRIALS * (settings.duration_s() + TRIAL_EXTRA_S) + OVERLOAD_S)
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let max_pps = MAX_PPS.min(traffic::line_pps(context).unwrap_or(f64::MAX));
    let mut last = None;
    let trial = |offered_pps: f64, duration_s: f64| -> Result<Attempt, TrialError> {
        let input = TrialInput {
            frame_size: context.settings.frame_size() as usize,
            rate_pps: offered_pps,
            duration_s,
            grace_s: GRACE_S,
        };
        let outcome = context.bed.one_way(&input, context.cancel)?;
        let attempt = attempt(&outcome);
        last = Some(outcome.report);
        Ok(attempt)
    };
    let mut path = TimedPath { trial, duration_s: context.settings.duration_s() };
    let (start_pps, known_pps) = (START_PPS, context.before);
    let range = Range { start_pps, max_pps, known_pps, loss_max: LOSS_MAX };
    let found = search(&mut path, range)?.if_any_arrived("pps")?;
    let offered = beyond_pps(found.most_received_pps, max_pps);
    path.duration_s = path.duration_s.max(OVERLOAD_S);
    let (beyond, load) = context.observe(|| path.trial(offered));
    let beyond = beyond?;
    let (values, resolutions) = figures(&found, &beyond);
    Ok(Trial {
        values,
        tool: "Weir's open-loop generator".into(),
        load,
        // The search offers as much as goes: its own offer is never the limit.
        resolutions,
        raw: serde_json::json!({
            "frame_bytes": context.settings.frame_size() as usize,
            "search": found.attempts.iter().map(json).collect::<Vec<_>>(),
            "saturation": json(&beyond),
            "overloaded_delay_us_p50": last.and_then(|report| report.delay_us(0.5)),
        }),
        ..Trial::default()
    })
}

/// The figures of a search and of the trial beyond it, and what they leave open.
pub(super) fn figures(found: &Found, beyond: &Attempt) -> (Values, Vec<Resolution>) {
    let saturated_pps = found.most_received_pps.max(beyond.received_pps);
    let (low, high) = received_resolution(saturated_pps);
    let mut resolutions = vec![Resolution::new("pps_saturated", low, high)];
    let carried = found.carried_resolution();
    resolutions.extend(carried.map(|(low, high)| Resolution::new("pps_carried", low, high)));
    (vec![("pps_saturated", saturated_pps), ("pps_carried", found.carried_pps)], resolutions)
}

pub(super) fn json(attempt: &Attempt) -> serde_json::Value {
    serde_json::json!({
        "offered_pps": attempt.offered_pps,
        "received_pps": attempt.received_pps,
        "loss": attempt.loss,
    })
}

/// The trial of a search.
pub(super) fn attempt(of: &TrialOutput) -> Attempt {
    let TrialInput { rate_pps: offered_pps, duration_s, .. } = of.input;
    let received_pps = received_pps(&of.report, of.start_ns, duration_s);
    Attempt { offered_pps, received_pps, loss: of.report.loss_ratio() }
}

/// Frames a second that arrived in time, over the trial or up to the last of them, whichever is
/// longer: what a queue delivers after the end of the schedule is no faster for it.
pub(super) fn received_pps(report: &StreamReport, start_ns: u64, duration_s: f64) -> f64 {
    let until_last_s = report.last_ns.unwrap_or(0).saturating_sub(start_ns) as f64 / 1e9;
    report.in_time() as f64 / duration_s.max(until_last_s)
}
