//! The search for the packet rate that a path carries.
//!
//! Offered load grows from a low start until a trial fails, then the rate is narrowed between the
//! last that passed and the first that failed: first at what came through the failed trial, and in
//! growing steps from there, then by halves. A rate that is known from an earlier search is where
//! it starts. A trial passes when at most [`Range::loss_max`] of the offered frames did not arrive
//! by the end of the schedule plus a short grace: a queue that only grows is no throughput, however
//! long it is. A trial that failed by a little is repeated before it counts, since a shared machine
//! stalls at times; the narrowing repeats one. Pure: the path is an argument.

use generator::method::TrialOutput;
use generator::receiver::StreamReport;
use serde::Serialize;
use stats::Observed;

use super::{TrialError, Values, within, wrong};

/// The share of frames that a passing trial may lose: one in a thousand.
pub(super) const LOSS_MAX: f64 = 0.001;

/// Narrowing ends when the bounds are this close.
const RESOLUTION: f64 = 0.05;

/// Error of an arrival rate, as a share: the schedule is short.
const ROUNDING: f64 = 0.01;

/// Narrowing ends after as many trials.
const NARROWING_MAX: usize = 8;

/// Ratio of each step of the growing load to the last.
const GROWTH: f64 = 4.0;

/// Start of a search whose earlier result is known, as a share of it, and the growth of its steps:
/// from below the result to beyond it, so that a repeat does not inherit an error of the one
/// before.
const KNOWN_START: f64 = 0.5;
const KNOWN_GROWTH: f64 = 2.0;

/// Bounds that are so close are halved; wider ones are approached from the nearer one.
const CLOSE: f64 = 0.25;

/// The first step from a bound, as a part of it, and the longest.
const STEP: f64 = 0.08;
const STEP_MAX: f64 = 0.8;

/// A trial that loses more than this share has failed without a repeat: no stall of the machine
/// that leaves the trial in the results loses so much of it.
const CLEAR_LOSS: f64 = 0.35;

/// Load of a saturating trial, in multiples of the rate carried and, at most, of the line.
const OVERLOAD: f64 = 1.1;
const LINE_MORE: f64 = 1.02;

/// Outcome of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Attempt {
    pub(super) offered_pps: f64,
    /// Frames a second that arrived in time.
    pub(super) received_pps: f64,
    /// Share of the offered frames that did not arrive in time, 0 to 1.
    pub(super) loss: f64,
}

impl Attempt {
    /// Of a trial of the generator's.
    pub(super) fn of(trial: &TrialOutput) -> Self {
        let TrialOutput { input, start_ns, report, .. } = trial;
        let received_pps = received_pps(report, *start_ns, (input.duration_s, 0.0));
        Self { offered_pps: input.rate_pps, received_pps, loss: report.loss_ratio() }
    }
}

/// Frames a second that arrived in time, over the trial or up to the last of them less a grace,
/// whichever is longer: what a queue delivers after the end of the schedule is no faster for it.
pub(super) fn received_pps(
    report: &StreamReport,
    start_ns: u64,
    (duration_s, grace_s): (f64, f64),
) -> f64 {
    let until_last_s = report.last_ns.unwrap_or(0).saturating_sub(start_ns) as f64 / 1e9;
    report.in_time() as f64 / duration_s.max(until_last_s - grace_s)
}

/// The bounds of the search, frames a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) start_pps: f64,
    /// The most that is offered: the port's line rate, or what the generator can send.
    pub(super) max_pps: f64,
    /// Result of an earlier search, where there was one.
    pub(super) known_pps: Option<f64>,
    /// The share of frames that a passing trial may lose.
    pub(super) loss_max: f64,
}

/// Result of the search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Rate of arrival at the highest offered load that passed; 0 when none did. The load itself
    /// where the rate is less than a hundredth less.
    pub(super) carried_pps: f64,
    /// The lowest rate that failed; none where the most that was offered passed.
    pub(super) failed_pps: Option<f64>,
    /// The most that arrived in any trial.
    pub(super) most_received_pps: f64,
    /// Every trial, in order.
    pub(super) attempts: Vec<Attempt>,
}

