//! The Python package as a user gets it: the wheel as `pip install .` builds it, its tests, its
//! types; and the same wheel in every other Python of the machine that can have it.
//!
//! It lives in virtual environments below the target folder, which the next run uses again. It
//! must never test the sources in place of the wheel: what is missing from the wheel would pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{Context, Extent, Tally, peers};
use crate::shell;

const MYPY: &str = "mypy==2.4.1";

/// Has the published schemas of Kubernetes.
const VALIDATE: &str = "kubernetes-validate==1.37.0";

/// The tests that run against the wheel.
const FOLDERS: &[&str] = &["python/tests", APPS];
const APPS: &str = "python/tests/apps";

/// Of the apps' tests those that every Python runs; all of them take minutes.
const OF_EVERY_PYTHON: &str = "test_apps";

/// The virtual environment of the wheel.
pub(super) fn venv(context: &Context) -> PathBuf {
    context.target().join("python")
}

/// Builds and installs the wheel, then runs the tests and mypy.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !peers::installed("python3") {
        return Ok(Tally::left_out("python3 with venv is missing (Debian's package python3-venv)"));
    }
    let bin = venv(context).join("bin");
    let has_tools = ["mypy", "kubernetes-validate"].iter().all(|tool| bin.join(tool).is_file());
    if !has_tools && !context.install {
        return Ok(Tally::left_out(format!("{MYPY}, {VALIDATE} or maturin is missing (PyPI)")));
    }
    if !bin.join("python").is_file() {
        shell::run(context.command("python3").args(["-m", "venv"]).arg(venv(context)))?;
    }
    if !has_tools {
        shell::run(context.command(bin.join("pip")).args(["install", "-q", MYPY, VALIDATE]))?;
    }
    shell::debug_weir(&context.root)?;
    let wheel = build(context, &bin)?;
    install(context, &bin, &wheel)?;
    let mut tally = Tally::default();
    for folder in FOLDERS {
        tally.add(tests(context, &bin, folder, &[])?);
    }
    for (version, python) in other_pythons(context, &bin) {
        let bin = context.target().join("pythons").join(&version).join("bin");
        if !bin.join("python").is_file() {
            let environment = bin.parent().unwrap_or(&bin);
            shell::run(context.command(&python).args(["-m", "venv"]).arg(environment))?;
        }
        println!("the same wheel in Python {version}");
        install(context, &bin, &wheel)?;
        let mut of_this = Tally::default();
        for folder in FOLDERS {
            let is_whole = context.extent == Extent::Soak || *folder != APPS;
            let names: &[&str] = if is_whole { &[] } else { &[OF_EVERY_PYTHON] };
            of_this.add(tests(context, &bin, folder, names)?);
        }
        for name in of_this.failures.iter_mut().chain(&mut of_this.flaky) {
            *name = format!("Python {version}: {name}");
        }
        tally.add(of_this);
    }
    let typed = shell::run(context.command(bin.join("mypy")).arg("--no-incremental"));
    tally.check("types", typed);
    tally.check("the manifest of contrib/lab/kubernetes", manifest(context, &bin));
    Ok(tally)
}

/// The manifest of a Job of the lab, against the schema that Kubernetes publishes.
fn manifest(context: &Context, bin: &Path) -> Result<()> {
    let write = |name: &str, text: String| {
        let path = context.target().join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok::<PathBuf, anyhow::Error>(path)
    };
    let campaign = ["E5", "--testbed", "memory", "--quick"];
    let mut weir = context.command(context.target().join("debug/weir"));
    let jobs = shell::capture(weir.args(["lab", "jobs"]).args(campaign))?.lines().count();
    let script = context.root.join("contrib/lab/kubernetes/job.py");
    let mut python = context.command(bin.join("python"));
    python.arg(script).arg(jobs.to_string()).args(["--image", "weir", "--parallel", "3", "--"]);
    python.args(campaign);
    let job = write("job.yaml", shell::capture(&mut python)?)?;
    let validate = bin.join("kubernetes-validate");
    shell::run(context.command(validate).args(["--strict", "--quiet"]).arg(job))
}

