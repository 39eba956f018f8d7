//! The doorbell of a worker: which of its shards have work, and a wake-up only when it sleeps.
//!
//! A producer stores its item first and rings then, so a worker that has seen the ring finds the
//! item. A worker looks at one list for all shards, however many there are, and never waits for
//! producers.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use netdev::sys::event::WakeEvent;

/// The doorbell of one worker.
#[derive(Debug)]
pub(crate) struct Doorbell {
    /// The shards that have rung, each as often as it did.
    rung: Mutex<Vec<usize>>,
    any: AtomicBool,
    asleep: AtomicBool,
    event: WakeEvent,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            rung: Mutex::default(),
            any: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event: WakeEvent::new()?,
        })
    }

    /// A shard has work: wakes the worker if it sleeps.
    pub(super) fn ring(&self, shard: usize) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).push(shard);
        // Sequentially consistent on both sides, as in `may_sleep`: either the worker sees `any`
        // before it sleeps, or we see that it sleeps.
        self.any.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.event.ring();
        }
    }

    /// Swaps the shards that have rung into `into`, which must be empty.
    pub(super) fn take(&self, into: &mut Vec<usize>) {
        debug_assert!(into.is_empty(), "earlier rings are to be served first");
        if self.any.load(Ordering::Relaxed) && self.any.swap(false, Ordering::SeqCst) {
            std::mem::swap(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner), into);
        }
    }

    /// The worker is about to sleep on [`Doorbell::fd`]: false when a shard has rung meanwhile.
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

    /// [`Doorbell::fd`] was found readable: resets it.
    pub(super) fn reset(&self) {
        self.event.drain();
    }

    /// The descriptor that becomes readable when the doorbell wakes the worker.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.fd()
    }
}
