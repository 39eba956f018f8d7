//! Ranges: a line for each switch, with its starts, its median and its range.
//!
//! On a logarithmic scale there is no bar, because its length would mean nothing.

use maud::{Markup, html};

use super::{Scale, WIDTH, clipped, drawing, label, path, tenth};
use crate::present::entry::ShownFigure;
use crate::present::section::{TableRow, published, value_of};
use crate::results::{AxisInfo, Published};

/// Heights of a heading, of a name with its figure, and of the track below with its gap.
const HEADING: f64 = 22.0;
const NAME: f64 = 16.0;
const TRACK: f64 = 12.0;
const GAP: f64 = 7.0;

/// Letters of a name and of a heading at most.
const LETTERS: usize = 30;

/// The chart; none where there is no figure.
pub(super) fn draw(rows: &[&TableRow<'_>], x: Option<&AxisInfo>, scale: &Scale) -> Option<Markup> {
    let metric = rows.iter().find_map(|row| row.figures().next())?.metric;
    let decimals = metric.decimals;
    // A published figure of every row stands once, below all.
    let is_common = rows.len() > 1 && rows.iter().all(|row| row.published == rows[0].published);
    let common: &[&Published] = if is_common { &rows[0].published } else { &[] };
    let (mut parts, mut y) = (Vec::new(), 0.0);
    for row in rows {
        let has_figure = row.figures().next().is_some();
        if !has_figure && (row.published.is_empty() || !common.is_empty()) {
            continue;
        }
        if let Some(axis) = x {
            let value = row.at.get(&axis.name).map_or_else(String::new, |v| value_of(axis, v));
            y += HEADING;
            parts.push(label("soft", (0.0, y - 6.0), &clipped(&value, 2 * LETTERS)));
        }
        for figure in row.figures() {
            parts.push(html! {
                a href={ "#" (row.anchor) } class={ "c" (figure.colour) } {
                    (names(y, &figure.cell.dut, &text(figure)))
                    (track(figure, scale, y + NAME, TRACK))
                }
            });
            y += NAME + TRACK + GAP;
        }
        if common.is_empty() {
            parts.extend(row.published.iter().map(|one| old_line(one, scale, decimals, &mut y)));
        }
    }
    parts.extend(common.iter().map(|one| old_line(one, scale, decimals, &mut y)));
    let inside = html! { @for part in parts { (part) } };
    Some(drawing(&metric.heading(), y, &inside))
}

/// A figure with what limited it and its remarks.
fn text(figure: &ShownFigure<'_>) -> String {
    let limit = figure.mark().map(|(_, words)| words.to_owned());
    let words = limit.into_iter().chain(figure.remarks());
    [figure.short_text()].into_iter().chain(words).collect::<Vec<_>>().join(", ")
}

fn names(y: f64, name: &str, text: &str) -> Markup {
    html! {
        (label("name", (0.0, y + 12.0), &clipped(name, LETTERS)))
        (label("end", (WIDTH, y + 12.0), text))
    }
}

fn rect(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    html! {
        rect class=(class) x=(tenth(x)) y=(tenth(y)) width=(tenth(width)) height=(tenth(height)) {}
    }
}

/// A published figure at `y`, which moves below it.
fn old_line(one: &Published, scale: &Scale, decimals: usize, y: &mut f64) -> Markup {
    let (from, to) = (scale.place(one.value), scale.place(one.to.unwrap_or(one.value)));
    let (at, top) = (*y, *y + NAME);
    *y += NAME + TRACK + GAP;
    html! {
        g {
            (names(at, &format!("published: {}", one.switch), &published(one, decimals)))
            (rect("track", (0.0, top), (WIDTH, TRACK)))
            (rect("old", (from - 2.0, top), (to - from + 4.0, TRACK)))
        }
    }
}

/// The values that a scale has to hold. A bound that is far away would leave no length.
pub(crate) fn extent(figure: &ShownFigure<'_>) -> Vec<f64> {
    let mut values = vec![figure.value, figure.range.0, figure.range.1];
    values.extend(&figure.row.samples);
    let near = figure.bound.filter(|bound| bound.value < 1.5 * figure.value);
    values.extend(near.map(|bound| bound.value));
    values
}

/// Bar, starts, median and range of a figure, in a line of that height.
pub(crate) fn track(figure: &ShownFigure<'_>, scale: &Scale, top: f64, height: f64) -> Markup {
    let place = |value: f64| scale.place(value);
    let (zero, end, middle) = (place(f64::MIN), place(f64::MAX), top + height / 2.0);
    let [low, value, high] =
        [figure.range.0, figure.value, figure.range.1].map(|one| tenth(place(one)));
    let (from, to) = (place(0.0).min(place(figure.value)), place(0.0).max(place(figure.value)));
    let bound = figure.bound.map(|bound| bound.value).filter(|bound| scale.holds(*bound));
    let starts = figure.row.samples.iter().map(|start| tenth(place(*start)));
    let starts: String = starts.map(|start| format!("M{start} {middle}h.1")).collect();
    html! {
        title { (figure.starts_text()) }
        (rect("track", (zero, top), (end - zero, height)))
        @if !scale.is_log { (rect("bar", (from, top), ((to - from).max(1.0), height))) }
        @if let Some(bound) = bound {
            (path("bound", &format!("M{} {}v{}", tenth(place(bound)), top - 1.0, height + 2.0)))
        }
        (path("spread", &format!("M{low} {middle}H{high}")))
        (path("start", &starts))
        (path("middle", &format!("M{value} {top}v{height}")))
    }
}
