//! How many packets a second may go to the controllers for each reason: a token bucket each.
//!
//! It stands between the workers and the agent, before a packet is copied to any connection, so
//! that a flood for one reason costs neither the channel nor the packets of the other reasons. It
//! never waits, and workers share it without a lock; what it refuses is counted by reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use openflow::message::PacketInReason;

use crate::counters::{Counter, Counters};

/// Parts of a nanosecond in which tokens are reckoned, so that a rate of millions is exact to a
/// ten-thousandth and the clock lasts for thirty years.
const PARTS_PER_NS: u64 = 16;

const PARTS_PER_S: u64 = 1_000_000_000 * PARTS_PER_NS;

/// How many reasons there are with a bucket and a share of the queue of their own.
pub(crate) const REASONS: usize = 3;

/// The place of a reason among the buckets; what is not known counts as an action's.
pub(crate) fn place(reason: PacketInReason) -> usize {
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action | PacketInReason::Unknown(_) => 1,
        PacketInReason::InvalidTtl => 2,
    }
}

/// The token buckets of all reasons.
#[derive(Debug)]
pub(crate) struct Police {
    /// `None` for any number of packets.
    rate: Option<Rate>,
    /// When each bucket will be full again, in parts since `epoch`.
    full_at: [AtomicU64; REASONS],
    epoch: Instant,
    counters: Arc<Counters>,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    /// What a packet costs.
    interval: u64,
    /// What a full bucket holds.
    depth: u64,
}

impl Police {
    /// `per_s` packets a second for each reason, 0 for any number, of which `burst` may come at
    /// once.
    pub(crate) fn new(per_s: u32, burst: u32, counters: Arc<Counters>) -> Self {
        let rate = (per_s > 0).then(|| {
            let interval = PARTS_PER_S / u64::from(per_s);
            Rate { interval, depth: interval * u64::from(burst.max(1)) }
        });
        Self { rate, full_at: Default::default(), epoch: Instant::now(), counters }
    }

    /// Takes a token; false when there is none, which is counted.
    pub(crate) fn admits(&self, reason: PacketInReason, now: Instant) -> bool {
        let Some(rate) = self.rate else { return true };
        let Some(full_at) = self.full_at.get(place(reason)) else { return true };
        let since = now.saturating_duration_since(self.epoch).as_nanos();
        let now = u64::try_from(since).unwrap_or(u64::MAX).saturating_mul(PARTS_PER_NS);
        let taken = full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let then = full_at.max(now).saturating_add(rate.interval);
            (then - now <= rate.depth).then_some(then)
        });
        if taken.is_err() {
            self.counters.bump(match reason {
                PacketInReason::NoMatch => Counter::PacketInRateNoMatch,
                PacketInReason::Action | PacketInReason::Unknown(_) => Counter::PacketInRateAction,
                PacketInReason::InvalidTtl => Counter::PacketInRateInvalidTtl,
            });
        }
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use openflow::message::PacketInReason;

    use super::Police;
    use crate::counters::{Counter, Counters};

    /// How many of `offered` packets, evenly over a second from `start`, get through.
    fn passed(police: &Police, reason: PacketInReason, offered: u32, start: Instant) -> u32 {
        let step = Duration::from_secs(1) / offered;
        (0..offered).map(|n| u32::from(police.admits(reason, start + step * n))).sum()
    }

    #[test]
    fn the_rate_holds_after_the_burst_and_each_reason_has_its_own() {
        let counters = Arc::new(Counters::default());
        let police = Police::new(1_000, 100, Arc::clone(&counters));
        let start = Instant::now() + Duration::from_secs(1);
        let misses = passed(&police, PacketInReason::NoMatch, 50_000, start);
        assert!((1_095..=1_101).contains(&misses), "{misses}");
        assert_eq!(counters.get(Counter::PacketInRateNoMatch), u64::from(50_000 - misses));
        assert_eq!(passed(&police, PacketInReason::Action, 900, start), 900);
        assert_eq!(counters.get(Counter::PacketInRateAction), 0);
        // What was saved up in silence is the burst and no more.
        let later = start + Duration::from_secs(3_600);
        let at_once = (0..5_000).filter(|_| police.admits(PacketInReason::NoMatch, later)).count();
        assert_eq!(at_once, 100);
    }

    #[test]
    fn rates_of_millions_are_exact() {
        let police = Police::new(3_000_000, 100, Arc::new(Counters::default()));
        let start = Instant::now() + Duration::from_secs(1);
        let passed = passed(&police, PacketInReason::Action, 9_000_000, start);
        assert!((2_996_000..=3_000_500).contains(&passed), "{passed}");
    }

    #[test]
    fn no_rate_is_any_number() {
        let police = Police::new(0, 1, Arc::new(Counters::default()));
        let now = Instant::now();
        assert!((0..10_000).all(|_| police.admits(PacketInReason::NoMatch, now)));
    }
}
