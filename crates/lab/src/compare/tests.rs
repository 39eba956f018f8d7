//! Comparisons of runs whose truth is known.

use testkit::Random;

use super::{RowVerdict, compare, differences};
use crate::present::sample;
use crate::results::Better;
use crate::results::{CellState, Results};

/// A run of one scenario with `rows` points, each of `samples` samples around 100.
fn run(seed: u64, rows: usize, samples: usize, factor: f64) -> Results {
    let mut random = Random::new(seed);
    let mut results = sample::results();
    results.scenarios.drain(..1);
    results.scenarios.truncate(1);
    let scenario = &mut results.scenarios[0];
    scenario.cells.clear();
    for row in 0..rows {
        let at = sample::at(&[("size", &row.to_string())]);
        let mut cell = sample::empty("weir", &at, CellState::Measured);
        let value = |_| factor * (100.0 + 2.0 * (random.below(10_000) as f64 / 10_000.0 - 0.5));
        let values: Vec<f64> = (0..samples).map(value).collect();
        sample::add(&mut cell, "rate_pps", None, &values);
        scenario.cells.push(cell);
    }
    results
}

#[test]
fn a_change_is_found_with_its_size() {
    let found = compare(&run(1, 1, 8, 1.0), &run(2, 1, 8, 1.1));
    let row = &found.rows[0];
    assert_eq!(row.verdict, RowVerdict::Better);
    let (low, high) = row.interval.unwrap();
    assert!(low < 1.1 && 1.1 < high && low > 1.08 && high < 1.12, "{row:?}");
    assert!(!found.is_worse());
    let back = compare(&run(2, 1, 8, 1.1), &run(1, 1, 8, 1.0));
    assert_eq!((back.rows[0].verdict, back.is_worse()), (RowVerdict::Worse, true));
}

#[test]
fn what_is_less_of_a_delay_is_better() {
    let mut runs = [run(1, 1, 8, 1.0), run(2, 1, 8, 0.9)];
    for run in &mut runs {
        run.scenarios[0].metrics[0].better = Better::Lower;
    }
    assert_eq!(compare(&runs[0], &runs[1]).rows[0].verdict, RowVerdict::Better);
}

#[test]
fn runs_of_one_truth_show_no_change_together() {
    // 40 comparisons of 50 rows: at 5 % for each comparison of runs at most 6 may be wrong.
    let mut wrong = 0;
    for seed in 0..40 {
        let found = compare(&run(seed, 50, 6, 1.0), &run(seed + 1_000, 50, 6, 1.0));
        wrong += found.count_together(RowVerdict::Better) + found.count_together(RowVerdict::Worse);
    }
    assert!(wrong <= 6, "{wrong}");
}

#[test]
fn few_starts_decide_what_they_can() {
    let one = compare(&run(1, 1, 1, 1.0), &run(2, 1, 1, 2.0));
    assert_eq!((one.rows[0].verdict, one.is_worse()), (RowVerdict::SingleStart, false));
    assert_eq!(one.rows[0].interval, None);
    // Three of each, half as much, hold with ten comparisons counted.
    let half = compare(&run(1, 10, 3, 1.0), &run(2, 10, 3, 0.5));
    assert_eq!(half.count_together(RowVerdict::Worse), 10);
    assert!(half.is_worse());
}

#[test]
fn what_does_not_hold_with_all_rows_counted_is_so_by_itself() {
    let (first, mut second) = (run(1, 60, 5, 1.0), run(2, 60, 5, 1.0));
    for sample in &mut second.scenarios[0].cells[0].rows[0].samples {
        *sample *= 0.972;
    }
    let found = compare(&first, &second);
    assert_eq!((found.rows[0].verdict, found.is_worse()), (RowVerdict::Worse, false));
}

#[test]
fn counts_of_zero_are_compared_by_their_difference() {
    let mut runs = [run(1, 1, 8, 1.0), run(2, 1, 8, 1.0)];
    for (run, value) in runs.iter_mut().zip([0.0, 5.0]) {
        let row = &mut run.scenarios[0].cells[0].rows[0];
        row.samples = vec![value; 8];
    }
    let row = &compare(&runs[0], &runs[1]).rows[0];
    assert_eq!((row.ratio, row.shift, row.verdict), (None, 5.0, RowVerdict::Better));
    // The median is no less; three of the eight pairs are, and the interval is that of their mean.
    runs[1].scenarios[0].cells[0].rows[0].samples = [0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0].into();
    let some = &compare(&runs[0], &runs[1]).rows[0];
    let (low, high) = some.interval.unwrap();
    assert!(some.shift == 3.0 && low < 3.0 && 3.0 < high, "{some:?}");
    let same = &compare(&runs[0], &runs[0]).rows[0];
    assert_eq!((same.shift, same.verdict), (0.0, RowVerdict::NoChange));
}

