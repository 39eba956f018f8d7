//! `cargo xtask instructions`: how many instructions the classifier, the caches and the codec
//! execute, counted by Callgrind and compared with the figures in the tree.
//!
//! A loaded machine counts the same as a quiet one, so a loss is seen in the change that makes it
//! and not in a benchmark weeks later. A gain fails too: it is committed with `--update`, or the
//! next loss would hide behind it. It must never compare counts of another compiler than the
//! pinned one, nor of code that was built without optimisation.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::{shell, tool};

/// Runs the benches under Callgrind. Its version is that of the library the benches are made with.
pub(crate) const RUNNER: tool::Tool = tool::Tool { name: "gungraun-runner", version: "0.20.0" };

/// The committed figures, relative to the workspace.
const FIGURES: &str = "docs/instructions.json";

/// The distance that a count may have from its committed figure, in per cent.
const TOLERANCE_PERCENT: u64 = 3;

/// Instructions by the name of what executes them: crate, function and case.
type Counts = BTreeMap<String, u64>;

/// Options of `cargo xtask instructions`.
#[derive(Debug, Default, Args)]
pub(crate) struct InstructionsOptions {
    /// Write the counts of this run into the file of committed figures
    #[arg(long)]
    update: bool,
}

/// Counts, and compares or renews the committed figures.
///
/// # Errors
/// When a program is missing, a bench does not run, or a count is too far from its figure.
pub(crate) fn run(root: &Path, options: &InstructionsOptions) -> Result<()> {
    let Some(runner) = tool::find(&RUNNER) else { bail!("{}", RUNNER.how_to_install()) };
    if !shell::on_path("valgrind") {
        bail!("valgrind is missing (Debian's package valgrind)");
    }
    let counts = count(root, &runner)?;
    if options.update {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        std::fs::write(root.join(FIGURES), text).context(FIGURES)?;
        println!("{} figures in {FIGURES}", counts.len());
        return Ok(());
    }
    let problems = differences(&committed(root)?, &counts);
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!(
            "{} of {} counts; a gain or a wanted loss is committed with `cargo xtask instructions \
             --update`",
            problems.len(),
            counts.len()
        );
    }
    println!("{} counts within {TOLERANCE_PERCENT} % of their figures", counts.len());
    Ok(())
}

/// Builds and runs every bench.
fn count(root: &Path, runner: &Path) -> Result<Counts> {
    let mut command = shell::cargo();
    // With all of the workspace and optimised as the program, so that little is compiled anew.
    command.current_dir(root).args(["bench", "--quiet", "--workspace"]);
    command.args(["--bench", "instructions", "--", "--output-format=json"]);
    let output = shell::capture(command.env("GUNGRAUN_RUNNER", runner))?;
    let cases = output.lines().filter(|line| line.starts_with('{'));
    cases.map(|line| read(line).with_context(|| format!("a bench printed {line}"))).collect()
}

/// Name and count in what the runner prints for a case; the name begins with the crate's folder.
fn read(line: &str) -> Option<(String, u64)> {
    let case: Value = serde_json::from_str(line).ok()?;
    let (function, id) = (case["function_name"].as_str()?, case["id"].as_str()?);
    let package = Path::new(case["package_dir"].as_str()?).file_name()?.to_str()?;
    let total = &case["profiles"][0]["data"]["total"]["metrics"];
    Some((format!("{package}/{function}/{id}"), total["Ir"]["values"]["new"].as_u64()?))
}

fn committed(root: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(root.join(FIGURES)).context(FIGURES)?;
    serde_json::from_str(&text).context(FIGURES)
}

/// Differences from what is committed, a line each.
fn differences(committed: &Counts, counted: &Counts) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, count) in counted {
        let Some(figure) = committed.get(name) else {
            problems.push(format!("{name}: {count} instructions, and no figure in {FIGURES}"));
            continue;
        };
        if count.abs_diff(*figure) * 100 > figure * TOLERANCE_PERCENT {
            let percent = (*count as f64 / *figure as f64 - 1.0) * 100.0;
            problems
                .push(format!("{name}: {count} instructions instead of {figure}: {percent:+.1} %"));
        }
    }
    let gone = committed.keys().filter(|name| !counted.contains_key(*name));
    problems.extend(gone.map(|name| format!("{name}: a figure in {FIGURES}, and nothing counted")));
    problems
}

#[cfg(test)]
mod tests {
    use super::{Counts, differences, read};

    #[test]
    fn a_case_is_read_from_what_the_runner_prints() {
        let line = r#"{"package_dir":"/w/crates/wire","function_name":"decode","id":"flow_mod",
            "profiles":[{"data":{"total":{"metrics":{"Ir":{"values":{"new":514999}}}}}}]}"#;
        assert_eq!(read(line), Some(("wire/decode/flow_mod".into(), 514_999)));
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn counts_beyond_three_per_cent_are_named() {
        let counts = |rows: &[(&str, u64)]| -> Counts {
            rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let committed = counts(&[("a", 1000), ("b", 1000), ("c", 1000), ("gone", 5)]);
        let counted = counts(&[("a", 1030), ("b", 1031), ("c", 969), ("new", 7)]);
        let found = differences(&committed, &counted);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "b: 1031 instructions instead of 1000: +3.1 %");
        assert_eq!(found[1], "c: 969 instructions instead of 1000: -3.1 %");
        assert!(found[2].starts_with("new: 7 instructions, and no figure"), "{found:?}");
        assert!(found[3].starts_with("gone: a figure"), "{found:?}");
    }
}
