//! The examples of Weir's Python package, as a controller for a fleet.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use programs::tools::{Missing, Program};

use super::start_listening;
use crate::dut::Dut;
use crate::settings::AppKind;

/// The variable of the interpreter, and the package's examples.
const VARIABLE: &str = "WEIR_PYTHON";
const HUB: &str = include_str!("../../../../../python/examples/hub.py");
const LEARNING_SWITCH: &str = include_str!("../../../../../python/examples/learning_switch.py");

/// `weir run`.
pub(super) const WEIR_PYTHON: Dut = Dut {
    start_cost: Duration::from_secs(1),
    programs: |_, _| {
        let python = std::env::var_os(VARIABLE).map_or_else(|| "python3".into(), PathBuf::from);
        let asked = Command::new(&python).args(["-c", "import weir._weir"]).output();
        if !asked.is_ok_and(|output| output.status.success()) {
            return Err(Missing(format!(
                "{} has no package weir: `pip install .` in the repository, or name another \
                 interpreter by {VARIABLE}",
                python.display()
            )));
        }
        Ok(vec![Program::ask("python", &python, &["--version"])])
    },
    serve: |context, app, at| {
        let (file, text) = match app {
            AppKind::Hub => ("hub.py", HUB),
            AppKind::LearningSwitch => ("learning_switch.py", LEARNING_SWITCH),
        };
        let mut command = Command::new(&context.paths.weir);
        command.arg("run").arg(context.write(file, text)?);
        command.args(["--protocols", context.version.name(), "--listen", &format!("tcp:{at}")]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        start_listening("weir-python", command, context, at.port(), 0)
    },
    ..Dut::controller(
        "weir-python",
        "Weir's hub and learning switch in Python, with the interpreter of WEIR_PYTHON",
    )
};
