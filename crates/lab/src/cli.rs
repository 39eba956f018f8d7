//! The arguments of `weir lab` and `weir demo`, and what they do.
//!
//! The binary hands its arguments over and takes an exit code back; no other crate knows what a
//! run is made of.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use programs::cpu_share::Hierarchy;
use programs::{clean, tools};

use crate::campaign::catalogue;
use crate::campaign::job::listed;
use crate::dut::controller;
use crate::present::{Form, View};
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;
use crate::{dut, method, names, settings};

mod agent;
mod campaign;
mod check;
mod compare;
mod demo;
mod results;

pub use demo::DemoArgs;

/// Measure any OpenFlow switch.
#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// List scenarios, switches under test, controllers, methods and settings.
    List,
    /// Run scenarios, or all of a published evaluation.
    Run(Box<campaign::CampaignArgs>),
    /// Print what `run` would measure: a line for each start of a switch.
    #[command(alias = "cells", after_help = campaign::JOBS_EXAMPLES)]
    Jobs(Box<campaign::SelectionArgs>),
    /// Make one run of what `run --job` measured.
    Gather(campaign::GatherArgs),
    /// Print a scenario's file, to be copied and changed.
    Show {
        /// Its name (see `weir lab list`)
        scenario: String,
    },
    /// Find out what a switch can do, and whether it does what it says.
    Check(Box<check::CheckArgs>),
    /// Send and receive at this box's interfaces for a lab on another one.
    #[command(after_help = agent::EXAMPLES)]
    Agent,
    /// Remove what runs left that were killed.
    Clean,
    /// Draw results as tables, lines for programs, or a page.
    Report(results::ReportArgs),
    /// Compare two runs, row by row.
    Compare(compare::CompareArgs),
}

/// Kind of testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TestbedArg {
    /// Network namespaces as root, in-memory ports otherwise.
    Auto,
    /// Network namespaces; needs root.
    Kernel,
    /// In-memory ports.
    Memory,
}

/// Places for results.
#[derive(Args, Debug)]
struct OutputArgs {
    /// Folder for trials.jsonl (every trial, as it is made) and report.html, which shows the run
    /// while it measures too
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Form of the results on standard output
    #[arg(long, value_parser = results::forms(), default_value = "terminal")]
    #[arg(overrides_with = "format")]
    format: Form,
    /// The same as --format json
    #[arg(long, overrides_with = "format")]
    json: bool,
    /// Print every figure on the terminal, not only the headlines
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// The terminal that there is.
fn view(is_all: bool) -> View {
    let (width, has_bold) = (terminal::width(), std::io::stdout().is_terminal());
    View { width, has_bold, is_all }
}

/// Places of programs.
#[derive(Args, Debug)]
struct PathArgs {
    /// The weir binary whose switch and controller are measured. Default: this one.
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
    /// Virtual environment with os-ken.
    #[arg(long, value_name = "DIR", env = "WEIR_OS_KEN_DIR")]
    os_ken: Option<PathBuf>,
    /// A TOML file about a switch that runs already, for --dut external (see docs/lab-agents.md).
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

impl PathArgs {
    fn resolve(&self) -> anyhow::Result<ProgramPaths> {
        let weir = match &self.weir {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("cannot find the running program")?,
        };
        let os_ken_dir = self.os_ken.clone().unwrap_or_else(tools::os_ken_default_dir);
        Ok(ProgramPaths { weir, os_ken_dir, inventory: self.inventory.clone() })
    }
}

impl LabArgs {
    /// Does what was asked.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            LabCommand::List => printed(&list()),
            LabCommand::Run(args) => args.run(),
            LabCommand::Jobs(selection) => printed(&listed(&selection.campaign()?)),
            LabCommand::Gather(args) => args.run(),
            LabCommand::Show { scenario } => {
                let found = catalogue::find(&scenario)?.into_iter();
                printed(&found.map(|scenario| scenario.source).collect::<String>())
            }
            LabCommand::Check(args) => args.run(),
            LabCommand::Agent => agent::run(),
            LabCommand::Clean => printed(&clean()?),
            LabCommand::Report(args) => args.run(),
            LabCommand::Compare(args) => args.run(),
        }
    }
}

