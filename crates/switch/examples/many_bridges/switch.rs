//! The switch under measurement: the program `weir` beside this one, with a file of many bridges.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use files::proc::ProcFolder;

use crate::Result;
use crate::controllers::Controllers;
use crate::wire;

/// A running `weir switch`; it ends with the value.
pub(crate) struct Switch {
    child: Child,
}

/// The file of the bridges.
fn config(folder: &Path, controllers: &Controllers, count: usize, with_tap: bool) -> String {
    let mut text = format!("control = \"none\"\n{}", controllers.options());
    for number in 1..=count {
        let ports = match (number, with_tap) {
            (1, _) => wire::specs(folder),
            (_, false) => format!("\"null:b{number}p1\", \"null:b{number}p2\""),
            (_, true) => format!("\"tap:wb{number}p1\", \"tap:wb{number}p2\""),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[[bridge]]\nname = \"b{number}\"\ndpid = \"{number:x}\"\nport = [{ports}]"
        );
    }
    text
}

/// `weir` as it was built with this example.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).ok_or("this program lies in no folder")?;
    let program = folder.join("weir");
    if !program.exists() {
        let what = "is not there: cargo build --release -p weir-cli";
        return Err(format!("{} {what}", program.display()).into());
    }
    Ok(program)
}

impl Switch {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(
        folder: &Path,
        controllers: &Controllers,
        count: usize,
        with_tap: bool,
    ) -> Result<Self> {
        let file = folder.join("bridges.toml");
        fs::write(&file, config(folder, controllers, count, with_tap))?;
        let mut command = Command::new(program()?);
        command.arg("switch").arg("--config").arg(&file).args(["--log", "error"]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut switch = Self { child };
        let errors = switch.child.stderr.take().ok_or("the switch has no standard error")?;
        let mut lines = BufReader::new(errors).lines();
        loop {
            let line = lines.next().ok_or("the switch ended before it was ready")??;
            if line.contains("ready") {
                break;
            }
            eprintln!("{line}");
        }
        // Whatever else it says is passed on.
        std::thread::spawn(move || {
            for line in lines.map_while(std::result::Result::ok) {
                eprintln!("{line}");
            }
        });
        Ok(switch)
    }

    /// Seconds of CPU that all its threads have used.
    pub(crate) fn cpu_s(&self) -> Result<f64> {
        let threads = ProcFolder::of(self.child.id()).threads()?.into_iter();
        let ran = threads.map(|(_, thread)| thread.sched_time().map(|time| time.ran_ns));
        Ok(ran.sum::<Option<u64>>().ok_or("there is no schedstat")? as f64 / 1e9)
    }

    /// Its resident memory.
    pub(crate) fn memory_mib(&self) -> Result<f64> {
        let bytes = ProcFolder::of(self.child.id()).memory("VmRSS").ok_or("there is no VmRSS")?;
        Ok(bytes as f64 / 1_048_576.0)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended by itself; its devices end with it, and its files with the folder.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
