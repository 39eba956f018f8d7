//! The clock of the switch: agent and workers share one epoch, so that their times are comparable.

use std::time::{Duration, Instant};

use datapath::Nanos;

/// Nanoseconds since the switch began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// The switch begins now.
    pub(crate) fn begin() -> Self {
        Self { epoch: Instant::now() }
    }

    /// The time at a moment.
    pub(crate) fn at(self, moment: Instant) -> Nanos {
        let since = moment.saturating_duration_since(self.epoch);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The moment of a time.
    pub(crate) fn moment(self, time: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(time.0)
    }

    /// The time now.
    pub(crate) fn now(self) -> Nanos {
        self.at(Instant::now())
    }
}
