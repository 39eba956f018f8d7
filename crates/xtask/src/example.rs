//! `cargo xtask example`: proves that the examples of CONTRIBUTING.md still hold.
//!
//! CONTRIBUTING.md adds a match field, an action and so on in a few places; each change is kept as
//! a patch. This applies all of them to a copy of the workspace, which is checked whole, tests and
//! benches included: so the places that the patches name are all that the compiler demands. Then it
//! runs the tests that they touch. It must never change the work tree.

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
    /// Those of the tests whose names have this; none where all of them run.
    tests: Option<&'static str>,
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "add-match-field",
        packages: &["weir-openflow", "weir-wire", "weir-packet", "weir-datapath"],
        tests: None,
    },
    Example {
        name: "add-action",
        packages: &["weir-openflow", "weir-wire", "weir-datapath"],
        tests: None,
    },
    Example {
        name: "add-instruction",
        packages: &["weir-openflow", "weir-wire", "weir-datapath"],
        tests: None,
    },
    Example { name: "add-event", packages: &["weir-controller"], tests: Some("handle::") },
    Example { name: "add-scenario", packages: &["weir-lab"], tests: Some("campaign::") },
    Example { name: VERSION, packages: &["weir-openflow", "weir-wire"], tests: None },
];

/// The example that a test switch would speak, so that some tests run without it.
const VERSION: &str = "add-version";

/// Tests of the codec that do not hold beside the examples: bytes and random messages in them stand
/// for a version, a field or an action that no switch has, and the examples add just those.
const BESIDE: [&str; 3] = ["malformed::", "round_trip::", "a_cookie_limits"];

/// Proves the examples.
///
/// # Errors
/// When the copy cannot be made, or one of them does not hold.
pub(crate) fn run(root: &Path) -> Result<()> {
    for entry in std::fs::read_dir(root.join("docs/examples")).context("docs/examples")? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let is_known = |name| EXAMPLES.iter().any(|example| example.name == name);
        if file.strip_suffix(".patch").is_some_and(|name| !is_known(name)) {
            bail!("docs/examples/{file} has no row in crates/xtask/src/example.rs");
        }
    }
    let copy = root.join("target/example/weir");
    renew(root, &copy)?;
    for example in EXAMPLES {
        apply(root, &copy, example.name, &["--verbose"])
            .context("docs/examples and CONTRIBUTING.md need an update")?;
    }
    println!("checking the workspace, with all targets");
    shell::run(cargo(root, &copy, "check").args(["--workspace", "--all-targets"]))
        .context("the workspace does not compile with the patches")?;
    test(root, &copy, |example| example.tests.is_none())?;
    apply(root, &copy, VERSION, &["--reverse"])?;
    test(root, &copy, |example| example.tests.is_some())
}

/// Applies the patch of an example to the copy.
fn apply(root: &Path, copy: &Path, name: &str, how: &[&str]) -> Result<()> {
    let patch = root.join("docs/examples").join(format!("{name}.patch"));
    // Outside any repository of git, so that the patch is applied to the copy.
    let mut git = Command::new("git");
    git.current_dir(copy).env("GIT_CEILING_DIRECTORIES", root.join("target/example"));
    shell::run(git.arg("apply").args(how).arg(patch))
}

/// Cargo in the copy. What is compiled serves once, so nothing of it is optimised.
fn cargo(root: &Path, copy: &Path, command: &str) -> Command {
    let mut cargo = shell::cargo();
    // A target folder of its own: cargo takes the copy's crates for those of the workspace.
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", root.join("target/example/target"));
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo.args([command, "--quiet", "--config", "profile.dev.package.'*'.opt-level=0"]);
    cargo
}

/// Runs the tests that these examples touch.
fn test(root: &Path, copy: &Path, is_chosen: impl Fn(&Example) -> bool) -> Result<()> {
    let chosen: Vec<&Example> = EXAMPLES.iter().filter(|example| is_chosen(example)).collect();
    let packages: BTreeSet<&str> = chosen.iter().flat_map(|it| it.packages).copied().collect();
    let mut test = cargo(root, copy, "test");
    test.args(["--lib", "--tests"]);
    test.args(packages.iter().flat_map(|package| ["--package", package]));
    test.arg("--").args(BESIDE.iter().flat_map(|name| ["--skip", name]));
    shell::run(test.args(chosen.iter().filter_map(|example| example.tests)))
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
