//! Charts of a scenario as drawings without a script: ranges, sweeps and distributions.
//!
//! Each has its starts in it, and the published figures beside them. It must never draw what the
//! results do not hold, and never join points that were not measured.

mod cdf;
mod ranges;
mod scale;
mod sweep;

use maud::{Markup, html};

use super::grouped;
use super::number::capital;
use super::section::{MetricTable, Section, TableRow, place_on};
use crate::names::distinct;
use crate::results::{AxisInfo, Plot, PlotKind};

pub(crate) use ranges::{extent, track};
pub(crate) use scale::Scale;

/// The width of a chart, in the units of its drawing.
const WIDTH: f64 = 440.0;

/// Charts of one plot that stand open; the others are folded.
const OPEN_MAX: usize = 4;

/// The charts of a section.
pub(super) fn charts(section: &Section<'_>, duts: &[&str]) -> Markup {
    html! {
        @for plot in plots(section) {
            @if let Some(table) = section.tables.iter().find(|one| one.metric.id == plot.metric) {
                (chart(section, table, &plot, duts))
            }
        }
    }
}

/// The same kind of chart for each combination of the axes that the plot leaves open.
fn chart(section: &Section<'_>, table: &MetricTable<'_>, plot: &Plot, duts: &[&str]) -> Markup {
    let x = section.axes.iter().copied().find(|axis| Some(&axis.name) == plot.x.as_ref());
    let colour = |dut: &&str| duts.iter().position(|known| known == dut).unwrap_or_default() % 8;
    let colours: Vec<usize> = section.duts.iter().map(colour).collect();
    // One scale for all, so that they can be compared.
    let mut values: Vec<f64> = table.figures().flat_map(extent).collect();
    values.extend(table.rows.iter().flat_map(TableRow::published_values));
    let scale = |line| Scale::new(&values, plot.log, line);
    let draw = |rows: &[&TableRow<'_>]| match (plot.kind, x) {
        (PlotKind::Cdf, _) => cdf::draw(section, table, rows, &colours),
        (PlotKind::Sweep, Some(x)) => {
            sweep::draw(section, table, rows, (x, &scale(sweep::HEIGHTS)), &colours)
        }
        (PlotKind::Bars, _) | (PlotKind::Sweep, None) => {
            ranges::draw(section, table, rows, (x, &scale((0.0, WIDTH))), &colours)
        }
    };
    let open =
        |axis: &&AxisInfo| plot.kind == PlotKind::Cdf || x.is_none_or(|x| x.name != axis.name);
    let open: Vec<&AxisInfo> = section.axes.iter().copied().filter(open).collect();
    let title = |row: &TableRow<'_>| place_on(&open, row.at, false);
    let facets = grouped(table.rows.iter().map(|row| (title(row), row)));
    let drawn = facets.iter().filter_map(|(title, rows)| Some((title, draw(rows)?)));
    let mut drawn: Vec<Markup> = drawn.map(|(title, drawing)| facet(title, &drawing)).collect();
    if drawn.is_empty() {
        return Markup::default();
    }
    let more = drawn.split_off(drawn.len().min(OPEN_MAX));
    let name = capital(&table.name());
    let caption = match (plot.kind, x) {
        (PlotKind::Cdf, _) => format!("{}: distribution", capital(&table.values_name())),
        (PlotKind::Bars | PlotKind::Sweep, None) => name,
        (PlotKind::Bars | PlotKind::Sweep, Some(axis)) => format!("{name}, by {}", axis.label),
    };
    html! {
        figure.chart {
            figcaption { (caption) }
            @if matches!(plot.kind, PlotKind::Cdf | PlotKind::Sweep) {
                (legend(section, table, &colours))
            }
            div.facets { @for facet in drawn { (facet) } }
            @if !more.is_empty() {
                details {
                    summary { (more.len()) " more" }
                    div.facets { @for facet in more { (facet) } }
                }
            }
            p.soft { (note(section, table, plot.kind)) }
        }
    }
}

fn facet(title: &str, drawing: &Markup) -> Markup {
    html! {
        div.facet {
            @if !title.is_empty() { h3 { (title) } }
            (drawing)
        }
    }
}

/// A drawing of that height.
fn drawing(label: &str, height: f64, inside: &Markup) -> Markup {
    html! {
        svg.drawing viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(label) {
            (inside)
        }
    }
}

