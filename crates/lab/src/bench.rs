//! `weir bench`: how fast a controller is, or the generator.
//!
//! Questions about a switch are scenarios of the lab; their words of earlier versions are those of
//! `weir lab run`. Everything that is started ends with the bench.

mod common;
mod controller;
mod generator;
mod measure;
mod peer;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};

use crate::cli::LabArgs;
use crate::names;

const VIEWS_HELP: &str = "\
Questions about a switch are scenarios of the lab: `weir bench ports OPTIONS` is `weir lab run \
ports-tcp ports-ping .. --format lines OPTIONS`, and so are datapath, new-flows, cold-start, \
updates, dump, growth, idle, victim and tiers.";

/// Measure how fast a controller is, or the generator.
#[derive(Args, Debug)]
#[command(after_help = VIEWS_HELP)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    /// Send as the generator does, into nothing and over wires in memory
    Generator(Box<generator::GeneratorArgs>),
    /// Measure a controller with emulated switches: rate, latency, storms of connections
    Controller(Box<controller::ControllerBenchArgs>),
    #[command(external_subcommand)]
    Scenarios(Vec<String>),
}

/// Scenarios by the words of `weir bench` that stood for them.
const SCENARIOS: [(&str, &[&str]); 10] = [
    ("datapath", &["datapath-rate"]),
    ("new-flows", &["datapath-new-flows"]),
    ("cold-start", &["datapath-cold-start"]),
    ("updates", &["datapath-loading", "datapath-updates"]),
    ("dump", &["datapath-dump"]),
    ("growth", &["datapath-growth"]),
    ("idle", &["datapath-idle"]),
    ("victim", &["datapath-victim"]),
    ("tiers", &["datapath-tiers"]),
    (
        "ports",
        &[
            "ports-tcp",
            "ports-ping",
            "ports-datagrams",
            "ports-flows",
            "ports-fair-share",
            "ports-short-flows",
            "ports-changes",
            "ports-idle",
        ],
    ),
];

/// The command line of `weir lab`.
#[derive(Parser)]
#[command(name = "weir lab")]
struct LabLine {
    #[command(flatten)]
    lab: LabArgs,
}

impl BenchArgs {
    /// Does what was asked.
    ///
    /// # Errors
    /// Files, rights or cores that are missing; a controller that does not start.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            BenchCommand::Generator(args) => args.run(),
            BenchCommand::Controller(args) => args.run(),
            BenchCommand::Scenarios(words) => lab_line(&words)?.lab.run(),
        }
    }
}

/// The line of `weir lab run` that words of `weir bench` stand for.
fn lab_line(words: &[String]) -> Result<LabLine> {
    let (name, options) = words.split_first().context("a word is missing")?;
    let Some((_, scenarios)) = SCENARIOS.iter().find(|(known, _)| known == name) else {
        let known = ["generator", "controller"].into_iter().chain(SCENARIOS.map(|(name, _)| name));
        bail!(names::unknown("bench", name, known));
    };
    let lines = ["--format", "lines"];
    let line = ["weir lab", "run"].iter().chain(*scenarios).chain(&lines).copied();
    Ok(LabLine::parse_from(line.chain(options.iter().map(String::as_str))))
}

/// A scratch folder; its path is short, since a socket's path may have 107 bytes only.
fn scratch() -> Result<tempfile::TempDir> {
    programs::scratch::make(programs::scratch::BENCH).context("making a scratch folder")
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, lab_line};
    use crate::campaign::catalogue;

    #[test]
    fn words_of_earlier_versions_are_scenarios() {
        for (name, scenarios) in SCENARIOS {
            assert!(lab_line(&[name.to_owned(), "--quick".to_owned()]).is_ok(), "{name}");
            assert!(scenarios.iter().all(|id| catalogue::find(id).is_ok()), "{name}");
        }
        let error = lab_line(&["port".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("did you mean ports?") && error.contains("controller"), "{error}");
    }
}
