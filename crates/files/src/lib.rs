//! Reads whole files, within a bound, replaces whole ones, and reads `/proc` (module [`proc`]);
//! raises the process's limit of open files, gives its free memory back, and writes to its
//! standard output and standard error.
//!
//! A configuration that names `/dev/urandom` by mistake must not take all memory. Whatever is read
//! whole is a regular file or a pipe, and no longer than a limit; everything else is an error with
//! its remedy. The caller puts the file's name in front.
//!
//! ```
//! use files::{CONFIG_MAX, read_text};
//!
//! let error = read_text("/dev/urandom".as_ref(), CONFIG_MAX).unwrap_err();
//! assert_eq!(error.to_string(), "is a device; give a regular file or a pipe");
//! ```

mod limits;
mod log_queue;
mod memory;
mod output;
pub mod proc;

pub use limits::raise_open_files;
pub use log_queue::{LogWriter, flush_log, log_line};
pub use memory::release_free_memory;
pub use output::{
    EXIT_READER_GONE, StandardOutput, eprint_line, is_reader_gone, output_error, print, printable,
    stdout, with_sources,
};

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The longest configuration, certificate or key, in bytes.
pub const CONFIG_MAX: u64 = 64 * MIB;

/// The longest list of flow entries, groups or meters, in bytes.
pub const FLOWS_MAX: u64 = 1024 * MIB;

/// The longest capture, in bytes.
pub const CAPTURE_MAX: u64 = 4096 * MIB;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system could not open or read it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is neither a regular file nor a pipe.
    #[error("is a {0}; give a regular file or a pipe")]
    Kind(&'static str),
    /// It is longer than the limit, which is given.
    #[error("is longer than {} MiB, the limit; is it the right file?", .0 / MIB)]
    TooLong(u64),
    /// It begins with a byte order mark.
    #[error("begins with a byte order mark (EF BB BF); save it as UTF-8 without one")]
    Mark,
    /// It is not text.
    #[error("line {line} is not UTF-8 text; is it the right file?")]
    NotText {
        /// The line of the first byte that is wrong, from 1.
        line: usize,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::Kind(_)
            | ReadError::TooLong(_)
            | ReadError::Mark
            | ReadError::NotText { .. } => Self::other(error),
        }
    }
}

/// Reads a regular file or a pipe of at most `limit` bytes.
///
/// # Errors
/// See [`ReadError`].
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = File::open(path)?;
    let facts = file.metadata()?;
    if let Some(kind) = unsuitable(facts.file_type()) {
        return Err(ReadError::Kind(kind));
    }
    if facts.len() > limit {
        return Err(ReadError::TooLong(limit));
    }
    // One read more than the length finds the end.
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len() + 1).unwrap_or(0));
    fill(file, limit, &mut bytes)?;
    Ok(bytes)
}

/// Reads a text file; see [`read`].
///
/// # Errors
/// See [`ReadError`].
pub fn read_text(path: &Path, limit: u64) -> Result<String, ReadError> {
    text(read(path, limit)?)
}

/// Reads text of at most `limit` bytes from a stream such as the standard input.
///
/// # Errors
/// See [`ReadError`]; the kind of stream does not matter.
pub fn read_text_from(stream: impl Read, limit: u64) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    fill(stream, limit, &mut bytes)?;
    text(bytes)
}

/// The warning about the file of a secret that all users of the machine may read; `None` for one
/// that they may not.
#[must_use]
pub fn fault_of_secret(path: &Path) -> Option<String> {
    let facts = path.metadata().ok()?;
    let is_open = facts.is_file() && facts.mode() & 0o004 != 0;
    let name = path.display();
    is_open.then(|| format!("{name}: every user may read this secret; chmod o-r {name} ends that"))
}

fn fill(stream: impl Read, limit: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
    stream.take(limit.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > limit { Err(ReadError::TooLong(limit)) } else { Ok(()) }
}

fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        return Err(ReadError::Mark);
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let lines = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        ReadError::NotText { line: lines + 1 }
    })
}

/// Kind of a file that cannot be read whole; none for one that can.
fn unsuitable(kind: FileType) -> Option<&'static str> {
    if kind.is_dir() {
        Some("folder")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("device")
    } else if kind.is_socket() {
        Some("socket")
    } else {
        None
    }
}

