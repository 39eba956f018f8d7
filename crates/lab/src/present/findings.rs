//! Sentences made from the rows by rule: an effect of an axis, how the first switch stands beside
//! the others, where it is behind, what limited, and what a reader has to beware of.
//!
//! A sentence must never say more than its rows: of many rows some differ by chance, so that what
//! is picked from them is picked with all of them counted (Holm).

use stats::{CONFIDENCE, holm, range_confidence};

use super::entry::{ShownFigure, TableEntry};
use super::mark::mark;
use super::number::{axis_value, capital, count, number, times};
use super::section::{MetricTable, Section, TableRow, is_reference};
use super::switch_ratio::{Standing, SwitchRatio};
use super::verdict::{Line, headlines};
use crate::names::distinct;
use crate::results::{Better, CellState, Results};

/// Most rows that are named in which the first switch is behind.
const BEHIND_MAX: usize = 3;

/// At most two: the effect of the first axis, and where the first switch is behind the second most.
pub(crate) fn main_findings(section: &Section<'_>) -> Vec<String> {
    let tables = headlines(section);
    let effect = tables.first().and_then(|first| effect(section, first));
    let other = section.duts.iter().skip(1).find(|dut| !is_reference(dut));
    let behind = other.and_then(|name| {
        let rows = tables.iter().flat_map(|table| compared(section, table));
        let rows: Vec<Compared<'_>> = rows.filter(|one| one.other == *name).collect();
        losses(&rows).first().map(|one| {
            let (label, place, ratio) = (&one.table.metric.label, one.place(), one.ratio.text());
            format!("Behind {name} most: {label}{place}, {ratio} times.")
        })
    });
    effect.into_iter().chain(behind).collect()
}

/// All sentences of a scenario.
pub(crate) fn findings(section: &Section<'_>) -> Vec<String> {
    let mut sentences = main_findings(section);
    if let Some(table) = section.tables.first() {
        let figures = |dut: usize| table.rows.iter().filter_map(move |row| figure(row, dut));
        let by_dut = section.duts.iter().enumerate().map(|(dut, name)| (*name, figures(dut)));
        let label = &table.metric.label;
        sentences.extend(limits(by_dut).map(|parts| format!("What limited {label}: {parts}.")));
    }
    sentences.extend(kernel_tier(section));
    sentences
}

/// The sentences of a run: how the first switch stands in the headline figures, what limited them,
/// and where it is behind in all rows.
pub(crate) fn verdict(
    results: &Results,
    sections: &[Section<'_>],
    lines: &[Line<'_, '_>],
) -> Vec<String> {
    let mut sentences: Vec<String> = standings(lines);
    let duts = distinct(lines.iter().flat_map(|line| line.section.duts.iter().copied()));
    let figures = |dut: &'_ str| {
        let figures = lines.iter().filter_map(|line| line.entry(dut)?.figure());
        figures.collect::<Vec<_>>().into_iter()
    };
    let by_dut = duts.iter().map(|dut| (*dut, figures(dut)));
    sentences.extend(limits(by_dut).map(|parts| format!("At their limits: {parts}.")));
    sentences.extend(behind(sections));
    sentences.push(extent(results, lines));
    sentences.extend(warnings(results));
    sentences
}

/// Failures, and trials that were left out.
pub(crate) fn warnings(results: &Results) -> Vec<String> {
    failures(results).into_iter().chain(stalls(results)).collect()
}

/// A ratio with its place.
struct Compared<'t> {
    section: &'t Section<'t>,
    table: &'t MetricTable<'t>,
    row: &'t TableRow<'t>,
    other: &'t str,
    ratio: &'t SwitchRatio,
}

impl Compared<'_> {
    /// ` at frame size 64 B`, or nothing where there is one point.
    fn place(&self) -> String {
        let place = self.section.place(self.row.at);
        if place.is_empty() { place } else { format!(" at {place}") }
    }

    /// Above 1 the first switch is better.
    fn gain(&self) -> f64 {
        gain(self.ratio.ratio, self.table.metric.better)
    }
}

/// The ratios of a table, without those to the path without a switch.
fn compared<'t>(
    section: &'t Section<'t>,
    table: &'t MetricTable<'t>,
) -> impl Iterator<Item = Compared<'t>> {
    table.rows.iter().flat_map(move |row| Line { section, table, row }.compared())
}

