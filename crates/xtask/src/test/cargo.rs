//! The steps that are cargo's work: formatting, lints, builds, tests, documentation.
//!
//! It must never call a run of no tests a success.

use std::process::Command;

use anyhow::{Result, bail};

use super::nextest::{self, Selection};
use super::{Context, Extent, Tally};
use crate::shell;

/// The profile of the program that the suites of other programs run.
pub(super) const CI: &str = "ci";

pub(super) fn fmt(context: &Context) -> Result<Tally> {
    shell::run(context.cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Tally::of(true))
}

/// Lints all targets, the examples and benches too, which the step `tests` does not build.
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

/// The program that suites, pages and the demo run: optimised, and built in a third of the time
/// that the release build takes.
pub(super) fn weir(context: &Context) -> Result<Tally> {
    shell::run(context.cargo().args(["build", "--profile", CI, "--bin", "weir"]))?;
    Ok(Tally::of(true))
}

/// All tests but those that need etcd, which are the step `cluster`; with `--smoke` those that need
/// neither root nor the program.
pub(super) fn tests(context: &Context) -> Result<Tally> {
    let mut words = vec!["--workspace", "--lib", "--bins", "--tests"];
    let mut environment = Vec::new();
    match context.extent {
        Extent::Smoke => {
            words.extend(["--exclude", "weir-cli"]);
            environment = vec![("WEIR_DIFFERENTIAL_PACKETS", "1000000".to_owned())];
        }
        Extent::Usual => {}
        Extent::Soak => environment = vec![("WEIR_TIER_ROUNDS", "x20".to_owned())],
    }
    words.extend(["-E", nextest::WITHOUT_ETCD]);
    let profile = if context.extent == Extent::Soak { "soak" } else { "default" };
    let selection = Selection { profile, words: &words, environment: &environment };
    let mut tally = nextest::run(context, &selection)?;
    if context.extent == Extent::Smoke {
        tally.left_out.push("--smoke: the tests of the program, and what else is no smoke".into());
    }
    Ok(tally)
}

/// The tests of the cluster, with an etcd of their own each.
pub(super) fn cluster(context: &Context) -> Result<Tally> {
    if let Some(why) = nextest::missing_etcd() {
        return Ok(Tally::left_out(why));
    }
    if !context.is_root {
        return Ok(Tally::left_out("run as root, as all tests that need other programs"));
    }
    let words = ["-p", "weir-cluster", "-p", "weir-cli", "--tests", "-E", nextest::WITH_ETCD];
    let selection = Selection { profile: "cluster", words: &words, environment: &[] };
    nextest::run(context, &selection)
}

/// The examples in the documentation, by cargo's own runner.
pub(super) fn doctests(context: &Context) -> Result<Tally> {
    counted(context.cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]))
}

/// Runs a command of cargo's own test runner and counts its tests by the totals that it prints.
///
/// # Errors
/// When no test ran.
pub(super) fn counted(command: &mut Command) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut ignored = 0;
    let ended_well = shell::watch(command, |line| {
        let totals = totals(line).unwrap_or_default();
        tally.passed += totals[0];
        tally.failed += totals[1];
        ignored += totals[2];
    })?;
    if tally.passed + tally.failed == 0 {
        bail!("no test ran; see the messages above");
    }
    if !ended_well && tally.failed == 0 {
        tally.add(Tally::failure("a test program did not compile, or died"));
    }
    if ignored > 0 {
        tally.left_out.push(format!("{ignored} tests that need root or are no code to run"));
    }
    Ok(tally)
}

/// Passed, failed and ignored in `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
fn totals(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let of = |word: &str| {
        let count = counts.split("; ").find_map(|count| count.strip_suffix(word));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    Some([of("passed"), of("failed"), of("ignored")])
}

#[cfg(test)]
mod tests {
    use super::{counted, totals};
    use std::process::Command;

    #[test]
    fn totals_are_read() {
        let line = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; finished";
        assert_eq!(totals(line), Some([12, 2, 1]));
        assert_eq!(totals("test result of something else"), None);
    }

    fn tally_of(script: &str) -> anyhow::Result<super::Tally> {
        counted(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_run_of_nothing_has_failed() {
        assert!(tally_of("echo running 0 tests").is_err());
        assert!(tally_of("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").is_err());
    }

    #[test]
    fn a_program_that_died_has_failed() {
        let tally = tally_of("echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; exit 1");
        let tally = tally.unwrap();
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (3, 1, 1));
    }
}
