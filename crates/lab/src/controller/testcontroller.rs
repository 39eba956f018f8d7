//! Open vSwitch's `ovs-testcontroller`: a learning switch, or a hub.
//!
//! With `--hub` alone it would still install entries; `--noflow` makes every packet go through it.

use std::process::Command;

use programs::process::Process;
use programs::tools::{Missing, Program, Tool};

use super::{AppKind, ControllerPlan, ControllerProgram, wait_until_listening};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};

/// `ovs-testcontroller`.
pub(super) struct OvsTestcontroller;

impl ControllerProgram for OvsTestcontroller {
    fn name(&self) -> &'static str {
        "ovs-testcontroller"
    }

    fn about(&self) -> &'static str {
        "Open vSwitch's small controller in C"
    }

    fn has_tls(&self) -> bool {
        true
    }

    fn programs(&self, _settings: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![Tool::OvsTestcontroller.program()?])
    }

    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
        let context = &plan.context;
        let mut command = Command::new(Tool::OvsTestcontroller.find()?);
        command.env("OVS_RUNDIR", context.dir).env("OVS_LOGDIR", context.dir);
        command.args(["-O", context.version.name(), "-vsyslog:off"]);
        command.arg(format!("--unixctl={}", context.dir.join("testcontroller.ctl").display()));
        match plan.app {
            AppKind::Hub => {
                command.args(["--hub", "--noflow"]);
            }
            AppKind::LearningSwitch => {}
        }
        let transport = if plan.keys.is_some() { "pssl" } else { "ptcp" };
        command.arg(format!("{transport}:{}:{}", plan.port, plan.address));
        if let Some(keys) = plan.keys {
            command.arg("--private-key").arg(&keys.controller.private_key);
            command.arg("--certificate").arg(&keys.controller.certificate);
            command.arg("--ca-cert").arg(&keys.controller.ca_cert);
        }
        let mut process =
            Process::start("ovs-testcontroller", command, context.namespace, context.dir)?;
        wait_until_listening(&mut process, plan, context.cancel)?;
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Controller), 1);
        Ok(service)
    }
}
