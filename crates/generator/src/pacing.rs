//! The schedule of a stream: the due time of each frame, fixed before the first one leaves.
//!
//! The n-th frame is due at `start + n / rate`, computed from n and not by adding intervals, so
//! that rounding never drifts. It must never look at what was sent or received: a schedule that
//! waits for the system under test omits exactly the samples that matter.

/// A constant rate from a start time, for a number of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    start_ns: u64,
    rate_pps: f64,
    count: u64,
}

impl Schedule {
    /// `rate_pps` frames a second from `start_ns` for `duration_s`.
    /// At least one frame is due, however low the rate.
    ///
    /// # Panics
    /// When the rate or the duration is not a positive number: the caller's mistake.
    #[must_use]
    pub fn new(start_ns: u64, rate_pps: f64, duration_s: f64) -> Self {
        assert!(rate_pps.is_finite() && rate_pps > 0.0, "rate of {rate_pps} frames/s");
        assert!(duration_s.is_finite() && duration_s > 0.0, "duration of {duration_s} s");
        let count = ((rate_pps * duration_s).round() as u64).max(1);
        Self { start_ns, rate_pps, count }
    }

    /// How many frames the schedule has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Frames a second.
    #[must_use]
    pub fn rate_pps(&self) -> f64 {
        self.rate_pps
    }

    /// The time of the first frame.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// When frame `number` (from 0) is due.
    #[must_use]
    pub fn due_ns(&self, number: u64) -> u64 {
        self.start_ns + (number as f64 * 1e9 / self.rate_pps) as u64
    }

    /// The end of the last frame's interval.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.due_ns(self.count)
    }

    /// How many frames are due at `now_ns`, never more than [`Schedule::count`].
    #[must_use]
    pub fn due_count(&self, now_ns: u64) -> u64 {
        if now_ns < self.start_ns {
            return 0;
        }
        let passed_s = (now_ns - self.start_ns) as f64 / 1e9;
        // The estimate can be one off in either direction through rounding; the schedule itself
        // decides.
        let mut count = ((passed_s * self.rate_pps) as u64 + 1).min(self.count);
        while count > 0 && self.due_ns(count - 1) > now_ns {
            count -= 1;
        }
        while count < self.count && self.due_ns(count) <= now_ns {
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn frames_are_due_at_multiples_of_the_interval() {
        let schedule = Schedule::new(500, 1000.0, 0.01);
        assert_eq!(schedule.count(), 10);
        assert_eq!(schedule.due_ns(0), 500);
        assert_eq!(schedule.due_ns(3), 3_000_500);
        assert_eq!(schedule.end_ns(), 10_000_500);
        assert_eq!(schedule.due_count(499), 0);
        assert_eq!(schedule.due_count(500), 1);
        assert_eq!(schedule.due_count(3_000_499), 3);
        assert_eq!(schedule.due_count(3_000_500), 4);
        assert_eq!(schedule.due_count(u64::MAX), 10);
    }

    #[test]
    fn every_due_time_is_counted_exactly_at_its_time_whatever_the_rate() {
        for rate in [1.0, 3.0, 7.7, 999.9, 148_809.5, 1e6] {
            let schedule = Schedule::new(12_345, rate, 200.0 / rate);
            for number in 0..schedule.count() {
                let due = schedule.due_ns(number);
                assert!(schedule.due_count(due) > number, "{rate} {number}");
                assert!(schedule.due_count(due - 1) <= number, "{rate} {number}");
            }
        }
    }

    #[test]
    fn a_low_rate_still_sends_one_frame() {
        assert_eq!(Schedule::new(0, 0.1, 1.0).count(), 1);
    }
}
