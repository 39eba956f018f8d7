//! Claims of a whole run: the number of measurements, the standing of the first switch, its
//! defeats.
//!
//! It must never leave out what failed.

use crate::present::number::{count, number, times};
use crate::present::section::{MetricTable, Section, TableRow, is_reference};
use crate::present::switch_ratio::{Standing, SwitchRatio};
use crate::results::{CellState, Results};
use stats::{CONFIDENCE, holm};

use super::{Claim, Tone, in_place};

/// Largest number of named rows in which the first switch is behind.
const BEHIND_MAX: usize = 5;

/// The sentences of a run.
pub(crate) fn overall(results: &Results, sections: &[Section<'_>]) -> Vec<Claim> {
    let mut claims = vec![extent(results)];
    claims.extend(standings(sections));
    claims.extend(behind(sections));
    claims.extend(warnings(results));
    claims
}

/// Failures, and trials that were left out.
pub(crate) fn warnings(results: &Results) -> Vec<Claim> {
    failures(results).into_iter().chain(stalls(results)).collect()
}

fn extent(results: &Results) -> Claim {
    let cells = || results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let measured = cells().filter(|cell| cell.state == CellState::Measured).count();
    let figures: usize = cells().map(|cell| cell.rows.len()).sum();
    let samples: usize = cells().flat_map(|cell| &cell.rows).map(|row| row.samples.len()).sum();
    let quick = if results.is_quick {
        " It was a quick run: short trials and few starts, for a look."
    } else {
        ""
    };
    Claim::new(Tone::Fact).strong(count(figures, "figure", "figures")).words(format!(
        " from {}, measured in {} of {} cells of {}.{quick}",
        count(samples, "sample", "samples"),
        number(measured as f64, 0),
        number(cells().count() as f64, 0),
        count(results.scenarios.len(), "scenario", "scenarios"),
    ))
}

/// A ratio with where it is from.
struct Placed<'t> {
    section: &'t Section<'t>,
    table: &'t MetricTable<'t>,
    row: &'t TableRow<'t>,
    other: &'t str,
    ratio: &'t SwitchRatio,
}

fn placed<'t>(sections: &'t [Section<'t>]) -> impl Iterator<Item = Placed<'t>> {
    sections.iter().flat_map(|section| {
        let tables = section.tables.iter().filter(|table| table.derived_from.is_none());
        tables.flat_map(move |table| {
            table.rows.iter().flat_map(move |row| {
                let others = section.duts.iter().zip(&row.ratios);
                others.filter(|(other, _)| !is_reference(other)).filter_map(
                    move |(other, ratio)| {
                        Some(Placed { section, table, row, other, ratio: ratio.as_ref()? })
                    },
                )
            })
        })
    })
}

/// In how many rows the first switch is ahead of and behind each other.
fn standings(sections: &[Section<'_>]) -> Vec<Claim> {
    let mut others: Vec<(&str, &str)> = Vec::new();
    for one in placed(sections) {
        let pair = (one.section.duts[0], one.other);
        if !others.contains(&pair) {
            others.push(pair);
        }
    }
    // Of many rows without a difference some have a clear one by chance: all are counted.
    let p_values: Vec<f64> = placed(sections).map(|one| one.ratio.p_value).collect();
    let together = holm(&p_values);
    let claim = |(first, other): (&str, &str)| {
        let is_of = |one: &Placed<'_>| (one.section.duts[0], one.other) == (first, other);
        let (mut ahead, mut behind, mut none) = (0_usize, 0_usize, 0_usize);
        for one in placed(sections).filter(is_of) {
            match one.ratio.standing {
                Standing::Better => ahead += 1,
                Standing::Worse => behind += 1,
                Standing::NoDifference => none += 1,
            }
        }
        let sure = placed(sections).zip(&together);
        let sure = sure.filter(|(one, p_value)| is_of(one) && **p_value <= 1.0 - CONFIDENCE);
        let sure = sure.count();
        let tone = match (ahead > 0, behind > 0) {
            (true, true) => Tone::Both,
            (true, false) => Tone::Ahead,
            (false, true) => Tone::Behind,
            (false, false) => Tone::NoDifference,
        };
        Claim::new(tone).words("Over all scenarios ").strong(first.to_owned()).words(format!(
            " is ahead of {other} in {}, behind in {}, and no difference is seen in {}; with all \
             comparisons counted {sure} of these differences hold.",
            count(ahead, "row", "rows"),
            number(behind as f64, 0),
            number(none as f64, 0)
        ))
    };
    others.into_iter().map(claim).collect()
}

/// The rows in which the first switch is farthest behind.
fn behind(sections: &[Section<'_>]) -> Option<Claim> {
    let mut rows: Vec<Placed<'_>> =
        placed(sections).filter(|one| one.ratio.standing == Standing::Worse).collect();
    rows.sort_by(|a, b| b.ratio.ratio.ln().abs().total_cmp(&a.ratio.ratio.ln().abs()));
    let first = rows.first()?.section.duts[0];
    let mut claim = Claim::new(Tone::Behind)
        .words("Where ")
        .strong(first.to_owned())
        .words(" is behind most: ");
    for (index, one) in rows.iter().take(BEHIND_MAX).enumerate() {
        let comma = if index == 0 { "" } else { "; " };
        claim = claim
            .words(format!("{comma}{} {} ", one.section.heading(), one.table.metric.label))
            .link(format!("{} times", times(one.ratio.ratio)), one.row)
            .words(format!(" that of {}{}", one.other, in_place(one.section, one.row)));
    }
    let more = rows.len().saturating_sub(BEHIND_MAX);
    let end = if more > 0 { format!("; and {more} more.") } else { ".".to_owned() };
    Some(claim.words(end))
}

fn failures(results: &Results) -> Option<Claim> {
    let [mut failed, mut missing, mut skipped, mut unsupported, mut pending] = [0; 5];
    for cell in results.scenarios.iter().flat_map(|scenario| &scenario.cells) {
        match cell.state {
            CellState::Measured => {}
            CellState::Failed(_) => failed += 1,
            CellState::Missing(_) => missing += 1,
            CellState::Skipped(_) => skipped += 1,
            CellState::NotSupported(_) => unsupported += 1,
            CellState::Pending(_) => pending += 1,
        }
    }
    let words: Vec<String> = [
        (failed, "failed"),
        (missing, "needed a program that is missing here"),
        (skipped, "had no time left"),
        (unsupported, "ask for what the switch does not support"),
        (pending, "were not come to"),
    ]
    .into_iter()
    .filter(|(cells, _)| *cells > 0)
    .map(|(cells, word)| format!("{cells} {word}"))
    .collect();
    let tone = if failed > 0 { Tone::Caution } else { Tone::Fact };
    let claim = Claim::new(tone).words("Of the cells without figures ").words(words.join(", "));
    (!words.is_empty()).then(|| claim.words("; each says why in its place."))
}

fn stalls(results: &Results) -> Option<Claim> {
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let trials = || cells.clone().flat_map(|cell| &cell.trials);
    let again = trials().filter(|trial| trial.attempt > 0).count();
    let left_out = trials().filter(|trial| trial.error.is_some()).count();
    let longest = trials().map(|trial| trial.stall_ms).fold(0.0, f64::max);
    if again + left_out == 0 {
        return None;
    }
    Some(Claim::new(Tone::Caution).strong(count(left_out, "trial", "trials")).words(format!(
        " left out and named, {} made again; the longest stall of the machine was {} ms.",
        number(again as f64, 0),
        number(longest, 1)
    )))
}
