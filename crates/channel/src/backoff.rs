//! The wait before the next attempt to connect: a value, not a timer (clause 6.3.2 asks for
//! growing intervals).
//!
//! The clock and the randomness are arguments, so that a simulation repeats itself; it never
//! sleeps.

use std::time::{Duration, Instant};

/// The waits between attempts to connect. They double from the least to the most. They start anew
/// after a connection that was of use, or that lasted longer than the wait before it; a peer that
/// only says hello and goes meets growing waits.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
    /// The wait before the present attempt.
    last: Duration,
    up_since: Option<Instant>,
    is_used: bool,
}

impl Default for Backoff {
    /// From 1 s to 8 s.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(8))
    }
}

impl Backoff {
    /// Waits from `least` to `most`.
    #[must_use]
    pub fn new(least: Duration, most: Duration) -> Self {
        let least = least.min(most);
        Self { least, most, next: least, last: Duration::ZERO, up_since: None, is_used: false }
    }

    /// Another longest wait, for the waits to come.
    pub fn set_most(&mut self, most: Duration) {
        self.most = most;
        self.least = self.least.min(most);
        self.next = self.next.min(most);
    }

    /// The hello exchange of a connection is done.
    pub fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// The peer has used the connection: for a switch, a controller has done more than set the
    /// connection up.
    pub fn used(&mut self) {
        self.is_used = true;
    }

    /// The attempt or the connection has ended: the wait before the next attempt.
    ///
    /// `jitter` in 0..=1 takes up to a quarter off the wait, so that many switches that lose one
    /// controller do not come back in step.
    pub fn down(&mut self, now: Instant, jitter: f64) -> Duration {
        let lasted = self.up_since.take().map(|since| now.saturating_duration_since(since));
        let outlived = lasted.is_some_and(|lasted| lasted > self.last);
        if std::mem::take(&mut self.is_used) || outlived {
            self.next = self.least;
        }
        let wait = self.next;
        self.next = (wait * 2).min(self.most);
        self.last = wait.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::{Duration, Instant};

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn waits_double_to_the_most() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..5).map(|_| backoff.down(now, 0.0)).collect();
        assert_eq!(waits, [s(1), s(2), s(4), s(8), s(8)]);
        let mut short = Backoff::new(ms(500), ms(250));
        assert_eq!([short.down(now, 0.0), short.down(now, 0.0)], [ms(250), ms(250)]);
    }

    #[test]
    fn a_controller_that_used_the_switch_has_the_least_wait() {
        let mut now = Instant::now();
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            backoff.up(now);
            backoff.used();
            now += ms(20);
            let wait = backoff.down(now, 0.0);
            assert_eq!(wait, s(1));
            now += wait;
        }
        backoff.up(now);
        assert_eq!(backoff.down(now + ms(20), 0.0), s(2), "the last one did not use the switch");
    }

    #[test]
    fn a_controller_that_only_says_hello_meets_growing_waits() {
        let mut now = Instant::now();
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..5)
            .map(|_| {
                backoff.up(now);
                now += ms(20);
                let wait = backoff.down(now, 0.0);
                now += wait;
                wait
            })
            .collect();
        assert_eq!(waits, [s(1), s(2), s(4), s(8), s(8)]);
    }

    #[test]
    fn a_connection_longer_than_the_last_wait_resets_the_waits() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        assert_eq!([backoff.down(now, 0.0), backoff.down(now, 0.0)], [s(1), s(2)]);
        backoff.up(now);
        assert_eq!(backoff.down(now + s(2), 0.0), s(4), "it lasted no longer than the wait");
        backoff.up(now);
        assert_eq!(backoff.down(now + ms(4001), 0.0), s(1));
        assert_eq!(backoff.down(now + s(99), 0.0), s(2), "an attempt that failed is no connection");
    }

    #[test]
    fn jitter_takes_off_a_quarter_at_most() {
        let now = Instant::now();
        assert_eq!(Backoff::default().down(now, 1.0), Duration::from_millis(750));
        assert_eq!(Backoff::default().down(now, 7.0), Duration::from_millis(750));
        assert_eq!(Backoff::default().down(now, -1.0), s(1));
    }
}
