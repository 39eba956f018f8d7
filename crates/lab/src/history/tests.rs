//! Histories whose truth is known.

use testkit::Random;

use super::history;
use crate::present::sample;
use crate::results::{CellState, Results};

/// Runs a day apart, whose rate is around each of `rates`.
fn runs(seed: u64, rates: &[f64]) -> Vec<Results> {
    let mut random = Random::new(seed);
    let run = |(day, rate): (usize, &f64)| {
        let mut results = sample::results();
        results.scenarios.drain(..1);
        results.scenarios.truncate(1);
        results.started = format!("2026-11-{:02}T08:00:00Z", day + 1);
        let scenario = &mut results.scenarios[0];
        scenario.cells.clear();
        let at = sample::at(&[("size", "64")]);
        let mut cell = sample::empty("weir", &at, CellState::Measured);
        let value = |_| rate * (1.0 + 0.02 * (random.below(10_000) as f64 / 10_000.0 - 0.5));
        let samples: Vec<f64> = (0..5).map(value).collect();
        sample::add(&mut cell, "rate_pps", None, &samples);
        scenario.cells.push(cell);
        results
    };
    rates.iter().enumerate().map(run).collect()
}

#[test]
fn a_step_is_found_at_its_run_with_its_size_and_differences() {
    let mut rates = [100.0; 16];
    rates[9..].fill(80.0);
    let mut runs = runs(3, &rates);
    for run in &mut runs[9..] {
        run.weir = "0.2.0".into();
    }
    // The order of the files is not that of time.
    runs.reverse();
    let found = history(runs);
    assert_eq!((found.runs.len(), found.rows.len()), (16, 1));
    let [change] = found.rows[0].changes.as_slice() else { panic!("{:?}", found.rows[0].changes) };
    assert_eq!((change.run, change.since.as_str()), (9, "2026-11-10T08:00:00Z"));
    assert!((change.relative.unwrap() + 0.2).abs() < 0.01 && !change.is_better, "{change:?}");
    assert_eq!(change.differences, ["weir: 0.1.0 → 0.2.0"]);
}

#[test]
fn a_history_without_a_change_has_none() {
    // 60 histories at a significance of 1 % for the first split: more than 4 are 1 in 1,000.
    let changes = |seed| history(runs(seed, &[100.0; 14])).rows[0].changes.len();
    let wrong: usize = (0..60).map(changes).sum();
    assert!(wrong <= 4, "{wrong} changes where nothing changed");
}

#[test]
fn short_histories_say_how_many_runs_they_need() {
    let step = |n: usize| {
        let mut rates = vec![100.0; n];
        rates[n / 2..].fill(50.0);
        let found = history(runs(5, &rates));
        (found.runs_needed, found.rows[0].changes.len())
    };
    let (needed, _) = step(4);
    assert_eq!(needed, 11, "2 of 462 choices are 0.4 %, 2 of 252 are 0.8 %");
    assert_eq!(step(needed).1, 1, "so many runs show a step in their middle");
    assert_eq!(step(8).1, 0, "2 of 70 choices are 3 %");
}
