//! Ratio of the first switch's figure to that of another, from pairs of one run.
//!
//! Cells take turns, so the trials of one repeat are a pair: what the machine did to both cancels.
//! It must never pair samples of different repeats, nor call a difference clear that the number of
//! repeats, or the number of comparisons, does not carry.

use std::collections::BTreeMap;

use crate::results::Better;
use crate::results::CellResults;
use crate::stats::{CONFIDENCE, holm, paired_ratio};

use super::entry::ShownFigure;
use super::number::times;

/// Meaning of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The first switch is better, at 99 % with all comparisons of the scenario counted.
    Better,
    /// The first switch is worse, so counted.
    Worse,
    /// Better in every repeat, and the row's own interval says so at 99 %.
    BetterAlone,
    /// Worse in every repeat, and the row's own interval says so at 99 %.
    WorseAlone,
    /// No difference was seen.
    NoDifference,
}

/// The figure of the first switch divided by that of another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SwitchRatio {
    /// The ratio: Hodges and Lehmann's estimate, of less than eight pairs their geometric mean.
    pub(crate) ratio: f64,
    /// Its 99 % interval, from low to high: by signed ranks from eight pairs on, else by Student's
    /// t of the logarithms.
    pub(crate) interval: (f64, f64),
    /// Number of pairs.
    pub(crate) pairs: usize,
    /// Its meaning, once all ratios of the scenario are known.
    pub(crate) standing: Standing,
    /// That of Student's test: no number of pairs that is usual has a p-value by ranks that holds
    /// with many comparisons.
    p_value: f64,
    /// Whether all pairs lie on one side of 1, and the interval too.
    is_one_sided: bool,
}

impl SwitchRatio {
    /// The ratio of `first` to `other`, from the repeats that both have; none where there are less
    /// than two, or a figure is not above zero or not above the floor.
    pub(crate) fn new(first: &ShownFigure<'_>, other: &ShownFigure<'_>) -> Option<Self> {
        let is_unknown = |figure: &ShownFigure<'_>| {
            figure.is_below_floor || figure.exceeding_clock_error().is_some()
        };
        if is_unknown(first) || is_unknown(other) {
            return None;
        }
        let (ours, theirs) = pairs(first.cell, other.cell, &first.row.metric);
        let found = paired_ratio(&ours, &theirs, CONFIDENCE).ok()?;
        // Ranks take nothing for granted about the distribution, and eight pairs for 99 %.
        let (ratio, interval) = if found.ranks.interval.reaches(CONFIDENCE) {
            (found.ranks.estimate, found.ranks.interval)
        } else {
            (found.geometric_mean, found.t_interval)
        };
        let is_above = interval.low > 1.0 && ours.iter().zip(&theirs).all(|(a, b)| a > b);
        let is_below = interval.high < 1.0 && ours.iter().zip(&theirs).all(|(a, b)| a < b);
        let is_one_sided = is_above || is_below;
        let interval = (interval.low, interval.high);
        let p_value = found.t_p_value;
        let standing = Standing::NoDifference;
        Some(Self { ratio, interval, pairs: ours.len(), standing, p_value, is_one_sided })
    }

    /// `1.31 (1.25–1.37)`, or without an interval where it says nothing.
    pub(crate) fn text(&self) -> String {
        let (low, high) = self.interval;
        let is_known = low.is_finite() && high.is_finite() && low > 0.0 && high / low < 100.0;
        if is_known {
            format!("{} ({}–{})", times(self.ratio), times(low), times(high))
        } else {
            format!("{} (too few repeats)", times(self.ratio))
        }
    }
}

/// The values of the repeats that both cells have, by the trials; nothing where the trials are not
/// those of the rows.
fn pairs(first: &CellResults, other: &CellResults, metric: &str) -> (Vec<f64>, Vec<f64>) {
    let (ours, theirs) = (by_repeat(first, metric), by_repeat(other, metric));
    ours.iter().filter_map(|(repeat, value)| Some((*value, *theirs.get(repeat)?))).unzip()
}

fn by_repeat(cell: &CellResults, metric: &str) -> BTreeMap<usize, f64> {
    let good = cell.trials.iter().filter(|trial| trial.error.is_none());
    good.filter_map(|trial| Some((trial.repeat, *trial.values.get(metric)?))).collect()
}

/// Says of each ratio what it shows, corrected for their number (Holm).
pub(crate) fn judge<'r>(ratios: impl Iterator<Item = (&'r mut SwitchRatio, Better)>) {
    let mut ratios: Vec<_> = ratios.collect();
    let p_values: Vec<f64> = ratios.iter().map(|(ratio, _)| ratio.p_value).collect();
    for ((ratio, better), p_value) in ratios.iter_mut().zip(holm(&p_values)) {
        let is_better = match better {
            Better::Higher => ratio.ratio > 1.0,
            Better::Lower => ratio.ratio < 1.0,
        };
        let is_clear = p_value <= 1.0 - CONFIDENCE && ratio.is_one_sided;
        ratio.standing = match (is_clear, ratio.is_one_sided, is_better) {
            (true, _, true) => Standing::Better,
            (true, _, false) => Standing::Worse,
            (false, true, true) => Standing::BetterAlone,
            (false, true, false) => Standing::WorseAlone,
            (false, false, _) => Standing::NoDifference,
        };
    }
}
