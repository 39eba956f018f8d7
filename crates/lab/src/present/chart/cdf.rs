//! Distributions: at each share the median of the starts, with the lowest and the highest of them
//! as a band.
//!
//! The start is the unit: values of one start are not independent, so that no band may count them.

use super::scale::tick;
use super::sweep::{BOTTOM, HEIGHT, LEFT, TOP, frame, path};
use super::{Curve, Facet, Scale, WIDTH, clipped, drawing};
use crate::present::markup::{Markup, markup};
use crate::present::section::{MetricTable, Section, published};
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

/// A share with the lowest start, the median of the starts, and the highest.
fn levels(starts: &[&MeasuredDistribution]) -> Vec<(f64, [f64; 3])> {
    let level = |share: f64| {
        let values: Vec<f64> = starts.iter().filter_map(|start| value_at(start, share)).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some((share, [low, stats::median(&values)?, high]))
    };
    SHARES.into_iter().filter_map(level).collect()
}

/// The chart; none where there is no distribution.
pub(super) fn draw(
    section: &Section<'_>,
    table: &MetricTable<'_>,
    facet: &Facet<'_, '_>,
    curves: &[Curve<'_>],
) -> Option<Markup> {
    let [row] = facet.rows.as_slice() else { return None };
    let of_curve = |curve: Curve<'_>| {
        let cells = section.scenario.cells.iter();
        let mut cells = cells.filter(|cell| cell.dut == curve.name && cell.at == *row.at);
        let all = &cells.next()?.distributions;
        let is_own = |one: &&MeasuredDistribution| one.metric == table.metric.id && one.count > 0;
        let starts: Vec<_> = all.iter().filter(is_own).collect();
        let levels = levels(&starts);
        (!levels.is_empty()).then(|| (curve.colour, curve.name.to_owned(), starts.len(), levels))
    };
    let found: Vec<_> = curves.iter().copied().filter_map(of_curve).collect();
    let levels = || found.iter().flat_map(|(.., levels)| levels);
    // A tail leaves a linear scale no room for the rest.
    let is_positive = levels().all(|(_, [low, ..])| *low > 0.0);
    let shown = levels().filter(|(share, _)| is_positive || (0.05..=0.95).contains(share));
    let mut values: Vec<f64> = shown.flat_map(|(_, [low, _, high])| [*low, *high]).collect();
    if values.is_empty() {
        return None;
    }
    values.extend(row.published.iter().flat_map(|one| [Some(one.value), one.to]).flatten());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let wants_log = values.iter().copied().fold(0.0, f64::max) / least > 8.0;
    let x = Scale::new(&values, wants_log, (LEFT, WIDTH - LEFT - 14.0));
    let y = Scale::between(0.0, 1.0, (BOTTOM, TOP - BOTTOM));
    let labels = x.ticks().into_iter().map(|value| (x.place(value), tick(value)));
    let mut inside = frame(&y, labels, &table.values_name());
    for one in &row.published {
        let (from, to) = (x.place(one.value), x.place(one.to.unwrap_or(one.value)));
        let text = format!("published: {} {}", one.switch, published(one, table.metric.decimals));
        inside += markup!(
            "<g><title>{}</title><path class=\"old\" d=\"M{} {}V{}\"/><text class=\"soft small\" \
             transform=\"translate({} {}) rotate(-90)\">{}</text></g>",
            text,
            (from + to) / 2.0,
            TOP,
            BOTTOM,
            (from + to) / 2.0 - 4.0,
            BOTTOM - 6.0,
            clipped(&one.switch, 30)
        );
    }
    let (x, y) = (&x, &y);
    for (colour, name, starts, levels) in &found {
        let line =
            |of: usize| levels.iter().map(move |(share, at)| (x.place(at[of]), y.place(*share)));
        let (low, middle, high) = (line(0), line(1), line(2).rev());
        let (start, many) = section.turns();
        let starts = crate::present::number::count(*starts, start, many);
        inside += markup!(
            "<g class=\"c{} d{0}\"><title>{}, {}</title><path class=\"band\" d=\"{}z\"/>\
             <path class=\"line\" d=\"{}\"/></g>",
            *colour,
            name,
            starts,
            path(&low.chain(high).collect::<Vec<_>>()),
            path(&middle.collect::<Vec<_>>())
        );
    }
    Some(drawing(&format!("Distribution of {}", table.values_label()), HEIGHT, inside))
}
