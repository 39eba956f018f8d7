//! `cargo xtask example`: proves that the examples of CONTRIBUTING.md still hold.
//!
//! CONTRIBUTING.md adds a match field, an action and so on in a few places; each change is kept as
//! a patch. This applies each to a copy of the workspace and has the whole of it checked, tests and
//! benches included: so the places that a patch names are all that the compiler demands. Then it
//! runs the tests that they touch, once for all patches of the same crates. It must never change
//! the work tree.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell;
use crate::tidy::SourceFile;

/// A change that CONTRIBUTING.md shows.
struct Example {
    /// The patch below `docs/examples`.
    name: &'static str,
    /// The crates whose tests must pass with it.
    packages: &'static [&'static str],
    /// Those of the tests whose names have this.
    tests: &'static str,
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "add-match-field",
        packages: &["weir-openflow", "weir-wire", "weir-packet", "weir-datapath"],
        tests: "",
    },
    Example {
        name: "add-action",
        packages: &["weir-openflow", "weir-wire", "weir-datapath"],
        tests: "",
    },
    Example {
        name: "add-instruction",
        packages: &["weir-openflow", "weir-wire", "weir-datapath"],
        tests: "",
    },
    Example { name: "add-version", packages: &["weir-openflow", "weir-wire"], tests: "" },
    Example { name: "add-event", packages: &["weir-controller"], tests: "handle::" },
    Example { name: "add-scenario", packages: &["weir-lab"], tests: "campaign::" },
];

/// Proves each example.
///
/// # Errors
/// When the copy cannot be made, or one of them does not hold.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut failed = Vec::new();
    for (name, outcome) in run_all(root)? {
        if let Err(error) = outcome {
            println!("{name}: {error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("examples that do not hold: {}", failed.join(", "));
    }
    Ok(())
}

/// Proves each example in one copy of the workspace; gives the outcome of each.
///
/// # Errors
/// When the copy cannot be made, a patch has no row here, or one cannot be taken back.
pub(crate) fn run_all(root: &Path) -> Result<Vec<(&'static str, Result<()>)>> {
    for entry in std::fs::read_dir(root.join("docs/examples")).context("docs/examples")? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let is_known = |name| EXAMPLES.iter().any(|example| example.name == name);
        if file.strip_suffix(".patch").is_some_and(|name| !is_known(name)) {
            bail!("docs/examples/{file} has no row in crates/xtask/src/example.rs");
        }
    }
    let copy = root.join("target/example/weir");
    renew(root, &copy)?;
    let mut outcomes = Vec::new();
    for example in EXAMPLES {
        // One after the other, so that each holds by itself and only what it touches is compiled.
        let outcome = apply(root, &copy, example, &["--verbose"]);
        let is_applied = outcome.is_ok();
        let outcome = outcome.context("docs/examples and CONTRIBUTING.md need an update");
        outcomes.push((example.name, outcome.and_then(|()| check(root, &copy, example))));
        if is_applied {
            apply(root, &copy, example, &["--reverse"])?;
        }
    }
    // The tests of one would compile most of what those of the next compile again.
    outcomes.push(("their tests", test(root, &copy)));
    Ok(outcomes)
}

/// Applies the patch of an example to the copy.
fn apply(root: &Path, copy: &Path, example: &Example, how: &[&str]) -> Result<()> {
    let patch = root.join("docs/examples").join(format!("{}.patch", example.name));
    // Outside any repository of git, so that the patch is applied to the copy.
    let mut git = Command::new("git");
    git.current_dir(copy).env("GIT_CEILING_DIRECTORIES", root.join("target/example"));
    shell::run(git.arg("apply").args(how).arg(patch))
}

/// Cargo in the copy.
fn cargo(root: &Path, copy: &Path) -> Command {
    let mut cargo = shell::cargo();
    // A target folder of its own: cargo takes the copy's crates for those of the workspace.
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", root.join("target/example/target"));
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

/// Checks all of the copy.
fn check(root: &Path, copy: &Path, example: &Example) -> Result<()> {
    println!("{}: checking the workspace, with all targets", example.name);
    let words = ["check", "--quiet", "--workspace", "--all-targets"];
    shell::run(cargo(root, copy).args(words))
        .context("the workspace does not compile with the patch")
}

/// Applies the patches whose tests are chosen alike, and runs the tests that they touch.
fn test(root: &Path, copy: &Path) -> Result<()> {
    let filters: BTreeSet<&str> = EXAMPLES.iter().map(|example| example.tests).collect();
    for filter in filters {
        let group: Vec<&Example> = EXAMPLES.iter().filter(|it| it.tests == filter).collect();
        for example in &group {
            apply(root, copy, example, &["--verbose"]).context(example.name)?;
        }
        let packages: BTreeSet<&str> = group.iter().flat_map(|it| it.packages).copied().collect();
        let mut test = cargo(root, copy);
        test.args(["test", "--quiet", "--lib", "--tests"]);
        test.args(packages.iter().flat_map(|package| ["--package", package]));
        shell::run(test.arg(filter))?;
        for example in group.iter().rev() {
            apply(root, copy, example, &["--reverse"]).context(example.name)?;
        }
    }
    Ok(())
}

/// Copies the files that git tracks into an empty folder.
fn renew(root: &Path, copy: &Path) -> Result<()> {
    if copy.exists() {
        std::fs::remove_dir_all(copy).context("removing the copy of the last run")?;
    }
    for file in SourceFile::tracked(root)? {
        let to = copy.join(&file.path);
        let parent = to.parent().context("a file has a folder")?;
        std::fs::create_dir_all(parent)?;
        std::fs::copy(root.join(&file.path), &to)
            .with_context(|| format!("copying {}", file.path))?;
    }
    Ok(())
}
