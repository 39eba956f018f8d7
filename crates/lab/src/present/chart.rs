//! Charts of a scenario as drawings without a script: ranges, sweeps and distributions.
//!
//! Each has its starts in it, and the published figures beside them. It must never draw what the
//! results do not hold, and never join points that were not measured.

mod cdf;
mod ranges;
mod scale;
mod sweep;

use super::entry::TableEntry;
use super::markup::{Markup, markup};
use super::number::capital;
use super::section::{MetricTable, Section, TableRow, value_of};
use crate::names::distinct;
use crate::results::{AxisInfo, Plot, PlotKind};

pub(crate) use ranges::{extent, track};
pub(crate) use scale::Scale;

/// The width of a chart, in the units of its drawing.
const WIDTH: f64 = 440.0;

/// Charts of one plot that stand open; the others are folded.
const OPEN_MAX: usize = 4;

/// The same kind of chart for each combination of the axes that it leaves open.
#[derive(Debug)]
struct Facet<'s, 'a> {
    /// The combination in words.
    title: String,
    /// Its rows.
    rows: Vec<&'s TableRow<'a>>,
}

/// A switch: its place in the section, its name, and its colour.
#[derive(Clone, Copy, Debug)]
struct Curve<'a> {
    place: usize,
    name: &'a str,
    colour: usize,
}

/// The charts of a section.
pub(super) fn charts(section: &Section<'_>, duts: &[&str]) -> Markup {
    plots(section).iter().map(|plot| chart(section, plot, duts)).collect()
}

fn chart(section: &Section<'_>, plot: &Plot, duts: &[&str]) -> Markup {
    let Some(table) = section.tables.iter().find(|table| table.metric.id == plot.metric) else {
        return Markup::default();
    };
    let x = section.axes.iter().find(|axis| Some(&axis.name) == plot.x.as_ref());
    let curves: Vec<Curve<'_>> = section
        .duts
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let colour = duts.iter().position(|known| known == name).unwrap_or_default() % 8;
            Curve { place, name, colour }
        })
        .collect();
    let used = if plot.kind == PlotKind::Cdf { None } else { x };
    let facets = facets(section, table, used);
    // One scale for all, so that they can be compared.
    let entries = table.rows.iter().flat_map(|row| &row.entries).filter_map(TableEntry::figure);
    let mut values: Vec<f64> = entries.flat_map(extent).collect();
    let old = table.rows.iter().flat_map(|row| &row.published);
    values.extend(old.flat_map(|one| [Some(one.value), one.to]).flatten());
    let scale = |line| Scale::new(&values, plot.log, line);
    let draw = |facet: &Facet<'_, '_>| match (plot.kind, x) {
        (PlotKind::Cdf, _) => cdf::draw(section, table, facet, &curves),
        (PlotKind::Sweep, Some(x)) => {
            sweep::draw(section, table, facet, (x, &scale(sweep::HEIGHTS)), &curves)
        }
        (PlotKind::Bars, _) | (PlotKind::Sweep, None) => {
            ranges::draw(section, table, facet, (x, &scale((0.0, WIDTH))), &curves)
        }
    };
    let mut drawn: Vec<Markup> = Vec::new();
    for facet in &facets {
        let Some(drawing) = draw(facet) else { continue };
        let title = (!facet.title.is_empty()).then(|| markup!("<h3>{}</h3>", facet.title));
        drawn.push(markup!("<div class=\"facet\">{}{}</div>", title, drawing));
    }
    if drawn.is_empty() {
        return Markup::default();
    }
    let more = drawn.split_off(drawn.len().min(OPEN_MAX));
    let folded = (!more.is_empty()).then(|| {
        markup!(
            "<details><summary>{} more</summary><div class=\"facets\">{}</div></details>",
            more.len(),
            more.into_iter().collect::<Markup>()
        )
    });
    let has_lines = matches!(plot.kind, PlotKind::Cdf | PlotKind::Sweep);
    let legend = has_lines.then(|| legend(table, &curves));
    let name = capital(&table.name());
    let caption = match (plot.kind, x) {
        (PlotKind::Cdf, _) => format!("{}: distribution", capital(&table.values_name())),
        (PlotKind::Bars | PlotKind::Sweep, None) => name,
        (PlotKind::Bars | PlotKind::Sweep, Some(axis)) => format!("{name}, by {}", axis.label),
    };
    markup!(
        "<figure class=\"chart\"><figcaption>{}</figcaption>{}<div class=\"facets\">{}</div>{}\
         <p class=\"soft\">{}</p></figure>",
        caption,
        legend,
        drawn.into_iter().collect::<Markup>(),
        folded,
        note(section, table, plot.kind)
    )
}

