//! A sweep: lines over an axis, with the range of the starts as a band.
//!
//! A line must never cross a value that was not measured.

use super::scale::tick;
use super::{Curve, Facet, Scale, WIDTH, clipped, drawing};
use crate::present::entry::ShownFigure;
use crate::present::markup::{Markup, markup};
use crate::present::number::axis_value;
use crate::present::section::{MetricTable, Section, TableRow};
use crate::results::AxisInfo;

pub(super) const HEIGHT: f64 = 250.0;
pub(super) const LEFT: f64 = 46.0;
pub(super) const BOTTOM: f64 = 210.0;
pub(super) const TOP: f64 = 10.0;

/// The line of its figures, from the bottom up.
pub(super) const HEIGHTS: (f64, f64) = (BOTTOM, TOP - BOTTOM);

/// The chart; none where there is no figure.
pub(super) fn draw(
    section: &Section<'_>,
    table: &MetricTable<'_>,
    facet: &Facet<'_, '_>,
    (axis, y): (&AxisInfo, &Scale),
    curves: &[Curve<'_>],
) -> Option<Markup> {
    let value = |row: &TableRow<'_>| row.at.get(&axis.name).cloned().unwrap_or_default();
    let number = |row: &TableRow<'_>| value(row).parse::<f64>().ok().filter(|n| n.is_finite());
    let is_numeric = facet.rows.iter().all(|row| number(row).is_some());
    let mut points: Vec<(f64, &TableRow<'_>)> = facet
        .rows
        .iter()
        .enumerate()
        .map(|(n, row)| (if is_numeric { number(row).unwrap_or_default() } else { n as f64 }, *row))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut entries = points.iter().flat_map(|(_, row)| &row.entries);
    entries.find_map(|entry| entry.figure())?;
    let (first, last) = (points.first()?.0, points.last()?.0);
    let line = (LEFT + 12.0, WIDTH - LEFT - 30.0);
    let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let x = if is_numeric && first > 0.0 && last / first >= 8.0 {
        Scale::new(&xs, true, line)
    } else {
        Scale::between(first, last, line)
    };
    let labels = points.iter().map(|(at, row)| (x.place(*at), axis_value(&value(row))));
    let title = format!("{} {}", axis.label, axis.unit);
    let mut inside = frame(y, labels, title.trim_end());
    inside += published(&points, &x, y);
    for curve in curves {
        let figures: Vec<_> = points
            .iter()
            .map(|(at, row)| (x.place(*at), row.entries[curve.place].figure()))
            .collect();
        // Where a figure is missing the line breaks off.
        let parts = figures.split(|(_, figure)| figure.is_none());
        for part in parts.filter(|part| !part.is_empty()) {
            let known = part.iter().filter_map(|(at, figure)| Some((*at, (*figure)?)));
            let known: Vec<_> = known.collect();
            let high = known.iter().map(|(at, figure)| (*at, y.place(figure.range.1)));
            let low = known.iter().rev().map(|(at, figure)| (*at, y.place(figure.range.0)));
            let band = path(&high.chain(low).collect::<Vec<_>>());
            let line =
                path(&known.iter().map(|(at, f)| (*at, y.place(f.value))).collect::<Vec<_>>());
            let point = |(at, figure): &(f64, &ShownFigure<'_>)| {
                let text = figure.text(table.metric.decimals);
                let title = format!("{} {text}; {}", curve.name, section.starts_of(figure));
                markup!(
                    "<circle class=\"point\" cx=\"{}\" cy=\"{}\" \
                     r=\"3.2\"><title>{}</title></circle>",
                    *at,
                    y.place(figure.value),
                    title
                )
            };
            inside += markup!(
                "<g class=\"c{} d{0}\"><path class=\"band\" d=\"{}z\"/><path class=\"line\" \
                 d=\"{}\"/>{}</g>",
                curve.colour,
                band,
                line,
                known.iter().map(point).collect::<Markup>()
            );
        }
    }
    Some(drawing(&table.heading(), HEIGHT, inside))
}

/// A line through places, each by its distance from the one before, to a tenth.
pub(super) fn path(places: &[(f64, f64)]) -> Markup {
    let (mut line, mut last) = (markup!("m"), [0; 2]);
    for (n, (x, y)) in places.iter().enumerate() {
        let at = [*x, *y].map(|place| (10.0 * place).round() as i64);
        for (axis, step) in [at[0] - last[0], at[1] - last[1]].into_iter().enumerate() {
            // A sign parts two numbers as a blank does.
            let gap = if step < 0 || (n, axis) == (0, 0) { "" } else { " " };
            line += markup!("{}{}", gap, step as f64 / 10.0);
        }
        last = at;
    }
    line
}

/// The published figures, a line for each switch.
fn published(points: &[(f64, &TableRow<'_>)], x: &Scale, y: &Scale) -> Markup {
    let mut lines: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for (at, row) in points {
        for one in &row.published {
            let middle = (one.value + one.to.unwrap_or(one.value)) / 2.0;
            let place = (x.place(*at), y.place(middle));
            match lines.iter_mut().find(|(name, _)| *name == one.switch) {
                Some((_, places)) => places.push(place),
                None => lines.push((&one.switch, vec![place])),
            }
        }
    }
    let line = |(name, mut places): (&str, Vec<(f64, f64)>)| {
        if let [(at, height)] = places[..] {
            places = vec![(at - 9.0, height), (at + 9.0, height)];
        }
        markup!(
            "<path class=\"old\" d=\"{}\"><title>published: {}</title></path>",
            path(&places),
            name
        )
    };
    lines.into_iter().map(line).collect()
}

/// Both axes with their marks; labels that would run into each other are left out.
pub(super) fn frame(y: &Scale, labels: impl Iterator<Item = (f64, String)>, title: &str) -> Markup {
    let right = WIDTH - 8.0;
    let (mut grid, mut texts) = (markup!("M{} {}H{}", LEFT, BOTTOM, right), Markup::default());
    let mut write = |class: &str, (x, y): (f64, f64), text: &str| {
        texts += markup!(
            "<text{} x=\"{}\" y=\"{}\">{}</text>",
            Markup::made(class.to_owned()),
            x,
            y,
            text
        );
    };
    for value in y.ticks() {
        let at = y.place(value);
        grid += markup!("M{} {}H{}", LEFT, at, right);
        write(" class=\"end\"", (LEFT - 5.0, at + 4.0), &tick(value));
    }
    let mut free = 0.0;
    for (at, label) in labels {
        let label = clipped(&label, 14);
        let half = 3.4 * label.chars().count() as f64;
        grid += markup!("M{} {}v4", at, BOTTOM);
        if at - half >= free {
            free = at + half + 4.0;
            write("", (at.min(WIDTH - half), BOTTOM + 17.0), &label);
        }
    }
    write("", ((LEFT + right) / 2.0, BOTTOM + 33.0), &clipped(title, 60));
    markup!("<path class=\"grid\" d=\"{}\"/><g class=\"axis\">{}</g>", grid, texts)
}
