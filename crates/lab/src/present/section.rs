//! A scenario's cells as tables: rows are points of the axes, columns are switches.
//!
//! All forms draw from these, so that a row has one place and one anchor. It must never leave out a
//! cell of the results.

use std::collections::{BTreeMap, BTreeSet};

use stats::Comparison;

use super::entry::{Entry, NOT_MEASURED, ShownFigure, entry, method_of};
use super::grouped;
use super::number::{axis_value, capital, count, number, short_with_range};
use super::ratio::{is_reference, ratio};
use crate::names::distinct;
use crate::results::{
    AxisInfo, Better, CellResults, Coordinates, Metric, Published, Results, ScenarioResults,
};

/// A scenario.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// Its place in the results.
    pub(crate) index: usize,
    pub(crate) scenario: &'a ScenarioResults,
    /// The switches, the first of which the others are compared with.
    pub(crate) duts: Vec<&'a str>,
    /// The number of each switch's colour.
    colours: Vec<usize>,
    /// The axes on which the cells differ.
    pub(crate) axes: Vec<&'a AxisInfo>,
    /// The values of the other axes: `match fields 1, trial 2 s`.
    pub(crate) fixed: String,
    /// The points, in the order of the axes' values.
    pub(crate) points: Vec<&'a Coordinates>,
    /// A table for each metric that a cell has.
    pub(crate) tables: Vec<MetricTable<'a>>,
}

/// The figures of one metric.
#[derive(Debug)]
pub(crate) struct MetricTable<'a> {
    pub(crate) metric: &'a Metric,
    /// The method that yields it.
    pub(crate) method: Option<&'a str>,
    pub(crate) rows: Vec<TableRow<'a>>,
    /// Whether an earlier table has all the same ratios: these are its figures in another unit.
    pub(crate) is_derived: bool,
}

/// One metric at one point.
#[derive(Debug)]
pub(crate) struct TableRow<'a> {
    /// End of a link to it.
    pub(crate) anchor: String,
    pub(crate) metric: &'a Metric,
    /// Position on the axes.
    pub(crate) at: &'a Coordinates,
    /// Entry of each switch there.
    pub(crate) entries: Vec<Entry<'a>>,
    /// The first switch's figure by that of each; none for the first itself.
    pub(crate) ratios: Vec<Option<Comparison>>,
    /// The published figures of this place.
    pub(crate) published: Vec<&'a Published>,
}

/// Every scenario of the results.
pub(crate) fn sections(results: &Results) -> Vec<Section<'_>> {
    let (duts, mut anchors) = (all_duts(results), BTreeSet::new());
    let scenarios = results.scenarios.iter().enumerate();
    scenarios.map(|(index, one)| Section::new(&duts, index, one, &mut anchors)).collect()
}

/// Every switch, in the order of the results: the order of their colours.
pub(crate) fn all_duts(results: &Results) -> Vec<&str> {
    let named = results.switches.iter().map(|dut| dut.name.as_str());
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    distinct(named.chain(cells.map(|cell| cell.dut.as_str())))
}

