//! `Watch`: sleeping on any number of descriptors at once, by `epoll(7)`.
//!
//! [`super::event::wait`] looks at each of its descriptors in each call; a watch costs the same
//! however many it holds, and names those that are ready. It must never hold a descriptor that is
//! closed: the caller removes one before it closes it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Descriptors that one call reports.
const READY_MAX: usize = 64;

/// `epoll_wait` counts milliseconds; shorter sleeps than this are measured by `poll` itself.
const COARSE: Duration = Duration::from_millis(20);

/// Descriptors that somebody sleeps on.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// A watch over nothing.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// The descriptor that is readable while one that is watched is.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Watches `fd` for being readable or in error, under a name of the caller's choice.
    ///
    /// # Errors
    /// When it is watched already, or cannot be.
    pub fn add(&self, fd: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(name), EventFlags::IN)?)
    }

    /// Watches `fd` no longer.
    ///
    /// # Errors
    /// When it is not watched.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Sleeps until a watched descriptor is readable or in error, or until `timeout` has passed;
    /// zero does not sleep, `None` is for ever. Appends the names of those that are ready: up to
    /// 64, and in calls that follow one another each has its turn. A signal ends the sleep early
    /// with none.
    ///
    /// # Errors
    /// The kernel's error: out of memory, or a bad descriptor.
    pub fn wait(&self, timeout: Option<Duration>, into: &mut Vec<u64>) -> io::Result<()> {
        let at_most = match timeout {
            Some(exact) if !exact.is_zero() && exact < COARSE => {
                let mut polls = [PollFd::from_borrowed_fd(self.epoll.as_fd(), PollFlags::IN)];
                match poll(&mut polls, Some(&timespec(exact))) {
                    Ok(0) | Err(Errno::INTR) => return Ok(()),
                    Ok(_) => Some(timespec(Duration::ZERO)),
                    Err(error) => return Err(error.into()),
                }
            }
            // A day is what a millisecond counter holds with ease.
            other => other.map(|t| timespec(t.min(Duration::from_secs(86_400)))),
        };
        let mut ready = [const { MaybeUninit::uninit() }; READY_MAX];
        match epoll::wait(&self.epoll, &mut ready[..], at_most.as_ref()) {
            Ok((ready, _)) => into.extend(ready.iter().map(|event| event.data.u64())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Watch;
    use crate::sys::event::WakeEvent;

    #[test]
    fn those_that_are_ready_are_named_and_only_those() {
        let watch = Watch::new().unwrap();
        let events: Vec<WakeEvent> = (0..100).map(|_| WakeEvent::new().unwrap()).collect();
        for (event, name) in events.iter().zip(0..) {
            watch.add(event.fd(), name).unwrap();
        }
        let wait = |timeout: Option<Duration>| {
            let mut names = Vec::new();
            watch.wait(timeout, &mut names).unwrap();
            names
        };
        let none = Some(Duration::ZERO);
        assert_eq!(wait(none), []);
        assert_eq!(wait(Some(Duration::from_micros(50))), []);
        events[7].ring();
        assert_eq!(wait(None), [7]);
        assert_eq!(wait(Some(Duration::from_millis(15))), [7], "until it is drained");
        watch.remove(events[7].fd()).unwrap();
        assert!(watch.remove(events[7].fd()).is_err());
        assert_eq!(wait(none), []);
        events.iter().for_each(WakeEvent::ring);
        let mut named: Vec<u64> = (0..4).flat_map(|_| wait(none)).collect();
        named.sort_unstable();
        named.dedup();
        assert!(named.into_iter().eq((0..100).filter(|name| *name != 7)));
    }
}
