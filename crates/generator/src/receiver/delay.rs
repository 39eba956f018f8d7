//! One-way delay, its variation and jitter of one stream.
//!
//! - One-way delay (RFC 7679): arrival minus due time.
//! - IPDV (RFC 3393; RFC 5481, clause 4.1): its difference between a frame and the one sent just
//!   before it. Pairs of which one is lost or reordered have none.
//! - PDV (RFC 5481, clause 4.2): its difference to the smallest one. It needs no account of its
//!   own.
//! - Jitter (RFC 3550, clause 6.4.1): smoothed over the frames in the order of their arrival.
//!
//! Distributions are histograms of fixed size. It must never let a value outside their range pass
//! unseen: the extremes and the sums are exact.

use super::histogram::Histogram;
use super::report::{Distribution, Recorded};

/// Delays are told apart by 1 / 1024 of their value. 216 KiB a stream, of which only the pages are
/// made that values fall into.
const DELAY_BITS: u32 = 10;

/// IPDV is told apart by 1 / 128 of its value: two histograms of 30 KiB a stream.
const IPDV_BITS: u32 = 7;

/// The account of one stream.
#[derive(Clone, Debug)]
pub(super) struct DelayAccount {
    delays: Histogram<DELAY_BITS>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// IPDV above or at zero, and its amount below zero.
    ipdv: [Histogram<IPDV_BITS>; 2],
    ipdv_min_ns: i64,
    ipdv_max_ns: i64,
    ipdv_sum_ns: i64,
    ipdv_amount_ns: u64,
    /// The delay of the frame with the highest number; [`NONE`] before the first.
    highest_ns: u64,
    /// The delay of the frame that arrived last; [`NONE`] before the first.
    last_ns: u64,
    jitter_ns: f64,
}

/// No delay: longer than any.
const NONE: u64 = u64::MAX;

impl DelayAccount {
    pub(super) fn new() -> Self {
        Self {
            delays: Histogram::new(),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            ipdv: [Histogram::new(), Histogram::new()],
            ipdv_min_ns: i64::MAX,
            ipdv_max_ns: i64::MIN,
            ipdv_sum_ns: 0,
            ipdv_amount_ns: 0,
            highest_ns: NONE,
            last_ns: NONE,
            jitter_ns: 0.0,
        }
    }

    /// A frame that arrived just after the one with the number before its own.
    #[inline]
    pub(super) fn next(&mut self, delay_ns: u64) {
        if self.highest_ns != NONE {
            let ipdv = delay_ns.wrapping_sub(self.highest_ns).cast_signed();
            let amount = ipdv.unsigned_abs();
            self.ipdv_sum_ns += ipdv;
            self.ipdv_amount_ns += amount;
            self.ipdv_min_ns = self.ipdv_min_ns.min(ipdv);
            self.ipdv_max_ns = self.ipdv_max_ns.max(ipdv);
            self.ipdv[usize::from(ipdv < 0)].record(amount);
        }
        self.ahead(delay_ns);
    }

    /// A frame with a higher number than all before it.
    #[inline]
    pub(super) fn ahead(&mut self, delay_ns: u64) {
        self.any(delay_ns);
        self.highest_ns = delay_ns;
    }

    /// Any new frame.
    #[inline]
    pub(super) fn any(&mut self, delay_ns: u64) {
        if self.last_ns != NONE {
            // Signed, because the processor converts no unsigned number of 64 bits.
            let change = delay_ns.abs_diff(self.last_ns).cast_signed() as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
        }
        self.last_ns = delay_ns;
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
        self.sum_ns = self.sum_ns.wrapping_add(delay_ns);
        self.delays.record(delay_ns);
    }

    pub(super) fn jitter_ns(&self) -> f64 {
        self.jitter_ns
    }

    /// The distribution of the delays; `None` without any.
    pub(super) fn delay(&self) -> Option<Distribution> {
        self.delays_less(0)
    }

    /// The distribution of PDV; `None` without any delay.
    pub(super) fn pdv(&self) -> Option<Distribution> {
        self.delays_less(self.min_ns)
    }

    /// The distribution of the delays less `least_ns`.
    fn delays_less(&self, least_ns: u64) -> Option<Distribution> {
        let least = least_ns.cast_signed();
        let less = |value: i64| value.saturating_sub(least).max(0);
        let recorded = self.delays.recorded().map(|bucket| Recorded {
            low_ns: less(bucket.low_ns),
            high_ns: less(bucket.high_ns),
            count: bucket.count,
        });
        let mean = self.sum_ns as f64 / self.delays.count().max(1) as f64 - least_ns as f64;
        let (min, max) = (less(self.min_ns.cast_signed()), less(self.max_ns.cast_signed()));
        Distribution::of(recorded, (mean, mean), min, max)
    }

    /// The distribution of IPDV; `None` without any.
    pub(super) fn ipdv(&self) -> Option<Distribution> {
        let [above, below] = &self.ipdv;
        let count = above.count() + below.count();
        let mean = |sum_ns: f64| sum_ns / count.max(1) as f64;
        let means = (mean(self.ipdv_sum_ns as f64), mean(self.ipdv_amount_ns as f64));
        let negative = below.recorded().rev().map(|bucket| Recorded {
            low_ns: -bucket.high_ns,
            high_ns: -bucket.low_ns,
            count: bucket.count,
        });
        let recorded = negative.chain(above.recorded());
        Distribution::of(recorded, means, self.ipdv_min_ns, self.ipdv_max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::DelayAccount;

    #[test]
    fn jitter_follows_rfc_3550() {
        // D = 16, 16, 0.
        let mut account = DelayAccount::new();
        for delay in [100, 116, 100, 100] {
            account.next(delay);
        }
        let b = 1.0 + (16.0 - 1.0) / 16.0;
        let c = b + (0.0 - b) / 16.0;
        assert!((account.jitter_ns() - c).abs() < 1e-9);
    }

    #[test]
    fn variation_is_to_the_frame_before_and_to_the_least() {
        let mut account = DelayAccount::new();
        for delay in [100, 120, 90, 100] {
            account.next(delay);
        }
        // A gap, then two in order: one more pair.
        account.ahead(500);
        account.next(505);
        let ipdv = account.ipdv().unwrap();
        assert_eq!((ipdv.count, ipdv.min_ns, ipdv.max_ns), (4, -30, 20));
        assert!((ipdv.mean_ns - (20.0 - 30.0 + 10.0 + 5.0) / 4.0).abs() < 1e-9);
        let pdv = account.pdv().unwrap();
        assert_eq!((pdv.count, pdv.min_ns, pdv.max_ns), (6, 0, 415));
        let delay = account.delay().unwrap();
        assert!((delay.mean_ns - 1415.0 / 6.0).abs() < 1e-9);
        assert!((pdv.mean_ns - (1415.0 / 6.0 - 90.0)).abs() < 1e-9);
        assert!(DelayAccount::new().delay().is_none() && DelayAccount::new().ipdv().is_none());
    }

    #[test]
    fn what_is_longer_than_the_histogram_is_still_the_largest() {
        let mut account = DelayAccount::new();
        account.next(1);
        account.next(90_000_000_000);
        let delay = account.delay().unwrap();
        assert_eq!((delay.count, delay.max_ns), (2, 90_000_000_000));
        assert_eq!(delay.at_ns(1.0), 90e9);
    }
}