fn printed(text: &str) -> anyhow::Result<ExitCode> {
    files::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that the lab knows by name.
fn list() -> String {
    let mut text = String::from("scenarios:\n");
    for scenario in catalogue::all() {
        let of = scenario.evaluation.as_deref().unwrap_or("--");
        text += &format!("  {of} {:22} {}\n", scenario.id, scenario.question);
    }
    let mut part = |title: &str, rows: &mut dyn Iterator<Item = (&str, &str)>| {
        text += &format!("{title}:\n");
        rows.for_each(|(name, about)| text += &format!("  {name:20} {}\n", about.trim()));
    };
    let duts = dut::ALL.iter().map(|dut| (dut.name, dut.about));
    part("switches under test", &mut duts.chain([("NAME=PROGRAM", dut::PROGRAM_ABOUT)]));
    part("controllers", &mut controller::ALL.iter().map(|one| (one.name, one.about)));
    let forms = [("NAME=COMMAND", dut::COMMAND_ABOUT), ("tcp:HOST:PORT", dut::RUNNING_ABOUT)];
    let duts = dut::CONTROLLERS.iter().map(|dut| (dut.name, dut.about));
    let title = "controllers under test, loaded by a fleet, as are weir, weir-busy and weir=PATH";
    part(title, &mut duts.chain(forms));
    part("methods", &mut method::ALL.iter().map(|method| (method.id, method.about)));
    part("settings of a cell", &mut settings::KEYS.iter().copied());
    text
}

/// Removes programs, scratch folders and control groups of runs that were killed, not of others.
fn clean() -> anyhow::Result<String> {
    let temporary = std::env::temp_dir();
    let cleaning = |folder: &Path| format!("cleaning {}", folder.display());
    let mut found = clean::clean(&temporary).with_context(|| cleaning(&temporary))?;
    // A machine without control groups has none of a run's.
    if let Ok(hierarchy) = Hierarchy::find() {
        let folder = hierarchy.folder();
        found.extend(clean::clean_groups(folder).with_context(|| cleaning(folder))?);
    }
    if found.is_empty() {
        return Ok(format!("nothing was left in {}\n", temporary.display()));
    }
    Ok(found.iter().map(|leftover| format!("{leftover}\n")).collect())
}

/// Refuses the words of `weir bench`, a command of earlier versions, with what to use.
pub fn bench(words: &[String]) -> anyhow::Result<ExitCode> {
    let word = words.first().map_or("", String::as_str);
    let whole = || "weir bench is gone: use weir lab run SCENARIO --format lines".to_owned();
    bail!(names::gone(&format!("bench {word}")).unwrap_or_else(whole));
}

/// Finds out by trying whether namespaces may be made.
fn testbed_kind(wish: TestbedArg) -> anyhow::Result<TestbedKind> {
    let may = netdev::sys::netns::Namespace::new();
    match (wish, may) {
        (TestbedArg::Memory, _) => Ok(TestbedKind::Memory),
        (TestbedArg::Auto | TestbedArg::Kernel, Ok(_)) => Ok(TestbedKind::Kernel),
        (TestbedArg::Kernel, Err(error)) => {
            bail!("network namespaces need root (or use --testbed memory): {error}")
        }
        (TestbedArg::Auto, Err(error)) => {
            files::eprint_line(format_args!(
                "no network namespaces ({error}): in-memory ports and Weir's own traffic instead; \
                 run as root for real hosts"
            ));
            Ok(TestbedKind::Memory)
        }
    }
}

/// Writes a file, whole or not at all.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = crate::campaign::ledger::write_whole(path, text.as_bytes());
    written.map(drop).with_context(|| format!("cannot write {}", path.display()))
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
