//! The verdict of a run as one drawing, light or dark as its reader is, for a README or a slide.
//!
//! It needs no page, no font and no script, and holds nothing that the page does not.

use maud::{Markup, PreEscaped, html};

use super::chart::{Scale, clipped, extent, label, path, tenth, track};
use super::findings::standings;
use super::section::{all_duts, sections};
use super::terminal::one_line;
use super::verdict::{Line, chosen, legend, lines};
use super::{Form, View, machine, text_of, took};
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "svg",
    about: "The headline of each scenario as one picture",
    endings: &["svg"],
    draw: |results, _: &View| render(results),
};

/// The width of all, of the names, and of a published figure.
const WIDTH: f64 = 880.0;
const NAMES: f64 = 262.0;
const PUBLISHED: f64 = 96.0;

/// The height of a row, and the free space around all.
const ROW: f64 = 44.0;
const EDGE: f64 = 16.0;

/// Letters of a line of words.
const LETTERS: usize = 150;

/// The drawing.
fn render(results: &Results) -> String {
    let sections = sections(results);
    let all = lines(&sections);
    let (lines, _) = chosen(all.clone());
    let duts = all_duts(results);
    let has_published = lines.iter().any(|line| !line.row.published.is_empty());
    let end = if has_published { WIDTH - PUBLISHED } else { WIDTH - EDGE };
    let column = (end - NAMES - EDGE) / duts.len().max(1) as f64;
    let left = |dut: usize| NAMES + EDGE + column * dut as f64;
    let top = EDGE + 24.0;
    let below = top + ROW * lines.len() as f64 + 12.0;
    let words = words(results, &all, &lines);
    let words = words.iter().enumerate().flat_map(|(n, text)| {
        let class = if n == 0 { "small" } else { "soft small" };
        ::terminal::wrap(text, LETTERS, "").into_iter().map(move |line| (class, line))
    });
    let words: Vec<(&str, String)> = words.collect();
    let height = below + 16.0 * words.len() as f64 + EDGE;
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) }
            width=(WIDTH) height=(height) role="img" aria-label="Results of weir lab" {
            style { (PreEscaped(style())) }
            rect.ground x="0.5" y="0.5" width=(WIDTH - 1.0) height=(height - 1.0) rx="10" {}
            @for (index, dut) in duts.iter().enumerate() {
                @let place = left(index);
                g class={ "c" (index % 8) } {
                    circle cx=(tenth(place + 5.0)) cy=(EDGE + 8.0) r="5" {}
                }
                (label("name", (place + 16.0, EDGE + 12.0), &clipped(dut, letters(column) - 3)))
            }
            @if has_published { (label("soft end", (WIDTH - EDGE, EDGE + 12.0), "published")) }
            @for (n, line) in lines.iter().enumerate() {
                (row(line, &duts, top + ROW * n as f64, (column, &left)))
            }
            @for (n, (class, text)) in words.iter().enumerate() {
                (label(class, (EDGE, below + 16.0 * (n + 1) as f64), text))
            }
        }
        "\n"
    };
    text_of(svg)
}

/// Letters that fit in a width, about.
fn letters(width: f64) -> usize {
    (width / 6.1) as usize
}

/// A headline: its name, and of each switch the figure over its track.
fn row(
    line: &Line<'_, '_>,
    duts: &[&str],
    y: f64,
    (column, left): (f64, &dyn Fn(usize) -> f64),
) -> Markup {
    let values: Vec<f64> = line.row.figures().flat_map(extent).collect();
    let heading = clipped(&line.section.heading(), letters(NAMES) * 5 / 6);
    html! {
        (path("grid", &format!("M{EDGE} {y}H{}", WIDTH - EDGE)))
        (label("name", (EDGE, y + 18.0), &heading))
        (label("soft small", (EDGE, y + 34.0), &clipped(&line.about(true), letters(NAMES) + 5)))
        @for (index, dut) in duts.iter().enumerate() {
            @let (text, is_best) = line.text(dut);
            @let figure = line.figure(dut);
            @let class = match (figure, is_best) {
                (None, _) => "soft small",
                (Some(_), true) => "best",
                (Some(_), false) => "",
            };
            (label(class, (left(index), y + 18.0), &clipped(&text, letters(column))))
            @if let Some(figure) = figure {
                @let scale = Scale::new(&values, false, (left(index), column - 18.0));
                g class={ "c" (figure.colour) } { (track(figure, &scale, y + 24.0, 11.0)) }
            }
        }
        @if let Some(old) = line.row.published_range() {
            (label("soft end", (WIDTH - EDGE, y + 18.0), &old))
        }
    }
}

/// The words below: how the first switch stands, the signs, and of which run it is.
fn words(results: &Results, all: &[Line<'_, '_>], lines: &[Line<'_, '_>]) -> [String; 3] {
    let day = results.started.get(..10).unwrap_or(&results.started);
    let run = format!("{day}, {}; {}.", took(results), machine(results));
    [standings(all).join(" "), legend(lines), run].map(|text| one_line(&text))
}

/// The rules of the charts with the colours in them: not every program knows variables.
fn style() -> String {
    let rules = include_str!("assets/chart.css");
    let colours = include_str!("assets/colours.css");
    let with = |is_dark: bool| {
        let mut text = rules.to_owned();
        for piece in colours.split("--").skip(1) {
            let Some((name, rest)) = piece.split_once(": light-dark(") else { continue };
            let Some((light, rest)) = rest.split_once(", ") else { continue };
            let Some((dark, _)) = rest.split_once(')') else { continue };
            text = text.replace(&format!("var(--{name})"), if is_dark { dark } else { light });
        }
        text
    };
    format!("{}@media (prefers-color-scheme: dark) {{\n{}}}\n", with(false), with(true))
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::present::sample::{HOSTILE, hostile, results};

    #[test]
    fn the_picture_has_every_headline_in_both_schemes() {
        let text = render(&results());
        for piece in [
            "E1 · Every packet through",
            "E4 · Cached forwarding",
            "no time left",
            "class=\"best\"",
            "143,000",
            "prefers-color-scheme: dark",
            "#0a66b7",
            "#5eb1f2",
        ] {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
        assert!(!text.contains("var(") && text.len() < 40_000, "{} bytes", text.len());
    }

    #[test]
    fn hostile_texts_become_no_elements() {
        let text = render(&hostile());
        assert!(!text.contains("<script") && !text.contains(HOSTILE), "{text}");
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
    }
}
