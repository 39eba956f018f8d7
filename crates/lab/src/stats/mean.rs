//! The mean with its interval by Student's t, and the ratio of two means with its error.
//!
//! Both take for granted that the mean of the samples is normal. It is for many samples; of few
//! skewed ones a t-interval holds the truth less often than it says (a test below shows by how
//! much). Intervals by ranks do not have that fault.

use generator::method::Estimate;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::interval::{Interval, StatsError, check, tail};

/// The interval of the mean, by Student's t with n - 1 degrees of freedom.
///
/// # Errors
/// There are less than two samples, or one is not finite.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn mean_interval(samples: &[f64], confidence: f64) -> Result<Interval, StatsError> {
    check(samples, 2)?;
    let too_few = StatsError::TooFew { n: samples.len(), needed: 2 };
    let Estimate { low, high, .. } = Estimate::of_mean_at(samples, confidence).ok_or(too_few)?;
    Ok(Interval { low, high, confidence })
}

/// The ratio of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanRatio {
    /// The mean of the first over that of the second.
    pub ratio: f64,
    /// Its interval. It is not symmetric: a divisor that errs to 0 moves a ratio farther.
    pub interval: Interval,
}

/// The mean of `first` over that of `second`, two independent sets of samples, with Fieller's
/// interval ("Some problems in interval estimation", 1954) and the degrees of freedom of Welch and
/// Satterthwaite, since the two may vary differently.
///
/// # Errors
/// A set has less than two samples, one is not finite, or the interval of the divisor holds 0.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn ratio_of_means(
    first: &[f64],
    second: &[f64],
    confidence: f64,
) -> Result<MeanRatio, StatsError> {
    check(first, 2)?;
    check(second, 2)?;
    let (above, above_error) = mean_and_error(first);
    let (below, below_error) = mean_and_error(second);
    if below == 0.0 {
        return Err(StatsError::DivisorNearZero);
    }
    let ratio = above / below;
    let (of_above, of_below) = (above_error.powi(2), below_error.powi(2));
    let parts = [(of_above, first.len()), (ratio.powi(2) * of_below, second.len())];
    let (error, freedom) = satterthwaite(parts);
    if error == 0.0 {
        return Ok(MeanRatio { ratio, interval: Interval { low: ratio, high: ratio, confidence } });
    }
    let t = student(freedom, tail(confidence));
    let divisor = below.powi(2) - t.powi(2) * of_below;
    if divisor <= 0.0 {
        return Err(StatsError::DivisorNearZero);
    }
    let reach = t * (of_above * divisor + above.powi(2) * of_below).sqrt() / divisor;
    let middle = above * below / divisor;
    Ok(MeanRatio {
        ratio,
        interval: Interval { low: middle - reach, high: middle + reach, confidence },
    })
}

/// The difference of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanDifference {
    /// The mean of the first less that of the second.
    pub difference: f64,
    /// Its interval.
    pub interval: Interval,
    /// The p-value of the two-sided test that the means are one.
    pub p_value: f64,
}

/// The mean of `first` less that of `second`, two independent sets of samples, by Welch's t, which
/// allows for different variances.
///
/// # Errors
/// A set has less than two samples, or one is not finite.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub fn welch(first: &[f64], second: &[f64], confidence: f64) -> Result<MeanDifference, StatsError> {
    check(first, 2)?;
    check(second, 2)?;
    let (a, a_error) = mean_and_error(first);
    let (b, b_error) = mean_and_error(second);
    let parts = [(a_error.powi(2), first.len()), (b_error.powi(2), second.len())];
    Ok(difference(a - b, satterthwaite(parts), tail(confidence)))
}

/// The mean of differences of pairs, and Student's test that it is 0.
pub(super) fn student_test(differences: &[f64], confidence: f64) -> MeanDifference {
    let (mean, error) = mean_and_error(differences);
    difference(mean, (error, (differences.len() - 1) as f64), tail(confidence))
}

