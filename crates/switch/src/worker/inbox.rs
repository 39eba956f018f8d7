//! The way from the agent to one bridge's branch on a worker: commands in order, and a call of the
//! worker's bell when there are any.
//!
//! The worker never waits for the agent: it takes what is there under a lock that is held for a
//! swap of two queues, and the agent appends under it for a move of a batch. How many commands wait
//! is known, so that the agent can stop reading from controllers that send faster than their
//! commands can be carried out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Bell;

/// Commands on their way to a branch.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    waiting: Mutex<VecDeque<T>>,
    pending: AtomicUsize,
    /// Whether the worker has been called and has not looked yet.
    is_called: AtomicBool,
    bell: Arc<Bell>,
    /// The branch's place on its worker.
    place: usize,
}

impl<T> Inbox<T> {
    /// The way to the branch at this place of the worker with this bell.
    pub(crate) fn new(bell: Arc<Bell>, place: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_called: AtomicBool::new(false),
            bell,
            place,
        }
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

    /// Something has come, here or on another way to the branch: calls the worker.
    pub(crate) fn knock(&self) {
        // Sequentially consistent, as in `answer`: a worker that has not looked yet will find what
        // was put in its place before.
        if !self.is_called.swap(true, Ordering::SeqCst) {
            self.bell.call(self.place);
        }
    }

    /// The worker has heard the call, and looks after this at what is there.
    pub(super) fn answer(&self) {
        self.is_called.store(false, Ordering::SeqCst);
    }

    /// Swaps what waits into `into`, which must be empty.
    pub(super) fn take(&self, into: &mut VecDeque<T>) {
        debug_assert!(into.is_empty(), "commands that were taken are to be carried out first");
        std::mem::swap(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner), into);
    }

    /// The worker has carried out so many commands.
    pub(super) fn done(&self, count: usize) {
        self.pending.fetch_sub(count, Ordering::Relaxed);
    }

    /// How many commands have been sent and not been carried out.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use netdev::sys::event::wait;

    use super::super::Bell;
    use super::Inbox;

    #[test]
    fn no_command_is_missed_by_a_worker_that_sleeps_whenever_it_may() {
        const COUNT: u32 = 20_000;
        let bell = Arc::new(Bell::new().unwrap());
        let inboxes = [0, 1, 2].map(|place| Arc::new(Inbox::new(Arc::clone(&bell), place)));
        let threads = inboxes.clone().map(|sender| {
            thread::spawn(move || {
                for number in 0..COUNT {
                    sender.send(&mut vec![number]);
                    if number % 97 == 0 {
                        thread::yield_now();
                    }
                }
            })
        });
        let mut got = [const { Vec::new() }; 3];
        let (mut called, mut batch) = (Vec::new(), VecDeque::new());
        while got.iter().any(|got| got.len() < COUNT as usize) {
            bell.take(&mut called);
            for place in called.drain(..) {
                inboxes[place].answer();
                inboxes[place].take(&mut batch);
                inboxes[place].done(batch.len());
                got[place].extend(batch.drain(..));
            }
            let is_all = got.iter().all(|got| got.len() == COUNT as usize);
            if !is_all && bell.may_sleep() {
                assert!(wait(&[bell.fd()], Some(Duration::from_secs(20))).unwrap(), "woken");
                bell.awake();
                bell.heard();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(got.iter().all(|got| got.iter().copied().eq(0..COUNT)));
        assert!(inboxes.iter().all(|inbox| inbox.pending() == 0));
    }
}
