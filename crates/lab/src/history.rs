//! Many runs in the order of time: from which run on a figure is another.
//!
//! The unit is a run: each row's series of figures, the medians of starts, is searched for change
//! points; no threshold is chosen. Beside a change stands what else changed at that run. It must
//! never take the order of files for that of time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::differences;
use crate::results::Better;
use crate::results::{Coordinates, Results};
use stats::{ChangeSettings, change_points, median};

/// A change of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryChange {
    /// When the first run behind it started.
    pub since: String,
    /// Its number among the runs, from 0.
    pub run: usize,
    /// The median of the runs before, back to the change before.
    pub before: f64,
    /// The median of the runs from it on, up to the next change.
    pub after: f64,
    /// By how much it grew, as a share of what it was.
    pub relative: Option<f64>,
    /// The p-value of the permutation test.
    pub p_value: f64,
    /// Whether it is for the better.
    pub is_better: bool,
    /// Further differences from the run before: machine, versions, settings.
    pub differences: Vec<String>,
}

/// A row over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryRow {
    /// The scenario's name on the command line.
    pub scenario: String,
    /// The switch.
    pub dut: String,
    /// Position on the axes.
    pub at: Coordinates,
    /// The metric's key.
    pub metric: String,
    /// The metric's name in tables.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// Decimals that are printed.
    pub decimals: usize,
    /// The runs that have it, from 0, with the median of their samples.
    pub medians: Vec<(usize, f64)>,
    /// From which runs on it is another.
    pub changes: Vec<HistoryChange>,
}

/// All runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// When each run started, in order.
    pub runs: Vec<String>,
    /// Runs that a row needs for a change to be seen.
    pub runs_needed: usize,
    /// The rows.
    pub rows: Vec<HistoryRow>,
}

/// Number of runs that show a step in their middle for sure: by chance, runs in any order divide as
/// well as a step in 2 of all choices of a half, which is to be half of the significance at most
/// (the test estimates it by shuffling).
fn runs_needed(settings: &ChangeSettings) -> usize {
    let by_chance = |runs: usize| {
        let half = runs / 2;
        let choices: f64 = (1..=half).map(|k| (runs - half + k) as f64 / k as f64).product();
        2.0 / choices
    };
    let is_enough = |runs: &usize| by_chance(*runs) <= settings.significance / 2.0;
    (2 * settings.segment_min..).find(is_enough).unwrap_or(usize::MAX)
}

/// A row's place in a run, and what is said of it.
type HistoryKey = (String, String, Coordinates, String);

/// The history of the runs, whatever their order.
#[must_use]
pub fn history(mut runs: Vec<Results>) -> History {
    let settings = ChangeSettings::default();
    runs.sort_by(|a, b| a.started.cmp(&b.started));
    let mut rows: BTreeMap<HistoryKey, (HistoryRow, Better)> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        for scenario in &run.scenarios {
            for cell in &scenario.cells {
                for row in &cell.rows {
                    let Some(metric) = scenario.metric(&row.metric) else { continue };
                    let Some(median) = median(&row.samples) else { continue };
                    let key = (
                        scenario.id.clone(),
                        cell.dut.clone(),
                        cell.at.clone(),
                        row.metric.clone(),
                    );
                    let new = || HistoryRow {
                        scenario: scenario.id.clone(),
                        dut: cell.dut.clone(),
                        at: cell.at.clone(),
                        metric: metric.id.clone(),
                        label: metric.label.clone(),
                        unit: metric.unit.clone(),
                        decimals: metric.decimals,
                        medians: Vec::new(),
                        changes: Vec::new(),
                    };
                    let (known, _) = rows.entry(key).or_insert_with(|| (new(), metric.better));
                    known.medians.push((number, median));
                }
            }
        }
    }
    let rows = rows.into_values().map(|(mut row, better)| {
        row.changes = changes(&row.medians, better, &runs, &settings);
        row
    });
    History {
        runs: runs.iter().map(|run| run.started.clone()).collect(),
        runs_needed: runs_needed(&settings),
        rows: rows.collect(),
    }
}

fn changes(
    medians: &[(usize, f64)],
    better: Better,
    runs: &[Results],
    settings: &ChangeSettings,
) -> Vec<HistoryChange> {
    let series: Vec<f64> = medians.iter().map(|(_, median)| *median).collect();
    // The medians are finite, which is all that the search asks for.
    let found = change_points(&series, settings).unwrap_or_default();
    let change = |point: stats::ChangePoint| {
        let (run, _) = *medians.get(point.index)?;
        let (before, _) = *medians.get(point.index.checked_sub(1)?)?;
        Some(HistoryChange {
            since: runs.get(run)?.started.clone(),
            run,
            before: point.before,
            after: point.after,
            relative: Some(point.relative()).filter(|relative| relative.is_finite()),
            p_value: point.p_value,
            is_better: (point.after > point.before) == (better == Better::Higher),
            differences: differences(runs.get(before)?, runs.get(run)?),
        })
    };
    found.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests;
