//! The place of the control socket where none is named, and whose a place is.
//!
//! Another user of the machine may make any name in a folder that all may write. So a switch makes
//! its socket in no folder that is others' to change, and its callers look whose the socket is.

use std::fs::{Metadata, metadata, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Bits of the mode by which others than the owner may write a folder, and the one by which they
/// may change only what is their own there.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The control socket that `weir switch` makes and `weir ctl` asks where none is named: under
/// `/run/weir` for root, else under `$XDG_RUNTIME_DIR`, else under the temporary folder.
#[must_use]
pub fn default_path() -> PathBuf {
    let folder = if geteuid().is_root() {
        PathBuf::from("/run")
    } else {
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder),
            _ => std::env::temp_dir(),
        }
    };
    folder.join("weir").join("switch.sock")
}

/// The bit by which what is made in a folder belongs to the folder's group.
const SET_GROUP: u32 = 0o2000;

/// Whether a folder's owner means its group to have what is in it, and nobody else: its mode is
/// 2750, as of `RuntimeDirectoryMode=` of a service.
pub(crate) fn is_of_group(folder: &Metadata) -> bool {
    folder.mode() & (SET_GROUP | 0o777) == SET_GROUP | 0o750
}

/// The fault of a socket's place, by which it could be another user's; `None` where there is none.
/// As root we trust every folder that is given, and a socket in it of root or its owner. So does
/// everybody a folder that only root can have given to its user, such as a service's below `/run`.
///
/// # Errors
/// The folder cannot be looked at, or there is a socket that cannot.
pub(crate) fn fault_of(socket: &Path) -> io::Result<Option<String>> {
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    // The owner of a link may let it lead elsewhere.
    let (link, facts) = (symlink_metadata(folder)?, metadata(folder)?);
    let (own, mode, name) = (geteuid(), facts.mode(), folder.display());
    let is_ours = |uid: u32| uid == own.as_raw() || uid == 0;
    let foreign = [link.uid(), facts.uid()].into_iter().find(|uid| !is_ours(*uid));
    let is_trusted = own.is_root() || is_of_group(&facts) && is_given_by_root(folder)?;
    if let Some(uid) = foreign.filter(|_| !is_trusted) {
        return Ok(Some(format!("its folder {name} belongs to the user with the number {uid}")));
    }
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        return Ok(Some(format!(
            "others may write its folder {name}; chmod go-w {name} ends that"
        )));
    }
    let there = match symlink_metadata(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        there => there?.uid(),
    };
    let is_fine = is_ours(there) || is_trusted && there == facts.uid();
    Ok((!is_fine).then(|| format!("it belongs to the user with the number {there}")))
}

/// Whether only root can have made a folder of this name: the one that it is in is root's alone.
fn is_given_by_root(folder: &Path) -> io::Result<bool> {
    let whole = std::path::absolute(folder)?;
    let Some(above) = whole.parent() else { return Ok(true) };
    let (link, facts) = (symlink_metadata(above)?, metadata(above)?);
    Ok(link.uid() == 0 && facts.uid() == 0 && facts.mode() & OTHERS_WRITE == 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, create_dir, set_permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};

    use super::fault_of;

    #[test]
    fn a_folder_that_others_may_write_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        for (mode, is_fine) in
            [(0o777, false), (0o757, false), (0o775, false), (0o1777, true), (0o755, true)]
        {
            set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let fault = fault_of(&socket).unwrap();
            assert_eq!(fault.is_none(), is_fine, "{mode:o}: {fault:?}");
        }
        assert!(fault_of(&folder.path().join("missing/s")).is_err());
        assert_eq!(fault_of("s".as_ref()).unwrap(), None, "of the folder that we are in");
    }

    #[test]
    #[ignore = "needs root"]
    fn a_socket_of_another_user_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        // As the temporary folder is: anybody may make any name there.
        set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let socket = folder.path().join("s");
        File::create(&socket).unwrap();
        assert_eq!(fault_of(&socket).unwrap(), None);
        chown(&socket, Some(65_534), None).unwrap();
        let fault = fault_of(&socket).unwrap().unwrap();
        assert_eq!(fault, "it belongs to the user with the number 65534");
        // Root trusts the place that it is given: a folder of a user may have that user's socket.
        chown(folder.path(), Some(65_534), None).unwrap();
        assert_eq!(fault_of(&socket).unwrap(), None);
    }

    #[test]
    #[ignore = "needs root"]
    fn a_folder_of_another_user_is_a_fault() {
        let top = tempfile::tempdir().unwrap();
        set_permissions(top.path(), Permissions::from_mode(0o1777)).unwrap();
        let (folder, link) = (top.path().join("weir"), top.path().join("link"));
        create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        let fault = |socket: std::path::PathBuf| {
            let asked = std::thread::spawn(move || {
                // Of this thread alone.
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_533)).unwrap();
                fault_of(&socket).unwrap()
            });
            asked.join().unwrap()
        };
        assert_eq!(fault(folder.join("s")), None, "root's");
        chown(&folder, Some(65_534), None).unwrap();
        for place in [&folder, &link] {
            let fault = fault(place.join("s")).unwrap();
            assert!(fault.ends_with("belongs to the user with the number 65534"), "{fault}");
        }
        chown(&folder, Some(65_533), None).unwrap();
        assert_eq!(fault(folder.join("s")), None, "our own");
        // As a service's below /run: only root can have made it.
        set_permissions(top.path(), Permissions::from_mode(0o755)).unwrap();
        chown(&folder, Some(65_534), None).unwrap();
        assert!(fault(folder.join("s")).is_some(), "open to others");
        set_permissions(&folder, Permissions::from_mode(0o2750)).unwrap();
        let socket = folder.join("s");
        File::create(&socket).unwrap();
        chown(&socket, Some(65_534), None).unwrap();
        assert_eq!(fault_of_group(&folder), None);
    }

    /// As [`fault_of`] says it to another user of the folder's group.
    fn fault_of_group(folder: &std::path::Path) -> Option<String> {
        let group = std::fs::metadata(folder).unwrap().gid();
        let socket = folder.join("s");
        let asked = std::thread::spawn(move || {
            // Of this thread alone.
            rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(group)).unwrap();
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_533)).unwrap();
            fault_of(&socket).unwrap()
        });
        asked.join().unwrap()
    }
}
