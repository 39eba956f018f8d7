//! MLRsearch: the rates that belong to several loss ratios, found in one search with fewer and
//! shorter trials than a binary search for each (draft-ietf-bmwg-mlrsearch).
//!
//! Words are the draft's: a search goal, its loss ratio and exceed ratio, relevant lower and upper
//! bound, conditional throughput. A load is a bound when no further trials could make it anything
//! else; [`classify()`] has the rule. Each goal is approached by coarser targets first, whose
//! bounds are the first loads of the next one. It must never call a load a bound that the goal's
//! rule does not, however it came to try it.
//!
//! NDR and PDR are goals of loss ratio 0 and, by convention, 0.005.

mod classify;
mod select;

use serde::{Deserialize, Serialize};

use super::throughput::sustained_pps;
use super::{Estimate, Measurer, MethodError, TrialInput, TrialOutput, TrialRow};

pub use classify::{LoadClass, LoadTrial, classify, conditional_throughput};

use select::{Selection, select};

/// One of the questions of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchGoal {
    /// Share of the frames that a trial may lose.
    pub loss_ratio: f64,
    /// Share of the time of all trials of a load that may belong to trials which lost more.
    pub exceed_ratio: f64,
    /// The search ends when the bounds are so near, relative to the upper one.
    pub relative_width: f64,
    /// Duration of the first trials, seconds.
    pub initial_trial_s: f64,
    /// Duration of a full-length trial, seconds.
    pub final_trial_s: f64,
    /// Sum of the durations of full-length trials that makes a load a bound, seconds.
    pub duration_sum_s: f64,
}

impl SearchGoal {
    /// Loss ratio 0 (non-drop rate), with the other values as FD.io's CSIT has them.
    #[must_use]
    pub fn ndr() -> Self {
        Self {
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            relative_width: 0.005,
            initial_trial_s: 1.0,
            final_trial_s: 1.0,
            duration_sum_s: 21.0,
        }
    }

    /// Loss ratio 0.005 (partial drop rate), the rest as [`SearchGoal::ndr`].
    #[must_use]
    pub fn pdr() -> Self {
        Self { loss_ratio: 0.005, ..Self::ndr() }
    }

    /// The goal under which a search finds the throughput of RFC 2544.
    #[must_use]
    pub fn rfc2544() -> Self {
        Self { exceed_ratio: 0.0, final_trial_s: 60.0, duration_sum_s: 60.0, ..Self::ndr() }
    }

    /// This goal with all durations multiplied by `factor`.
    #[must_use]
    pub fn with_durations_times(self, factor: f64) -> Self {
        Self {
            initial_trial_s: self.initial_trial_s * factor,
            final_trial_s: self.final_trial_s * factor,
            duration_sum_s: self.duration_sum_s * factor,
            ..self
        }
    }

    fn is_sensible(&self) -> bool {
        let below_one = |value: f64| (0.0..1.0).contains(&value);
        below_one(self.loss_ratio)
            && below_one(self.exceed_ratio)
            && below_one(self.relative_width)
            && self.relative_width > 1e-6
            && self.initial_trial_s > 0.0
            && self.final_trial_s >= self.initial_trial_s
            && self.duration_sum_s >= self.final_trial_s
            && self.duration_sum_s.is_finite()
    }

    /// The goal and what is searched before it: from coarse to fine.
    fn targets(&self) -> [Self; 3] {
        let between = |low: f64, high: f64| (low * high).sqrt();
        let width = |factor: f64| (self.relative_width * factor).min(0.5);
        let first = Self {
            relative_width: width(4.0),
            final_trial_s: self.initial_trial_s,
            duration_sum_s: self.initial_trial_s,
            ..*self
        };
        let second = Self {
            relative_width: width(2.0),
            final_trial_s: between(self.initial_trial_s, self.final_trial_s),
            duration_sum_s: between(self.initial_trial_s, self.duration_sum_s),
            ..*self
        };
        [first, second, *self]
    }
}

/// Goals and range of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MlrsearchOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// The lowest rate, frames a second.
    pub min_pps: f64,
    /// The highest rate, frames a second: usually that of the line.
    pub max_pps: f64,
    /// Frames that arrive later than this after the end of a trial count as lost, seconds.
    pub grace_s: f64,
    /// The goals, in the order in which they are searched. The strictest first shares the most
    /// trials.
    pub goals: Vec<SearchGoal>,
    /// The search gives up after this number of trials.
    pub trials_max: usize,
}

impl MlrsearchOptions {
    /// A search for NDR and PDR.
    #[must_use]
    pub fn ndr_pdr(frame_size: usize, max_pps: f64) -> Self {
        Self {
            frame_size,
            min_pps: max_pps / 10_000.0,
            max_pps,
            grace_s: 0.05,
            goals: vec![SearchGoal::ndr(), SearchGoal::pdr()],
            trials_max: 10_000,
        }
    }
}

