//! Scratch folders of runs, each with the process that it belongs to, and the lock on a folder of
//! results.
//!
//! A run that ends removes its folders, however it ends but by SIGKILL; `weir lab clean` then finds
//! whose they were. It must never take a folder for abandoned whose owner lives.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The beginning of the name of a campaign's folders.
pub const LAB: &str = "weir-lab-";

/// The variable that every program of a run has in its environment: its folder.
pub const MARK: &str = "WEIR_LAB_FOLDER";

/// A look at a folder's lock takes no longer.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// A process, told from a later one with the same id by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    start_ticks: u64,
}

impl Owner {
    /// The process of that id, if it lives.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = ProcFolder::of(pid).read("stat").ok()?;
        // The name, in parentheses, may hold anything; 20 fields follow it up to this one.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        // One that has ended, and that nobody has asked about since, is a zombie.
        fields.next().filter(|state| *state != "Z")?;
        Some(Self { pid, start_ticks: fields.nth(18)?.parse().ok()? })
    }

    /// This process.
    pub fn own() -> io::Result<Self> {
        Self::of(std::process::id())
            .ok_or_else(|| io::Error::other("/proc does not say when this process started"))
    }

    /// The owner of a scratch folder or of a control group, where its name says so.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix(LAB)?.splitn(3, '-');
        let (pid, start_ticks) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().map(|_| Self { pid, start_ticks })
    }

    /// The beginning of such a name; more follows, by which names differ.
    pub fn prefix(self) -> String {
        format!("{LAB}{}-{}-", self.pid, self.start_ticks)
    }

    /// Sends it a signal; one that has ended gets none.
    pub fn send(self, signal: Signal) {
        if self.is_alive() {
            // One that has just ended makes this fail, and then there is nothing to do.
            let _ = self::signal(self.pid, signal);
        }
    }

    /// Whether it lives.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// Sends a process a signal.
pub(crate) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(kill_process(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
}

/// The processes that carry the mark of `folder` or of one in it.
pub fn marked(folder: &Path) -> io::Result<Vec<Owner>> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that has just ended, or is another's, says nothing.
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        if is_marked(&environment, folder) {
            programs.extend(Owner::of(pid));
        }
    }
    Ok(programs)
}

/// Whether an environment has the mark of that folder.
pub(crate) fn is_marked(environment: &[u8], folder: &Path) -> bool {
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|variable| {
        let value = std::str::from_utf8(variable).ok();
        let value = value.and_then(|text| text.strip_prefix(MARK)?.strip_prefix('='));
        value.is_some_and(|path| Path::new(path).starts_with(folder))
    })
}

/// Makes a scratch folder of this process, whose name says so from the first moment to the last.
/// Its path is short, since a socket's path may have 107 bytes only.
pub fn make() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(&Owner::own()?.prefix()).tempdir()
}

/// The right to write results into a folder; gone with the process, whatever ends it.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held for its lock")] File);

impl FolderLock {
    /// Takes it, or an error with the remedy. [`FolderLock::is_taken`] has it for a moment only.
    pub fn take(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder)?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if since.elapsed() < LOOK_MAX => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other(format!(
                        "another run writes into {}: wait for its end, or another folder: --out \
                         FOLDER",
                        folder.display()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether a run has it.
    pub fn is_taken(folder: &Path) -> io::Result<bool> {
        match File::open(folder)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FolderLock, Owner, is_marked, make};
    use std::path::Path;

    #[test]
    fn a_folder_says_whose_it_is() {
        let folder = make().unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let owner = Owner::of_name(name).unwrap();
        assert_eq!(owner, Owner::own().unwrap());
        assert!(Owner::of_name("weir-lab-GygSbt").is_none());
        assert!(Owner::of_name("weir-lab-12-34").is_none());
        assert!(owner.is_alive());
        let other = Owner { start_ticks: owner.start_ticks + 1, ..owner };
        assert!(!other.is_alive(), "the id is another process's now");
    }

    #[test]
    fn two_runs_do_not_write_into_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let error = FolderLock::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains("--out FOLDER"), "{error}");
        assert!(FolderLock::is_taken(folder.path()).unwrap());
        drop(first);
        assert!(!FolderLock::is_taken(folder.path()).unwrap());
        FolderLock::take(folder.path()).unwrap();
        assert!(FolderLock::is_taken(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_mark_is_that_of_one_folder() {
        let folder = Path::new("/tmp/weir-lab-a");
        let marked = |text: &str| is_marked(text.as_bytes(), folder);
        assert!(marked("A=1\0WEIR_LAB_FOLDER=/tmp/weir-lab-a/dut\0"));
        assert!(!marked("A=1\0WEIR_LAB_FOLDER=/tmp/weir-lab-ab\0"));
        assert!(!marked("NOTE=/tmp/weir-lab-a\0") && !marked(""));
    }
}
