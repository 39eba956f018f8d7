//! Statistics of repeated measurements: mean, 99 % interval, median, mdev, outliers.
//!
//! Pure functions over samples; no sample is ever dropped here, an outlier is only named. Samples
//! that are not finite are the caller's mistake and make no summary.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence of every interval that the lab reports.
pub const CONFIDENCE: f64 = 0.99;

/// What is said about a set of samples; the unit is that of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many samples.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 99 % interval of the mean (Student's t, n - 1 degrees of freedom);
    /// `None` for a single sample, which says nothing about spread.
    pub ci99: Option<f64>,
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// Standard deviation of the population, which is what `ping` prints as mdev.
    pub mdev: f64,
    /// Indices of the samples outside Tukey's fences (1.5 interquartile ranges); needs five.
    pub outliers: Vec<usize>,
}

/// Summarises `samples`; `None` when there are none or one is not finite.
#[must_use]
pub fn summarise(samples: &[f64]) -> Option<Summary> {
    if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let n = samples.len();
    let mean = samples.iter().sum::<f64>() / n as f64;
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Summary {
        n,
        mean,
        ci99: interval(samples, mean),
        median: quantile(&sorted, 0.5),
        min: sorted[0],
        max: sorted[n - 1],
        mdev: (squares(samples, mean) / n as f64).sqrt(),
        outliers: outliers(samples, &sorted),
    })
}

fn squares(samples: &[f64], mean: f64) -> f64 {
    samples.iter().map(|sample| (sample - mean).powi(2)).sum()
}

fn interval(samples: &[f64], mean: f64) -> Option<f64> {
    let freedom = (samples.len() - 1) as f64;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let t = student.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    let deviation = (squares(samples, mean) / freedom).sqrt();
    Some(t * deviation / (samples.len() as f64).sqrt())
}

/// The quantile of sorted samples, with linear interpolation between neighbours.
///
/// # Panics
/// When `sorted` is empty or `q` outside 0 to 1: the caller's mistake.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&q), "quantile {q} of {}", sorted.len());
    let context = q * (sorted.len() - 1) as f64;
    let (below, above) = (context.floor() as usize, context.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (context - below as f64)
}

fn outliers(samples: &[f64], sorted: &[f64]) -> Vec<usize> {
    if samples.len() < 5 {
        return Vec::new();
    }
    let (low, high) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let reach = 1.5 * (high - low);
    let outside = |sample: f64| sample < low - reach || sample > high + reach;
    samples.iter().enumerate().filter(|(_, s)| outside(**s)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::{quantile, summarise};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1.0)
    }

    #[test]
    fn known_values() {
        // t(0.995, 4) = 4.6041, t(0.995, 2) = 9.9248 (printed tables).
        let summary = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(close(summary.mean, 3.0));
        assert!(close(summary.median, 3.0));
        assert!(close(summary.ci99.unwrap(), 4.6041 * 2.5_f64.sqrt() / 5_f64.sqrt()));
        assert!(close(summary.mdev, 2_f64.sqrt()));
        let three = summarise(&[10.0, 12.0, 14.0]).unwrap();
        assert!(close(three.ci99.unwrap(), 9.9248 * 2.0 / 3_f64.sqrt()));
    }

    #[test]
    fn mdev_is_that_of_ping() {
        // From a recorded run: rtt min/avg/max/mdev = 0.061/0.220/0.853/0.316 ms.
        let summary = summarise(&[0.853, 0.064, 0.063, 0.061, 0.061]).unwrap();
        assert!((summary.mean - 0.220).abs() < 1e-3 && (summary.mdev - 0.316).abs() < 1e-3);
    }

    #[test]
    fn one_sample_has_no_interval_and_none_no_summary() {
        let one = summarise(&[7.0]).unwrap();
        assert_eq!((one.n, one.ci99, one.mdev), (1, None, 0.0));
        assert_eq!(summarise(&[]), None);
        assert_eq!(summarise(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn equal_samples_have_an_interval_of_zero() {
        assert_eq!(summarise(&[5.0; 4]).unwrap().ci99, Some(0.0));
    }

    #[test]
    fn outliers_are_named_and_kept() {
        let summary = summarise(&[10.0, 11.0, 10.5, 90.0, 10.2, 10.8]).unwrap();
        assert_eq!(summary.outliers, vec![3]);
        assert_eq!((summary.n, summary.max), (6, 90.0));
        assert!(summarise(&[1.0, 1.0, 1.0, 99.0]).unwrap().outliers.is_empty(), "too few");
    }

    #[test]
    fn quantiles_interpolate() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert!(close(quantile(&sorted, 0.5), 2.5));
        assert!(close(quantile(&sorted, 0.0), 1.0) && close(quantile(&sorted, 1.0), 4.0));
        assert!(close(quantile(&sorted, 0.25), 1.75));
    }
}
