//! Marks of a figure: the sign of the part that limited it, and whether it is the best of its row.
//!
//! It must never mark as best what the starts do not carry.

use super::entry::TableEntry;
use super::section::{Section, is_reference};
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

/// Whether each entry of a row, with the place of its switch, is the best: its range lies beyond
/// all others, on the good side. The path without a switch is no competitor; one start, and a
/// figure with a remark, may be anything beside the others.
pub(crate) fn best(
    section: &Section<'_>,
    entries: &[(usize, Option<&TableEntry<'_>>)],
    better: Better,
) -> Vec<bool> {
    let competing = |(dut, entry): &(usize, Option<&'_ TableEntry<'_>>)| -> Option<(f64, f64)> {
        let figure = entry.filter(|_| !is_reference(section.duts[*dut]))?.figure()?;
        let is_sure = figure.starts > 1 && figure.remarks().is_empty();
        Some(if is_sure { figure.range } else { (f64::NEG_INFINITY, f64::INFINITY) })
    };
    let ranges: Vec<Option<(f64, f64)>> = entries.iter().map(competing).collect();
    (0..ranges.len()).map(|at| is_best(at, &ranges, better)).collect()
}

/// Whether a range lies beyond all others, on the good side.
fn is_best(index: usize, ranges: &[Option<(f64, f64)>], better: Better) -> bool {
    let Some(Some((low, high))) = ranges.get(index) else { return false };
    let is_beyond = |other: &(f64, f64)| match better {
        Better::Higher => *low > other.1,
        Better::Lower => *high < other.0,
    };
    let others = ranges.iter().enumerate().filter(|(at, _)| *at != index);
    let mut others = others.filter_map(|(_, other)| other.as_ref()).peekable();
    others.peek().is_some() && others.all(is_beyond)
}
