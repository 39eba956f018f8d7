//! Effect of an axis on a metric: from its first number to its last, or, where its values are
//! words, the ratio of each to the first; all else equal.
//!
//! It must never compare rows that differ on two axes.

use crate::present::entry::ShownFigure;
use crate::present::number::{axis_value, times};
use crate::present::section::{MetricTable, Section, TableRow};
use crate::present::switch_ratio::{Standing, SwitchRatio};
use crate::results::Better;
use crate::results::{AxisInfo, Coordinates};

use super::{Claim, Tone};

/// Units of times and rates: what has them can be faster.
const SPEED_UNITS: [&str; 7] = ["µs", "ms", "s", "packets/s", "frames/s", "Mb/s", "Mbit/s"];

/// Most values of an axis whose speed-up stands in one sentence, and most sentences for one axis.
const SPEED_UPS_MAX: usize = 6;
const PLACES_MAX: usize = 2;

/// Sentences for each axis.
pub(super) fn claims(section: &Section<'_>, table: &MetricTable<'_>) -> Vec<Claim> {
    section.axes.iter().flat_map(|axis| of_axis(section, table, axis)).collect()
}

fn of_axis(section: &Section<'_>, table: &MetricTable<'_>, axis: &AxisInfo) -> Vec<Claim> {
    if axis.values.iter().all(|value| value.parse::<f64>().is_ok()) {
        return along(section, table, axis).into_iter().collect();
    }
    let has_speed = SPEED_UNITS.contains(&table.metric.unit.as_str());
    let speed_ups = if has_speed && axis.values.len() <= 1 + SPEED_UPS_MAX {
        speed_ups(section, table, axis)
    } else {
        Vec::new()
    };
    if speed_ups.is_empty() {
        return over_words(section, table, axis).into_iter().collect();
    }
    speed_ups
}

/// A switch's figures at both ends of an axis, with their rows.
struct Ends<'t> {
    dut: &'t str,
    first: (&'t TableRow<'t>, &'t ShownFigure<'t>),
    last: (&'t TableRow<'t>, &'t ShownFigure<'t>),
}

fn along(section: &Section<'_>, table: &MetricTable<'_>, axis: &AxisInfo) -> Option<Claim> {
    let values: Vec<&String> = axis
        .values
        .iter()
        .filter(|value| table.rows.iter().any(|row| row.at.get(&axis.name) == Some(*value)))
        .collect();
    let (first, last) = (*values.first()?, *values.last()?);
    if first == last {
        return None;
    }
    let ends: Vec<Ends<'_>> = section
        .duts
        .iter()
        .enumerate()
        .filter_map(|(index, dut)| ends(table, axis, (first, last), (index, dut)))
        .collect();
    let decimals = table.metric.decimals;
    let unit = if axis.unit.is_empty() { String::new() } else { format!(" {}", axis.unit) };
    let mut claim = Claim::new(Tone::Fact).words("From ").strong(axis.label.clone()).words(
        format!(" {}{unit} to {}{unit}, {}: ", axis_value(first), axis_value(last), table.name()),
    );
    for (index, Ends { dut, first, last }) in ends.iter().enumerate() {
        let comma = if index == 0 { "" } else { "; " };
        claim = claim
            .words(format!("{comma}{dut} from "))
            .link(first.1.text(decimals), first.0)
            .words(" to ")
            .link(last.1.text(decimals), last.0)
            .words(change(first.1, last.1));
    }
    (!ends.is_empty()).then(|| claim.words("."))
}

/// A row's place without the axis.
fn rest(row: &TableRow<'_>, axis: &AxisInfo) -> Coordinates {
    let mut place = row.at.clone();
    place.remove(&axis.name);
    place
}

fn figure<'t>(row: &'t TableRow<'t>, index: usize) -> Option<&'t ShownFigure<'t>> {
    row.entries.get(index)?.figure()
}

