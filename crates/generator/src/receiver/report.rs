//! The report on a stream, as people and programs get it.
//!
//! All times are nanoseconds, all shares are 0 to 1. It must never say more than the account holds:
//! a distribution without values is absent instead of zero.

use serde::{Deserialize, Serialize};

/// The shares of which each distribution has the quantile: its CDF.
pub const QUANTILES: [f64; 21] = [
    0.0, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 0.995,
    0.999, 0.9999, 0.99999, 1.0,
];

/// The normal quantile of a two-sided interval of 99 %.
const Z99: f64 = 2.5758;

/// The report of one stream. Counts are frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Number of the stream.
    pub stream: u16,
    /// Frames that were sent, as the sender says; without it, the numbers up to the highest that
    /// arrived.
    pub sent: u64,
    /// Distinct frames that arrived, late ones included.
    pub received: u64,
    /// Those of them that were late.
    pub late: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Further copies of frames that had arrived.
    pub duplicated: u64,
    /// Frames that arrived after one with a higher number (RFC 4737).
    pub reordered: u64,
    /// By how much.
    pub reordering: ReorderingReport,
    /// Frames whose content was changed on the way. They count as lost.
    pub corrupted: u64,
    /// Frames too far behind the highest number to be told from copies. They count as lost.
    pub beyond_window: u64,
    /// Frames from before the start of the account.
    pub stale: u64,
    /// The highest number that did not arrive, from 0 for the first frame of the account.
    pub last_lost: Option<u64>,
    /// When the first frame arrived, nanoseconds of the run's clock.
    pub first_ns: Option<u64>,
    /// When the last frame arrived that was not late, nanoseconds of the run's clock.
    pub last_ns: Option<u64>,
    /// The longest time between two arrivals.
    pub longest_gap_ns: u64,
    /// Interarrival jitter (RFC 3550) at the end.
    pub jitter_ns: f64,
    /// One-way delay, from the due time (RFC 7679).
    pub delay: Option<Distribution>,
    /// Its variation between frames sent in succession (IPDV, RFC 5481).
    pub ipdv: Option<Distribution>,
    /// Its variation from the smallest (PDV, RFC 5481).
    pub pdv: Option<Distribution>,
}

impl StreamReport {
    /// Distinct frames that arrived in time.
    #[must_use]
    pub fn in_time(&self) -> u64 {
        self.received - self.late
    }

    /// Share of the sent frames that did not arrive in time.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        1.0 - self.in_time() as f64 / self.sent.max(1) as f64
    }

    /// The delay below which `share` of the arrived frames stay, in microseconds; `None` when
    /// nothing arrived.
    #[must_use]
    pub fn delay_us(&self, share: f64) -> Option<f64> {
        self.delay.as_ref().map(|delay| delay.at_ns(share) / 1e3)
    }

    /// The mean delay in microseconds; `None` when nothing arrived.
    #[must_use]
    pub fn delay_us_mean(&self) -> Option<f64> {
        self.delay.as_ref().map(|delay| delay.mean_ns / 1e3)
    }
}

/// By how much frames were reordered (RFC 4737).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReorderingReport {
    /// Mean reordering extent of the reordered frames: how many frames arrived since the first that
    /// overtook them.
    pub extent_mean: f64,
    /// The largest extent.
    pub extent_max: u64,
    /// The number of n-reordered frames, for n from 1 on: the n frames that arrived just before
    /// them all have higher numbers. TCP retransmits for those of n = 3.
    pub n_reordered: Vec<u64>,
}

/// A distribution of times. Signed, as variation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// The smallest.
    pub min_ns: i64,
    /// The mean.
    pub mean_ns: f64,
    /// The mean of the amounts, without their signs.
    pub mean_amount_ns: f64,
    /// The largest.
    pub max_ns: i64,
    /// The quantiles of [`QUANTILES`], in their order.
    pub quantiles: Vec<Quantile>,
}

/// One quantile, with the 99 % interval that the order statistics of independent samples give it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The share of the values that are at or below it.
    pub share: f64,
    /// The value.
    pub value_ns: i64,
    /// The lower end of its interval.
    pub low_ns: i64,
    /// The upper end of its interval.
    pub high_ns: i64,
}

