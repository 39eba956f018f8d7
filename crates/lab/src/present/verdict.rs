//! The verdict of a run: for each scenario one figure of each switch, side by side.
//!
//! The page begins with it and the picture is made of it. It must never choose the figure by its
//! value: it is the first one that most switches have.

use std::cmp::{Ordering, Reverse};

use stats::Comparison;

use super::entry::{ShownFigure, meanings, method_of};
use super::grouped;
use super::number::capital;
use super::ratio::{best, gain, is_reference, standing};
use super::section::{MetricTable, Section, TableRow, place_on, sections};
use crate::results::{Coordinates, Results};

/// A row of a scenario: its headline, or another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'s, 'a> {
    pub(crate) section: &'s Section<'a>,
    pub(crate) row: &'s TableRow<'a>,
}

/// A ratio of a line.
pub(crate) struct Compared<'t> {
    pub(crate) line: Line<'t, 't>,
    pub(crate) other: &'t str,
    pub(crate) ratio: &'t Comparison,
    /// Above 1 the first switch is better.
    pub(crate) gain: f64,
    pub(crate) standing: Ordering,
}

/// The first table of each method that has one; figures in another unit are no further headline.
pub(crate) fn headlines<'s, 'a>(section: &'s Section<'a>) -> Vec<&'s MetricTable<'a>> {
    let own = section.tables.iter().filter(|table| !table.is_derived);
    let by_method = grouped(own.map(|table| (table.method, table)));
    by_method.iter().map(|(_, tables)| tables[0]).collect()
}

/// The lines of a table.
pub(crate) fn lines_of<'s, 'a>(
    section: &'s Section<'a>,
    table: &'s MetricTable<'a>,
) -> impl Iterator<Item = Line<'s, 'a>> {
    table.rows.iter().map(move |row| Line { section, row })
}

/// The headline of each scenario that has a figure: the first of the rows with most figures.
pub(crate) fn lines<'s, 'a>(sections: &'s [Section<'a>]) -> Vec<Line<'s, 'a>> {
    let line = |section: &'s Section<'a>| {
        let table = headlines(section).into_iter().next()?;
        let row = table.rows.iter().rev().max_by_key(|row| row.figures().count())?;
        row.figures().next()?;
        Some(Line { section, row })
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
    let headline = |line: &Line<'_, '_>| {
        let Line { section, row } = line;
        let reach = line.compared().map(|one| {
            let Comparison { estimate, low, high, .. } = one.ratio;
            (high / estimate).max(estimate / low) - 1.0
        });
        Some(Headline {
            scenario: section.scenario.id.clone(),
            at: row.at.clone(),
            method: method_of(section.scenario, &row.metric.id)?.to_owned(),
            metric: row.metric.id.to_string(),
            reach: reach.reduce(f64::max)?,
            duts: row.figures().map(|figure| figure.cell.dut.clone()).collect(),
        })
    };
    lines(&sections(results)).iter().filter_map(headline).collect()
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

/// The signs in the headlines and what is best there.
pub(crate) fn legend(lines: &[Line<'_, '_>]) -> String {
    let figures: Vec<&ShownFigure<'_>> = lines.iter().flat_map(|line| line.row.figures()).collect();
    let words = "Median of the starts [lowest–highest]; dots are starts; bold is better than each \
                 other by the 95 % interval of its ratio";
    let parts: Vec<String> = [words.to_owned()].into_iter().chain(meanings(&figures, "")).collect();
    format!("{}.", parts.join("; "))
}

impl<'s, 'a> Line<'s, 'a> {
    /// The figure of a switch.
    pub(crate) fn figure(&self, dut: &str) -> Option<&'s ShownFigure<'a>> {
        self.row.figures().find(|figure| figure.cell.dut == dut)
    }

    /// The figure of a switch with the sign of what limited it, and whether it is the best; or the
    /// word that it has instead.
    pub(crate) fn text(&self, dut: &str) -> (String, bool) {
        let Some(place) = self.section.duts.iter().position(|known| *known == dut) else {
            return ("-".to_owned(), false);
        };
        let figures: Vec<_> = self.row.entries.iter().map(|entry| entry.as_ref().ok()).collect();
        match &self.row.entries[place] {
            Ok(figure) => (figure.short_text() + &figure.signs(), best(&figures)[place]),
            Err((word, _)) => ((*word).to_owned(), false),
        }
    }

    /// `Rate, packets/s, entries 61,000`: the metric and the point, where a word is to stand by
    /// itself or with the name of its axis.
    pub(crate) fn about(&self, is_short: bool) -> String {
        let place = place_on(&self.section.axes, self.row.at, is_short);
        let name = capital(&self.row.metric.name());
        if place.is_empty() { name } else { format!("{name}; {place}") }
    }

    /// The ratios to the other switches, without that to the path without a switch.
    pub(crate) fn compared(self) -> impl Iterator<Item = Compared<'s>> {
        let others = self.section.duts.iter().zip(&self.row.ratios);
        let others = others.filter(|(dut, _)| !is_reference(dut));
        others.filter_map(move |(other, ratio)| {
            let (ratio, better) = (ratio.as_ref()?, self.row.metric.better);
            let (gain, standing) = (gain(ratio, better), standing(ratio, better));
            Some(Compared { line: self, other, ratio, gain, standing })
        })
    }
}

impl Compared<'_> {
    /// ` at frame size 64 B`, or nothing where there is one point.
    pub(crate) fn place(&self) -> String {
        let place = self.line.section.place(self.line.row.at);
        if place.is_empty() { place } else { format!(" at {place}") }
    }
}
