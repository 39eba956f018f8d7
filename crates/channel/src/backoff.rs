//! How long to wait before connecting again: a value, not a timer (clause 6.3.2 asks for growing
//! intervals).
//!
//! The clock and the chance are arguments, so that a simulation repeats itself. It never sleeps.

use std::time::{Duration, Instant};

/// The waits between attempts to connect: they double from the least to the most, and begin anew
/// once a connection has been up for a while.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    most: Duration,
    steady: Duration,
    next: Duration,
    up_since: Option<Instant>,
}

impl Default for Backoff {
    /// 1 s doubling to 8 s; a connection that was up for 10 s counts as a good one.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(8), Duration::from_secs(10))
    }
}

impl Backoff {
    /// Waits from `least` to `most`; a connection that was up for `steady` resets them.
    #[must_use]
    pub fn new(least: Duration, most: Duration, steady: Duration) -> Self {
        Self { least, most: most.max(least), steady, next: least, up_since: None }
    }

    /// The connection is up: its hello exchange is done.
    pub fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// The attempt or the connection has failed: how long to wait before the next attempt.
    ///
    /// `jitter` in 0..=1 takes up to a quarter off the wait, so that many switches that lose one
    /// controller do not come back in step.
    pub fn down(&mut self, now: Instant, jitter: f64) -> Duration {
        let was_steady = self
            .up_since
            .take()
            .is_some_and(|since| now.saturating_duration_since(since) >= self.steady);
        if was_steady {
            self.next = self.least;
        }
        let wait = self.next;
        self.next = (wait * 2).min(self.most);
        wait.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::{Duration, Instant};

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn waits_double_to_the_most() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..5).map(|_| backoff.down(now, 0.0)).collect();
        assert_eq!(waits, [s(1), s(2), s(4), s(8), s(8)]);
    }

    #[test]
    fn only_a_steady_connection_resets_them() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        assert_eq!((backoff.down(now, 0.0), backoff.down(now, 0.0)), (s(1), s(2)));
        backoff.up(now);
        assert_eq!(backoff.down(now + s(9), 0.0), s(4), "it was up for too short a time");
        backoff.up(now);
        assert_eq!(backoff.down(now + s(10), 0.0), s(1));
    }

    #[test]
    fn jitter_takes_off_a_quarter_at_most() {
        let now = Instant::now();
        assert_eq!(Backoff::default().down(now, 1.0), Duration::from_millis(750));
        assert_eq!(Backoff::default().down(now, 7.0), Duration::from_millis(750));
        assert_eq!(Backoff::default().down(now, -1.0), s(1));
    }
}
