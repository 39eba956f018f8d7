//! `weir switch` under the bench: started as a process, two ports, one forwarding core a worker.
//!
//! What it does is read over its OpenFlow socket, as any controller may; the times of its stages
//! come from `weir ctl`, as anyone may ask.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use openflow::PortNo;
use openflow::port::PortStats;
use serde_json::Value;

use super::client::{Client, Loaded};
use super::settings::{Cache, PortsKind, Settings};
use super::subject::{Counts, Subject, settle};
use super::workload::Workload;
use crate::cancel::Cancel;
use crate::process::{self, Process};

/// Opening the ports includes reading the trace; DPDK fills its buffers with it.
const START_LIMIT: Duration = Duration::from_secs(60);
const SETTLE_LIMIT: Duration = Duration::from_secs(20);
const CTL_LIMIT: Duration = Duration::from_secs(20);

/// A running `weir switch`.
#[derive(Debug)]
pub(super) struct Weir {
    process: Process,
    client: Client,
    program: PathBuf,
    folder: PathBuf,
    cancel: Cancel,
    /// How the flow entries were loaded; `None` in a wire mode.
    pub(super) loaded: Option<Loaded>,
}

impl Weir {
    /// Starts the switch for `workload` in the empty folder; with `wire` it forwards without any
    /// table.
    ///
    /// # Errors
    /// It does not start, or refuses a flow entry.
    pub(super) fn start(
        settings: &Settings,
        workload: &Workload,
        wire: Option<&str>,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        let socket = folder.join("openflow.sock");
        let command = command_line(settings, workload, wire, folder);
        let mut process = Process::start("weir-switch", command, None, folder)?;
        process.wait_for_text("ready", START_LIMIT, cancel)?;
        let mut client = Client::connect(&socket, cancel)?;
        let loaded = match wire {
            None => Some(client.load(workload.flow_mods()?)?),
            Some(_) => None,
        };
        Ok(Self {
            process,
            client,
            program: settings.weir.clone(),
            folder: folder.to_owned(),
            cancel: cancel.clone(),
            loaded,
        })
    }

    /// What `weir ctl workers` says, if the switch knows the question.
    ///
    /// # Errors
    /// The run was interrupted.
    pub(super) fn workers(&self) -> Result<Option<Value>> {
        let mut command = Command::new(&self.program);
        command.args(["ctl", "--json", "--control"]).arg(self.folder.join("ctl.sock"));
        command.arg("workers");
        let output =
            process::run("weir-ctl", command, None, &self.folder, CTL_LIMIT, &self.cancel)?;
        Ok(output.success.then(|| serde_json::from_str(&output.text).ok()).flatten())
    }

    /// Takes port 1 down and counts the packets that it has received and that did not leave by
    /// port 2.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub(super) fn lost(&mut self) -> Result<i64> {
        self.client.take_down(PortNo(1))?;
        let mut last = None;
        let mut lost = 0;
        self.cancel.clone().poll(Duration::from_secs(5), || {
            let Ok(stats) = self.client.port_stats() else { return true };
            let [first, second] = [1, 2].map(|number| port(&stats, number).cloned());
            let (Ok(first), Ok(second)) = (first, second) else { return true };
            lost = first.rx_packets as i64 - first.rx_dropped as i64 - second.tx_packets as i64;
            let now = (lost, second.tx_packets);
            last.replace(now) == Some(now)
        })?;
        Ok(lost)
    }
}

/// The switch's command line. A niceness below zero keeps other programs from taking the
/// forwarding core; who may not set it measures with what there is.
fn command_line(
    settings: &Settings,
    workload: &Workload,
    wire: Option<&str>,
    folder: &Path,
) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-20"]).arg(&settings.weir).arg("switch");
    for (number, spec) in settings.ports.specs(workload, settings.workers).iter().enumerate() {
        command.arg("--port").arg(format!("{}={spec}", number + 1));
    }
    command.arg("--listen").arg(format!("punix:{}", folder.join("openflow.sock").display()));
    command.arg("--control").arg(folder.join("ctl.sock"));
    command.args(["--protocols", "OpenFlow13", "--poll", "busy"]);
    command.arg("--workers").arg(settings.workers.to_string());
    let cores: Vec<String> =
        (settings.core..).take(settings.workers).map(|core| core.to_string()).collect();
    command.arg("--worker-cores").arg(cores.join(","));
    match wire {
        Some(mode) => command.args(["--forward", mode]),
        None => command.arg("--max-entries").arg(ENTRIES_MAX),
    };
    match settings.cache {
        Cache::On => {}
        Cache::Off => {
            command.args(["--caches", "off"]);
        }
    }
    if settings.ports == PortsKind::Dpdk {
        command.env("WEIR_DPDK_LCORE", settings.control_core().to_string());
    }
    command
}

/// More flow entries than any workload has.
const ENTRIES_MAX: &str = "20000000";

impl Subject for Weir {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn counts(&mut self) -> Result<Counts> {
        self.process.check()?;
        let before = Instant::now();
        let stats = self.client.port_stats()?;
        let at = before + before.elapsed() / 2;
        Ok(Counts { at, received: port(&stats, 1)?.rx_packets, sent: port(&stats, 2)?.tx_packets })
    }

    fn warm_up(&mut self, cancel: &Cancel) -> Result<f64> {
        let seconds = settle(|| self.counts(), SETTLE_LIMIT, cancel)?;
        let now = self.counts()?;
        ensure!(
            now.sent > 0,
            "of {} packets that came in by port 1 none left by port 2: do the flow entries belong \
             to the trace?",
            now.received
        );
        Ok(seconds)
    }
}

fn port(stats: &[PortStats], number: u32) -> Result<&PortStats> {
    let found = stats.iter().find(|port| port.port_no == PortNo(number));
    found.with_context(|| format!("the switch tells no counters of port {number}"))
}
