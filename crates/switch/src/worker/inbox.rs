//! The way from the agent to a worker: commands in order, and a ring of the worker's bell only when
//! it sleeps.
//!
//! The worker never waits for the agent: it takes what is there under a lock that is held for a
//! swap of two queues, and the agent appends under it for a move of a batch. How many commands wait
//! is known, so that the agent can stop reading from controllers that send faster than their
//! commands can be carried out.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use netdev::sys::event::Event;

/// Commands on their way to a worker.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    waiting: Mutex<VecDeque<T>>,
    any: AtomicBool,
    pending: AtomicUsize,
    asleep: AtomicBool,
    bell: Event,
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            waiting: Mutex::new(VecDeque::new()),
            any: AtomicBool::new(false),
            pending: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            bell: Event::new()?,
        })
    }

    /// Appends `batch`, which is left empty, and wakes the worker if it sleeps.
    pub(crate) fn send(&self, batch: &mut Vec<T>) {
        if batch.is_empty() {
            return;
        }
        self.pending.fetch_add(batch.len(), Ordering::Relaxed);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).extend(batch.drain(..));
        self.knock();
    }

    /// Something has come, here or on another way to the worker: wakes it if it sleeps.
    pub(crate) fn knock(&self) {
        // Sequentially consistent on both sides, as in `may_sleep`: either the worker sees `any`
        // before it sleeps, or we see that it sleeps.
        self.any.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    /// Swaps what waits into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut VecDeque<T>) {
        debug_assert!(into.is_empty(), "commands that were taken are to be carried out first");
        // Mostly nothing has come, and to look is cheaper than to swap.
        if self.any.load(Ordering::SeqCst) && self.any.swap(false, Ordering::SeqCst) {
            std::mem::swap(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner), into);
        }
    }

    /// The worker has carried out so many commands.
    pub(crate) fn done(&self, count: usize) {
        self.pending.fetch_sub(count, Ordering::Relaxed);
    }

    /// How many commands have been sent and not been carried out.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// The worker wants to sleep on [`Inbox::fd`]: false when something has come meanwhile.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may = !self.any.load(Ordering::SeqCst);
        if !may {
            self.awake();
        }
        may
    }

    /// The worker has woken up.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        self.bell.drain();
    }

    /// What becomes readable when the bell rings.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.fd()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use netdev::sys::event::wait;

    use super::Inbox;

    #[test]
    fn no_command_is_missed_by_a_worker_that_sleeps_whenever_it_may() {
        const COUNT: u32 = 20_000;
        let inbox = Arc::new(Inbox::new().unwrap());
        let sender = Arc::clone(&inbox);
        let thread = thread::spawn(move || {
            for number in 0..COUNT {
                sender.send(&mut vec![number]);
                if number % 97 == 0 {
                    thread::yield_now();
                }
            }
        });
        let (mut got, mut batch) = (Vec::new(), VecDeque::new());
        while got.len() < COUNT as usize {
            inbox.take(&mut batch);
            inbox.done(batch.len());
            got.extend(batch.drain(..));
            if got.len() < COUNT as usize && inbox.may_sleep() {
                assert!(wait(&[inbox.fd()], Some(Duration::from_secs(20))).unwrap(), "woken");
                inbox.awake();
            }
        }
        thread.join().unwrap();
        assert!(got.iter().copied().eq(0..COUNT));
        assert_eq!(inbox.pending(), 0);
    }
}
