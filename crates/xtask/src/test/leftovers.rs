//! Nothing stays behind: no process, no network namespace, no interface of a run.
//!
//! Processes are known by a mark in their environment, so those of other people on the same machine
//! never count. What is still there is given a few seconds, because the kernel takes namespaces
//! down in its own time; then it is named, and processes are ended.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::{RUN_MARK, Tally};

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
    end(&[(RUN_MARK, mark)])?;
    Ok(if left.is_empty() { Tally::of(true) } else { Tally::failure(left.join(", ")) })
}

fn left_behind(before: &Snapshot, mark: &str) -> Vec<String> {
    let now = Snapshot::take();
    let new_namespaces = now.namespaces.difference(&before.namespaces);
    let new_interfaces = now.interfaces.difference(&before.interfaces);
    let mut left: Vec<String> = new_namespaces.map(|n| format!("namespace {n}")).collect();
    left.extend(new_interfaces.map(|n| format!("interface {n}")));
    left.extend(carrying(&[(RUN_MARK, mark)]).iter().map(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        format!("process {pid}: {words}")
    }));
    left
}

/// Processes that carry all these marks in their environment.
pub(super) fn carrying(marks: &[(&str, &str)]) -> Vec<u32> {
    let wanted: Vec<String> = marks.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |one: &String| environment.split(|byte| *byte == 0).any(|e| e == one.as_bytes());
        wanted.iter().all(has)
    };
    let all = names_in(Path::new("/proc"));
    all.iter().filter_map(|name| name.parse().ok()).filter(carries).collect()
}

/// Ends the processes that carry these marks, and those that they start meanwhile.
///
/// # Errors
/// When some go on in spite of it.
pub(super) fn end(marks: &[(&str, &str)]) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = carrying(marks);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("processes {left:?} go on although they were killed");
        }
        for pid in left.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            match kill_process(pid, Signal::KILL) {
                // It has ended by itself.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => bail!("ending process {pid:?}: {error}"),
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    // A folder that does not exist holds nothing: /run/netns appears with the first namespace.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{RUN_MARK, Snapshot, carrying, end, left_behind};
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
        assert_eq!(carrying(&[(RUN_MARK, &mark)]), [child.id()]);
        end(&[(RUN_MARK, &mark), ("ANOTHER_MARK", "")]).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "it carries one of two marks only");
        // A killed process has no environment, even before it is waited for.
        end(&[(RUN_MARK, &mark)]).unwrap();
        child.wait().unwrap();
        assert!(carrying(&[(RUN_MARK, &mark)]).is_empty());
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
