//! The folder of a running network: its state, its sockets, and a lock that says that it lives.
//!
//! A keeper holds the lock of its folder as long as it lives; the kernel lets go of it whatever
//! ends the keeper. So a folder whose lock can be had is what a killed keeper has left. Folders are
//! made and removed under one lock for all, so that nobody takes a new one for an old one. Nothing
//! is removed here but folders with the mark of a network.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use programs::scratch::FolderLock;

use crate::error::Error;

const MARK: &str = "network";
/// Longest name of a network; sockets below the folder have at most 108 bytes of path.
const NAME_MAX: usize = 32;
/// So many networks of one name may run.
const SAME_MAX: usize = 1_000;

/// The folder of a network that this process keeps; removed when dropped.
#[derive(Debug)]
pub struct NetworkFolder {
    root: PathBuf,
    path: PathBuf,
    name: String,
    _lock: FolderLock,
}

impl NetworkFolder {
    /// Makes the folder of a network below `root`: of that name, or with `-2`, `-3` and so on
    /// behind it where it is taken. Removes what killed keepers have left; their names come back
    /// too.
    ///
    /// # Errors
    /// [`Error::Description`] for a name that is no part of a path; [`Error::Io`].
    pub fn create(root: &Path, name: &str) -> Result<(Self, Vec<String>), Error> {
        check(name)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(Error::at("making the folder", root))?;
        let _all = lock_all(root)?;
        let cleaned = clean_locked(root)?;
        for count in 1..=SAME_MAX {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{count}") };
            let path = root.join(&name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::at("making the folder", &path)(error)),
            }
            let lock = FolderLock::take(&path).map_err(Error::at("locking", &path))?;
            File::create(path.join(MARK)).map_err(Error::at("marking", &path))?;
            let root = root.to_owned();
            return Ok((Self { root, path, name, _lock: lock }, cleaned));
        }
        Err(Error::Description(format!("{SAME_MAX} networks of the name {name:?} run already")))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The network's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for NetworkFolder {
    fn drop(&mut self) {
        // What stays is found by the next run, as after a kill.
        let Ok(_all) = lock_all(&self.root) else { return };
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The names of the networks below `root` that live.
pub(crate) fn living(root: &Path) -> Result<Vec<String>, Error> {
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let _all = lock_all(root)?;
    let found = scan(root)?.into_iter().filter(|(_, lives)| *lives).map(|(name, _)| name);
    Ok(found.collect())
}

/// Removes what killed keepers have left below `root`; the names.
pub(crate) fn clean(root: &Path) -> Result<Vec<String>, Error> {
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let _all = lock_all(root)?;
    clean_locked(root)
}

fn clean_locked(root: &Path) -> Result<Vec<String>, Error> {
    let dead = scan(root)?.into_iter().filter(|(_, lives)| !lives).map(|(name, _)| name);
    dead.map(|name| {
        let path = root.join(&name);
        fs::remove_dir_all(&path).map_err(Error::at("removing", &path))?;
        Ok(name)
    })
    .collect()
}

/// All networks below `root`, and whether each lives.
fn scan(root: &Path) -> Result<Vec<(String, bool)>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(Error::at("reading", root))? {
        let entry = entry.map_err(Error::at("reading", root))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        // A folder without a mark is somebody else's.
        if check(&name).is_err() || !path.join(MARK).is_file() {
            continue;
        }
        let lives = FolderLock::is_taken(&path).map_err(Error::at("locking", &path))?;
        found.push((name, lives));
    }
    found.sort();
    Ok(found)
}

/// The lock for all folders below `root`, held for moments only.
fn lock_all(root: &Path) -> Result<File, Error> {
    let locked = File::open(root).and_then(|folder| folder.lock().map(|()| folder));
    locked.map_err(Error::at("locking", root))
}

fn check(name: &str) -> Result<(), Error> {
    let is_good = (1..=NAME_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if is_good {
        return Ok(());
    }
    Err(Error::Description(format!(
        "{name:?} is no name of a network: letters, digits, - _ and ., at most {NAME_MAX}"
    )))
}

#[cfg(test)]
mod tests {
    use super::{MARK, NetworkFolder, clean, living};

    #[test]
    fn two_of_one_name_do_not_collide_and_go_when_dropped() {
        let root = tempfile::tempdir().unwrap();
        let (first, _) = NetworkFolder::create(root.path(), "hub").unwrap();
        let (second, cleaned) = NetworkFolder::create(root.path(), "hub").unwrap();
        assert_eq!((first.name(), second.name()), ("hub", "hub-2"));
        assert!(cleaned.is_empty());
        assert_eq!(living(root.path()).unwrap(), ["hub", "hub-2"]);
        assert!(clean(root.path()).unwrap().is_empty());
        drop(first);
        assert_eq!(living(root.path()).unwrap(), ["hub-2"]);
        let (third, _) = NetworkFolder::create(root.path(), "hub").unwrap();
        assert_eq!(third.name(), "hub");
    }

    #[test]
    fn leftovers_of_a_killed_keeper_go_and_foreign_folders_stay() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("gone");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(MARK), "").unwrap();
        std::fs::write(left.join("switch.sock"), "").unwrap();
        let foreign = root.path().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        assert!(living(root.path()).unwrap().is_empty());
        let (_new, cleaned) = NetworkFolder::create(root.path(), "gone").unwrap();
        assert_eq!(cleaned, ["gone"]);
        assert!(foreign.is_dir() && clean(root.path()).unwrap().is_empty());
        assert!(clean(&root.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", ".hidden", "x".repeat(33).as_str()] {
            let error = NetworkFolder::create(root.path(), name).unwrap_err().to_string();
            assert!(error.contains("is no name"), "{name:?}: {error}");
        }
    }
}
