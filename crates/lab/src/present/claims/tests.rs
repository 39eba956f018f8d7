//! Sentences against results whose truth is known.

use super::{Claim, ClaimPart, claims, overall};
use crate::limit::Part;
use crate::present::claims::Tone;
use crate::present::sample::{self, add, at, empty};
use crate::present::section::sections;
use crate::results::Better;
use crate::results::{CellState, Results};

/// One scenario, one metric, two switches with these samples at two points.
fn two(weir: [&[f64]; 2], ovs: [&[f64]; 2]) -> Results {
    let mut results = sample::results();
    results.scenarios.drain(..1);
    results.scenarios.truncate(1);
    let scenario = &mut results.scenarios[0];
    scenario.cells.clear();
    scenario.metrics.truncate(1);
    scenario.published.clear();
    for (index, size) in ["64", "1518"].iter().enumerate() {
        for (dut, samples) in [("weir", weir[index]), ("ovs", ovs[index])] {
            let mut cell = empty(dut, &at(&[("size", size)]), CellState::Measured);
            add(&mut cell, "rate_pps", Some(Part::Switch), samples);
            scenario.cells.push(cell);
        }
    }
    results
}

fn first_claim(results: &Results) -> Claim {
    let sections = sections(results);
    claims(&sections[0]).remove(0)
}

const AHEAD: [f64; 5] = [200.0, 202.0, 201.0, 199.0, 200.5];
const EVEN: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.5];
const EVEN_TOO: [f64; 5] = [100.2, 99.5, 100.1, 99.9, 100.4];
const BEHIND: [f64; 5] = [50.0, 50.2, 49.9, 50.1, 49.8];

#[test]
fn a_switch_is_ahead_where_it_is() {
    let claim = first_claim(&two([&AHEAD, &EVEN], [&EVEN, &EVEN_TOO]));
    assert_eq!(
        claim.text(),
        "Rate of weir is higher than that of ovs (ahead) at 1 of 2 points, \
         most with 2.01 times at frame size 64 B; no difference is seen at 1."
    );
    assert_eq!(claim.tone, Tone::Ahead);
}

#[test]
fn each_value_of_an_axis_has_its_speed_up_beside_the_first() {
    let mut results = two([&EVEN, &AHEAD], [&EVEN_TOO, &EVEN]);
    let scenario = &mut results.scenarios[0];
    let axis = scenario.axes.iter_mut().find(|axis| axis.name == "size").unwrap();
    (axis.label, axis.unit) = ("mode".to_owned(), String::new());
    axis.values = vec!["legacy".to_owned(), "OpenFlow".to_owned()];
    for cell in &mut scenario.cells {
        let value = if cell.at["size"] == "64" { "legacy" } else { "OpenFlow" };
        cell.at.insert("size".to_owned(), value.to_owned());
    }
    let texts = |results: &Results| -> Vec<String> {
        let all = claims(&sections(results)[0]).into_iter().map(|claim| claim.text());
        all.filter(|text| text.starts_with("Speed-up")).collect()
    };
    // Twice the rate; and of a time the half.
    let rate = texts(&results);
    assert_eq!(rate.len(), 1, "{rate:?}");
    assert!(rate[0].starts_with("Speed-up beside legacy of mode, "), "{}", rate[0]);
    assert!(rate[0].contains("weir 2.01 (1."), "{}", rate[0]);
    assert!(rate[0].contains("; ovs 1.00 (0.9"), "{}", rate[0]);
    let metric = &mut results.scenarios[0].metrics[0];
    (metric.unit, metric.better) = ("µs".to_owned(), Better::Lower);
    assert!(texts(&results)[0].contains("weir 0.50 (0.4"), "{:?}", texts(&results));
    // Nothing is faster by more copies of a frame.
    results.scenarios[0].metrics[0].unit = "frames".to_owned();
    assert_eq!(texts(&results), Vec::<String>::new());
}

#[test]
fn a_switch_is_behind_or_both_ahead_and_behind() {
    let both = first_claim(&two([&AHEAD, &BEHIND], [&EVEN, &EVEN_TOO]));
    assert_eq!(both.tone, Tone::Both);
    assert!(both.text().contains("it is lower (behind) at 1 of 2 points"), "{}", both.text());
    let behind = first_claim(&two([&BEHIND, &BEHIND], [&EVEN, &EVEN_TOO]));
    assert_eq!(behind.tone, Tone::Behind);
    assert!(behind.text().contains("at all 2 points"), "{}", behind.text());
    let results = two([&BEHIND, &BEHIND], [&EVEN, &EVEN_TOO]);
    let run = overall(&results, &sections(&results));
    let worst = run.iter().find(|claim| claim.text().contains("is behind most")).unwrap();
    assert!(worst.text().contains("0.50 times that of ovs"), "{}", worst.text());
}

