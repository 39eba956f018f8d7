//! The verdict of a run: for each scenario one figure of each switch, side by side.
//!
//! The page begins with it and the picture is made of it. It must never choose the figure by its
//! value: it is the first one that most switches have.

use super::entry::{ShownFigure, TableEntry};
use super::mark::{OPEN, best, leaves_open, mark, marked};
use super::number::capital;
use super::section::{MetricTable, Section, TableRow, is_reference, sections};
use super::switch_ratio::SwitchRatio;
use crate::names::distinct;
use crate::results::{Coordinates, Results};

/// The headline of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'s, 'a> {
    /// Its scenario.
    pub(crate) section: &'s Section<'a>,
    /// Its metric.
    pub(crate) table: &'s MetricTable<'a>,
    /// Its point.
    pub(crate) row: &'s TableRow<'a>,
}

/// The first table of each method that has one; figures in another unit are no further headline.
pub(crate) fn headlines<'s, 'a>(section: &'s Section<'a>) -> Vec<&'s MetricTable<'a>> {
    let mut methods: Vec<Option<&str>> = Vec::new();
    let mut tables = Vec::new();
    for table in &section.tables {
        if table.derived_from.is_none() && !methods.contains(&table.method) {
            methods.push(table.method);
            tables.push(table);
        }
    }
    tables
}

/// The headline of each scenario that has a figure.
pub(crate) fn lines<'s, 'a>(sections: &'s [Section<'a>]) -> Vec<Line<'s, 'a>> {
    let line = |section: &'s Section<'a>| {
        let table = headlines(section).into_iter().next()?;
        let figures =
            |row: &TableRow<'_>| row.entries.iter().filter(|e| e.figure().is_some()).count();
        let most = table.rows.iter().map(figures).max().filter(|most| *most > 0)?;
        let row = table.rows.iter().find(|row| figures(row) == most)?;
        Some(Line { section, table, row })
    };
    sections.iter().filter_map(line).collect()
}

/// A headline with ratios, as far as a further start has to know it.
#[derive(Debug)]
pub(crate) struct Headline {
    /// Its scenario.
    pub(crate) scenario: String,
    /// Its point.
    pub(crate) at: Coordinates,
    /// Its method.
    pub(crate) method: String,
    /// Its metric.
    pub(crate) metric: String,
    /// The switches that have a figure.
    pub(crate) duts: Vec<String>,
    /// Share of a ratio by which its interval reaches beyond it, at most.
    pub(crate) reach: f64,
}

/// The headlines in which the first switch has a ratio to another.
pub(crate) fn headlines_of(results: &Results) -> Vec<Headline> {
    let sections = sections(results);
    let headline = |line: &Line<'_, '_>| {
        let Line { section, table, row } = line;
        let others = section.duts.iter().zip(&row.ratios).filter(|(dut, _)| !is_reference(dut));
        let reach = others.filter_map(|(_, ratio)| {
            let SwitchRatio { ratio, interval: (low, high), .. } = ratio.as_ref()?;
            Some((high / ratio).max(ratio / low) - 1.0)
        });
        let has_figure = |dut: &&&str| line.entry(dut).is_some_and(|one| one.figure().is_some());
        Some(Headline {
            scenario: section.scenario.id.clone(),
            at: row.at.clone(),
            method: table.method?.to_owned(),
            metric: table.metric.id.clone(),
            reach: reach.reduce(f64::max)?,
            duts: section.duts.iter().filter(has_figure).map(|dut| (*dut).to_owned()).collect(),
        })
    };
    lines(&sections).iter().filter_map(headline).collect()
}

/// Lines of a verdict, and of an evaluation where there are more.
const LINES_MAX: usize = 8;
const OF_EVALUATION: usize = 2;