/// A search that stops at steps of a tenth finds equal figures on either side of a step.
#[test]
fn a_difference_within_the_resolution_is_no_change() {
    let found = |resolution: &dyn Fn(f64) -> Option<(f64, f64)>| {
        let mut runs = [run(1, 1, 8, 1.0), run(2, 1, 8, 1.0)];
        for (run, value) in runs.iter_mut().zip([100.0, 110.0]) {
            let row = &mut run.scenarios[0].cells[0].rows[0];
            row.samples = (0..8).map(|n| value + 0.01 * f64::from(n)).collect();
            row.resolutions = row.samples.iter().filter_map(|one| resolution(*one)).collect();
        }
        let row = compare(&runs[0], &runs[1]).rows.remove(0);
        (row.verdict, row.p_value)
    };
    assert_eq!(found(&|_| None).0, RowVerdict::Better);
    let (verdict, p_value) = found(&|value| Some((0.9 * value, value + 10.0)));
    assert_eq!((verdict, p_value), (RowVerdict::NoChange, 1.0));
    assert_eq!(found(&|value| Some((value - 1.0, value + 1.0))).0, RowVerdict::Better);
    // Down to nothing: the difference is what is compared.
    assert_eq!(found(&|value| Some((0.0, value))).0, RowVerdict::NoChange);
}

#[test]
fn rows_of_one_run_only_say_why() {
    let (first, mut second) = (run(1, 3, 5, 1.0), run(2, 2, 5, 1.0));
    let mut failed = first.scenarios[0].cells[2].clone();
    failed.rows.clear();
    failed.state = CellState::Failed("it died".into());
    second.scenarios[0].cells.push(failed);
    let found = compare(&first, &second);
    assert_eq!(found.rows.len(), 2);
    let only = "cached-forwarding, weir at size=2: rate_pps (failed in the other: it died)";
    assert_eq!((found.only_first, found.only_second), (vec![only.to_owned()], Vec::new()));
}

#[test]
fn other_conditions_are_named() {
    let (first, mut second) = (run(1, 1, 5, 1.0), run(1, 1, 5, 1.0));
    assert!(differences(&first, &second).is_empty());
    second.machine.kernel = "Linux 7.0".into();
    second.programs[0].version = "4.0".into();
    second.is_quick = false;
    second.scenarios[0].conditions.insert("seed".into(), "8".into());
    second.scenarios[0].source.push('#');
    assert_eq!(
        differences(&first, &second),
        [
            "kernel: Linux 6.1 → Linux 7.0",
            "quick: true → false",
            "ovs-vswitchd: ovs-vswitchd (Open vSwitch) 3.1.0 → 4.0",
            "cached-forwarding: the scenario's file is another",
            "cached-forwarding: seed: 7 → 8",
        ]
    );
}

/// Runs as real ones: starts are normal with this coefficient of variation.
fn noisy(seed: u64, rows: usize, samples: usize, factor: f64, variation: f64) -> Results {
    let (mut random, mut results) = (Random::new(seed), run(seed, rows, samples, 1.0));
    for cell in &mut results.scenarios[0].cells {
        for sample in &mut cell.rows[0].samples {
            *sample = factor * 100.0 * (1.0 + variation * random.normal()).max(0.01);
        }
    }
    results
}

/// As rates (2 to 9 %) and delays (30 %) of the lab vary on a busy virtual machine.
#[test]
fn runs_of_one_switch_agree_in_nearly_every_row() {
    for (samples, variation) in [(3, 0.0), (3, 0.02), (3, 0.3), (6, 0.09), (6, 0.3)] {
        let mut differ = 0;
        for seed in 0..100 {
            let second = noisy(seed + 1_000, 20, samples, 1.0, variation);
            let found = compare(&noisy(seed, 20, samples, 1.0, variation), &second);
            differ += found.count(RowVerdict::Better) + found.count(RowVerdict::Worse);
        }
        assert!(differ <= 120, "{samples}, variation {variation}: {differ} of 2000 rows differ");
    }
}

/// docs/lab-method.md has these figures.
#[test]
fn a_tenth_more_is_seen_as_often_as_the_page_says() {
    for (variation, least) in [(0.01, 100), (0.02, 99), (0.05, 70)] {
        let is_seen = |seed: &u64| {
            let second = noisy(seed + 1_000, 1, 6, 1.1, variation);
            let found = compare(&noisy(*seed, 1, 6, 1.0, variation), &second);
            found.rows[0].verdict == RowVerdict::Better
        };
        let seen = (0..100).filter(is_seen).count();
        println!("variation {variation}: a tenth more is seen in {seen} of 100");
        assert!(seen >= least, "variation {variation}: {seen} of 100");
    }
}
