//! Waiting on a plain thread for what another thread does, without a runtime.
//!
//! It must never happen on a thread that serves switches: what it waits for may be that thread's
//! own work. So those threads are marked, and the calls that would wait there are errors.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

thread_local! {
    static IS_ON_SHARD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread serves switches.
pub(crate) fn is_on_shard() -> bool {
    IS_ON_SHARD.get()
}

/// Marks the thread as one that serves switches, as long as this lives.
#[derive(Debug)]
pub(crate) struct OnShard {
    before: bool,
}

impl OnShard {
    pub(crate) fn mark() -> Self {
        Self { before: IS_ON_SHARD.replace(true) }
    }
}

impl Drop for OnShard {
    fn drop(&mut self) {
        IS_ON_SHARD.set(self.before);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until `future` is done.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
