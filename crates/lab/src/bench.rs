//! `weir bench`: the rate of a switch's datapath on given packets and flow entries.
//!
//! The bench starts `weir switch` as a process, like any other switch, gives it a trace at port 1
//! and a counter behind port 2, loads the flow entries over OpenFlow and reads the ports' counters.
//! Beside the rate stand the limit of the same ports and, on request, Open vSwitch or testpmd on
//! the very same devices, measured in turns. Everything that it starts ends with it.

mod bar;
mod beside;
mod cold_start;
mod common;
mod controller;
mod ctl;
mod dump;
mod echo;
mod figures;
mod generator;
mod growth;
mod idle;
mod made;
mod measure;
mod new_flows;
mod outcome;
mod ovs_dpdk;
mod ports;
mod series;
mod settings;
mod subject;
mod testpmd;
mod tiers;
mod turns;
mod updates;
mod victim;
mod weir;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::cancel::{Cancel, EXIT_INTERRUPTED};
use crate::progress::RunProgress;
use common::seconds;
use measure::{Window, measure, measure_pairs, median};
use outcome::{Outcome, UpperBound, rounded};
use ovs_dpdk::OvsDpdk;
use settings::{Cache, PortsKind, Rival, Settings, Wire};
use subject::{Held, Subject};
use testpmd::Testpmd;
use weir::Weir;
use workload::Workload;

/// Measure how fast a datapath is, or a controller.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    /// Forward NAME.pcap by NAME.flows as fast as it goes
    Datapath(Box<DatapathArgs>),
    /// Forward packets every one of which begins a new flow
    NewFlows(Box<new_flows::NewFlowsArgs>),
    /// Start with cold caches, and see when the rate is steady
    ColdStart(Box<cold_start::ColdStartArgs>),
    /// Change flow entries, alone and while forwarding
    Updates(Box<updates::UpdatesArgs>),
    /// List all flow entries while forwarding
    Dump(Box<dump::DumpArgs>),
    /// Forward the same traffic by ever more flow entries
    Growth(Box<growth::GrowthArgs>),
    /// Send as the generator does, into nothing and over wires in memory
    Generator(Box<generator::GeneratorArgs>),
    /// Measure a controller with emulated switches: rate, latency, storms of connections
    Controller(Box<controller::ControllerBenchArgs>),
    /// Do nothing, and wake up
    Idle(Box<idle::IdleArgs>),
    /// Forward somebody's packets beside an attack
    Victim(Box<victim::VictimArgs>),
    /// Forward between hosts over kernel devices, beside other switches
    Ports(Box<ports::PortsArgs>),
    /// Forward with all caches, with the key cache only, and without
    Tiers(Box<tiers::TiersArgs>),
}

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-1k /tmp/w
  weir bench datapath /tmp/w l2l3-1k
  weir bench datapath /tmp/w l2l3-1k --ports dpdk --vs ovs-dpdk --json
  weir bench datapath /tmp/w l2l3-1k --vs weir=/tmp/old/weir";

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct DatapathArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// Workloads: NAME.pcap enters port 1, NAME.flows sends all of it out of port 2
    #[arg(required = true)]
    name: Vec<String>,
    /// What the ports are
    #[arg(long, value_enum, default_value_t = PortsKind::Memory)]
    ports: PortsKind,
    /// Whether the datapath's caches work
    #[arg(long, value_enum, default_value_t = Cache::On)]
    cache: Cache,
    /// Forwarding threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// The core of the first forwarding thread; those of the others follow
    #[arg(long, default_value_t = 1)]
    core: u16,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// Count the seconds in which the forwarder had its core, not those of the clock: for a machine
    /// that others use too
    #[arg(long)]
    core_time: bool,
    /// How often each is measured [default: 5, with --vs 12 pairs]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// What is measured in turns with Weir: ovs-dpdk or testpmd (both need --ports dpdk), or
    /// another build of Weir, weir=PATH
    #[arg(long, value_name = "SWITCH")]
    vs: Option<Rival>,
    /// The mode of the limit, which forwards without tables
    #[arg(long, value_enum, default_value_t = Wire::Io)]
    wire: Wire,
    /// Leave the limit out
    #[arg(long)]
    no_limit: bool,
    /// Print a line of JSON for each workload
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    /// The weir binary that is measured [default: this one]
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
}

impl BenchArgs {
    /// Does what was asked.
    ///
    /// # Errors
    /// Files, rights, cores or huge pages that are missing; a switch that does not start.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            BenchCommand::Datapath(args) => args.run(),
            BenchCommand::NewFlows(args) => args.run(),
            BenchCommand::ColdStart(args) => args.run(),
            BenchCommand::Updates(args) => args.run(),
            BenchCommand::Dump(args) => args.run(),
            BenchCommand::Growth(args) => args.run(),
            BenchCommand::Generator(args) => args.run(),
            BenchCommand::Controller(args) => args.run(),
            BenchCommand::Idle(args) => args.run(),
            BenchCommand::Victim(args) => args.run(),
            BenchCommand::Ports(args) => args.run(),
            BenchCommand::Tiers(args) => args.run(),
        }
    }
}

