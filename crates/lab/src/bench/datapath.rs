//! `weir bench datapath`: the rate of a switch's datapath on given packets and flow entries.
//!
//! A view of the scenario `datapath-rate`. Beside the rate stand the limit of the same ports and,
//! on request, Open vSwitch, testpmd or another build of Weir on the very same devices, in turns.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use programs::huge_pages;

use super::common::{Common, Run, seconds};
use super::measure::{Pairs, median};
use super::outcome::{Outcome, UpperBound, rounded};
use super::replay::{ReplayPlan, Replayed, of_workload, weir};
use crate::dut::{self, Dut};
use crate::method::replay::Window;
use crate::settings::{CacheSet, Forwarding, IoMode, ReplayDevices, Settings};
use crate::workload::Workload;

/// Measurements of the limit.
const LIMIT_REPEATS: usize = 3;

/// Names in the scenario of the limit and of the figure to compare.
const WITHOUT_TABLES: &str = "without tables";
const FLOW_ENTRIES: &str = "flow entries";

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-1k /tmp/w
  weir bench datapath /tmp/w l2l3-1k
  weir bench datapath /tmp/w l2l3-1k --ports dpdk --vs ovs-dpdk --json
  weir bench datapath /tmp/w l2l3-1k --vs weir=/tmp/old/weir";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DatapathArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// Workloads: NAME.pcap enters port 1, NAME.flows sends all of it out of port 2
    #[arg(required = true)]
    name: Vec<String>,
    /// Kind of the ports
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
    /// Measurements of each figure [default: 5, with --vs 12 pairs]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// Peer that is measured in turns with Weir: ovs-dpdk or testpmd (both need --ports dpdk), or
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

/// Kind of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PortsKind {
    /// The trace replayed from memory, and a counter.
    Memory,
    /// DPDK's net_pcap and net_null: the same devices for every switch; needs root, huge pages and
    /// a build with the cargo feature dpdk.
    Dpdk,
}

impl PortsKind {
    /// The name in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Dpdk => "dpdk",
        }
    }

    fn devices(self) -> ReplayDevices {
        match self {
            Self::Memory => ReplayDevices::Memory,
            Self::Dpdk => ReplayDevices::Dpdk,
        }
    }
}

/// Whether the datapath's caches work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cache {
    /// As the switch comes.
    On,
    /// Every packet goes through the flow tables.
    Off,
}

impl Cache {
    /// The name in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// Peer of Weir in a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// Open vSwitch with DPDK, as Debian packages it, with the same flow entries.
    OvsDpdk,
    /// DPDK's testpmd in the mode of --wire; Weir forwards without tables too.
    Testpmd,
    /// Another build of Weir, with the same flow entries.
    Weir(PathBuf),
}

impl std::str::FromStr for Rival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("weir=")) {
            ("ovs-dpdk", _) => Ok(Self::OvsDpdk),
            ("testpmd", _) => Ok(Self::Testpmd),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Weir(path.into())),
            _ => Err("expected ovs-dpdk, testpmd or weir=PATH".to_owned()),
        }
    }
}

/// A forwarding mode without tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Wire {
    /// Packets stay as they are.
    Io,
    /// Both Ethernet addresses are set.
    Mac,
    /// The Ethernet addresses are exchanged.
    Macswap,
}

impl Wire {
    fn mode(self) -> IoMode {
        match self {
            Self::Io => IoMode::Io,
            Self::Mac => IoMode::Mac,
            Self::Macswap => IoMode::Macswap,
        }
    }
}

