//! Distributions: at each share the median of the starts, with the lowest and the highest of them
//! as a band.
//!
//! The start is the unit: values of one start are not independent, so that no band may count them.

use maud::{Markup, html};
use stats::{Figure, Observed};

use super::scale::tick;
use super::sweep::{BOTTOM, HEIGHT, LEFT, TOP, frame, line};
use super::{Scale, WIDTH, clipped, drawing, path, tenth};
use crate::present::number::count;
use crate::present::section::{MetricTable, Section, TableRow, published};
use crate::results::MeasuredDistribution;

/// The shares at which the starts are compared; the rest of the tail is often one value.
const SHARES: [f64; 22] = [
    0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95,
    0.97, 0.98, 0.99, 0.995, 0.999,
];

/// The value of a start at a share, between the quantiles that are known.
fn value_at(start: &MeasuredDistribution, share: f64) -> Option<f64> {
    let after = start.quantiles.iter().position(|(known, _)| *known >= share);
    let after = after.unwrap_or(start.quantiles.len().checked_sub(1)?);
    let (to, high) = start.quantiles[after];
    let Some((from, low)) = after.checked_sub(1).map(|at| start.quantiles[at]) else {
        return Some(high);
    };
    let part = if to > from { ((share - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
    Some(low + part * (high - low))
}

/// Each share with the median of the starts there and their range.
fn levels(starts: &[&MeasuredDistribution]) -> Vec<(f64, Figure)> {
    let level = |share: f64| {
        let values = starts.iter().filter_map(|start| value_at(start, share));
        Some((share, Figure::of(&values.map(Observed::from).collect::<Vec<_>>())?))
    };
    SHARES.into_iter().filter_map(level).collect()
}

/// The chart; none where there is no distribution.
pub(super) fn draw(
    section: &Section<'_>,
    table: &MetricTable<'_>,
    rows: &[&TableRow<'_>],
    colours: &[usize],
) -> Option<Markup> {
    let [row] = rows else { return None };
    let of_dut = |(name, colour): (&&str, &usize)| {
        let mut cells = section.scenario.cells.iter();
        let all = &cells.find(|cell| cell.dut == *name && cell.at == *row.at)?.distributions;
        let is_own = |one: &&MeasuredDistribution| one.metric == table.metric.id && one.count > 0;
        let starts: Vec<_> = all.iter().filter(is_own).collect();
        let levels = levels(&starts);
        let (one, many) = section.turns();
        let title = format!("{name}, {}", count(starts.len(), one, many));
        (!levels.is_empty()).then_some((*colour, title, levels))
    };
    let found: Vec<_> = section.duts.iter().zip(colours).filter_map(of_dut).collect();
    let levels = || found.iter().flat_map(|(.., levels)| levels);
    // A tail leaves a linear scale no room for the rest.
    let is_positive = levels().all(|(_, level)| level.low > 0.0);
    let shown = levels().filter(|(share, _)| is_positive || (0.05..=0.95).contains(share));
    let mut values: Vec<f64> = shown.flat_map(|(_, level)| [level.low, level.high]).collect();
    if values.is_empty() {
        return None;
    }
    values.extend(row.published_values());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let wants_log = values.iter().copied().fold(0.0, f64::max) / least > 8.0;
    let x = Scale::new(&values, wants_log, (LEFT, WIDTH - LEFT - 14.0));
    let y = Scale::between(0.0, 1.0, (BOTTOM, TOP - BOTTOM));
    let labels = x.ticks().into_iter().map(|value| (x.place(value), tick(value)));
    let curve = |levels: &[(f64, Figure)], of: fn(&Figure) -> f64| -> Vec<(f64, f64)> {
        levels.iter().map(|(share, at)| (x.place(of(at)), y.place(*share))).collect()
    };
    let inside = html! {
        (frame(&y, labels, &table.values_name()))
        @for one in &row.published {
            @let ends = [one.value, one.to.unwrap_or(one.value)].map(|end| x.place(end));
            @let at = f64::midpoint(ends[0], ends[1]);
            g {
                title { "published: " (one.switch) " " (published(one, table.metric.decimals)) }
                (path("old", &format!("M{} {TOP}V{BOTTOM}", tenth(at))))
                @let place = format!("translate({} {}) rotate(-90)", tenth(at - 4.0), BOTTOM - 6.0);
                text class="soft small" transform=(place) { (clipped(&one.switch, 30)) }
            }
        }
        @for (colour, title, levels) in &found {
            @let (low, high) = (curve(levels, |at| at.low), curve(levels, |at| at.high));
            g class={ "c" (colour) " d" (colour) } {
                title { (title) }
                (path("band", &(line(low.into_iter().chain(high.into_iter().rev())) + "z")))
                (path("line", &line(curve(levels, |at| at.median).into_iter())))
            }
        }
    };
    Some(drawing(&format!("Distribution of {}", table.values_label()), HEIGHT, &inside))
}
