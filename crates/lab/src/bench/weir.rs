//! `weir switch` under the bench: started as a process, two ports, one forwarding core a worker.
//!
//! What it does is read over its OpenFlow socket, as any controller may; the times of its stages
//! come from `weir ctl`, as anyone may ask.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use control::ControlCommand;
use files::proc::ProcFolder;
use netdev::sys::affinity;
use openflow::flow::FlowMod;
use openflow::port::PortStats;
use openflow::{PortNo, Version};
use serde_json::Value;

use super::ctl;
use super::series::Point;
use super::settings::{Cache, Settings};
use super::subject::{Counts, Subject, settle};
use super::workload::Workload;
use crate::cancel::Cancel;
use crate::process::Process;
use crate::switch_client::{Loaded, SwitchClient};

/// Opening the ports includes reading the trace; DPDK fills its buffers with it.
const START_LIMIT: Duration = Duration::from_secs(60);
const SETTLE_LIMIT: Duration = Duration::from_secs(20);

/// A running `weir switch`.
#[derive(Debug)]
pub(super) struct Weir {
    process: Process,
    /// `None` until it is needed.
    client: Option<SwitchClient>,
    folder: PathBuf,
    cancel: Cancel,
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
        wire: Option<&'static str>,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        let launch = Launch {
            ports: settings.ports.specs(workload, settings.workers),
            workers: settings.workers,
            caches: match settings.cache {
                Cache::On => None,
                Cache::Off => Some("off"),
            },
            wire,
            ..Launch::new(&settings.weir, settings.core)
        };
        let mut weir = Self::launch(&launch, folder, cancel)?;
        if wire.is_some() {
            let control = folder.join(CONTROL);
            weir.client = Some(SwitchClient::over_control(&control, Version::V1_3, cancel)?);
            return Ok(weir);
        }
        let version = workload.version()?;
        weir.load(version, workload.flow_mods(settings.workers)?)?;
        Ok(weir)
    }

    /// Starts the switch as asked in the empty folder.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn launch(launch: &Launch<'_>, folder: &Path, cancel: &Cancel) -> Result<Self> {
        let command = launch.command(folder);
        // The switch asks for its cores when it starts, so it must be given all.
        affinity::allow(None, &launch.cores).context("choosing cores")?;
        let mut process = Process::start("weir-switch", command, None, folder)?;
        process.wait_for_text("ready", START_LIMIT, cancel)?;
        launch.keep_off(process.pid())?;
        Ok(Self {
            process,
            client: None,
            pairs: launch.workers,
            folder: folder.to_owned(),
            cancel: cancel.clone(),
            loaded: None,
        })
    }

    /// One more OpenFlow connection.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(super) fn connect(&self, version: Version) -> Result<SwitchClient> {
        SwitchClient::connect_unix(&self.folder.join(SOCKET), version, &self.cancel)
    }

    /// The connection by which entries are loaded and counters are read.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(super) fn client(&mut self, version: Version) -> Result<&mut SwitchClient> {
        if self.client.is_none() {
            self.client = Some(self.connect(version)?);
        }
        self.client.as_mut().context("a connection that was just made")
    }

    /// Loads flow entries.
    ///
    /// # Errors
    /// The first entry that is not understood, or that the switch refuses.
    pub(super) fn load(
        &mut self,
        version: Version,
        entries: impl Iterator<Item = Result<FlowMod>>,
    ) -> Result<Loaded> {
        let loaded = self.client(version)?.load(entries)?;
        self.loaded = Some(loaded);
        Ok(loaded)
    }

    /// What the forwarding threads have counted.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(super) fn point(&self) -> Result<Point> {
        Point::of_workers(&ctl::ask(&self.folder.join(CONTROL), ControlCommand::Workers)?)
    }

    /// Bytes of memory that the switch holds.
    pub(super) fn resident_bytes(&self) -> u64 {
        ProcFolder::of(self.pid()).memory("VmRSS").unwrap_or(0)
    }

    /// What `weir ctl workers` says.
    ///
    /// # Errors
    /// The switch does not answer, or the run was interrupted.
    pub(super) fn workers(&self) -> Result<Option<Value>> {
        self.cancel.check()?;
        let mut values = ctl::ask(&self.folder.join(CONTROL), ControlCommand::Workers)?;
        Ok(if values.len() > 1 { Some(Value::Array(values)) } else { values.pop() })
    }
}

/// How the switch is started.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    /// The program.
    pub(super) weir: &'a Path,
    /// Its ports, from number 1 on.
    pub(super) ports: Vec<String>,
    /// Forwarding threads.
    pub(super) workers: usize,
    /// The core of the first; the others follow.
    pub(super) core: usize,
    /// How they wait.
    pub(super) poll: &'static str,
    /// Which caches are used; all when none is named.
    pub(super) caches: Option<&'static str>,
    /// A mode without any table.
    pub(super) wire: Option<&'static str>,
    /// All cores that there are, where the bench and the threads of the switch that do not forward
    /// are to keep off the forwarding cores; empty where they may run anywhere.
    pub(super) cores: Vec<usize>,
}

impl<'a> Launch<'a> {
    /// One thread that never sleeps, all caches, no port yet.
    pub(super) fn new(weir: &'a Path, core: usize) -> Self {
        let (ports, cores, poll, caches) = (Vec::new(), Vec::new(), "busy", None);
        Self { weir, ports, workers: 1, core, poll, caches, wire: None, cores }
    }

    /// Keeps the calling thread, those that it will start, and all threads of the switch but the
    /// forwarding ones off the forwarding cores.
    fn keep_off(&self, pid: u32) -> Result<()> {
        let forwards = self.core..self.core + self.workers;
        let others: Vec<usize> =
            self.cores.iter().copied().filter(|core| !forwards.contains(core)).collect();
        for thread in netdev::sys::cpu::threads(pid).context("listing the switch's threads")? {
            if !thread.name.starts_with("worker") {
                affinity::allow(Some(thread.tid), &others).context("choosing cores")?;
            }
        }
        affinity::allow(None, &others).context("choosing cores")
    }

    /// The switch's command line. A niceness below zero keeps other programs from taking the
    /// forwarding core; who may not set it measures with what there is.
    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new("nice");
        command.args(["-n", "-20"]).arg(self.weir).arg("switch");
        for (number, spec) in self.ports.iter().enumerate() {
            command.arg("--port").arg(format!("{}={spec}", number + 1));
        }
        command.arg("--control").arg(folder.join(CONTROL)).args(["--poll", self.poll]);
        command.arg("--workers").arg(self.workers.to_string());
        let cores: Vec<String> =
            (self.core..).take(self.workers).map(|core| core.to_string()).collect();
        command.arg("--worker-cores").arg(cores.join(","));
        // The bench may be silent for longer than any probe waits, as others are measured.
        command.args(["--inactivity-probe", "0"]);
        command.args(self.caches.map(|caches| format!("--caches={caches}")));
        match self.wire {
            Some(mode) => command.args(["--forward", mode]),
            None => {
                let socket = folder.join(SOCKET);
                command.arg("--listen").arg(format!("punix:{}", socket.display()));
                command.args(["--protocols", "OpenFlow10,OpenFlow13", "--max-entries", ENTRIES_MAX])
            }
        };
        command
    }
}

/// The switch's control socket, in its folder.
const CONTROL: &str = "ctl.sock";

/// Where the switch takes OpenFlow connections, in its folder; in a wire mode it takes none.
const SOCKET: &str = "openflow.sock";

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
        let client = self.client(Version::V1_3)?;
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
        found.with_context(|| format!("the switch reports no counters of port {number}"))
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
