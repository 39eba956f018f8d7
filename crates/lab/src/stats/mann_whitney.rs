//! Two independent sets of samples, such as those of two reports: by how much, or how many times,
//! one is more than the other, by Mann and Whitney's test.
//!
//! The estimate is the median of all differences between a sample of one and a sample of the other
//! (Hodges and Lehmann, 1963), the interval is Moses' (all shifts that the test does not refuse).
//! Both take for granted that the two distributions have one shape, and the samples no pairs:
//! measurements in turns have more to say, in [`super::paired_ratio`].

use serde::{Deserialize, Serialize};

use super::interval::{CONFIDENCE, Interval, StatsError, check, logs, sorted, tail};
use super::mean::welch;
use super::rank::{NullDistribution, PairSums, doubled_ranks};
use super::signed_rank::RankEstimate;

/// By how much samples of `first` are more than those of `second`, and the test that they are not.
/// Of too few samples (99 % takes five of each) the interval is the widest that there is, and its
/// confidence says so.
///
/// # Errors
/// One list is empty, or a sample is not finite.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn mann_whitney(
    first: &[f64],
    second: &[f64],
    confidence: f64,
) -> Result<RankEstimate, StatsError> {
    check(first, 1)?;
    check(second, 1)?;
    let xs = sorted(first);
    let ys = sorted(&second.iter().map(|sample| -sample).collect::<Vec<f64>>());
    let untied: Vec<usize> = (1..=xs.len() + ys.len()).map(|rank| 2 * rank).collect();
    let null = NullDistribution::of_rank_sums(&untied, xs.len());
    let (rank, below) = null.rank(tail(confidence));
    let sums = PairSums::Product;
    let last = sums.count(&xs, &ys) + 1 - rank;
    let interval = Interval {
        low: sums.nth(&xs, &ys, rank),
        high: sums.nth(&xs, &ys, last),
        confidence: 1.0 - 2.0 * below,
    };
    let estimate = sums.median(&xs, &ys);
    let (statistic, ranks) = statistic(first, second);
    let p_value = if ranks == untied {
        null.p_value(statistic)
    } else {
        NullDistribution::of_rank_sums(&ranks, xs.len()).p_value(statistic)
    };
    Ok(RankEstimate { estimate, interval, p_value })
}

/// Ratio of one thing to another, from independent samples of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpairedRatio {
    /// The Hodges-Lehmann estimate of the ratio, with the interval and p-value of Mann and
    /// Whitney's test.
    pub ranks: RankEstimate,
    /// The geometric mean of the first over that of the second.
    pub geometric_mean: f64,
    /// Its 99 % interval, by Welch's t from the logarithms. It takes two samples of each, and takes
    /// for granted that their logarithms are normal.
    pub t_interval: Interval,
    /// The p-value of Welch's test that the ratio is 1.
    pub t_p_value: f64,
}

/// Ratio of the samples of `first` to those of `second`: [`mann_whitney`] and [`welch`] of the
/// logarithms.
///
/// # Errors
/// One list has less than two samples, or a sample is not above 0.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn unpaired_ratio(
    first: &[f64],
    second: &[f64],
    confidence: f64,
) -> Result<UnpairedRatio, StatsError> {
    let (first, second) = (logs(first)?, logs(second)?);
    let by_t = welch(&first, &second, CONFIDENCE)?;
    Ok(UnpairedRatio {
        ranks: mann_whitney(&first, &second, confidence)?.exp(),
        geometric_mean: by_t.difference.exp(),
        t_interval: by_t.interval.map(f64::exp),
        t_p_value: by_t.p_value,
    })
}

