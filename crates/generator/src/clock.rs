//! The clock of a run: nanoseconds since its start.
//!
//! Sender and receiver of one measurement share one clock, which is why one-way delays need no
//! synchronisation here. It must never be the wall clock, which can step.

use std::time::{Duration, Instant};

/// A monotonic clock with its zero at creation. Copies share the zero.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    zero: Instant,
}

impl RunClock {
    /// A clock that starts at zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Nanoseconds since the clock was started.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Sleeps until `at_ns`; returns at once when that has passed. Linux adds about 50 µs of timer
    /// slack and the scheduler's delay, which is why [`crate::run::send`] measures from the
    /// scheduled time and reports how late it was.
    pub fn sleep_until(&self, at_ns: u64) {
        let now = self.now_ns();
        if at_ns > now {
            std::thread::sleep(Duration::from_nanos(at_ns - now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RunClock;

    #[test]
    fn goes_forward_and_sleeps_past_the_given_time() {
        let clock = RunClock::start();
        let before = clock.now_ns();
        clock.sleep_until(before + 1_000_000);
        assert!(clock.now_ns() > before + 1_000_000);
        clock.sleep_until(0);
    }
}
