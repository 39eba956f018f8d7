//! The files that a command uses, before it opens any of them for writing.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;

use generator::file_conflicts::{FileOverlap, FileUse, FilesInUse};
use netdev::PortSpec;

use crate::usage::UsageError;

impl From<FileOverlap> for UsageError {
    fn from(overlap: FileOverlap) -> Self {
        Self(overlap.to_string())
    }
}

/// The files of the ports, and standard output where that is one: what is printed would go into the
/// middle of a capture.
///
/// # Errors
/// Two uses of one file.
pub(crate) fn files_of(specs: &[PortSpec]) -> Result<FilesInUse, UsageError> {
    let mut files = FilesInUse::of_ports(specs)?;
    if let Some(facts) = facts(&io::stdout()) {
        files.add_open("standard output", &facts, FileUse::Write)?;
    }
    Ok(files)
}

/// As [`files_of`], for a command that reads its standard input.
///
/// # Errors
/// As [`files_of`].
pub(crate) fn files_with_input(specs: &[PortSpec]) -> Result<FilesInUse, UsageError> {
    let mut files = files_of(specs)?;
    if let Some(facts) = facts(&io::stdin()) {
        files.add_open("standard input", &facts, FileUse::Read)?;
    }
    Ok(files)
}

/// `None` where it is closed: then it is no file either.
fn facts(stream: &impl AsFd) -> Option<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata().ok()
}