/// A drawing of that height.
fn drawing(label: &str, height: f64, inside: Markup) -> Markup {
    markup!(
        "<svg class=\"drawing\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
        WIDTH,
        height,
        label,
        inside
    )
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
            let mut figures = table.rows.iter().flat_map(|row| &row.entries);
            let has_bound = figures.any(|one| one.figure().is_some_and(|one| one.bound.is_some()));
            let bound = if has_bound { "; dashed line: the most that the links carry" } else { "" };
            let old = if table.has_published() { "; dashed box: published" } else { "" };
            format!("Dot: a {start}; mark: the median; line: the range{bound}{old}.")
        }
    }
}

/// The lines of the switches and of the published figures.
fn legend(table: &MetricTable<'_>, curves: &[Curve<'_>]) -> Markup {
    let one = |class: &str, line: &str, text: &str| {
        markup!(
            "<li><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\" class=\"drawing {}\"><path \
             class=\"{}\" \
             d=\"M1 4h26\"/></svg>{}</li>",
            class,
            line,
            text
        )
    };
    let has_figure = |curve: &&Curve<'_>| {
        table.rows.iter().any(|row| row.entries[curve.place].figure().is_some())
    };
    let curves = curves.iter().filter(has_figure);
    let mut list: Markup =
        curves.map(|curve| one(&format!("c{0} d{0}", curve.colour), "line", curve.name)).collect();
    let old = table.rows.iter().flat_map(|row| &row.published);
    let known = distinct(old.map(|one| one.switch.as_str()));
    if !known.is_empty() {
        list += one("", "old", &format!("published: {}", known.join("; ")));
    }
    markup!("<ul class=\"legend\">{}</ul>", list)
}

/// The combinations of the axes but one, in the order of the rows.
fn facets<'s, 'a>(
    section: &'s Section<'a>,
    table: &'s MetricTable<'a>,
    used: Option<&AxisInfo>,
) -> Vec<Facet<'s, 'a>> {
    let open = section.axes.iter().filter(|axis| used.is_none_or(|used| used.name != axis.name));
    let open: Vec<&AxisInfo> = open.collect();
    let mut facets: Vec<Facet<'s, 'a>> = Vec::new();
    for row in &table.rows {
        let values = open.iter().filter_map(|axis| Some((*axis, row.at.get(&axis.name)?)));
        let words: Vec<String> = values.map(|(axis, value)| value_of(axis, value)).collect();
        let title = words.join(", ");
        match facets.iter_mut().find(|facet| facet.title == title) {
            Some(facet) => facet.rows.push(row),
            None => facets.push(Facet { title, rows: vec![row] }),
        }
    }
    facets
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
        |plot: &Plot| section.tables.iter().any(|table| table.metric.id == plot.metric);
    let wanted: Vec<Plot> =
        section.scenario.plots.iter().filter(|plot| has_figures(plot)).cloned().collect();
    if !wanted.is_empty() {
        return distinct(wanted.into_iter().map(|plot| complete(section, plot)));
    }
    let mut plots: Vec<Plot> = Vec::new();
    for table in &section.tables {
        let metric = table.metric.id.clone();
        let numeric = section.axes.iter().find(|axis| is_numeric(section, &axis.name));
        let (kind, x) = match (numeric, section.axes.first()) {
            (Some(axis), _) => (PlotKind::Sweep, Some(axis.name.clone())),
            (None, axis) => (PlotKind::Bars, axis.map(|axis| axis.name.clone())),
        };
        plots.push(Plot { kind, metric: metric.clone(), x, log: false });
        let cells = &section.scenario.cells;
        if cells.iter().flat_map(|cell| &cell.distributions).any(|d| d.metric == metric) {
            plots.push(Plot { kind: PlotKind::Cdf, metric, x: None, log: false });
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

fn is_numeric(section: &Section<'_>, axis: &str) -> bool {
    let values = section.points.iter().filter_map(|at| at.get(axis));
    let mut numbers = values.map(|value| value.parse::<f64>()).peekable();
    numbers.peek().is_some() && numbers.all(|number| number.is_ok_and(f64::is_finite))
}
