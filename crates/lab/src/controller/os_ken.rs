//! os-ken (the maintained fork of Ryu) with a hub and a learning switch of the lab's own.

use std::process::Command;
use std::time::Duration;

use programs::process::Process;
use programs::tools::{self, Missing, Program};

use super::{ControllerPlan, ControllerProgram, wait_until_listening};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};

/// The applications; the file's name is the module's name, which it needs to import itself.
const SCRIPT: &str = include_str!("osken_app.py");
const SCRIPT_NAME: &str = "weir_lab_osken.py";

/// os-ken in its virtual environment.
pub(super) struct OsKen;

impl ControllerProgram for OsKen {
    fn name(&self) -> &'static str {
        "os-ken"
    }

    fn about(&self) -> &'static str {
        "os-ken (Python), hub and learning switch as its users write them"
    }

    fn start_cost(&self) -> Duration {
        // Python's imports.
        Duration::from_millis(1_500)
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![tools::os_ken(&paths.os_ken_dir)?.1])
    }

    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
        let context = &plan.context;
        let python = tools::os_ken_python(&context.paths.os_ken_dir)?;
        let script = context.dir.join(SCRIPT_NAME);
        std::fs::write(&script, SCRIPT)
            .map_err(|source| ServiceError::File { path: script.clone(), source })?;
        let mut command = Command::new(python);
        command.arg(&script).arg(plan.app.name()).arg(plan.address.to_string());
        command.arg(plan.port.to_string()).arg(context.version.row().release);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
        let mut process = Process::start("os-ken", command, context.namespace, context.dir)?;
        wait_until_listening(&mut process, plan, context.cancel)?;
        let mut service = Service::new();
        // Threads under the interpreter's lock: one core at most, however many threads.
        service.add(process, Some(ProcessRole::Controller), 1);
        Ok(service)
    }
}
