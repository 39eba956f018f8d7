//! Rate limit of a log line: the first is written at once, later ones at most once per interval,
//! with the number of those left out. A value; the clock is an argument.
//!
//! What a peer can cause as often as it likes must not fill a log.

use std::time::{Duration, Instant};

/// The rate limit of one kind of line.
#[derive(Clone, Debug)]
pub struct LogThrottle {
    interval: Duration,
    last: Option<Instant>,
    suppressed: u64,
}

impl LogThrottle {
    /// At most one line per `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, last: None, suppressed: 0 }
    }

    /// `Some` when a line may be written at `now`, with the number of lines suppressed since the
    /// last one; `None` suppresses this line.
    pub fn pass(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < self.interval) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::LogThrottle;
    use std::time::{Duration, Instant};

    #[test]
    fn the_first_line_passes_and_the_others_are_counted() {
        let (mut throttle, now) = (LogThrottle::new(Duration::from_secs(10)), Instant::now());
        assert_eq!(throttle.pass(now), Some(0));
        assert_eq!((throttle.pass(now), throttle.pass(now + Duration::from_secs(9))), (None, None));
        assert_eq!(throttle.pass(now + Duration::from_secs(10)), Some(2));
        assert_eq!(throttle.pass(now + Duration::from_secs(20)), Some(0));
    }
}
