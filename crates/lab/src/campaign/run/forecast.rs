//! Time left of a campaign: estimated before it begins, and better the longer it measures.

use std::time::{Duration, Instant};

/// From so much on, what was measured says how long the rest takes.
const KNOWN_FROM: Duration = Duration::from_secs(20);

/// Work still to be measured, as it was estimated beforehand.
#[derive(Debug)]
pub(super) struct Forecast {
    left: Duration,
    /// Estimate of the work that has been measured, and the time it took.
    estimated: Duration,
    took: Duration,
    begun: Instant,
}

impl Forecast {
    /// All of it.
    pub(super) fn new(left: Duration) -> Self {
        let (estimated, took) = (Duration::ZERO, Duration::ZERO);
        Self { left, estimated, took, begun: Instant::now() }
    }

    /// More work than was planned.
    pub(super) fn more(&mut self, cost: Duration) {
        self.left += cost;
    }

    /// A job begins.
    pub(super) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// A job is over that was estimated to take `cost`; one that was not measured says nothing of
    /// the others.
    pub(super) fn end(&mut self, cost: Duration, is_measured: bool) {
        self.left = self.left.saturating_sub(cost);
        if is_measured {
            self.took += self.begun.elapsed();
            self.estimated += cost;
        }
        self.begun = Instant::now();
    }

    /// Seconds that are left, about.
    pub(super) fn left_s(&self) -> f64 {
        let pace = if self.took < KNOWN_FROM || self.estimated.is_zero() {
            1.0
        } else {
            self.took.as_secs_f64() / self.estimated.as_secs_f64()
        };
        (self.left.as_secs_f64() * pace - self.begun.elapsed().as_secs_f64()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Forecast;
    use std::time::Duration;

    #[test]
    fn what_was_measured_says_how_long_the_rest_takes() {
        let second = Duration::from_secs(1);
        let mut forecast = Forecast::new(100 * second);
        let near = |forecast: &Forecast, most: f64| {
            forecast.left_s() <= most && forecast.left_s() > most - 30.0
        };
        assert!(near(&forecast, 100.0));
        forecast.end(10 * second, false);
        assert!(near(&forecast, 90.0), "what the switch cannot do takes no time");
        // Thirty seconds took sixty.
        forecast.end(30 * second, true);
        forecast.took = 60 * second;
        assert!(near(&forecast, 120.0), "{}", forecast.left_s());
        forecast.end(60 * second, true);
        assert_eq!(forecast.left_s(), 0.0);
    }
}
