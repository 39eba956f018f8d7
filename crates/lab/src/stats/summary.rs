//! Summary of a set of samples, and the claims that it must not make.
//!
//! A figure whose interval is wider than the figure itself is unknown: it is reported as too few
//! repeats, with the number that it needs, and never as a value with its error.

use serde::{Deserialize, Serialize};

use super::interval::{CONFIDENCE, Interval, check, sorted};
use super::mean::{mean_interval, squares};
use super::order::{quantile, quantile_interval, samples_needed};
use super::repeats::{of_deviation, of_width};

/// Summary of a set of samples; the unit is that of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 99 % interval of the mean (Student's t, n - 1 degrees of freedom);
    /// `None` for a single sample, which says nothing about spread.
    pub ci99: Option<f64>,
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// The median's interval from order statistics, whatever the distribution, with its true
    /// confidence; `None` for less than the eight samples that 99 % need.
    #[serde(default)]
    pub median_interval: Option<Interval>,
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
    check(samples, 1).ok()?;
    let n = samples.len();
    let mean = samples.iter().sum::<f64>() / n as f64;
    let ordered = sorted(samples);
    Some(Summary {
        n,
        mean,
        ci99: mean_interval(samples, CONFIDENCE).ok().map(|interval| interval.width() / 2.0),
        median: quantile(&ordered, 0.5),
        median_interval: quantile_interval(&ordered, 0.5, CONFIDENCE).ok(),
        min: ordered[0],
        max: ordered[n - 1],
        mdev: (squares(samples, mean) / n as f64).sqrt(),
        outliers: outliers(samples, &ordered),
    })
}

fn outliers(samples: &[f64], ordered: &[f64]) -> Vec<usize> {
    if samples.len() < 5 {
        return Vec::new();
    }
    let (low, high) = (quantile(ordered, 0.25), quantile(ordered, 0.75));
    let reach = 1.5 * (high - low);
    let outside = |sample: f64| sample < low - reach || sample > high + reach;
    samples.iter().enumerate().filter(|(_, s)| outside(**s)).map(|(index, _)| index).collect()
}

/// A figure as it may be printed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reported {
    /// The value, and an interval that is no wider than it.
    Known {
        /// The value.
        value: f64,
        /// Its interval, of 99 % or a little more.
        interval: Interval,
    },
    /// The value of a single repeat: nothing is said about its spread.
    Single {
        /// The value.
        value: f64,
    },
    /// So few repeats leave the figure unknown.
    TooFew {
        /// Their number.
        n: usize,
        /// Number needed in all, by the spread so far, until the interval is no wider than the
        /// figure; `None` where the figure is 0, which no interval is as narrow as.
        needed: Option<usize>,
    },
}

impl Summary {
    /// The mean, with its t-interval where there is one.
    #[must_use]
    pub fn reported_mean(&self) -> Reported {
        let Some(half) = self.ci99 else { return Reported::Single { value: self.mean } };
        let (low, high) = (self.mean - half, self.mean + half);
        if 2.0 * half <= self.mean.abs() {
            let interval = Interval { low, high, confidence: CONFIDENCE };
            return Reported::Known { value: self.mean, interval };
        }
        let n = self.n as f64;
        let deviation = self.mdev * (n / (n - 1.0)).sqrt();
        let needed = of_deviation(deviation, self.mean.abs() / 2.0, CONFIDENCE).ok();
        Reported::TooFew { n: self.n, needed }
    }

    /// The median, with its interval from order statistics; too few repeats where there is none.
    #[must_use]
    pub fn reported_median(&self) -> Reported {
        let least = samples_needed(0.5, CONFIDENCE);
        let Some(interval) = self.median_interval else {
            return Reported::TooFew { n: self.n, needed: Some(least) };
        };
        if interval.width() <= self.median.abs() {
            return Reported::Known { value: self.median, interval };
        }
        let needed = of_width(self.n, interval.width(), self.median.abs()).ok();
        Reported::TooFew { n: self.n, needed }
    }
}

/// The mean of samples of which each is known to lie between two values only, as the rate between
/// a load that passes and one that fails. Equal samples say nothing about that distance, so the
/// interval runs from the lower end of the interval of all low values to the upper end of that of
/// all high ones; whether the repeats are too few is judged by their spread alone, since more of
/// them do not resolve more. Without `resolutions` it is [`Summary::reported_mean`]. `None` as
/// [`summarise`].
///
/// # Panics
/// When there are resolutions, but not as many as samples: the caller's mistake.
#[must_use]
pub fn reported_mean_within(samples: &[f64], resolutions: &[(f64, f64)]) -> Option<Reported> {
    let reported = summarise(samples)?.reported_mean();
    let Reported::Known { value, interval } = reported else { return Some(reported) };
    if resolutions.is_empty() {
        return Some(reported);
    }
    assert_eq!(samples.len(), resolutions.len(), "a resolution for each sample");
    let (lows, highs): (Vec<f64>, Vec<f64>) = resolutions.iter().copied().unzip();
    let low = mean_interval(&lows, CONFIDENCE).ok()?.low.min(interval.low);
    let high = mean_interval(&highs, CONFIDENCE).ok()?.high.max(interval.high);
    Some(Reported::Known { value, interval: Interval { low, high, ..interval } })
}

