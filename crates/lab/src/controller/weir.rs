//! Weir's own controller, started as a process like every other.

use std::process::Command;
use std::time::Duration;

use programs::process::Process;
use programs::tools::Program;

use super::{ControllerPlan, ControllerProgram, START_LIMIT, add_keys, service_of};
use crate::service::{Service, ServiceError};

/// `weir controller`.
pub(super) const WEIR: ControllerProgram = ControllerProgram {
    name: "weir",
    about: "Weir's controller with its ready applications",
    has_tls: true,
    start_cost: Duration::from_millis(300),
    programs: |paths| Ok(vec![Program::ask("weir", &paths.weir, &["--version"])]),
    start: |plan| start_weir(plan, plan.app.name(), &[]),
};

/// Starts it with any app of its own, and with further words on its command line.
///
/// # Errors
/// The program's own words, where it does not start.
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
    add_keys(&mut command, plan);
    let mut process = Process::start("weir-controller", command, context.namespace, context.dir)?;
    process.wait_for_text("listening on", START_LIMIT, context.cancel)?;
    Ok(service_of(process, 0))
}
