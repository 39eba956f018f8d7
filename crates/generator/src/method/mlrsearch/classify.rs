//! When a load is a bound for a goal, and what its conditional throughput is (the draft's load
//! classification).
//!
//! Pure functions of the trials of one load. They must never depend on the order of the trials.

use super::SearchGoal;

/// A trial of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTrial {
    /// Its duration, seconds.
    pub duration_s: f64,
    /// Its trial loss ratio.
    pub loss_ratio: f64,
}

/// The class of a load for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadClass {
    /// A lower bound, whatever further trials showed.
    Lower,
    /// An upper bound, whatever further trials showed.
    Upper,
    /// More trials decide.
    Undecided,
}

/// The class of a load with these trials.
///
/// Full-length trials count with their durations. Shorter trials that exceed the loss ratio count
/// as far as they are more than what short ones that do not exceed it make up for. Trials that are
/// missing for the duration sum may all turn out well, or all badly: when both give the same class,
/// it is certain.
#[must_use]
pub fn classify(trials: &[LoadTrial], goal: &SearchGoal) -> LoadClass {
    let sum = |is_full: bool, exceeds: bool| -> f64 {
        let counted = trials.iter().filter(|trial| {
            (trial.duration_s >= goal.final_trial_s) == is_full
                && (trial.loss_ratio > goal.loss_ratio) == exceeds
        });
        counted.map(|trial| trial.duration_s).sum()
    };
    let made_up = sum(false, false) * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let excess = sum(true, true) + (sum(false, true) - made_up).max(0.0);
    let good = sum(true, false);
    let whole = (good + excess).max(goal.duration_sum_s);
    let allowed = whole * goal.exceed_ratio;
    // Sums of durations such as 0.1 s are not exact.
    let slack = 1e-9 * whole;
    let at_best = excess <= allowed + slack;
    let at_worst = whole - good <= allowed + slack;
    match (at_best, at_worst) {
        (true, true) => LoadClass::Lower,
        (true, false) => LoadClass::Undecided,
        (false, true | false) => LoadClass::Upper,
    }
}

/// The conditional throughput of a load that is a lower bound, in frames a second: the load less
/// the highest loss ratio among the best of its full-length trials; the exceed
/// ratio gives the number of these.
#[must_use]
pub fn conditional_throughput(rate_pps: f64, trials: &[LoadTrial], goal: &SearchGoal) -> f64 {
    let is_full = |trial: &&LoadTrial| trial.duration_s >= goal.final_trial_s;
    let mut full: Vec<&LoadTrial> = trials.iter().filter(is_full).collect();
    full.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
    let total: f64 = full.iter().map(|trial| trial.duration_s).sum();
    let mut left = total.max(goal.duration_sum_s) * (1.0 - goal.exceed_ratio);
    let mut loss_ratio = 0.0;
    for trial in full {
        if left <= 1e-9 * total {
            break;
        }
        left -= trial.duration_s;
        loss_ratio = trial.loss_ratio;
    }
    // Trials that are missing could have lost everything.
    if left > 1e-9 * total { 0.0 } else { rate_pps * (1.0 - loss_ratio) }
}

#[cfg(test)]
mod tests {
    use super::{LoadClass, LoadTrial, classify, conditional_throughput};
    use crate::method::mlrsearch::SearchGoal;

    /// Three seconds in trials of one second, of which half may lose more than one percent.
    const GOAL: SearchGoal = SearchGoal {
        loss_ratio: 0.01,
        exceed_ratio: 0.5,
        relative_width: 0.01,
        initial_trial_s: 0.1,
        final_trial_s: 1.0,
        duration_sum_s: 3.0,
    };

    fn trials(list: &[(f64, f64)]) -> Vec<LoadTrial> {
        let trial = |(duration_s, loss_ratio): &(f64, f64)| LoadTrial {
            duration_s: *duration_s,
            loss_ratio: *loss_ratio,
        };
        list.iter().map(trial).collect()
    }

    #[test]
    fn a_load_is_a_bound_once_no_further_trial_can_change_it() {
        let class = |list: &[(f64, f64)]| classify(&trials(list), &GOAL);
        assert_eq!(class(&[]), LoadClass::Undecided);
        assert_eq!(class(&[(1.0, 0.0)]), LoadClass::Undecided);
        assert_eq!(class(&[(1.0, 0.0), (1.0, 0.01)]), LoadClass::Lower);
        assert_eq!(class(&[(1.0, 0.0), (1.0, 0.02)]), LoadClass::Undecided);
        assert_eq!(class(&[(1.0, 0.02), (1.0, 0.02)]), LoadClass::Upper);
    }

    #[test]
    fn short_trials_count_only_as_far_as_they_are_bad() {
        let class = |list: &[(f64, f64)]| classify(&trials(list), &GOAL);
        assert_eq!(class(&[(0.5, 0.0); 9]), LoadClass::Undecided);
        assert_eq!(class(&[(0.5, 0.5); 4]), LoadClass::Upper);
        assert_eq!(class(&[(0.5, 0.5), (0.5, 0.5), (0.5, 0.0), (0.5, 0.5)]), LoadClass::Undecided);
    }

    #[test]
    fn with_no_exceed_ratio_one_bad_trial_decides() {
        let strict = SearchGoal { exceed_ratio: 0.0, ..GOAL };
        assert_eq!(classify(&trials(&[(1.0, 0.0), (1.0, 0.02)]), &strict), LoadClass::Upper);
        assert_eq!(classify(&trials(&[(1.0, 0.0); 2]), &strict), LoadClass::Undecided);
        assert_eq!(classify(&trials(&[(1.0, 0.0); 3]), &strict), LoadClass::Lower);
    }

    #[test]
    fn conditional_throughput_is_less_the_loss_that_counts() {
        let of = |list: &[(f64, f64)]| conditional_throughput(1000.0, &trials(list), &GOAL);
        assert!((of(&[(1.0, 0.0), (1.0, 0.005)]) - 995.0).abs() < 1e-9);
        assert!((of(&[(1.0, 0.9), (1.0, 0.0), (1.0, 0.002)]) - 998.0).abs() < 1e-9);
        assert_eq!(of(&[(1.0, 0.0)]), 0.0);
    }
}
