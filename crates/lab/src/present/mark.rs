//! Marks of a figure: the signs of a remark and of the part that limited it, and their meaning.

use super::entry::ShownFigure;
use super::number::short_with_range;
use crate::limit::Part;
use crate::names::distinct;

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

/// Meaning of the signs beside these figures; `more` is where the remarks stand in words.
pub(crate) fn signs(figures: &[&ShownFigure<'_>], more: &str) -> Vec<String> {
    let limits = figures.iter().filter_map(|figure| mark(figure.limit?.part));
    let limits = distinct(limits.map(|(sign, words)| format!("{sign} {words}")));
    let limits = (!limits.is_empty()).then(|| format!("at its limit: {}", limits.join(", ")));
    let has_remark = figures.iter().any(|figure| !figure.remarks().is_empty());
    let why = "below the floor, clock error or doubtful";
    let remark = has_remark.then(|| format!("? not compared: {why}{more}"));
    let is_open = figures.iter().any(|figure| figure.leaves_open());
    let open = is_open.then(|| {
        "ranges reach to what trials leave open, as a search between the load that passes and the \
         one that fails"
            .to_owned()
    });
    [limits, remark, open].into_iter().flatten().collect()
}
