//! Lines with the range of the starts as a band: sweeps over an axis, and distributions.
//!
//! A line must never cross a value that was not measured. The start is the unit: values of one
//! start are not independent, so that no band may count them.

use maud::{Markup, html};
use stats::{Figure, Observed};

use super::scale::tick;
use super::{Scale, WIDTH, clipped, drawing, label, path, tenth};
use crate::present::entry::ShownFigure;
use crate::present::grouped;
use crate::present::number::{axis_value, count};
use crate::present::section::{TableRow, published};
use crate::results::{AxisInfo, MeasuredDistribution};

const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const BOTTOM: f64 = 210.0;
const TOP: f64 = 10.0;

/// The line of the figures or shares, from the bottom up.
pub(super) const HEIGHTS: (f64, f64) = (BOTTOM, TOP - BOTTOM);

/// A sweep; none where there is no figure.
pub(super) fn sweep(rows: &[&TableRow<'_>], axis: &AxisInfo, y: &Scale) -> Option<Markup> {
    let metric = rows.iter().find_map(|row| row.figures().next())?.metric;
    let value = |row: &TableRow<'_>| row.at.get(&axis.name).cloned().unwrap_or_default();
    let number = |row: &TableRow<'_>| value(row).parse::<f64>().ok().filter(|n| n.is_finite());
    let numbers: Option<Vec<f64>> = rows.iter().map(|row| number(row)).collect();
    let is_numeric = numbers.is_some();
    let numbers = numbers.unwrap_or_else(|| (0..rows.len()).map(|n| n as f64).collect());
    let mut points: Vec<(f64, &TableRow<'_>)> =
        numbers.into_iter().zip(rows.iter().copied()).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let (first, last) = (*xs.first()?, *xs.last()?);
    let line = (LEFT + 12.0, WIDTH - LEFT - 30.0);
    let x = if is_numeric && first > 0.0 && last / first >= 8.0 {
        Scale::new(&xs, true, line)
    } else {
        Scale::between(first, last, line)
    };
    let labels = points.iter().map(|(at, row)| (x.place(*at), axis_value(&value(row))));
    let title = format!("{} {}", axis.label, axis.unit);
    let parts = |dut: usize| {
        let figures: Vec<Option<(f64, &ShownFigure<'_>)>> =
            points.iter().map(|(at, row)| Some((x.place(*at), row.figure(dut)?))).collect();
        // Where a figure is missing the line breaks off.
        let parts = figures.split(Option::is_none).filter(|part| !part.is_empty());
        parts.map(|part| part.iter().copied().flatten().collect()).collect::<Vec<Vec<_>>>()
    };
    let inside = html! {
        (frame(y, labels, title.trim_end()))
        (published_lines(&points, &x, y))
        @for dut in 0..rows[0].entries.len() {
            @for part in parts(dut) { (stretch(&part, y)) }
        }
    };
    Some(drawing(&metric.heading(), HEIGHT, &inside))
}

/// A part of a switch's line over figures that are all there, with its band and points.
fn stretch(part: &[(f64, &ShownFigure<'_>)], y: &Scale) -> Markup {
    let of = |value: fn(&ShownFigure<'_>) -> f64| -> Vec<(f64, f64)> {
        part.iter().map(|(at, figure)| (*at, y.place(value(figure)))).collect()
    };
    let colour = part.first().map_or(0, |(_, figure)| figure.colour);
    html! {
        g class={ "c" (colour) " d" (colour) } {
            (curve([of(|one| one.range.1), of(|one| one.range.0), of(|one| one.value)]))
            @for (at, figure) in part {
                circle.point cx=(tenth(*at)) cy=(tenth(y.place(figure.value))) r="3.2" {
                    title {
                        (figure.cell.dut) " " (figure.text()) "; " (figure.starts_text())
                    }
                }
            }
        }
    }
}

/// A band between two lines, and the line in it.
fn curve([there, back, middle]: [Vec<(f64, f64)>; 3]) -> Markup {
    html! {
        (path("band", &(line(there.into_iter().chain(back.into_iter().rev())) + "z")))
        (path("line", &line(middle.into_iter())))
    }
}

/// A line through places, each by its distance from the one before, to a tenth.
fn line(places: impl Iterator<Item = (f64, f64)>) -> String {
    let (mut line, mut last) = ("m".to_owned(), [0; 2]);
    for (n, (x, y)) in places.enumerate() {
        let at = [x, y].map(|place| (10.0 * place).round() as i64);
        for (axis, step) in [at[0] - last[0], at[1] - last[1]].into_iter().enumerate() {
            // A sign parts two numbers as a blank does.
            let gap = if step < 0 || (n, axis) == (0, 0) { "" } else { " " };
            line += &format!("{gap}{}", step as f64 / 10.0);
        }
        last = at;
    }
    line
}

/// The published figures, a line for each switch.
fn published_lines(points: &[(f64, &TableRow<'_>)], x: &Scale, y: &Scale) -> Markup {
    let places = points.iter().flat_map(|(at, row)| {
        row.published.iter().map(move |one| {
            let middle = f64::midpoint(one.value, one.to.unwrap_or(one.value));
            (one.switch.as_str(), (x.place(*at), y.place(middle)))
        })
    });
    let curve = |places: &[(f64, f64)]| match places {
        [(at, height)] => line([(at - 9.0, *height), (at + 9.0, *height)].into_iter()),
        places => line(places.iter().copied()),
    };
    html! {
        @for (name, places) in grouped(places) {
            path.old d=(curve(&places)) { title { "published: " (name) } }
        }
    }
}

/// Both axes with their marks; labels that would run into each other are left out.
fn frame(y: &Scale, labels: impl Iterator<Item = (f64, String)>, title: &str) -> Markup {
    let right = WIDTH - 8.0;
    let mut grid = format!("M{LEFT} {BOTTOM}H{right}");
    let mut texts = Vec::new();
    for value in y.ticks() {
        let at = y.place(value);
        grid += &format!("M{LEFT} {}H{right}", tenth(at));
        texts.push(label("end", (LEFT - 5.0, at + 4.0), &tick(value)));
    }
    let mut free = 0.0;
    for (at, text) in labels {
        let text = clipped(&text, 14);
        let half = 3.4 * text.chars().count() as f64;
        grid += &format!("M{} {BOTTOM}v4", tenth(at));
        if at - half >= free {
            free = at + half + 4.0;
            texts.push(label("", (at.min(WIDTH - half), BOTTOM + 17.0), &text));
        }
    }
    texts.push(label("", (f64::midpoint(LEFT, right), BOTTOM + 33.0), &clipped(title, 60)));
    html! {
        (path("grid", &grid))
        g.axis { @for text in texts { (text) } }
    }
}

/// The shares at which the starts are compared; the rest of the tail is often one value.
const SHARES: [f64; 22] = [
    0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95,
    0.97, 0.98, 0.99, 0.995, 0.999,
];

/// The value of a start at a share, between the quantiles that are known.
fn value_at(start: &MeasuredDistribution, share: f64) -> Option<f64> {
    let after = start.quantiles.iter().position(|(known, _)| *known >= share);
    let after = after.unwrap_or(start.quantiles.len().checked_sub(1)?);
    let (to, high) = start.quantiles[after];
    let Some((from, low)) = after.checked_sub(1).map(|at| start.quantiles[at]) else {
        return Some(high);
    };
    let part = if to > from { ((share - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
    Some(low + part * (high - low))
}

/// Each share with the median of the starts there and their range.
fn levels(starts: &[&MeasuredDistribution]) -> Vec<(f64, Figure)> {
    let level = |share: f64| {
        let values = starts.iter().filter_map(|start| value_at(start, share));
        Some((share, Figure::of(&values.map(Observed::from).collect::<Vec<_>>())?))
    };
    SHARES.into_iter().filter_map(level).collect()
}

/// The distributions at a point; none where there is none.
pub(super) fn distributions(rows: &[&TableRow<'_>]) -> Option<Markup> {
    let [row] = rows else { return None };
    let of_figure = |figure: &ShownFigure<'_>| {
        let is_own = |one: &&MeasuredDistribution| one.metric == row.metric.id && one.count > 0;
        let starts: Vec<_> = figure.cell.distributions.iter().filter(is_own).collect();
        let levels = levels(&starts);
        let (one, many) = figure.scenario.turns();
        let title = format!("{}, {}", figure.cell.dut, count(starts.len(), one, many));
        (!levels.is_empty()).then_some((figure.colour, title, levels))
    };
    let found: Vec<_> = row.figures().filter_map(of_figure).collect();
    let levels = || found.iter().flat_map(|(.., levels)| levels);
    // A tail leaves a linear scale no room for the rest.
    let is_positive = levels().all(|(_, level)| level.low > 0.0);
    let shown = levels().filter(|(share, _)| is_positive || (0.05..=0.95).contains(share));
    let mut values: Vec<f64> = shown.flat_map(|(_, level)| [level.low, level.high]).collect();
    if values.is_empty() {
        return None;
    }
    values.extend(row.published_values());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let wants_log = values.iter().copied().fold(0.0, f64::max) / least > 8.0;
    let x = Scale::new(&values, wants_log, (LEFT, WIDTH - LEFT - 14.0));
    let y = Scale::between(0.0, 1.0, HEIGHTS);
    let labels = x.ticks().into_iter().map(|value| (x.place(value), tick(value)));
    let inside = html! {
        (frame(&y, labels, &row.metric.values_name()))
        @for one in &row.published {
            @let ends = [one.value, one.to.unwrap_or(one.value)].map(|end| x.place(end));
            @let at = f64::midpoint(ends[0], ends[1]);
            g {
                title { "published: " (one.switch) " " (published(one, row.metric.decimals)) }
                (path("old", &format!("M{} {TOP}V{BOTTOM}", tenth(at))))
                @let place = format!("translate({} {}) rotate(-90)", tenth(at - 4.0), BOTTOM - 6.0);
                text class="soft small" transform=(place) { (clipped(&one.switch, 30)) }
            }
        }
        @for (colour, title, levels) in &found {
            @let of = |value: fn(&Figure) -> f64| -> Vec<(f64, f64)> {
                levels.iter().map(|(share, at)| (x.place(value(at)), y.place(*share))).collect()
            };
            g class={ "c" (colour) " d" (colour) } {
                title { (title) }
                (curve([of(|at| at.low), of(|at| at.high), of(|at| at.median)]))
            }
        }
    };
    Some(drawing(&format!("Distribution of {}", row.metric.values_label()), HEIGHT, &inside))
}