impl DatapathArgs {
    fn run(self) -> Result<ExitCode> {
        let settings = self.settings()?;
        settings.check()?;
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        workloads
            .iter()
            .try_for_each(|workload| settings.ports.check(workload, settings.workers))?;
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let mut progress = RunProgress::new(workloads.len() as u64, self.quiet);
        let mut is_whole = true;
        for workload in &workloads {
            let outcome = match bench(&settings, workload, &mut progress, &cancel) {
                Ok(outcome) => outcome,
                Err(_) if cancel.check().is_err() => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
                Err(error) => return Err(error).with_context(|| workload.name.clone()),
            };
            progress.advance(1);
            is_whole &= outcome.lost == 0;
            if self.json {
                println!("{}", serde_json::to_string(&outcome).context("writing JSON")?);
            } else {
                print!("{}", outcome.text());
            }
        }
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn settings(&self) -> Result<Settings> {
        let weir = match &self.weir {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("cannot find the running program")?,
        };
        let usual = if self.vs.is_some() { 12 } else { 5 };
        Ok(Settings {
            weir,
            ports: self.ports,
            cache: self.cache,
            workers: usize::from(self.workers),
            core: usize::from(self.core),
            window: Window { seconds: self.seconds, core_time: self.core_time },
            repeats: self.repeats.map_or(usual, usize::from),
            rival: self.vs.clone(),
            wire: self.wire,
            limit: !self.no_limit,
        })
    }
}

/// A scratch folder; its path is short, since a socket's path may have 107 bytes only.
fn scratch() -> Result<tempfile::TempDir> {
    crate::scratch::make(crate::scratch::BENCH).context("making a scratch folder")
}

/// Measures one workload.
fn bench(
    settings: &Settings,
    workload: &Workload,
    progress: &mut RunProgress,
    cancel: &Cancel,
) -> Result<Outcome> {
    let mut outcome = Outcome::new(&workload.name, settings);
    if settings.limit && settings.rival.as_ref() != Some(&Rival::Testpmd) {
        progress.begin(&format!("{}: the limit", workload.name));
        outcome.limit = Some(limit(settings, workload, cancel)?);
    }
    progress.begin(&format!("{}: loading and warming up", workload.name));
    let folder = scratch()?;
    let wire = (settings.rival.as_ref() == Some(&Rival::Testpmd)).then(|| settings.wire.name());
    let mut weir = Weir::start(settings, workload, wire, folder.path(), cancel)?;
    if let Some(loaded) = weir.loaded {
        outcome.flow_entries = loaded.entries;
        outcome.flow_mods_per_s = (loaded.entries as f64 / loaded.seconds.max(1e-9)).round();
    }
    outcome.warm_up_s = rounded(weir.warm_up(cancel)?);
    let (workers, first) = (weir.workers()?.unwrap_or_default(), weir.counts()?);
    match &settings.rival {
        None => {
            progress.begin(&format!("{}: measuring", workload.name));
            outcome.set_series(&measure(&mut weir, settings.window, settings.repeats, cancel)?);
        }
        Some(rival) => {
            compare(rival, settings, workload, &mut weir, &mut outcome, progress, cancel)?
        }
    }
    outcome.lost = weir.counts()?.lost_since(&first);
    outcome.stages = figures::between(&workers, &weir.workers()?.unwrap_or_default());
    Ok(outcome)
}

/// The rate without any table.
fn limit(settings: &Settings, workload: &Workload, cancel: &Cancel) -> Result<UpperBound> {
    let folder = scratch()?;
    let mode = settings.wire.name();
    let mut wire = Weir::start(settings, workload, Some(mode), folder.path(), cancel)?;
    wire.warm_up(cancel)?;
    let series = measure(&mut wire, settings.window, 3, cancel)?;
    Ok(UpperBound { mode, mpps: rounded(median(&series.mpps)) })
}

/// Measures Weir and another in turns.
fn compare(
    rival: &Rival,
    settings: &Settings,
    workload: &Workload,
    weir: &mut Weir,
    outcome: &mut Outcome,
    progress: &mut RunProgress,
    cancel: &Cancel,
) -> Result<()> {
    let folder = scratch()?;
    let held = Held::hold(weir.pid())?;
    let mut other: Box<dyn Subject> = match rival {
        Rival::OvsDpdk => Box::new(OvsDpdk::start(settings, workload, folder.path(), cancel)?),
        Rival::Testpmd => Box::new(Testpmd::start(settings, workload, folder.path(), cancel)?),
        Rival::Weir(path) => {
            let theirs = Settings { weir: path.clone(), ..settings.clone() };
            Box::new(Weir::start(&theirs, workload, None, folder.path(), cancel)?)
        }
    };
    let warm_up_s = other.warm_up(cancel)?;
    drop(held);
    progress.begin(&format!("{}: measuring in turns with {}", workload.name, other.name()));
    let (window, count) = (settings.window, settings.repeats);
    let pairs = measure_pairs(weir, other.as_mut(), window, count, cancel)?;
    let name = match rival {
        Rival::OvsDpdk | Rival::Testpmd => other.name().to_owned(),
        Rival::Weir(path) => path.display().to_string(),
    };
    outcome.set_pairs(name, warm_up_s, &pairs);
    Ok(())
}
