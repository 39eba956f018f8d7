//! Sentences against results whose truth is known.

use super::{findings, verdict};
use crate::limit::Part;
use crate::present::ratio::standing;
use crate::present::sample::{self, add, at, empty};
use crate::present::section::sections;
use crate::results::{Better, CellState, ResultRow, Results};

/// One scenario, one metric, two switches with these samples at each size.
fn rows(rows: &[(&str, &[f64], &[f64])]) -> Results {
    let mut results = sample::results();
    results.scenarios.drain(..1);
    results.scenarios.truncate(1);
    let scenario = &mut results.scenarios[0];
    scenario.axes.truncate(1);
    scenario.cells.clear();
    scenario.metrics.truncate(1);
    scenario.published.clear();
    for (size, weir, ovs) in rows {
        for (dut, samples) in [("weir", weir), ("ovs", ovs)] {
            let mut cell = empty(dut, &at(&[("size", size)]), CellState::Measured);
            add(&mut cell, "rate_pps", Some(Part::Switch), samples);
            scenario.cells.push(cell);
        }
    }
    results
}

fn two(weir: [&[f64]; 2], ovs: [&[f64]; 2]) -> Results {
    rows(&[("64", weir[0], ovs[0]), ("1518", weir[1], ovs[1])])
}

/// The sentences of the first scenario, and those of the run.
fn sentences(results: &Results) -> (Vec<String>, Vec<String>) {
    let sections = sections(results);
    (findings(&sections[0]), verdict(results, &sections))
}

const AHEAD: [f64; 5] = [200.0, 202.0, 201.0, 199.0, 200.5];
const EVEN: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.5];
const EVEN_TOO: [f64; 5] = [100.2, 99.5, 100.1, 99.9, 100.4];
const BEHIND: [f64; 5] = [50.0, 50.2, 49.9, 50.1, 49.8];

#[test]
fn a_switch_is_better_or_behind_where_it_is() {
    let (own, run) = sentences(&two([&AHEAD, &BEHIND], [&EVEN, &EVEN_TOO]));
    assert!(own[1].starts_with("Behind ovs most: Rate at frame size 1518 B, 0.50 ("), "{own:?}");
    assert_eq!(
        run[0],
        "In 1 headline figure beside ovs, weir is better in 1 (2.01 times as good), worse in 0, \
         and no difference is seen in 0; sure of these at 95 %, all counted (Holm): 1."
    );
    assert_eq!(run[1], "At their limits: weir switch in 1; ovs switch in 1.");
    let behind =
        "With 2 comparisons counted weir is behind in 1: E4 · Cached forwarding: Rate 0.50";
    assert!(run[2].starts_with(behind), "{run:?}");
}

#[test]
fn few_starts_do_not_show_that_there_is_no_effect() {
    for (starts, is_there) in [(2, false), (3, false), (4, true), (5, true)] {
        let (weir, other) = (&EVEN[..starts], &EVEN_TOO[..starts]);
        let (own, _) = sentences(&two([weir, other], [weir, other]));
        let none = "No effect of frame size on Rate of weir is seen.";
        assert_eq!(own.iter().any(|text| text == none), is_there, "{starts} starts: {own:?}");
    }
}

#[test]
fn cells_without_figures_have_their_reasons() {
    let mut results = two([&AHEAD, &AHEAD], [&EVEN, &EVEN]);
    let cores = "needs a core for each worker, and the machine has 2";
    let states = [
        CellState::Missing(cores.into()),
        CellState::Failed("it ended; its last lines:\nand its log".into()),
        CellState::Missing(cores.into()),
    ];
    for (cell, state) in results.scenarios[0].cells.iter_mut().zip(states) {
        cell.state = state;
    }
    let text = format!(
        "3 cells without figures: 1 failed (it ended), 2 missing here ({cores}); each says why in \
         its place."
    );
    assert_eq!(super::warnings(&results), std::slice::from_ref(&text));
    let (_, run) = sentences(&results);
    assert_eq!(run.last(), Some(&text));
}

