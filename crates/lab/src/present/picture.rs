//! The verdict of a run as one drawing, light or dark as its reader is, for a README or a slide.
//!
//! It needs no page, no font and no script, and holds nothing that the page does not.

use super::chart::{Scale, clipped, extent, track};
use super::findings::standings;
use super::markup::{Markup, markup};
use super::number::duration;
use super::section::sections;
use super::terminal::one_line;
use super::verdict::{Line, all_duts, chosen, legend, lines};
use super::{Form, View};
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

/// A letter's width, about.
const LETTER: f64 = 6.1;

/// Letters of a line of words.
const LETTERS: usize = 150;

/// The drawing.
fn render(results: &Results) -> String {
    let sections = sections(results);
    let all = lines(&sections);
    let (lines, _) = chosen(all.clone());
    let duts = all_duts(results);
    let has_published = lines.iter().any(|line| line.published().is_some());
    let end = if has_published { WIDTH - PUBLISHED } else { WIDTH - EDGE };
    let column = (end - NAMES - EDGE) / duts.len().max(1) as f64;
    let left = |dut: usize| NAMES + EDGE + column * dut as f64;
    let mut inside = Markup::default();
    for (index, dut) in duts.iter().enumerate() {
        inside += markup!(
            "<g class=\"c{}\"><circle cx=\"{}\" cy=\"{}\" r=\"5\"/></g><text class=\"name\" \
             x=\"{}\" \
             y=\"{}\">{}</text>",
            index % 8,
            left(index) + 5.0,
            EDGE + 8.0,
            left(index) + 16.0,
            EDGE + 12.0,
            clipped(dut, (column / LETTER) as usize - 3)
        );
    }
    if has_published {
        let at = WIDTH - EDGE;
        inside +=
            markup!("<text class=\"soft end\" x=\"{}\" y=\"{}\">published</text>", at, EDGE + 12.0);
    }
    let mut y = EDGE + 24.0;
    for line in &lines {
        inside += row(line, &duts, y, (column, &left));
        y += ROW;
    }
    y += 12.0;
    for (index, text) in words(results, &all, &lines).iter().enumerate() {
        for part in ::terminal::wrap(text, LETTERS, "") {
            y += 16.0;
            let class = if index == 0 { "small" } else { "soft small" };
            inside +=
                markup!("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>", class, EDGE, y, part);
        }
    }
    let height = y + EDGE;
    markup!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{0}\" \
         height=\"{1}\" \
         role=\"img\" aria-label=\"Results of weir lab\"><style>{}</style><rect class=\"ground\" \
         x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>{}</svg>\n",
        WIDTH,
        height,
        Markup::made(style()),
        WIDTH - 1.0,
        height - 1.0,
        inside
    )
    .into_text()
}

/// A headline: its name, and of each switch the figure over its track.
fn row(
    line: &Line<'_, '_>,
    duts: &[&str],
    y: f64,
    (column, left): (f64, &dyn Fn(usize) -> f64),
) -> Markup {
    let letters = (NAMES / LETTER) as usize;
    let mut row = markup!(
        "<path class=\"grid\" d=\"M{} {}H{}\"/><text class=\"name\" x=\"{0}\" y=\"{}\">{}</text>\
         <text class=\"soft small\" x=\"{0}\" y=\"{}\">{}</text>",
        EDGE,
        y,
        WIDTH - EDGE,
        y + 18.0,
        clipped(&line.section.heading(), letters * 5 / 6),
        y + 34.0,
        clipped(&line.about(true), letters + 5)
    );
    let values: Vec<f64> = line.figures().flat_map(extent).collect();
    for (index, dut) in duts.iter().enumerate() {
        let (text, is_best) = line.text(dut);
        let figure = line.entry(dut).and_then(|entry| entry.figure());
        let class = match figure {
            None => "soft small",
            Some(_) if is_best => "best",
            Some(_) => "",
        };
        let text = clipped(&text, (column / LETTER) as usize);
        let scale = Scale::new(&values, false, (left(index), column - 18.0));
        let track = figure.map(|figure| track(line.section, figure, &scale, y + 24.0, 11.0));
        row += markup!(
            "<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text><g class=\"c{}\">{}</g>",
            class,
            left(index),
            y + 18.0,
            text,
            index % 8,
            track
        );
    }
    let old = line.published().map(|old| {
        markup!("<text class=\"soft end\" x=\"{}\" y=\"{}\">{}</text>", WIDTH - EDGE, y + 18.0, old)
    });
    row += old.unwrap_or_default();
    row
}

/// The words below: how the first switch stands, the signs, and of which run it is.
fn words(results: &Results, all: &[Line<'_, '_>], lines: &[Line<'_, '_>]) -> Vec<String> {
    let machine = &results.machine;
    let kind = if machine.virtual_machine { "virtual machine" } else { "machine" };
    let run = format!(
        "{}, {}{}; {kind} with {} cores ({}), {}.",
        results.started.get(..10).unwrap_or(&results.started),
        duration(results.duration_s),
        if results.is_quick { ", quick" } else { "" },
        machine.cores,
        machine.cpu,
        machine.kernel
    );
    [standings(all).join(" "), legend(lines), run].iter().map(|text| one_line(text)).collect()
}

/// The rules of the charts with the colours in them: not every program that shows drawings knows
/// variables.
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
