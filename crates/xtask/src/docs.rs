//! `cargo xtask docs`: keeps the parts of the documentation that a program prints.
//!
//! A part stands between `<!-- output of: COMMAND -->` and `<!-- end of output -->`, so that help
//! texts, examples and the crate graph in the documentation are the real ones. It must never run
//! anything but `weir ... --help` and `list`, the drawings of the graph, and print files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::graph::{self, Graph};
use crate::tidy::SourceFile;
use crate::{shell, tidy};

const BEGIN: &str = "<!-- output of: ";
const BEGIN_CLOSE: &str = " -->";
const END: &str = "<!-- end of output -->";

/// Columns of a help text in the documentation.
const COLUMNS: &str = "100";

/// DocsOptions of `cargo xtask docs`.
#[derive(Debug, Args)]
pub(crate) struct DocsOptions {
    /// Change nothing; fail when a part is out of date
    #[arg(long)]
    pub(crate) check: bool,
}

/// Renews, or checks, every printed part.
///
/// # Errors
/// When a command fails, a part has no end, or with `--check` a part is out of date.
pub(crate) fn run(root: &Path, options: &DocsOptions) -> Result<()> {
    let mut stale = Vec::new();
    for file in SourceFile::tracked(root)? {
        let Some(text) = file.text.as_deref().filter(|text| text.contains(BEGIN)) else { continue };
        if !file.is("md") {
            continue;
        }
        let fresh =
            renew(text, &|command| output_of(root, command)).with_context(|| file.path.clone())?;
        if fresh == text {
            continue;
        }
        if options.check {
            stale.push(file.path);
        } else {
            std::fs::write(root.join(&file.path), fresh)?;
            println!("{} renewed", file.path);
        }
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

/// The text with each part replaced by what `output_of` its command gives.
fn renew(text: &str, output_of: &dyn Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let command = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(BEGIN_CLOSE));
        let Some(command) = command else { continue };
        if !lines.by_ref().any(|line| line == END) {
            bail!("the part `{command}` has no line `{END}`");
        }
        let printed = output_of(command)?;
        let printed = printed.trim_end();
        let language = if command.ends_with(".patch") { "diff" } else { "text" };
        if printed.starts_with('|') {
            out.push_str(&format!("{printed}\n{END}\n"));
        } else {
            out.push_str(&format!("```{language}\n{printed}\n```\n{END}\n"));
        }
    }
    Ok(out)
}

fn output_of(root: &Path, command: &str) -> Result<String> {
    match command.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["cargo", "xtask", "graph"] => Ok(graph::text(&graph_of(root)?)),
        ["cargo", "xtask", "graph", "--markdown"] => Ok(graph::markdown(&graph_of(root)?)),
        ["weir", words @ .., last @ ("--help" | "list")] => {
            let mut weir = Command::new(program(root)?);
            weir.args(words).arg(last).env("COLUMNS", COLUMNS);
            let said = shell::capture(&mut weir)?;
            Ok(said.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
        }
        ["cat", path] => {
            std::fs::read_to_string(root.join(path)).with_context(|| (*path).to_owned())
        }
        _ => bail!("`{command}` is none of: cargo xtask graph, weir .. --help, weir .. list, cat"),
    }
}

/// The program in its debug build, made with the whole workspace so that nothing is built twice.
fn program(root: &Path) -> Result<PathBuf> {
    let mut build = shell::cargo();
    build.current_dir(root).args(["build", "--quiet", "--workspace", "--bin", "weir"]);
    shell::run(&mut build)?;
    Ok(shell::target(root).join("debug/weir"))
}

fn graph_of(root: &Path) -> Result<Graph> {
    Graph::from_metadata(&tidy::metadata(root)?)
}

#[cfg(test)]
mod tests {
    use super::renew;
    use anyhow::Result;

    fn echo(command: &str) -> Result<String> {
        Ok(format!("printed by {command}\n"))
    }

    #[test]
    fn a_part_is_replaced_and_the_rest_stays() {
        let text = "head\n<!-- output of: x y -->\nold\nolder\n<!-- end of output -->\ntail\n";
        let fresh = renew(text, &echo).unwrap();
        let expected = "head\n<!-- output of: x y -->\n```text\nprinted by x y\n```\n\
                        <!-- end of output -->\ntail\n";
        assert_eq!(fresh, expected);
        assert_eq!(renew(&fresh, &echo).unwrap(), fresh);
    }

    #[test]
    fn tables_are_not_fenced() {
        let text = "<!-- output of: t -->\n<!-- end of output -->\n";
        let fresh = renew(text, &|_| Ok("| a |\n".into())).unwrap();
        assert_eq!(fresh, "<!-- output of: t -->\n| a |\n<!-- end of output -->\n");
    }

    #[test]
    fn a_part_without_an_end_is_refused() {
        let error = renew("<!-- output of: x -->\n", &echo).unwrap_err();
        assert!(error.to_string().contains("`x` has no line"), "{error}");
    }
}
