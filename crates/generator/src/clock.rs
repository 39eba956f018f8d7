//! The clock of a run: nanoseconds since its start.
//!
//! Sender and receiver of one measurement share one clock, which is why one-way delays need no
//! synchronisation here. Of two sessions on two boxes, the program that has compared their clocks
//! gives each the same zero. It must never be the wall clock, which can step.

use std::time::Instant;

/// A monotonic clock with its zero at creation. Copies share the zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    zero: Instant,
}

impl RunClock {
    /// A clock that starts at zero now.
    #[must_use]
    pub(crate) fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// A clock that was zero then; one whose zero is ahead stands still until then.
    #[must_use]
    pub(crate) fn since(zero: Instant) -> Self {
        Self { zero }
    }

    /// Nanoseconds since the clock was started.
    #[must_use]
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::RunClock;

    #[test]
    fn a_zero_of_long_ago_is_one_too() {
        let hour = Duration::from_secs(3_600);
        let zero = Instant::now().checked_sub(hour).unwrap();
        assert!(RunClock::since(zero).now_ns() >= 3_600_000_000_000);
        assert_eq!(RunClock::since(Instant::now() + hour).now_ns(), 0);
    }

    #[test]
    fn copies_go_forward_together() {
        let clock = RunClock::start();
        let copy = clock;
        let before = clock.now_ns();
        let between = copy.now_ns();
        assert!(before <= between && between <= clock.now_ns());
    }
}
