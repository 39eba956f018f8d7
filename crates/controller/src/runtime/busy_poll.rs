//! Asking for messages for a while after a packet-in, instead of sleeping at once.
//!
//! A switch that has one packet-in answered often has the next one in some microseconds, and to
//! wake a thread that sleeps takes longer than to answer. The core is not given back meanwhile, so
//! it is off unless it is asked for; nothing but a packet-in may begin it, so that silent switches
//! and their echo requests cost nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use channel::driver;
use tokio::sync::Notify;
use tokio::task::yield_now;

/// Of one shard.
#[derive(Debug)]
pub(super) struct BusyPoll {
    time: Duration,
    /// While it is awake, when the last packet-in came.
    last: Cell<Option<Instant>>,
    begun: Notify,
}

impl BusyPoll {
    /// After each packet-in for so long; never for no time.
    pub(super) fn new(time: Duration) -> Self {
        Self { time, last: Cell::new(None), begun: Notify::new() }
    }

    /// A packet-in has come.
    pub(super) fn packet_in(&self, now: Instant) {
        if !self.time.is_zero() && self.last.replace(Some(now)).is_none() {
            self.begun.notify_one();
        }
    }

    /// Keeps the thread awake when it is to be: the runtime asks the system for messages each time
    /// that this task has nothing to do.
    pub(super) async fn run(&self) {
        loop {
            self.begun.notified().await;
            while let Some(last) = self.last.get() {
                if driver::now().saturating_duration_since(last) >= self.time {
                    self.last.set(None);
                } else {
                    yield_now().await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::{BusyPoll, driver};

    /// How often another task has its turn until the busy poll sleeps; it has begun before.
    async fn turns(time: Duration, packet_ins: u32) -> u32 {
        let busy = BusyPoll::new(time);
        for _ in 0..packet_ins {
            busy.packet_in(driver::now());
        }
        let count = Cell::new(0);
        let sleeps = async {
            while busy.last.get().is_some() {
                count.set(count.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = busy.run() => {}
            () = sleeps => {}
        }
        count.get()
    }

    #[tokio::test]
    async fn it_ends_and_others_have_their_turns() {
        assert!(turns(Duration::from_millis(20), 3).await > 0);
    }

    #[tokio::test]
    async fn it_is_off_for_no_time_and_without_packet_ins() {
        assert_eq!(turns(Duration::ZERO, 3).await, 0);
        assert_eq!(turns(Duration::from_secs(60), 0).await, 0);
    }
}
