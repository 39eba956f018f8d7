//! The steps that are cargo's work: formatting, lints, tests, documentation.
//!
//! Totals come from the lines that cargo's test runner prints. It must never call a run of no tests
//! a success.

use std::process::Command;

use anyhow::{Result, bail};

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
    counted(&mut command)
}

/// How the names of tests begin that need etcd.
const WITH_ETCD: &str = "with_etcd_";

/// The tests of the cluster, with an etcd of their own each.
pub(super) fn cluster(context: &Context) -> Result<Tally> {
    if !peers::installed("etcd") {
        return Ok(Tally::left_out("etcd is missing (Debian's package etcd-server)"));
    }
    let mut command = context.cargo();
    command.args(["test", "--no-fail-fast", "-p", "weir-cluster", "-p", "weir-cli"]);
    // Each runs an etcd, and some three controllers with their switches.
    let tests = ["--include-ignored", "--nocapture", "--test-threads", "2", WITH_ETCD];
    command.args(["--test", "with_etcd", "--"]).args(tests);
    counted(&mut command)
}

/// Runs a command of cargo's test runner and counts its tests.
pub(super) fn counted(command: &mut Command) -> Result<Tally> {
    let mut totals = Totals::default();
    let ended_well = shell::watch(command, |line| totals.read(line))?;
    if totals.passed + totals.failed == 0 {
        bail!("no test ran; see the messages above");
    }
    let mut tally = Tally { passed: totals.passed, failed: totals.failed, left_out: Vec::new() };
    if !ended_well && tally.failed == 0 {
        // A test program that did not compile or did not end its run has no line of its own.
        tally.failed += 1;
    }
    if totals.ignored > 0 {
        let why = format!("{} tests need root; run as root for all of them", totals.ignored);
        tally.left_out.push(why);
    }
    Ok(tally)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    /// Adds `test result: ok. 12 passed; 0 failed; 1 ignored; ...`; other lines say nothing.
    fn read(&mut self, line: &str) {
        let Some((_, counts)) =
            line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let Some(Ok(number)) = words.next().map(str::parse::<u64>) else { continue };
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn totals_add_up_over_test_programs() {
        let mut totals = Totals::default();
        let lines = [
            "running 14 tests",
            "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; finished in 0.1s",
        ];
        lines.iter().for_each(|line| totals.read(line));
        assert_eq!(totals, Totals { passed: 15, failed: 1, ignored: 2 });
    }
}
