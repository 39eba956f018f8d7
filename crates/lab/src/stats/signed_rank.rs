//! Pairs: how much two things that were measured in turns differ, by Wilcoxon's signed ranks.
//!
//! The estimate is that of Hodges and Lehmann ("Estimates of location based on rank tests", 1963),
//! the interval is that of Tukey: all shifts that the test does not refuse. Both hold where
//! differences are as likely to lie above their middle as below it by as much. Those of two
//! measurements that differ by a shift are, whatever their distribution; logarithms of ratios of
//! two measurements that differ by a factor are, too.

use serde::{Deserialize, Serialize};

use super::interval::{CONFIDENCE, Interval, StatsError, check, logs, sorted, tail};
use super::mean::student_test;
use super::order::quantile;
use super::rank::{NullDistribution, PairSums, doubled_ranks};

/// An estimate by ranks, with its interval and the test's p-value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankEstimate {
    /// The Hodges-Lehmann estimate.
    pub estimate: f64,
    /// Its interval. Of too few samples it is the widest that there is, and its `confidence` less
    /// than what was asked for: ask [`Interval::reaches`].
    pub interval: Interval,
    /// The p-value of the two-sided test that there is no difference.
    pub p_value: f64,
}

/// Pairs needed for an interval of that confidence: 8 for 99 %.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
#[must_use]
pub fn pairs_needed(confidence: f64) -> usize {
    (-tail(confidence).log2()).ceil() as usize
}

/// The middle of `differences` of pairs and the test that it is 0. Differences of 0 count for the
/// estimate and not for the test, as Wilcoxon has it.
///
/// # Errors
/// There are less than two, or one is not finite.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn wilcoxon_signed_rank(
    differences: &[f64],
    confidence: f64,
) -> Result<RankEstimate, StatsError> {
    check(differences, 2)?;
    let ordered = sorted(differences);
    let untied: Vec<usize> = (1..=ordered.len()).map(|rank| 2 * rank).collect();
    let (rank, below) = NullDistribution::of_signed_ranks(&untied).rank(tail(confidence));
    // Walsh averages are halves of the sums.
    let sums = PairSums::Triangle;
    let nth = |rank| sums.nth(&ordered, &ordered, rank) / 2.0;
    let last = sums.count(&ordered, &ordered) + 1 - rank;
    let interval = Interval { low: nth(rank), high: nth(last), confidence: 1.0 - 2.0 * below };
    let estimate = sums.median(&ordered, &ordered) / 2.0;
    Ok(RankEstimate { estimate, interval, p_value: signed_rank_p(&ordered) })
}

/// The p-value of Wilcoxon's test that finite differences lie around 0.
fn signed_rank_p(differences: &[f64]) -> f64 {
    let mut moved: Vec<f64> = differences.iter().copied().filter(|one| *one != 0.0).collect();
    if moved.is_empty() {
        return 1.0;
    }
    moved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let amounts: Vec<f64> = moved.iter().map(|one| one.abs()).collect();
    let ranks = doubled_ranks(&amounts);
    let positive = moved.iter().zip(&ranks).filter(|(one, _)| **one > 0.0);
    let statistic = positive.map(|(_, rank)| *rank).sum::<usize>() as f64 / 2.0;
    NullDistribution::of_signed_ranks(&ranks).p_value(statistic)
}

/// Ratio of one thing to another, from measurements in turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Number of pairs.
    pub n: usize,
    /// The median of the pairs' ratios.
    pub median: f64,
    /// The Hodges-Lehmann estimate of the ratio, Wilcoxon's interval and p-value.
    pub ranks: RankEstimate,
    /// The geometric mean of the pairs' ratios.
    pub geometric_mean: f64,
    /// Its 99 % interval, by Student's t from the logarithms. It takes two pairs, and takes for
    /// granted that their logarithms are normal.
    pub t_interval: Interval,
    /// The p-value of Student's test that the ratio is 1.
    pub t_p_value: f64,
}

/// The ratio of `ours` to `theirs`, of which those at the same place are a pair.
///
/// # Errors
/// There are less than two pairs, the lists are not of one length, or a sample is not above 0.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn paired_ratio(
    ours: &[f64],
    theirs: &[f64],
    confidence: f64,
) -> Result<PairedRatio, StatsError> {
    let logs = log_ratios(ours, theirs)?;
    let ranks = wilcoxon_signed_rank(&logs, confidence)?;
    let by_t = student_test(&logs, CONFIDENCE);
    Ok(PairedRatio {
        n: logs.len(),
        median: quantile(&sorted(&logs), 0.5).exp(),
        ranks: ranks.exp(),
        geometric_mean: by_t.difference.exp(),
        t_interval: by_t.interval.map(f64::exp),
        t_p_value: by_t.p_value,
    })
}

/// The logarithms of the ratios of pairs.
pub(super) fn log_ratios(ours: &[f64], theirs: &[f64]) -> Result<Vec<f64>, StatsError> {
    if ours.len() != theirs.len() {
        return Err(StatsError::NotPaired { first: ours.len(), second: theirs.len() });
    }
    let (ours, theirs) = (logs(ours)?, logs(theirs)?);
    Ok(ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect())
}

impl RankEstimate {
    /// Of a difference of logarithms, that of the ratio.
    pub(super) fn exp(self) -> Self {
        let Self { estimate, interval, p_value } = self;
        Self { estimate: estimate.exp(), interval: interval.map(f64::exp), p_value }
    }
}

