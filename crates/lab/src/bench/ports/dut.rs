//! A switch under test: what it is, how it is started between hosts, and how it is held still while
//! another is measured.
//!
//! All forward between devices of the kernel, by OpenFlow flow entries but for the Linux bridge,
//! which has none and learns. Nothing of the system's own switches is read or changed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use control::ControlCommand;
use openflow::Version;
use openflow::flow::FlowMod;
use tempfile::TempDir;

use super::bed::PortsTestbed;
use crate::bench::common::Run;
use crate::bench::measure::RUN_IN;
use crate::bench::subject::Held;
use crate::bench::{ctl, scratch};
use crate::cancel::Cancel;
use crate::dut::ovs;
use crate::load::ProcessRole;
use crate::process::Process;
use crate::service::{ProgramPaths, Service, ServiceContext};
use crate::switch_client::SwitchClient;
use crate::testbed::netns::Offloads;
use crate::tools::{self, Missing, Tool};

const START_LIMIT: Duration = Duration::from_secs(30);

/// The version that flow entries are loaded in.
const VERSION: Version = Version::V1_3;

/// Weir's control socket, in the switch's folder.
const CONTROL: &str = "ctl.sock";

/// Where a switch takes OpenFlow connections, in its folder: Open vSwitch's own name for `br0`.
const OPENFLOW: &str = "br0.mgmt";

/// A switch that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DutKind {
    /// Weir in user space, asleep while nothing comes.
    Weir,
    /// Weir in user space, never asleep.
    WeirBusy,
    /// Weir with the kernel tier.
    WeirKernel,
    /// Open vSwitch in user space; its hosts' offloads are off, since it takes no super-frames.
    Ovs,
    /// Open vSwitch in user space with `userspace-tso-enable`.
    OvsTso,
    /// The kernel's bridge.
    LinuxBridge,
}

impl DutKind {
    /// Its name on the command line and in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::WeirBusy => "weir-busy",
            Self::WeirKernel => "weir-kernel",
            Self::Ovs => "ovs",
            Self::OvsTso => "ovs-tso",
            Self::LinuxBridge => "linux-bridge",
        }
    }

    /// Whether it is Weir, which is held against all that are not.
    pub(super) fn is_weir(self) -> bool {
        match self {
            Self::Weir | Self::WeirBusy | Self::WeirKernel => true,
            Self::Ovs | Self::OvsTso | Self::LinuxBridge => false,
        }
    }

    /// Whether it has flow tables.
    pub(super) fn has_tables(self) -> bool {
        self != Self::LinuxBridge
    }

    /// Whether all of it is installed.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    pub(super) fn check(self) -> Result<(), Missing> {
        match self {
            Self::Weir | Self::WeirBusy | Self::WeirKernel | Self::LinuxBridge => Ok(()),
            Self::Ovs | Self::OvsTso => {
                let tools = [Tool::Vswitchd, Tool::OvsdbServer, Tool::OvsdbTool, Tool::OvsVsctl];
                tools.iter().try_for_each(|tool| tool.find().map(drop))
            }
        }
    }

    fn offloads(self) -> Offloads {
        match self {
            Self::Weir | Self::WeirBusy | Self::WeirKernel | Self::OvsTso | Self::LinuxBridge => {
                Offloads::Kept
            }
            Self::Ovs => Offloads::Off,
        }
    }
}

/// A running switch between hosts. The fields go in this order: a process that is held still does
/// not end, and its folder and devices are its own.
#[derive(Debug)]
pub(super) struct RunningDut {
    held: Option<Held>,
    client: Option<SwitchClient>,
    /// Its programs; the bridge has none.
    service: Service,
    pub(super) bed: PortsTestbed,
    pub(super) folder: TempDir,
    cancel: Cancel,
}

impl RunningDut {
    /// Starts a switch with so many hosts and these flow entries, and holds it still.
    ///
    /// # Errors
    /// Rights that are missing; it does not start, or refuses a flow entry.
    pub(super) fn start(
        kind: DutKind,
        hosts: usize,
        entries: impl Iterator<Item = Result<FlowMod>>,
        run: &Run,
    ) -> Result<Self> {
        let bed = PortsTestbed::new(hosts, kind.offloads())?;
        let folder = scratch()?;
        let paths = ProgramPaths::new(run.weir.clone(), tools::os_ken_default_dir());
        let context = ServiceContext {
            namespace: Some(bed.switch()),
            dir: folder.path(),
            version: VERSION,
            paths: &paths,
            cancel: &run.cancel,
        };
        let service = match kind {
            DutKind::Weir => start_weir(&context, &bed.ports(), "adaptive", "frame,key")?,
            DutKind::WeirBusy => start_weir(&context, &bed.ports(), "busy", "frame,key")?,
            DutKind::WeirKernel => {
                start_weir(&context, &bed.ports(), "adaptive", "frame,key,kernel")?
            }
            DutKind::Ovs => start_ovs(&context, &bed.ports(), &[])?,
            DutKind::OvsTso => {
                start_ovs(&context, &bed.ports(), &["other_config:userspace-tso-enable=true"])?
            }
            DutKind::LinuxBridge => {
                bed.add_bridge()?;
                Service::new()
            }
        };
        let (held, client, cancel) = (None, None, run.cancel.clone());
        let mut dut = Self { held, client, service, bed, folder, cancel };
        if kind.has_tables() {
            let socket = dut.folder.path().join(OPENFLOW);
            let mut client = SwitchClient::connect_unix(&socket, VERSION, &dut.cancel)?;
            client.load(entries)?;
            dut.client = Some(client);
        }
        if kind == DutKind::WeirKernel {
            dut.ensure_tier()?;
        }
        dut.hold()?;
        Ok(dut)
    }

