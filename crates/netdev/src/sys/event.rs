//! `WakeEvent`: an eventfd, used to wake a thread that sleeps in `poll(2)`, and the poll itself.
//!
//! It carries no count: many rings before a drain are one wake-up. Neither call ever blocks except
//! [`wait`], for which blocking is the purpose.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat};
use rustix::io::Errno;

/// An event that one thread rings and another sleeps on.
#[derive(Debug)]
pub struct WakeEvent {
    fd: OwnedFd,
}

impl WakeEvent {
    /// A fresh event, not rung.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// The event of a FIFO in the file system, which is made where it is missing: the same for two
    /// processes. Never blocks, whatever other process has it open.
    ///
    /// # Errors
    /// When `path` is something else than a FIFO, or cannot be made or opened.
    pub fn fifo(path: &Path) -> io::Result<Self> {
        match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::Fifo {
            return Err(io::Error::other(format!("{} is not a FIFO", path.display())));
        }
        Ok(Self { fd })
    }

    /// Rings: the descriptor polls readable until [`WakeEvent::drain`].
    pub fn ring(&self) {
        // The only failure is a counter that is full, and then the event is rung already.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Takes back all rings; true when there was one.
    pub fn drain(&self) -> bool {
        // An eventfd gives 8 bytes and is then at rest; a FIFO gives 8 bytes per ring, and one ring
        // is the rule.
        rustix::io::read(&self.fd, &mut [0_u8; 64]).is_ok()
    }

    /// The descriptor to poll for readability.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A second handle of the same event, for the thread that rings.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }
}

/// Sleeps until one of `fds` is readable or in error, or until `timeout` has passed; true when one
/// is. A signal ends the sleep early with `false`.
///
/// # Errors
/// The error of `poll(2)`, which is out of memory or a bad descriptor.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
    let mut polls: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    match poll(&mut polls, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