/// The result for a goal. Loads are frames a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: SearchGoal,
    /// The relevant lower bound; `None` when even the lowest rate was none.
    pub lower_bound_pps: Option<f64>,
    /// The relevant upper bound; `None` when even the highest rate was none.
    pub upper_bound_pps: Option<f64>,
    /// The conditional throughput: the lower bound less the loss of its trials.
    pub conditional_throughput_pps: Option<f64>,
    /// The rate of this goal: from what came out at the lower bound to the upper one.
    pub rate_pps: Estimate,
    /// Whether the bounds are as near as the goal wants (a regular result).
    pub is_regular: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MlrsearchReport {
    /// A result for each goal, in their order.
    pub results: Vec<GoalResult>,
    /// Whether the tester itself could not keep its schedule in some trial.
    pub is_tester_limited: bool,
    /// All trials, in order.
    pub trials: Vec<TrialRow>,
}

/// The trials of one load.
#[derive(Clone, Debug)]
struct TriedLoad {
    rate_pps: f64,
    trials: Vec<LoadTrial>,
    outputs: Vec<TrialOutput>,
}

/// Searches for the rates of all goals.
///
/// # Errors
/// [`MethodError`].
pub fn mlrsearch<M: Measurer>(
    measurer: &mut M,
    options: &MlrsearchOptions,
) -> Result<MlrsearchReport, MethodError<M::Error>> {
    if !(options.min_pps > 0.0 && options.min_pps < options.max_pps && options.max_pps.is_finite())
    {
        return Err(MethodError::Options("the lowest rate is above zero and below the highest"));
    }
    if options.goals.is_empty() || !options.goals.iter().all(SearchGoal::is_sensible) {
        return Err(MethodError::Options(
            "a goal's ratios are below 1, its width above 0, and its durations ascend",
        ));
    }
    let mut search = MlrSearch { measurer, options, loads: Vec::new(), trials: Vec::new() };
    for goal in &options.goals {
        let mut hint = (None, None);
        for target in goal.targets() {
            search.approach(&target, hint)?;
            hint = relevant_bounds(&search.loads, &target);
        }
    }
    let results = options.goals.iter().map(|goal| search.result(goal)).collect();
    let outputs = || search.loads.iter().flat_map(|load| &load.outputs);
    let is_tester_limited = outputs().any(|output| !output.is_tester_able());
    Ok(MlrsearchReport { results, is_tester_limited, trials: search.trials })
}

struct MlrSearch<'a, M> {
    measurer: &'a mut M,
    options: &'a MlrsearchOptions,
    /// In ascending order of their rates.
    loads: Vec<TriedLoad>,
    trials: Vec<TrialRow>,
}

impl<M: Measurer> MlrSearch<'_, M> {
    /// Measures until the bounds of `target` are near enough.
    fn approach(
        &mut self,
        target: &SearchGoal,
        hint: (Option<f64>, Option<f64>),
    ) -> Result<(), MethodError<M::Error>> {
        let mut expansion = 1.0;
        while self.trials.len() < self.options.trials_max {
            let bounds = relevant_bounds(&self.loads, target);
            let range = (self.options.min_pps, self.options.max_pps);
            let forwarding = bounds.1.and_then(|upper| self.forwarding_pps(upper));
            let next = match select(target, bounds, hint, range, forwarding, expansion) {
                Selection::Done => return Ok(()),
                Selection::Inside(rate_pps) => rate_pps,
                Selection::Outside(rate_pps) => {
                    expansion *= 4.0;
                    rate_pps
                }
            };
            self.measure(target, next)?;
        }
        Ok(())
    }

    /// Tries a load until it is a bound for `target`.
    fn measure(&mut self, target: &SearchGoal, rate_pps: f64) -> Result<(), MethodError<M::Error>> {
        let place = self.loads.binary_search_by(|load| load.rate_pps.total_cmp(&rate_pps));
        let place = place.unwrap_or_else(|place| {
            self.loads
                .insert(place, TriedLoad { rate_pps, trials: Vec::new(), outputs: Vec::new() });
            place
        });
        let input = TrialInput {
            frame_size: self.options.frame_size,
            rate_pps,
            duration_s: target.final_trial_s,
            grace_s: self.options.grace_s,
        };
        while classify(&self.loads[place].trials, target) == LoadClass::Undecided
            && self.trials.len() < self.options.trials_max
        {
            let output = self.measurer.trial(input)?;
            self.trials.push(output.row());
            let (duration_s, loss_ratio) = (input.duration_s, output.loss_ratio());
            let load = &mut self.loads[place];
            load.trials.push(LoadTrial { duration_s, loss_ratio });
            load.outputs.push(output);
        }
        Ok(())
    }

    fn load(&self, rate_pps: f64) -> Option<&TriedLoad> {
        self.loads.iter().find(|load| load.rate_pps == rate_pps)
    }

    /// The rate at which frames came out in the last trial of a load.
    fn forwarding_pps(&self, rate_pps: f64) -> Option<f64> {
        Some(self.load(rate_pps)?.outputs.last()?.forwarding_rate_pps())
    }

    fn result(&self, goal: &SearchGoal) -> GoalResult {
        let (lower, upper) = relevant_bounds(&self.loads, goal);
        let at_lower = lower.and_then(|rate_pps| self.load(rate_pps));
        let conditional =
            at_lower.map(|load| conditional_throughput(load.rate_pps, &load.trials, goal));
        let passing = at_lower.into_iter().flat_map(|load| &load.outputs).filter(|output| {
            output.input.duration_s >= goal.final_trial_s && output.loss_ratio() <= goal.loss_ratio
        });
        let low = passing.map(|output| sustained_pps(output, goal.loss_ratio)).reduce(f64::min);
        let value = conditional.unwrap_or(0.0);
        let near = |l: f64, u: f64| u - l <= goal.relative_width * u * (1.0 + 1e-9);
        GoalResult {
            goal: *goal,
            lower_bound_pps: lower,
            upper_bound_pps: upper,
            conditional_throughput_pps: conditional,
            rate_pps: Estimate {
                value,
                low: low.unwrap_or(0.0).min(value),
                high: upper.unwrap_or(f64::INFINITY),
            },
            is_regular: lower.zip(upper).is_some_and(|(lower, upper)| near(lower, upper)),
        }
    }
}

