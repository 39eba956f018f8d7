//! A figure: the median of the starts with their range.
//!
//! The range of n independent values holds the median of what they are drawn from with a
//! probability of 1 - 2^(1 - n), whatever the distribution: only then are not all of them on one
//! side of it (Conover, "Practical nonparametric statistics", 3rd edition, section 3.2). It must
//! never reach beyond what was seen.

use crate::order::{are_finite, median, quantile, sorted};

/// The value of a start, with the lowest and the highest one that agree with what was seen, such
/// as the rates between which a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The value.
    pub value: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl From<f64> for Observed {
    fn from(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

impl Observed {
    /// Several trials of one start together: their medians. None of no trials.
    pub fn of_trials(trials: &[Self]) -> Option<Self> {
        let of = |part: fn(&Self) -> f64| median(&trials.iter().map(part).collect::<Vec<f64>>());
        Some(Self { value: of(|t| t.value)?, low: of(|t| t.low)?, high: of(|t| t.high)? })
    }
}

/// The median of the starts, and from where to where they go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median.
    pub median: f64,
    /// The lowest value that agrees with what was seen.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Number of starts.
    pub n: usize,
}

impl Figure {
    /// Of the starts; none where there are none, or one is not finite.
    pub fn of(starts: &[Observed]) -> Option<Self> {
        let all = |part: fn(&Observed) -> f64| starts.iter().map(part);
        let sums = all(|start| start.value + start.low + start.high);
        are_finite(&sums.collect::<Vec<f64>>()).then_some(())?;
        Some(Self {
            median: median(&all(|start| start.value).collect::<Vec<f64>>())?,
            low: all(|start| start.low).reduce(f64::min)?,
            high: all(|start| start.high).reduce(f64::max)?,
            n: starts.len(),
        })
    }
}

/// The share of ranges of so many starts that hold the true median: 0.75 for 3, 0.97 for 6.
pub fn range_confidence(n: usize) -> f64 {
    1.0 - 0.5_f64.powf(n as f64 - 1.0)
}

/// Samples in one trial; the unit is theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// Standard deviation of the population, which is what `ping` prints as mdev.
    pub mdev: f64,
}

/// Summarises `samples`; `None` when there are none or one is not finite.
pub fn summarise(samples: &[f64]) -> Option<Summary> {
    (!samples.is_empty() && are_finite(samples)).then_some(())?;
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let ordered = sorted(samples);
    Some(Summary {
        mean,
        median: quantile(&ordered, 0.5),
        min: ordered[0],
        max: ordered[ordered.len() - 1],
        mdev: (squares / n).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Figure, Observed, range_confidence, summarise};

    #[test]
    fn a_figure_is_the_median_and_never_beyond_what_was_seen() {
        let of =
            |starts: &[f64]| Figure::of(&starts.iter().map(|v| (*v).into()).collect::<Vec<_>>());
        // A demo once printed 7875 ± 73943 of two repeats that were 2056 and 13694.
        let two = of(&[2056.0, 13694.0]).unwrap();
        assert_eq!((two.median, two.low, two.high, two.n), (7875.0, 2056.0, 13694.0, 2));
        let one = of(&[7.0]).unwrap();
        assert_eq!((one.median, one.low, one.high), (7.0, 7.0, 7.0));
        assert_eq!((of(&[]), of(&[1.0, f64::NAN])), (None, None));
    }

    #[test]
    fn what_a_search_leaves_open_is_in_the_range() {
        let searched = |value, low, high| Observed { value, low, high };
        let figure = Figure::of(&[searched(100.0, 95.0, 105.0), searched(102.0, 97.0, 107.0)]);
        let figure = figure.unwrap();
        assert_eq!((figure.median, figure.low, figure.high), (101.0, 95.0, 107.0));
        let trials = [searched(1.0, 0.0, 2.0), searched(9.0, 8.0, 10.0), searched(3.0, 2.0, 4.0)];
        assert_eq!(Observed::of_trials(&trials), Some(searched(3.0, 2.0, 4.0)));
        assert_eq!(Observed::of_trials(&[]), None);
    }

    #[test]
    fn the_range_of_six_holds_the_median_of_97_in_100() {
        let confidences = [1, 2, 3, 5, 6, 8].map(range_confidence);
        assert_eq!(confidences, [0.0, 0.5, 0.75, 0.9375, 0.96875, 0.9921875]);
    }

    #[test]
    fn mdev_is_that_of_ping() {
        // From a recorded run: rtt min/avg/max/mdev = 0.061/0.220/0.853/0.316 ms.
        let summary = summarise(&[0.853, 0.064, 0.063, 0.061, 0.061]).unwrap();
        assert!((summary.mean - 0.220).abs() < 1e-3 && (summary.mdev - 0.316).abs() < 1e-3);
        assert_eq!((summary.min, summary.median, summary.max), (0.061, 0.063, 0.853));
        assert_eq!(summarise(&[]), None);
    }
}
