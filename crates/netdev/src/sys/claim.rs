//! The claim of a switch to a network device: of all switches of a network namespace one alone may
//! have it. Two would both answer what comes in, and each takes the other's frames for its own.
//!
//! It is a listening socket with an abstract name, which the kernel keeps apart for each network
//! namespace and removes with its process, however that ends. Programs that only look, such as a
//! generator that captures, claim nothing.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use files::proc::ProcFolder;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;

use crate::error::PortError;

/// Letters of a command line that an error has.
const COMMAND_MAX: usize = 200;

/// A claim, given up when it is dropped.
#[derive(Debug)]
pub struct DeviceClaim {
    _listener: UnixListener,
}

impl DeviceClaim {
    /// Claims the device with this interface index for this process; none where it has it already,
    /// since a switch looks after its own ports itself.
    ///
    /// # Errors
    /// [`PortError::OtherSwitch`] while another process has it.
    pub(crate) fn take(port: &str, index: u32) -> Result<Option<Self>, PortError> {
        let name = format!("weir/device/{index}");
        let failed = |source| PortError::Io { what: format!("{port}: claiming it"), source };
        let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
        let error = match UnixListener::bind_addr(&address) {
            Ok(listener) => return Ok(Some(Self { _listener: listener })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
            Err(error) => return Err(failed(error)),
        };
        let other = |process| PortError::OtherSwitch { port: port.to_owned(), process };
        let holder = match Holder::of(&name) {
            Ok(holder) => holder,
            // Each who is refused waits in the holder's queue for ever, and it is full.
            Err(full) if full.kind() == io::ErrorKind::WouldBlock => {
                return Err(other("which has been asked too often to be named".to_owned()));
            }
            Err(_) => return Err(failed(error)),
        };
        if holder.pid.cast_unsigned() == std::process::id() {
            return Ok(None);
        }
        if holder.uid != 0 && holder.uid != geteuid().as_raw() {
            // Anybody may make the name, and is not to keep a switch from its device by it. A
            // switch of that user, with capabilities of its own, is not told from such a one.
            tracing::warn!(port, uid = holder.uid, "another user claims the device in vain");
            return Ok(None);
        }
        Err(other(holder.describe()))
    }
}

/// The process that has a claim.
struct Holder {
    /// 0 for one of another process namespace.
    pid: libc::pid_t,
    uid: libc::uid_t,
}

impl Holder {
    fn of(name: &str) -> io::Result<Self> {
        // Nobody accepts, and a full queue must not stop us.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        peer(&socket)
    }

    fn describe(&self) -> String {
        let own = u32::try_from(self.pid).ok().filter(|pid| *pid != 0);
        let Some(pid) = own else { return "a process of another container".to_owned() };
        let command = ProcFolder::of(pid).read("cmdline").unwrap_or_default();
        let command = command.trim_end_matches('\0').replace('\0', " ");
        let command: String = command.chars().take(COMMAND_MAX).collect();
        format!("process {pid} ({})", command.escape_debug())
    }
}

/// The process at the other end of a Unix socket, when it began to listen.
fn peer(socket: &OwnedFd) -> io::Result<Holder> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `found`, which is as long and plain.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut len,
        )
    };
    if code == 0 {
        Ok(Holder { pid: found.pid, uid: found.uid })
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceClaim, Holder};

    #[test]
    fn a_claim_names_its_holder_and_ends_with_it() {
        // No interface of this machine has such an index, and no other run of the test takes it.
        let index = u32::MAX - std::process::id();
        let name = format!("weir/device/{index}");
        let claim = DeviceClaim::take("af_packet:x", index).unwrap();
        assert!(claim.is_some());
        assert!(DeviceClaim::take("af_packet:x", index).unwrap().is_none(), "our own");
        let text = Holder::of(&name).unwrap().describe();
        assert!(text.starts_with(&format!("process {} (", std::process::id())), "{text}");
        drop(claim);
        assert!(Holder::of(&name).is_err());
        assert!(DeviceClaim::take("af_packet:x", index).unwrap().is_some());
    }
}
