//! The results as tables for a terminal.
//!
//! No line is wider than the terminal, and all reasons and remarks are in words.

use ::terminal::Table;

use super::findings::{main_findings, warnings};
use super::grid::{Block, TextGrid, blocks};
use super::overview::{BOLD, overview};
use super::section::sections;
use super::{Form, took};
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "terminal",
    about: "Tables as wide as the terminal",
    endings: &["txt"],
    draw: |results, view| match view.is_all {
        true => render_everything(results, view.width),
        false => render(results, view.width, view.has_bold),
    },
};

/// The headline figures of each scenario, what they say, and what failed.
pub(crate) fn render(results: &Results, width: usize, has_bold: bool) -> String {
    let width = width.max(20);
    let sections = sections(results);
    let mut out = String::new();
    let (started, took, machine) = (&results.started, took(results), &results.machine);
    let (cpu, cores) = (&machine.cpu, machine.cores);
    let head = format!("weir lab, {started} ({took}), {cpu} with {cores} cores");
    wrap(&mut out, &head, "", width);
    for section in &sections {
        out.push('\n');
        wrap(&mut out, &section.heading(), "", width);
        wrap(&mut out, &section.scenario.question, "", width);
        let (grid, legend) = overview(section);
        for line in table(&grid).unbroken().plain(width) {
            out += &emphasised(&line, has_bold);
            out.push('\n');
        }
        wrap(&mut out, &legend, "", width);
        for absence in section.absences() {
            wrap(&mut out, &absence.sentence(), "  ", width);
        }
        for sentence in main_findings(section) {
            wrap(&mut out, &sentence, "  ", width);
        }
    }
    list(&mut out, &warnings(results), width);
    for note in &results.notes {
        wrap(&mut out, note, "  ", width);
    }
    out
}

/// Everything that was measured, `width` columns wide.
pub(crate) fn render_everything(results: &Results, width: usize) -> String {
    let width = width.max(20);
    let mut out = String::new();
    for block in blocks(results) {
        match block {
            Block::Heading(text) => {
                if !out.is_empty() {
                    out.push('\n');
                }
                wrap(&mut out, &text, "", width);
            }
            Block::Words(text) => wrap(&mut out, &text, "", width),
            Block::List(sentences) => list(&mut out, &sentences, width),
            Block::Table(grid) => {
                if !grid.title.is_empty() {
                    wrap(&mut out, &grid.title, "", width);
                }
                out += &format!("{}\n", table(&grid).boxed(width));
            }
        }
    }
    out
}

/// A line whose best figures are in bold, or as the others.
fn emphasised(line: &str, has_bold: bool) -> String {
    let pieces = line.split(BOLD).enumerate();
    let piece = |(at, text): (usize, &str)| match at % 2 == 1 && has_bold {
        true => format!("\u{1b}[1m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    pieces.map(piece).collect()
}

fn list(out: &mut String, sentences: &[String], width: usize) {
    for sentence in sentences {
        wrap(out, &format!("- {sentence}"), "  ", width);
    }
}

fn table(grid: &TextGrid) -> Table {
    // Without what moves a terminal's cursor, but for the line ends.
    let plain = |text: &String| text.lines().map(one_line).collect::<Vec<_>>().join("\n");
    let mut table = Table::new(grid.header.iter().map(plain)).keys(grid.names);
    grid.rows.iter().for_each(|(_, texts)| table.row(texts.iter().map(plain)));
    table
}

/// A text in one line, without what moves a terminal's cursor.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|letter| !letter.is_control())
        .collect()
}

/// Adds the text in lines of at most `width` columns; those after the first begin with `indent`.
fn wrap(out: &mut String, text: &str, indent: &str, width: usize) {
    for line in ::terminal::wrap(&one_line(text), width, indent) {
        *out += &line;
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{render, render_everything};
    use crate::present::sample::{hostile, results};

    /// Letters that take no column, and those that take one, are all that the samples have.
    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
    }

    #[test]
    fn the_tables_say_all_in_words() {
        let text = render_everything(&results(), 200);
        assert!(text.starts_with("Results of weir lab\n"), "{text}");
        for piece in [
            "E4 · Cached forwarding",
            "│ 64            ┆ 1       ┆ ",
            "limit: switch",
            "at most 94.2 (ports)",
            "143,000 (Open vSwitch, Xeon L5640)",
            "not supported",
            "failed: ovs-vswitchd ended with signal 9",
            "missing here at match exact: iperf3 is not installed: apt-get install iperf3",
            "linux-bridge: no time left: the budget of 60 s",
            "below the floor",
            "linux-bridge: not supported at frame size 64 B, entries 1000 and 9 more points: ",
            "Everywhere: match fields 1.",
            "- In 3 headline figures beside ovs, weir is better in 3 (",
            "- A figure is the median of its starts with their range",
            "82 figures from 406 samples in all",
        ] {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
    }

    #[test]
    fn the_headlines_are_a_line_a_row() {
        let text = render(&results(), 100, false);
        for piece in [
            "E4 · Cached forwarding",
            "Rate, pps",
            "no time left",
            "missing here",
            "linux-bridge: not supported at frame size 64 B, entries 1000 and 9 more points: ",
            "figures more with --all.",
        ] {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
        assert!(text.lines().count() < 65, "{text}");
        let bold = render(&results(), 100, true);
        assert!(bold.contains("\u{1b}[1m") && !text.contains('\u{2060}'), "{bold}");
        let unmarked = bold.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(unmarked, text, "bold letters take no column");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for results in [results(), hostile()] {
            for width in [80, 100, 140, 220] {
                for text in [render(&results, width, false), render_everything(&results, width)] {
                    assert!(widest(&text) <= width, "{} in {width}\n{text}", widest(&text));
                    assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
                }
            }
        }
    }
}
