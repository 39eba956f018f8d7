//! DPDK's testpmd: forwarding between two devices without a look at the packets, the bound of what
//! any switch can do with these devices.
//!
//! Its counters are read over DPDK's telemetry socket, which lies in the scratch folder with all
//! its other files (`dut::counters`).

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use programs::huge_pages::{self, HUGE_MB};
use programs::tools::Tool;

use super::counters::{open_telemetry, telemetry_counts};
use super::{
    Dut, DutCounters, DutPlan, Lack, NO_CACHES, ONE_THREAD, PortName, REPLAYS_BY_DPDK, StartedDut,
    refuse,
};
use crate::load::ProcessRole;
use crate::service::Service;
use crate::settings::Forwarding;
use crate::testbed::Testbed;

const START_LIMIT: Duration = Duration::from_secs(60);

/// `dpdk-testpmd` between the devices of a replay.
pub(super) const TESTPMD: Dut = Dut {
    check: |_, settings, _| refuse(LACKS, settings),
    programs: |_, _| {
        huge_pages::check()?;
        Ok(vec![Tool::TESTPMD.program()?])
    },
    start,
    ..Dut::new(
        "testpmd",
        "DPDK's testpmd, which forwards without tables: the bound of what a switch can do with \
            the devices of a replay; needs huge pages",
    )
};

const LACKS: &[Lack] = &[
    REPLAYS_BY_DPDK,
    (
        |of| of.forwarding() != Forwarding::Io || of.replay.is_none(),
        "replays a trace without tables, and nothing else",
    ),
    NO_CACHES,
    ONE_THREAD,
];

fn start(plan: &DutPlan<'_>) -> Result<StartedDut> {
    let Testbed::Replay(bed) = plan.bed else {
        bail!("testpmd replays a trace only");
    };
    let context = &plan.context;
    // Others may have started since the programs were looked for.
    huge_pages::check()?;
    let cores = format!("{},{}", bed.cores.control_core()?, bed.cores.subject[0]);
    let mut command = plan.command(&Tool::TESTPMD.find()?);
    command.args(["-l", &cores, "--no-pci", "--in-memory", "-m", &HUGE_MB.to_string()]);
    for port in plan.ports {
        if let PortName::Dpdk(device) = port {
            command.arg(format!("--vdev={device}"));
        }
    }
    command.args(["--", "--auto-start", "--tx-first"]);
    command.args(["--total-num-mbufs=131072", "--rxd=512", "--txd=512", "--burst=32"]);
    command.args(["--forward-mode=io", "--stats-period", "3600"]);
    command.env("RUNTIME_DIRECTORY", context.dir);
    let mut process = context.start("testpmd", command)?;
    let path = context.dir.join("dpdk/rte/dpdk_telemetry.v2");
    let mut opened = Err(anyhow!("not tried"));
    let waited = process.wait_until("open its socket", START_LIMIT, context.cancel, |_| {
        // Its file is there before it takes connections.
        opened = open_telemetry(&path);
        opened.is_ok()
    });
    if let Err(last) = &opened {
        waited.with_context(|| format!("connecting to testpmd's telemetry: {last:#}"))?;
    }
    let telemetry = opened?;
    // What it prints comes late where it prints into a file; its counters do not.
    process.wait_until("send a packet", START_LIMIT, context.cancel, |_| {
        telemetry_counts(&telemetry).is_ok_and(|counts| counts.sent > 0)
    })?;
    let service = Service::of(process, ProcessRole::Switch, 0);
    let counters = Some(DutCounters::Testpmd(telemetry));
    Ok(StartedDut { service, counters, ..StartedDut::default() })
}
