//! A scenario's cells as tables: rows are points of the axes, columns are switches.
//!
//! All forms draw from these, so that a row has one place and one anchor. It must never leave out a
//! cell of the results.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::{
    AxisInfo, Better, CellResults, Coordinates, MetricInfo, Published, Results, ScenarioResults,
};

use super::entry::{ShownFigure, TableEntry, method_of};
use super::number::{axis_value, capital, count, number, short_with_range};
use super::switch_ratio::SwitchRatio;
use crate::names::distinct;

/// The name of the path without a switch.
const FLOOR_DUT: &str = "wire";

/// A scenario.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// Its place in the results.
    pub(crate) index: usize,
    /// The scenario.
    pub(crate) scenario: &'a ScenarioResults,
    /// The switches, the first of which the others are compared with.
    pub(crate) duts: Vec<&'a str>,
    /// The axes on which the cells differ.
    pub(crate) axes: Vec<AxisInfo>,
    /// The values of the other axes.
    pub(crate) fixed: Vec<(AxisInfo, &'a str)>,
    /// The points, in the order of the axes' values.
    pub(crate) points: Vec<&'a Coordinates>,
    /// A table for each metric that a cell has.
    pub(crate) tables: Vec<MetricTable<'a>>,
}

/// The figures of one metric.
#[derive(Debug)]
pub(crate) struct MetricTable<'a> {
    /// The metric.
    pub(crate) metric: &'a MetricInfo,
    /// The method that yields it.
    pub(crate) method: Option<&'a str>,
    /// Its rows.
    pub(crate) rows: Vec<TableRow<'a>>,
    /// The earlier table whose ratios are all the same: these are its figures in another unit.
    pub(crate) derived_from: Option<usize>,
}

impl<'a> MetricTable<'a> {
    fn new(
        (metric, method): (&'a MetricInfo, Option<&'a str>),
        rows: Vec<TableRow<'a>>,
        before: &[Self],
    ) -> Self {
        let ratios = |rows: &[TableRow<'a>]| -> Vec<Option<f64>> {
            rows.iter().flat_map(|row| &row.ratios).map(|r| r.as_ref().map(|r| r.ratio)).collect()
        };
        let own = ratios(&rows);
        let is_same = |other: &[Option<f64>]| {
            let near = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs(),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            own.len() == other.len() && own.iter().zip(other).all(near)
        };
        let source = before.iter().position(|table| {
            table.metric.better == metric.better && is_same(&ratios(&table.rows))
        });
        let derived_from = source.filter(|_| own.iter().any(Option::is_some));
        Self { metric, method, rows, derived_from }
    }
}

/// One metric at one point.
#[derive(Debug)]
pub(crate) struct TableRow<'a> {
    /// End of a link to it.
    pub(crate) anchor: String,
    /// Position on the axes.
    pub(crate) at: &'a Coordinates,
    /// Entry of each switch there.
    pub(crate) entries: Vec<TableEntry<'a>>,
    /// The first switch's figure by that of each; none for the first itself.
    pub(crate) ratios: Vec<Option<SwitchRatio>>,
    /// The published figures of this place.
    pub(crate) published: Vec<&'a Published>,
}

/// Whether it is the path without a switch: what a switch reaches of it is said, and that it stays
/// behind it is no finding.
pub(crate) fn is_reference(dut: &str) -> bool {
    dut == FLOOR_DUT
}

/// Every scenario of the results.
pub(crate) fn sections(results: &Results) -> Vec<Section<'_>> {
    let scenarios = results.scenarios.iter().enumerate();
    let mut sections: Vec<Section<'_>> =
        scenarios.map(|(index, scenario)| Section::new(results, index, scenario)).collect();
    set_anchors(&mut sections);
    sections
}

