//! Sentences made from the rows by rule: an effect of an axis, how the first switch stands beside
//! the others, where it is behind, what limited, and what a reader has to beware of.
//!
//! A sentence must never say more than its rows: of many rows some differ by chance, so that what
//! is picked from them is picked with all of them counted (Holm).

use std::cmp::{Ordering, Reverse};

use stats::{CONFIDENCE, Comparison, holm, range_confidence};

use super::grouped;
use super::number::{axis_value, capital, count, number, times};
use super::ratio::{is_reference, ratio, ratio_text};
use super::section::{MetricTable, Section, TableRow};
use super::verdict::{Compared, Line, headlines, lines, lines_of};
use crate::names::distinct;
use crate::results::Results;

/// Most rows that are named in which the first switch is behind.
const BEHIND_MAX: usize = 3;

/// Fewer pairs of starts cannot show that there is no effect.
const PAIRS_MIN: usize = 4;

/// At most two: the effect of the first axis, and where the first switch is behind the second most.
pub(crate) fn main_findings(section: &Section<'_>) -> Vec<String> {
    let tables = headlines(section);
    let effect = tables.first().and_then(|first| effect(section, first));
    let other = section.duts.iter().skip(1).find(|dut| !is_reference(dut));
    let behind = other.and_then(|name| {
        let rows = tables.iter().flat_map(|table| lines_of(section, table));
        let rows = rows.flat_map(Line::compared).filter(|one| one.other == *name);
        let rows: Vec<Compared<'_>> = rows.collect();
        losses(&rows).first().map(|one| {
            let (label, place) = (&one.line.row.metric.label, one.place());
            format!("Behind {name} most: {label}{place}, {} times.", ratio_text(one.ratio))
        })
    });
    effect.into_iter().chain(behind).collect()
}

/// All sentences of a scenario.
pub(crate) fn findings(section: &Section<'_>) -> Vec<String> {
    let mut sentences = main_findings(section);
    sentences.extend(section.tables.first().and_then(|table| {
        let parts = limits(&lines_of(section, table).collect::<Vec<_>>())?;
        Some(format!("What limited {}: {parts}.", table.metric.label))
    }));
    sentences.extend(kernel_tier(section));
    sentences
}

/// The sentences of a run: how the first switch stands in the headline figures, what limited them,
/// and where it is behind in all rows.
pub(crate) fn verdict(results: &Results, sections: &[Section<'_>]) -> Vec<String> {
    let lines = lines(sections);
    let mut sentences = standings(&lines);
    sentences.extend(limits(&lines).map(|parts| format!("At their limits: {parts}.")));
    sentences.extend(behind(sections));
    sentences.push(extent(results, &lines));
    sentences.extend(warnings(results));
    sentences
}

/// Failures, and trials that were left out.
pub(crate) fn warnings(results: &Results) -> Vec<String> {
    failures(results).into_iter().chain(stalls(results)).collect()
}

/// Whether each of the differences holds with all of them counted.
fn held<'r>(ratios: impl Iterator<Item = &'r Comparison>) -> Vec<bool> {
    let together = holm(&ratios.map(|ratio| ratio.p_value).collect::<Vec<_>>());
    together.into_iter().map(|p_value| p_value <= 1.0 - CONFIDENCE).collect()
}

/// The rows in which the first switch is behind with all counted, the worst first. What rounds to
/// no loss is none for a reader.
fn losses<'r, 't>(rows: &'r [Compared<'t>]) -> Vec<&'r Compared<'t>> {
    let held = held(rows.iter().map(|one| one.ratio));
    let is_loss = |one: &Compared<'_>| one.standing.is_lt() && times(one.ratio.estimate) != "1.00";
    let lost = rows.iter().zip(held).filter(|(one, held)| *held && is_loss(one));
    let mut lost: Vec<_> = lost.map(|(one, _)| one).collect();
    lost.sort_by(|a, b| a.gain.total_cmp(&b.gain));
    lost
}

