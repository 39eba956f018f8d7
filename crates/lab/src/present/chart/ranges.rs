//! Ranges: a line for each switch, with its starts, its median and its range.
//!
//! On a logarithmic scale there is no bar, because its length would mean nothing.

use super::{Curve, Facet, Scale, WIDTH, clipped, drawing};
use crate::present::entry::ShownFigure;
use crate::present::mark::mark;
use crate::present::markup::{Markup, markup};
use crate::present::number::short_with_range;
use crate::present::section::{MetricTable, Section, published, value_of};
use crate::results::{AxisInfo, Published};

/// Heights of a heading, of a name with its figure, and of the track below with its gap.
const HEADING: f64 = 22.0;
const NAME: f64 = 16.0;
const TRACK: f64 = 12.0;
const GAP: f64 = 7.0;

/// Letters of a name and of a heading at most.
const LETTERS: usize = 30;

/// A published figure of every row stands once, below all.
fn common<'a>(facet: &Facet<'_, 'a>) -> Vec<&'a Published> {
    let Some((first, rest)) = facet.rows.split_first() else { return Vec::new() };
    let is_common = !rest.is_empty() && rest.iter().all(|row| row.published == first.published);
    if is_common { first.published.clone() } else { Vec::new() }
}

/// The chart; none where there is no figure.
pub(super) fn draw(
    section: &Section<'_>,
    table: &MetricTable<'_>,
    facet: &Facet<'_, '_>,
    (x, scale): (Option<&AxisInfo>, &Scale),
    curves: &[Curve<'_>],
) -> Option<Markup> {
    let mut entries = facet.rows.iter().flat_map(|row| &row.entries);
    entries.find_map(|entry| entry.figure())?;
    let common = common(facet);
    let (mut inside, mut y) = (Markup::default(), 0.0);
    for row in &facet.rows {
        let has_figure = row.entries.iter().any(|entry| entry.figure().is_some());
        if !has_figure && (row.published.is_empty() || !common.is_empty()) {
            continue;
        }
        if let Some(axis) = x {
            let value = row.at.get(&axis.name).map_or_else(String::new, |v| value_of(axis, v));
            y += HEADING;
            let value = clipped(&value, 2 * LETTERS);
            inside += markup!("<text class=\"soft\" x=\"0\" y=\"{}\">{}</text>", y - 6.0, value);
        }
        for curve in curves {
            let Some(figure) = row.entries[curve.place].figure() else { continue };
            let text = text(figure, table.metric.decimals);
            let head = names(y, curve.name, &text);
            let track = track(section, figure, scale, y + NAME, TRACK);
            inside += markup!(
                "<a href=\"#{}\" class=\"c{}\">{}{}</a>",
                row.anchor,
                curve.colour,
                head,
                track
            );
            y += NAME + TRACK + GAP;
        }
        if common.is_empty() {
            inside += old_lines(&row.published, scale, table.metric.decimals, &mut y);
        }
    }
    inside += old_lines(&common, scale, table.metric.decimals, &mut y);
    Some(drawing(&table.heading(), y, inside))
}

/// A figure with the sign of what limited it.
fn text(figure: &ShownFigure<'_>, decimals: usize) -> String {
    let text = short_with_range(figure.value, figure.range, decimals);
    let sign = figure.limit.and_then(|limit| mark(limit.part));
    let words = sign.map(|(_, words)| words.to_owned()).into_iter().chain(figure.remarks());
    [text].into_iter().chain(words).collect::<Vec<_>>().join(", ")
}

fn names(y: f64, name: &str, text: &str) -> Markup {
    markup!(
        "<text class=\"name\" y=\"{}\">{}</text><text class=\"end\" x=\"{}\" y=\"{0}\">{}</text>",
        y + 12.0,
        clipped(name, LETTERS),
        WIDTH,
        text
    )
}

/// A rectangle; that it begins at 0 is not said.
fn rect(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    let left = (x.abs() > 0.0).then(|| markup!(" x=\"{}\"", x));
    markup!(
        "<rect class=\"{}\"{} y=\"{}\" width=\"{}\" height=\"{}\"/>",
        class,
        left,
        y,
        width,
        height
    )
}

/// The published figures of a row.
fn old_lines(old: &[&Published], scale: &Scale, decimals: usize, y: &mut f64) -> Markup {
    let line = |one: &&Published| {
        let (from, to) = (scale.place(one.value), scale.place(one.to.unwrap_or(one.value)));
        let head = names(*y, &format!("published: {}", one.switch), &published(one, decimals));
        let top = *y + NAME;
        *y += NAME + TRACK + GAP;
        let track = rect("track", (0.0, top), (WIDTH, TRACK));
        let old = rect("old", (from - 2.0, top), (to - from + 4.0, TRACK));
        markup!("<g>{}{}{}</g>", head, track, old)
    };
    old.iter().map(line).collect()
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
pub(crate) fn track(
    section: &Section<'_>,
    figure: &ShownFigure<'_>,
    scale: &Scale,
    top: f64,
    height: f64,
) -> Markup {
    let place = |value: f64| scale.place(value);
    let (zero, end) = (scale.place(f64::MIN), scale.place(f64::MAX));
    let middle = top + height / 2.0;
    let bar = (!scale.is_log).then(|| {
        let (from, to) = (place(0.0).min(place(figure.value)), place(0.0).max(place(figure.value)));
        rect("bar", (from, top), ((to - from).max(1.0), height))
    });
    let bound = figure.bound.filter(|bound| scale.holds(bound.value));
    let bound = bound.map(|bound| {
        markup!(
            "<path class=\"bound\" d=\"M{} {}v{}\"/>",
            place(bound.value),
            top - 1.0,
            height + 2.0
        )
    });
    let dot = |value: &f64| markup!("M{} {}h.1", place(*value), middle);
    let starts: Markup = figure.row.samples.iter().map(dot).collect();
    markup!(
        "<title>{}</title>{}{}{}<path class=\"spread\" d=\"M{} {}H{}\"/><path class=\"start\" \
         d=\"{}\"/><path class=\"middle\" d=\"M{} {}v{}\"/>",
        section.starts_of(figure),
        rect("track", (zero, top), (end - zero, height)),
        bar,
        bound,
        place(figure.range.0),
        middle,
        place(figure.range.1),
        starts,
        place(figure.value),
        top,
        height
    )
}
