//! Nothing stays behind: no process, no network namespace, no interface of a run.
//!
//! Processes are known by a mark in their environment, so those of other people on the same machine
//! never count. What is still there is given a few seconds, because the kernel takes namespaces
//! down in its own time; then it is named, and processes are ended.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{RUN_MARK, Tally};
use crate::shell;

const PATIENCE: Duration = Duration::from_secs(10);

/// Namespaces and interfaces of a moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    namespaces: BTreeSet<String>,
    interfaces: BTreeSet<String>,
}

impl Snapshot {
    pub(super) fn take() -> Self {
        Self {
            namespaces: names_in(Path::new("/run/netns")),
            interfaces: names_in(Path::new("/sys/class/net")),
        }
    }
}

/// Compares with the state before the run; ends marked processes that are still there.
pub(super) fn check(before: &Snapshot, mark: &str) -> Result<Tally> {
    let deadline = Instant::now() + PATIENCE;
    let mut left = left_behind(before, mark);
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(200));
        left = left_behind(before, mark);
    }
    for what in &left {
        println!("left behind: {what}");
    }
    for pid in marked_processes(mark) {
        shell::run(std::process::Command::new("kill").args(["-KILL", &pid.to_string()]))?;
    }
    Ok(Tally::of(left.is_empty()))
}

fn left_behind(before: &Snapshot, mark: &str) -> Vec<String> {
    let now = Snapshot::take();
    let new_namespaces = now.namespaces.difference(&before.namespaces);
    let new_interfaces = now.interfaces.difference(&before.interfaces);
    let mut left: Vec<String> = new_namespaces.map(|n| format!("namespace {n}")).collect();
    left.extend(new_interfaces.map(|n| format!("interface {n}")));
    left.extend(marked_processes(mark).iter().map(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        format!("process {pid}: {words}")
    }));
    left
}

/// Processes that carry the mark of this run.
fn marked_processes(mark: &str) -> Vec<u32> {
    let entry = format!("{RUN_MARK}={mark}");
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
    };
    let all = names_in(Path::new("/proc"));
    all.iter().filter_map(|name| name.parse().ok()).filter(carries).collect()
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    // A folder that does not exist holds nothing: /run/netns appears with the first namespace.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{RUN_MARK, Snapshot, left_behind, marked_processes};
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_stays_is_found_by_its_mark() {
        let mark = format!("unit-test-{}", std::process::id());
        let mut child = Command::new("cat")
            .env(RUN_MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A process has no environment until the kernel has set up its stack. What answers has one.
        let mut byte = [0];
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        assert_eq!(marked_processes(&mark), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(marked_processes(&mark).is_empty());
    }

    #[test]
    fn only_what_is_new_counts() {
        let mark = format!("unit-test-none-{}", std::process::id());
        let mut before = Snapshot::take();
        let known = |what: &str| left_behind(&before, &mark).iter().any(|left| left == what);
        assert!(!known("interface lo"));
        before.interfaces.remove("lo");
        assert!(left_behind(&before, &mark).iter().any(|left| left == "interface lo"));
    }
}
