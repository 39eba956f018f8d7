//! Marks of a figure: the sign of the part that limited it, and whether it is the best of its row.
//!
//! It must never mark as best what the starts do not carry.

use super::entry::{ShownFigure, TableEntry};
use super::number::short_with_range;
use super::section::{Section, is_reference};
use super::switch_ratio::{Standing, SwitchRatio};
use crate::limit::Part;
use crate::results::Better;

/// The sign of a part that limits, and its words.
pub(crate) fn mark(part: Part) -> Option<(&'static str, &'static str)> {
    match part {
        Part::Port => Some(("=", "port")),
        Part::ControlLink => Some(("L", "control link")),
        Part::Controller => Some(("C", "controller")),
        Part::Switch => Some(("S", "switch")),
        Part::Host => Some(("H", "sending host")),
        Part::Machine => Some(("M", "all cores")),
        Part::OfferedLoad => Some(("O", "offered load")),
        Part::None => None,
    }
}

/// A figure with its range, and behind it the signs of a remark and of the part that limited it.
pub(crate) fn marked(figure: &ShownFigure<'_>, decimals: usize) -> (String, String) {
    let remark = if figure.remarks().is_empty() { "" } else { " ?" };
    let sign = figure.limit.and_then(|limit| mark(limit.part));
    let sign = sign.map_or_else(String::new, |(sign, _)| format!(" {sign}"));
    (short_with_range(figure.value, figure.range, decimals), format!("{remark}{sign}"))
}

/// A legend's words where ranges are wider than their starts.
pub(crate) const OPEN: &str = "ranges reach to what trials leave open, as a search between the \
                               load that passes and the one that fails";

/// Whether the trials of a figure leave something open.
pub(crate) fn leaves_open(figure: &ShownFigure<'_>) -> bool {
    figure.row.resolutions.iter().any(|(low, high)| low < high)
}

/// Whether each entry of a row, with the place of its switch, is the best: better than each of the
/// others by the comparison of their starts. The path without a switch is no competitor; beside a
/// figure with a remark none is the best.
pub(crate) fn best(
    section: &Section<'_>,
    entries: &[(usize, Option<&TableEntry<'_>>)],
    better: Better,
) -> Vec<bool> {
    let figures: Vec<Option<&ShownFigure<'_>>> = entries
        .iter()
        .map(|(dut, entry)| entry.filter(|_| !is_reference(section.duts[*dut]))?.figure())
        .collect();
    let is_better = |one: &ShownFigure<'_>, other: &ShownFigure<'_>| {
        let ratio = SwitchRatio::new(one, other, better);
        let is_sure = one.remarks().is_empty() && other.remarks().is_empty();
        is_sure && ratio.is_some_and(|ratio| ratio.standing == Standing::Better)
    };
    let is_best = |at: usize| {
        let others = figures.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<_> = others.filter_map(|(_, figure)| *figure).collect();
        figures[at].is_some_and(|one| {
            !others.is_empty() && others.iter().all(|other| is_better(one, other))
        })
    };
    (0..figures.len()).map(is_best).collect()
}
