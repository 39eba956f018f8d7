//! os-ken (the maintained fork of Ryu) with a hub and a learning switch of the lab's own.

use std::process::Command;
use std::time::Duration;

use programs::tools;

use super::start_listening;
use crate::dut::Dut;

/// The applications; the file's name is the module's name, which it needs to import itself.
const SCRIPT: &str = include_str!("osken_app.py");
const SCRIPT_NAME: &str = "weir_lab_osken.py";

/// os-ken in its virtual environment.
pub(super) const OS_KEN: Dut = Dut {
    // Python's imports.
    start_cost: Duration::from_millis(1_500),
    programs: |_, paths| Ok(vec![tools::os_ken(&paths.os_ken_dir)?]),
    serve: |context, app, at| {
        let mut command = Command::new(tools::os_ken_python(&context.paths.os_ken_dir)?);
        command.arg(context.write(SCRIPT_NAME, SCRIPT)?).arg(app.name());
        command.args([&at.ip().to_string(), &at.port().to_string()]);
        command.arg(context.version.row().release);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
        // Threads under the interpreter's lock: one core at most, however many threads.
        start_listening("os-ken", command, context, at.port(), 1)
    },
    ..Dut::controller("os-ken", "os-ken (Python), hub and learning switch as its users write them")
};
