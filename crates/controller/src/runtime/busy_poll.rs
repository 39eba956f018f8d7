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
    /// After each packet-in for `time`; never for no time.
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
    use std::time::Duration;

    use super::{BusyPoll, driver, yield_now};

    /// Turns that another task has after a packet-in until the busy poll sleeps, at most this
    /// many.
    async fn awake_turns(time: Duration, most: usize) -> usize {
        let busy = BusyPoll::new(time);
        busy.packet_in(driver::now());
        let others = async {
            for turn in 0..most {
                if busy.last.get().is_none() {
                    return turn;
                }
                yield_now().await;
            }
            most
        };
        tokio::select! {
            () = busy.run() => unreachable!("it has no end of its own"),
            turns = others => turns,
        }
    }

    #[tokio::test]
    async fn others_have_their_turns_while_it_is_awake() {
        assert_eq!(awake_turns(Duration::from_secs(3_600), 1_000).await, 1_000);
    }

    #[tokio::test]
    async fn it_sleeps_when_its_time_is_over() {
        assert!(awake_turns(Duration::from_nanos(1), 1_000).await < 1_000);
    }

    #[tokio::test]
    async fn for_no_time_it_is_never_awake() {
        assert_eq!(awake_turns(Duration::ZERO, 1_000).await, 0);
    }
}
