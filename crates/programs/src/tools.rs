//! The programs of others that a run needs: where they are, which version, how to get them.
//!
//! A missing program is a fact with a remedy, not an error: rows say "not installed: ...". It must
//! never install anything.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::process;

/// The os-ken release that the lab is tried with.
const OS_KEN_VERSION: &str = "4.2.2";

/// A program of others.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The command's name.
    pub command: &'static str,
    /// Debian's package.
    package: &'static str,
    /// The option by which it says its version.
    version: &'static str,
}

impl Tool {
    /// `ping` of iputils.
    pub const PING: Self = Self { version: "-V", ..Self::of("ping", "iputils-ping") };
    /// `iperf3`.
    pub const IPERF3: Self = Self::of("iperf3", "iperf3");
    /// `iperf`, version 2.
    pub const IPERF2: Self = Self::of("iperf", "iperf");
    /// Open vSwitch's daemon.
    pub const VSWITCHD: Self = Self::of("ovs-vswitchd", "openvswitch-switch");
    /// Open vSwitch's database server.
    pub const OVSDB_SERVER: Self = Self::of("ovsdb-server", "openvswitch-switch");
    /// Makes the database.
    pub const OVSDB_TOOL: Self = Self::of("ovsdb-tool", "openvswitch-switch");
    /// Configures the switch.
    pub const OVS_VSCTL: Self = Self::of("ovs-vsctl", "openvswitch-switch");
    /// Asks Open vSwitch's daemon.
    pub const OVS_APPCTL: Self = Self::of("ovs-appctl", "openvswitch-common");
    /// Open vSwitch's small controller.
    pub const OVS_TESTCONTROLLER: Self =
        Self::of("ovs-testcontroller", "openvswitch-testcontroller");
    /// DPDK's forwarder without tables.
    pub const TESTPMD: Self = Self::of("dpdk-testpmd", "dpdk-dev");

    const fn of(command: &'static str, package: &'static str) -> Self {
        Self { command, package, version: "--version" }
    }

    /// Path of the program, or the way to get it.
    pub fn find(self) -> Result<PathBuf, Missing> {
        let Self { command, package, .. } = self;
        which(command)
            .ok_or_else(|| Missing(format!("{command} not installed: apt-get install {package}")))
    }

    /// The program with the first line that it says about its version, or the way to get it.
    pub fn program(self) -> Result<Program, Missing> {
        Ok(Program::ask(self.command, &self.find()?, &[self.version]))
    }
}

/// Something is not installed: what, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// A program as the report names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// First line of its version.
    pub version: String,
    /// Its path.
    pub path: String,
}

impl Program {
    /// Asks the program at `path` for its version.
    pub fn ask(name: &str, path: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(path);
        command.args(args);
        let version = first_line(command).unwrap_or_else(|| "unknown".to_owned());
        Self { name: name.to_owned(), version, path: path.display().to_string() }
    }
}

fn first_line(command: Command) -> Option<String> {
    let dir = tempfile::tempdir().ok()?;
    let limit = Duration::from_secs(20);
    let output = process::run("version", command, None, dir.path(), limit, &Cancel::default());
    let text = output.ok()?.text;
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Looks `command` up in `PATH`, and in the system's folders, which are not in everyone's `PATH`.
pub fn which(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|folder| folder.join(command))
        .find(|file| is_executable(file))
}

/// Whether it is a file that may be run.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Folder of os-ken's virtual environment when no other is given.
pub fn os_ken_default_dir() -> PathBuf {
    // An empty or relative folder is to be ignored (XDG Base Directory Specification).
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("weir").join(format!("os-ken-{OS_KEN_VERSION}"))
}

/// The absence of os-ken, with the command that makes its environment.
fn no_os_ken(dir: &Path) -> Missing {
    let dir = dir.display();
    Missing(format!(
        "os-ken not installed: python3 -m venv {dir} && {dir}/bin/pip install \
         os-ken=={OS_KEN_VERSION}"
    ))
}

/// The interpreter of the virtual environment `dir`, or the way to get it.
pub fn os_ken_python(dir: &Path) -> Result<PathBuf, Missing> {
    Some(dir.join("bin/python3")).filter(|it| is_executable(it)).ok_or_else(|| no_os_ken(dir))
}

/// os-ken in the virtual environment `dir`, by asking it; or the way to get it.
pub fn os_ken(dir: &Path) -> Result<Program, Missing> {
    let python = os_ken_python(dir)?;
    let ask = "import importlib.metadata as m, platform; \
               print('os-ken', m.version('os-ken'), 'on Python', platform.python_version())";
    let program = Program::ask("os-ken", &python, &["-c", ask]);
    if program.version.starts_with("os-ken ") { Ok(program) } else { Err(no_os_ken(dir)) }
}

#[cfg(test)]
mod tests {
    use super::{Program, os_ken, which};
    use std::path::Path;

    #[test]
    fn programs_are_found_in_the_path_only_when_executable() {
        assert!(which("sh").is_some());
        assert_eq!(which("no-such-program-here"), None);
    }

    #[test]
    fn a_missing_environment_says_what_to_do() {
        let error = os_ken(Path::new("/nonexistent/venv")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/venv/bin/pip install os-ken=="), "{error}");
    }

    #[test]
    fn the_version_is_the_first_line() {
        let program = Program::ask("sh", Path::new("/bin/sh"), &["-c", "echo; echo v 1; echo x"]);
        assert_eq!(program.version, "v 1");
        let silent = Program::ask("sh", Path::new("/bin/sh"), &["-c", "true"]);
        assert_eq!(silent.version, "unknown");
    }
}