/// Mann and Whitney's U, and the doubled ranks of all samples.
fn statistic(first: &[f64], second: &[f64]) -> (f64, Vec<usize>) {
    let mine = first.iter().map(|sample| (*sample, true));
    let mut all: Vec<(f64, bool)> =
        mine.chain(second.iter().map(|sample| (*sample, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let values: Vec<f64> = all.iter().map(|(value, _)| *value).collect();
    let ranks = doubled_ranks(&values);
    let of_first = all.iter().zip(&ranks).filter(|((_, is_first), _)| *is_first);
    let sum: usize = of_first.map(|(_, rank)| *rank).sum();
    let least = first.len() * (first.len() + 1);
    ((sum - least) as f64 / 2.0, ranks)
}

#[cfg(test)]
mod tests {
    use super::{mann_whitney, unpaired_ratio};
    use crate::stats::distributions::{ALL, assert_covers};
    use crate::stats::rank::NullDistribution;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-5
    }

    /// Permeability of the placenta at term and at 12 to 26 weeks: Hollander and Wolfe, example
    /// 4.1, which R's `wilcox.test` has too. `scipy.stats.mannwhitneyu` of scipy 1.17 gives U = 35
    /// and p = 0.25441225; -0.15 and 0.76 are the 9th of the fifty differences from either end.
    #[test]
    fn the_printed_example_of_the_test() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let weeks = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = mann_whitney(&term, &weeks, 0.95).unwrap();
        assert!(close(found.p_value, 0.254_412), "{found:?}");
        assert!(close(found.estimate, 0.305), "{found:?}");
        assert!(close(found.interval.low, -0.15) && close(found.interval.high, 0.76), "{found:?}");
        // `scipy.stats.ttest_ind` of the logarithms, scipy 1.17: p = 0.1019338.
        let ratio = unpaired_ratio(&term, &weeks, 0.99).unwrap();
        assert!(close(ratio.geometric_mean, 1.293_476) && close(ratio.t_p_value, 0.101_934));
        assert!(close(ratio.t_interval.low, 0.831_608), "{ratio:?}");
        assert!(close(ratio.t_interval.high, 2.011_860), "{ratio:?}");
        let swapped = mann_whitney(&weeks, &term, 0.95).unwrap();
        assert!(close(swapped.estimate, -0.305) && close(swapped.p_value, found.p_value));
    }

    /// Critical values of U for a two-sided 0.01, as in the tables of most books; the rank is one
    /// more.
    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        for (m, n, critical) in [(5, 5, 0), (5, 8, 2), (8, 8, 7), (10, 10, 16), (20, 20, 105)] {
            let ranks: Vec<usize> = (1..=m + n).map(|rank| 2 * rank).collect();
            let null = NullDistribution::of_rank_sums(&ranks, m);
            assert_eq!(null.rank(0.005).0, critical + 1, "{m} {n}");
        }
    }

    #[test]
    fn ties_have_the_distribution_of_their_own_ranks() {
        // The ranks 1.5, 1.5, 3.5, 3.5: both of the first list are lowest in one of six choices.
        let found = mann_whitney(&[1.0, 1.0], &[2.0, 2.0], 0.99).unwrap();
        assert!(close(found.p_value, 2.0 / 6.0), "{found:?}");
        assert_eq!(mann_whitney(&[4.0; 6], &[4.0; 6], 0.99).unwrap().p_value, 1.0);
        let many = mann_whitney(&[4.0; 60], &[4.0; 60], 0.99).unwrap();
        assert_eq!((many.p_value, many.estimate, many.interval.width()), (1.0, 0.0, 0.0));
    }

    #[test]
    fn few_samples_have_the_widest_interval_and_its_confidence() {
        let found = unpaired_ratio(&[2.0, 4.0], &[1.0, 2.0], 0.99).unwrap().ranks;
        assert!(close(found.interval.low, 1.0) && close(found.interval.high, 4.0), "{found:?}");
        assert!(close(found.interval.confidence, 1.0 - 2.0 / 6.0), "{found:?}");
        let five = mann_whitney(&[1.0; 5], &[1.0; 5], 0.99).unwrap();
        assert!(five.interval.reaches(0.99), "{five:?}");
        assert!(mann_whitney(&[], &[1.0], 0.99).is_err());
        assert!(unpaired_ratio(&[1.0, 2.0], &[-1.0, 1.0], 0.99).is_err());
        assert!(unpaired_ratio(&[1.0], &[1.0, 2.0], 0.99).is_err());
    }

    #[test]
    fn intervals_hold_shift_and_ratio_as_often_as_stated() {
        for distribution in ALL {
            for (m, n) in [(5, 6), (9, 7), (33, 30)] {
                assert_covers(&format!("{distribution:?} {m} {n}"), 3.0, |random| {
                    let first = distribution.samples(random, m);
                    let first: Vec<f64> = first.iter().map(|sample| sample + 3.0).collect();
                    mann_whitney(&first, &distribution.samples(random, n), 0.99).unwrap().interval
                });
            }
            assert_covers(&format!("{distribution:?}"), 0.5, |random| {
                let second = distribution.samples(random, 9);
                let first = distribution.samples(random, 9);
                let first: Vec<f64> = first.iter().map(|sample| 0.5 * sample.abs()).collect();
                let second: Vec<f64> = second.iter().map(|sample| sample.abs()).collect();
                unpaired_ratio(&first, &second, 0.99).unwrap().ranks.interval
            });
        }
    }
}
