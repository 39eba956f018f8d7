//! When a worker sleeps, and for how long: the polling policy.
//!
//! Asleep a worker costs nothing, and a frame or a command wakes it through `poll(2)`. A port that
//! has no descriptor cannot wake anybody: it must be asked again and again, at first often, then,
//! as long as nothing comes, up to a thousand times a second.

use std::time::Duration;

use crate::config::Poll;

/// Rounds without work before the worker sleeps. A round without work costs a few hundred
/// nanoseconds, going to sleep and being woken several microseconds; on a machine with few cores
/// every further round is taken from the controller or the hosts.
const IDLE_ROUNDS: u32 = 4;

/// Rounds without work before the worker sleeps when a port cannot wake it: some ten microseconds.
const IDLE_ROUNDS_UNWOKEN: u32 = 64;

/// Shortest and longest sleep while a port has no descriptor. The longest costs less than a
/// hundredth of a CPU, and is what the first frame after a long silence may have to wait.
const NAP_FIRST: Duration = Duration::from_micros(10);
const NAP_LAST: Duration = Duration::from_millis(1);

/// How the worker has been doing.
#[derive(Debug)]
pub(super) struct Rest {
    poll: Poll,
    idle_rounds: u32,
    nap: Duration,
}

/// How to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Not at all.
    No,
    /// Until something is there to wake for, or due.
    UntilWoken,
    /// Likewise, but no longer than so.
    Nap(Duration),
}

impl Rest {
    pub(super) fn new(poll: Poll) -> Self {
        Self { poll, idle_rounds: 0, nap: NAP_FIRST }
    }

    /// There was something to do.
    pub(super) fn worked(&mut self) {
        self.idle_rounds = 0;
        self.nap = NAP_FIRST;
    }

    /// There was nothing to do. `all_wake` says whether every port has a descriptor.
    pub(super) fn idle(&mut self, all_wake: bool) -> Sleep {
        match self.poll {
            Poll::Busy => Sleep::No,
            Poll::Adaptive => {
                self.idle_rounds = self.idle_rounds.saturating_add(1);
                let patience = if all_wake { IDLE_ROUNDS } else { IDLE_ROUNDS_UNWOKEN };
                if self.idle_rounds < patience {
                    Sleep::No
                } else if all_wake {
                    Sleep::UntilWoken
                } else {
                    let nap = self.nap;
                    self.nap = (nap * 2).min(NAP_LAST);
                    Sleep::Nap(nap)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE_ROUNDS, IDLE_ROUNDS_UNWOKEN, NAP_FIRST, NAP_LAST, Rest, Sleep};
    use crate::config::Poll;

    #[test]
    fn a_busy_worker_never_sleeps() {
        let mut rest = Rest::new(Poll::Busy);
        assert!((0..1_000).all(|round| rest.idle(round % 2 == 0) == Sleep::No));
    }

    #[test]
    fn an_adaptive_worker_sleeps_after_a_few_rounds_and_begins_anew_with_work() {
        let mut rest = Rest::new(Poll::Adaptive);
        for _ in 0..2 {
            for _ in 1..IDLE_ROUNDS {
                assert_eq!(rest.idle(true), Sleep::No);
            }
            assert_eq!(rest.idle(true), Sleep::UntilWoken);
            assert_eq!(rest.idle(true), Sleep::UntilWoken);
            rest.worked();
        }
    }

    #[test]
    fn where_a_port_cannot_wake_naps_grow_to_a_bound() {
        let mut rest = Rest::new(Poll::Adaptive);
        for _ in 1..IDLE_ROUNDS_UNWOKEN {
            assert_eq!(rest.idle(false), Sleep::No);
        }
        assert_eq!(rest.idle(false), Sleep::Nap(NAP_FIRST));
        assert_eq!(rest.idle(false), Sleep::Nap(NAP_FIRST * 2));
        for _ in 0..10 {
            rest.idle(false);
        }
        assert_eq!(rest.idle(false), Sleep::Nap(NAP_LAST));
        rest.worked();
        assert_eq!(rest.idle(false), Sleep::No);
    }
}
