//! Weir's own controller, started as a process like every other.

use std::process::Command;

use programs::process::Process;
use programs::tools::{Missing, Program};

use super::{ControllerPlan, ControllerProgram, START_LIMIT};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};

/// `weir controller`.
pub(super) struct WeirController;

impl ControllerProgram for WeirController {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn about(&self) -> &'static str {
        "Weir's controller with its ready applications"
    }

    fn has_tls(&self) -> bool {
        true
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![Program::ask("weir", &paths.weir, &["--version"])])
    }

    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
        start_weir(plan, plan.app.name(), &[])
    }
}

/// Starts it with any app of its own, and with further words on its command line.
///
/// # Errors
/// As [`ControllerProgram::start`].
pub(crate) fn start_weir(
    plan: &ControllerPlan<'_>,
    app: &str,
    words: &[&str],
) -> Result<Service, ServiceError> {
    let context = &plan.context;
    let mut command = Command::new(&context.paths.weir);
    command.args(["controller", app]).args(words).arg("--listen");
    let transport = if plan.keys.is_some() { "ssl" } else { "tcp" };
    command.arg(format!("{transport}:{}:{}", plan.address, plan.port));
    if let Some(keys) = plan.keys {
        command.arg("--private-key").arg(&keys.controller.private_key);
        command.arg("--certificate").arg(&keys.controller.certificate);
        command.arg("--ca-cert").arg(&keys.controller.ca_cert);
    }
    let mut process = Process::start("weir-controller", command, context.namespace, context.dir)?;
    process.wait_for_text("listening on", START_LIMIT, context.cancel)?;
    let mut service = Service::new();
    service.add(process, Some(ProcessRole::Controller), 0);
    Ok(service)
}