    /// The process that forwards; the bridge has none.
    pub(super) fn pid(&self) -> Option<u32> {
        self.service.watched().first().map(|program| program.pid)
    }

    /// Lets it run, measures, and holds it still again, whatever became of the measurement: it
    /// would take time from the switches that are measured next.
    ///
    /// # Errors
    /// Of `measure`, with what the switch wrote last; it has ended, or the run was interrupted.
    pub(super) fn while_it_runs<T>(
        &mut self,
        measure: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let measured = self.go_on().and_then(|()| measure(self));
        let held = self.hold();
        let measured = measured
            .with_context(|| format!("the switch's last lines: {}", self.tails().trim_end()))?;
        held.map(|()| measured)
    }

    /// Stops the process that forwards.
    fn hold(&mut self) -> Result<()> {
        self.service.check()?;
        self.held = self.pid().map(Held::hold).transpose()?;
        Ok(())
    }

    /// Lets it run, for long enough that what it does first is over.
    fn go_on(&mut self) -> Result<()> {
        self.held = None;
        Ok(self.cancel.sleep(RUN_IN)?)
    }

    /// Sends flow-mods, and waits until they are in force.
    ///
    /// # Errors
    /// It has no flow tables, or refuses one.
    pub(super) fn load(&mut self, entries: impl Iterator<Item = Result<FlowMod>>) -> Result<()> {
        self.client.as_mut().context("a switch without flow tables")?.load(entries).map(drop)
    }

    /// How many packets the kernel tier has decided. Asking for statistics has them counted.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(super) fn kernel_hits(&mut self) -> Result<u64> {
        self.client.as_mut().context("a switch without flow tables")?.list_flows()?;
        let values = self.ask(ControlCommand::Caches { set: None })?;
        Ok(values.iter().filter_map(|worker| worker["kernel_hits"].as_u64()).sum())
    }

    fn ask(&self, command: ControlCommand) -> Result<Vec<serde_json::Value>> {
        ctl::ask(&self.folder.path().join(CONTROL), command)
    }

    /// A switch that falls back to user space must not be measured as what it is not.
    fn ensure_tier(&self) -> Result<()> {
        let set = Some("frame,key,kernel".to_owned());
        self.ask(ControlCommand::Caches { set })
            .with_context(|| format!("its last lines:\n{}", self.service.tails()))
            .map(drop)
    }

    /// What its programs wrote last, for errors.
    fn tails(&self) -> String {
        self.service.tails()
    }
}

fn start_weir(
    context: &ServiceContext<'_>,
    ports: &[String],
    poll: &str,
    caches: &str,
) -> Result<Service> {
    let mut command = Command::new(&context.paths.weir);
    command.arg("switch");
    for (index, port) in ports.iter().enumerate() {
        command.arg("--port").arg(format!("{}=af_packet:{port}", index + 1));
    }
    command.arg("--control").arg(context.dir.join(CONTROL));
    command.arg("--listen").arg(format!("punix:{}", context.dir.join(OPENFLOW).display()));
    command.args(["--protocols", "OpenFlow13", "--workers", "1", "--poll", poll]);
    // The bench is silent for longer than any probe waits, as others are measured.
    command.args(["--caches", caches, "--inactivity-probe", "0"]);
    let mut process = Process::start("weir-switch", command, context.namespace, context.dir)?;
    process.wait_for_text("ready", START_LIMIT, context.cancel)?;
    let mut service = Service::new();
    service.add(process, Some(ProcessRole::Switch), 0);
    Ok(service)
}

fn start_ovs(context: &ServiceContext<'_>, ports: &[String], settings: &[&str]) -> Result<Service> {
    let mut service = ovs::start_daemon(context, settings)?;
    let mut text = format!(
        "add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure protocols={} \
         other_config:disable-in-band=true",
        context.version.name()
    );
    for (index, port) in ports.iter().enumerate() {
        let number = index + 1;
        text += &format!(" -- add-port br0 {port} -- set interface {port} ofport_request={number}");
    }
    ovs::configure(context, &text, &mut service)?;
    wait_for(&context.dir.join(OPENFLOW), context.cancel)?;
    Ok(service)
}

/// Open vSwitch opens a bridge's socket after it has said that the bridge is there.
fn wait_for(socket: &Path, cancel: &Cancel) -> Result<()> {
    let is_there = cancel.poll(START_LIMIT, || socket.exists())?;
    ensure!(is_there, "Open vSwitch has not opened {}", socket.display());
    Ok(())
}