/// A text as a part of an anchor: lower-case letters, digits and hyphens.
fn slug(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

impl<'a> Section<'a> {
    fn new(
        all_duts: &[&'a str],
        index: usize,
        scenario: &'a ScenarioResults,
        anchors: &mut BTreeSet<String>,
    ) -> Self {
        let mut duts: Vec<(usize, &str)> = all_duts.iter().copied().enumerate().collect();
        duts.retain(|(_, dut)| scenario.cells.iter().any(|cell| cell.dut == *dut));
        // What the others are held against is no switch, and never the first.
        duts.sort_by_key(|(_, dut)| is_reference(dut));
        // There are eight colours.
        let (colours, duts) = duts.into_iter().map(|(place, dut)| (place % 8, dut)).unzip();
        let points = points(scenario);
        let (axes, alike): (Vec<_>, Vec<_>) =
            scenario.axes.iter().partition(|axis| varies(axis, &points));
        let fixed = points.first().map_or_else(String::new, |at| place_on(&alike, at, false));
        let tables = Vec::new();
        let mut section = Self { index, scenario, duts, colours, axes, fixed, points, tables };
        let mut tables = section.make_tables();
        for row in tables.iter_mut().flat_map(|table| &mut table.rows) {
            row.anchor = section.anchor(row, anchors);
        }
        section.tables = tables;
        section
    }

    fn make_tables(&self) -> Vec<MetricTable<'a>> {
        let scenario = self.scenario;
        let mut cells: BTreeMap<(&str, &Coordinates), &'a CellResults> = BTreeMap::new();
        for cell in &scenario.cells {
            cells.entry((&cell.dut, &cell.at)).or_insert(cell);
        }
        let whole = |metric: &'a Metric, method: Option<&'a str>| -> MetricTable<'a> {
            let row = |at: &'a Coordinates| {
                let entry = |(dut, colour): (&&'a str, &usize)| {
                    let cell = *cells.get(&(*dut, at)).ok_or(NOT_MEASURED)?;
                    entry(scenario, cell, metric, method, *colour)
                };
                let entries = self.duts.iter().zip(&self.colours).map(entry);
                let entries: Vec<Entry<'a>> = entries.collect();
                let (anchor, ratios) = (String::new(), ratios(&entries));
                let published = scenario.published_at(at, &metric.id).collect();
                TableRow { anchor, metric, at, entries, ratios, published }
            };
            let rows = self.points.iter().copied().map(row).collect();
            MetricTable { metric, method, rows, is_derived: false }
        };
        let mut tables: Vec<MetricTable<'a>> = Vec::new();
        for metric in &scenario.metrics {
            let mut table = whole(metric, method_of(scenario, &metric.id));
            let is_there = |entry: &Entry<'_>| !matches!(entry, Err(NOT_MEASURED));
            table.rows.retain(|row| row.entries.iter().any(is_there));
            // A metric of which no switch has a figure says nothing that the others do not.
            if table.figures().next().is_some() {
                table.is_derived = tables.iter().any(|known| known.is_source_of(&table));
                tables.push(table);
            }
        }
        if tables.is_empty() && !self.points.is_empty() {
            // Where nothing was measured, a table of the reasons alone.
            tables.extend(scenario.metrics.first().map(|metric| whole(metric, None)));
        }
        tables
    }

    /// The name of a row, so that a link to it says where it leads and outlives the next run.
    fn anchor(&self, row: &TableRow<'_>, anchors: &mut BTreeSet<String>) -> String {
        let at = self.axes.iter().filter_map(|axis| row.at.get(&axis.name)).map(String::as_str);
        let words = [self.scenario.id.as_str(), &row.metric.id].into_iter().chain(at);
        let name = words.map(slug).collect::<Vec<_>>().join("-");
        let mut names = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") });
        names.find(|name| anchors.insert(name.clone())).unwrap_or_default()
    }

    /// Why cells have no figures: each reason once, with the switches that have it at its points.
    pub(crate) fn absences(&self) -> Vec<Absence<'a>> {
        let absent = self.scenario.cells.iter().filter_map(|cell| {
            let (word, reason) = cell.state.absence()?;
            Some(((cell.dut.as_str(), word, reason), self.place(&cell.at)))
        });
        let of_dut = grouped(absent).into_iter();
        let alike = grouped(of_dut.map(|((dut, word, reason), at)| ((word, reason, at), dut)));
        let one = |((word, reason, mut places), duts): ((_, _, Vec<String>), _)| {
            if places.len() == self.points.len() {
                places.clear();
            }
            Absence { duts, word, reason, places }
        };
        alike.into_iter().map(one).collect()
    }

    /// A heading: `E4 · Cached forwarding`.
    pub(crate) fn heading(&self) -> String {
        match &self.scenario.evaluation {
            Some(evaluation) => format!("{evaluation} · {}", self.scenario.name()),
            None => self.scenario.name().to_owned(),
        }
    }

    /// A point in words, `frame size 64 B, entries 61,000`; empty where there is only one.
    pub(crate) fn place(&self, at: &Coordinates) -> String {
        place_on(&self.axes, at, false)
    }
}

/// Cells that have no figures for one reason, at the same points of each switch.
#[derive(Debug)]
pub(crate) struct Absence<'a> {
    pub(crate) duts: Vec<&'a str>,
    /// Its kind, in a word or two.
    pub(crate) word: &'static str,
    pub(crate) reason: &'a str,
    /// Its points; empty where it is so at all of them.
    pub(crate) places: Vec<String>,
}

impl Absence<'_> {
    /// `ovs: failed at frame size 64 B: why`.
    pub(crate) fn sentence(&self) -> String {
        let place = match self.places.as_slice() {
            [] => String::new(),
            [one] => format!(" at {one}"),
            [first, rest @ ..] => {
                format!(" at {first} and {}", count(rest.len(), "more point", "more points"))
            }
        };
        format!("{}: {}{place}: {}", self.duts.join(", "), self.word, self.reason)
    }
}

