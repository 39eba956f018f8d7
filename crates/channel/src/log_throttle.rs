//! Rate limit of a log line: a few are written at once, later ones at most once per interval, with
//! the number of those left out. A token bucket as a value; the clock is an argument.
//!
//! Lines that a peer can cause as often as it likes must not fill a log.

use std::time::{Duration, Instant};

/// The rate limit of one kind of line.
#[derive(Clone, Debug)]
pub struct LogThrottle {
    interval: Duration,
    burst: u32,
    tokens: u32,
    /// When the latest token was earned, or the bucket was last full.
    earned_at: Option<Instant>,
    suppressed: u64,
}

impl LogThrottle {
    /// At most one line per `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self::with_burst(interval, 1)
    }

    /// At most `burst` lines at once, and one more per `interval`.
    #[must_use]
    pub fn with_burst(interval: Duration, burst: u32) -> Self {
        Self { interval, burst, tokens: burst, earned_at: None, suppressed: 0 }
    }

    /// `Some` when a line may be written at `now`, with the number of lines suppressed since the
    /// last one; `None` suppresses this line.
    pub fn pass(&mut self, now: Instant) -> Option<u64> {
        while self.tokens < self.burst
            && let Some(due) = self.earned_at.map(|at| at + self.interval)
            && due <= now
        {
            self.tokens += 1;
            self.earned_at = Some(due);
        }
        if self.tokens == self.burst {
            self.earned_at = Some(now);
        }
        if self.tokens == 0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::LogThrottle;
    use std::time::{Duration, Instant};

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_line_passes_and_the_others_are_counted() {
        let (mut throttle, now) = (LogThrottle::new(10 * S), Instant::now());
        assert_eq!(throttle.pass(now), Some(0));
        assert_eq!((throttle.pass(now), throttle.pass(now + 9 * S)), (None, None));
        assert_eq!(throttle.pass(now + 15 * S), Some(2));
        assert_eq!(throttle.pass(now + 24 * S), None, "ten seconds from the last line");
        assert_eq!(throttle.pass(now + 25 * S), Some(1));
    }

    #[test]
    fn a_burst_passes_whole_and_is_earned_line_by_line() {
        let (mut throttle, now) = (LogThrottle::with_burst(10 * S, 3), Instant::now());
        let storm = |throttle: &mut LogThrottle, at| {
            (0..1_000).filter(|_| throttle.pass(at).is_some()).count()
        };
        assert_eq!(storm(&mut throttle, now), 3);
        assert_eq!(throttle.pass(now + 10 * S), Some(997));
        assert_eq!(storm(&mut throttle, now + 19 * S), 0);
        assert_eq!(storm(&mut throttle, now + 30 * S), 2);
        assert_eq!(storm(&mut throttle, now + 300 * S), 3);
    }
}
