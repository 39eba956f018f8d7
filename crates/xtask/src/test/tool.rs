//! Programs of cargo's that a step needs in one version: found, or installed as root.
//!
//! They are built without optimisation, which takes about a minute instead of five, and stay in
//! cargo's own folder, so that the next run finds them. Another version than the wanted one must
//! never pass for it: results and formats differ between versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::Context;
use crate::shell;

/// A program that `cargo install` builds.
pub(super) struct Tool {
    /// The package, which is the program's name too.
    pub(super) name: &'static str,
    /// The version, in full.
    pub(super) version: &'static str,
}

impl Tool {
    /// What a person would type, for the list of what did not run.
    pub(super) fn how_to_install(&self) -> String {
        let Self { name, version } = self;
        format!("{name} {version} is missing (cargo install {name} --version {version} --locked)")
    }

    /// Whether this program says that it is the wanted version.
    fn is(&self, program: &Path) -> bool {
        let said = shell::capture(Command::new(program).arg("--version"));
        said.is_ok_and(|said| self.is_named_in(&said))
    }

    fn is_named_in(&self, said: &str) -> bool {
        said.split_whitespace().any(|word| word == self.version)
    }
}

/// The program in the wanted version; none when it is missing and may not be installed.
///
/// # Errors
/// When it cannot be built.
pub(super) fn find_or_install(context: &Context, tool: &Tool) -> Result<Option<PathBuf>> {
    if let Some(program) = find(tool) {
        return Ok(Some(program));
    }
    if !(context.is_root && context.install) {
        return Ok(None);
    }
    let Tool { name, version } = tool;
    println!("installing {name} {version}");
    let mut command = context.cargo();
    command.args(["install", name, "--version", version, "--locked", "--debug", "--force"]);
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    shell::run(&mut command)?;
    match find(tool) {
        Some(program) => Ok(Some(program)),
        None => bail!("cargo installed {name}, and {version} is not found in its folder"),
    }
}

fn find(tool: &Tool) -> Option<PathBuf> {
    let own = cargo_home().map(|home| home.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = own.into_iter().chain(std::env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join(tool.name)).filter(|program| tool.is(program)))
}

/// Where cargo keeps what it installs.
pub(super) fn cargo_home() -> Option<PathBuf> {
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
        let said = "some-tool 1.2.10\n";
        assert!(Tool { name: "some-tool", version: "1.2.10" }.is_named_in(said));
        assert!(!Tool { name: "some-tool", version: "1.2.1" }.is_named_in(said));
    }
}
