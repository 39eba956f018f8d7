//! Programs that a task needs in one version and `cargo install` builds.
//!
//! They are built without optimisation, which takes about a minute instead of five, and stay in
//! cargo's own folder, so that the next run finds them. Another version than the wanted one must
//! never pass for it: results and formats differ between versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell;

/// A program that `cargo install` builds.
pub(crate) struct Tool {
    /// The package, which is the program's name too.
    pub(crate) name: &'static str,
    /// The version, in full.
    pub(crate) version: &'static str,
}

impl Tool {
    /// The command that a person would type, for the list of what did not run.
    pub(crate) fn how_to_install(&self) -> String {
        let Self { name, version } = self;
        format!("{name} {version} is missing (cargo install {name} --version {version} --locked)")
    }

    /// Whether this program says that it is the wanted version.
    fn is(&self, program: &Path) -> bool {
        let printed = shell::capture(Command::new(program).arg("--version"));
        printed.is_ok_and(|printed| self.is_named_in(&printed))
    }

    fn is_named_in(&self, printed: &str) -> bool {
        printed.split_whitespace().any(|word| word == self.version)
    }
}

/// The program in the wanted version, built if it is missing; `cargo` makes the command for that.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn find_or_install(tool: &Tool, cargo: impl FnOnce() -> Command) -> Result<PathBuf> {
    if let Some(program) = find(tool) {
        return Ok(program);
    }
    let Tool { name, version } = tool;
    println!("installing {name} {version}");
    let mut command = cargo();
    command.args(["install", name, "--version", version, "--locked", "--debug", "--force"]);
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    shell::run(&mut command)?;
    match find(tool) {
        Some(program) => Ok(program),
        None => bail!("cargo installed {name}, and {version} is not found in its folder"),
    }
}

/// The program in the wanted version, in cargo's folder or on the path.
pub(crate) fn find(tool: &Tool) -> Option<PathBuf> {
    let own = cargo_home().map(|home| home.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = own.into_iter().chain(std::env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join(tool.name)).filter(|program| tool.is(program)))
}

/// The folder in which cargo keeps what it installs.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Some(PathBuf::from(home));
    }
    std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"))
}

#[cfg(test)]
mod tests {
    use super::Tool;

    #[test]
    fn another_version_is_not_taken() {
        let printed = "some-tool 1.2.10\n";
        assert!(Tool { name: "some-tool", version: "1.2.10" }.is_named_in(printed));
        assert!(!Tool { name: "some-tool", version: "1.2.1" }.is_named_in(printed));
    }
}
