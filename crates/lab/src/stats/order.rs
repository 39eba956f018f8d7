//! Quantiles, and their intervals from order statistics, which hold for any distribution.
//!
//! The number of samples below a quantile is binomial, whatever the samples are distributed like.
//! So two of the sorted samples bound the quantile, with a confidence that is known exactly
//! (Conover, "Practical nonparametric statistics", 3rd edition, section 3.2). The samples must be
//! independent: packets of one trial are not, the same quantile of several trials is.

use statrs::function::gamma::ln_gamma;

use super::interval::{Interval, StatsError, check, tail};

/// The quantile of sorted samples, with linear interpolation between neighbours (R's type 7).
///
/// # Panics
/// When `sorted` is empty or `q` outside 0 to 1: the caller's mistake.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&q), "quantile {q} of {}", sorted.len());
    let place = q * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The interval of the quantile `q` from sorted samples, with equal tails. Of a distribution with
/// steps its confidence is at least what it says.
///
/// # Errors
/// There are less than [`samples_needed`], or one is not finite.
///
/// # Panics
/// When `q` or `confidence` is not between 0 and 1: the caller's mistake.
pub fn quantile_interval(sorted: &[f64], q: f64, confidence: f64) -> Result<Interval, StatsError> {
    let needed = samples_needed(q, confidence);
    check(sorted, needed)?;
    let (n, tail) = (sorted.len(), tail(confidence));
    let too_few = StatsError::TooFew { n, needed: needed.max(n + 1) };
    let (below, low_tail) = rank(n, q, tail).ok_or(too_few)?;
    let (above, high_tail) = rank(n, 1.0 - q, tail).ok_or(too_few)?;
    Ok(Interval {
        low: sorted[below - 1],
        high: sorted[n - above],
        confidence: 1.0 - low_tail - high_tail,
    })
}

/// Samples needed for the interval of the quantile `q`: enough that all of them lie on one side of
/// it in no more than half of the cases that `confidence` leaves. For 99 %: 8 for the median, 528
/// for the quantile 0.99.
///
/// # Panics
/// When `q` or `confidence` is not between 0 and 1: the caller's mistake.
#[must_use]
pub fn samples_needed(q: f64, confidence: f64) -> usize {
    assert!(q > 0.0 && q < 1.0, "quantile {q}");
    (tail(confidence).ln() / q.max(1.0 - q).ln()).ceil() as usize
}

/// The highest rank r from 1 with P(B < r) at most `tail` for a binomial B of `n` trials of
/// probability `q`, and that probability.
fn rank(n: usize, q: f64, tail: f64) -> Option<(usize, f64)> {
    let trials = n as f64;
    // What lies ten deviations below the mean adds less than the arithmetic loses.
    let start = (trials * q - 10.0 * (trials * q * (1.0 - q)).sqrt() - 20.0).max(0.0).floor();
    let chosen = ln_gamma(trials + 1.0) - ln_gamma(start + 1.0) - ln_gamma(trials - start + 1.0);
    let mut probability = (chosen + start * q.ln() + (trials - start) * (1.0 - q).ln()).exp();
    let (mut below, mut rank) = (0.0, start);
    while rank < trials && below + probability <= tail {
        below += probability;
        probability *= (trials - rank) / (rank + 1.0) * q / (1.0 - q);
        rank += 1.0;
    }
    (rank >= 1.0 && below > 0.0).then_some((rank as usize, below))
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::{quantile, quantile_interval, rank, samples_needed};
    use crate::stats::distributions::{ALL, assert_covers};
    use crate::stats::{StatsError, sorted};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    #[test]
    fn quantiles_interpolate() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert!(close(quantile(&sorted, 0.5), 2.5));
        assert!(close(quantile(&sorted, 0.0), 1.0) && close(quantile(&sorted, 1.0), 4.0));
        assert!(close(quantile(&sorted, 0.25), 1.75));
    }

    /// Ranks of the median for a two-sided 0.01 and 0.05, as in the tables of the sign test, with
    /// what is left by `2 * scipy.stats.binom.cdf(k - 1, n, 0.5)` of scipy 1.17.
    #[test]
    fn ranks_of_the_median_are_those_of_the_printed_table() {
        for (n, at_most, k, left) in [
            (8, 0.01, 1, 0.008),
            (10, 0.05, 2, 0.021),
            (15, 0.01, 3, 0.007),
            (20, 0.05, 6, 0.041),
            (25, 0.01, 6, 0.004),
            (30, 0.01, 8, 0.005),
        ] {
            let (found, tail) = rank(n, 0.5, at_most / 2.0).unwrap();
            assert_eq!(found, k, "of {n}");
            assert!((2.0 * tail - left).abs() < 5.1e-4, "of {n}: {tail}");
        }
    }

    #[test]
    fn ranks_hold_for_many_samples_and_rare_events() {
        for (n, q) in [(600, 0.99), (600, 0.01), (5_000, 0.001), (100_000, 0.5), (40, 0.3)] {
            let binomial = Binomial::new(q, n as u64).unwrap();
            let (found, tail) = rank(n, q, 0.005).unwrap_or((0, 0.0));
            if found > 0 {
                let known = binomial.cdf(found as u64 - 1);
                assert!((known - tail).abs() < 1e-6, "{n} {q}: {known} {tail}");
            }
            assert!(binomial.cdf(found as u64) > 0.005, "{n} {q}: {found} is not the highest");
        }
    }

    #[test]
    fn too_few_samples_say_how_many_it_needs() {
        assert_eq!([0.5, 0.9, 0.99, 0.01].map(|q| samples_needed(q, 0.99)), [8, 51, 528, 528]);
        assert_eq!(samples_needed(0.5, 0.95), 6);
        let seven = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let found = quantile_interval(&seven, 0.5, 0.99);
        assert_eq!(found, Err(StatsError::TooFew { n: 7, needed: 8 }));
        let infinite = [1.0, f64::INFINITY];
        let error = quantile_interval(&infinite, 0.5, 0.99).unwrap_err();
        assert!(error.to_string().contains("sample 1 (from 0) is inf"), "{error}");
    }

    #[test]
    fn as_many_samples_as_it_needs_are_enough() {
        for q in [0.5, 0.75, 0.9, 0.99, 0.999] {
            for confidence in [0.9, 0.95, 0.99, 0.999] {
                let n = samples_needed(q, confidence);
                let samples: Vec<f64> = (0..n).map(|sample| sample as f64).collect();
                let found = quantile_interval(&samples, q, confidence).unwrap();
                assert!(found.reaches(confidence), "{q} {confidence}: {found:?}");
                let fewer = quantile_interval(&samples[1..], q, confidence);
                assert_eq!(fewer, Err(StatsError::TooFew { n: n - 1, needed: n }));
            }
        }
    }

    #[test]
    fn intervals_hold_the_quantile_as_often_as_stated() {
        for distribution in ALL {
            for (n, q) in [(8, 0.5), (11, 0.5), (60, 0.5), (60, 0.9)] {
                let truth = distribution.quantile(q);
                assert_covers(&format!("{distribution:?} {n} {q}"), truth, |random| {
                    let samples = sorted(&distribution.samples(random, n));
                    quantile_interval(&samples, q, 0.99).unwrap()
                });
            }
        }
    }
}
