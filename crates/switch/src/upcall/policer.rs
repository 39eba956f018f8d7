//! The rate limit of packet-ins: a token bucket for each class.
//!
//! It is applied between the workers and the agent, before a packet is copied to any connection, so
//! that a flood of one class costs neither the channel nor the packets of the other classes. It
//! never waits, and workers share it without a lock; what it refuses is counted by class.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use openflow::message::PacketInReason;

use crate::counters::{Counter, Counters};

/// Parts of a nanosecond in which tokens are reckoned, so that a rate of millions is exact to a
/// ten-thousandth and the clock lasts for thirty years.
const PARTS_PER_NS: u64 = 16;

const PARTS_PER_S: u64 = 1_000_000_000 * PARTS_PER_NS;

/// The class of a packet-in: each has a token bucket and a share of the queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketInClass {
    /// A table miss.
    NoMatch,
    /// An action of a flow entry or group; also a reason that is not known.
    Action,
    /// An invalid TTL.
    InvalidTtl,
}

impl PacketInClass {
    /// The number of classes.
    pub(crate) const COUNT: usize = 3;

    /// The class of a reason.
    pub(crate) fn of(reason: PacketInReason) -> Self {
        match reason {
            PacketInReason::NoMatch => Self::NoMatch,
            PacketInReason::Action
            | PacketInReason::ActionSet
            | PacketInReason::Group
            | PacketInReason::PacketOut
            | PacketInReason::Unknown(_) => Self::Action,
            PacketInReason::InvalidTtl => Self::InvalidTtl,
        }
    }

    /// Its index, below [`PacketInClass::COUNT`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The counter of the packets that the rate limit drops.
    fn rate_drops(self) -> Counter {
        match self {
            Self::NoMatch => Counter::PacketInRateNoMatch,
            Self::Action => Counter::PacketInRateAction,
            Self::InvalidTtl => Counter::PacketInRateInvalidTtl,
        }
    }
}

/// The token buckets of all classes.
#[derive(Debug)]
pub(crate) struct PacketInPolicer {
    /// `None` for any number of packets.
    rate: Option<Rate>,
    /// When each bucket will be full again, in parts since `epoch`.
    full_at: [AtomicU64; PacketInClass::COUNT],
    epoch: Instant,
    counters: Arc<Counters>,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    /// The cost of a packet.
    interval: u64,
    /// The contents of a full bucket.
    depth: u64,
}

impl PacketInPolicer {
    /// `per_s` packets a second for each class, 0 for any number, with bursts of `burst` packets.
    pub(crate) fn new(per_s: u32, burst: u32, counters: Arc<Counters>) -> Self {
        let rate = (per_s > 0).then(|| {
            let interval = PARTS_PER_S / u64::from(per_s);
            Rate { interval, depth: interval * u64::from(burst.max(1)) }
        });
        Self { rate, full_at: Default::default(), epoch: Instant::now(), counters }
    }

    /// Takes a token; false when there is none, which is counted.
    pub(crate) fn admits(&self, class: PacketInClass, now: Instant) -> bool {
        let Some(rate) = self.rate else { return true };
        let Some(full_at) = self.full_at.get(class.index()) else { return true };
        let since = now.saturating_duration_since(self.epoch).as_nanos();
        let now = u64::try_from(since).unwrap_or(u64::MAX).saturating_mul(PARTS_PER_NS);
        let taken = full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let then = full_at.max(now).saturating_add(rate.interval);
            (then - now <= rate.depth).then_some(then)
        });
        if taken.is_err() {
            self.counters.bump(class.rate_drops());
        }
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{PacketInClass, PacketInPolicer};
    use crate::counters::{Counter, Counters};

    /// The number of `offered` packets, evenly over a second from `start`, that get through.
    fn passed(
        policer: &PacketInPolicer,
        class: PacketInClass,
        offered: u32,
        start: Instant,
    ) -> u32 {
        let step = Duration::from_secs(1) / offered;
        (0..offered).map(|n| u32::from(policer.admits(class, start + step * n))).sum()
    }

    #[test]
    fn the_rate_holds_after_the_burst_and_each_class_has_its_own() {
        let counters = Arc::new(Counters::default());
        let policer = PacketInPolicer::new(1_000, 100, Arc::clone(&counters));
        let start = Instant::now() + Duration::from_secs(1);
        let misses = passed(&policer, PacketInClass::NoMatch, 50_000, start);
        assert!((1_095..=1_101).contains(&misses), "{misses}");
        assert_eq!(counters.get(Counter::PacketInRateNoMatch), u64::from(50_000 - misses));
        assert_eq!(passed(&policer, PacketInClass::Action, 900, start), 900);
        assert_eq!(counters.get(Counter::PacketInRateAction), 0);
        // What was saved up in silence is the burst and no more.
        let later = start + Duration::from_secs(3_600);
        let at_once = (0..5_000).filter(|_| policer.admits(PacketInClass::NoMatch, later)).count();
        assert_eq!(at_once, 100);
    }

    #[test]
    fn rates_of_millions_are_exact() {
        let policer = PacketInPolicer::new(3_000_000, 100, Arc::new(Counters::default()));
        let start = Instant::now() + Duration::from_secs(1);
        let passed = passed(&policer, PacketInClass::Action, 9_000_000, start);
        assert!((2_996_000..=3_000_500).contains(&passed), "{passed}");
    }

    #[test]
    fn no_rate_is_any_number() {
        let policer = PacketInPolicer::new(0, 1, Arc::new(Counters::default()));
        let now = Instant::now();
        assert!((0..10_000).all(|_| policer.admits(PacketInClass::NoMatch, now)));
    }
}
