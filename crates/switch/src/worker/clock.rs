//! The clock of the switch: agent and workers share one epoch, so that their times are comparable.
//!
//! Tests of the whole process stop it and put it forward ([`VIRTUAL`]), as Open vSwitch's do by
//! `time/stop` and `time/warp`. Connections and devices keep the real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datapath::Nanos;

/// The wait for a time that is ahead of a clock that stands still.
const STANDSTILL: Duration = Duration::from_millis(100);

/// The virtual time of the process.
pub(crate) static VIRTUAL: VirtualTime = VirtualTime {
    is_used: AtomicBool::new(false),
    state: Mutex::new(VirtualState { stopped_at: None, ahead: Duration::ZERO }),
};

/// A time that may stand still and be put forward.
pub(crate) struct VirtualTime {
    /// Nobody has touched it where this is false: then it costs one load.
    is_used: AtomicBool,
    state: Mutex<VirtualState>,
}

#[derive(Clone, Copy)]
struct VirtualState {
    stopped_at: Option<Instant>,
    ahead: Duration,
}

impl VirtualTime {
    fn state(&self) -> MutexGuard<'_, VirtualState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time stands still from now on, but for [`VirtualTime::advance`].
    pub(crate) fn stop(&self) {
        self.state().stopped_at.get_or_insert_with(Instant::now);
        self.is_used.store(true, Ordering::Release);
    }

    /// Puts the time forward.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_add(by);
        self.is_used.store(true, Ordering::Release);
    }

    #[cold]
    fn at(&self, moment: Instant) -> Instant {
        let VirtualState { stopped_at, ahead } = *self.state();
        let moment = stopped_at.unwrap_or(moment);
        moment.checked_add(ahead).unwrap_or(moment)
    }

    /// The real moment of a virtual one.
    #[cold]
    fn moment(&self, moment: Instant) -> Instant {
        let VirtualState { stopped_at, ahead } = *self.state();
        let real = moment.checked_sub(ahead).unwrap_or(moment);
        match stopped_at {
            Some(stopped_at) if real > stopped_at => Instant::now() + STANDSTILL,
            Some(_) | None => real,
        }
    }
}

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
        let is_virtual = VIRTUAL.is_used.load(Ordering::Acquire);
        let moment = if is_virtual { VIRTUAL.at(moment) } else { moment };
        let since = moment.saturating_duration_since(self.epoch);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The moment of a time.
    pub(crate) fn moment(self, time: Nanos) -> Instant {
        let moment = self.epoch + Duration::from_nanos(time.0);
        let is_virtual = VIRTUAL.is_used.load(Ordering::Acquire);
        if is_virtual { VIRTUAL.moment(moment) } else { moment }
    }

    /// The time now.
    pub(crate) fn now(self) -> Nanos {
        self.at(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_time_goes_on_by_hand_only() {
        let time = VirtualTime {
            is_used: AtomicBool::new(false),
            state: Mutex::new(VirtualState { stopped_at: None, ahead: Duration::ZERO }),
        };
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        time.advance(second);
        assert_eq!((time.at(begun), time.moment(begun + second)), (begun + second, begun));
        time.stop();
        let stopped = time.at(begun);
        assert_eq!(time.at(begun + second * 100), stopped);
        time.advance(second);
        assert_eq!(time.at(begun), stopped + second);
        assert!(time.moment(stopped + second) <= Instant::now(), "a time that has come");
        assert!(time.moment(stopped + second * 2) > Instant::now(), "one that comes by hand");
    }
}
