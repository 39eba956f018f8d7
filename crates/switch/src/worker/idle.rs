//! The idle policy of a worker: when it sleeps, and for how long.
//!
//! A sleeping worker costs nothing, and a frame or a command wakes it through epoll. A port without
//! a descriptor cannot wake it and must be polled: often at first, then less, down to a thousand
//! times a second.

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

/// The state of the policy.
#[derive(Debug)]
pub(super) struct IdlePolicy {
    poll: Poll,
    idle_rounds: u32,
    nap: Duration,
}

/// The sleep of an idle worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Not at all.
    No,
    /// Until something is there to wake for, or due.
    UntilWoken,
    /// Likewise, but no longer than so.
    Nap(Duration),
}

impl IdlePolicy {
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
    use super::{IDLE_ROUNDS, IDLE_ROUNDS_UNWOKEN, IdlePolicy, NAP_FIRST, NAP_LAST, Sleep};
    use crate::config::Poll;

    #[test]
    fn a_busy_worker_never_sleeps() {
        let mut policy = IdlePolicy::new(Poll::Busy);
        assert!((0..1_000).all(|round| policy.idle(round % 2 == 0) == Sleep::No));
    }

    #[test]
    fn an_adaptive_worker_sleeps_after_a_few_idle_rounds() {
        let mut policy = IdlePolicy::new(Poll::Adaptive);
        for _ in 0..2 {
            for _ in 1..IDLE_ROUNDS {
                assert_eq!(policy.idle(true), Sleep::No);
            }
            assert_eq!(policy.idle(true), Sleep::UntilWoken);
            assert_eq!(policy.idle(true), Sleep::UntilWoken);
            policy.worked();
        }
    }

    #[test]
    fn where_a_port_cannot_wake_naps_grow_to_a_bound() {
        let mut policy = IdlePolicy::new(Poll::Adaptive);
        for _ in 1..IDLE_ROUNDS_UNWOKEN {
            assert_eq!(policy.idle(false), Sleep::No);
        }
        assert_eq!(policy.idle(false), Sleep::Nap(NAP_FIRST));
        assert_eq!(policy.idle(false), Sleep::Nap(NAP_FIRST * 2));
        for _ in 0..10 {
            policy.idle(false);
        }
        assert_eq!(policy.idle(false), Sleep::Nap(NAP_LAST));
        policy.worked();
        assert_eq!(policy.idle(false), Sleep::No);
    }
}