/// A text at a place of a drawing.
pub(crate) fn label(class: &str, (x, y): (f64, f64), text: &str) -> Markup {
    html! { text class=(class) x=(tenth(x)) y=(tenth(y)) { (text) } }
}

/// A path of a drawing.
pub(crate) fn path(class: &str, line: &str) -> Markup {
    html! { path class=(class) d=(line) {} }
}

/// A place in a drawing: a tenth is less than any screen shows.
pub(crate) fn tenth(place: f64) -> f64 {
    (10.0 * place).round() / 10.0
}

/// Meaning of the signs in a chart.
fn note(section: &Section<'_>, table: &MetricTable<'_>, kind: PlotKind) -> String {
    let (start, starts) = section.turns();
    match kind {
        PlotKind::Cdf => format!(
            "Line: the median of the {starts}, at each share; band: from the lowest to the highest \
             of them; up to 99.9 % of the values."
        ),
        PlotKind::Sweep => format!("Point: the median of the {starts}; band: their range."),
        PlotKind::Bars => {
            let has_bound = table.figures().any(|figure| figure.bound.is_some());
            let bound = if has_bound { "; dashed line: the most that the links carry" } else { "" };
            let old = if table.has_published() { "; dashed box: published" } else { "" };
            format!("Dot: a {start}; mark: the median; line: the range{bound}{old}.")
        }
    }
}

/// The lines of the switches and of the published figures.
fn legend(section: &Section<'_>, table: &MetricTable<'_>, colours: &[usize]) -> Markup {
    let one = |class: &str, line: &str, text: &str| {
        html! {
            li {
                svg viewBox="0 0 28 8" aria-hidden="true" class={ "drawing " (class) } {
                    (path(line, "M1 4h26"))
                }
                (text)
            }
        }
    };
    let old = table.rows.iter().flat_map(|row| &row.published);
    let known = distinct(old.map(|one| one.switch.as_str()));
    html! {
        ul.legend {
            @for (dut, (name, colour)) in section.duts.iter().zip(colours).enumerate() {
                @if table.rows.iter().any(|row| row.figure(dut).is_some()) {
                    (one(&format!("c{colour} d{colour}"), "line", name))
                }
            }
            @if !known.is_empty() { (one("", "old", &format!("published: {}", known.join("; ")))) }
        }
    }
}

/// A text of at most so many letters.
pub(crate) fn clipped(text: &str, letters: usize) -> String {
    let text = super::terminal::one_line(text);
    if text.chars().count() <= letters {
        return text;
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// The plots that the scenario wants and has figures for; where it wants none, the plots that its
/// figures are fit for.
fn plots(section: &Section<'_>) -> Vec<Plot> {
    let has_figures =
        |plot: &&Plot| section.tables.iter().any(|table| table.metric.id == plot.metric);
    let wanted = section.scenario.plots.iter().filter(has_figures).cloned();
    let wanted = distinct(wanted.map(|plot| complete(section, plot)));
    if !wanted.is_empty() {
        return wanted;
    }
    let is_numeric = |axis: &&AxisInfo| {
        let mut values = section.points.iter().filter_map(|at| at.get(&axis.name));
        values.all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    };
    let x = section.axes.iter().copied().find(is_numeric).map(|axis| axis.name.clone());
    let mut plots: Vec<Plot> = Vec::new();
    for table in &section.tables {
        let metric = &table.metric.id;
        let plot = |kind| Plot { kind, metric: metric.to_string(), x: x.clone(), log: false };
        plots.push(complete(section, plot(PlotKind::Sweep)));
        let mut cells = section.scenario.cells.iter().flat_map(|cell| &cell.distributions);
        if cells.any(|one| one.metric == *metric) {
            plots.push(complete(section, plot(PlotKind::Cdf)));
        }
    }
    plots
}

/// A plot whose axis exists: a sweep over an axis that does not vary is one of bars.
fn complete(section: &Section<'_>, plot: Plot) -> Plot {
    let x = plot.x.filter(|name| section.axes.iter().any(|axis| axis.name == *name));
    let first = || section.axes.first().map(|axis| axis.name.clone());
    let (kind, x) = match plot.kind {
        PlotKind::Cdf => (PlotKind::Cdf, None),
        PlotKind::Sweep if x.is_some() => (PlotKind::Sweep, x),
        PlotKind::Bars | PlotKind::Sweep => (PlotKind::Bars, x.or_else(first)),
    };
    Plot { kind, x, ..plot }
}
