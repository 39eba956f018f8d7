//! The steps that are cargo's work: formatting, lints, tests, documentation.
//!
//! Totals come from the lines that cargo's test runner prints. It must never call a run of no tests
//! a success, nor a test that failed one that passed without a word.

use std::process::Command;

use anyhow::{Result, bail};

use super::libtest::{Failure, Reading};
use super::{Context, Tally, peers};
use crate::shell;

pub(super) fn fmt(context: &Context) -> Result<Tally> {
    shell::run(context.cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Tally::of(true))
}

pub(super) fn clippy(context: &Context) -> Result<Tally> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    shell::run(context.cargo().args(arguments))?;
    Ok(Tally::of(true))
}

pub(super) fn doc(context: &Context) -> Result<Tally> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    shell::run(context.cargo().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Tally::of(true))
}

pub(super) fn tests(context: &Context) -> Result<Tally> {
    // End-to-end tests start the program itself.
    shell::run(context.cargo().args(["build", "--workspace", "--bins"]))?;
    let mut command = context.cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    if context.is_root {
        // Those with etcd are the step `cluster`.
        command.args(["--", "--include-ignored", "--skip", WITH_ETCD]);
    }
    counted_twice(&mut command)
}

/// How the names of tests begin that need etcd.
const WITH_ETCD: &str = "with_etcd_";

/// The tests of the cluster, with an etcd of their own each.
pub(super) fn cluster(context: &Context) -> Result<Tally> {
    if !peers::installed("etcd") {
        return Ok(Tally::left_out("etcd is missing (Debian's package etcd-server)"));
    }
    if !peers::installed("etcdctl") {
        return Ok(Tally::left_out("etcdctl is missing (Debian's package etcd-client)"));
    }
    let mut command = context.cargo();
    command.args(["test", "--no-fail-fast", "-p", "weir-cluster", "-p", "weir-cli"]);
    // Each runs an etcd, and some three controllers with their switches.
    let tests = ["--include-ignored", "--nocapture", "--test-threads", "2", WITH_ETCD];
    command.args(["--test", "with_etcd", "--"]).args(tests);
    counted_twice(&mut command)
}

/// Runs a command of cargo's test runner and counts its tests.
pub(super) fn counted(command: &mut Command) -> Result<Tally> {
    let reading = watched(command)?;
    let failures = reading.failures.iter().map(told).collect();
    Ok(tally(&reading, failures))
}

/// As [`counted`]; a test that fails runs once more when the others are through. One that passes
/// then counts as passed and is named at the end of the run as flaky: it is a defect, but says
/// nothing against the change that is tested.
///
/// What a second run cannot take back stays failed: an input that proptest found, a test program
/// that died.
fn counted_twice(command: &mut Command) -> Result<Tally> {
    let first = watched(command)?;
    let mut tally = tally(&first, Vec::new());
    // Output that was not captured is nobody's: then an input that was found may be anyone's.
    let may_pass = |failure: &&Failure| {
        failure.may_pass_again && !(first.found_input && failure.said.is_empty())
    };
    let (again, lasting): (Vec<_>, Vec<_>) = first.failures.iter().partition(may_pass);
    tally.failures.extend(lasting.into_iter().map(told));
    if again.is_empty() {
        return Ok(tally);
    }
    let names: Vec<&str> = again.iter().map(|failure| failure.name.as_str()).collect();
    println!("\nonce more, alone: {}", names.join(", "));
    let second = watched(&mut only(command, &names))?;
    // Where output comes between a name and its `ok`, the number of those that passed must do.
    let all_passed = second.failed == 0 && second.passed >= names.len() as u64;
    for failure in again {
        if all_passed || second.passed_names.contains(&failure.name) && second.unfinished() == 0 {
            tally.failed = tally.failed.saturating_sub(1);
            tally.passed += 1;
            tally.flaky.push(told(failure));
        } else {
            tally.failures.push(told(failure));
        }
    }
    Ok(tally)
}

fn watched(command: &mut Command) -> Result<Reading> {
    let mut reading = Reading::default();
    let ended_well = shell::watch(command, |line| reading.read(line))?;
    if reading.passed + reading.failed == 0 {
        bail!("no test ran; see the messages above");
    }
    reading.failed += reading.unfinished();
    if !ended_well && reading.failed == 0 {
        // It has no line of its own.
        let name = "a test program that did not compile or start".to_owned();
        reading.failed += 1;
        reading.failures.push(Failure { name, said: Vec::new(), may_pass_again: false });
    }
    Ok(reading)
}