impl DatapathArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.check()?;
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        let usual = if self.vs.is_some() { 12 } else { 5 };
        let common = Common {
            core: self.core,
            seconds: self.seconds,
            repeats: self.repeats.unwrap_or(usual),
            json: self.json,
            quiet: self.quiet,
            weir: self.weir.clone(),
        };
        common.run(0, |run| {
            run.window = Window { is_core_time: self.core_time, ..run.window };
            for workload in &workloads {
                let outcome = self.measure(run, workload);
                run.row(&outcome.with_context(|| workload.name.clone())?)?;
            }
            Ok(())
        })
    }

    /// Whether this machine can do it.
    fn check(&self) -> Result<()> {
        if let Some(rival) = &self.vs {
            ensure!(
                self.ports == PortsKind::Dpdk || matches!(rival, Rival::Weir(_)),
                "--vs compares on the same devices: add --ports dpdk"
            );
            ensure!(self.workers == 1, "--vs compares one core with one core: leave --workers out");
        }
        if self.ports == PortsKind::Memory {
            return Ok(());
        }
        ensure!(rustix::process::geteuid().is_root(), "--ports dpdk needs root for huge pages");
        let forwarders = 1 + u64::from(self.vs.is_some());
        huge_pages::check(forwarders).context("--ports memory needs no huge pages")
    }

    /// Measures one workload.
    fn measure(&self, run: &Run, workload: &Workload) -> Result<Outcome> {
        let is_wire = self.vs == Some(Rival::Testpmd);
        let limit = if self.no_limit || is_wire {
            None
        } else {
            let plan = self.plan(workload, true, Vec::new(), LIMIT_REPEATS)?;
            let mpps = plan.measure(run)?.first().map_or(0.0, |limit| median(&limit.mpps()));
            Some(UpperBound { mode: self.wire.mode().name(), mpps: rounded(mpps) })
        };
        let rivals = self.vs.as_ref().map(Rival::dut).transpose()?;
        let plan = self.plan(workload, is_wire, rivals.into_iter().collect(), run.repeats)?;
        let found = plan.measure(run)?;
        let ours = found.first().context("the lab measured nothing")?;
        let mut outcome = self.outcome(&workload.name, ours);
        outcome.limit = limit;
        match found.get(1) {
            None => outcome.set_series(&ours.mpps(), ours.again()),
            Some(theirs) => {
                let again = ours.again() + theirs.again();
                let pairs = Pairs { ours: ours.mpps(), theirs: theirs.mpps(), again };
                let name = theirs.dut.strip_prefix("weir=").unwrap_or(&theirs.dut);
                outcome.set_pairs(name.to_owned(), theirs.number("warm_up_s"), &pairs);
            }
        }
        Ok(outcome)
    }

    /// Measurements of a workload: Weir's, then those of the others.
    fn plan(
        &self,
        workload: &Workload,
        is_wire: bool,
        others: Vec<&'static dyn Dut>,
        repeats: usize,
    ) -> Result<ReplayPlan<'static>> {
        let mut set = of_workload(workload, None)?;
        if let Some(replay) = &mut set.replay {
            replay.devices = self.ports.devices();
        }
        set.workers = Some(self.workers);
        set.caches = match self.cache {
            Cache::On => None,
            Cache::Off => Some(CacheSet::None),
        };
        let mut name = FLOW_ENTRIES;
        if is_wire {
            name = WITHOUT_TABLES;
            // What forwards without tables has no caches to be switched off.
            let io_mode = Some(self.wire.mode());
            set = Settings { forwarding: Some(Forwarding::Io), io_mode, caches: None, ..set };
        }
        let mut duts = vec![weir()?];
        duts.extend(others);
        let values = vec![(name.to_owned(), set)];
        Ok(ReplayPlan { scenario: "datapath-rate", values, duts, repeats })
    }

    /// Facts of a workload beside the rates.
    fn outcome(&self, workload: &str, ours: &Replayed) -> Outcome {
        Outcome {
            switch: "weir",
            workload: workload.to_owned(),
            ports: self.ports.name(),
            cache: self.cache.name(),
            workers: usize::from(self.workers),
            core_time: self.core_time,
            lost: ours.lost(),
            flow_entries: ours.number("flow_entries") as u64,
            flow_mods_per_s: ours.value("replay_loads_ps").unwrap_or(0.0).round(),
            warm_up_s: rounded(ours.number("warm_up_s")),
            stages: ours.stages(),
            ..Outcome::default()
        }
    }
}

impl Rival {
    fn dut(&self) -> Result<&'static dyn Dut> {
        let name = match self {
            Self::OvsDpdk => "ovs-dpdk".to_owned(),
            Self::Testpmd => "testpmd".to_owned(),
            Self::Weir(path) => format!("weir={}", path.display()),
        };
        dut::find(&name).with_context(|| format!("the lab has no switch {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Rival;

    #[test]
    fn what_weir_is_compared_with_is_read_by_name() {
        assert_eq!("ovs-dpdk".parse(), Ok(Rival::OvsDpdk));
        assert_eq!("weir=/old/weir".parse(), Ok(Rival::Weir("/old/weir".into())));
        for text in ["", "weir", "weir=", "ovs"] {
            assert!(text.parse::<Rival>().unwrap_err().contains("weir=PATH"), "{text}");
        }
        for text in ["ovs-dpdk", "testpmd", "weir=/old/weir"] {
            let rival: Rival = text.parse().unwrap();
            assert_eq!(rival.dut().unwrap().name(), text);
        }
    }
}
