//! The results as Markdown, for a README or an issue.
//!
//! Texts from outside are escaped: none becomes a tag, a link or the end of a table's cell.

use super::grid::{Block, TextGrid, blocks};
use super::{Form, View, one_line};
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "markdown",
    about: "Tables for a README or an issue",
    endings: &["md"],
    draw: |results, _: &View| render(results),
};

/// The text.
fn render(results: &Results) -> String {
    let mut out = String::new();
    for block in blocks(results) {
        let mark = if out.is_empty() { "#" } else { "##" };
        match block {
            Block::Heading(text) => out += &format!("{mark} {}\n\n", escape(&text)),
            Block::Words(text) => out += &format!("{}\n\n", escape(&text)),
            Block::List(sentences) => list(&mut out, &sentences),
            Block::Table(grid) => table(&mut out, &grid),
        }
    }
    out
}

fn list(out: &mut String, sentences: &[String]) {
    for sentence in sentences {
        *out += &format!("- {}\n", escape(sentence));
    }
    if !sentences.is_empty() {
        out.push('\n');
    }
}

fn table(out: &mut String, grid: &TextGrid) {
    if !grid.title.is_empty() {
        *out += &format!("**{}**\n\n", escape(&grid.title));
    }
    let line = |texts: &[String]| {
        let cells =
            texts.iter().map(|text| text.lines().map(escape).collect::<Vec<_>>().join("<br>"));
        cells.collect::<Vec<_>>().join(" | ")
    };
    let rule = (0..grid.header.len()).map(|n| if n < grid.names { "---" } else { "--:" });
    let rule = rule.collect::<Vec<_>>().join("|");
    *out += &format!("| {} |\n|{rule}|\n", line(&grid.header));
    for (anchor, texts) in &grid.rows {
        *out += &format!("| <a id=\"{anchor}\"></a>{} |\n", line(texts));
    }
    out.push('\n');
}

/// A text in one line whose signs mean nothing, without what moves a terminal's cursor.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for letter in one_line(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, render};
    use crate::present::sample::{hostile, results};

    #[test]
    fn the_tables_are_those_of_markdown() {
        let text = render(&results());
        for piece in [
            "# Results of weir lab\n\nStarted 2026-11-23T08:00:00Z, 12 min 5 s, quick; virtual",
            "## E1 · Every packet through the controller\n\nWhat does it cost when every",
            "| metric | weir | ovs | linux-bridge | weir / ovs | published |\n|---|--:|--:|--",
            "**Rate, packets/s (more is better)**\n\n| frame size, B | entries | weir | ovs | ",
            "| <a id=\"cached-forwarding-rate-pps-64-1\"></a>\
             64 | 1 | 1,425,540 \\[1,423,778–1,443,788\\]",
            "- cached-forwarding, seed: 7\n",
        ] {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
    }

    #[test]
    fn each_table_has_one_width_whatever_the_texts() {
        for results in [results(), hostile()] {
            let text = render(&results);
            let mut width = None;
            for line in text.lines() {
                let bars = line.replace("\\|", "").matches('|').count();
                if !line.starts_with('|') {
                    width = None;
                } else if let Some(width) = width {
                    assert_eq!(bars, width, "{line}");
                } else {
                    width = Some(bars);
                }
                assert!(!line.contains("<script") && !line.contains("<b>"), "{line}");
            }
        }
    }

    #[test]
    fn signs_mean_nothing() {
        assert_eq!(escape("a|b *c* `d`\n<e> [f](g)"), r"a\|b \*c\* \`d\` &lt;e&gt; \[f\](g)");
        assert_eq!(escape("a\u{1b}[2J\u{7}b"), r"a\[2Jb");
    }
}
