//! Network namespaces held by a descriptor.
//!
//! A `Namespace` has no name in the file system: when the last descriptor and the last process in
//! it are gone, so is the namespace with every device in it, whatever killed them. A thread never
//! changes its own namespace here; work inside one runs on a fresh thread.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space, set_capabilities,
};

use super::unshare::unshare_network;

/// A network namespace, alive as long as this handle (or a process in it) is.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// A new, empty namespace; its loopback device exists and is down.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; no descriptor or thread left.
    pub fn new() -> io::Result<Self> {
        on_fresh_thread(|| {
            unshare_network()?;
            Self::current()
        })?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// When `/proc` is not mounted or no descriptor is left.
    pub fn current() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty())? })
    }

    /// The namespace of a path: that of [`Namespace::path`], a process's `/proc/PID/ns/net`, or a
    /// name that `ip netns` has made.
    ///
    /// # Errors
    /// When there is none, or it is another user's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// The namespace of a descriptor that the kernel gave for it.
    pub(crate) fn of_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Runs `work` on a fresh thread inside the namespace and returns its result. Sockets that it
    /// opens stay in the namespace for their whole life. A panic of `work` goes on here.
    ///
    /// # Errors
    /// When the thread cannot be started or may not enter.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_fresh_thread(|| {
            take_sys_admin()?;
            move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        })?
    }

    /// The descriptor, for netlink attributes and `setns(2)`.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A second handle of the same namespace.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// A path by which other programs reach the namespace while this process lives, for example
    /// `nsenter --net=PATH`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }

    /// The kernel's number of the namespace: equal numbers are the same namespace.
    ///
    /// # Errors
    /// The error of `fstat(2)`.
    pub fn id(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(File::from(self.fd.try_clone()?).metadata()?.ino())
    }
}

/// Takes `CAP_SYS_ADMIN` for the calling thread, where its process keeps it for this.
fn take_sys_admin() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective |= sets.permitted & CapabilitySet::SYS_ADMIN;
    Ok(set_capabilities(None, sets)?)
}

fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("in-netns".into());
        match builder.spawn_scoped(scope, work)?.join() {
            Ok(value) => Ok(value),
            Err(panic) => resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn a_namespace_is_entered_by_its_own_thread_only() {
        let outside = Namespace::current().unwrap().id().unwrap();
        let ns = Namespace::new().expect("needs root");
        assert_ne!(ns.id().unwrap(), outside);
        let inside = ns.enter(|| Namespace::current().unwrap().id().unwrap()).unwrap();
        assert_eq!(inside, ns.id().unwrap());
        assert_eq!(Namespace::open(ns.path().as_ref()).unwrap().id().unwrap(), inside);
        assert_eq!(Namespace::current().unwrap().id().unwrap(), outside);
        let devices = ns.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        assert_eq!(devices.unwrap().lines().skip(2).count(), 1, "only lo");
    }

    #[test]
    #[ignore = "needs root"]
    fn a_panic_inside_goes_on_outside() {
        let ns = Namespace::new().expect("needs root");
        let caught = std::panic::catch_unwind(|| ns.enter(|| panic!("inside")));
        assert!(caught.is_err());
    }
}