#[test]
fn nothing_is_claimed_of_noise_or_of_a_single_start() {
    for (weir, ovs) in [
        ([&EVEN[..], &EVEN[..]], [&EVEN_TOO[..], &EVEN_TOO[..]]),
        ([&AHEAD[..2], &AHEAD[..2]], [&[100.0, 140.0][..], &[100.0, 60.0][..]]),
    ] {
        let claim = first_claim(&two(weir, ovs));
        assert_eq!(claim.tone, Tone::NoDifference, "{}", claim.text());
        let is_few = weir[0].len() == 2;
        assert_eq!(claim.text().contains("of 2 starts even"), is_few, "{}", claim.text());
    }
    // One pair has no ratio at all.
    let one = two([&AHEAD[..1], &AHEAD[..1]], [&EVEN[..1], &EVEN[..1]]);
    let sections = sections(&one);
    let texts: Vec<String> = claims(&sections[0]).iter().map(Claim::text).collect();
    assert!(
        !texts.iter().any(|text| text.contains("ahead") || text.contains("times")),
        "{texts:?}"
    );
}

#[test]
fn figures_below_the_floor_are_not_compared() {
    let mut results = two([&AHEAD, &AHEAD], [&EVEN, &EVEN]);
    for cell in &mut results.scenarios[0].cells {
        cell.rows[0].floor = Some(150.0);
    }
    let sections = sections(&results);
    let texts: Vec<String> = claims(&sections[0]).iter().map(Claim::text).collect();
    assert!(!texts.iter().any(|text| text.contains("ahead")), "{texts:?}");
    assert!(
        texts.iter().any(|text| text.starts_with("2 figures are below the lab's")),
        "{texts:?}"
    );
}

#[test]
fn figures_below_the_error_of_two_clocks_are_not_compared() {
    let mut results = two([&AHEAD[..1], &AHEAD[..1]], [&EVEN[..1], &EVEN[..1]]);
    for cell in &mut results.scenarios[0].cells {
        cell.rows[0].clock_error = Some(1e6);
    }
    let sections = sections(&results);
    let texts: Vec<String> = claims(&sections[0]).iter().map(Claim::text).collect();
    assert!(!texts.iter().any(|text| text.contains("ahead")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("error of the clocks")), "{texts:?}");
    let drawn = crate::present::terminal::render_everything(&results, 200);
    assert!(drawn.contains("clock error of 1000000.0 µs"), "{drawn}");
}

#[test]
fn decisions_of_the_kernel_tier_are_shown_where_known() {
    let mut results = two([&AHEAD[..2], &AHEAD[..2]], [&EVEN[..2], &EVEN[..2]]);
    let claim_of = |results: &Results| -> Option<String> {
        let sections = sections(results);
        let all = claims(&sections[0]).into_iter().map(|claim| claim.text());
        all.into_iter().find(|text| text.starts_with("The kernel tier"))
    };
    assert_eq!(claim_of(&results), None);
    let first = results.scenarios[0].cells[0].dut.clone();
    for cell in results.scenarios[0].cells.iter_mut().filter(|cell| cell.dut == first) {
        cell.trials[0].tier_hits = Some(600);
        cell.trials[1].tier_hits = Some(0);
    }
    let text = claim_of(&results).unwrap();
    assert_eq!(text, format!("The kernel tier decided: {first} 1,200 packets, in 2 of 4 trials."));
    results.scenarios[0].cells[0].trials[0].tier_error = Some("no socket".to_owned());
    let text = claim_of(&results).unwrap();
    assert!(text.ends_with(&format!("; {first} does not say of 1 trial: no socket.")), "{text}");
}

#[test]
fn each_link_leads_to_a_row() {
    for results in [sample::results(), sample::hostile()] {
        let sections = sections(&results);
        let rows: Vec<&str> = sections
            .iter()
            .flat_map(|section| &section.tables)
            .flat_map(|table| &table.rows)
            .map(|row| row.anchor.as_str())
            .collect();
        let mut all: Vec<Claim> = sections.iter().flat_map(claims).collect();
        all.extend(overall(&results, &sections));
        let links = all.iter().flat_map(|claim| &claim.parts).filter_map(|part| match part {
            ClaimPart::Link(_, anchor) => Some(anchor.as_str()),
            ClaimPart::Words(_) | ClaimPart::Strong(_) => None,
        });
        let links: Vec<&str> = links.collect();
        assert!(links.len() > 20 && links.iter().all(|link| rows.contains(link)));
        let mut unique = rows.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), rows.len(), "an anchor stands twice");
    }
}
