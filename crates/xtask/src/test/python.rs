//! The Python package as a user gets it: the wheel built by `pip install .`, its tests, its types.
//!
//! It lives in a virtual environment below the target folder, which the next run uses again. It
//! must never test the sources in place of the wheel: what is missing from the wheel would pass.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{Context, Tally, peers};
use crate::shell;

const MYPY: &str = "mypy==2.4.1";

/// The virtual environment of the wheel.
fn venv(context: &Context) -> PathBuf {
    context.target().join("python")
}

/// Builds and installs the wheel, then runs the tests and mypy.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !peers::installed("python3") {
        return Ok(Tally::left_out("python3 with venv is missing (Debian's package python3-venv)"));
    }
    let bin = venv(context).join("bin");
    let has_mypy = bin.join("mypy").is_file();
    if !has_mypy && !context.install {
        return Ok(Tally::left_out(format!("{MYPY} and maturin are missing (PyPI)")));
    }
    if !bin.join("python").is_file() {
        shell::run(context.command("python3").args(["-m", "venv"]).arg(venv(context)))?;
    }
    if !has_mypy {
        shell::run(context.command(bin.join("pip")).args(["install", "-q", MYPY]))?;
    }
    shell::run(context.cargo().args(["build", "-q", "--bin", "weir"]))?;
    install(context, &bin)?;
    let mut tally = Tally::default();
    for folder in ["python/tests", "python/tests/apps"] {
        let (passed, failed) = tests(context, &bin, folder)?;
        tally.passed += passed;
        tally.failed += failed;
    }
    let typed = shell::run(context.command(bin.join("mypy")).arg("--no-incremental"));
    tally.passed += u64::from(typed.is_ok());
    tally.failed += u64::from(typed.is_err());
    Ok(tally)
}

/// `pip install .` as the README says it, but without optimisation.
fn install(context: &Context, bin: &Path) -> Result<()> {
    let mut pip = context.command(bin.join("pip"));
    pip.args(["install", "-q", "--force-reinstall", "--no-deps"]);
    pip.args(["--config-settings=build-args=--profile dev", "."]);
    shell::run(&mut pip)
}

/// Runs the tests of a folder from elsewhere, so that the wheel is imported and not the sources.
fn tests(context: &Context, bin: &Path, folder: &str) -> Result<(u64, u64)> {
    let mut command = context.command(bin.join("python"));
    command.args(["-B", "-m", "unittest", "discover", "-s"]).arg(context.root.join(folder));
    command.current_dir(context.target());
    command.env("WEIR", context.target().join("debug/weir")).env_remove("PYTHONPATH");
    let output = command.output().context("starting the tests of the Python package")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next());
    let ran: u64 = ran.and_then(|count| count.parse().ok()).unwrap_or(0);
    if output.status.success() && ran > 0 {
        return Ok((ran, 0));
    }
    println!("{said}");
    Ok((0, ran.max(1)))
}
