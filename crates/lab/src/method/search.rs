//! The search for the packet rate that a path carries.
//!
//! Offered load grows from a low start until a trial fails, then the rate is narrowed between the
//! last that passed and the first that failed: first at what came through the failed trial, and in
//! growing steps from there, then by halves. A rate that is known from an earlier search is where
//! it starts. A trial passes when at most [`Range::loss_max`] of the offered frames did not arrive
//! by the end of the schedule plus a short grace: a queue that only grows is no throughput, however
//! long it is. A trial that failed by a little is repeated before it counts, since a shared machine
//! stalls at times; the narrowing repeats one. Pure: the path is an argument.

use generator::method::{TrialInput, TrialOutput};
use generator::receiver::StreamReport;
use serde::Serialize;

use super::{Resolution, TrialError, Values};

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

/// A path that can be tried.
pub(super) trait Path {
    /// Error of a trial.
    type Error;

    /// Offers `offered_pps` for one trial.
    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, Self::Error>;
}

/// A path whose trials all take the same time.
pub(super) struct TimedPath<F> {
    pub(super) trial: F,
    pub(super) duration_s: f64,
}

impl<F: FnMut(f64, f64) -> Result<Attempt, TrialError>> Path for TimedPath<F> {
    type Error = TrialError;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, TrialError> {
        (self.trial)(offered_pps, self.duration_s)
    }
}

/// Outcome of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Attempt {
    /// Frames a second that were offered.
    pub(super) offered_pps: f64,
    /// Frames a second that arrived in time.
    pub(super) received_pps: f64,
    /// Share of the offered frames that did not arrive in time, 0 to 1.
    pub(super) loss: f64,
}

impl Attempt {
    /// Of a trial of the generator's.
    pub(super) fn of(trial: &TrialOutput) -> Self {
        let TrialInput { rate_pps: offered_pps, duration_s, .. } = trial.input;
        let received_pps = received_pps(&trial.report, trial.start_ns, duration_s);
        Self { offered_pps, received_pps, loss: trial.report.loss_ratio() }
    }
}

/// Frames a second that arrived in time, over the trial or up to the last of them, whichever is
/// longer: what a queue delivers after the end of the schedule is no faster for it.
pub(super) fn received_pps(report: &StreamReport, start_ns: u64, duration_s: f64) -> f64 {
    let until_last_s = report.last_ns.unwrap_or(0).saturating_sub(start_ns) as f64 / 1e9;
    report.in_time() as f64 / duration_s.max(until_last_s)
}

/// The bounds of the search, frames a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Start of the search.
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
    /// The rate carried and the most that arrived as these metrics, and their bounds: that of the
    /// most by the length of a trial, and of the rate carried from the arrivals at a rate that
    /// passed to the rate that failed. Nothing is known above the most that is offered.
    pub(super) fn figures(
        &self,
        carried: &'static str,
        most: &'static str,
    ) -> (Values, Vec<Resolution>) {
        let (carried_pps, most_pps) = (self.carried_pps, self.most_received_pps);
        let around =
            Resolution::new(most, most_pps * (1.0 - ROUNDING), most_pps * (1.0 + ROUNDING));
        let low = carried_pps * (1.0 - ROUNDING);
        let up_to_failed = self.failed_pps.map(|high| Resolution::new(carried, low, high));
        let resolutions = [around].into_iter().chain(up_to_failed).collect();
        (vec![(carried, carried_pps), (most, most_pps)], resolutions)
    }

    /// The rate carried, or, where no load passed, the most that came through.
    pub(super) fn rate_pps(&self) -> f64 {
        if self.carried_pps > 0.0 { self.carried_pps } else { self.most_received_pps }
    }

    /// The result, if anything came through at all.
    ///
    /// # Errors
    /// [`TrialError::Output`]: a path through which nothing comes has no rate, not the rate 0.
    pub(super) fn if_any_arrived(self, program: &'static str) -> Result<Self, TrialError> {
        if self.most_received_pps > 0.0 {
            return Ok(self);
        }
        let what = format!("no frame arrived in any of {} trials", self.attempts.len());
        Err(TrialError::Output { program, what })
    }
}

/// A load beyond that rate. With the port rate as the most, 2 % more than the line carries still
/// saturates it.
pub(super) fn beyond_pps(rate_pps: f64, max_pps: f64) -> f64 {
    (rate_pps * OVERLOAD).min(max_pps * LINE_MORE)
}

