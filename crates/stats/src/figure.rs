//! A figure: the median of the starts with their range.
//!
//! The range of n independent values holds the median of what they are drawn from with a
//! probability of 1 - 2^(1 - n), whatever the distribution: only then are not all of them on one
//! side of it (Conover, "Practical nonparametric statistics", 3rd edition, section 3.2). It must
//! never reach beyond what was seen.

use crate::order::median;

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
        let mut sums = all(|start| start.value + start.low + start.high);
        sums.all(f64::is_finite).then_some(())?;
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

#[cfg(test)]
mod tests {
    use super::{Figure, Observed, range_confidence};

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
}
