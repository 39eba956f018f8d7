//! Ratio of one switch's figure to that of another, from pairs of starts of one run.
//!
//! Cells take turns, so starts of one turn are a pair: what the machine did to both cancels. It
//! must never pair trials, which are no repetitions, nor call a difference clear or a figure the
//! best where the starts do not carry it.

use std::cmp::Ordering;

use stats::{Comparison, Scale};

use super::entry::ShownFigure;
use super::number::times;
use crate::results::Better;

/// Whether it is the path without a switch, a bound and no rival: to be behind it is no finding.
pub(crate) fn is_reference(dut: &str) -> bool {
    dut == "wire"
}

/// The ratio of `first` to `other`, from the starts that both have; none where there are less than
/// two, or a figure is not above zero or not known.
pub(crate) fn ratio(first: &ShownFigure<'_>, other: &ShownFigure<'_>) -> Option<Comparison> {
    let found = first.row.beside(other.row).filter(|found| found.scale == Scale::Ratio)?;
    (first.is_known() && other.is_known()).then_some(found)
}

/// A ratio in words: above 1 the first is better.
pub(crate) fn gain(ratio: &Comparison, better: Better) -> f64 {
    match better {
        Better::Higher => ratio.estimate,
        Better::Lower => 1.0 / ratio.estimate,
    }
}

/// Whether the first is better (greater) or worse (less): equal where the interval of the ratio
/// does not leave out 1.
pub(crate) fn standing(ratio: &Comparison, better: Better) -> Ordering {
    let gain = if ratio.is_different() { gain(ratio, better) } else { 1.0 };
    gain.total_cmp(&1.0)
}

/// `1.31 (1.25–1.37)`.
pub(crate) fn ratio_text(ratio: &Comparison) -> String {
    format!("{} ({}–{})", times(ratio.estimate), times(ratio.low), times(ratio.high))
}

/// Whether each of some figures of a metric is the best: better than each of the others by the
/// comparison of their starts. Beside a figure with a remark none is the best.
pub(crate) fn best(figures: &[Option<&ShownFigure<'_>>]) -> Vec<bool> {
    let is_better = |one: &ShownFigure<'_>, other: &ShownFigure<'_>| {
        let is_sure = one.remarks().is_empty() && other.remarks().is_empty();
        let is_gain = |ratio: Comparison| standing(&ratio, one.metric.better).is_gt();
        is_sure && ratio(one, other).is_some_and(is_gain)
    };
    let rival = |at: usize| figures[at].filter(|one| !is_reference(&one.cell.dut));
    let is_best = |at: usize| {
        let others = (0..figures.len()).filter(|other| *other != at).filter_map(rival);
        let others: Vec<_> = others.collect();
        !others.is_empty()
            && rival(at).is_some_and(|one| others.iter().all(|other| is_better(one, other)))
    };
    (0..figures.len()).map(is_best).collect()
}
