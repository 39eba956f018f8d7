//! A sweep: lines over an axis, with the range of the starts as a band.
//!
//! A line must never cross a value that was not measured.

use maud::{Markup, html};

use super::scale::tick;
use super::{Scale, WIDTH, clipped, drawing, label, path, tenth};
use crate::present::entry::ShownFigure;
use crate::present::grouped;
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
    rows: &[&TableRow<'_>],
    (axis, y): (&AxisInfo, &Scale),
    colours: &[usize],
) -> Option<Markup> {
    rows.iter().find_map(|row| row.figures().next())?;
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
    let curve = |dut: usize| {
        let figures: Vec<Option<(f64, &ShownFigure<'_>)>> =
            points.iter().map(|(at, row)| Some((x.place(*at), row.figure(dut)?))).collect();
        // Where a figure is missing the line breaks off.
        let parts = figures.split(Option::is_none).filter(|part| !part.is_empty());
        parts.map(|part| part.iter().copied().flatten().collect()).collect::<Vec<Vec<_>>>()
    };
    let inside = html! {
        (frame(y, labels, title.trim_end()))
        (published(&points, &x, y))
        @for (dut, (name, colour)) in section.duts.iter().zip(colours).enumerate() {
            @for part in curve(dut) {
                g class={ "c" (colour) " d" (colour) } { (stretch(section, table, name, &part, y)) }
            }
        }
    };
    Some(drawing(&table.heading(), HEIGHT, &inside))
}

/// A part of a switch's line over figures that are all there, with its band and points.
fn stretch(
    section: &Section<'_>,
    table: &MetricTable<'_>,
    name: &str,
    part: &[(f64, &ShownFigure<'_>)],
    y: &Scale,
) -> Markup {
    let high = part.iter().map(|(at, figure)| (*at, y.place(figure.range.1)));
    let low = part.iter().rev().map(|(at, figure)| (*at, y.place(figure.range.0)));
    html! {
        (path("band", &(line(high.chain(low)) + "z")))
        (path("line", &line(part.iter().map(|(at, figure)| (*at, y.place(figure.value))))))
        @for (at, figure) in part {
            circle.point cx=(tenth(*at)) cy=(tenth(y.place(figure.value))) r="3.2" {
                title {
                    (name) " " (figure.text(table.metric.decimals)) "; "
                    (section.starts_of(figure))
                }
            }
        }
    }
}

/// A line through places, each by its distance from the one before, to a tenth.
pub(super) fn line(places: impl Iterator<Item = (f64, f64)>) -> String {
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
fn published(points: &[(f64, &TableRow<'_>)], x: &Scale, y: &Scale) -> Markup {
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
pub(super) fn frame(y: &Scale, labels: impl Iterator<Item = (f64, String)>, title: &str) -> Markup {
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
