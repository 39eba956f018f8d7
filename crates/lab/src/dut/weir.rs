//! Weir's own switch, started as a process like every other.

use std::process::Command;
use std::time::Duration;

use super::{Dut, DutPlan, PortName};
use crate::load::ProcessRole;
use crate::process::Process;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::testbed::DPID;
use crate::tools::{Missing, Program};

const START_LIMIT: Duration = Duration::from_secs(20);

/// `weir switch`.
pub(super) struct WeirSwitch;

impl Dut for WeirSwitch {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn about(&self) -> &'static str {
        "Weir's user-space switch, AF_PACKET ports"
    }

    fn has_memory_ports(&self) -> bool {
        true
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![Program::ask("weir", &paths.weir, &["--version"])])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<Service, ServiceError> {
        let context = &plan.context;
        let mut command = Command::new(&context.paths.weir);
        command.args(["switch", "--dpid", DPID]);
        for (index, port) in plan.ports.iter().enumerate() {
            let text = match port {
                PortName::Device(device) => format!("af_packet:{device}"),
                PortName::Memory(text) => text.clone(),
            };
            command.arg("--port").arg(format!("{}={text}", index + 1));
        }
        command.args(["--controller", plan.controller, "--protocols"]);
        command.arg(context.version.to_string()).args(["--fail-mode", "secure"]);
        command.arg("--control").arg(context.dir.join("ctl.sock"));
        let mut process = Process::start("weir-switch", command, context.namespace, context.dir)?;
        process.wait_for_text("ready", START_LIMIT, context.cancel)?;
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Switch), 0);
        Ok(service)
    }
}
