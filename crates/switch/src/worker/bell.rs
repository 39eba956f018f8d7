//! The bell of a worker: which of its bridges have something for it to do, and a ring only when it
//! sleeps.
//!
//! Whoever brings something puts it in its place first and calls then, so that a worker which has
//! seen the call finds it. A worker asks one list for all bridges, however many there are, and
//! never waits for those who call.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use netdev::sys::event::WakeEvent;

/// The bell of one worker.
#[derive(Debug)]
pub(crate) struct Bell {
    /// The places of those who called, each as often as it called.
    called: Mutex<Vec<usize>>,
    any: AtomicBool,
    asleep: AtomicBool,
    event: WakeEvent,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            called: Mutex::default(),
            any: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event: WakeEvent::new()?,
        })
    }

    /// There is something at this place: wakes the worker if it sleeps.
    pub(super) fn call(&self, place: usize) {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        // Sequentially consistent on both sides, as in `may_sleep`: either the worker sees `any`
        // before it sleeps, or we see that it sleeps.
        self.any.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.event.ring();
        }
    }

    /// Swaps the places of those who have called into `into`, which must be empty.
    pub(super) fn take(&self, into: &mut Vec<usize>) {
        debug_assert!(into.is_empty(), "who called before is to be attended to first");
        if self.any.load(Ordering::Relaxed) && self.any.swap(false, Ordering::SeqCst) {
            std::mem::swap(&mut *self.called.lock().unwrap_or_else(PoisonError::into_inner), into);
        }
    }

    /// The worker wants to sleep on [`Bell::fd`]: false when somebody has called meanwhile.
    pub(super) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may = !self.any.load(Ordering::SeqCst);
        if !may {
            self.awake();
        }
        may
    }

    /// The worker has woken up.
    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// [`Bell::fd`] was found readable: takes the rings back.
    pub(super) fn heard(&self) {
        self.event.drain();
    }

    /// What becomes readable when the bell rings.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.fd()
    }
}
