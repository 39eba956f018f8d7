//! Means and quantiles, and how many samples these take.

use crate::CONFIDENCE;

/// The mean of samples, and the sum of the squares of their distances from it; not numbers of none.
pub fn mean_and_squares(samples: &[f64]) -> (f64, f64) {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    (mean, samples.iter().map(|sample| (sample - mean).powi(2)).sum())
}

/// The quantile of sorted samples, with linear interpolation between neighbours (R's type 7).
///
/// # Panics
/// When `sorted` is empty or `q` outside 0 to 1: the caller's mistake.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&q), "quantile {q} of {}", sorted.len());
    let place = q * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The middle sample, or the mean of the two middle ones; none of no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
}

/// Samples below which the quantile `q` is little more than an extreme one: enough that all of them
/// lie on one side of it in no more than half of the cases that [`CONFIDENCE`] leaves (Conover,
/// "Practical nonparametric statistics", 3rd edition, section 3.2). 6 for the median, 368 for the
/// quantile 0.99.
///
/// # Panics
/// When `q` is not between 0 and 1: the caller's mistake.
pub fn samples_needed(q: f64) -> u64 {
    assert!(q > 0.0 && q < 1.0, "quantile {q}");
    (((1.0 - CONFIDENCE) / 2.0).ln() / q.max(1.0 - q).ln()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::{mean_and_squares, median, quantile, samples_needed};

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let samples = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.9, 1.0].map(|q| quantile(&samples, q)),
            [1.0, 2.0, 4.0, 12.8, 16.0]
        );
        assert_eq!((median(&[3.0, 1.0, 2.0, 9.0]), median(&[])), (Some(2.5), None));
    }

    #[test]
    fn the_deviation_is_that_of_ping() {
        // From a recorded run: rtt min/avg/max/mdev = 0.061/0.220/0.853/0.316 ms.
        let (mean, squares) = mean_and_squares(&[0.853, 0.064, 0.063, 0.061, 0.061]);
        assert!((mean - 0.220).abs() < 1e-3 && ((squares / 5.0).sqrt() - 0.316).abs() < 1e-3);
    }

    /// 1 - 0.99^368 = 0.9752, 1 - 0.99^367 = 0.97499.
    #[test]
    fn a_quantile_takes_samples_on_both_of_its_sides() {
        assert_eq!([0.5, 0.9, 0.99, 0.999].map(samples_needed), [6, 36, 368, 3_688]);
    }
}