/// Values between two bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    pub(super) low_ns: i64,
    pub(super) high_ns: i64,
    pub(super) count: u64,
}

impl Distribution {
    /// The distribution of the values in `recorded`, which ascend; `None` without values. The means
    /// are those of the values and of their amounts.
    pub(super) fn of(
        recorded: impl Iterator<Item = Recorded>,
        means_ns: (f64, f64),
        min_ns: i64,
        max_ns: i64,
    ) -> Option<Self> {
        let mut total = 0;
        let cumulated: Vec<(u64, Recorded)> = recorded
            .map(|bucket| {
                total += bucket.count;
                (total, bucket)
            })
            .collect();
        let (count, last) = *cumulated.last()?;
        let (mean_ns, mean_amount_ns) = means_ns;
        let at = |rank: f64| {
            let index = cumulated.partition_point(|(up_to, _)| (*up_to as f64) < rank);
            cumulated.get(index).map_or(last, |(_, bucket)| *bucket)
        };
        let within = |value: i64| value.clamp(min_ns, max_ns);
        let quantile = |share: f64| {
            // The rank without bias for any distribution (Weibull's).
            let rank = (share * (count + 1) as f64).min(count as f64);
            let reach = Z99 * (rank * (1.0 - share)).sqrt();
            // The extremes are what they are: they hold for samples only.
            let reach = if share == 0.0 || share == 1.0 { 0.0 } else { reach + 1.0 };
            let bucket = at(rank.max(1.0));
            let middle_ns = within(bucket.low_ns + (bucket.high_ns - bucket.low_ns) / 2);
            let value_ns = if share == 1.0 { max_ns } else { middle_ns };
            Quantile {
                share,
                value_ns: if share == 0.0 { min_ns } else { value_ns },
                low_ns: within(at((rank - reach).max(1.0)).low_ns),
                high_ns: within(at((rank + reach).min(count as f64)).high_ns),
            }
        };
        let quantiles = QUANTILES.map(quantile).to_vec();
        Some(Self { count, min_ns, mean_ns, mean_amount_ns, max_ns, quantiles })
    }

    /// The value of a share, from the nearest two of [`QUANTILES`].
    #[must_use]
    pub fn at_ns(&self, share: f64) -> f64 {
        let above = self.quantiles.iter().position(|quantile| quantile.share >= share);
        let Some(above) = above else { return self.max_ns as f64 };
        let high = &self.quantiles[above];
        let Some(low) = above.checked_sub(1).map(|below| &self.quantiles[below]) else {
            return high.value_ns as f64;
        };
        let part = (share - low.share) / (high.share - low.share);
        low.value_ns as f64 + part * (high.value_ns - low.value_ns) as f64
    }

    /// The quantile of a share that [`QUANTILES`] has.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<&Quantile> {
        self.quantiles.iter().find(|quantile| (quantile.share - share).abs() < 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Recorded};

    fn uniform(count: u64) -> Distribution {
        let each = (1..=count.cast_signed()).map(|n| Recorded { low_ns: n, high_ns: n, count: 1 });
        let mean = (count + 1) as f64 / 2.0;
        Distribution::of(each, (mean, mean), 1, count.cast_signed()).unwrap()
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let found = uniform(1000);
        assert_eq!((found.at_ns(0.0), found.at_ns(0.5), found.at_ns(1.0)), (1.0, 501.0, 1000.0));
        assert_eq!((found.at_ns(0.99), found.at_ns(0.55)), (991.0, 551.0));
        let median = found.quantile(0.5).unwrap();
        // 2.5758 sqrt(250) = 40.7, and one.
        assert_eq!((median.low_ns, median.high_ns), (459, 543));
        assert!(found.quantile(0.123).is_none());
    }

    #[test]
    fn few_values_have_wide_intervals() {
        let p99 = *uniform(10).quantile(0.99).unwrap();
        assert_eq!((p99.value_ns, p99.high_ns), (10, 10));
        assert!(p99.low_ns < 10);
        assert!(Distribution::of(std::iter::empty(), (0.0, 0.0), 0, 0).is_none());
    }
}
