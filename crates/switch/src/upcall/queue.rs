//! The queue from workers to the agent: a batch under one lock and one wake-up.
//!
//! Packet-ins are bounded, since packets arrive at any rate: excess is dropped and counted by the
//! worker, which never waits. Each class has its own rate and its own share of the queue, so that a
//! flood of misses does not displace what actions send up. Events (errors, reached barriers, port
//! status, taught entries) are bounded where they are caused, and are never dropped.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use openflow::message::PacketIn;
use tokio::sync::Notify;

use super::{PacketInClass, PacketInPolicer};

/// Packet-ins `P` and events `E` on their way to the agent.
#[derive(Debug)]
pub(crate) struct UpcallQueue<P, E> {
    state: Mutex<State<P, E>>,
    notify: Notify,
    /// For each class.
    packets_max: usize,
    policer: PacketInPolicer,
}

#[derive(Debug)]
struct State<P, E> {
    waiting: UpcallBatch<P, E>,
    /// Waiting packets of each class.
    held: [usize; PacketInClass::COUNT],
}

/// A packet with a class.
pub(crate) trait Classified {
    /// Its class.
    fn class(&self) -> PacketInClass;
}

impl Classified for PacketIn {
    fn class(&self) -> PacketInClass {
        PacketInClass::of(self.reason)
    }
}

/// A batch: packets apart from events, each in its order.
#[derive(Debug)]
pub(crate) struct UpcallBatch<P, E> {
    /// Packet-ins.
    pub(crate) packets: Vec<P>,
    /// Events.
    pub(crate) events: Vec<E>,
}

impl<P, E> Default for UpcallBatch<P, E> {
    fn default() -> Self {
        Self { packets: Vec::new(), events: Vec::new() }
    }
}

impl<P, E> UpcallBatch<P, E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.events.is_empty()
    }
}

impl<P: Classified, E> UpcallQueue<P, E> {
    pub(crate) fn new(packets_max: usize, policer: PacketInPolicer) -> Self {
        let state = State { waiting: UpcallBatch::default(), held: [0; PacketInClass::COUNT] };
        Self { state: Mutex::new(state), notify: Notify::new(), packets_max, policer }
    }

    /// Appends `batch` and wakes the agent. Packets beyond the rate are dropped and
    /// counted; those that find no room stay in the
    /// batch, so that their buffers are used again.
    pub(crate) fn send(&self, batch: &mut UpcallBatch<P, E>) {
        if batch.is_empty() {
            return;
        }
        if !batch.packets.is_empty() {
            let now = Instant::now();
            batch.packets.retain(|packet| self.policer.admits(packet.class(), now));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { waiting, held } = &mut *state;
        waiting.packets.extend(batch.packets.extract_if(.., |packet| {
            let Some(held) = held.get_mut(packet.class().index()) else { return false };
            let has_room = *held < self.packets_max;
            *held += usize::from(has_room);
            has_room
        }));
        waiting.events.append(&mut batch.events);
        drop(state);
        self.notify.notify_one();
    }

    /// Swaps what waits into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut UpcallBatch<P, E>) {
        debug_assert!(into.is_empty(), "a batch that was taken is to be handled first");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.waiting, into);
        state.held = [0; PacketInClass::COUNT];
    }

    /// Waits until something has been sent.
    pub(crate) async fn ready(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Classified, UpcallBatch, UpcallQueue};
    use crate::counters::Counters;
    use crate::upcall::{PacketInClass, PacketInPolicer};

    impl Classified for (u32, PacketInClass) {
        fn class(&self) -> PacketInClass {
            self.1
        }
    }

    fn queue(packets_max: usize, per_s: u32) -> UpcallQueue<(u32, PacketInClass), &'static str> {
        UpcallQueue::new(packets_max, PacketInPolicer::new(per_s, 1, Arc::new(Counters::default())))
    }

    fn batch(
        numbers: std::ops::Range<u32>,
        events: usize,
    ) -> UpcallBatch<(u32, PacketInClass), &'static str> {
        let packets = numbers.map(|number| (number, PacketInClass::NoMatch)).collect();
        UpcallBatch { packets, events: vec!["x"; events] }
    }

    fn numbers(packets: &[(u32, PacketInClass)]) -> Vec<u32> {
        packets.iter().map(|packet| packet.0).collect()
    }

    #[test]
    fn packets_are_bounded_and_the_rest_is_not() {
        let queue = queue(3, 0);
        let mut first = batch(1..3, 1);
        queue.send(&mut first);
        assert!(first.is_empty());
        let mut second = batch(3..6, 9);
        queue.send(&mut second);
        assert_eq!((numbers(&second.packets), second.events.len()), (vec![4, 5], 0));
        let mut got = UpcallBatch::default();
        queue.take(&mut got);
        assert_eq!((numbers(&got.packets), got.events.len()), (vec![1, 2, 3], 10));
        queue.send(&mut batch(6..7, 0));
        got = UpcallBatch::default();
        queue.take(&mut got);
        assert_eq!(numbers(&got.packets), [6], "there is room again");
    }

    #[test]
    fn a_flood_of_one_class_leaves_room_for_the_others() {
        let queue = queue(3, 0);
        queue.send(&mut batch(0..100, 0));
        let mut others = UpcallBatch {
            packets: vec![(7, PacketInClass::Action), (8, PacketInClass::InvalidTtl)],
            events: Vec::new(),
        };
        queue.send(&mut others);
        assert!(others.is_empty());
        let mut got = UpcallBatch::default();
        queue.take(&mut got);
        assert_eq!(numbers(&got.packets), [0, 1, 2, 7, 8]);
    }

    #[test]
    fn what_comes_too_fast_never_arrives() {
        let queue = queue(100, 1);
        let mut flood = batch(0..50, 0);
        queue.send(&mut flood);
        assert!(flood.is_empty(), "and is not counted a second time as without room");
        let mut got = UpcallBatch::default();
        queue.take(&mut got);
        assert_eq!(numbers(&got.packets), [0]);
    }
}