/// Whether each of the differences holds with all of them counted.
fn held(ratios: &[&SwitchRatio]) -> Vec<bool> {
    let together = holm(&ratios.iter().map(|ratio| ratio.p_value).collect::<Vec<_>>());
    together.into_iter().map(|p_value| p_value <= 1.0 - CONFIDENCE).collect()
}

/// The rows in which the first switch is behind with all counted, the worst first. What rounds to
/// no loss is none for a reader.
fn losses<'r, 't>(rows: &'r [Compared<'t>]) -> Vec<&'r Compared<'t>> {
    let held = held(&rows.iter().map(|one| one.ratio).collect::<Vec<_>>());
    let is_loss = |one: &Compared<'_>| {
        one.ratio.standing == Standing::Worse && times(one.ratio.ratio) != "1.00"
    };
    let lost = rows.iter().zip(held).filter(|(one, held)| *held && is_loss(one));
    let mut lost: Vec<_> = lost.map(|(one, _)| one).collect();
    lost.sort_by(|a, b| a.gain().total_cmp(&b.gain()));
    lost
}

/// A ratio in words: above 1 the first is better.
fn gain(ratio: f64, better: Better) -> f64 {
    match better {
        Better::Higher => ratio,
        Better::Lower => 1.0 / ratio,
    }
}

/// `1.3 to 20`, or one number.
fn from_to(gains: impl Iterator<Item = f64> + Clone) -> Option<String> {
    let (low, high) = (gains.clone().reduce(f64::min)?, gains.reduce(f64::max)?);
    let (low, high) = (times(low), times(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// The greatest effect of the first axis on the first switch, all else equal and all its values
/// counted, or that none is seen.
fn effect(section: &Section<'_>, table: &MetricTable<'_>) -> Option<String> {
    let axis = section.axes.first()?;
    let dut = section.duts.first()?;
    let value = |row: &TableRow<'_>| row.at.get(&axis.name).cloned().unwrap_or_default();
    let base = table.rows.iter().find(|row| figure(row, 0).is_some())?;
    let ratio = |row: &&TableRow<'_>| {
        let ratio = SwitchRatio::new(figure(row, 0)?, figure(base, 0)?, Better::Higher)?;
        Some((value(row), ratio))
    };
    let beside = alike(table, base, &axis.name);
    let found: Vec<(String, SwitchRatio)> = beside.iter().filter_map(ratio).collect();
    let held = held(&found.iter().map(|(_, ratio)| ratio).collect::<Vec<_>>());
    let seen = found.iter().zip(held).filter(|(_, held)| *held).map(|(one, _)| one);
    let size = |ratio: &SwitchRatio| ratio.ratio.ln().abs();
    let (label, name) = (&table.metric.label, &axis.label);
    match seen.max_by(|a, b| size(&a.1).total_cmp(&size(&b.1))) {
        None if found.is_empty() => None,
        None => Some(format!("No effect of {name} on {label} of {dut} is seen.")),
        Some((at, ratio)) => Some(format!(
            "{} of {dut} with {name} {} is {} times that with {}.",
            capital(label),
            axis_value(at),
            ratio.text(),
            axis_value(&value(base))
        )),
    }
}

fn figure<'t>(row: &'t TableRow<'_>, dut: usize) -> Option<&'t ShownFigure<'t>> {
    row.entries.get(dut).and_then(TableEntry::figure)
}

/// The other rows that differ from one on an axis only.
fn alike<'t>(table: &'t MetricTable<'t>, base: &TableRow<'_>, axis: &str) -> Vec<&'t TableRow<'t>> {
    let is_alike = |row: &&TableRow<'_>| {
        let mut place = row.at.clone();
        if let Some(value) = base.at.get(axis) {
            place.insert(axis.to_owned(), value.clone());
        }
        row.anchor != base.anchor && place == *base.at
    };
    table.rows.iter().filter(is_alike).collect()
}

