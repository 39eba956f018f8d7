//! The demo of the README, as a user meets it: to its end, stopped by Ctrl-C, and without root.
//!
//! The step `leftovers` looks at what it leaves in the system. It must never look at the
//! figures: a test does not measure.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Context, Extent, Tally};
use crate::shell;

/// One start of each of a demo of under two minutes, on a busy machine.
const WHOLE: Duration = Duration::from_secs(240);
/// From Ctrl-C to the end.
const STOP: Duration = Duration::from_secs(30);
/// When Ctrl-C comes: hosts, switch and controller are up by then.
const STOP_AFTER: Duration = Duration::from_secs(4);

/// Runs the demo to its end, stopped and without root; each run is a check.
pub(super) fn run(context: &Context) -> Result<Tally> {
    let dir = Scratch::new(&context.mark)?;
    let weir = dir.path.join("weir");
    std::fs::copy(context.weir(), &weir)?;
    let mut tally = Tally::default();
    let repeats = if context.extent == Extent::Soak { 3 } else { 1 };
    for number in 1..=repeats {
        let folder = dir.folder(&format!("whole-{number}"))?;
        tally.check("to its end", whole(context.command(&weir), &folder));
    }
    tally.check("stopped", stopped(context.command(&weir), &dir.folder("stopped")?));
    if context.is_root {
        let mut command = context.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&weir);
        tally.check("without root", whole(command, &dir.folder("without-root")?));
    }
    Ok(tally)
}

/// A folder that everybody may use, removed at the end.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(mark: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("weir-demo-{mark}"));
        make_open(&path)?;
        Ok(Self { path })
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        make_open(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            println!("could not remove {}: {error}", self.path.display());
        }
    }
}

fn make_open(path: &Path) -> Result<()> {
    std::fs::create_dir(path)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)))
        .with_context(|| format!("making {}", path.display()))
}

/// The demo with one start of each: it ends well, and both reports are there and whole.
fn whole(mut command: Command, out: &Path) -> Result<()> {
    command.args(["demo", "--starts", "1", "--out"]).arg(out).current_dir(out);
    let status = wait(start(&mut command)?, WHOLE)?;
    if !status.success() {
        bail!("ended with {status}");
    }
    let read = |name: &str| {
        std::fs::read_to_string(out.join(name)).with_context(|| format!("reading {name}"))
    };
    for line in read("trials.jsonl")?.lines() {
        serde_json::from_str::<Value>(line).context("trials.jsonl")?;
    }
    let page = read("report.html")?;
    let fetches = ["src=\"http", "src='http", "url(http", "@import", "<link"];
    if let Some(found) = fetches.iter().find(|word| page.contains(*word)) {
        bail!("report.html has `{found}`: it must open from disk without a network");
    }
    Ok(())
}

/// The demo, stopped in the middle by the signal of Ctrl-C: it ends soon.
fn stopped(mut command: Command, out: &Path) -> Result<()> {
    command.args(["demo", "--out"]).arg(out).current_dir(out);
    let mut child = start(&mut command)?;
    std::thread::sleep(STOP_AFTER);
    if let Some(status) = child.try_wait()? {
        bail!("ended with {status} before it could be stopped");
    }
    shell::run(Command::new("kill").args(["-INT", &child.id().to_string()]))?;
    wait(child, STOP).map(|_| ())
}

fn start(command: &mut Command) -> Result<Child> {
    let text = shell::shown(command);
    command.stdin(Stdio::null()).spawn().with_context(|| format!("starting `{text}`"))
}

/// Waits for the end; a program that goes on for longer is ended and is a failure.
fn wait(mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    bail!("did not end within {} s", limit.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{start, wait};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let child = start(Command::new("sleep").arg("600")).unwrap();
        let error = wait(child, Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("did not end within"), "{error}");
        let child = start(&mut Command::new("true")).unwrap();
        assert!(wait(child, Duration::from_secs(60)).unwrap().success());
    }
}
