//! Open vSwitch's `ovs-testcontroller`: a learning switch, or a hub.
//!
//! With `--hub` alone it would still install entries; `--noflow` makes every packet go through it.

use std::process::Command;

use super::{AppKind, Controller, ControllerPlan, wait_until_listening};
use crate::load::Role;
use crate::process::Process;
use crate::service::{Error, Service, Settings};
use crate::tools::{Missing, Program, Tool};

/// `ovs-testcontroller`.
pub(super) struct OvsTestcontroller;

impl Controller for OvsTestcontroller {
    fn name(&self) -> &'static str {
        "ovs-testcontroller"
    }

    fn about(&self) -> &'static str {
        "Open vSwitch's small controller in C"
    }

    fn programs(&self, _settings: &Settings) -> Result<Vec<Program>, Missing> {
        Ok(vec![Tool::OvsTestcontroller.program()?])
    }

    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, Error> {
        let place = &plan.place;
        let mut command = Command::new(Tool::OvsTestcontroller.find()?);
        command.env("OVS_RUNDIR", place.dir).env("OVS_LOGDIR", place.dir);
        command.args(["-O", place.version.ovs_name(), "-vsyslog:off"]);
        command.arg(format!("--unixctl={}", place.dir.join("testcontroller.ctl").display()));
        match plan.app {
            AppKind::Hub => {
                command.args(["--hub", "--noflow"]);
            }
            AppKind::LearningSwitch => {}
        }
        command.arg(format!("ptcp:{}:{}", plan.port, plan.address));
        let mut process =
            Process::start("ovs-testcontroller", command, place.namespace, place.dir)?;
        wait_until_listening(&mut process, plan, place.cancel)?;
        let mut service = Service::new();
        service.add(process, Some(Role::Controller), 1);
        Ok(service)
    }
}