/// The wheel that `pip install .` builds, as the README says it, but without optimisation.
fn build(context: &Context, bin: &Path) -> Result<PathBuf> {
    let folder = context.target().join("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let mut pip = context.command(bin.join("pip"));
    pip.args(["wheel", "-q", "--no-deps", "--wheel-dir"]).arg(&folder);
    shell::run(pip.args(["--config-settings=build-args=--profile dev", "."]))?;
    let made = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let file = made.filter_map(Result::ok).map(|entry| entry.path()).next();
    file.with_context(|| format!("{}: no wheel", folder.display()))
}

fn install(context: &Context, bin: &Path, wheel: &Path) -> Result<()> {
    let mut pip = context.command(bin.join("pip"));
    shell::run(pip.args(["install", "-q", "--force-reinstall", "--no-deps"]).arg(wheel))
}

/// The Pythons since 3.10, with venv, that are on the path or that pyenv has, one of each version;
/// without that of `bin`, which has had its turn.
fn other_pythons(context: &Context, bin: &Path) -> BTreeMap<String, PathBuf> {
    let version = |python: &Path| {
        let print = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])";
        let printed = shell::capture(context.command(python).args(["-c", print])).ok()?;
        Some(printed.trim().to_owned())
    };
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let installed = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let installed = installed.into_iter().flatten().filter_map(Result::ok);
    let names = (10..30).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let own = version(&bin.join("python"));
    let candidates = names
        .filter(|name| shell::on_path(&name.to_string_lossy()))
        .chain(installed.map(|entry| entry.path().join("bin/python3")).filter(|it| it.is_file()));
    let mut found = BTreeMap::new();
    for python in candidates {
        // A name that pyenv keeps on the path may have no program.
        let Some(version) = version(&python) else { continue };
        let minor = version.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
        if minor.is_some_and(|minor| minor >= 10) && Some(&version) != own.as_ref() {
            found.entry(version).or_insert(python);
        }
    }
    found
}

/// Runs all tests of a folder, or those of these modules. One that fails runs once more, as those
/// of cargo do.
fn tests(context: &Context, bin: &Path, folder: &str, modules: &[&str]) -> Result<Tally> {
    let folder = context.root.join(folder);
    let modules: Vec<String> = modules.iter().map(|module| (*module).to_owned()).collect();
    let first = unittest(context, bin, &folder, &modules)?;
    let mut tally = Tally::default();
    tally.failed = first.failed();
    tally.passed = first.ran.saturating_sub(tally.failed);
    if first.failures.is_empty() {
        // Without a name, such as a folder without tests.
        tally.failures.extend((tally.failed > 0).then(|| format!("{}", folder.display())));
        return Ok(tally);
    }
    println!("\nonce more, alone: {}", first.failures.join(", "));
    let second = unittest(context, bin, &folder, &first.failures)?;
    for name in first.failures {
        if second.failed() == 0 {
            tally.failed -= 1;
            tally.passed += 1;
            tally.flaky.push(name);
        } else {
            tally.failures.push(name);
        }
    }
    Ok(tally)
}

/// The outcome of a run of unittest.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    ran: u64,
    is_success: bool,
    /// Names as unittest takes them: module, class, test.
    failures: Vec<String>,
}

impl Outcome {
    fn read(printed: &str, is_success: bool) -> Self {
        let ran = printed.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next());
        let ran = ran.and_then(|count| count.parse().ok()).unwrap_or(0);
        let mut failures: Vec<String> = printed.lines().filter_map(failed_name).collect();
        // A test with several failed parts has a line for each.
        failures.sort_unstable();
        failures.dedup();
        Self { ran, is_success, failures }
    }

    /// The number of tests that failed; a run of none is one that failed.
    fn failed(&self) -> u64 {
        let is_well = self.is_success && self.ran > 0;
        if is_well { 0 } else { (self.failures.len() as u64).max(1) }
    }
}

/// The name in `FAIL: test_it (module.Class.test_it)`, whatever follows.
fn failed_name(line: &str) -> Option<String> {
    let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
    let (_, name) = rest.split_once(" (")?;
    Some(name.split_once(')')?.0.to_owned())
}

/// Runs all tests of a folder, or these, from elsewhere, so that the wheel is imported and not the
/// sources.
fn unittest(context: &Context, bin: &Path, folder: &Path, names: &[String]) -> Result<Outcome> {
    let mut command = context.command(bin.join("python"));
    command.args(["-B", "-m", "unittest"]).current_dir(context.target());
    command.env("WEIR", context.target().join("debug/weir"));
    if names.is_empty() {
        command.args(["discover", "-s"]).arg(folder).env_remove("PYTHONPATH");
    } else {
        command.args(names).env("PYTHONPATH", folder);
    }
    let output = command.output().context("starting the tests of the Python package")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let outcome = Outcome::read(&printed, output.status.success());
    if outcome.failed() > 0 {
        println!("{printed}");
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn failed_tests_are_named_once() {
        let printed = "\
F.E
FAIL: test_a (test_x.Some.test_a) (case=1)
FAIL: test_a (test_x.Some.test_a) (case=2)
ERROR: setUpClass (test_y.Other)
Ran 4 tests in 0.1s
FAILED (failures=2, errors=1)
";
        let outcome = Outcome::read(printed, false);
        assert_eq!(outcome.failures, ["test_x.Some.test_a", "test_y.Other"]);
        assert_eq!((outcome.ran, outcome.failed()), (4, 2));
    }

    #[test]
    fn a_run_of_nothing_has_failed() {
        assert_eq!(Outcome::read("Ran 0 tests in 0.0s\n\nOK\n", true).failed(), 1);
        assert_eq!(Outcome::read("Ran 3 tests in 0.0s\n\nOK\n", true).failed(), 0);
        assert_eq!(Outcome::read("Ran 3 tests in 0.0s\n", false).failed(), 1);
    }
}
