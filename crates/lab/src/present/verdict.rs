//! The verdict of a run: for each scenario one figure of each switch, side by side.
//!
//! The page begins with it and the picture is made of it. It must never choose the figure by its
//! value: it is the first one that most switches have.

use std::cmp::Reverse;

use stats::Comparison;

use super::entry::ShownFigure;
use super::grouped;
use super::mark::{marked, signs};
use super::number::capital;
use super::ratio::best;
use super::section::{MetricTable, Section, TableRow, is_reference, place_on, sections};
use crate::names::distinct;
use crate::results::{Coordinates, Results};

/// The headline of a scenario, or another row with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'s, 'a> {
    pub(crate) section: &'s Section<'a>,
    pub(crate) table: &'s MetricTable<'a>,
    pub(crate) row: &'s TableRow<'a>,
}

/// The first table of each method that has one; figures in another unit are no further headline.
pub(crate) fn headlines<'s, 'a>(section: &'s Section<'a>) -> Vec<&'s MetricTable<'a>> {
    let own = section.tables.iter().filter(|table| !table.is_derived);
    let by_method = grouped(own.map(|table| (table.method, table)));
    by_method.iter().map(|(_, tables)| tables[0]).collect()
}

/// The headline of each scenario that has a figure.
pub(crate) fn lines<'s, 'a>(sections: &'s [Section<'a>]) -> Vec<Line<'s, 'a>> {
    let line = |section: &'s Section<'a>| {
        let table = headlines(section).into_iter().next()?;
        let figures = |row: &TableRow<'_>| row.figures().count();
        let most = table.rows.iter().map(figures).max().filter(|most| *most > 0)?;
        let row = table.rows.iter().find(|row| figures(row) == most)?;
        Some(Line { section, table, row })
    };
    sections.iter().filter_map(line).collect()
}

/// A headline with ratios, as far as a further start has to know it.
#[derive(Debug)]
pub(crate) struct Headline {
    pub(crate) scenario: String,
    pub(crate) at: Coordinates,
    pub(crate) method: String,
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
            let Comparison { estimate, low, high, .. } = (*ratio)?;
            Some((high / estimate).max(estimate / low) - 1.0)
        });
        let has_figure = |(n, _): &(usize, &&str)| row.figure(*n).is_some();
        let duts = section.duts.iter().enumerate().filter(has_figure);
        Some(Headline {
            scenario: section.scenario.id.clone(),
            at: row.at.clone(),
            method: table.method?.to_owned(),
            metric: table.metric.id.to_string(),
            reach: reach.reduce(f64::max)?,
            duts: duts.map(|(_, dut)| (*dut).to_owned()).collect(),
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
    let own = lines.iter().map(|line| {
        let scenario = line.section.scenario;
        (scenario.evaluation.as_ref().unwrap_or(&scenario.id), line)
    });
    let chosen = grouped(own).into_iter().flat_map(|(_, mut own)| {
        own.sort_by_key(|line| Reverse(line.row.figures().count()));
        own.into_iter().take(OF_EVALUATION).map(|line| line.section.index)
    });
    let chosen: Vec<usize> = chosen.collect();
    lines.iter().copied().partition(|line| chosen.contains(&line.section.index))
}

/// Every switch, in the order of the results: the order of their colours.
pub(crate) fn all_duts(results: &Results) -> Vec<&str> {
    let named = results.switches.iter().map(|dut| dut.name.as_str());
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    distinct(named.chain(cells.map(|cell| cell.dut.as_str())))
}

/// The signs in the headlines and what is best there.
pub(crate) fn legend(lines: &[Line<'_, '_>]) -> String {
    let figures: Vec<&ShownFigure<'_>> = lines.iter().flat_map(|line| line.row.figures()).collect();
    let words = "Median of the starts [lowest–highest]; dots are starts; bold is better than each \
                 other by the 95 % interval of its ratio";
    let parts: Vec<String> = [words.to_owned()].into_iter().chain(signs(&figures, "")).collect();
    format!("{}.", parts.join("; "))
}

impl<'s, 'a> Line<'s, 'a> {
    /// The figure of a switch.
    pub(crate) fn figure(&self, dut: &str) -> Option<&'s ShownFigure<'a>> {
        self.row.figure(self.place(dut)?)
    }

    fn place(&self, dut: &str) -> Option<usize> {
        self.section.duts.iter().position(|known| *known == dut)
    }

    /// The figure of a switch with the sign of what limited it, and whether it is the best; or the
    /// word that it has instead. The path without a switch is no competitor.
    pub(crate) fn text(&self, dut: &str) -> (String, bool) {
        let Some(place) = self.place(dut) else { return ("-".to_owned(), false) };
        let figure = match &self.row.entries[place] {
            Ok(figure) => figure,
            Err((word, _)) => return ((*word).to_owned(), false),
        };
        let (text, marks) = marked(figure, self.table.metric.decimals);
        let duts = self.section.duts.iter().enumerate();
        let figures = duts.map(|(n, dut)| self.row.figure(n).filter(|_| !is_reference(dut)));
        let best = best(&figures.collect::<Vec<_>>(), self.table.metric.better);
        (text + &marks, best[place])
    }

    /// `Rate, packets/s, entries 61,000`: the metric and the point, where a word is to stand by
    /// itself or with the name of its axis.
    pub(crate) fn about(&self, is_short: bool) -> String {
        let place = place_on(&self.section.axes, self.row.at, is_short);
        let name = capital(&self.table.name());
        if place.is_empty() { name } else { format!("{name}; {place}") }
    }

    /// The published figures of this place, from the lowest to the highest.
    pub(crate) fn published(&self) -> Option<String> {
        self.row.published_range(self.table.metric.decimals)
    }
}
