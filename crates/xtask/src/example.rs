//! `cargo xtask example`: proves that the example of CONTRIBUTING.md still holds.
//!
//! CONTRIBUTING.md adds a match field by one row, one extract line and a vector; the same change is
//! kept as a patch. This applies it to a copy of the workspace and runs the tests that it touches.
//! It must never change the work tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell;
use crate::tidy::SourceFile;

/// The patch, relative to the workspace.
const PATCH: &str = "docs/examples/add-match-field.patch";

/// The crates whose tests must pass with the patch.
const PACKAGES: &[&str] = &["weir-openflow", "weir-wire", "weir-packet"];

/// Applies the patch to a copy and tests the copy.
///
/// # Errors
/// When the patch does not apply, or a test fails with it.
pub(crate) fn run(root: &Path) -> Result<()> {
    let copy = root.join("target/example/weir");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).context("removing the copy of the last run")?;
    }
    for file in SourceFile::tracked(root)? {
        let to = copy.join(&file.path);
        let parent = to.parent().context("a file has a folder")?;
        std::fs::create_dir_all(parent)?;
        std::fs::copy(root.join(&file.path), &to)
            .with_context(|| format!("copying {}", file.path))?;
    }
    let apply = ["apply", "--verbose", PATCH];
    // Outside any repository of git, so that the patch is applied to the copy.
    let mut git = Command::new("git");
    git.current_dir(&copy).env("GIT_CEILING_DIRECTORIES", root.join("target/example"));
    shell::run(git.args(apply)).context("docs/examples and CONTRIBUTING.md need an update")?;
    let mut cargo = shell::cargo();
    // A target folder of its own: cargo takes the copy's crates for those of the workspace.
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", root.join("target/example/target"));
    cargo.args(["test", "--quiet"]);
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    shell::run(&mut cargo)
}