#[cfg(test)]
mod tests {
    use super::{paired_ratio, pairs_needed, wilcoxon_signed_rank};
    use crate::stats::StatsError;
    use crate::stats::distributions::{ALL, assert_covers};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-5
    }

    /// Depression scale factors of nine patients: Hollander and Wolfe, example 3.1, which R's
    /// `wilcox.test` has too. `scipy.stats.wilcoxon` of scipy 1.17 gives T = 5 and p = 0.0390625;
    /// -0.46 is the median of the 45 Walsh averages, the ends are the 6th from either end.
    #[test]
    #[expect(clippy::approx_constant, reason = "one patient's factor is 3.14")]
    fn the_printed_example_of_the_test() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> = after.iter().zip(before).map(|(y, x)| y - x).collect();
        let found = wilcoxon_signed_rank(&differences, 0.95).unwrap();
        assert!(close(found.p_value, 0.0390625), "{found:?}");
        assert!(close(found.estimate, -0.46) && close(found.interval.low, -0.786), "{found:?}");
        assert!(close(found.interval.high, -0.010), "{found:?}");
        // Ten of the 512 choices of signs have a sum of at most 5.
        assert!(close(found.interval.confidence, 1.0 - 2.0 * 10.0 / 512.0), "{found:?}");
    }

    /// The critical values of T for a two-sided 0.01, as in the tables of most books, for 8 to 15
    /// pairs; the rank is one more.
    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        for (n, critical) in (8..=15).zip([0, 1, 3, 5, 7, 9, 12, 15]) {
            let ranks: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
            let null = super::NullDistribution::of_signed_ranks(&ranks);
            assert_eq!(null.rank(0.005).0, critical + 1, "{n}");
        }
    }

    #[test]
    fn ties_have_the_distribution_of_their_own_ranks() {
        // Of five equal differences all have the same sign in 2 of 32 cases.
        let found = wilcoxon_signed_rank(&[2.0; 5], 0.95).unwrap();
        assert!(close(found.p_value, 0.0625), "{found:?}");
        assert_eq!((found.estimate, found.interval.width()), (2.0, 0.0));
        // 1, -1, 2: the ranks 1.5, 1.5, 3; a sum of at least 4.5 in 3 of 8 cases.
        assert!(close(wilcoxon_signed_rank(&[1.0, -1.0, 2.0], 0.5).unwrap().p_value, 0.75));
        assert_eq!(wilcoxon_signed_rank(&[0.0; 9], 0.99).unwrap().p_value, 1.0);
    }

    #[test]
    fn few_pairs_have_the_widest_interval_and_say_what_it_is_worth() {
        assert_eq!([0.9, 0.95, 0.99].map(pairs_needed), [5, 6, 8]);
        let found = paired_ratio(&[20.0, 21.0, 19.0], &[10.0; 3], 0.99).unwrap();
        assert!(close(found.median, 2.0) && found.n == 3, "{found:?}");
        // Of the six Walsh averages, the middle ones are those of 1.9 with 2.1, and 2.
        assert!(close(found.ranks.estimate, 3.99_f64.powf(0.25) * 2_f64.sqrt()), "{found:?}");
        let interval = found.ranks.interval;
        assert!(close(interval.low, 1.9) && close(interval.high, 2.1), "{interval:?}");
        assert!(close(interval.confidence, 0.75) && !interval.reaches(0.99), "{interval:?}");
        assert!(found.t_interval.low < 1.6 && found.t_interval.high > 2.5, "{found:?}");
        let eight = paired_ratio(&[2.0; 8], &[1.0; 8], 0.99).unwrap();
        assert!(eight.ranks.interval.reaches(0.99) && eight.n == 8, "{eight:?}");
    }

    /// The ratios of the printed example. `scipy.stats.ttest_rel` of the logarithms, scipy 1.17:
    /// p = 0.0405726, 99 % from 0.469766 to 1.126770.
    #[test]
    #[expect(clippy::approx_constant, reason = "one patient's factor is 3.14")]
    fn the_geometric_mean_has_student_s_interval() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let found = paired_ratio(&after, &before, 0.99).unwrap();
        assert!(close(found.t_interval.low, 0.469_766), "{found:?}");
        assert!(close(found.t_interval.high, 1.126_770), "{found:?}");
        assert!(close(found.t_p_value, 0.040_573), "{found:?}");
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let ratio = |ours: &[f64], theirs: &[f64]| paired_ratio(ours, theirs, 0.99).unwrap_err();
        assert_eq!(ratio(&[1.0], &[1.0]), StatsError::TooFew { n: 1, needed: 2 });
        assert_eq!(ratio(&[1.0; 3], &[1.0; 2]), StatsError::NotPaired { first: 3, second: 2 });
        let error = ratio(&[1.0, 1.0], &[1.0, 0.0]);
        assert_eq!(error, StatsError::NotPositive { index: 1, value: 0.0 });
        assert_eq!(error.to_string(), "sample 1 (from 0) is 0: a ratio needs samples above 0");
    }

    #[test]
    fn intervals_hold_the_ratio_as_often_as_stated() {
        for distribution in ALL {
            for n in [8, 15, 70] {
                assert_covers(&format!("{distribution:?} {n}"), 2.5, |random| {
                    let theirs: Vec<f64> =
                        distribution.samples(random, n).iter().map(|one| one.abs()).collect();
                    let ours = distribution.samples(random, n);
                    let ours: Vec<f64> = ours.iter().map(|one| 2.5 * one.abs()).collect();
                    paired_ratio(&ours, &theirs, 0.99).unwrap().ranks.interval
                });
            }
        }
    }
}