/// Searches `path` within `range`.
pub(super) fn search<P: Path>(path: &mut P, range: Range) -> Result<Found, P::Error> {
    let mut search = Search { path, loss_max: range.loss_max, attempts: Vec::new() };
    let mut pass_pps = 0.0_f64;
    let mut hint_pps = None;
    let mut fail_pps = None;
    let known = range.known_pps.filter(|known| *known > 0.0);
    let mut offered = known.map_or(range.start_pps, |known| known * KNOWN_START);
    let growth = if known.is_some() { KNOWN_GROWTH } else { GROWTH };
    offered = offered.min(range.max_pps);
    while fail_pps.is_none() {
        let mut repeats = 1;
        if search.passes(offered, &mut repeats)? {
            pass_pps = offered;
            if offered >= range.max_pps {
                break;
            }
            offered = (offered * growth).min(range.max_pps);
        } else {
            hint_pps = search.attempts.last().map(|attempt| attempt.received_pps);
            fail_pps = Some(offered);
        }
    }
    if let Some(fail) = &mut fail_pps {
        (pass_pps, *fail) = search.narrow(pass_pps, *fail, hint_pps)?;
    }
    let attempts = search.attempts;
    let passed = attempts.iter().filter(|attempt| attempt.offered_pps == pass_pps);
    let arrived_pps = passed.map(|attempt| attempt.received_pps).fold(0.0, f64::max);
    let carried_pps =
        if arrived_pps < pass_pps * (1.0 - ROUNDING) { arrived_pps } else { pass_pps };
    let most_received_pps = attempts.iter().map(|a| a.received_pps).fold(0.0, f64::max);
    Ok(Found { carried_pps, failed_pps: fail_pps, most_received_pps, attempts })
}

struct Search<'a, P> {
    path: &'a mut P,
    loss_max: f64,
    attempts: Vec<Attempt>,
}

impl<P: Path> Search<'_, P> {
    /// Whether `offered` passes, at the first try or at a repeat as long as there are some left.
    fn passes(&mut self, offered: f64, repeats: &mut usize) -> Result<bool, P::Error> {
        loop {
            let attempt = self.path.trial(offered)?;
            self.attempts.push(attempt);
            if attempt.loss <= self.loss_max {
                return Ok(true);
            }
            if *repeats == 0 || attempt.loss > CLEAR_LOSS {
                return Ok(false);
            }
            *repeats -= 1;
        }
    }

    /// The highest rate that passes between one that does and one that does not, and the lowest
    /// that does not.
    fn narrow(
        &mut self,
        mut pass_pps: f64,
        mut fail_pps: f64,
        hint_pps: Option<f64>,
    ) -> Result<(f64, f64), P::Error> {
        let (mut repeats, mut step, mut has_passed) = (1, STEP, false);
        let mut next = hint_pps;
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
            has_passed = self.passes(offered, &mut repeats)?;
            *(if has_passed { &mut pass_pps } else { &mut fail_pps }) = offered;
        }
        Ok((pass_pps, fail_pps))
    }
}

#[cfg(test)]
mod tests {
    use super::{Range, beyond_pps, search};
    use crate::method::mock::{path, perfect};
    use generator::testing::DeviceModel;

    const RANGE: Range =
        Range { start_pps: 500.0, max_pps: 200_000.0, known_pps: None, loss_max: super::LOSS_MAX };

    fn found(model: DeviceModel) -> super::Found {
        search(&mut path(model), RANGE).unwrap()
    }

    #[test]
    fn what_an_earlier_search_found_saves_trials_and_misleads_none() {
        let capacity_pps = 48_000.0;
        let from = |known_pps| {
            let mut path = path(DeviceModel { capacity_pps, ..perfect() });
            search(&mut path, Range { known_pps, ..RANGE }).unwrap()
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
    fn a_deep_queue_is_no_throughput() {
        let found = found(DeviceModel::perfect(5_000.0, 1_000_000));
        assert!(found.carried_pps < 5_600.0, "{}", found.carried_pps);
    }

    #[test]
    fn what_exceeds_the_range_is_reported_as_its_end() {
        let found = found(DeviceModel { capacity_pps: 1e9, ..perfect() });
        assert_eq!(found.carried_pps, RANGE.max_pps);
    }

    #[test]
    fn a_lossy_path_carries_nothing_without_loss() {
        // A few frames in a row may all be among the half that arrives.
        let found = found(DeviceModel { loss: 0.5, ..perfect() });
        assert!(found.carried_pps < 10.0, "{}", found.carried_pps);
        assert!(found.most_received_pps > 0.0);
    }

    #[test]
    fn nothing_is_no_rate() {
        let found = found(DeviceModel { loss: 1.0, ..perfect() });
        let error = found.if_any_arrived("rate").unwrap_err().to_string();
        assert!(error.starts_with("rate: no frame arrived in any of"), "{error}");
    }

    #[test]
    fn a_slow_line_has_a_load_beyond_it() {
        // A line of 120 frames a second is slower than where the search starts.
        let range = Range { max_pps: 120.0, ..RANGE };
        let found = search(&mut path(perfect()), range).unwrap();
        assert_eq!(found.carried_pps, 120.0);
        assert!((beyond_pps(found.carried_pps, range.max_pps) - 122.4).abs() < 1e-9);
        assert!((beyond_pps(50.0, range.max_pps) - 55.0).abs() < 1e-9);
    }

    #[test]
    fn delay_does_not_count_as_loss() {
        let found = found(DeviceModel { delay_ns: 10_000_000, ..perfect() });
        assert!(found.carried_pps > 90_000.0, "{}", found.carried_pps);
    }
}
