//! Watchers of a controller's events on other threads: [`EventReceiver`].
//!
//! A watcher has a bounded queue. One that is slow loses the oldest events and learns how many; it
//! must never hold a switch back. While nobody watches, an event costs the look at a number.

use crate::blocking::{block_on, is_on_shard};
use crate::events::ControllerEvent;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Events that wait for one watcher.
const EVENTS_MAX: usize = 4096;

/// Why there is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The watcher was too slow: this number of events is lost to it. The next call goes on after
    /// them.
    #[error("{0} events are lost, since they came faster than they were taken")]
    Lagged(u64),
    /// The controller has ended.
    #[error("the controller has ended")]
    Ended,
    /// A blocking call on a thread that serves switches, which it would stop for good.
    #[error("a handler must not wait for events")]
    WouldBlock,
}

/// The queues of all watchers.
#[derive(Debug)]
pub(crate) struct Watchers {
    all: Watched,
    /// Watchers that want no packet-ins, which are most of what there is.
    quiet: Watched,
    lagged: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Watched {
    /// `None` once the controller has ended.
    sender: Mutex<Option<broadcast::Sender<Arc<ControllerEvent>>>>,
    /// Asked on every event.
    watchers: Arc<AtomicUsize>,
}

impl Watched {
    fn new() -> Self {
        let (sender, _) = broadcast::channel(EVENTS_MAX);
        Self { sender: Mutex::new(Some(sender)), watchers: Arc::default() }
    }

    fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    fn send(&self, event: Arc<ControllerEvent>) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            // An error says that the last watcher has just gone, which is no loss.
            drop(sender.send(event));
        }
    }

    fn end(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn watch(&self) -> broadcast::Receiver<Arc<ControllerEvent>> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        match &*sender {
            Some(sender) => sender.subscribe(),
            None => broadcast::channel(1).1,
        }
    }
}

impl Watchers {
    pub(crate) fn new() -> Self {
        Self { all: Watched::new(), quiet: Watched::new(), lagged: Arc::default() }
    }

    /// Sends an event to all watchers that want it; it is copied only if there is one.
    #[inline]
    pub(crate) fn broadcast(&self, event: &ControllerEvent) {
        let all = self.all.is_watched();
        let is_packet_in = matches!(event, ControllerEvent::PacketIn { .. });
        let quiet = !is_packet_in && self.quiet.is_watched();
        if all || quiet {
            let event = Arc::new(event.clone());
            if quiet {
                self.quiet.send(Arc::clone(&event));
            }
            if all {
                self.all.send(event);
            }
        }
    }

    /// The number of events that watchers were too slow for.
    pub(crate) fn lagged(&self) -> u64 {
        self.lagged.load(Ordering::Relaxed)
    }

    /// The controller has ended: what waits is still given out.
    pub(crate) fn end(&self) {
        self.all.end();
        self.quiet.end();
    }

    /// A new watcher.
    pub(crate) fn watch(&self, with_packet_ins: bool) -> EventReceiver {
        let watched = if with_packet_ins { &self.all } else { &self.quiet };
        watched.watchers.fetch_add(1, Ordering::Relaxed);
        EventReceiver {
            queue: watched.watch(),
            watchers: Arc::clone(&watched.watchers),
            lagged: Arc::clone(&self.lagged),
        }
    }
}

/// A watcher's queue: every event from the call that made it on. See [`crate::Handle::events`].
#[derive(Debug)]
pub struct EventReceiver {
    queue: broadcast::Receiver<Arc<ControllerEvent>>,
    watchers: Arc<AtomicUsize>,
    lagged: Arc<AtomicU64>,
}

impl EventReceiver {
    /// The next event, on any runtime.
    ///
    /// # Errors
    /// [`EventError::Lagged`] when events have been lost, [`EventError::Ended`] at the end.
    pub async fn recv(&mut self) -> Result<Arc<ControllerEvent>, EventError> {
        self.queue.recv().await.map_err(|error| match error {
            RecvError::Closed => EventError::Ended,
            RecvError::Lagged(count) => self.lag(count),
        })
    }

    /// The next event if there is one; `None` when there is none yet.
    ///
    /// # Errors
    /// As [`EventReceiver::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Arc<ControllerEvent>>, EventError> {
        match self.queue.try_recv() {
            Ok(event) => Ok(Some(event)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Closed) => Err(EventError::Ended),
            Err(TryRecvError::Lagged(count)) => Err(self.lag(count)),
        }
    }

    /// The next event, on a plain thread.
    ///
    /// # Errors
    /// As [`EventReceiver::recv`]; [`EventError::WouldBlock`] on a thread that serves switches.
    pub fn recv_blocking(&mut self) -> Result<Arc<ControllerEvent>, EventError> {
        if is_on_shard() {
            return Err(EventError::WouldBlock);
        }
        block_on(self.recv())
    }

    fn lag(&self, count: u64) -> EventError {
        self.lagged.fetch_add(count, Ordering::Relaxed);
        EventError::Lagged(count)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS_MAX, EventError, Watchers};
    use crate::events::ControllerEvent;
    use openflow::message::{PacketIn, PacketInReason};
    use openflow::{Cookie, DatapathId, Match, TableId};

    fn down(number: u64) -> ControllerEvent {
        ControllerEvent::SwitchDown(DatapathId(number))
    }

    fn packet_in() -> ControllerEvent {
        ControllerEvent::PacketIn {
            dpid: DatapathId(1),
            packet_in: PacketIn {
                buffer_id: None,
                total_len: 0,
                reason: PacketInReason::NoMatch,
                table_id: TableId(0),
                cookie: Cookie(0),
                matching: Match::any(),
                data: Vec::new(),
                userdata: Vec::new(),
                continuation: Vec::new(),
                controller_id: 0,
            },
        }
    }

    #[test]
    fn slow_watcher_learns_of_its_loss_and_goes_on() {
        let watchers = Watchers::new();
        let mut slow = watchers.watch(true);
        for number in 0..EVENTS_MAX as u64 + 10 {
            watchers.broadcast(&down(number));
        }
        assert_eq!(slow.try_recv().unwrap_err(), EventError::Lagged(10));
        assert_eq!(watchers.lagged(), 10);
        let event = slow.recv_blocking().unwrap();
        assert!(matches!(*event, ControllerEvent::SwitchDown(DatapathId(10))));
    }

    #[test]
    fn end_comes_after_what_waits_and_to_late_watchers() {
        let watchers = Watchers::new();
        let mut watcher = watchers.watch(false);
        watchers.broadcast(&down(1));
        watchers.broadcast(&packet_in());
        watchers.end();
        assert!(watcher.recv_blocking().is_ok());
        assert_eq!(watcher.recv_blocking().unwrap_err(), EventError::Ended);
        assert_eq!(watchers.watch(true).try_recv().unwrap_err(), EventError::Ended);
        drop(watcher);
        watchers.broadcast(&down(2));
    }
}
