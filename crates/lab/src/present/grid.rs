//! Results as blocks of text, for Markdown and the whole of a terminal, and a section's tables as
//! texts, for the page too.
//!
//! It must never say anything that the page does not.

use super::entry::TableEntry;
use super::findings::{findings, verdict};
use super::number::{axis_value, duration, number};
use super::section::{MetricTable, Section, TableRow, sections};
use super::verdict::lines;
use crate::results::Results;

/// A block of text.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading; the first is that of all.
    Heading(String),
    /// A paragraph.
    Words(String),
    /// Sentences, or nothing.
    List(Vec<String>),
    /// A table.
    Table(TextGrid),
}

/// All that was measured.
pub(crate) fn blocks(results: &Results) -> Vec<Block> {
    let (sections, machine) = (sections(results), &results.machine);
    let kind = if machine.virtual_machine { "virtual machine" } else { "machine" };
    let quick = if results.is_quick { ", quick" } else { "" };
    let run = format!(
        "Started {}, {}{quick}; {kind} with {} cores ({}), {}, {}; weir {}.",
        results.started,
        duration(results.duration_s),
        machine.cores,
        machine.cpu,
        machine.kernel,
        machine.os,
        results.weir,
    );
    let mut all = vec![Block::Heading("Results of weir lab".to_owned()), Block::Words(run)];
    all.push(Block::List(verdict(results, &sections, &lines(&sections))));
    for section in &sections {
        all.push(Block::Heading(section.heading()));
        all.push(Block::Words(section.scenario.question.clone()));
        let fixed = section.fixed_text();
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
#[derive(Debug, PartialEq)]
pub(crate) struct TextGrid {
    /// Its title.
    pub(crate) title: String,
    /// The headings.
    pub(crate) header: Vec<String>,
    /// Number of the columns with names, which are aligned to the left.
    pub(crate) names: usize,
    /// The lines.
    pub(crate) rows: Vec<TextRow>,
}

/// A line of a table.
#[derive(Debug, PartialEq)]
pub(crate) struct TextRow {
    /// Ends of links to it: one for each row that it shows.
    pub(crate) anchors: Vec<String>,
    /// Its cells.
    pub(crate) texts: Vec<String>,
}

/// The tables of a section: one for each metric, or, where there is one point, one for all.
pub(crate) fn grids(section: &Section<'_>) -> Vec<TextGrid> {
    if section.points.len() == 1 {
        return single(section).into_iter().collect();
    }
    section.tables.iter().enumerate().map(|(n, table)| of_metric(section, table, n == 0)).collect()
}

/// The limiting part is that of a method's trials, and so the same for all its metrics: the first
/// table says it.
fn of_metric(section: &Section<'_>, table: &MetricTable<'_>, is_first: bool) -> TextGrid {
    let versus = versus(&table.rows);
    let mut header: Vec<String> = section.axes.iter().map(axis_heading).collect();
    let names = header.len();
    header.extend(columns(section, versus, table.has_published()));
    let row = |row: &TableRow<'_>| {
        let place = section.axes.iter().map(|axis| {
            row.at.get(&axis.name).map_or_else(|| "-".to_owned(), |value| axis_value(value))
        });
        let values = values(table, row, versus, (table.has_published(), is_first));
        TextRow { anchors: vec![row.anchor.clone()], texts: place.chain(values).collect() }
    };
    let rows = table.rows.iter().map(row).collect();
    TextGrid { title: table.heading(), header, names, rows }
}

fn single(section: &Section<'_>) -> Option<TextGrid> {
    let rows = || section.tables.iter().flat_map(|table| &table.rows);
    rows().next()?;
    let versus = rows().find_map(versus_of);
    let has_published = section.tables.iter().any(MetricTable::has_published);
    let mut header = vec!["metric".to_owned()];
    header.extend(columns(section, versus, has_published));
    let row = |table: &MetricTable<'_>| {
        let row = table.rows.first()?;
        let mut texts = vec![table.heading()];
        texts.extend(values(table, row, versus, (has_published, true)));
        Some(TextRow { anchors: vec![row.anchor.clone()], texts })
    };
    let rows = section.tables.iter().filter_map(row).collect();
    Some(TextGrid { title: String::new(), header, names: 1, rows })
}

/// The column of the first other switch that the first one has a ratio to.
fn versus(rows: &[TableRow<'_>]) -> Option<usize> {
    rows.iter().filter_map(versus_of).min()
}

fn versus_of(row: &TableRow<'_>) -> Option<usize> {
    row.ratios.iter().position(Option::is_some)
}

fn axis_heading(axis: &crate::results::AxisInfo) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{}, {}", axis.label, axis.unit) }
}

fn columns(section: &Section<'_>, versus: Option<usize>, has_published: bool) -> Vec<String> {
    let mut columns: Vec<String> = section.duts.iter().map(|dut| (*dut).to_owned()).collect();
    if let (Some(first), Some(other)) = (section.duts.first(), versus) {
        columns.push(format!("{first} / {}", section.duts[other]));
    }
    if has_published {
        columns.push("published".to_owned());
    }
    columns
}

fn values(
    table: &MetricTable<'_>,
    row: &TableRow<'_>,
    versus: Option<usize>,
    (has_published, says_limit): (bool, bool),
) -> Vec<String> {
    let decimals = table.metric.decimals;
    let mut texts: Vec<String> =
        row.entries.iter().map(|entry| entry_text(entry, decimals, says_limit)).collect();
    if let Some(other) = versus {
        let ratio = row.ratios.get(other).and_then(Option::as_ref);
        texts.push(ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{} ×", ratio.text())));
    }
    if has_published {
        let text = row.published_text(decimals);
        texts.push(if text.is_empty() { "-".to_owned() } else { text.replace("; ", "\n") });
    }
    texts
}

/// An entry in words.
fn entry_text(entry: &TableEntry<'_>, decimals: usize, says_limit: bool) -> String {
    if let Some((word, reason)) = entry.absence() {
        // One method may fail alone; the reasons of whole cells stand in a list of their own.
        let why = reason.lines().next().filter(|_| word == "failed");
        return why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
    }
    let Some(figure) = entry.figure() else { return String::new() };
    let mut lines = vec![figure.text(decimals)];
    lines.extend(figure.remarks());
    if let Some(bound) = figure.bound {
        lines.push(format!("at most {} ({})", number(bound.value, decimals), bound.by));
    }
    if let Some(limit) = figure.limit.filter(|_| says_limit) {
        lines.push(format!("limit: {}", crate::present::limit_label(limit)));
    }
    lines.join("\n")
}
