//! `weir lab run` and `weir lab show`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{PathArgs, TestbedArg, interrupted, shown, testbed_kind, write_whole};
use crate::campaign::catalogue;
use crate::campaign::run::{Campaign, CampaignError, execute};
use crate::campaign::scenario::Scenario;
use crate::cancel::Cancel;
use crate::dut::{self, Dut};
use crate::results;

const RUN_EXAMPLES: &str = "\
Examples:
  weir lab run E4 --dut weir,ovs,linux-bridge --quick --out /tmp/e4
  weir lab run cached-forwarding --dut weir,ovs --repeats 8
  weir lab show cached-forwarding > mine.toml; weir lab run mine.toml
  weir lab run E1 E2 E3 E4 E5 --dut weir,ovs,linux-bridge --out results --resume";

/// Bytes of a scenario file, at most.
const FILE_MAX: u64 = 1 << 20;

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct CampaignArgs {
    /// Scenarios: names (see `weir lab list`), E1 to E5 for all of an evaluation, or files
    #[arg(required = true)]
    scenario: Vec<String>,
    /// Switches under test, in the order of the tables
    #[arg(long, value_delimiter = ',', default_value = "weir")]
    dut: Vec<String>,
    /// Fewer values, fewer repeats, shorter trials
    #[arg(long)]
    quick: bool,
    /// How often every cell is measured [default: the scenario's own number]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// Seconds that all of it may take; cells that do not fit are left out and named
    #[arg(long)]
    budget: Option<u64>,
    /// Where the hosts are
    #[arg(long, value_enum, default_value_t = TestbedArg::Auto)]
    testbed: TestbedArg,
    /// Folder for results.json and trials.jsonl (every trial, as it is made)
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Go on where an earlier run into the same folder was cut off
    #[arg(long)]
    resume: bool,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    paths: PathArgs,
}

/// Which scenario.
#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    /// Its name (see `weir lab list`)
    scenario: String,
}

impl ShowArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        for scenario in catalogue::find(&self.scenario)? {
            print!("{}", scenario.source);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The scenarios of a name, an evaluation or a file.
fn scenarios(name: &str) -> Result<Vec<Scenario>> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending == "toml") || name.contains('/');
    if !is_file {
        return Ok(catalogue::find(name)?);
    }
    let bytes = files::read(path, FILE_MAX).with_context(|| format!("{}", path.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{}", path.display()))?;
    let scenario = Scenario::from_toml(&text).with_context(|| format!("{}", path.display()))?;
    Ok(vec![scenario])
}

fn duts(names: &[String]) -> Result<Vec<&'static dyn Dut>> {
    let mut duts: Vec<&'static dyn Dut> = Vec::new();
    for name in names {
        let Some(dut) = dut::find(name) else {
            let known: Vec<&str> = dut::ALL.iter().map(|dut| dut.name()).collect();
            bail!("no switch under test {name:?}: there is {}", known.join(", "));
        };
        if duts.iter().any(|other| other.name() == dut.name()) {
            bail!("the switch under test {name:?} is named twice");
        }
        duts.push(dut);
    }
    Ok(duts)
}

impl CampaignArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let mut all: Vec<Scenario> = Vec::new();
        for name in &self.scenario {
            for scenario in scenarios(name)? {
                if all.iter().any(|other| other.id == scenario.id) {
                    bail!("the scenario {:?} is named twice", scenario.id);
                }
                all.push(scenario);
            }
        }
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make the folder {}", self.out.display()))?;
        let campaign = Campaign {
            scenarios: all,
            duts: duts(&self.dut)?,
            is_quick: self.quick,
            repeats: self.repeats.map(usize::from),
            limit: self.budget.map(Duration::from_secs),
            kind: testbed_kind(self.testbed)?,
            paths: self.paths.resolve()?,
            folder: self.out.clone(),
            is_resumed: self.resume,
            command: std::env::args().collect(),
            quiet: self.quiet,
        };
        let results = match execute(&campaign, &cancel) {
            Ok(results) => results,
            Err(CampaignError::Stopped(_)) => {
                eprintln!(
                    "interrupted; its trials are in {}; --resume goes on behind them",
                    shown(&self.out)
                );
                return Ok(interrupted());
            }
            Err(error) => return Err(error.into()),
        };
        let json = serde_json::to_string(&results).context("cannot write the results as JSON")?;
        if self.json {
            println!("{json}");
        }
        let path = write_whole(&self.out, results::NAME, &json)?;
        if !self.json {
            println!("{}", shown(&path));
        }
        Ok(if results.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