fn difference(difference: f64, (error, freedom): (f64, f64), tail: f64) -> MeanDifference {
    let confidence = 1.0 - 2.0 * tail;
    if error == 0.0 {
        // Samples that do not vary leave nothing to chance.
        let interval = Interval { low: difference, high: difference, confidence };
        let p_value = f64::from(u8::from(difference == 0.0));
        return MeanDifference { difference, interval, p_value };
    }
    let reach = student(freedom, tail) * error;
    let interval = Interval { low: difference - reach, high: difference + reach, confidence };
    let t = (difference / error).abs();
    let above = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| student.sf(t));
    MeanDifference { difference, interval, p_value: (2.0 * above).min(1.0) }
}

/// The error of a sum of independent means, and its degrees of freedom by Welch and Satterthwaite,
/// from the squared error of each and the number of its samples.
fn satterthwaite(parts: [(f64, usize); 2]) -> (f64, f64) {
    let all: f64 = parts.iter().map(|(part, _)| part).sum();
    let squares: f64 = parts.iter().map(|(part, n)| (part / all).powi(2) / (n - 1) as f64).sum();
    (all.sqrt(), 1.0 / squares)
}

/// The mean and its standard error, of two samples or more.
pub(super) fn mean_and_error(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    (mean, (squares(samples, mean) / (n - 1.0) / n).sqrt())
}

/// The sum of the squares of what samples differ from their mean by.
pub(super) fn squares(samples: &[f64], mean: f64) -> f64 {
    samples.iter().map(|sample| (sample - mean).powi(2)).sum()
}

