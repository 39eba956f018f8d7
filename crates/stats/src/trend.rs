//! The trend of a series: by how much it rises in a unit of time, such as memory over a soak.
//!
//! Theil's slope with Sen's interval ("Estimates of the regression coefficient based on Kendall's
//! tau", 1968): the median of the slopes between all pairs of points, which outliers hardly move.
//! It takes for granted that what is left without the trend is independent from point to point.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::CONFIDENCE;
use crate::error::{StatsError, check};
use crate::order::{quantile, sorted};

/// Up to this number of points the distribution of Kendall's statistic is exact.
const EXACT_MAX: usize = 60;

/// The slope of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Its median.
    pub slope: f64,
    /// From where to where it lies, with [`CONFIDENCE`] or a little more, since ranks are whole
    /// numbers; none of fewer than five points.
    pub interval: Option<(f64, f64)>,
}

/// The trend of points (time, value) whose times ascend.
///
/// # Errors
/// There are less than three points, or one is not finite.
///
/// # Panics
/// When times do not ascend: the caller's mistake.
pub fn theil_sen(points: &[(f64, f64)]) -> Result<Trend, StatsError> {
    let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    check(&times, 3)?;
    check(&values, 3)?;
    assert!(times.is_sorted_by(|a, b| a < b), "times do not ascend: {times:?}");
    let each = points.iter().enumerate();
    let pairs = each.flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (a, b)));
    let slopes = sorted(&pairs.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect::<Vec<f64>>());
    let interval = rank(points.len()).map(|rank| (slopes[rank - 1], slopes[slopes.len() - rank]));
    Ok(Trend { slope: quantile(&slopes, 0.5), interval })
}

/// The rank of the slope at which the interval begins, from 1: the highest r of which fewer than r
/// pairs are in falling order with no more than half of what [`CONFIDENCE`] leaves, if none rises
/// or falls.
fn rank(points: usize) -> Option<usize> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    if points > EXACT_MAX {
        let n = points as f64;
        let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 72.0).sqrt();
        let below = n * (n - 1.0) / 4.0 + Normal::standard().inverse_cdf(tail) * deviation;
        return Some((below + 0.5).floor() as usize);
    }
    let mut sum = 0.0;
    let below = inversions(points).into_iter().take_while(|probability| {
        sum += probability;
        sum <= tail
    });
    Some(below.count()).filter(|rank| *rank > 0)
}

/// The probability of each number of pairs in falling order among all orders of `n` values.
fn inversions(n: usize) -> Vec<f64> {
    let mut probability = vec![1.0];
    // The k-th value stands before 0 to k - 1 of those that are lower, each as likely.
    for k in 2..=n {
        let mut next = vec![0.0; probability.len() + k - 1];
        for (count, part) in probability.iter().enumerate() {
            next[count..count + k].iter_mut().for_each(|sum| *sum += part / k as f64);
        }
        probability = next;
    }
    probability
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::{rank, theil_sen};
    use crate::error::StatsError;

    /// Sen's own example. `scipy.stats.theilslopes` of scipy 1.17 has slope 4 and these ends.
    #[test]
    fn the_printed_example() {
        let points = [1.0, 2.0, 3.0, 4.0, 10.0, 12.0, 18.0];
        let values = [9.0, 15.0, 19.0, 20.0, 45.0, 55.0, 78.0];
        let points: Vec<(f64, f64)> = points.into_iter().zip(values).collect();
        let found = theil_sen(&points).unwrap();
        let (low, high) = found.interval.unwrap();
        assert!((found.slope - 4.0).abs() < 1e-9 && (low - 26.0 / 7.0).abs() < 1e-9, "{found:?}");
        assert!((high - 35.0 / 8.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_level_has_no_trend_and_outliers_do_not_make_one() {
        let level: Vec<(f64, f64)> = (0..30).map(|at| (f64::from(at), 3.0)).collect();
        let found = theil_sen(&level).unwrap();
        assert_eq!((found.slope, found.interval), (0.0, Some((0.0, 0.0))));
        let mut slope: Vec<(f64, f64)> =
            (0..40).map(|at| (f64::from(at), 5.0 + 0.25 * f64::from(at))).collect();
        (slope[7].1, slope[30].1) = (1_000.0, -50.0);
        assert!((theil_sen(&slope).unwrap().slope - 0.25).abs() < 1e-9);
        assert_eq!(theil_sen(&slope[..2]), Err(StatsError::TooFew { n: 2, needed: 3 }));
        assert_eq!(theil_sen(&slope[..4]).unwrap().interval, None);
        assert!(theil_sen(&slope[..5]).unwrap().interval.is_some());
    }

    #[test]
    fn intervals_hold_the_slope_as_often_as_they_say() {
        for n in [6, 20, 65] {
            let mut random = Random::new(3);
            let held = (0..400).filter(|_| {
                let noise: Vec<f64> = (0..n).map(|_| random.normal().exp()).collect();
                let points = (0..n).map(f64::from).zip(noise);
                let points: Vec<(f64, f64)> =
                    points.map(|(at, noise)| (at, 2.5 * at + noise)).collect();
                let (low, high) = theil_sen(&points).unwrap().interval.unwrap();
                (low..=high).contains(&2.5)
            });
            let held = held.count();
            assert!((368..=396).contains(&held), "{n}: {held} of 400");
        }
        // Near the exact distribution's.
        assert!(rank(60).unwrap().abs_diff(rank(61).unwrap()) < 40);
    }
}
