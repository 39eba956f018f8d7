//! The results as tables for a terminal.
//!
//! No line is wider than the terminal, and all reasons and remarks are in words.

use ::terminal::Table;

use super::claims::{Claim, claims, overall};
use super::grid::{TextGrid, grids};
use super::number::duration;
use super::section::{Section, sections};
use crate::results::Results;

/// The text, `width` columns wide.
#[must_use]
pub(crate) fn render(results: &Results, width: usize) -> String {
    let width = width.max(20);
    let sections = sections(results);
    let mut out = String::new();
    let quick = if results.is_quick { ", quick" } else { "" };
    let head = format!(
        "weir lab, {} ({}{quick}), {} with {} cores",
        one_line(&results.started),
        duration(results.duration_s),
        one_line(&results.machine.cpu),
        results.machine.cores,
    );
    wrap(&mut out, &head, "", width);
    for section in &sections {
        one(&mut out, section, width);
    }
    let overall = overall(results, &sections);
    list(&mut out, "\nThe run:", &overall, width);
    for note in &results.notes {
        wrap(&mut out, &one_line(note), "  ", width);
    }
    out
}

fn one(out: &mut String, section: &Section<'_>, width: usize) {
    out.push('\n');
    wrap(out, &one_line(&section.heading()), "", width);
    wrap(out, &one_line(&section.scenario.question), "", width);
    let fixed = section.fixed_text();
    if !fixed.is_empty() {
        wrap(out, &one_line(&format!("Everywhere: {fixed}.")), "", width);
    }
    for grid in grids(section) {
        if !grid.title.is_empty() {
            wrap(out, &one_line(&grid.title), "", width);
        }
        *out += &table(&grid, width);
        out.push('\n');
    }
    for absence in section.absences() {
        wrap(out, &one_line(&absence.sentence()), "  ", width);
    }
    list(out, "What the rows say:", &claims(section), width);
}

fn list(out: &mut String, heading: &str, claims: &[Claim], width: usize) {
    if claims.is_empty() {
        return;
    }
    wrap(out, heading, "", width);
    for claim in claims {
        wrap(out, &format!("- {}", one_line(&claim.text())), "  ", width);
    }
}

fn table(grid: &TextGrid, width: usize) -> String {
    let plain_all = |texts: &[String]| texts.iter().map(|text| lines(text)).collect::<Vec<_>>();
    let mut table = Table::new(plain_all(&grid.header)).keys(grid.names);
    grid.rows.iter().for_each(|row| table.row(plain_all(&row.texts)));
    table.boxed(width)
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

/// The same, with its line ends.
fn lines(text: &str) -> String {
    text.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

/// Adds the text in lines of at most `width` columns; those after the first begin with `indent`.
fn wrap(out: &mut String, text: &str, indent: &str, width: usize) {
    for line in ::terminal::wrap(text, width, indent) {
        *out += &line;
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::present::sample::{hostile, results};

    /// Letters that take no column, and those that take one, are all that the samples have.
    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
    }

    #[test]
    fn the_tables_say_all_in_words() {
        let text = render(&results(), 200);
        for piece in [
            "E4 · Cached forwarding",
            "│ 64            ┆ 1       ┆ 1,418,608 ± 27,673 ┆ ",
            "limit: switch",
            "at most 94.2 (ports)",
            "143,000 (Open vSwitch, Xeon L5640)",
            "not supported",
            "failed: ovs-vswitchd ended with signal 9",
            "missing here: iperf3 is not installed: apt-get install iperf3",
            "no time left: the budget of 60 s",
            "below the floor",
            "too few repeats: 1",
            "1.47 (1.43–1.52) ×",
            "linux-bridge: not supported at frame size 64 B, entries 1000 and 9 more points: ",
            "Everywhere: match fields 1.",
            "- Rate of weir is higher than that of ovs (ahead) at 6 of 14 points",
            "- 82 figures from 406 samples",
        ] {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for results in [results(), hostile()] {
            for width in [80, 100, 140, 220] {
                let text = render(&results, width);
                assert!(widest(&text) <= width, "{} in {width}", widest(&text));
                assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
            }
        }
    }
}
