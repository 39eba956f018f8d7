//! DPDK's testpmd: forwarding between two devices without a look at the packets, the bound of what
//! any switch can do with these devices.
//!
//! Its counters are read over DPDK's telemetry socket, which lies in the scratch folder with all
//! its other files.

use std::process::Command;
use std::time::Duration;

use programs::huge_pages::{self, HUGE_MB};
use programs::process::Process;
use programs::tools::{Missing, Program, Tool};

use super::telemetry::{PortTelemetry, open_telemetry};
use super::{Dut, DutCounters, DutId, DutPlan, PortName, StartedDut};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::{Forwarding, Replay, ReplayDevices, Settings};
use crate::testbed::Testbed;

const START_LIMIT: Duration = Duration::from_secs(60);

const ABOUT: &str = "DPDK's testpmd, which forwards without tables: the bound of what a switch can \
                     do with the devices of a replay; needs huge pages";

/// `dpdk-testpmd` between the devices of a replay.
pub(super) struct Testpmd;

impl Dut for Testpmd {
    fn id(&self) -> DutId {
        DutId::new("testpmd", ABOUT)
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        if settings.forwarding() != Forwarding::Io || settings.replay.is_none() {
            return Err("replays a trace without tables, and nothing else".to_owned());
        }
        super::no_caches(settings)?;
        super::one_thread(settings)
    }

    fn replays(&self, replay: &Replay) -> Result<(), String> {
        match replay.devices {
            ReplayDevices::Dpdk => Ok(()),
            ReplayDevices::Memory => Err("replays by DPDK's devices only".to_owned()),
        }
    }

    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        huge_pages::check(1)?;
        Ok(vec![Tool::Testpmd.program()?])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let Testbed::Replay(bed) = plan.bed else {
            return Err(ServiceError::Unfit("testpmd replays a trace only".to_owned()));
        };
        let context = &plan.context;
        // Others may have started since the programs were looked for.
        huge_pages::check(1)?;
        let cores = format!("{},{}", bed.control_core()?, bed.forwarding_cores().start);
        let mut command = Command::new("nice");
        command.args(["-n", "-20"]).arg(Tool::Testpmd.find()?);
        command.args(["-l", &cores, "--no-pci", "--in-memory", "-m", &HUGE_MB.to_string()]);
        for port in plan.ports {
            if let PortName::Dpdk(device) = port {
                command.arg(format!("--vdev={device}"));
            }
        }
        command.args(["--", "--auto-start", "--tx-first"]);
        command.args(["--total-num-mbufs=131072", "--rxd=512", "--txd=512", "--burst=32"]);
        command.arg("--forward-mode=io");
        let (process, telemetry) = launch(command, context)?;
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Switch), 0);
        let counters = Some(DutCounters::Testpmd(telemetry));
        Ok(StartedDut { counters, ..StartedDut::without_channel(service) })
    }
}

fn launch(
    mut command: Command,
    context: &ServiceContext<'_>,
) -> Result<(Process, PortTelemetry), ServiceError> {
    let ServiceContext { namespace, dir, cancel, .. } = *context;
    command.env("RUNTIME_DIRECTORY", dir).args(["--stats-period", "3600"]);
    let mut process = Process::start("testpmd", command, namespace, dir)?;
    let path = dir.join("dpdk/rte/dpdk_telemetry.v2");
    process.wait_until("open its socket", START_LIMIT, cancel, |_| path.exists())?;
    let socket = open_telemetry(&path).map_err(|error| {
        let what = format!("connecting to testpmd's telemetry: {error:#}");
        ServiceError::Unfit(what)
    })?;
    let telemetry = PortTelemetry { socket, ports: (0, 1) };
    // What it prints comes late where it prints into a file; its counters do not.
    process.wait_until("send a packet", START_LIMIT, cancel, |_| {
        telemetry.counts().is_ok_and(|counts| counts.sent > 0)
    })?;
    Ok((process, telemetry))
}