/// Of many equal rows one is always behind most, and one in twenty by itself.
#[test]
fn the_most_behind_of_many_equal_rows_is_no_sentence() {
    let (mut alone, mut behind) = (0, 0);
    for seed in 0..40 {
        let mut random = testkit::Random::new(seed);
        let mut samples =
            || -> Vec<f64> { (0..6).map(|_| 1e5 * (0.05 * random.normal()).exp()).collect() };
        let sizes: Vec<String> = (0..40).map(|size| size.to_string()).collect();
        let all: Vec<_> = sizes.iter().map(|size| (size, samples(), samples())).collect();
        let all: Vec<_> = all.iter().map(|(s, a, b)| (s.as_str(), &a[..], &b[..])).collect();
        let results = rows(&all);
        let (own, run) = sentences(&results);
        let sections = sections(&results);
        let mut ratios = sections[0].tables[0].rows.iter().flat_map(|row| &row.ratios).flatten();
        alone += usize::from(ratios.any(|ratio| standing(ratio, Better::Higher).is_lt()));
        let is_claim = |text: &&String| text.starts_with("Behind") || text.contains("is behind in");
        let is_claim = |text: &&String| is_claim(text) && !text.ends_with("is behind in none.");
        behind += run.iter().chain(&own).filter(is_claim).count();
    }
    assert!(alone > 15 && behind <= 6, "{behind} of 40 runs, {alone} with a row by itself");
}

#[test]
fn nothing_is_claimed_of_noise_or_of_a_single_start() {
    for (weir, ovs) in [
        ([&EVEN[..], &EVEN[..]], [&EVEN_TOO[..], &EVEN_TOO[..]]),
        ([&AHEAD[..2], &AHEAD[..2]], [&[100.0, 140.0][..], &[100.0, 60.0][..]]),
    ] {
        let (own, run) = sentences(&two(weir, ovs));
        assert!(!own.iter().any(|text| text.starts_with("Behind")), "{own:?}");
        assert!(run[0].contains("better in 0, worse in 0, and no difference is seen in 1"));
    }
    // One pair has no ratio at all.
    let (own, run) = sentences(&two([&AHEAD[..1], &AHEAD[..1]], [&EVEN[..1], &EVEN[..1]]));
    let is_claim = |text: &String| text.contains("better") || text.contains("times");
    assert!(!own.iter().chain(&run).any(is_claim), "{own:?} {run:?}");
}

#[test]
fn figures_below_the_floor_or_a_clock_error_are_not_compared() {
    let spoils: [fn(&mut ResultRow); 2] =
        [|row| row.floor = Some(150.0), |row| row.clock_error = Some(1e6)];
    for spoil in spoils {
        let mut results = two([&AHEAD, &AHEAD], [&EVEN, &EVEN]);
        assert!(sentences(&results).1[0].contains("better in 1"));
        for cell in &mut results.scenarios[0].cells {
            spoil(&mut cell.rows[0]);
        }
        let (own, run) = sentences(&results);
        assert!(!own.iter().chain(&run).any(|text| text.contains("better")), "{own:?} {run:?}");
        let drawn = crate::present::terminal::render_everything(&results, 200);
        assert!(drawn.contains("below the floor") || drawn.contains("clock error of"), "{drawn}");
    }
}

#[test]
fn decisions_of_the_kernel_tier_are_shown_where_known() {
    let mut results = two([&AHEAD[..2], &AHEAD[..2]], [&EVEN[..2], &EVEN[..2]]);
    let found = |results: &Results| -> Option<String> {
        sentences(results).0.into_iter().find(|text| text.starts_with("The kernel tier"))
    };
    assert_eq!(found(&results), None);
    let first = results.scenarios[0].cells[0].dut.clone();
    for cell in results.scenarios[0].cells.iter_mut().filter(|cell| cell.dut == first) {
        cell.trials[0].tier_hits = Some(600);
        cell.trials[1].tier_hits = Some(0);
    }
    let text = found(&results).unwrap();
    assert_eq!(text, format!("The kernel tier decided: {first} 1,200 packets, in 2 of 4 trials."));
    results.scenarios[0].cells[0].trials[0].tier_error = Some("no socket".to_owned());
    let text = found(&results).unwrap();
    assert!(text.ends_with(&format!("; {first} does not say of 1 trial: no socket.")), "{text}");
}
