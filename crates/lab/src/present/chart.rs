//! Charts of a scenario as drawings without a script: ranges, sweeps and distributions.
//!
//! Each has its starts in it, and the published figures beside them. It must never draw what the
//! results do not hold, and never join points that were not measured.

mod curves;
mod ranges;
mod scale;

use maud::{Markup, html};

use super::grouped;
use super::number::capital;
use super::section::{MetricTable, Section, TableRow, place_on};
use crate::names::distinct;
use crate::results::{AxisInfo, PlotKind};

pub(crate) use ranges::{extent, track};
pub(crate) use scale::Scale;

/// The width of a chart, in the units of its drawing.
const WIDTH: f64 = 440.0;

/// Charts of one plot that stand open; the others are folded.
const OPEN_MAX: usize = 4;

/// A kind of chart with the axis that it is over.
#[derive(Clone, Copy, PartialEq)]
enum Kind<'a> {
    Ranges(Option<&'a AxisInfo>),
    Sweep(&'a AxisInfo),
    Distributions,
}

/// The charts of a section.
pub(super) fn charts(section: &Section<'_>) -> Markup {
    html! {
        @for (table, kind, is_log) in plots(section) {
            (chart(section, &section.tables[table], kind, is_log))
        }
    }
}

/// The same kind of chart for each combination of the axes that it is not over.
fn chart(section: &Section<'_>, table: &MetricTable<'_>, kind: Kind<'_>, is_log: bool) -> Markup {
    let name = capital(&table.metric.name());
    let (x, caption) = match kind {
        Kind::Distributions => {
            (None, format!("{}: distribution", capital(&table.metric.values_name())))
        }
        Kind::Ranges(None) => (None, name),
        Kind::Ranges(Some(x)) | Kind::Sweep(x) => (Some(x), format!("{name}, by {}", x.label)),
    };
    // One scale for all, so that they can be compared.
    let mut values: Vec<f64> = table.figures().flat_map(extent).collect();
    values.extend(table.rows.iter().flat_map(TableRow::published_values));
    let scale = |line| Scale::new(&values, is_log, line);
    let draw = |rows: &[&TableRow<'_>]| match kind {
        Kind::Ranges(x) => ranges::draw(rows, x, &scale((0.0, WIDTH))),
        Kind::Sweep(x) => curves::sweep(rows, x, &scale(curves::HEIGHTS)),
        Kind::Distributions => curves::distributions(rows),
    };
    let open = section.axes.iter().copied().filter(|axis| Some(*axis) != x);
    let open: Vec<&AxisInfo> = open.collect();
    let title = |row: &TableRow<'_>| place_on(&open, row.at, false);
    let facets = grouped(table.rows.iter().map(|row| (title(row), row)));
    let drawn = facets.iter().filter_map(|(title, rows)| Some((title, draw(rows)?)));
    let mut drawn: Vec<Markup> = drawn.map(|(title, drawing)| facet(title, &drawing)).collect();
    if drawn.is_empty() {
        return Markup::default();
    }
    let more = drawn.split_off(drawn.len().min(OPEN_MAX));
    html! {
        figure.chart {
            figcaption { (caption) }
            @if !matches!(kind, Kind::Ranges(_)) { (legend(table)) }
            div.facets { @for facet in drawn { (facet) } }
            @if !more.is_empty() {
                details {
                    summary { (more.len()) " more" }
                    div.facets { @for facet in more { (facet) } }
                }
            }
            p.soft { (note(table, kind, section.scenario.turns())) }
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
fn note(table: &MetricTable<'_>, kind: Kind<'_>, (start, starts): (&str, &str)) -> String {
    match kind {
        Kind::Distributions => format!(
            "Line: the median of the {starts}, at each share; band: from the lowest to the highest \
             of them; up to 99.9 % of the values."
        ),
        Kind::Sweep(_) => format!("Point: the median of the {starts}; band: their range."),
        Kind::Ranges(_) => {
            let has_bound = table.figures().any(|figure| figure.bound.is_some());
            let bound = if has_bound { "; dashed line: the most that the links carry" } else { "" };
            let old = if table.has_published() { "; dashed box: published" } else { "" };
            format!("Dot: a {start}; mark: the median; line: the range{bound}{old}.")
        }
    }
}

/// The lines of the switches and of the published figures.
fn legend(table: &MetricTable<'_>) -> Markup {
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
            @for dut in 0..table.rows[0].entries.len() {
                @if let Some(figure) = table.rows.iter().find_map(|row| row.figure(dut)) {
                    (one(&format!("c{0} d{0}", figure.colour), "line", &figure.cell.dut))
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

/// The plots that the scenario wants and has figures for, by their tables; where it wants none,
/// those that its figures are fit for.
fn plots<'a>(section: &Section<'a>) -> Vec<(usize, Kind<'a>, bool)> {
    let ranges = Kind::Ranges(section.axes.first().copied());
    let wanted = section.scenario.plots.iter().filter_map(|plot| {
        let table = section.tables.iter().position(|table| table.metric.id == plot.metric)?;
        let x = section.axes.iter().copied().find(|axis| Some(&axis.name) == plot.x.as_ref());
        let kind = match (plot.kind, x) {
            (PlotKind::Cdf, _) => Kind::Distributions,
            (PlotKind::Sweep, Some(x)) => Kind::Sweep(x),
            (PlotKind::Bars, Some(x)) => Kind::Ranges(Some(x)),
            // An axis that does not vary is none.
            (PlotKind::Bars | PlotKind::Sweep, None) => ranges,
        };
        Some((table, kind, plot.log))
    });
    let wanted = distinct(wanted);
    if !wanted.is_empty() {
        return wanted;
    }
    let is_numeric = |axis: &&AxisInfo| {
        let mut values = section.points.iter().filter_map(|at| at.get(&axis.name));
        values.all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    };
    let x = section.axes.iter().copied().find(is_numeric);
    let fit = |(place, table): (usize, &MetricTable<'_>)| {
        let mut known = section.scenario.cells.iter().flat_map(|cell| &cell.distributions);
        let has_some = known.any(|one| one.metric == table.metric.id);
        let kinds = [Some(x.map_or(ranges, Kind::Sweep)), has_some.then_some(Kind::Distributions)];
        kinds.into_iter().flatten().map(move |kind| (place, kind, false))
    };
    section.tables.iter().enumerate().flat_map(fit).collect()
}