/// The lines that stand in a verdict, and the others: of many those of each evaluation that most
/// switches have.
pub(crate) fn chosen<'s, 'a>(lines: Vec<Line<'s, 'a>>) -> (Vec<Line<'s, 'a>>, Vec<Line<'s, 'a>>) {
    if lines.len() <= LINES_MAX {
        return (lines, Vec::new());
    }
    let is_same = |a: &Line<'_, '_>, b: &Line<'_, '_>| {
        let (a, b) = (a.section.scenario, b.section.scenario);
        a.evaluation == b.evaluation && (a.evaluation.is_some() || a.id == b.id)
    };
    let is_chosen = |(at, line): &(usize, Line<'s, 'a>)| {
        let own = line.figures().count();
        let before = lines.iter().enumerate().filter(|(other_at, other)| {
            let theirs = other.figures().count();
            is_same(other, line) && (theirs > own || theirs == own && other_at < at)
        });
        before.count() < OF_EVALUATION
    };
    let (chosen, rest): (Vec<_>, Vec<_>) = lines.iter().copied().enumerate().partition(is_chosen);
    let lines = |of: Vec<(usize, Line<'s, 'a>)>| of.into_iter().map(|(_, line)| line).collect();
    (lines(chosen), lines(rest))
}

/// Every switch, in the order of the results: the order of their colours.
pub(crate) fn all_duts(results: &Results) -> Vec<&str> {
    let named = results.switches.iter().map(|dut| dut.name.as_str());
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    distinct(named.chain(cells.map(|cell| cell.dut.as_str())))
}

/// The signs in the headlines and what is best there.
pub(crate) fn legend(lines: &[Line<'_, '_>]) -> String {
    let limits = lines.iter().flat_map(Line::figures).filter_map(|figure| figure.limit);
    let signs = limits.filter_map(|limit| mark(limit.part));
    let signs = distinct(signs.map(|(sign, words)| format!("{sign} {words}")));
    let mut signs = match signs.is_empty() {
        true => String::new(),
        false => format!("; at its limit: {}", signs.join(", ")),
    };
    if lines.iter().flat_map(Line::figures).any(|figure| !figure.remarks().is_empty()) {
        signs += "; ? not compared: below the floor, clock error or doubtful";
    }
    if lines.iter().flat_map(Line::figures).any(leaves_open) {
        signs += &format!("; {OPEN}");
    }
    format!(
        "Median of the starts [lowest–highest]; dots are starts; bold is better than each other by \
         the 95 % interval of its ratio{signs}."
    )
}

impl<'s, 'a> Line<'s, 'a> {
    fn place(&self, dut: &str) -> Option<usize> {
        self.section.duts.iter().position(|known| *known == dut)
    }

    /// The entry of a switch.
    pub(crate) fn entry(&self, dut: &str) -> Option<&'s TableEntry<'a>> {
        self.row.entries.get(self.place(dut)?)
    }

    /// The figure of a switch with the sign of what limited it, and whether it is the best; or the
    /// word that it has instead.
    pub(crate) fn text(&self, dut: &str) -> (String, bool) {
        let Some(place) = self.place(dut) else { return ("-".to_owned(), false) };
        let entries: Vec<_> =
            self.row.entries.iter().enumerate().map(|(n, e)| (n, Some(e))).collect();
        let is_best = best(self.section, &entries, self.table.metric.better)[place];
        let Some(figure) = self.row.entries[place].figure() else {
            let word = self.row.entries[place].absence().map_or("-", |(word, _)| word);
            return (word.to_owned(), false);
        };
        let (text, marks) = marked(figure, self.table.metric.decimals);
        (text + &marks, is_best)
    }

    /// The figures of all switches.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &'s ShownFigure<'a>> {
        self.row.entries.iter().filter_map(TableEntry::figure)
    }

    /// `Rate, packets/s, entries 61,000`: the metric and the point, where a word is to stand by
    /// itself or with the name of its axis.
    pub(crate) fn about(&self, is_short: bool) -> String {
        let axes: Vec<_> = self.section.axes.iter().collect();
        let place = match is_short {
            true => Section::place_on(&axes, self.row.at),
            false => self.section.place(self.row.at),
        };
        let name = capital(&self.table.name());
        if place.is_empty() { name } else { format!("{name}; {place}") }
    }

    /// The published figures of this place, from the lowest to the highest.
    pub(crate) fn published(&self) -> Option<String> {
        self.row.published_range(self.table.metric.decimals)
    }
}
