//! Weir's own controller, started as a process like every other.

use std::process::Command;

use super::{Controller, ControllerPlan, START_LIMIT};
use crate::load::Role;
use crate::process::Process;
use crate::service::{Error, Service, Settings};
use crate::tools::{Missing, Program};

/// `weir controller`.
pub(super) struct Weir;

impl Controller for Weir {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn about(&self) -> &'static str {
        "Weir's controller with its ready applications"
    }

    fn programs(&self, settings: &Settings) -> Result<Vec<Program>, Missing> {
        Ok(vec![Program::ask("weir", &settings.weir, &["--version"])])
    }

    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, Error> {
        let place = &plan.place;
        let mut command = Command::new(&place.settings.weir);
        command.args(["controller", plan.app.name(), "--listen"]);
        command.arg(format!("tcp:{}:{}", plan.address, plan.port));
        let mut process = Process::start("weir-controller", command, place.namespace, place.dir)?;
        process.wait_for_text("listening on", START_LIMIT, place.cancel)?;
        let mut service = Service::new();
        service.add(process, Some(Role::Controller), 0);
        Ok(service)
    }
}