/// `weir port in 3, all cores in 1; ovs switch in 8`: the parts at their limits.
fn limits<'f>(
    by_dut: impl Iterator<Item = (&'f str, impl Iterator<Item = &'f ShownFigure<'f>>)>,
) -> Option<String> {
    let of_dut = |(dut, figures): (&str, _)| {
        let mut parts: Vec<(&str, usize)> = Vec::new();
        let limits = Iterator::filter_map(figures, |figure: &ShownFigure<'_>| figure.limit);
        for (_, words) in limits.filter_map(|limit| mark(limit.part)) {
            match parts.iter_mut().find(|(known, _)| *known == words) {
                Some((_, rows)) => *rows += 1,
                None => parts.push((words, 1)),
            }
        }
        parts.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        let parts: Vec<String> =
            parts.into_iter().map(|(words, rows)| format!("{words} in {rows}")).collect();
        (!parts.is_empty()).then(|| format!("{dut} {}", parts.join(", ")))
    };
    let found: Vec<String> = by_dut.filter_map(of_dut).collect();
    (!found.is_empty()).then(|| found.join("; "))
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
    let held = held(&ratios.iter().map(|one| one.ratio).collect::<Vec<_>>());
    let pairs = distinct(ratios.iter().map(|one| (one.section.duts[0], one.other)));
    let sentence = |(first, other): (&str, &str)| {
        let own = ratios.iter().zip(&held);
        let own: Vec<_> =
            own.filter(|(one, _)| (one.section.duts[0], one.other) == (first, other)).collect();
        let with = |standing| own.iter().filter(move |(one, _)| one.ratio.standing == standing);
        let gains = |standing| {
            let gains: Vec<f64> = with(standing).map(|(one, _)| one.gain()).collect();
            let range = from_to(gains.into_iter());
            range.map_or_else(String::new, |range| format!(" ({range} times as good)"))
        };
        let [better, worse, none] = [Standing::Better, Standing::Worse, Standing::NoDifference]
            .map(|standing| with(standing).count());
        let sure =
            own.iter().filter(|(one, held)| **held && one.ratio.standing != Standing::NoDifference);
        format!(
            "In {} beside {other}, {first} is better in {better}{}, worse in {worse}{}, and no \
             difference is seen in {none}; sure of these at 95 %, all counted (Holm): {}.",
            count(own.len(), "headline figure", "headline figures"),
            gains(Standing::Better),
            gains(Standing::Worse),
            sure.count(),
        )
    };
    pairs.into_iter().map(sentence).collect()
}

impl<'s, 'a> Line<'s, 'a> {
    fn compared(self) -> impl Iterator<Item = Compared<'s>> {
        let Line { section, table, row } = self;
        let others = section.duts.iter().zip(&row.ratios).filter(|(dut, _)| !is_reference(dut));
        others.filter_map(move |(other, ratio)| {
            Some(Compared { section, table, row, other, ratio: ratio.as_ref()? })
        })
    }
}

/// The rows of a run in which the first switch is farthest behind.
fn behind(sections: &[Section<'_>]) -> Option<String> {
    let tables = sections.iter().flat_map(|section| {
        let own = section.tables.iter().filter(|table| table.derived_from.is_none());
        own.map(move |table| (section, table))
    });
    let rows: Vec<Compared<'_>> =
        tables.flat_map(|(section, table)| compared(section, table)).collect();
    let first = rows.first()?.section.duts[0];
    let lost = losses(&rows);
    let all = count(rows.len(), "comparison", "comparisons");
    if lost.is_empty() {
        return Some(format!("With {all} counted {first} is behind in none."));
    }
    let one = |one: &&Compared<'_>| {
        let (heading, label) = (one.section.heading(), &one.table.metric.label);
        let (ratio, other, place) = (one.ratio.text(), one.other, one.place());
        format!("{heading}: {label} {ratio} times that of {other}{place}")
    };
    let named: Vec<String> = lost.iter().take(BEHIND_MAX).map(one).collect();
    let more = lost.len().saturating_sub(BEHIND_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Some(format!(
        "With {all} counted {first} is behind in {}: {}{more}.",
        lost.len(),
        named.join("; ")
    ))
}

fn extent(results: &Results, lines: &[Line<'_, '_>]) -> String {
    let cells = || results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let figures: usize = cells().map(|cell| cell.rows.len()).sum();
    let samples: usize = cells().flat_map(|cell| &cell.rows).map(|row| row.samples.len()).sum();
    let starts = || {
        let entries = lines.iter().filter(|line| !line.section.scenario.is_held);
        let entries = entries.flat_map(|line| &line.row.entries);
        entries.filter_map(|entry| Some(entry.figure()?.starts))
    };
    let sure = starts().min().map_or_else(String::new, |least| {
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

fn failures(results: &Results) -> Option<String> {
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
        (unsupported, "asked for what the switch does not support"),
        (pending, "were not come to"),
    ]
    .into_iter()
    .filter(|(cells, _)| *cells > 0)
    .map(|(cells, word)| format!("{cells} {word}"))
    .collect();
    (!words.is_empty()).then(|| {
        format!("Of the cells without figures {}; each says why in its place.", words.join(", "))
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
