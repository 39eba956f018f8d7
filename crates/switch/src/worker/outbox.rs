//! The way from the worker to the agent: a batch of upcalls under one lock and one wake-up.
//!
//! Packet-ins are bounded, since packets come as fast as they like: what is too much is dropped and
//! counted by the worker, which never waits. Each reason has its own rate and its own share of the
//! room, so that a flood of misses does not displace what actions send up. Everything else
//! (errors, reached marks, port status) is bounded by what was asked and what is installed, and is
//! never dropped.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use openflow::message::{PacketIn, PacketInReason};
use tokio::sync::Notify;

use crate::agent::{Police, REASONS, place};

/// Upcalls on their way to the agent.
#[derive(Debug)]
pub(crate) struct Outbox<P, U> {
    state: Mutex<State<P, U>>,
    notify: Notify,
    /// For each reason.
    packets_max: usize,
    police: Police,
}

#[derive(Debug)]
struct State<P, U> {
    waiting: Waiting<P, U>,
    /// Packets of each reason among those that wait.
    held: [usize; REASONS],
}

/// What has a reason to go to the controllers.
pub(crate) trait Reasoned {
    /// The reason.
    fn reason(&self) -> PacketInReason;
}

impl Reasoned for PacketIn {
    fn reason(&self) -> PacketInReason {
        self.reason
    }
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

impl<P: Reasoned, U> Outbox<P, U> {
    pub(crate) fn new(packets_max: usize, police: Police) -> Self {
        let state = State { waiting: Waiting::default(), held: [0; REASONS] };
        Self { state: Mutex::new(state), notify: Notify::new(), packets_max, police }
    }

    /// Appends `batch` and wakes the agent. Packets that come too fast are dropped and counted;
    /// those that find no room stay in the batch, for their buffers to be used again.
    pub(crate) fn send(&self, batch: &mut Waiting<P, U>) {
        if batch.is_empty() {
            return;
        }
        if !batch.packets.is_empty() {
            let now = Instant::now();
            batch.packets.retain(|packet| self.police.admits(packet.reason(), now));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { waiting, held } = &mut *state;
        waiting.packets.extend(batch.packets.extract_if(.., |packet| {
            let Some(held) = held.get_mut(place(packet.reason())) else { return false };
            let has_room = *held < self.packets_max;
            *held += usize::from(has_room);
            has_room
        }));
        waiting.upcalls.append(&mut batch.upcalls);
        drop(state);
        self.notify.notify_one();
    }

    /// Swaps what waits into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut Waiting<P, U>) {
        debug_assert!(into.is_empty(), "upcalls that were taken are to be handled first");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.waiting, into);
        state.held = [0; REASONS];
    }

    /// Waits until something has been sent.
    pub(crate) async fn ready(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openflow::message::PacketInReason;

    use super::{Outbox, Reasoned, Waiting};
    use crate::agent::Police;
    use crate::counters::Counters;

    impl Reasoned for (u32, PacketInReason) {
        fn reason(&self) -> PacketInReason {
            self.1
        }
    }

    fn outbox(packets_max: usize, per_s: u32) -> Outbox<(u32, PacketInReason), &'static str> {
        Outbox::new(packets_max, Police::new(per_s, 1, Arc::new(Counters::default())))
    }

    fn batch(
        numbers: std::ops::Range<u32>,
        upcalls: usize,
    ) -> Waiting<(u32, PacketInReason), &'static str> {
        let packets = numbers.map(|number| (number, PacketInReason::NoMatch)).collect();
        Waiting { packets, upcalls: vec!["x"; upcalls] }
    }

    fn numbers(packets: &[(u32, PacketInReason)]) -> Vec<u32> {
        packets.iter().map(|packet| packet.0).collect()
    }

    #[test]
    fn packets_are_bounded_and_the_rest_is_not() {
        let outbox = outbox(3, 0);
        let mut first = batch(1..3, 1);
        outbox.send(&mut first);
        assert!(first.is_empty());
        let mut second = batch(3..6, 9);
        outbox.send(&mut second);
        assert_eq!((numbers(&second.packets), second.upcalls.len()), (vec![4, 5], 0));
        let mut got = Waiting::default();
        outbox.take(&mut got);
        assert_eq!((numbers(&got.packets), got.upcalls.len()), (vec![1, 2, 3], 10));
        outbox.send(&mut batch(6..7, 0));
        got = Waiting::default();
        outbox.take(&mut got);
        assert_eq!(numbers(&got.packets), [6], "there is room again");
    }

    #[test]
    fn a_flood_for_one_reason_leaves_room_for_the_others() {
        let outbox = outbox(3, 0);
        outbox.send(&mut batch(0..100, 0));
        let mut others = Waiting {
            packets: vec![(7, PacketInReason::Action), (8, PacketInReason::InvalidTtl)],
            upcalls: Vec::new(),
        };
        outbox.send(&mut others);
        assert!(others.is_empty());
        let mut got = Waiting::default();
        outbox.take(&mut got);
        assert_eq!(numbers(&got.packets), [0, 1, 2, 7, 8]);
    }

    #[test]
    fn what_comes_too_fast_never_arrives() {
        let outbox = outbox(100, 1);
        let mut flood = batch(0..50, 0);
        outbox.send(&mut flood);
        assert!(flood.is_empty(), "and is not counted a second time as without room");
        let mut got = Waiting::default();
        outbox.take(&mut got);
        assert_eq!(numbers(&got.packets), [0]);
    }
}
