//! A histogram of times: linear within each power of two, as an HDR histogram is.
//!
//! The crate of that name counts a value in 75 instructions, because it also keeps the count, the
//! extremes and room to grow; two values a frame were half of the receiver's work. This one takes
//! fifteen. It must never lose a value: what is longer than the longest is counted there.

use super::report::Recorded;

/// The longest time that is told apart: 68.7 s.
const LONGEST_NS: u64 = (1 << 36) - 1;

/// Counts of times. A bucket is at most 2^-`BITS` of its values wide.
#[derive(Clone, Debug)]
pub(super) struct Histogram<const BITS: u32> {
    counts: Box<[u64]>,
}

impl<const BITS: u32> Histogram<BITS> {
    pub(super) fn new() -> Self {
        // Pages that are never counted in are never made: the allocation is zeroed by the kernel.
        Self { counts: vec![0; Self::bucket(LONGEST_NS) + 1].into_boxed_slice() }
    }

    /// Values below 2^(BITS + 1) have a bucket each; in each power of two above are 2^BITS.
    #[inline]
    fn bucket(value_ns: u64) -> usize {
        let shift = 63 - BITS - (value_ns | 1 << BITS).leading_zeros();
        ((shift as usize) << BITS) + (value_ns >> shift) as usize
    }

    /// Counts a value.
    #[inline]
    pub(super) fn record(&mut self, value_ns: u64) {
        if let Some(count) = self.counts.get_mut(Self::bucket(value_ns.min(LONGEST_NS))) {
            *count += 1;
        }
    }

    /// The number of values.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The buckets that hold values, in ascending order.
    pub(super) fn recorded(&self) -> impl DoubleEndedIterator<Item = Recorded> {
        let used = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(bucket, count)| {
            let shift = (bucket >> BITS).saturating_sub(1);
            let low = ((bucket - (shift << BITS)) << shift) as i64;
            Recorded { low_ns: low, high_ns: low + (1 << shift) - 1, count: *count }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, LONGEST_NS};
    use crate::random::SplitMix64;

    #[test]
    fn every_value_lies_in_its_bucket() {
        let mut random = SplitMix64::new(1);
        let ends = (0..37).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        let others = (0..2_000).map(|_| random.next() >> (28 + random.below(36)));
        for value in ends.chain(others).filter(|value| *value <= LONGEST_NS) {
            let mut histogram = Histogram::<10>::new();
            histogram.record(value);
            let found: Vec<_> = histogram.recorded().collect();
            assert_eq!((found.len(), found[0].count, histogram.count()), (1, 1, 1));
            let (low, high) = (found[0].low_ns as u64, found[0].high_ns as u64);
            assert!((low..=high).contains(&value), "{value}: {low} to {high}");
            assert!((high - low) * 1024 <= value, "{value}: {low} to {high}");
        }
    }

    #[test]
    fn buckets_ascend_without_gaps() {
        let mut histogram = Histogram::<3>::new();
        for value in 0..5_000 {
            histogram.record(value);
        }
        let mut next = 0;
        for bucket in histogram.recorded() {
            assert_eq!(bucket.low_ns, next);
            next = bucket.high_ns + 1;
        }
        histogram.record(u64::MAX);
        assert_eq!(histogram.recorded().next_back().map(|last| last.count), Some(1));
    }
}
