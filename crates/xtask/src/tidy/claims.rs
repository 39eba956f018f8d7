//! Figures in the documentation that link to a row of the committed results: the row must be there
//! and say the same.
//!
//! A claim is a Markdown link `[figure](docs/results/README.md#row)`, whose text stands word for
//! word in that row. It must never ask whether a figure is good.

use std::collections::HashMap;

use super::tree::resolve;
use super::{Problem, SourceFile};

/// The folder of the committed results.
const RESULTS: &str = "docs/results/";

pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let rows = rows(files);
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is("md") && !file.path.starts_with(RESULTS)) {
        let Some(text) = &file.text else { continue };
        for (index, line) in text.lines().enumerate() {
            for (figure, target) in links(line) {
                let Some(what) = broken(&rows, &file.path, figure, target) else { continue };
                problems.push(Problem::error(&file.path, index + 1, what));
            }
        }
    }
    problems
}

/// The fault of a link that is a claim; none where it has none.
fn broken(
    rows: &HashMap<(&str, &str), &str>,
    from: &str,
    figure: &str,
    target: &str,
) -> Option<String> {
    let (path, anchor) = target.split_once('#')?;
    let path = resolve(from, path);
    let path = path.starts_with(RESULTS).then_some(path)?;
    match rows.get(&(path.as_str(), anchor)) {
        None => Some(format!("`{path}` has no row `{anchor}`; the results were made anew")),
        Some(row) if !says(row, figure) => {
            Some(format!("`{figure}` does not stand in the row `{anchor}` of `{path}`: {row}"))
        }
        Some(_) => None,
    }
}

/// Whether a row has that figure, and not only as a part of a longer number.
fn says(row: &str, figure: &str) -> bool {
    let joins = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    row.match_indices(figure).any(|(at, found)| {
        !row[..at].ends_with(joins) && !row[at + found.len()..].starts_with(|c: char| joins(c))
    })
}

/// The rows of the committed results by file and anchor.
fn rows(files: &[SourceFile]) -> HashMap<(&str, &str), &str> {
    let mut rows = HashMap::new();
    for file in files.iter().filter(|file| file.is("md") && file.path.starts_with(RESULTS)) {
        for line in file.text.iter().flat_map(|text| text.lines()) {
            for piece in line.split("<a id=\"").skip(1) {
                if let Some((anchor, _)) = piece.split_once('"') {
                    rows.insert((file.path.as_str(), anchor), line);
                }
            }
        }
    }
    rows
}

/// The links of a line, as text and target.
fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("](").filter_map(move |(at, _)| {
        let text = &line[..at];
        let text = &text[text.rfind('[')? + 1..];
        let (target, _) = line[at + 2..].split_once(')')?;
        Some((text, target))
    })
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn problems(path: &str, text: &str) -> Vec<String> {
        let results = "| <a id=\"a-1\"></a><a id=\"a-2\"></a>64 | 28,412 ± 310 | 1.47 × |\n";
        let files =
            [SourceFile::new("docs/results/README.md", results), SourceFile::new(path, text)];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_figure_that_its_row_has_is_right() {
        assert!(problems("README.md", "[28,412](docs/results/README.md#a-2) Mb/s").is_empty());
        assert!(problems("docs/x.md", "a [1.47 ×](results/README.md#a-1), [b](x.md)").is_empty());
        assert!(problems("README.md", "[the results](docs/results/README.md)").is_empty());
    }

    #[test]
    fn a_figure_that_its_row_has_not_is_wrong() {
        let wrong = problems("README.md", "x\n[29,000](docs/results/README.md#a-1)");
        assert!(wrong[0].starts_with("README.md:2") && wrong[0].contains("29,000"), "{wrong:?}");
        for figure in ["412", "28", "8,412", "1.4"] {
            let text = format!("[{figure}](docs/results/README.md#a-1)");
            assert_eq!(problems("README.md", &text).len(), 1, "{figure}");
        }
    }

    #[test]
    fn a_row_that_is_gone_is_named() {
        let gone = problems("docs/x.md", "[1.47 ×](results/README.md#b-1)");
        assert!(gone[0].contains("no row `b-1`"), "{gone:?}");
    }
}