impl Found {
    /// The rate carried and the most that arrived as these metrics. The most is known by the length
    /// of a trial, and the rate carried from the arrivals at a rate that passed to the rate that
    /// failed. Nothing is known above the most that is offered.
    pub(super) fn figures(&self, carried: &'static str, most: &'static str) -> Values {
        let (value, most_pps) = (self.carried_pps, self.most_received_pps);
        let low = value * (1.0 - ROUNDING);
        let between = |high| Observed { value, low, high };
        let rate = self.failed_pps.map_or_else(|| value.into(), between);
        vec![(carried, rate), (most, within(most_pps, most_pps * ROUNDING))]
    }

    /// The rate carried, or, where no load passed, the most that came through.
    pub(super) fn rate_pps(&self) -> f64 {
        if self.carried_pps > 0.0 { self.carried_pps } else { self.most_received_pps }
    }

    /// An error where nothing came through: such a path has no rate, not the rate 0.
    pub(super) fn if_any_arrived(self, program: &'static str) -> Result<Self, TrialError> {
        if self.most_received_pps > 0.0 {
            return Ok(self);
        }
        let trials = self.attempts.len();
        Err(wrong(program, format!("no frame arrived in any of {trials} trials")))
    }
}

/// A load beyond that rate. With the port rate as the most, 2 % more than the line carries still
/// saturates it.
pub(super) fn beyond_pps(rate_pps: f64, max_pps: f64) -> f64 {
    (rate_pps * OVERLOAD).min(max_pps * LINE_MORE)
}

/// Searches within `range` by trials at a rate in frames a second.
pub(super) fn search<E>(
    range: Range,
    mut trial: impl FnMut(f64) -> Result<Attempt, E>,
) -> Result<Found, E> {
    let mut attempts = Vec::new();
    let passes = |attempt: &Attempt| attempt.loss <= range.loss_max;
    // The first attempt at a rate that passes, or the last of as many as there are repeats.
    let mut attempt = |offered: f64, repeats: &mut usize| -> Result<Attempt, E> {
        loop {
            let attempt = trial(offered)?;
            attempts.push(attempt);
            if passes(&attempt) || *repeats == 0 || attempt.loss > CLEAR_LOSS {
                return Ok(attempt);
            }
            *repeats -= 1;
        }
    };
    let known = range.known_pps.filter(|known| *known > 0.0);
    let (start, growth) =
        known.map_or((range.start_pps, GROWTH), |known| (known * KNOWN_START, KNOWN_GROWTH));
    let mut offered = start.min(range.max_pps);
    let (mut pass_pps, mut failed_pps) = (0.0, None);
    loop {
        let last = attempt(offered, &mut 1)?;
        if !passes(&last) {
            let between = (pass_pps, offered);
            let (pass, fail) = narrow(between, last.received_pps, |offered, repeats| {
                Ok(passes(&attempt(offered, repeats)?))
            })?;
            (pass_pps, failed_pps) = (pass, Some(fail));
            break;
        }
        pass_pps = offered;
        if offered >= range.max_pps {
            break;
        }
        offered = (offered * growth).min(range.max_pps);
    }
    let passed = attempts.iter().filter(|attempt| attempt.offered_pps == pass_pps);
    let arrived_pps = passed.map(|attempt| attempt.received_pps).fold(0.0, f64::max);
    let carried_pps =
        if arrived_pps < pass_pps * (1.0 - ROUNDING) { arrived_pps } else { pass_pps };
    let most_received_pps = attempts.iter().map(|one| one.received_pps).fold(0.0, f64::max);
    Ok(Found { carried_pps, failed_pps, most_received_pps, attempts })
}

/// The highest rate that passes between one that does and one that does not, and the lowest that
/// does not; `hint_pps` is the first that is tried.
fn narrow<E>(
    (mut pass_pps, mut fail_pps): (f64, f64),
    hint_pps: f64,
    mut passes: impl FnMut(f64, &mut usize) -> Result<bool, E>,
) -> Result<(f64, f64), E> {
    let (mut repeats, mut step, mut has_passed) = (1, STEP, false);
    let mut next = Some(hint_pps);
    for _ in 0..NARROWING_MAX {
        if fail_pps - pass_pps <= RESOLUTION * fail_pps {
            break;
        }
        let inside = |rate: &f64| *rate > pass_pps && *rate < fail_pps * (1.0 - STEP / 4.0);
        let halved = f64::midpoint(pass_pps, fail_pps);
        let offered = if let Some(hint) = next.take().filter(inside) {
            hint
        } else if fail_pps - pass_pps <= CLOSE * fail_pps {
            halved
        } else {
            let nearer = pass_pps * (1.0 + step);
            let rate = if has_passed { nearer } else { fail_pps * (1.0 - step) };
            step = (2.0 * step).min(STEP_MAX);
            if inside(&rate) { rate } else { halved }
        };
        has_passed = passes(offered, &mut repeats)?;
        *(if has_passed { &mut pass_pps } else { &mut fail_pps }) = offered;
    }
    Ok((pass_pps, fail_pps))
}

