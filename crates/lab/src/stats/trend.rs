//! The trend of a series: by how much it rises in a unit of time, such as memory over a soak.
//!
//! Theil's slope with Sen's interval ("Estimates of the regression coefficient based on Kendall's
//! tau", 1968) and the test of Mann and Kendall: the median of the slopes between all pairs of
//! points, which outliers hardly move. They take for granted that what is left without the trend is
//! independent from point to point.

use super::interval::{Interval, StatsError, check, normal_cdf, sorted, tail};
use super::order::quantile;
use super::rank::{EXACT_MAX, NullDistribution};
use super::signed_rank::RankEstimate;

/// The slope of points (time, value) whose times ascend, with its interval and the test that there
/// is no trend. Of too few points (99 % takes six) the interval is the widest that there is, and
/// its confidence says so.
///
/// # Errors
/// There are less than three points, or one is not finite.
///
/// # Panics
/// When times do not ascend or `confidence` is not between 0 and 1: the caller's mistake.
pub fn theil_sen(points: &[(f64, f64)], confidence: f64) -> Result<RankEstimate, StatsError> {
    let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    check(&times, 3)?;
    check(&values, 3)?;
    assert!(times.is_sorted_by(|a, b| a < b), "times do not ascend: {times:?}");
    let pairs = || {
        let each = points.iter().enumerate();
        each.flat_map(|(at, first)| points[at + 1..].iter().map(move |second| (first, second)))
    };
    let slopes: Vec<f64> = pairs().map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    let slopes = sorted(&slopes);
    let null = NullDistribution::of_inversions(points.len());
    let (rank, below) = null.rank(tail(confidence));
    let interval = Interval {
        low: slopes[rank - 1],
        high: slopes[slopes.len() - rank],
        confidence: 1.0 - 2.0 * below,
    };
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    let falling = slopes.iter().filter(|slope| **slope < 0.0).count();
    let is_tied = rising + falling < slopes.len();
    let p_value = if is_tied || points.len() > EXACT_MAX {
        mann_kendall_p(&sorted(&values), rising.abs_diff(falling))
    } else {
        null.p_value(rising as f64)
    };
    Ok(RankEstimate { estimate: quantile(&slopes, 0.5), interval, p_value })
}

/// The p-value of the normal approximation with the variance of the ties.
fn mann_kendall_p(ordered: &[f64], excess: usize) -> f64 {
    let part = |n: usize| {
        let n = n as f64;
        n * (n - 1.0) * (2.0 * n + 5.0)
    };
    let ties: f64 = ordered.chunk_by(|a, b| a == b).map(|tied| part(tied.len())).sum();
    let variance = (part(ordered.len()) - ties) / 18.0;
    if excess == 0 || variance <= 0.0 {
        return 1.0;
    }
    2.0 * normal_cdf(-(excess as f64 - 1.0) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::theil_sen;
    use crate::stats::StatsError;
    use crate::stats::distributions::{ALL, Known, assert_covers};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-5
    }

    /// Sen's own example. `scipy.stats.theilslopes` of scipy 1.17 has slope 4 and these ends; of
    /// all orders of seven values 1.50794 % have at most three inversions (by counting them).
    #[test]
    fn the_printed_example() {
        let points = [1.0, 2.0, 3.0, 4.0, 10.0, 12.0, 18.0];
        let values = [9.0, 15.0, 19.0, 20.0, 45.0, 55.0, 78.0];
        let points: Vec<(f64, f64)> = points.into_iter().zip(values).collect();
        let found = theil_sen(&points, 0.95).unwrap();
        assert!(close(found.estimate, 4.0) && close(found.interval.low, 26.0 / 7.0), "{found:?}");
        assert!(close(found.interval.high, 35.0 / 8.0), "{found:?}");
        assert!(close(found.interval.confidence, 1.0 - 2.0 * 0.015_079_4), "{found:?}");
        // scipy.stats.kendalltau: one of 7! orders has no inversion.
        assert!(close(found.p_value, 2.0 / 5_040.0), "{found:?}");
        // Two inversions: p = 0.0107142857 (kendalltau with method="exact").
        let values = [9.0, 15.0, 14.0, 20.0, 45.0, 40.0, 78.0];
        let other: Vec<(f64, f64)> = points.iter().map(|one| one.0).zip(values).collect();
        let found = theil_sen(&other, 0.95).unwrap();
        assert!(close(found.p_value, 0.010_714_3) && close(found.estimate, 3.9375), "{found:?}");
    }

    #[test]
    fn a_level_has_no_trend_and_outliers_do_not_make_one() {
        let level: Vec<(f64, f64)> = (0..30).map(|at| (f64::from(at), 3.0)).collect();
        let found = theil_sen(&level, 0.99).unwrap();
        assert_eq!((found.estimate, found.p_value, found.interval.width()), (0.0, 1.0, 0.0));
        let mut slope: Vec<(f64, f64)> =
            (0..40).map(|at| (f64::from(at), 5.0 + 0.25 * f64::from(at))).collect();
        (slope[7].1, slope[30].1) = (1_000.0, -50.0);
        let found = theil_sen(&slope, 0.99).unwrap();
        assert!(close(found.estimate, 0.25) && found.p_value < 1e-6, "{found:?}");
        assert_eq!(theil_sen(&slope[..2], 0.99), Err(StatsError::TooFew { n: 2, needed: 3 }));
        assert!(!theil_sen(&slope[..5], 0.99).unwrap().interval.reaches(0.99));
        assert!(theil_sen(&slope[..6], 0.99).unwrap().interval.reaches(0.99));
    }

    /// p = 0.5489008 by `scipy.stats.kendalltau` of scipy 1.17 with method="exact".
    #[test]
    fn approximate_and_exact_p_values_are_close() {
        let points: Vec<(f64, f64)> = (0..50)
            .map(|at| (f64::from(at), f64::from((at * 37) % 50) + 0.4 * f64::from(at)))
            .collect();
        let exact = theil_sen(&points, 0.99).unwrap().p_value;
        let values: Vec<f64> = points.iter().map(|point| point.1).collect();
        let steps = points.iter().enumerate().flat_map(|(at, first)| {
            points[at + 1..].iter().map(move |second| (second.1 - first.1).signum() as i64)
        });
        let excess = steps.sum::<i64>().unsigned_abs() as usize;
        let near = super::mann_kendall_p(&crate::stats::sorted(&values), excess);
        assert!(close(exact, 0.548_901) && (exact - near).abs() < 0.005, "{exact} {near}");
    }

    #[test]
    fn intervals_hold_the_slope_as_often_as_they_say() {
        let cover = |distribution: Known, n: u32| {
            assert_covers(&format!("{distribution:?} {n}"), 2.5, |random| {
                let noise = distribution.samples(random, n as usize);
                let points = (1..=n).map(f64::from).zip(noise);
                let points: Vec<(f64, f64)> =
                    points.map(|(at, noise)| (at.powf(1.5), 2.5 * at.powf(1.5) + noise)).collect();
                theil_sen(&points, 0.99).unwrap().interval
            });
        };
        for distribution in ALL {
            cover(distribution, 6);
            cover(distribution, 20);
        }
        cover(Known::Lognormal, 65);
    }
}
