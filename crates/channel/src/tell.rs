//! How often something is told: at once, and then at most once in a while with the number of times
//! that it went untold. A value; the clock is an argument.
//!
//! What a peer can cause as often as it likes must not fill a log.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Clone, Debug)]
pub struct Tell {
    every: Duration,
    last: Option<Instant>,
    untold: u64,
}

impl Tell {
    /// Told at most once in `every`.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self { every, last: None, untold: 0 }
    }

    /// Whether to tell it now, and then how often it went untold since the last time.
    pub fn now(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            self.untold += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::Tell;
    use std::time::{Duration, Instant};

    #[test]
    fn the_first_is_told_and_the_others_are_counted() {
        let (mut tell, now) = (Tell::new(Duration::from_secs(10)), Instant::now());
        assert_eq!(tell.now(now), Some(0));
        assert_eq!((tell.now(now), tell.now(now + Duration::from_secs(9))), (None, None));
        assert_eq!(tell.now(now + Duration::from_secs(10)), Some(2));
        assert_eq!(tell.now(now + Duration::from_secs(20)), Some(0));
    }
}
