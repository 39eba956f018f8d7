//! Time as an argument: monotonic nanoseconds that the caller reads from its clock.
//!
//! The datapath has no clock, so that tests and simulations choose the time and a run can be
//! replayed to the nanosecond. Nothing in this crate may ask the system what time it is.

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A moment: nanoseconds since a beginning that the caller chose once. Never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The moment a number of whole seconds after the beginning.
    #[must_use]
    pub const fn from_s(seconds: u64) -> Self {
        Self(seconds.saturating_mul(NS_PER_S))
    }

    /// The moment a number of whole seconds later.
    #[must_use]
    pub const fn plus_s(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(NS_PER_S)))
    }

    /// Nanoseconds since `earlier`; zero when that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since `earlier` as messages carry it: whole seconds and the nanoseconds beyond.
    #[must_use]
    pub fn age(self, earlier: Self) -> (u32, u32) {
        let ns = self.since(earlier);
        let seconds = u32::try_from(ns / NS_PER_S).unwrap_or(u32::MAX);
        let rest = u32::try_from(ns % NS_PER_S).unwrap_or(0);
        (seconds, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn ages_split_into_seconds_and_the_rest() {
        let start = Nanos(500_000_000);
        assert_eq!(Nanos(3_700_000_001).age(start), (3, 200_000_001));
        assert_eq!(start.age(Nanos(3_700_000_001)), (0, 0));
        assert_eq!(Nanos(u64::MAX).age(Nanos(0)).0, u32::MAX);
        assert_eq!(Nanos::from_s(2).plus_s(3), Nanos(5_000_000_000));
    }
}