fn tally(reading: &Reading, failures: Vec<String>) -> Tally {
    let mut tally =
        Tally { passed: reading.passed, failed: reading.failed, failures, ..Tally::default() };
    if reading.ignored > 0 {
        let why = format!("{} tests need root; run as root for all of them", reading.ignored);
        tally.left_out.push(why);
    }
    if reading.unfinished() > 0 {
        let programs = reading.unfinished();
        tally.failures.push(format!("{programs} test programs died before their totals"));
    }
    tally
}

/// A failure as the end of a run shows it.
fn told(failure: &Failure) -> String {
    let mut text = failure.name.clone();
    for line in &failure.said {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

/// The command with these tests of it only, one at a time.
fn only(command: &Command, names: &[&str]) -> Command {
    let mut only = Command::new(command.get_program());
    only.args(command.get_args());
    if !command.get_args().any(|word| word == "--") {
        only.arg("--");
    }
    only.arg("--exact").args(names);
    if !command.get_args().any(|word| word == "--test-threads") {
        only.args(["--test-threads", "1"]);
    }
    if let Some(folder) = command.get_current_dir() {
        only.current_dir(folder);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => only.env(key, value),
            None => only.env_remove(key),
        };
    }
    only
}

#[cfg(test)]
mod tests {
    use super::{counted, counted_twice, only};
    use std::process::Command;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_second_run_has_the_first_ones_words_and_the_names() {
        let mut command = Command::new("cargo");
        command.args(["test", "--workspace"]);
        let expected = ["test", "--workspace", "--", "--exact", "a::b", "--test-threads", "1"];
        assert_eq!(words(&only(&command, &["a::b"])), expected);
        command.args(["--", "--test-threads", "2"]);
        let expected = ["test", "--workspace", "--", "--test-threads", "2", "--exact", "a", "b"];
        assert_eq!(words(&only(&command, &["a", "b"])), expected);
    }

    /// A program in the place of cargo: its first run fails, the second does what `again` says.
    fn runner(again: &str) -> (tempfile::TempDir, Command) {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "if [ -e ran ]; then {again}; else touch ran; \
             printf 'running 2 tests\\nfailures:\\n    a::b\\n\\n\
             test result: FAILED. 1 passed; 1 failed\\n'; exit 1; fi"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path());
        (folder, command)
    }

    #[test]
    fn a_test_that_passes_alone_is_flaky() {
        let (_folder, mut command) = runner(
            "printf 'running 1 test\\ntest a::b ... ok\\ntest result: ok. 1 passed; 0 failed\\n'",
        );
        let tally = counted_twice(&mut command).unwrap();
        assert_eq!((tally.passed, tally.failed), (2, 0));
        assert_eq!(tally.flaky, ["a::b"]);
    }

    #[test]
    fn a_test_that_fails_again_has_failed() {
        let again = "printf 'running 1 test\\nfailures:\\n    a::b\\n\\n\
                     test result: FAILED. 0 passed; 1 failed\\n'; exit 1";
        let (_folder, mut command) = runner(again);
        let tally = counted_twice(&mut command).unwrap();
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert_eq!((tally.failures, tally.flaky), (vec!["a::b".to_owned()], Vec::new()));
    }

    #[test]
    fn a_second_run_of_another_test_proves_nothing() {
        let again = "printf 'running 1 test\\ntest c ... ok\\nfailures:\\n    d\\n\\n\
                     test result: FAILED. 1 passed; 1 failed\\n'; exit 1";
        let (_folder, mut command) = runner(again);
        let tally = counted_twice(&mut command).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.flaky.len()), (1, 1, 0));
    }

    #[test]
    fn a_second_run_of_nothing_proves_nothing() {
        let (_folder, mut command) = runner("printf 'no such test\\n'; exit 0");
        counted_twice(&mut command).unwrap_err();
    }

    #[test]
    fn without_a_second_run_a_failure_is_named() {
        let (_folder, mut command) = runner("exit 1");
        let tally = counted(&mut command).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (1, 1, 1));
    }
}
