//! The data that the page carries: the results as they are, and what the charts need besides.
//!
//! The script does no statistics: intervals and bands are made here. It must never change a sample.

use serde_json::{Value, json};

use super::escape::script_json;
use crate::present::number::capital;
use crate::present::section::Section;
use crate::results::{MetricInfo, Plot, PlotKind, Results};
use stats::band_reach;

/// From this number of bytes on, quantiles are thinned and what programs said is left out.
pub(super) const DATA_MAX: usize = 6 << 20;

/// Quantiles of a thinned distribution.
const THINNED: usize = 41;

/// Every switch, in the order of the results: the order of their colours.
pub(super) fn all_duts(results: &Results) -> Vec<&str> {
    let mut duts: Vec<&str> = Vec::new();
    let named = results.switches.iter().map(|dut| dut.name.as_str());
    let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
    for dut in named.chain(cells.map(|cell| cell.dut.as_str())) {
        if !duts.contains(&dut) {
            duts.push(dut);
        }
    }
    duts
}

/// The plots that the scenario wants and has figures for; where it wants none, the plots that its
/// figures are fit for.
pub(super) fn plots(section: &Section<'_>) -> Vec<Plot> {
    let has_figures =
        |plot: &Plot| section.tables.iter().any(|table| table.metric.id == plot.metric);
    let wanted: Vec<Plot> =
        section.scenario.plots.iter().filter(|plot| has_figures(plot)).cloned().collect();
    if !wanted.is_empty() {
        return wanted.into_iter().map(|plot| complete(section, plot)).collect();
    }
    let mut plots: Vec<Plot> = Vec::new();
    for table in &section.tables {
        let metric = table.metric.id.clone();
        let numeric = section.axes.iter().find(|axis| is_numeric(section, &axis.name));
        let (kind, x) = match (numeric, section.axes.first()) {
            (Some(axis), _) => (PlotKind::Sweep, Some(axis.name.clone())),
            (None, axis) => (PlotKind::Bars, axis.map(|axis| axis.name.clone())),
        };
        plots.push(Plot { kind, metric: metric.clone(), x, y: None, log: false });
        let cells = &section.scenario.cells;
        if cells.iter().flat_map(|cell| &cell.distributions).any(|d| d.metric == metric) {
            plots.push(Plot { kind: PlotKind::Cdf, metric, x: None, y: None, log: false });
        }
    }
    plots
}

/// A plot whose axes exist: a sweep or heat map over an axis that does not vary is one of bars.
fn complete(section: &Section<'_>, plot: Plot) -> Plot {
    let varies = |name: &Option<String>| {
        name.as_ref().is_some_and(|name| section.axes.iter().any(|axis| axis.name == *name))
    };
    let is_drawn = match plot.kind {
        PlotKind::Sweep => varies(&plot.x),
        PlotKind::HeatMap => varies(&plot.x) && varies(&plot.y),
        PlotKind::Bars | PlotKind::Cdf => true,
    };
    let kind = if is_drawn { plot.kind } else { PlotKind::Bars };
    let first = || section.axes.first().map(|axis| axis.name.clone());
    let x = [plot.x, plot.y.clone().filter(|_| !is_drawn)].into_iter().find(varies).flatten();
    let x = if kind == PlotKind::Cdf { None } else { x.or_else(first) };
    Plot { kind, x, ..plot }
}

fn is_numeric(section: &Section<'_>, axis: &str) -> bool {
    let values = section.points.iter().filter_map(|at| at.get(axis));
    let mut numbers = values.map(|value| value.parse::<f64>()).peekable();
    numbers.peek().is_some() && numbers.all(|number| number.is_ok_and(f64::is_finite))
}

/// `Rate, packets/s, by frame size`.
pub(super) fn caption(section: &Section<'_>, plot: &Plot) -> String {
    let metric = section.scenario.metric(&plot.metric);
    let name = metric.map_or_else(|| plot.metric.clone(), metric_name);
    let axis = |id: &Option<String>| {
        let axis = section.axes.iter().find(|axis| Some(&axis.name) == id.as_ref());
        axis.map(|axis| axis.label.clone())
    };
    match (plot.kind, axis(&plot.x), axis(&plot.y)) {
        (PlotKind::Cdf, ..) => format!("{name}: distribution"),
        (PlotKind::HeatMap, Some(x), Some(y)) => format!("{name}, by {x} and {y}"),
        (PlotKind::Bars | PlotKind::Sweep | PlotKind::HeatMap, Some(x), _) => {
            format!("{name}, by {x}")
        }
        (PlotKind::Bars | PlotKind::Sweep | PlotKind::HeatMap, None, _) => name,
    }
}

