//! Results as blocks of text, for Markdown and the whole of a terminal, and a section's tables as
//! texts, for the page too.
//!
//! It must never say anything that the page does not.

use super::entry::Entry;
use super::findings::{findings, verdict};
use super::number::{axis_value, number};
use super::ratio::ratio_text;
use super::section::{MetricTable, Section, TableRow, published, sections};
use super::{limit_label, machine, took};
use crate::results::{AxisInfo, Results};

/// A block of text.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading; the first is that of all.
    Heading(String),
    Words(String),
    /// Sentences, or nothing.
    List(Vec<String>),
    Table(TextGrid),
}

/// All that was measured.
pub(crate) fn blocks(results: &Results) -> Vec<Block> {
    let sections = sections(results);
    let (started, took, machine) = (&results.started, took(results), machine(results));
    let (os, weir) = (&results.machine.os, &results.weir);
    let run = format!("Started {started}, {took}; {machine}, {os}; weir {weir}.");
    let mut all = vec![Block::Heading("Results of weir lab".to_owned()), Block::Words(run)];
    all.push(Block::List(verdict(results, &sections)));
    for section in &sections {
        all.push(Block::Heading(section.heading()));
        all.push(Block::Words(section.scenario.question.clone()));
        let fixed = &section.fixed;
        all.extend((!fixed.is_empty()).then(|| Block::Words(format!("Everywhere: {fixed}."))));
        all.push(Block::List(findings(section)));
        all.extend(grids(section).into_iter().map(Block::Table));
        let absences = section.absences();
        all.push(Block::List(absences.iter().map(|absence| absence.sentence()).collect()));
    }
    all.push(Block::Heading("Conditions".to_owned()));
    all.push(Block::List(conditions(results)));
    all
}

fn conditions(results: &Results) -> Vec<String> {
    let mut all = vec![format!("command: {}", results.command.join(" "))];
    all.extend(results.programs.iter().map(|one| format!("{}: {}", one.name, one.version)));
    for scenario in &results.scenarios {
        let own = scenario.conditions.iter();
        all.extend(own.map(|(name, value)| format!("{}, {name}: {value}", scenario.id)));
    }
    all.extend(results.notes.iter().cloned());
    all
}

/// A table of texts; a line end in a text is a line end in its cell.
#[derive(Debug)]
pub(crate) struct TextGrid {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    /// Number of the columns with names, which are aligned to the left.
    pub(crate) names: usize,
    /// The lines, each with the end of a link to it.
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// The tables of a section: one for each metric, or, where there is one point, one for all.
pub(crate) fn grids(section: &Section<'_>) -> Vec<TextGrid> {
    if section.points.len() == 1 {
        let first = section.tables.iter().filter_map(|table| table.rows.first());
        let rows: Vec<_> = first.map(|row| (vec![row.metric.heading()], row)).collect();
        let grid = || grid(section, String::new(), vec!["metric".to_owned()], &rows, true);
        return (!rows.is_empty()).then(grid).into_iter().collect();
    }
    let heading = |axis: &&AxisInfo| match axis.unit.as_str() {
        "" => axis.label.clone(),
        unit => format!("{}, {unit}", axis.label),
    };
    let place = |row: &TableRow<'_>| -> Vec<String> {
        let values = section.axes.iter().map(|axis| row.at.get(&axis.name));
        values.map(|value| value.map_or_else(|| "-".to_owned(), |one| axis_value(one))).collect()
    };
    let of_metric = |(n, table): (usize, &MetricTable<'_>)| {
        let rows: Vec<_> = table.rows.iter().map(|row| (place(row), row)).collect();
        let names = section.axes.iter().map(heading).collect();
        // The limiting part is that of a method's trials, and so the same for all its metrics: the
        // first table says it.
        grid(section, table.metric.heading(), names, &rows, n == 0)
    };
    section.tables.iter().enumerate().map(of_metric).collect()
}

/// The first other switch that the first one has a ratio to in some rows.
pub(crate) fn versus<'s, 'a: 's>(rows: impl Iterator<Item = &'s TableRow<'a>>) -> Option<usize> {
    rows.filter_map(|row| row.ratios.iter().position(Option::is_some)).min()
}

/// The table of these rows, each with its names.
fn grid(
    section: &Section<'_>,
    title: String,
    mut header: Vec<String>,
    rows: &[(Vec<String>, &TableRow<'_>)],
    says_limit: bool,
) -> TextGrid {
    let names = header.len();
    header.extend(section.duts.iter().map(|dut| (*dut).to_owned()));
    let versus = versus(rows.iter().map(|(_, row)| *row));
    header.extend(versus.map(|dut| format!("{} / {}", section.duts[0], section.duts[dut])));
    let has_published = rows.iter().any(|(_, row)| !row.published.is_empty());
    header.extend(has_published.then(|| "published".to_owned()));
    let texts = |(names, row): &(Vec<String>, &TableRow<'_>)| {
        let none = || "-".to_owned();
        let mut texts = names.clone();
        texts.extend(row.entries.iter().map(|entry| entry_text(entry, says_limit)));
        let ratio = |dut: usize| row.ratios[dut].as_ref().map(ratio_text);
        texts.extend(versus.map(|dut| ratio(dut).map_or_else(none, |ratio| ratio + " ×")));
        let old = row.published.iter().map(|one| {
            let figure = published(one, row.metric.decimals);
            format!("{figure} ({})", one.switch)
        });
        let old = old.reduce(|all, one| format!("{all}\n{one}"));
        texts.extend(has_published.then(|| old.unwrap_or_else(none)));
        (row.anchor.clone(), texts)
    };
    TextGrid { title, header, names, rows: rows.iter().map(texts).collect() }
}

/// An entry in words.
fn entry_text(entry: &Entry<'_>, says_limit: bool) -> String {
    let figure = match entry {
        Ok(figure) => figure,
        Err((word, reason)) => {
            // One method may fail alone; the reasons of whole cells stand in a list of their own.
            let why = reason.lines().next().filter(|_| *word == "failed");
            return why.map_or_else(|| (*word).to_owned(), |why| format!("{word}: {why}"));
        }
    };
    let mut lines = vec![figure.text()];
    lines.extend(figure.remarks());
    if let Some(bound) = figure.bound {
        let most = number(bound.value, figure.metric.decimals);
        lines.push(format!("at most {most} ({})", bound.by));
    }
    if let Some(limit) = figure.limit.filter(|_| says_limit) {
        lines.push(format!("limit: {}", limit_label(limit)));
    }
    lines.join("\n")
}