/// The greatest effect of the first axis on the first switch, all else equal and all its values
/// counted, or that none is seen, where there are enough starts to see one.
fn effect(section: &Section<'_>, table: &MetricTable<'_>) -> Option<String> {
    let (axis, dut) = (section.axes.first()?, section.duts.first()?);
    let value = |row: &TableRow<'_>| row.at.get(&axis.name).cloned().unwrap_or_default();
    let base = table.rows.iter().find(|row| row.figure(0).is_some())?;
    // It differs from the other rows on this axis only.
    let is_alike = |row: &&TableRow<'_>| {
        let differing = row.at.iter().filter(|(name, value)| base.at.get(*name) != Some(*value));
        differing.map(|(name, _)| name).eq([&axis.name])
    };
    let found = table
        .rows
        .iter()
        .filter(is_alike)
        .filter_map(|row| Some((value(row), ratio(row.figure(0)?, base.figure(0)?)?)));
    let found: Vec<(String, Comparison)> = found.collect();
    let held = held(found.iter().map(|(_, ratio)| ratio));
    let seen = found.iter().zip(held).filter(|(_, held)| *held).map(|(one, _)| one);
    let size = |ratio: &Comparison| ratio.estimate.ln().abs();
    let (label, name) = (&table.metric.label, &axis.label);
    let Some((at, ratio)) = seen.max_by(|a, b| size(&a.1).total_cmp(&size(&b.1))) else {
        let pairs = found.iter().map(|(_, ratio)| ratio.pairs).min()?;
        let none = || format!("No effect of {name} on {label} of {dut} is seen.");
        return (pairs >= PAIRS_MIN).then(none);
    };
    let (label, at, base) = (capital(label), axis_value(at), axis_value(&value(base)));
    let ratio = ratio_text(ratio);
    Some(format!("{label} of {dut} with {name} {at} is {ratio} times that with {base}."))
}

/// `weir port in 3, all cores in 1; ovs switch in 8`: the parts at their limits.
fn limits(lines: &[Line<'_, '_>]) -> Option<String> {
    let duts = distinct(lines.iter().flat_map(|line| line.section.duts.iter().copied()));
    let of_dut = |dut: &&str| {
        let parts = lines.iter().filter_map(|line| Some(line.figure(dut)?.mark()?.1));
        let parts = by_number(parts).map(|(part, rows)| format!("{part} in {rows}"));
        let parts = parts.collect::<Vec<_>>().join(", ");
        (!parts.is_empty()).then(|| format!("{dut} {parts}"))
    };
    let found: Vec<String> = duts.iter().filter_map(of_dut).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// Each word once with the number of its places, the commonest first.
fn by_number<'w>(
    words: impl Iterator<Item = &'w str>,
) -> impl ExactSizeIterator<Item = (&'w str, usize)> {
    let mut places = grouped(words.map(|word| (word, ())));
    places.sort_by_key(|(_, places)| Reverse(places.len()));
    places.into_iter().map(|(word, places)| (word, places.len()))
}

/// Packets that a tier inside the kernel decided, of switches that may have one.
fn kernel_tier(section: &Section<'_>) -> Option<String> {
    let mut sentences = Vec::new();
    for dut in &section.duts {
        let cells = section.scenario.cells.iter().filter(|cell| cell.dut == *dut);
        let trials: Vec<_> =
            cells.flat_map(|cell| &cell.trials).filter(|trial| trial.error.is_none()).collect();
        let hits: Vec<u64> = trials.iter().filter_map(|trial| trial.tier_hits).collect();
        let errors: Vec<&str> =
            trials.iter().filter_map(|trial| trial.tier_error.as_deref()).collect();
        if !hits.is_empty() {
            let packets = number(hits.iter().sum::<u64>() as f64, 0);
            let in_use = number(hits.iter().filter(|hits| **hits > 0).count() as f64, 0);
            let of = count(hits.len(), "trial", "trials");
            sentences.push(format!("{dut} {packets} packets, in {in_use} of {of}"));
        }
        if let Some(error) = errors.first() {
            let of = count(errors.len(), "trial", "trials");
            sentences.push(format!("{dut} does not say of {of}: {error}"));
        }
    }
    (!sentences.is_empty()).then(|| format!("The kernel tier decided: {}.", sentences.join("; ")))
}

