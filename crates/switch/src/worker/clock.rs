//! The clock of the switch: agent and workers share one epoch, so that their times are comparable.
//!
//! Tests of the whole process stop it and put it forward ([`VIRTUAL`]), as Open vSwitch's do by
//! `time/stop` and `time/warp`. Connections and devices keep the real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datapath::Nanos;
use rustix::time::{ClockId, clock_gettime};

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

/// Nanoseconds since the switch began, or since the machine did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
    begun: Instant,
}

impl Clock {
    /// The switch begins now.
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        Self { epoch: now, begun: now }
    }

    /// The machine began at zero, so that the time goes on when the switch starts anew.
    pub(crate) fn of_machine() -> Self {
        let (now, uptime) = (Instant::now(), clock_gettime(ClockId::Monotonic));
        let seconds = u64::try_from(uptime.tv_sec).unwrap_or(0);
        let uptime = Duration::new(seconds, u32::try_from(uptime.tv_nsec).unwrap_or(0));
        Self { epoch: now.checked_sub(uptime).unwrap_or(now), begun: now }
    }

    /// The time at which the switch began.
    pub(crate) fn begun(self) -> Nanos {
        nanos(self.begun.saturating_duration_since(self.epoch))
    }

    /// The time at a moment.
    pub(crate) fn at(self, moment: Instant) -> Nanos {
        let is_virtual = VIRTUAL.is_used.load(Ordering::Acquire);
        let moment = if is_virtual { VIRTUAL.at(moment) } else { moment };
        nanos(moment.saturating_duration_since(self.epoch))
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

fn nanos(since: Duration) -> Nanos {
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_machine_goes_on_with_another_clock() {
        let (earlier, later) = (Clock::of_machine(), Clock::of_machine());
        let (one, other) = (earlier.now(), later.now());
        assert!(earlier.begun() > Nanos(0) && later.moment(later.begun()) <= Instant::now());
        // Each reads the time of the machine by itself.
        assert!(one.since(other).max(other.since(one)) < 10_000_000_000, "{one:?} {other:?}");
        assert_eq!(Clock::begin().begun(), Nanos(0));
    }

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
