//! The way from the worker to the agent: a batch of upcalls under one lock and one wake-up.
//!
//! Packet-ins are bounded, since packets come as fast as they like: what is too much is dropped and
//! counted by the worker, which never waits. Everything else (replies, flow-removed, port status)
//! is bounded by what was asked and what is installed, and is never dropped.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Upcalls on their way to the agent.
#[derive(Debug)]
pub(crate) struct Outbox<P, U> {
    state: Mutex<Waiting<P, U>>,
    notify: Notify,
    packets_max: usize,
}

/// What waits: packets apart from the rest, each in its order.
#[derive(Debug)]
pub(crate) struct Waiting<P, U> {
    /// Packet-ins.
    pub(crate) packets: Vec<P>,
    /// All others.
    pub(crate) upcalls: Vec<U>,
}

impl<P, U> Default for Waiting<P, U> {
    fn default() -> Self {
        Self { packets: Vec::new(), upcalls: Vec::new() }
    }
}

impl<P, U> Waiting<P, U> {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.upcalls.is_empty()
    }
}

impl<P, U> Outbox<P, U> {
    pub(crate) fn new(packets_max: usize) -> Self {
        Self { state: Mutex::default(), notify: Notify::new(), packets_max }
    }

    /// Appends `batch` and wakes the agent. Packets that find no room stay in the batch, for their
    /// buffers to be used again.
    pub(crate) fn send(&self, batch: &mut Waiting<P, U>) {
        if batch.is_empty() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.packets_max.saturating_sub(state.packets.len());
        state.packets.extend(batch.packets.drain(..room.min(batch.packets.len())));
        state.upcalls.append(&mut batch.upcalls);
        drop(state);
        self.notify.notify_one();
    }

    /// Swaps what waits into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut Waiting<P, U>) {
        debug_assert!(into.is_empty(), "upcalls that were taken are to be handled first");
        std::mem::swap(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), into);
    }

    /// Waits until something has been sent.
    pub(crate) async fn ready(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Outbox, Waiting};

    #[test]
    fn packets_are_bounded_and_the_rest_is_not() {
        let outbox = Outbox::new(3);
        let mut batch = Waiting { packets: vec![1, 2], upcalls: vec!["a"] };
        outbox.send(&mut batch);
        assert!(batch.is_empty());
        let mut batch = Waiting { packets: vec![3, 4, 5], upcalls: vec!["b"; 9] };
        outbox.send(&mut batch);
        assert_eq!((batch.packets.as_slice(), batch.upcalls.len()), (&[4, 5][..], 0));
        let mut got = Waiting::default();
        outbox.take(&mut got);
        assert_eq!((got.packets.as_slice(), got.upcalls.len()), (&[1, 2, 3][..], 10));
    }
}