/// Student's t that `tail` of its distribution exceeds.
pub(super) fn student(freedom: f64, tail: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) if freedom < 1_000.0 => student.inverse_cdf(1.0 - tail),
        // The first terms of the expansion by 1 / freedom (Abramowitz and Stegun, 26.7.5), which
        // errs by less than 1e-5 here.
        Ok(_) | Err(_) => {
            let z = Normal::standard().inverse_cdf(1.0 - tail);
            z + (z.powi(3) + z) / (4.0 * freedom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{mean_and_error, mean_interval, ratio_of_means, student, welch};
    use crate::stats::distributions::{ALL, Known, TRIALS, assert_covers, covered};
    use crate::stats::{Interval, StatsError};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    /// The printed table of Student's t, 99 % two-sided; 2.5758 is the normal quantile.
    #[test]
    fn quantiles_are_those_of_the_printed_table() {
        for (freedom, t) in
            [(1.0, 63.6567), (4.0, 4.6041), (9.0, 3.2498), (29.0, 2.7564), (120.0, 2.6174)]
        {
            assert!(close(student(freedom, 0.005), t), "{freedom}");
        }
        assert!(close(student(999.0, 0.005), student(1_001.0, 0.005)));
        assert!(close(student(1e9, 0.005), 2.5758));
    }

    #[test]
    fn the_interval_of_the_mean_is_that_of_the_table() {
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert!(close(interval.high, 3.0 + 2.7764 * 0.5_f64.sqrt()), "{interval:?}");
        assert!(close(interval.low + interval.high, 6.0) && interval.reaches(0.95));
        assert_eq!(mean_interval(&[1.0], 0.99), Err(StatsError::TooFew { n: 1, needed: 2 }));
        assert!(mean_interval(&[1.0, f64::NAN], 0.99).is_err());
    }

    #[test]
    fn the_mean_lies_in_its_interval_as_often_as_stated() {
        for n in [2, 5, 30] {
            assert_covers(&format!("{n}"), 10.0, |random| {
                mean_interval(&Known::Normal.samples(random, n), 0.99).unwrap()
            });
        }
    }

    /// Few samples of a skewed distribution hold the mean less often than they say, many do not:
    /// why medians are reported too.
    #[test]
    fn the_mean_of_skewed_samples_needs_many() {
        let held = |distribution: Known, n| {
            let interval =
                |random: &mut _| mean_interval(&distribution.samples(random, n), 0.99).unwrap();
            covered(distribution.mean(), interval).0 as f64 / TRIALS as f64
        };
        assert!((0.85..0.96).contains(&held(Known::Lognormal, 10)));
        assert!((0.93..0.985).contains(&held(Known::Exponential, 10)));
        for distribution in ALL {
            let share = held(distribution, 1_000);
            assert!(share > 0.975, "{distribution:?}: {share}");
        }
    }

    /// An end of Fieller's interval is a ratio r at which the mean of first - r second is t
    /// standard errors away from 0.
    #[test]
    fn the_ends_of_a_ratio_solve_fieller_s_equation() {
        let (first, second) = ([10.0, 12.0, 11.0, 13.0], [4.0, 5.0, 6.0, 5.0, 5.5]);
        let found = ratio_of_means(&first, &second, 0.95).unwrap();
        let ((a, a_error), (b, b_error)) = (mean_and_error(&first), mean_and_error(&second));
        let distance =
            |r: f64| (a - r * b).abs() / (a_error.powi(2) + (r * b_error).powi(2)).sqrt();
        let Interval { low, high, .. } = found.interval;
        assert!(close(found.ratio, 11.5 / 5.1) && low < found.ratio && found.ratio < high);
        assert!((distance(low) - distance(high)).abs() < 1e-9);
        // Welch's degrees of freedom lie between the lesser n - 1 and the sum of both.
        assert!((student(7.0, 0.025)..student(3.0, 0.025)).contains(&distance(low)), "{found:?}");
        assert!(high - found.ratio > found.ratio - low, "{found:?}");
    }

    /// The samples of Mann and Whitney's example; `scipy.stats.ttest_ind` with `equal_var=False` of
    /// scipy 1.17: t = 2.041, p = 0.0621013, 12.97 degrees of freedom, -0.160467 to 0.834467.
    #[test]
    fn the_difference_is_welch_s() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let weeks = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = welch(&term, &weeks, 0.99).unwrap();
        assert!((found.p_value - 0.062_101_3).abs() < 1e-6, "{found:?}");
        assert!((found.interval.low + 0.160_467).abs() < 1e-5, "{found:?}");
        assert!((found.interval.high - 0.834_467).abs() < 1e-5, "{found:?}");
        let equal = welch(&[2.0, 2.0], &[2.0, 2.0], 0.99).unwrap();
        assert_eq!((equal.p_value, equal.interval.width()), (1.0, 0.0));
        assert_eq!(welch(&[3.0, 3.0], &[2.0, 2.0], 0.99).unwrap().p_value, 0.0);
        assert!(welch(&[3.0], &[2.0, 2.0], 0.99).is_err());
    }

    /// Welch's t is not exact; with 30 samples of each it says what it holds.
    #[test]
    fn the_difference_lies_in_its_interval_as_often_as_stated() {
        for distribution in ALL {
            assert_covers(&format!("{distribution:?}"), 0.0, |random| {
                let first = distribution.samples(random, 30);
                welch(&first, &distribution.samples(random, 30), 0.99).unwrap().interval
            });
        }
    }

    #[test]
    fn a_divisor_that_may_be_zero_has_no_ratio() {
        let error = ratio_of_means(&[1.0, 2.0], &[1.0, -0.9], 0.99).unwrap_err();
        assert_eq!(error, StatsError::DivisorNearZero);
        assert_eq!(ratio_of_means(&[1.0, 2.0], &[0.0; 3], 0.99), Err(error));
        let equal = ratio_of_means(&[6.0, 6.0], &[3.0, 3.0], 0.99).unwrap();
        assert_eq!((equal.ratio, equal.interval.width()), (2.0, 0.0));
    }

    #[test]
    fn the_ratio_lies_in_its_interval_as_often_as_stated() {
        // A set of ratios without bounds holds every ratio.
        let all = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, confidence: 0.99 };
        for (m, n) in [(5, 5), (6, 12), (30, 30)] {
            assert_covers(&format!("{m} {n}"), 1.0, |random| {
                let first = Known::Normal.samples(random, m);
                let second = Known::Normal.samples(random, n);
                ratio_of_means(&first, &second, 0.99).map_or(all, |found| found.interval)
            });
        }
    }
}
