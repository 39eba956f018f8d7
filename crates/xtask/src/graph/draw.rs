//! Drawings of the crate graph: text for the terminal, a table for ARCHITECTURE.md.
//!
//! An arrow that is implied by a longer way is drawn faint (in brackets), so that the eye finds the
//! shape. It must never draw from the plan what the manifests do not contain.

use std::fmt::Write as _;

use super::{CRATES, Graph, Kind, Unsafe};

/// The graph as lines of text, highest level first.
pub(crate) fn text(graph: &Graph) -> String {
    let width = graph.crates.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for row in CRATES.iter().filter(|row| graph.crates.contains(row.name)) {
        let (shown, implied) = arrows_of(graph, row.name);
        let mut arrows = shown.join("  ");
        if !implied.is_empty() {
            let _ = write!(arrows, "  ({})", implied.join(" "));
        }
        let arrows = if arrows.is_empty() { String::new() } else { format!("──►  {arrows}") };
        let _ = writeln!(out, "{}  {:width$}  {arrows}", row.level, row.name);
    }
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// The crates as a table for people: what each is, what it imports, where it may be unsafe.
pub(crate) fn markdown(graph: &Graph) -> String {
    let mut out =
        String::from("| level | crate | is | imports | unsafe |\n|---|---|---|---|---|\n");
    for row in CRATES.iter().filter(|row| graph.crates.contains(row.name)) {
        let (mut imports, implied) = arrows_of(graph, row.name);
        imports.extend(implied);
        let place = match row.unsafe_code {
            Unsafe::Forbid => "forbidden".to_owned(),
            Unsafe::Only([]) => "none so far".to_owned(),
            Unsafe::Only(places) => format!("`{}` only", places.join("`, `")),
        };
        let imports = imports.join(", ");
        let _ =
            writeln!(out, "| {} | `{}` | {} | {imports} | {place} |", row.level, row.name, row.is);
    }
    out
}

/// Direct arrows of a crate: those that no longer way implies, and the rest.
fn arrows_of<'g>(graph: &'g Graph, from: &str) -> (Vec<&'g str>, Vec<&'g str>) {
    let direct: Vec<&str> = graph
        .arrows
        .iter()
        .filter(|arrow| arrow.from == from && arrow.kind == Kind::Normal)
        .map(|arrow| arrow.to.as_str())
        .collect();
    let implied = |to: &str| direct.iter().any(|via| *via != to && reaches(graph, via, to));
    direct.iter().partition(|to| !implied(to))
}

fn reaches(graph: &Graph, from: &str, to: &str) -> bool {
    graph.imports(from, to)
        || graph
            .arrows
            .iter()
            .filter(|arrow| arrow.from == from && arrow.kind == Kind::Normal)
            .any(|arrow| arrow.to != from && reaches(graph, &arrow.to, to))
}

#[cfg(test)]
mod tests {
    use super::{Graph, Kind, markdown, text};
    use crate::graph::Arrow;

    fn graph() -> Graph {
        let mut graph = Graph::default();
        for name in ["openflow", "wire", "channel"] {
            graph.crates.insert(name.into());
        }
        let arrows = [
            ("wire", "openflow", Kind::Normal),
            ("channel", "wire", Kind::Normal),
            ("channel", "openflow", Kind::Normal),
            ("wire", "testkit", Kind::Dev),
        ];
        for (from, to, kind) in arrows {
            let manifest = String::new();
            graph.arrows.insert(Arrow { from: from.into(), to: to.into(), kind, manifest });
        }
        graph
    }

    #[test]
    fn text_puts_implied_arrows_in_brackets() {
        let expected = "2  channel   ──►  wire  (openflow)\n1  wire      ──►  openflow\n\
                        0  openflow\n";
        assert_eq!(text(&graph()), expected);
    }

    #[test]
    fn the_table_says_what_a_crate_is() {
        let row = "| 1 | `wire` | codec: frame to message and back | openflow | forbidden |";
        assert!(markdown(&graph()).contains(row), "{}", markdown(&graph()));
    }
}
