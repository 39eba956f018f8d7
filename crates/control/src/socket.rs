//! The control socket's file: closed to others from its first moment, a stale one replaced, a live
//! one refused, and unlinked at the end if it is still ours.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::place::{fault_of, is_of_group};

/// Error of the socket's place.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A living process has it.
    #[error("control socket {0}: somebody listens there already; name another by --control")]
    Live(PathBuf),
    /// Something else stands there.
    #[error("control socket {0}: there is a file that is no socket; remove it or name another")]
    NotASocket(PathBuf),
    /// Others could put a socket of theirs in its place.
    #[error("control socket {path}: {fault}; name another place by --control, or none")]
    NotOurs {
        /// The socket.
        path: PathBuf,
        /// The fault of its place.
        fault: String,
    },
    /// A system call failed.
    #[error("control socket {path}: {what}: {source}; name another place by --control, or none")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The attempt.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A bound control socket, unlinked when dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl ControlSocket {
    /// Binds `path`, making its folder (mode 0700) where there is none. Its owner alone may
    /// connect; in a folder of mode 2750, the folder's group too.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let io = |what| move |source| SocketError::Io { path: path.to_owned(), what, source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder).map_err(io("making its folder"))?;
        }
        if let Some(fault) = fault_of(path).map_err(io("looking at its place"))? {
            return Err(SocketError::NotOurs { path: path.to_owned(), fault });
        }
        check_place(path)?;
        // Bound under another name, closed to others, then renamed: at no moment can anybody
        // connect who may not, and a stale socket is replaced in one step.
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let fresh = PathBuf::from(name);
        remove(&fresh).map_err(io("removing a left-over"))?;
        let listener = UnixListener::bind(&fresh).map_err(io("binding"))?;
        let open = || -> io::Result<u64> {
            let folder = fresh.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::metadata(folder.unwrap_or_else(|| Path::new(".")))?;
            let mode = if is_of_group(&folder) { 0o660 } else { 0o600 };
            fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))?;
            listener.set_nonblocking(true)?;
            let inode = fs::symlink_metadata(&fresh)?.ino();
            fs::rename(&fresh, path)?;
            Ok(inode)
        };
        match open() {
            Ok(inode) => Ok(Self { listener, path: path.to_owned(), inode }),
            Err(source) => {
                remove(&fresh).map_err(io("removing"))?;
                Err(io("placing it")(source))
            }
        }
    }

    /// A handle of the listener, non-blocking.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|held| held.ino() == self.inode);
        if ours {
            // A socket that stays is stale and is replaced by the next one.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether the place is free or holds a socket that nobody listens on.
fn check_place(path: &Path) -> Result<(), SocketError> {
    use std::os::unix::fs::FileTypeExt;

    let Ok(held) = fs::symlink_metadata(path) else { return Ok(()) };
    if !held.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(SocketError::Live(path.to_owned())),
        Err(source) => {
            Err(SocketError::Io { path: path.to_owned(), what: "asking who has it", source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/switch.sock");
        let first = ControlSocket::bind(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(ControlSocket::bind(&path), Err(SocketError::Live(_))));
        drop(first);
        assert!(!path.exists());
        // What a killed switch leaves behind.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = ControlSocket::bind(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_group_that_has_the_folder_may_connect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        for (folder_mode, mode) in [(0o2750, 0o660), (0o750, 0o600), (0o2755, 0o600)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
            let socket = ControlSocket::bind(&path).unwrap();
            let seen = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(seen & 0o777, mode, "{folder_mode:o}");
            drop(socket);
        }
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert!(matches!(ControlSocket::bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    #[test]
    fn a_place_that_cannot_be_used_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let message = ControlSocket::bind(&file.join("switch.sock")).unwrap_err().to_string();
        assert!(message.contains("making its folder"), "{message}");
        assert!(message.ends_with("name another place by --control, or none"), "{message}");
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let message = ControlSocket::bind(&folder.path().join("s")).unwrap_err().to_string();
        assert!(message.contains("chmod go-w") && message.contains("--control"), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_successor_is_not_unlinked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let first = ControlSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = ControlSocket::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
    }
}
