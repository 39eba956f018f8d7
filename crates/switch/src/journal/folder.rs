//! The folder of `--state`: a journal for each bridge, of one switch at a time.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
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
    _folder: File,
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
        Ok(Self { path: path.to_owned(), boot: boot.trim().to_owned(), _folder: folder })
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
fn file_name(name: &str) -> String {
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
}