#[cfg(test)]
mod tests {
    use generator::method::{Measurer as _, TrialInput};
    use generator::receiver::StreamReport;
    use generator::testing::{DeviceModel, SimulatedMeasurer};

    use super::{Attempt, Found, Range, beyond_pps, received_pps, search};

    const RANGE: Range =
        Range { start_pps: 500.0, max_pps: 200_000.0, known_pps: None, loss_max: super::LOSS_MAX };

    /// 100,000 frames a second, no delay, a short queue, no loss.
    fn perfect() -> DeviceModel {
        DeviceModel::perfect(100_000.0, 64)
    }

    fn found(model: DeviceModel, range: Range) -> Found {
        let mut measurer = SimulatedMeasurer::new(model, 1);
        let trial = |rate_pps| {
            let input = TrialInput { frame_size: 64, rate_pps, duration_s: 1.0, grace_s: 0.05 };
            measurer.trial(input).map(|output| Attempt::of(&output))
        };
        search(range, trial).unwrap()
    }

    #[test]
    fn what_an_earlier_search_found_saves_trials_and_misleads_none() {
        let capacity_pps = 48_000.0;
        let from = |known_pps| {
            found(DeviceModel { capacity_pps, ..perfect() }, Range { known_pps, ..RANGE })
        };
        for known in [4_000.0, 24_000.0, 47_000.0, 52_000.0, 190_000.0] {
            let found = from(Some(known));
            let error = (found.carried_pps - capacity_pps).abs() / capacity_pps;
            assert!(error < 0.08, "{known}: {}", found.carried_pps);
        }
        let (first, second) = (from(None).attempts.len(), from(Some(47_000.0)).attempts.len());
        assert!(second < first, "{second} of {first}");
    }

    #[test]
    fn what_a_path_carries_is_found() {
        for (what, model, carried) in [
            ("a deep queue", DeviceModel::perfect(5_000.0, 1_000_000), 0.0..5_600.0),
            // A few frames in a row may all be among the half that arrives.
            ("half is lost", DeviceModel { loss: 0.5, ..perfect() }, 0.0..10.0),
            ("late", DeviceModel { delay_ns: 10_000_000, ..perfect() }, 90_000.0..110_000.0),
            ("beyond", DeviceModel { capacity_pps: 1e9, ..perfect() }, 200_000.0..200_000.1),
        ] {
            let found = found(model, RANGE);
            assert!(carried.contains(&found.carried_pps), "{what}: {}", found.carried_pps);
            assert!(found.most_received_pps > 0.0, "{what}");
        }
        let nothing = found(DeviceModel { loss: 1.0, ..perfect() }, RANGE);
        let error = nothing.if_any_arrived("rate").unwrap_err().to_string();
        assert!(error.starts_with("rate: no frame arrived in any of"), "{error}");
    }

    #[test]
    fn a_slow_line_has_a_load_beyond_it() {
        // A line of 120 frames a second is slower than where the search starts.
        let found = found(perfect(), Range { max_pps: 120.0, ..RANGE });
        assert_eq!(found.carried_pps, 120.0);
        assert!((beyond_pps(found.carried_pps, 120.0) - 122.4).abs() < 1e-9);
        assert!((beyond_pps(50.0, 120.0) - 55.0).abs() < 1e-9);
    }

    #[test]
    fn grace_is_for_passing_and_not_for_the_figure() {
        // All of 1,000 frames, the last a twentieth after the schedule's end.
        let report =
            |last_ns| StreamReport { received: 1_000, last_ns: Some(last_ns), ..<_>::default() };
        let late = report(1_050_000_000);
        assert_eq!(received_pps(&late, 0, (1.0, 0.1)), 1_000.0);
        assert!((received_pps(&late, 0, (1.0, 0.0)) - 1_000.0 / 1.05).abs() < 1e-9);
        assert_eq!(received_pps(&report(999_000_000), 0, (1.0, 0.0)), 1_000.0);
    }
}
