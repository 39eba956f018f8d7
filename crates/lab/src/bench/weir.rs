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
use super::settings::{Cache, Settings};
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
    /// `None` in a wire mode, which no controller can ask.
    client: Option<Client>,
    program: PathBuf,
    folder: PathBuf,
    cancel: Cancel,
    /// From when the switch's own clock is counted.
    start: Instant,
    /// Pairs of ports.
    pairs: usize,
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
        let mut client = None;
        let mut loaded = None;
        if wire.is_none() {
            let version = workload.version()?;
            let client = client.insert(Client::connect(&socket, version, cancel)?);
            loaded = Some(client.load(workload.flow_mods(settings.workers)?)?);
        }
        Ok(Self {
            process,
            client,
            start: Instant::now(),
            pairs: settings.workers,
            program: settings.weir.clone(),
            folder: folder.to_owned(),
            cancel: cancel.clone(),
            loaded,
        })
    }

    /// What `weir ctl` answers to `question`.
    fn ask(&self, question: &str) -> Result<Option<Value>> {
        let mut command = Command::new(&self.program);
        command.args(["ctl", "--json", "--control"]).arg(self.folder.join("ctl.sock"));
        command.arg(question);
        let output =
            process::run("weir-ctl", command, None, &self.folder, CTL_LIMIT, &self.cancel)?;
        ensure!(output.success, "weir ctl {question}: {}", output.text.trim_end());
        let lines = output.text.lines().map(serde_json::from_str);
        let mut values = lines.collect::<Result<Vec<Value>, _>>().context("weir ctl's answer")?;
        Ok(if values.len() > 1 { Some(Value::Array(values)) } else { values.pop() })
    }

    /// What `weir ctl workers` says.
    ///
    /// # Errors
    /// The switch does not answer, or the run was interrupted.
    pub(super) fn workers(&self) -> Result<Option<Value>> {
        self.ask("workers")
    }

    /// The counters in a wire mode. The switch tells the moment too, so that the time that the
    /// question takes does not matter.
    fn wire_counts(&self) -> Result<Counts> {
        let ports = self.ask("dump-ports")?.unwrap_or_default();
        let field = |number: usize, key: &str| -> Result<f64> {
            let value = ports.get(number - 1).and_then(|port| port.get(key)?.as_f64());
            value.with_context(|| format!("weir ctl dump-ports tells no {key} of port {number}"))
        };
        let seconds = field(1, "duration_s")?;
        let mut counts =
            Counts { at: self.start + Duration::try_from_secs_f64(seconds)?, received: 0, sent: 0 };
        for pair in 0..self.pairs {
            counts.received += field(2 * pair + 1, "rx_packets")? as u64;
            counts.sent += field(2 * pair + 2, "tx_packets")? as u64;
        }
        Ok(counts)
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
    command.arg("--control").arg(folder.join("ctl.sock")).args(["--poll", "busy"]);
    command.arg("--workers").arg(settings.workers.to_string());
    let cores: Vec<String> =
        (settings.core..).take(settings.workers).map(|core| core.to_string()).collect();
    command.arg("--worker-cores").arg(cores.join(","));
    match wire {
        Some(mode) => command.args(["--forward", mode]),
        None => {
            let socket = folder.join("openflow.sock");
            command.arg("--listen").arg(format!("punix:{}", socket.display()));
            command.args(["--protocols", "OpenFlow10,OpenFlow13", "--max-entries", ENTRIES_MAX])
        }
    };
    match settings.cache {
        Cache::On => {}
        Cache::Off => {
            command.args(["--caches", "off"]);
        }
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
        let Some(client) = &mut self.client else { return self.wire_counts() };
        let before = Instant::now();
        let stats = client.port_stats()?;
        let at = before + before.elapsed() / 2;
        counts_of(&stats, self.pairs, at)
    }

    fn warm_up(&mut self, cancel: &Cancel) -> Result<f64> {
        let seconds = settle(|| self.counts(), SETTLE_LIMIT, cancel)?;
        let now = self.counts()?;
        ensure!(
            now.sent > 0,
            "of {} packets that came in none left by the port behind: do the flow entries belong \
             to the trace?",
            now.received
        );
        Ok(seconds)
    }
}

/// What came in and left by all pairs of ports.
fn counts_of(stats: &[PortStats], pairs: usize, at: Instant) -> Result<Counts> {
    let port = |number: usize| {
        let found = stats.iter().find(|port| port.port_no == PortNo(number as u32));
        found.with_context(|| format!("the switch tells no counters of port {number}"))
    };
    let mut counts = Counts { at, received: 0, sent: 0 };
    for pair in 0..pairs {
        counts.received += port(2 * pair + 1)?.rx_packets;
        counts.sent += port(2 * pair + 2)?.tx_packets;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use openflow::PortNo;
    use openflow::port::PortStats;

    use super::counts_of;

    #[test]
    fn every_pair_of_ports_is_counted() {
        let stats = |number: u32| PortStats {
            port_no: PortNo(number),
            rx_packets: 10_u64.pow(number),
            tx_packets: 3 * 10_u64.pow(number),
            ..PortStats::default()
        };
        let all: Vec<PortStats> = (1..=4).map(stats).collect();
        let counts = counts_of(&all, 2, Instant::now()).unwrap();
        assert_eq!((counts.received, counts.sent), (1_010, 30_300));
        assert!(counts_of(&all, 3, Instant::now()).unwrap_err().to_string().contains("port 5"));
    }
}