/// Writes a file whole or not at all: a new file beside it takes its place, so that a full disk
/// leaves the old one, and a program that looks meanwhile sees one of both. A link stays one, and
/// what it leads to is replaced.
///
/// # Errors
/// If a device, a pipe, a socket or a folder has this name: the new file would take the place of
/// `/dev/null` too. Of the system: no folder, no room, no permission.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    if let Ok(metadata) = target.metadata()
        && !metadata.is_file()
    {
        let what = unsuitable(metadata.file_type()).unwrap_or("pipe");
        return Err(io::Error::other(format!("is a {what}; give a regular file")));
    }
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = Path::new(&name);
    let written = std::fs::write(fresh, bytes).and_then(|()| std::fs::rename(fresh, &target));
    if written.is_err() {
        // What was written of it takes room that somebody needs.
        std::fs::remove_file(fresh).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{CONFIG_MAX, ReadError, fault_of_secret, read, read_text, read_text_from, replace};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_or_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for text in ["old", "new"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(replace(&dir.path().join("missing/file"), b"x").is_err());
        // A folder cannot be replaced by a file; nothing is left beside it.
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(replace(&dir.path().join("folder"), b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_regular_files_are_replaced_and_links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        // A socket stands for all that is no file: a defect must not cost the machine a device.
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = replace(&socket, b"x").unwrap_err();
        assert_eq!(error.to_string(), "is a socket; give a regular file");
        assert!(std::os::unix::net::UnixStream::connect(&socket).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_byte_order_mark_is_named() {
        let why = read_text_from(&b"\xef\xbb\xbfin_port=1"[..], CONFIG_MAX).unwrap_err();
        assert!(why.to_string().contains("byte order mark (EF BB BF)"), "{why}");
    }

    #[test]
    fn a_secret_that_all_may_read_is_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, is_fine) in [(0o600, true), (0o640, true), (0o644, false), (0o604, false)] {
            file.as_file().set_permissions(PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(fault_of_secret(file.path()).is_none(), is_fine, "{mode:o}");
        }
        assert_eq!(fault_of_secret("/none".as_ref()), None, "reading it has an error of its own");
    }

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for length in [0, 1, 99, 100] {
            std::fs::write(&path, "x".repeat(length)).unwrap();
            assert_eq!(read_text(&path, 100).unwrap().len(), length);
        }
        std::fs::write(&path, "x".repeat(101)).unwrap();
        assert!(matches!(read(&path, 100), Err(ReadError::TooLong(100))));
        std::fs::remove_file(&path).unwrap();
        let error = read(&path, 100).unwrap_err();
        assert!(error.to_string().starts_with("cannot be read: No such file"), "{error}");
    }

    #[test]
    fn what_has_no_end_is_refused_without_being_read() {
        for (path, kind) in [("/dev/urandom", "device"), ("/dev/zero", "device"), ("/", "folder")] {
            let error = read_text(path.as_ref(), CONFIG_MAX).unwrap_err();
            assert_eq!(error.to_string(), format!("is a {kind}; give a regular file or a pipe"));
        }
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("long");
        std::fs::File::create(&long).unwrap().set_len(CONFIG_MAX + 1).unwrap();
        let error = read_text(&long, CONFIG_MAX).unwrap_err();
        assert_eq!(error.to_string(), "is longer than 64 MiB, the limit; is it the right file?");
    }

    #[test]
    fn pipes_are_read_up_to_the_limit() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let thread = std::thread::spawn(move || writer.write_all(b"from a pipe"));
        assert_eq!(read_text(path.as_ref(), 100).unwrap(), "from a pipe");
        thread.join().unwrap().unwrap();
        assert!(matches!(read_text_from(std::io::repeat(b'x'), 9), Err(ReadError::TooLong(9))));
    }

    #[test]
    fn bytes_that_are_no_text_are_named_by_their_line() {
        let error = read_text_from(&b"one\ntwo\n\xff\n"[..], 100).unwrap_err();
        assert_eq!(error.to_string(), "line 3 is not UTF-8 text; is it the right file?");
    }
}