impl Reported {
    /// As text with so many decimals: `12.0 ± 0.5`, `12.0 (11.5 to 13.0)` where the interval is not
    /// symmetric, `12.0`, or `too few repeats: needs 30`.
    #[must_use]
    pub fn text(&self, decimals: usize) -> String {
        match *self {
            Self::Known { value, interval: Interval { low, high, .. } } => {
                let (below, above) = (value - low, high - value);
                if (below - above).abs() <= 1e-9 * value.abs() {
                    format!("{value:.decimals$} ± {above:.decimals$}")
                } else {
                    format!("{value:.decimals$} ({low:.decimals$} to {high:.decimals$})")
                }
            }
            Self::Single { value } => format!("{value:.decimals$}"),
            Self::TooFew { needed: Some(needed), .. } => {
                format!("too few repeats: needs {needed}")
            }
            Self::TooFew { needed: None, .. } => "too few repeats to tell it from 0".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reported, reported_mean_within, summarise};

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
        assert_eq!(one.reported_mean(), Reported::Single { value: 7.0 });
        assert_eq!(one.reported_mean().text(1), "7.0");
        assert_eq!(summarise(&[]), None);
        assert_eq!(summarise(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn equal_samples_have_an_interval_of_zero() {
        let equal = summarise(&[5.0; 4]).unwrap();
        assert_eq!(equal.ci99, Some(0.0));
        assert_eq!(equal.reported_mean().text(2), "5.00 ± 0.00");
        assert_eq!(summarise(&[0.0; 4]).unwrap().reported_mean().text(0), "0 ± 0");
    }

    #[test]
    fn outliers_are_named_and_kept() {
        let summary = summarise(&[10.0, 11.0, 10.5, 90.0, 10.2, 10.8]).unwrap();
        assert_eq!(summary.outliers, vec![3]);
        assert_eq!((summary.n, summary.max), (6, 90.0));
        assert!(summarise(&[1.0, 1.0, 1.0, 99.0]).unwrap().outliers.is_empty(), "too few");
    }

    /// t(0.995, 2) = 9.9248: the low values are 8, 9, 10 and so 9 - 9.9248 / sqrt(3).
    #[test]
    fn what_a_method_does_not_resolve_is_in_the_interval() {
        let of = |resolutions: &[(f64, f64)], samples: &[f64]| {
            reported_mean_within(samples, resolutions).unwrap()
        };
        let Reported::Known { value, interval } = of(&[(95.0, 105.0); 3], &[100.0; 3]) else {
            panic!("equal samples are known")
        };
        assert_eq!((value, interval.low, interval.high), (100.0, 95.0, 105.0));
        let resolutions = [(80.0, 100.0), (90.0, 100.0), (100.0, 100.0)];
        let Reported::Known { interval, .. } = of(&resolutions, &[100.0; 3]) else {
            panic!("equal samples are known")
        };
        assert!(close(interval.low, 90.0 - 99.248 / 3_f64.sqrt()) && interval.high == 100.0);
        assert_eq!(of(&[], &[5.0; 4]).text(2), "5.00 ± 0.00");
        assert_eq!(of(&[(0.0, 9.0); 2], &[2056.0, 13694.0]).text(0), "too few repeats: needs 33");
        assert_eq!(reported_mean_within(&[], &[]), None);
    }

    /// A demo once printed 7875 ± 73943 of two repeats that were 2056 and 13694.
    #[test]
    fn an_interval_wider_than_its_figure_is_unknown() {
        let demo = summarise(&[2056.0, 13694.0]).unwrap();
        assert!(close(demo.mean, 7875.0) && demo.ci99.unwrap() > 300_000.0, "{demo:?}");
        // t(0.995, n - 1) 8229.3 / sqrt(n) is at most 3937.5 from n = 33 on (scipy 1.17).
        let reported = demo.reported_mean();
        assert_eq!(reported, Reported::TooFew { n: 2, needed: Some(33) });
        assert_eq!(reported.text(0), "too few repeats: needs 33");
        // As wide as the figure is still known: mean 10, t(0.995, 2) s / sqrt(3) = 5 at 0.8726.
        let just = |s: f64| summarise(&[10.0 - s, 10.0, 10.0 + s]).unwrap().reported_mean();
        assert!(matches!(just(0.872), Reported::Known { .. }));
        assert!(matches!(just(0.873), Reported::TooFew { n: 3, needed: Some(4) }));
        let none = summarise(&[-1.0, 1.0]).unwrap().reported_mean();
        assert_eq!(none.text(0), "too few repeats to tell it from 0");
    }

    #[test]
    fn the_median_is_reported_from_eight_samples_on() {
        let few = summarise(&[10.0; 7]).unwrap();
        assert_eq!(few.median_interval, None);
        assert_eq!(few.reported_median().text(0), "too few repeats: needs 8");
        let samples = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 19.0];
        let eight = summarise(&samples).unwrap();
        assert_eq!(eight.median_interval.unwrap().confidence, 1.0 - 2.0 / 256.0);
        assert_eq!(eight.reported_median().text(1), "13.5 (10.0 to 19.0)");
        // Twice as wide as the figure: four times the repeats.
        let wide = summarise(&[1.0, 1.0, 9.0, 9.0, 11.0, 11.0, 11.0, 21.0]).unwrap();
        let reported = wide.reported_median();
        assert_eq!(reported, Reported::TooFew { n: 8, needed: Some(32) });
    }
}
