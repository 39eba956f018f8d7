//! Removes what a run left that was killed: programs that carry the mark of its scratch folder,
//! then the folder; and the control groups that held programs to a CPU share. Network namespaces
//! have no names and go with their last process.
//!
//! It must never touch what belongs to a run that lives, nor a folder that does not say whose it
//! is.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use rustix::process::Signal;

use crate::cpu_share;
use crate::scratch::{self, Owner};

/// Time for a program after SIGTERM.
const TERM_WAIT: Duration = Duration::from_secs(3);

/// A leftover, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A program of a run that is gone was ended.
    Ended {
        /// Its process id.
        pid: u32,
        /// Its command line.
        command: String,
    },
    /// A folder of a run that is gone was removed.
    Removed(PathBuf),
    /// A folder was left alone.
    Left {
        /// Path of the folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended { pid, command } => write!(f, "ended process {pid}: {command}"),
            Self::Removed(folder) => write!(f, "removed {}", folder.display()),
            Self::Left { folder, why } => write!(f, "left {}: {why}", folder.display()),
        }
    }
}

/// Cleans the folder for temporary files `temporary`.
///
/// # Errors
/// It cannot be read.
pub fn clean(temporary: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(temporary)? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let Some(prefix) = [scratch::LAB, scratch::BENCH].into_iter().find(|p| name.starts_with(p))
        else {
            continue;
        };
        // A link could lead anywhere.
        if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let left = |why: String| Leftover::Left { folder: folder.clone(), why };
        match Owner::of_name(&name, prefix) {
            None => found.push(left("it does not say whose it is".to_owned())),
            Some(owner) if owner.is_alive() => {
                found.push(left(format!("its run lives (process {})", owner.pid)));
            }
            Some(_) => {
                found.extend(end_programs(&folder)?);
                found.push(match std::fs::remove_dir_all(&folder) {
                    Ok(()) => Leftover::Removed(folder.clone()),
                    Err(error) => left(error.to_string()),
                });
            }
        }
    }
    Ok(found)
}

/// Removes the control groups below `hierarchy` whose run is gone, and ends what is in them.
///
/// # Errors
/// The folder cannot be read.
pub fn clean_groups(hierarchy: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(hierarchy)? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let Some(owner) = Owner::of_name(&name, scratch::LAB) else { continue };
        if owner.is_alive() {
            let why = format!("its run lives (process {})", owner.pid);
            found.push(Leftover::Left { folder, why });
            continue;
        }
        let programs: Vec<Owner> =
            cpu_share::pids(&folder).into_iter().filter_map(Owner::of).collect();
        found.extend(end(&programs));
        found.push(match cpu_share::remove(&folder) {
            Ok(()) => Leftover::Removed(folder),
            Err(error) => Leftover::Left { folder, why: error.to_string() },
        });
    }
    Ok(found)
}

/// Ends the programs that carry the mark of a folder or of one in it, also those that they start
/// meanwhile.
///
/// # Errors
/// `/proc` cannot be read.
pub fn end_programs(folder: &Path) -> io::Result<Vec<Leftover>> {
    let mut ended = end(&scratch::marked(folder)?);
    ended.extend(end(&scratch::marked(folder)?));
    Ok(ended)
}

/// SIGTERM to all, some seconds to obey, SIGKILL.
fn end(programs: &[Owner]) -> Vec<Leftover> {
    let ended = programs.iter().map(|program| {
        let command = ProcFolder::of(program.pid).read("cmdline").unwrap_or_default();
        let command = command.replace('\0', " ").trim_end().to_owned();
        Leftover::Ended { pid: program.pid, command }
    });
    let ended = ended.collect();
    programs.iter().for_each(|program| program.send(Signal::TERM));
    let begun = Instant::now();
    while programs.iter().any(|program| program.is_alive()) && begun.elapsed() < TERM_WAIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    programs.iter().for_each(|program| program.send(Signal::KILL));
    ended
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::{Leftover, clean, clean_groups};
    use crate::cpu_share::Hierarchy;
    use crate::scratch::{LAB, MARK, is_marked};

    /// A program with that mark, once the kernel shows the mark: `spawn` returns when the child
    /// has left the parent's memory, a moment before its own environment can be read.
    fn sleeper(mark: &Path) -> Child {
        let child = Command::new("sleep").arg("60").env(MARK, mark).spawn().unwrap();
        let environ = format!("/proc/{}/environ", child.id());
        let begun = Instant::now();
        while !is_marked(&std::fs::read(&environ).unwrap(), mark) {
            assert!(begun.elapsed() < Duration::from_secs(20), "the mark never appeared");
            std::thread::yield_now();
        }
        child
    }

    fn folder(temporary: &Path, name: &str) -> PathBuf {
        let folder = temporary.join(format!("{LAB}{name}"));
        std::fs::create_dir_all(folder.join("dut")).unwrap();
        folder
    }

    #[test]
    fn what_a_dead_run_left_goes_and_what_lives_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let me = std::process::id();
        // No process started before the machine did.
        let dead = folder(temporary.path(), &format!("{me}-0-dead"));
        let nobody = folder(temporary.path(), "nobody");
        let own = crate::scratch::Owner::own().unwrap();
        let alive = folder(temporary.path(), &format!("{}alive", own.words()));
        let other = temporary.path().join("something-else");
        std::fs::create_dir(&other).unwrap();
        let (mut left, mut kept) = (sleeper(&dead.join("dut")), sleeper(&alive.join("dut")));
        let reaper = std::thread::spawn(move || left.wait().unwrap().success());
        let found = clean(temporary.path()).unwrap();
        assert!(!reaper.join().unwrap(), "it was ended");
        assert!(!dead.exists() && alive.exists() && nobody.exists() && other.exists());
        assert!(kept.try_wait().unwrap().is_none(), "the program of a living run runs on");
        kept.kill().unwrap();
        kept.wait().unwrap();
        assert!(found.contains(&Leftover::Removed(dead)), "{found:?}");
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.iter().any(|line| line.contains("sleep 60")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("its run lives")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("whose it is")), "{lines:?}");
    }

    #[test]
    #[ignore = "needs root"]
    fn the_group_of_a_dead_run_goes_with_its_programs() {
        let hierarchy = Hierarchy::find().expect("control groups");
        let share = "50 %".parse().unwrap();
        let living = hierarchy.make(share).expect("needs root");
        let dead = hierarchy.folder().join(format!("{LAB}{}-0-0", std::process::id()));
        std::fs::create_dir(&dead).unwrap();
        let mut left = Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(dead.join("cgroup.procs"), left.id().to_string()).unwrap();
        let reaper = std::thread::spawn(move || left.wait().unwrap().success());
        let found = clean_groups(hierarchy.folder()).unwrap();
        assert!(!reaper.join().unwrap(), "it was ended");
        assert!(!dead.exists() && found.contains(&Leftover::Removed(dead)), "{found:?}");
        let own = format!("process {}", std::process::id());
        assert!(found.iter().any(|one| one.to_string().contains(&own)), "{found:?}");
        drop(living);
    }
}