/// The first switch beside each of the others in the headline figures.
pub(crate) fn standings(lines: &[Line<'_, '_>]) -> Vec<String> {
    let ratios: Vec<Compared<'_>> = lines.iter().flat_map(|line| line.compared()).collect();
    let held = held(ratios.iter().map(|one| one.ratio));
    let pairs = ratios.iter().zip(held);
    let pairs = pairs.map(|(one, held)| ((one.line.section.duts[0], one.other), (one, held)));
    let sentence = |((first, other), own): ((&str, &str), Vec<(&Compared<'_>, bool)>)| {
        let of = |standing: Ordering| {
            let own = own.iter().filter(|(one, _)| one.standing == standing);
            let gains: Vec<f64> = own.map(|(one, _)| one.gain).collect();
            (gains.len(), from_to(&gains))
        };
        let (better, gains) = of(Ordering::Greater);
        let (worse, losses) = of(Ordering::Less);
        let (none, _) = of(Ordering::Equal);
        let sure = own.iter().filter(|(one, held)| *held && one.standing.is_ne()).count();
        format!(
            "In {} beside {other}, {first} is better in {better}{gains}, worse in {worse}{losses}, \
             and no difference is seen in {none}; sure of these at 95 %, all counted (Holm): \
             {sure}.",
            count(own.len(), "headline figure", "headline figures"),
        )
    };
    grouped(pairs).into_iter().map(sentence).collect()
}

/// ` (1.3 to 20 times as good)`, or one number; nothing of no gains.
fn from_to(gains: &[f64]) -> String {
    let [low, high] = [f64::min, f64::max].map(|end| gains.iter().copied().reduce(end).map(times));
    match (low, high) {
        (Some(low), Some(high)) if low != high => format!(" ({low} to {high} times as good)"),
        (Some(only), _) => format!(" ({only} times as good)"),
        (None, _) => String::new(),
    }
}

/// The rows of a run in which the first switch is farthest behind.
fn behind(sections: &[Section<'_>]) -> Option<String> {
    let rows = sections.iter().flat_map(|section| {
        let own = section.tables.iter().filter(|table| !table.is_derived);
        own.flat_map(move |table| lines_of(section, table)).flat_map(Line::compared)
    });
    let rows: Vec<Compared<'_>> = rows.collect();
    let first = rows.first()?.line.section.duts[0];
    let lost = losses(&rows);
    let all = count(rows.len(), "comparison", "comparisons");
    if lost.is_empty() {
        return Some(format!("With {all} counted {first} is behind in none."));
    }
    let one = |one: &&Compared<'_>| {
        let Line { section, row } = one.line;
        let (heading, ratio, place) = (section.heading(), ratio_text(one.ratio), one.place());
        format!("{heading}: {} {ratio} times that of {}{place}", row.metric.label, one.other)
    };
    let named: Vec<String> = lost.iter().take(BEHIND_MAX).map(one).collect();
    let more = lost.len().saturating_sub(BEHIND_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let (number, named) = (lost.len(), named.join("; "));
    Some(format!("With {all} counted {first} is behind in {number}: {named}{more}."))
}

fn extent(results: &Results, lines: &[Line<'_, '_>]) -> String {
    let cells = || results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let figures: usize = cells().map(|cell| cell.rows.len()).sum();
    let samples: usize = cells().flat_map(|cell| &cell.rows).map(|row| row.samples.len()).sum();
    let lines = lines.iter().filter(|line| !line.section.scenario.is_held);
    let starts = lines.flat_map(|line| line.row.figures()).map(|figure| figure.starts);
    let sure = starts.min().map_or_else(String::new, |least| {
        let held = (100.0 * range_confidence(least)).round();
        format!(" (of the fewest, {least}, {held} of 100 ranges hold the true median)")
    });
    let quick = if results.is_quick { " It was a quick run, for a look." } else { "" };
    format!(
        "A figure is the median of its starts with their range{sure}; {} from {} in all.{quick}",
        count(figures, "figure", "figures"),
        count(samples, "sample", "samples"),
    )
}

/// The cells without figures by kind, each with its commonest reason; those that failed first.
fn failures(results: &Results) -> Option<String> {
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let mut kinds = grouped(cells.filter_map(|cell| cell.state.absence()));
    kinds.sort_by_key(|(word, _)| *word != "failed");
    let all: usize = kinds.iter().map(|(_, reasons)| reasons.len()).sum();
    let kind = |(word, reasons): (&str, Vec<&str>)| {
        let cells = reasons.len();
        let lines = reasons.iter().filter_map(|reason| reason.lines().next());
        let lines = lines.map(|line| line.trim_end_matches("; its last lines:"));
        let mut reasons = by_number(lines);
        let first = reasons.next().map_or("", |(reason, _)| reason);
        let more = match reasons.len() {
            0 => String::new(),
            more => format!(", and {}", count(more, "other reason", "other reasons")),
        };
        format!("{cells} {word} ({first}{more})")
    };
    let kinds: Vec<String> = kinds.into_iter().map(kind).collect();
    (all > 0).then(|| {
        let cells = count(all, "cell without figures", "cells without figures");
        format!("{cells}: {}; each says why in its place.", kinds.join(", "))
    })
}

fn stalls(results: &Results) -> Option<String> {
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let trials = || cells.clone().flat_map(|cell| &cell.trials);
    let again = trials().filter(|trial| trial.attempt > 0).count();
    let left_out = trials().filter(|trial| trial.error.is_some()).count();
    let longest = trials().map(|trial| trial.stall_ms).fold(0.0, f64::max);
    (again + left_out > 0).then(|| {
        let left_out = count(left_out, "trial", "trials");
        let (again, longest) = (number(again as f64, 0), number(longest, 1));
        format!(
            "{left_out} left out and named, {again} made again; the longest stall of the machine \
             was {longest} ms."
        )
    })
}

#[cfg(test)]
mod tests;