/// `Speed-up beside legacy (learning) of match, delay, µs, at frame size 64: weir 1.02 (0.91–1.14)
/// at port, 0.98 (0.90–1.07) at exact.` A sentence for each of the first places that have the
/// axis's first value.
///
/// The speed-up is the time at the first value over that at another, or the other's rate over that
/// at the first: above 1 the other is faster. Starts of one turn are pairs, as between switches.
fn speed_ups(section: &Section<'_>, table: &MetricTable<'_>, axis: &AxisInfo) -> Vec<Claim> {
    let Some(first) = axis.values.first() else { return Vec::new() };
    let begins = table.rows.iter().filter(|row| row.at.get(&axis.name) == Some(first));
    let sentence = |base: &TableRow<'_>| {
        let place = rest(base, axis);
        let others: Vec<&TableRow<'_>> = table
            .rows
            .iter()
            .filter(|row| row.anchor != base.anchor && rest(row, axis) == place)
            .collect();
        let mut claim = Claim::new(Tone::Fact).words("Speed-up beside ").link(first.clone(), base);
        let at = match section.place(&place) {
            all if all.is_empty() => all,
            some => format!(", at {some}"),
        };
        claim = claim.words(" of ").strong(axis.label.clone());
        claim = claim.words(format!(", {}{at}: ", table.name()));
        let mut semicolon = "";
        for (index, dut) in section.duts.iter().enumerate() {
            let Some(at_first) = figure(base, index) else { continue };
            let of_other = |row: &TableRow<'_>| {
                let other = figure(row, index)?;
                match table.metric.better {
                    Better::Lower => SwitchRatio::new(at_first, other, Better::Higher),
                    Better::Higher => SwitchRatio::new(other, at_first, Better::Higher),
                }
            };
            let known = others.iter().filter_map(|row| Some((*row, of_other(row)?)));
            let mut comma = format!("{semicolon}{dut} ");
            for (row, ratio) in known {
                let value = row.at.get(&axis.name).map_or("", String::as_str);
                claim = claim.words(comma).link(ratio.text(), row).words(format!(" at {value}"));
                comma = ", ".to_owned();
                semicolon = "; ";
            }
        }
        (!semicolon.is_empty()).then(|| claim.words("."))
    };
    begins.filter_map(sentence).take(PLACES_MAX).collect()
}

/// `Over match, Delay, µs: weir from 10.8 (port) to 12.0 (exact), 1.11 times.`
fn over_words(section: &Section<'_>, table: &MetricTable<'_>, axis: &AxisInfo) -> Option<Claim> {
    let decimals = table.metric.decimals;
    let value = |row: &TableRow<'_>| row.at.get(&axis.name).cloned().unwrap_or_default();
    let mut claim = Claim::new(Tone::Fact).words("Over ").strong(axis.label.clone());
    claim = claim.words(format!(", {}: ", table.name()));
    let mut comma = "";
    for (index, dut) in section.duts.iter().enumerate() {
        let Some((first, last)) = extremes(table, axis, index) else { continue };
        claim = claim
            .words(format!("{comma}{dut} from "))
            .link(first.1.text(decimals), first.0)
            .words(format!(" ({}) to ", value(first.0)))
            .link(last.1.text(decimals), last.0)
            .words(format!(" ({}){}", value(last.0), change(first.1, last.1)));
        comma = "; ";
    }
    (!comma.is_empty()).then(|| claim.words("."))
}

/// A row and its figure.
type Placed<'t> = (&'t TableRow<'t>, &'t ShownFigure<'t>);

/// The rows with the least and the greatest figure among those that differ on the axis only, from
/// the first point that has a known figure of the switch.
fn extremes<'t>(
    table: &'t MetricTable<'t>,
    axis: &AxisInfo,
    index: usize,
) -> Option<(Placed<'t>, Placed<'t>)> {
    let known = |row: &'t TableRow<'t>| Some((row, row.entries.get(index)?.figure()?));
    let here = rest(table.rows.iter().find_map(known)?.0, axis);
    let rows: Vec<Placed<'t>> =
        table.rows.iter().filter(|row| rest(row, axis) == here).filter_map(known).collect();
    let by_value = |a: &&Placed<'t>, b: &&Placed<'t>| a.1.value.total_cmp(&b.1.value);
    let (first, last) = (*rows.iter().min_by(by_value)?, *rows.iter().max_by(by_value)?);
    (first.0.anchor != last.0.anchor).then_some((first, last))
}

/// The first rows that differ on the axis only and have a figure of the switch at both ends.
fn ends<'t>(
    table: &'t MetricTable<'t>,
    axis: &AxisInfo,
    (first, last): (&String, &String),
    (index, dut): (usize, &'t str),
) -> Option<Ends<'t>> {
    let figure = |row: &'t TableRow<'t>| Some((row, row.entries.get(index)?.figure()?));
    let begins = table.rows.iter().filter(|row| row.at.get(&axis.name) == Some(first));
    begins.filter_map(figure).find_map(|begin| {
        let mut place = begin.0.at.clone();
        place.insert(axis.name.clone(), last.clone());
        let end = table.rows.iter().find(|row| *row.at == place).and_then(figure)?;
        Some(Ends { dut, first: begin, last: end })
    })
}

/// `, 0.57 times`; that no difference is seen, where none is; nothing where there is no ratio.
fn change(first: &ShownFigure<'_>, last: &ShownFigure<'_>) -> String {
    match SwitchRatio::new(last, first, Better::Higher) {
        Some(ratio) if ratio.standing == Standing::NoDifference => {
            " (no difference is seen)".to_owned()
        }
        Some(ratio) => format!(", {} times", times(ratio.ratio)),
        None => String::new(),
    }
}
