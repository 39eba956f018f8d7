//! The folder of `--state`: a journal for each bridge, of one switch at a time.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::SwitchError;

/// The folder, which no other switch uses meanwhile.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    boot: String,
    /// The lock goes with it.
    folder: File,
}

impl StateFolder {
    /// Opens the folder, and makes it where there is none.
    ///
    /// # Errors
    /// It cannot be made or read, or another switch uses it.
    pub(crate) fn open(path: &Path) -> Result<Self, SwitchError> {
        let failed = |source| SwitchError::State { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let folder = File::open(path).map_err(failed)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => SwitchError::StateInUse(path.to_owned()),
            error => failed(error.into()),
        })?;
        let boot = files::proc::machine("sys/kernel/random/boot_id").unwrap_or_default();
        Ok(Self { path: path.to_owned(), boot: boot.trim().to_owned(), folder })
    }

    /// A bridge of this name is new: what is left of an earlier one is not its own.
    ///
    /// # Errors
    /// The file of the earlier one stays.
    pub(crate) fn forget(&self, bridge: &str) -> Result<(), SwitchError> {
        let path = self.journal_of(bridge);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(SwitchError::State { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Sets the journals of all but these bridges aside, and removes those of the start before.
    /// That of a bridge which is back stays: its name may have been written wrongly.
    ///
    /// # Errors
    /// The folder cannot be read, or a file can be neither renamed nor removed.
    pub(crate) fn retire_others<'a>(
        &self,
        bridges: impl Iterator<Item = &'a str>,
    ) -> Result<(), SwitchError> {
        let failed = |path: &Path, source| SwitchError::State { path: path.to_owned(), source };
        let used: Vec<_> = bridges.map(|name| self.journal_of(name)).collect();
        let files = std::fs::read_dir(&self.path).and_then(|files| {
            files.map(|file| Ok(file?.path())).collect::<Result<Vec<PathBuf>, _>>()
        });
        let files = files.map_err(|error| failed(&self.path, error))?;
        let ends_in =
            |path: &Path, ending: &str| path.as_os_str().as_bytes().ends_with(ending.as_bytes());
        let is_back = |path: &Path| used.contains(&path.with_extension(""));
        let unused = files.iter().filter(|path| ends_in(path, ".journal.unused"));
        for path in unused.filter(|path| !is_back(path)) {
            std::fs::remove_file(path).map_err(|error| failed(path, error))?;
        }
        for path in files.iter().filter(|path| ends_in(path, ".journal") && !used.contains(path)) {
            let aside = with_ending(path, "unused");
            std::fs::rename(path, &aside).map_err(|error| failed(path, error))?;
            let aside = aside.display();
            tracing::warn!(%aside, "the state of a bridge that is not configured any more");
        }
        Ok(())
    }

    /// The lock, which no other switch gets before this has gone too.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.folder.try_clone()
    }

    /// Its path, as the name of a file.
    pub(crate) fn file_name(&self) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        file_name(&path.to_string_lossy())
    }

    /// The machine's start: another one after each.
    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    /// The journal of a bridge.
    pub(super) fn journal_of(&self, bridge: &str) -> PathBuf {
        self.path.join(format!("{}.journal", file_name(bridge)))
    }
}

/// The file beside one that has an ending more.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// A name as one of a file: each byte that might mean something there by its number.
pub(crate) fn file_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let write = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
    };
    name.bytes().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::{StateFolder, file_name};

    #[test]
    fn names_of_bridges_are_names_of_files() {
        assert_eq!(file_name("br0-a_B"), "br0-a_B");
        assert_eq!(file_name("../x%ä"), "%2e%2e%2fx%25%c3%a4");
    }

    #[test]
    fn one_switch_uses_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("of/two");
        let first = StateFolder::open(&path).unwrap();
        let error = StateFolder::open(&path).unwrap_err().to_string();
        assert!(error.contains("of/two") && error.contains("another switch"), "{error}");
        drop(first);
        StateFolder::open(&path).unwrap();
    }

    #[test]
    fn a_journal_of_no_bridge_stays_for_one_start_more() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(dir.path()).unwrap();
        let write = |name: &str| std::fs::write(dir.path().join(name), name).unwrap();
        let names = || {
            let files = std::fs::read_dir(dir.path()).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let first = ["a.journal", "b%2e1.journal", "b%2e1.journal.refused", "notes"];
        first.into_iter().for_each(write);
        let retire_others = || folder.retire_others(["a"].into_iter()).unwrap();
        retire_others();
        let aside = ["a.journal", "b%2e1.journal.refused", "b%2e1.journal.unused", "notes"];
        assert_eq!(names(), aside);
        write("b%2e1.journal");
        retire_others();
        assert_eq!(names(), aside);
        folder.retire_others(["a", "b.1"].into_iter()).unwrap();
        assert_eq!(names(), aside);
        retire_others();
        assert_eq!(names(), ["a.journal", "b%2e1.journal.refused", "notes"]);
    }
}
