//! os-ken (the maintained fork of Ryu) with a hub and a learning switch of the lab's own.

use std::process::Command;
use std::time::Duration;

use programs::tools;

use super::{ControllerPlan, ControllerProgram, start_listening};
use crate::service::{Service, ServiceError};

/// The applications; the file's name is the module's name, which it needs to import itself.
const SCRIPT: &str = include_str!("osken_app.py");
const SCRIPT_NAME: &str = "weir_lab_osken.py";

/// os-ken in its virtual environment.
pub(super) const OS_KEN: ControllerProgram = ControllerProgram {
    name: "os-ken",
    about: "os-ken (Python), hub and learning switch as its users write them",
    has_tls: false,
    // Python's imports.
    start_cost: Duration::from_millis(1_500),
    programs: |paths| Ok(vec![tools::os_ken(&paths.os_ken_dir)?.1]),
    start,
};

fn start(plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
    let context = &plan.context;
    let python = tools::os_ken_python(&context.paths.os_ken_dir)?;
    let script = context.dir.join(SCRIPT_NAME);
    std::fs::write(&script, SCRIPT)
        .map_err(|source| ServiceError::File { path: script.clone(), source })?;
    let mut command = Command::new(python);
    command.arg(&script).arg(plan.app.name()).arg(plan.address.to_string());
    command.arg(plan.port.to_string()).arg(context.version.row().release);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
    // Threads under the interpreter's lock: one core at most, however many threads.
    start_listening("os-ken", command, plan, 1)
}
