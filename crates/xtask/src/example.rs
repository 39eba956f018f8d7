//! `cargo xtask example`: proves that the examples of CONTRIBUTING.md still hold.
//!
//! CONTRIBUTING.md adds a match field, an action and so on in a few places; each change is kept as
//! a patch. This applies each to a copy of the workspace and runs the tests that it touches. It
//! must never change the work tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

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
    Example { name: "add-version", packages: &["weir-openflow", "weir-wire"], tests: "" },
    Example { name: "add-scenario", packages: &["weir-lab"], tests: "campaign::" },
];

/// Applies each patch to a fresh copy and tests the copy.
///
/// # Errors
/// When a patch does not apply, or a test fails with it.
pub(crate) fn run(root: &Path) -> Result<()> {
    EXAMPLES.iter().try_for_each(|example| run_one(root, example).context(example.name))
}

fn run_one(root: &Path, example: &Example) -> Result<()> {
    let copy = root.join("target/example/weir");
    renew(root, &copy)?;
    let patch = format!("docs/examples/{}.patch", example.name);
    // Outside any repository of git, so that the patch is applied to the copy.
    let mut git = Command::new("git");
    git.current_dir(&copy).env("GIT_CEILING_DIRECTORIES", root.join("target/example"));
    shell::run(git.args(["apply", "--verbose", &patch]))
        .context("docs/examples and CONTRIBUTING.md need an update")?;
    let mut cargo = shell::cargo();
    // A target folder of its own: cargo takes the copy's crates for those of the workspace.
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", root.join("target/example/target"));
    cargo.args(["test", "--quiet"]);
    cargo.args(example.packages.iter().flat_map(|package| ["--package", package]));
    cargo.arg(example.tests);
    shell::run(&mut cargo)
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
