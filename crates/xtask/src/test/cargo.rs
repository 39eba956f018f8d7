//! The steps that are cargo's work: formatting, lints, builds, tests, documentation.
//!
//! It must never call a run of no tests a success.

use anyhow::Result;

use super::nextest::{self, Selection};
use super::{Context, Extent, Tally, peers, totals};
use crate::{fuzz, shell};

/// The folder of the program that the suites of other programs run, and its profile.
pub(super) const RELEASE: &str = "release";

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
    let mut command = context.cargo();
    command.args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
    command.args(["--lib", "--bins"]).args(shell::AS_TESTS);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Tally::of(true))
}

/// The program that suites, pages and the demo run, optimised as users build it; with the program
/// that fuzzes a switch, so that what other steps optimise has the same features.
pub(super) fn weir(context: &Context) -> Result<Tally> {
    let mut command = context.cargo();
    command.args(["build", "--release", "--workspace", "--bin", "weir"]);
    shell::run(command.args(["--example", fuzz::LIVE_PROGRAM]))?;
    Ok(Tally::of(true))
}

/// All tests but those that need etcd, which are the step `cluster`; with `--smoke` those that need
/// neither root nor the program.
pub(super) fn tests(context: &Context) -> Result<Tally> {
    let mut words = vec!["--workspace", "--lib", "--bins", "--tests"];
    let mut environment = Vec::new();
    match context.extent {
        Extent::Smoke => {
            // With the features that the program asks for: both runs share what they compile.
            words.extend(["--exclude", "weir-cli", "--features"]);
            words.push("weir-controller/cli,weir-rest/cli");
            environment = vec![("WEIR_DIFFERENTIAL_PACKETS", "1000000".to_owned())];
        }
        Extent::Usual => {}
        Extent::Soak => {
            environment = vec![
                ("WEIR_TIER_ROUNDS", "x20".to_owned()),
                ("WEIR_RESTART_ROUNDS", "1000".to_owned()),
            ];
        }
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
    if let Some(why) = missing_etcd() {
        return Ok(Tally::left_out(why));
    }
    if !context.is_root {
        return Ok(Tally::left_out("run as root, as all tests that need other programs"));
    }
    // The programs of the step `tests`: two crates by themselves have other features, and would be
    // compiled anew with all that they import.
    let words = ["--workspace", "--lib", "--bins", "--tests", "-E", nextest::WITH_ETCD];
    let selection = Selection { profile: "cluster", words: &words, environment: &[] };
    nextest::run(context, &selection)
}

/// The examples in the documentation, by cargo's own runner.
pub(super) fn doctests(context: &Context) -> Result<Tally> {
    totals::counted(context.cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]))
}

/// Why tests that need etcd cannot run; none where they can.
fn missing_etcd() -> Option<&'static str> {
    let programs = [
        ("etcd", "etcd is missing (Debian's package etcd-server)"),
        ("etcdctl", "etcdctl is missing (Debian's package etcd-client)"),
    ];
    programs.iter().find(|(program, _)| !peers::installed(program)).map(|(_, why)| *why)
}