/// The relevant bounds: the lowest load that is an upper bound, and the highest below it that is a
/// lower one.
fn relevant_bounds(loads: &[TriedLoad], goal: &SearchGoal) -> (Option<f64>, Option<f64>) {
    let mut lower = None;
    for load in loads {
        match classify(&load.trials, goal) {
            LoadClass::Lower => lower = Some(load.rate_pps),
            LoadClass::Upper => return (lower, Some(load.rate_pps)),
            LoadClass::Undecided => {}
        }
    }
    (lower, None)
}

#[cfg(test)]
mod tests {
    use super::{MlrsearchOptions, SearchGoal, mlrsearch};
    use crate::method::MethodError;
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    fn options() -> MlrsearchOptions {
        let quick = |goal: SearchGoal| SearchGoal {
            relative_width: 0.01,
            ..goal.with_durations_times(0.05)
        };
        MlrsearchOptions {
            grace_s: 0.002,
            goals: vec![quick(SearchGoal::ndr()), quick(SearchGoal::pdr())],
            ..MlrsearchOptions::ndr_pdr(64, 100_000.0)
        }
    }

    #[test]
    fn ndr_and_pdr_of_a_known_device_are_found() {
        for capacity in [9_000.0, 50_000.0, 98_000.0] {
            let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(capacity, 8), 1);
            let found = mlrsearch(&mut measurer, &options()).unwrap();
            let [ndr, pdr] = &found.results[..] else { panic!("{found:?}") };
            assert!(ndr.is_regular && pdr.is_regular, "{ndr:?} {pdr:?}");
            assert!(ndr.rate_pps.contains(capacity), "{capacity}: {ndr:?}");
            assert!(pdr.rate_pps.contains(capacity / 0.995), "{capacity}: {pdr:?}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_results() {
        let mut fast = SimulatedMeasurer::new(DeviceModel::perfect(1e6, 8), 1);
        let found = mlrsearch(&mut fast, &options()).unwrap();
        assert_eq!(found.results[0].lower_bound_pps, Some(100_000.0));
        assert_eq!(found.results[0].upper_bound_pps, None);
        let model = DeviceModel { loss: 0.3, ..DeviceModel::perfect(1e6, 8) };
        let mut wide = options();
        wide.min_pps = 5_000.0;
        let found = mlrsearch(&mut SimulatedMeasurer::new(model, 1), &wide).unwrap();
        let ndr = &found.results[0];
        assert_eq!((ndr.lower_bound_pps, ndr.upper_bound_pps), (None, Some(5_000.0)));
        assert_eq!((ndr.rate_pps.value, ndr.is_regular), (0.0, false));
    }

    #[test]
    fn questions_without_sense_are_refused() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(1e6, 8), 1);
        let mut goalless = options();
        goalless.goals.clear();
        let mut upside_down = options();
        upside_down.min_pps = 1e9;
        let mut short = options();
        short.goals[0].duration_sum_s = 0.0;
        for wrong in [goalless, upside_down, short] {
            let refused = mlrsearch(&mut measurer, &wrong).unwrap_err();
            assert!(matches!(refused, MethodError::Options(_)));
        }
    }
}
