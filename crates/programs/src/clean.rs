//! Removes what a run left that was killed: programs that carry the mark of its scratch folder,
//! then the folder; and the control groups that held programs to a CPU share. Network namespaces
//! have no names and go with their last process.
//!
//! It must never touch what belongs to a run that lives, nor a folder that does not say whose it
//! is.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use rustix::process::Signal;

use crate::cpu_share;
use crate::scratch::{self, LAB, Owner};

/// Time for a program after SIGTERM.
const TERM_WAIT: Duration = Duration::from_secs(3);

/// Cleans the folder for temporary files `temporary`; a line for each thing that was there.
pub fn clean(temporary: &Path) -> io::Result<Vec<String>> {
    clean_below(temporary, |folder| Ok((end_programs(folder)?, fs::remove_dir_all(folder))))
}

/// Removes the control groups below `hierarchy` whose run is gone, and ends what is in them.
pub fn clean_groups(hierarchy: &Path) -> io::Result<Vec<String>> {
    clean_below(hierarchy, |folder| {
        let programs: Vec<Owner> =
            cpu_share::pids(folder).into_iter().filter_map(Owner::of).collect();
        Ok((end(&programs), cpu_share::remove(folder)))
    })
}

/// Removes the folders of runs that are gone; `remove` ends the programs of one first.
fn clean_below(
    parent: &Path,
    remove: impl Fn(&Path) -> io::Result<(Vec<String>, io::Result<()>)>,
) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let (folder, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // A link could lead anywhere, and another's folder may be gone by now.
        if !name.starts_with(LAB) || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let left = |why: &dyn Display| format!("left {}: {why}", folder.display());
        match Owner::of_name(&name) {
            None => found.push(left(&"it does not say whose it is")),
            Some(owner) if owner.is_alive() => {
                found.push(left(&format_args!("its run lives (process {})", owner.pid)));
            }
            Some(_) => {
                let (ended, removed) = remove(&folder)?;
                found.extend(ended);
                found.push(match removed {
                    Ok(()) => format!("removed {}", folder.display()),
                    Err(error) => left(&error),
                });
            }
        }
    }
    Ok(found)
}

/// Ends the programs that carry the mark of a folder or of one in it, also those that they start
/// meanwhile; a line for each.
pub fn end_programs(folder: &Path) -> io::Result<Vec<String>> {
    let mut ended = end(&scratch::marked(folder)?);
    ended.extend(end(&scratch::marked(folder)?));
    Ok(ended)
}

/// SIGTERM to all, some seconds to obey, SIGKILL.
fn end(programs: &[Owner]) -> Vec<String> {
    let ended = programs.iter().map(|program| {
        let command = ProcFolder::of(program.pid).read("cmdline").unwrap_or_default();
        format!("ended process {}: {}", program.pid, command.replace('\0', " ").trim_end())
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

    use super::{clean, clean_groups};
    use crate::cpu_share::Hierarchy;
    use crate::scratch::{LAB, MARK, Owner, is_marked};

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
        let own = Owner::own().unwrap();
        let alive = folder(temporary.path(), &format!("{}alive", &own.prefix()[LAB.len()..]));
        let other = temporary.path().join("something-else");
        std::fs::create_dir(&other).unwrap();
        let link = temporary.path().join(format!("{LAB}{me}-0-link"));
        std::os::unix::fs::symlink("gone", &link).unwrap();
        let (mut left, mut kept) = (sleeper(&dead.join("dut")), sleeper(&alive.join("dut")));
        let reaper = std::thread::spawn(move || left.wait().unwrap().success());
        let found = clean(temporary.path()).unwrap();
        assert!(!reaper.join().unwrap(), "it was ended");
        assert!(!dead.exists() && alive.exists() && nobody.exists() && other.exists());
        assert!(link.is_symlink(), "a link that leads nowhere ends nothing");
        assert!(kept.try_wait().unwrap().is_none(), "the program of a living run runs on");
        kept.kill().unwrap();
        kept.wait().unwrap();
        let removed = format!("removed {}", dead.display());
        for line in [&*removed, "sleep 60", "its run lives", "whose it is"] {
            assert!(found.iter().any(|found| found.contains(line)), "{line}: {found:?}");
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn the_group_of_a_dead_run_goes_with_its_programs() {
        let hierarchy = Hierarchy::find().expect("control groups");
        let share = "50 %".to_owned().try_into().unwrap();
        let living = hierarchy.make(share).expect("needs root");
        let dead = hierarchy.folder().join(format!("{LAB}{}-0-0", std::process::id()));
        std::fs::create_dir(&dead).unwrap();
        let mut left = Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(dead.join("cgroup.procs"), left.id().to_string()).unwrap();
        let reaper = std::thread::spawn(move || left.wait().unwrap().success());
        let found = clean_groups(hierarchy.folder()).unwrap();
        assert!(!reaper.join().unwrap(), "it was ended");
        assert!(!dead.exists(), "{found:?}");
        assert!(found.contains(&format!("removed {}", dead.display())), "{found:?}");
        let own = format!("process {}", std::process::id());
        assert!(found.iter().any(|line| line.contains(&own)), "{found:?}");
        drop(living);
    }
}
