//! The rate at which frames are taken from a port: what comes faster is dropped before any table.
//!
//! Two token buckets, of bits and of packets, which are full at first and are filled by the
//! worker's clock. The queues of a port share them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use netdev::{PoliceRate, Policing};
use packet::{PacketBuf, Pool};

const NS_PER_S: u128 = 1_000_000_000;

/// The buckets of a port.
#[derive(Debug)]
pub(super) struct IngressRate(Mutex<[Option<Bucket>; 2]>);

impl IngressRate {
    /// None where nothing is limited.
    pub(super) fn of(policing: Policing, now: Instant) -> Option<Self> {
        let buckets = [policing.bits, policing.packets].map(|rate| Some(Bucket::new(rate?, now)));
        buckets.iter().any(Option::is_some).then(|| Self(Mutex::new(buckets)))
    }

    /// Drops the frames that come too fast; the number of packets that a wire carries for them.
    pub(super) fn police(&self, frames: &mut Vec<PacketBuf>, pool: &mut Pool, now: Instant) -> u64 {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.iter_mut().flatten().for_each(|bucket| bucket.fill(now));
        let mut dropped = 0;
        let exceeds = |frame: &mut PacketBuf| {
            let (packets, bytes) = frame.on_wire();
            let amounts = [bytes.saturating_mul(8), packets];
            let mut both = buckets.iter().zip(amounts);
            // Neither is charged where one has too little.
            if both.any(|(it, amount)| it.as_ref().is_some_and(|it| it.level < amount)) {
                dropped += packets;
                return true;
            }
            for (bucket, amount) in buckets.iter_mut().zip(amounts) {
                bucket.iter_mut().for_each(|bucket| bucket.level -= amount);
            }
            false
        };
        for frame in frames.extract_if(.., exceeds) {
            pool.give(frame);
        }
        dropped
    }
}

#[derive(Debug)]
struct Bucket {
    rate: PoliceRate,
    level: u64,
    /// The time up to which it is filled.
    at: Instant,
}

impl Bucket {
    fn new(rate: PoliceRate, now: Instant) -> Self {
        Self { rate, level: rate.burst, at: now }
    }

    fn fill(&mut self, now: Instant) {
        let per_s = u128::from(self.rate.per_s);
        let came = now.saturating_duration_since(self.at).as_nanos() * per_s / NS_PER_S;
        // What is less than one waits for the next time.
        let ns = u64::try_from(came * NS_PER_S / per_s).unwrap_or(u64::MAX);
        self.at += Duration::from_nanos(ns);
        let came = u64::try_from(came).unwrap_or(u64::MAX);
        self.level = self.level.saturating_add(came).min(self.rate.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_burst_and_rate_is_dropped() {
        let begun = Instant::now();
        let rate = |per_s, burst| Some(PoliceRate { per_s, burst });
        let policing = Policing { bits: rate(8_000, 8_000), packets: rate(1_000, 15) };
        assert!(IngressRate::of(Policing::default(), begun).is_none());
        let rate = IngressRate::of(policing, begun).unwrap();
        let mut pool = Pool::default();
        let mut passes = |count: usize, len: usize, at_ms: u64| {
            let mut frames = vec![PacketBuf::from_slice(&vec![0; len]); count];
            let dropped = rate.police(&mut frames, &mut pool, begun + Duration::from_millis(at_ms));
            assert_eq!(frames.len() + dropped as usize, count);
            frames.len()
        };
        // 1,000 bytes and 15 packets at once; then a byte and a packet a millisecond.
        assert_eq!(passes(20, 60, 0), 15);
        assert_eq!(passes(1, 60, 0), 0);
        assert_eq!(passes(5, 20, 3), 3);
        assert_eq!(passes(5, 60, 10), 0);
        assert_eq!(passes(5, 500, 1_000), 2);
        assert_eq!(passes(1, 500, 1_300), 0);
        assert_eq!(passes(1, 500, 1_600), 1);
    }
}