/// Names each row after its scenario, metric and point, so that a link to it says where it leads
/// and outlives the next run.
fn set_anchors(sections: &mut [Section<'_>]) {
    let mut taken = BTreeSet::new();
    for section in sections {
        let Section { scenario, axes, tables, .. } = section;
        for table in tables {
            for row in &mut table.rows {
                let at = axes.iter().filter_map(|axis| row.at.get(&axis.name));
                let words = [&scenario.id, &table.metric.id].into_iter().chain(at);
                let name = words.map(|word| slug(word)).collect::<Vec<_>>().join("-");
                row.anchor = (1..)
                    .map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") })
                    .find(|anchor| !taken.contains(anchor))
                    .unwrap_or_default();
                taken.insert(row.anchor.clone());
            }
        }
    }
}

/// A text as a part of an anchor: lower-case letters, digits and hyphens.
fn slug(text: &str) -> String {
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let parts: Vec<String> =
        parts.filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect();
    parts.join("-")
}

impl<'a> Section<'a> {
    fn new(results: &'a Results, index: usize, scenario: &'a ScenarioResults) -> Self {
        let named = results.switches.iter().map(|dut| dut.name.as_str());
        let of_cells = scenario.cells.iter().map(|cell| cell.dut.as_str());
        let mut duts = distinct(named.chain(of_cells));
        duts.retain(|dut| scenario.cells.iter().any(|cell| cell.dut == *dut));
        // What the others are held against is no switch, and never the first.
        duts.sort_by_key(|dut| is_reference(dut));
        let points = points(scenario);
        let (mut axes, mut fixed) = (Vec::new(), Vec::new());
        for axis in all_axes(scenario) {
            let first = points.first().and_then(|at| at.get(&axis.name));
            if points.iter().all(|at| at.get(&axis.name) == first) {
                fixed.extend(first.map(|value| (axis, value.as_str())));
            } else {
                axes.push(axis);
            }
        }
        let mut section = Self { index, scenario, duts, axes, fixed, points, tables: Vec::new() };
        section.tables = section.make_tables();
        section
    }

    fn make_tables(&self) -> Vec<MetricTable<'a>> {
        let scenario = self.scenario;
        let mut cells: BTreeMap<(&str, &Coordinates), &CellResults> = BTreeMap::new();
        for cell in &scenario.cells {
            cells.entry((&cell.dut, &cell.at)).or_insert(cell);
        }
        let mut tables = Vec::new();
        for metric in &scenario.metrics {
            let method = method_of(scenario, &metric.id);
            let mut rows = Vec::new();
            for at in self.points.iter().copied() {
                let entry = |dut: &&'a str| {
                    TableEntry::new(cells.get(&(*dut, at)).copied(), &metric.id, method)
                };
                let entries: Vec<TableEntry<'a>> = self.duts.iter().map(entry).collect();
                if entries.iter().all(|entry| *entry == TableEntry::NotMeasured) {
                    continue;
                }
                let ratios = ratios(&entries, metric.better);
                let published = scenario.published_at(at, &metric.id).collect();
                rows.push(TableRow { anchor: String::new(), at, entries, ratios, published });
            }
            // A metric of which no switch has a figure says nothing that the others do not.
            let is_measured = |row: &TableRow<'_>| row.entries.iter().any(|e| e.figure().is_some());
            if rows.iter().any(is_measured) {
                let table = MetricTable::new((metric, method), rows, &tables);
                tables.push(table);
            }
        }
        if tables.is_empty() {
            tables.extend(self.table_of_reasons(&cells));
        }
        tables
    }

    /// Table of the reasons alone, where nothing was measured.
    fn table_of_reasons(
        &self,
        cells: &BTreeMap<(&str, &'a Coordinates), &'a CellResults>,
    ) -> Option<MetricTable<'a>> {
        let metric = self.scenario.metrics.first()?;
        let row = |at: &&'a Coordinates| {
            let entry =
                |dut: &&'a str| TableEntry::new(cells.get(&(*dut, *at)).copied(), &metric.id, None);
            let entries: Vec<TableEntry<'a>> = self.duts.iter().map(entry).collect();
            let ratios = ratios(&entries, metric.better);
            TableRow { anchor: String::new(), at, entries, ratios, published: Vec::new() }
        };
        let rows: Vec<TableRow<'a>> = self.points.iter().map(row).collect();
        (!rows.is_empty()).then_some(MetricTable { metric, method: None, rows, derived_from: None })
    }

    /// Why cells have no figures: each reason once, with the switches that have it at the same
    /// points.
    pub(crate) fn absences(&self) -> Vec<Absence<'a>> {
        let mut absences: Vec<Absence<'a>> = Vec::new();
        for cell in &self.scenario.cells {
            let Some((word, reason)) = cell.state.absence() else { continue };
            let place = self.place(&cell.at);
            let same = |known: &&mut Absence<'a>| {
                (known.duts[0], known.word, known.reason) == (cell.dut.as_str(), word, reason)
            };
            match absences.iter_mut().find(same) {
                Some(known) => known.places.push(place),
                None => absences.push(Absence {
                    duts: vec![&cell.dut],
                    word,
                    reason,
                    places: vec![place],
                    is_everywhere: false,
                }),
            }
        }
        for absence in &mut absences {
            absence.is_everywhere = absence.places.len() == self.points.len();
            absence.places.retain(|place| !place.is_empty());
        }
        let mut merged: Vec<Absence<'a>> = Vec::new();
        for one in absences {
            let same = |known: &&mut Absence<'a>| {
                (known.word, known.reason, &known.places) == (one.word, one.reason, &one.places)
            };
            match merged.iter_mut().find(same) {
                Some(known) => known.duts.extend(one.duts),
                None => merged.push(one),
            }
        }
        merged
    }

    /// The values that are the same everywhere: `match fields 1, trial 2 s`.
    pub(crate) fn fixed_text(&self) -> String {
        let all = self.fixed.iter().map(|(axis, value)| value_of(axis, value));
        all.collect::<Vec<_>>().join(", ")
    }

    /// The unit of repetition: starts of a switch, or turns of one start.
    pub(crate) fn turns(&self) -> (&'static str, &'static str) {
        if self.scenario.is_held { ("turn", "turns") } else { ("start", "starts") }
    }

    /// The starts of a figure and what limited it, for who points at it.
    pub(crate) fn starts_of(&self, figure: &ShownFigure<'_>) -> String {
        let row = figure.row;
        let decimals = self.scenario.metric(&row.metric).map_or(2, |metric| metric.decimals);
        let samples = row.samples.iter().map(|sample| number(*sample, decimals));
        let samples: Vec<String> = samples.collect();
        let why = figure.limit.map_or_else(String::new, |limit| format!(". {}", limit.why));
        format!("{}: {}{why}", self.turns().1, samples.join("; "))
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
        let words = self.axes.iter().filter_map(|axis| Some(value_of(axis, at.get(&axis.name)?)));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The same on some of the axes, where a word stands by itself: `frame size 64 B, hub`.
    pub(crate) fn place_on(axes: &[&AxisInfo], at: &Coordinates) -> String {
        let words = axes.iter().filter_map(|axis| {
            let value = at.get(&axis.name)?;
            let is_number = value.starts_with(|c: char| c.is_ascii_digit());
            Some(if is_number { value_of(axis, value) } else { value.clone() })
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Cells that have no figures for one reason, at the same points of each switch.
#[derive(Debug, PartialEq)]
pub(crate) struct Absence<'a> {
    /// The switches.
    pub(crate) duts: Vec<&'a str>,
    /// Its kind, in a word or two.
    pub(crate) word: &'static str,
    /// The reason.
    pub(crate) reason: &'a str,
    /// Its points; empty for a scenario of one point.
    pub(crate) places: Vec<String>,
    /// Whether it is so at every point.
    pub(crate) is_everywhere: bool,
}

impl Absence<'_> {
    /// `ovs: failed at frame size 64 B: why`.
    pub(crate) fn sentence(&self) -> String {
        let place = match self.places.as_slice() {
            _ if self.is_everywhere => String::new(),
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
fn ratios(entries: &[TableEntry<'_>], better: Better) -> Vec<Option<SwitchRatio>> {
    let first = entries.first().and_then(TableEntry::figure);
    let ratio = |(index, entry): (usize, &TableEntry<'_>)| {
        if index == 0 { None } else { SwitchRatio::new(first?, entry.figure()?, better) }
    };
    entries.iter().enumerate().map(ratio).collect()
}

/// The axes that the scenario names, then those that only its cells have.
fn all_axes(scenario: &ScenarioResults) -> Vec<AxisInfo> {
    let mut axes = scenario.axes.clone();
    for cell in &scenario.cells {
        for name in cell.at.keys() {
            if !axes.iter().any(|axis| axis.name == *name) {
                let (label, unit, values) = (name.clone(), String::new(), Vec::new());
                axes.push(AxisInfo { name: name.clone(), label, unit, values });
            }
        }
    }
    axes
}

/// The points of all cells, each once, in the order of the axes and their values.
fn points(scenario: &ScenarioResults) -> Vec<&Coordinates> {
    let mut points: Vec<&Coordinates> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for cell in &scenario.cells {
        if seen.insert(&cell.at) {
            points.push(&cell.at);
        }
    }
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

/// `frame size 64 B`, or without a unit `entries 61,000`.
pub(super) fn value_of(axis: &AxisInfo, value: &str) -> String {
    format!("{} {} {}", axis.label, axis_value(value), axis.unit).trim_end().to_owned()
}

/// A published figure, or its range: `121.0–125.0`.
pub(crate) fn published(figure: &Published, decimals: usize) -> String {
    let to = figure.to.map_or(String::new(), |to| format!("–{}", number(to, decimals)));
    format!("{}{to}", number(figure.value, decimals))
}

impl TableRow<'_> {
    /// The published figures from the lowest to the highest: `121–1,120`.
    pub(crate) fn published_range(&self, decimals: usize) -> Option<String> {
        let values = self.published.iter().flat_map(|one| [Some(one.value), one.to]).flatten();
        let values: Vec<f64> = values.collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let text = |value: f64| short_with_range(value, (value, value), decimals);
        Some(if low == high { text(low) } else { format!("{}–{}", text(low), text(high)) })
    }

    /// The published figures in words: `143,000 (Open vSwitch 1.4)`.
    pub(crate) fn published_text(&self, decimals: usize) -> String {
        let one =
            |figure: &&Published| format!("{} ({})", published(figure, decimals), figure.switch);
        self.published.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

impl MetricTable<'_> {
    /// `Rate, packets/s (more is better)`.
    pub(crate) fn heading(&self) -> String {
        let better = match self.metric.better {
            Better::Higher => "more is better",
            Better::Lower => "less is better",
        };
        format!("{} ({better})", capital(&self.name()))
    }

    /// `Rate, packets/s`.
    pub(crate) fn name(&self) -> String {
        self.with_unit(&self.metric.label)
    }

    /// The values whose median the metric is, `delay`; of another metric its own label.
    pub(crate) fn values_label(&self) -> &str {
        let label = &self.metric.label;
        label.strip_suffix(", median").unwrap_or(label)
    }

    /// The same with the unit: `delay, µs`.
    pub(crate) fn values_name(&self) -> String {
        self.with_unit(self.values_label())
    }

    fn with_unit(&self, label: &str) -> String {
        let unit = &self.metric.unit;
        if unit.is_empty() { label.to_owned() } else { format!("{label}, {unit}") }
    }

    /// Whether a row has a published figure.
    pub(crate) fn has_published(&self) -> bool {
        self.rows.iter().any(|row| !row.published.is_empty())
    }
}
