//! The queue of commands from the agent to one shard. Sending rings the worker's doorbell.
//!
//! The worker never waits for the agent: it takes all commands under a lock that is held for the
//! swap of two queues, and the agent holds it to move in a batch. The number of pending commands is
//! known, so that the agent can stop reading from controllers that send faster than their commands
//! are carried out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Doorbell;

/// The queue of a shard.
#[derive(Debug)]
pub(crate) struct Commands<T> {
    /// `None` where the shard is gone.
    waiting: Mutex<Option<VecDeque<T>>>,
    pending: AtomicUsize,
    /// The doorbell has been rung and the worker has not looked yet.
    is_rung: AtomicBool,
    doorbell: Arc<Doorbell>,
    /// The shard's index on its worker.
    shard: usize,
}

impl<T> Commands<T> {
    /// The queue of the shard with this index on the worker with this doorbell.
    pub(crate) fn new(doorbell: Arc<Doorbell>, shard: usize) -> Self {
        Self {
            waiting: Mutex::new(Some(VecDeque::new())),
            pending: AtomicUsize::new(0),
            is_rung: AtomicBool::new(false),
            doorbell,
            shard,
        }
    }

    /// Appends `batch`, which is left empty, and wakes the worker if it sleeps. Where the shard is
    /// gone, what is sent to it is dropped.
    pub(crate) fn send(&self, batch: &mut Vec<T>) {
        if batch.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        let Some(queue) = &mut *waiting else {
            drop(waiting);
            return batch.clear();
        };
        self.pending.fetch_add(batch.len(), Ordering::Relaxed);
        queue.extend(batch.drain(..));
        drop(waiting);
        self.ring();
    }

    /// The shard is gone: drops what it has not taken, so that nobody waits for an answer.
    pub(crate) fn close(&self) {
        let left = self.lock().take();
        self.pending.store(0, Ordering::Relaxed);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings for the shard, after a send here or on a lane to it.
    pub(crate) fn ring(&self) {
        // Sequentially consistent, as in `acknowledge`: a worker that has not looked yet will find
        // what was stored before.
        if !self.is_rung.swap(true, Ordering::SeqCst) {
            self.doorbell.ring(self.shard);
        }
    }

    /// The worker has seen the ring, and looks at its queues after this.
    pub(super) fn acknowledge(&self) {
        self.is_rung.store(false, Ordering::SeqCst);
    }

    /// Swaps the pending commands into `into`, which must be empty.
    pub(super) fn take(&self, into: &mut VecDeque<T>) {
        debug_assert!(into.is_empty(), "earlier commands are to be carried out first");
        if let Some(waiting) = &mut *self.lock() {
            std::mem::swap(waiting, into);
        }
    }

    /// The worker has carried out `count` commands.
    pub(super) fn done(&self, count: usize) {
        self.pending.fetch_sub(count, Ordering::Relaxed);
    }

    /// The number of commands sent and not carried out.
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

    use super::super::Doorbell;
    use super::Commands;

    #[test]
    fn no_command_is_missed_by_a_worker_that_sleeps_whenever_it_may() {
        const COUNT: u32 = 20_000;
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let queues = [0, 1, 2].map(|shard| Arc::new(Commands::new(Arc::clone(&doorbell), shard)));
        let threads = queues.clone().map(|sender| {
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
        let (mut rung, mut batch) = (Vec::new(), VecDeque::new());
        while got.iter().any(|got| got.len() < COUNT as usize) {
            doorbell.take(&mut rung);
            for shard in rung.drain(..) {
                queues[shard].acknowledge();
                queues[shard].take(&mut batch);
                queues[shard].done(batch.len());
                got[shard].extend(batch.drain(..));
            }
            let is_all = got.iter().all(|got| got.len() == COUNT as usize);
            if !is_all && doorbell.may_sleep() {
                assert!(wait(&[doorbell.fd()], Some(Duration::from_secs(20))).unwrap(), "woken");
                doorbell.awake();
                doorbell.reset();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(got.iter().all(|got| got.iter().copied().eq(0..COUNT)));
        assert!(queues.iter().all(|queue| queue.pending() == 0));
    }
}
