//! `weir switch` under the bench: started as a process, two ports, one forwarding core a worker.
//!
//! What it does is read over its OpenFlow socket, as any controller may; the times of its stages
//! come from `weir ctl`, as anyone may ask.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use control::ControlCommand;
use netdev::sys::affinity;
use openflow::Version;
use openflow::flow::FlowMod;

use super::series::Point;
use crate::cancel::Cancel;
use crate::dut::counters::ask;
use crate::process::Process;
use crate::switch_client::{Loaded, SwitchClient};
use crate::testbed::replay::{Counts, settle};

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
}

impl Weir {
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
        Ok(Self { process, client: None, folder: folder.to_owned(), cancel: cancel.clone() })
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
        self.client(version)?.load(entries)
    }

    /// What the forwarding threads have counted.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(super) fn point(&self) -> Result<Point> {
        Point::of_workers(&ask(&self.folder.join(CONTROL), ControlCommand::Workers)?)
    }

    /// The process that forwards.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What its ports have counted.
    ///
    /// # Errors
    /// It has ended, or does not answer.
    pub(super) fn counts(&mut self) -> Result<Counts> {
        self.process.check()?;
        let client = self.client(Version::V1_3)?;
        let before = Instant::now();
        let stats = client.port_stats()?;
        Counts::of_ports(&stats, 1, before + before.elapsed() / 2)
    }

    /// Waits until its rate is what it will stay.
    ///
    /// # Errors
    /// It has ended, or does not answer.
    pub(super) fn warm_up(&mut self, cancel: &Cancel) -> Result<()> {
        settle(|| self.counts(), SETTLE_LIMIT, cancel)?;
        let now = self.counts()?;
        ensure!(
            now.sent > 0,
            "of {} packets that came in none left by the port behind: do the flow entries belong \
             to the trace?",
            now.received
        );
        Ok(())
    }
}

/// How the switch is started.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    /// The program.
    pub(super) weir: &'a Path,
    /// Its ports, from number 1 on.
    pub(super) ports: Vec<String>,
    /// The core of the forwarding thread.
    pub(super) core: usize,
    /// How it waits.
    pub(super) poll: &'static str,
    /// All cores that there are, where the bench and the threads of the switch that do not forward
    /// are to keep off the forwarding cores; empty where they may run anywhere.
    pub(super) cores: Vec<usize>,
}

impl<'a> Launch<'a> {
    /// One thread that never sleeps, no port yet.
    pub(super) fn new(weir: &'a Path, core: usize) -> Self {
        Self { weir, ports: Vec::new(), core, poll: "busy", cores: Vec::new() }
    }

    /// Keeps the calling thread, those that it will start, and all threads of the switch but the
    /// forwarding ones off the forwarding cores.
    fn keep_off(&self, pid: u32) -> Result<()> {
        let others: Vec<usize> =
            self.cores.iter().copied().filter(|core| *core != self.core).collect();
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
        command.args(["--worker-cores", &self.core.to_string()]);
        // The bench may be silent for longer than any probe waits, as others are measured.
        command.args(["--inactivity-probe", "0"]);
        command.arg("--listen").arg(format!("punix:{}", folder.join(SOCKET).display()));
        command.args(["--protocols", "OpenFlow10,OpenFlow13", "--max-entries", ENTRIES_MAX]);
        command
    }
}

/// The switch's control socket, in its folder.
const CONTROL: &str = "ctl.sock";

/// Where the switch takes OpenFlow connections, in its folder.
const SOCKET: &str = "openflow.sock";

/// More flow entries than any workload has.
const ENTRIES_MAX: &str = "20000000";
