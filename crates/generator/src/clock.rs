//! The clock of a run: nanoseconds since its start.
//!
//! Sender and receiver of one measurement share one clock, which is why one-way delays need no
//! synchronisation here. It must never be the wall clock, which can step.

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

    /// Nanoseconds since the clock was started.
    #[must_use]
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::RunClock;

    #[test]
    fn copies_go_forward_together() {
        let clock = RunClock::start();
        let copy = clock;
        let before = clock.now_ns();
        let between = copy.now_ns();
        assert!(before <= between && between <= clock.now_ns());
    }
}