fn metric_name(metric: &MetricInfo) -> String {
    if metric.unit.is_empty() {
        capital(&metric.label)
    } else {
        format!("{}, {}", capital(&metric.label), metric.unit)
    }
}

/// Adds both parts of the data to the page.
pub(super) fn write(page: &mut String, results: &Results, sections: &[Section<'_>]) {
    let (raw, is_thinned) = embedded(results);
    let view = json!({
        "duts": all_duts(results),
        "thinned": is_thinned,
        "scenarios": sections.iter().map(section_view).collect::<Vec<_>>(),
    });
    // Results hold nothing that JSON cannot: the only failure would be our own mistake.
    let text = |value: &Value| serde_json::to_string(value).expect("JSON values are JSON");
    for (id, text) in [("results", raw), ("view", text(&view))] {
        let json = script_json(&text);
        *page += &format!("<script type=\"application/json\" id=\"{id}\">{json}</script>\n");
    }
}

/// The results as JSON, thinned where they are too large for a page, and whether they are.
fn embedded(results: &Results) -> (String, bool) {
    let json = |results: &Results| {
        serde_json::to_string(results).expect("results are representable as JSON")
    };
    let whole = json(results);
    if whole.len() <= DATA_MAX {
        return (whole, false);
    }
    let mut thin = results.clone();
    for cell in thin.scenarios.iter_mut().flat_map(|scenario| &mut scenario.cells) {
        for distribution in &mut cell.distributions {
            distribution.quantiles = thinned(&distribution.quantiles);
        }
        for trial in &mut cell.trials {
            trial.raw = Value::Null;
        }
    }
    (json(&thin), true)
}

/// The same curve with less points; both ends stay.
fn thinned(quantiles: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if quantiles.len() <= THINNED {
        return quantiles.to_vec();
    }
    let place = |index: usize| index * (quantiles.len() - 1) / (THINNED - 1);
    (0..THINNED).filter_map(|index| quantiles.get(place(index)).copied()).collect()
}

fn section_view(section: &Section<'_>) -> Value {
    let values = |axis: &str| {
        let mut values: Vec<&String> = Vec::new();
        for value in section.points.iter().filter_map(|at| at.get(axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let axes: Vec<Value> = section
        .axes
        .iter()
        .map(|axis| {
            json!({
                "name": axis.name, "label": axis.label, "unit": axis.unit,
                "values": values(&axis.name), "numeric": is_numeric(section, &axis.name),
            })
        })
        .collect();
    let mut rows = Vec::new();
    for table in &section.tables {
        for row in &table.rows {
            for (dut, entry) in section.duts.iter().zip(&row.entries) {
                let Some(figure) = entry.figure() else { continue };
                rows.push(json!({
                    "metric": table.metric.id, "dut": dut, "at": row.at, "row": row.anchor,
                    "value": figure.value, "interval": (figure.starts > 1).then_some(figure.range),
                    "samples": figure.row.samples, "text": figure.text(table.metric.decimals),
                    "limit": figure.limit.map(|limit| limit.part.label()),
                    "bound": figure.bound.map(|bound| bound.value),
                }));
            }
        }
    }
    json!({
        "axes": axes, "duts": section.duts, "plots": plots(section), "rows": rows,
        "bands": bands(section),
    })
}

/// Half the width of the 95 % band around each cell's distributions, by metric (Dvoretzky, Kiefer,
/// Wolfowitz).
fn bands(section: &Section<'_>) -> Vec<Value> {
    let mut bands = Vec::new();
    for (index, cell) in section.scenario.cells.iter().enumerate() {
        let mut metrics: Vec<&str> = Vec::new();
        for distribution in &cell.distributions {
            if metrics.contains(&distribution.metric.as_str()) {
                continue;
            }
            metrics.push(&distribution.metric);
            let of_metric = cell.distributions.iter().filter(|d| d.metric == distribution.metric);
            let values: u64 = of_metric.map(|distribution| distribution.count).sum();
            bands.push(json!({
                "cell": index, "metric": distribution.metric, "half": half_width(values),
            }));
        }
    }
    bands
}

/// A band's reach depends on nothing but the number of values.
fn half_width(values: u64) -> Option<f64> {
    (values > 0).then(|| band_reach(values))
}
