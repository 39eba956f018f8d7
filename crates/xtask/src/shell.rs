//! Running other programs: cargo, git, suites.
//!
//! One place, so that every failure names the program and its arguments. It must never run a text
//! through a shell.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The cargo that runs us, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A small target that needs what tests need. Cargo gives a dependency the features that all chosen
/// targets ask for, so with this, and the whole workspace, it compiles nothing that tests have not.
pub(crate) const AS_TESTS: [&str; 2] = ["--example", "seeds"];

/// The debug build of `weir`, with the features that the tests give it.
///
/// # Errors
/// When it does not compile.
pub(crate) fn debug_weir(root: &Path) -> Result<PathBuf> {
    let mut build = cargo();
    build.current_dir(root).args(["build", "--quiet", "--workspace", "--bin", "weir"]);
    run(build.args(AS_TESTS))?;
    Ok(target(root).join("debug/weir"))
}

/// The folder in which cargo builds the workspace at `root`.
pub(crate) fn target(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir),
        None => root.join("target"),
    }
}

/// The program and its arguments, as a person would type them.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a program and gives its standard output.
///
/// # Errors
/// When it cannot be started or ends with a failure; its standard error is in the message.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting `{}`", shown(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", shown(command), output.status, errors.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program, its output going where ours goes.
///
/// # Errors
/// When it cannot be started or ends with a failure.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a program, passes its standard output on line by line and shows each line to `seen`.
/// Returns whether it succeeded.
///
/// # Errors
/// When it cannot be started or waited for.
pub(crate) fn watch(command: &mut Command, mut seen: impl FnMut(&str)) -> Result<bool> {
    let text = shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting `{text}`"))?;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            let shown = String::from_utf8_lossy(&line);
            print!("{shown}");
            seen(shown.trim_end());
            line.clear();
        }
    }
    Ok(child.wait().with_context(|| format!("waiting for `{text}`"))?.success())
}

/// Whether a program of this name is on the path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::{capture, on_path, watch};
    use std::process::Command;

    #[test]
    fn a_failure_names_the_program_and_its_words() {
        let error = capture(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`sh -c") && text.contains("no"), "{text}");
    }

    #[test]
    fn lines_are_seen_as_they_come() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo a; echo b; exit 1"]);
        let well = watch(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert!(!well);
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-of-this-name"));
    }
}