/// The first entry's figure by that of each of the others.
fn ratios(entries: &[Entry<'_>]) -> Vec<Option<Comparison>> {
    let first = entries.first().and_then(|entry| entry.as_ref().ok());
    let ratio = |(n, other): (usize, &Entry<'_>)| {
        if n == 0 { None } else { ratio(first?, other.as_ref().ok()?) }
    };
    entries.iter().enumerate().map(ratio).collect()
}

/// The points of all cells, each once, in the order of the axes and their values.
fn points(scenario: &ScenarioResults) -> Vec<&Coordinates> {
    let points: BTreeSet<_> = scenario.cells.iter().map(|cell| &cell.at).collect();
    let mut points: Vec<_> = points.into_iter().collect();
    points.sort_by_key(|at| {
        let place = |axis: &AxisInfo| {
            let value = at.get(&axis.name);
            let known = axis.values.iter().position(|known| Some(known) == value);
            known.unwrap_or(usize::MAX)
        };
        scenario.axes.iter().map(place).collect::<Vec<usize>>()
    });
    points
}

/// Whether some points differ on an axis.
pub(super) fn varies(axis: &AxisInfo, points: &[&Coordinates]) -> bool {
    points.iter().any(|at| at.get(&axis.name) != points[0].get(&axis.name))
}

/// A place on some axes in words, `frame size 64 B, match hub`; in short `frame size 64 B, hub`.
pub(super) fn place_on(axes: &[&AxisInfo], at: &Coordinates, is_short: bool) -> String {
    let word = |axis: &&AxisInfo| {
        let value = at.get(&axis.name)?;
        let is_alone = is_short && !value.starts_with(|letter: char| letter.is_ascii_digit());
        Some(if is_alone { value.clone() } else { value_of(axis, value) })
    };
    axes.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

/// `frame size 64 B`, or without a unit `entries 61,000`.
pub(super) fn value_of(axis: &AxisInfo, value: &str) -> String {
    format!("{} {} {}", axis.label, axis_value(value), axis.unit).trim_end().to_owned()
}

/// A published figure, or its range: `121.0–125.0`.
pub(crate) fn published(figure: &Published, decimals: usize) -> String {
    let to = figure.to.map_or(String::new(), |to| format!("–{}", number(to, decimals)));
    format!("{}{to}", number(figure.value, decimals))
}

impl<'a> TableRow<'a> {
    /// The figure of the switch in that place.
    pub(crate) fn figure(&self, dut: usize) -> Option<&ShownFigure<'a>> {
        self.entries.get(dut)?.as_ref().ok()
    }

    /// The figures of all switches.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &ShownFigure<'a>> {
        self.entries.iter().flatten()
    }

    /// The published figures, and the ends of their ranges.
    pub(crate) fn published_values(&self) -> impl Iterator<Item = f64> {
        self.published.iter().flat_map(|one| [Some(one.value), one.to]).flatten()
    }

    /// The published figures from the lowest to the highest: `121–1,120`.
    pub(crate) fn published_range(&self) -> Option<String> {
        let low = self.published_values().reduce(f64::min)?;
        let high = self.published_values().reduce(f64::max)?;
        let text = |value: f64| short_with_range(value, (value, value), self.metric.decimals);
        Some(if low == high { text(low) } else { format!("{}–{}", text(low), text(high)) })
    }
}

impl Metric {
    /// `Rate, packets/s (more is better)`.
    pub(crate) fn heading(&self) -> String {
        let better = match self.better {
            Better::Higher => "more is better",
            Better::Lower => "less is better",
        };
        format!("{} ({better})", capital(&self.name()))
    }

    /// `Rate, packets/s`.
    pub(crate) fn name(&self) -> String {
        self.with_unit(&self.label)
    }

    /// The values whose median the metric is, `delay`; of another metric its own label.
    pub(crate) fn values_label(&self) -> &str {
        self.label.strip_suffix(", median").unwrap_or(&self.label)
    }

    /// The same with the unit: `delay, µs`.
    pub(crate) fn values_name(&self) -> String {
        self.with_unit(self.values_label())
    }

    fn with_unit(&self, label: &str) -> String {
        if self.unit.is_empty() { label.to_owned() } else { format!("{label}, {}", self.unit) }
    }
}

impl<'a> MetricTable<'a> {
    /// The row at a point.
    pub(crate) fn row(&self, at: &Coordinates) -> Option<&TableRow<'a>> {
        self.rows.iter().find(|row| row.at == at)
    }

    /// The figures of all rows.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &ShownFigure<'a>> {
        self.rows.iter().flat_map(TableRow::figures)
    }

    /// Whether a table of another metric has all the same ratios.
    fn is_source_of(&self, other: &MetricTable<'_>) -> bool {
        // No ratio is 0.
        let ratios = |table: &MetricTable<'_>| -> Vec<f64> {
            let ratios = table.rows.iter().flat_map(|row| &row.ratios);
            ratios.map(|one| one.map_or(0.0, |one| one.estimate)).collect()
        };
        let (own, others) = (ratios(self), ratios(other));
        self.metric.better == other.metric.better
            && own.len() == others.len()
            && own.iter().zip(&others).all(|(a, b)| (a - b).abs() <= 1e-6 * a)
            && own.iter().any(|ratio| *ratio > 0.0)
    }

    /// Whether a row has a published figure.
    pub(crate) fn has_published(&self) -> bool {
        self.rows.iter().any(|row| !row.published.is_empty())
    }
}
