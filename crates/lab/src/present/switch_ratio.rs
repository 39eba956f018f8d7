//! Ratio of the first switch's figure to that of another, from pairs of starts of one run.
//!
//! Cells take turns, so starts of one turn are a pair: what the machine did to both cancels. It
//! must never pair trials, which are no repetitions, nor call a difference clear that the starts do
//! not carry.

use stats::{Comparison, Scale};

use crate::results::Better;

use super::entry::ShownFigure;
use super::number::times;

/// Meaning of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The first switch is better: the interval leaves out 1.
    Better,
    /// The first switch is worse, likewise.
    Worse,
    /// No difference was seen.
    NoDifference,
}

/// The figure of the first switch divided by that of another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SwitchRatio {
    /// The geometric mean of the starts' ratios.
    pub(crate) ratio: f64,
    /// Its 95 % interval, from low to high.
    pub(crate) interval: (f64, f64),
    /// Number of pairs.
    pub(crate) pairs: usize,
    /// Its meaning, by itself.
    pub(crate) standing: Standing,
    /// The p-value, to be corrected for the number of comparisons where they are summed up.
    pub(crate) p_value: f64,
}

impl SwitchRatio {
    /// The ratio of `first` to `other`, from the starts that both have; none where there are less
    /// than two, or a figure is not above zero or not above the floor.
    pub(crate) fn new(
        first: &ShownFigure<'_>,
        other: &ShownFigure<'_>,
        better: Better,
    ) -> Option<Self> {
        let is_unknown = |figure: &ShownFigure<'_>| {
            figure.is_below_floor || figure.exceeding_clock_error().is_some()
        };
        if is_unknown(first) || is_unknown(other) {
            return None;
        }
        let found = first.row.beside(other.row).filter(|found| found.scale == Scale::Ratio)?;
        let Comparison { pairs, estimate: ratio, low, high, p_value, .. } = found;
        let is_better = (ratio > 1.0) == (better == Better::Higher);
        let standing = match (found.is_different(), is_better) {
            (true, true) => Standing::Better,
            (true, false) => Standing::Worse,
            (false, _) => Standing::NoDifference,
        };
        Some(Self { ratio, interval: (low, high), pairs, standing, p_value })
    }

    /// `1.31 (1.25–1.37)`.
    pub(crate) fn text(&self) -> String {
        let (low, high) = self.interval;
        format!("{} ({}–{})", times(self.ratio), times(low), times(high))
    }
}
