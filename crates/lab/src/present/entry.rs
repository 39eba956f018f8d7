//! Entry of a table for a switch and a metric: a figure, or the reason that there is none.
//!
//! It must never be blank, and never show a range beyond what was seen or can be.

use std::collections::BTreeMap;

use crate::limit::Limit;
use crate::results::{CellResults, ResultRow, ScenarioResults, TrialRecord, UpperLimit};
use crate::stall;
use stats::Figure;

use super::number::with_range;

/// A figure, or the words instead of it with their reason.
pub(crate) type Entry<'a> = Result<ShownFigure<'a>, (&'static str, &'a str)>;

/// The run has no such cell, or the cell has no such metric.
pub(crate) const NOT_MEASURED: (&str, &str) = ("not measured", "");

/// A figure with what has to be said beside it.
#[derive(Clone, Debug)]
pub(crate) struct ShownFigure<'a> {
    /// The samples.
    pub(crate) row: &'a ResultRow,
    /// The median of the starts.
    pub(crate) value: f64,
    /// From the lowest start to the highest.
    pub(crate) range: (f64, f64),
    /// Number of starts.
    pub(crate) starts: usize,
    /// Starts that the machine spoiled in every attempt. What spoiled them may have spoiled the
    /// others less visibly.
    spoilt: usize,
    /// The part that limited most trials of its method.
    pub(crate) limit: Option<&'a Limit>,
    /// The least of what it can be at most.
    pub(crate) bound: Option<&'a UpperLimit>,
}

/// The entry of a cell for a metric that `method` yields.
pub(crate) fn entry<'a>(
    cell: Option<&'a CellResults>,
    metric: &str,
    method: Option<&str>,
) -> Entry<'a> {
    let cell = cell.ok_or(NOT_MEASURED)?;
    if let Some(absence) = cell.state.absence() {
        return Err(absence);
    }
    let Some(row) = cell.row(metric) else {
        // Why no trial of the method gave a value.
        let error = trials_of(cell, method).find_map(|trial| trial.error.as_deref());
        return Err(error.map_or(NOT_MEASURED, |error| ("failed", error)));
    };
    let Figure { median, low, high, n } = row.figure().ok_or(NOT_MEASURED)?;
    let bounds = cell.bounds.iter().filter(|bound| bound.metric == metric);
    let bound = bounds.min_by(|a, b| a.value.total_cmp(&b.value));
    // No method that leaves something open goes beyond the arithmetic, but for what was seen.
    let seen = row.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(ShownFigure {
        row,
        value: median,
        range: (low, bound.map_or(high, |bound| high.min(bound.value.max(seen)))),
        starts: n,
        spoilt: spoilt_starts(cell, method),
        limit: method.and_then(|method| cell.limit(method)),
        bound,
    })
}

impl ShownFigure<'_> {
    /// The figure with its range: `487 [467–515]`.
    pub(crate) fn text(&self, decimals: usize) -> String {
        with_range(self.value, self.range, decimals)
    }

    /// Whether it is above the lab's own floor and the error of the clocks: else it says nothing
    /// about the switch.
    pub(crate) fn is_known(&self) -> bool {
        !self.is_below_floor() && self.exceeding_clock_error().is_none()
    }

    /// Whether its trials leave something open, so that its range is wider than its starts.
    pub(crate) fn leaves_open(&self) -> bool {
        self.row.resolutions.iter().any(|(low, high)| low < high)
    }

    fn is_below_floor(&self) -> bool {
        self.row.floor.is_some_and(|floor| self.value <= floor)
    }

    /// The error of the clocks of two boxes where it is not below the figure, in the same unit.
    fn exceeding_clock_error(&self) -> Option<f64> {
        self.row.clock_error.filter(|error| *error >= self.value.abs())
    }

    /// Remarks on the figure: floor, clocks, stalls.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_below_floor() {
            remarks.push("below the floor".to_owned());
        }
        if let Some(error) = self.exceeding_clock_error() {
            // More starts would not narrow it.
            remarks.push(format!("clock error of {error:.1} µs exceeds it"));
        } else if self.spoilt > 0 {
            let (spoilt, all) = (self.spoilt, self.spoilt + self.starts);
            remarks.push(format!("doubtful: the machine stalled in {spoilt} of {all} starts"));
        }
        remarks
    }
}

/// The trials of a method, or all.
fn trials_of<'a>(
    cell: &'a CellResults,
    method: Option<&str>,
) -> impl Iterator<Item = &'a TrialRecord> {
    cell.trials.iter().filter(move |trial| method.is_none_or(|method| method == trial.method))
}

/// Number of starts in which stalls of the machine spoiled the method's trials in every attempt.
fn spoilt_starts(cell: &CellResults, method: Option<&str>) -> usize {
    let mut starts: BTreeMap<usize, bool> = BTreeMap::new();
    for trial in trials_of(cell, method) {
        let is_stalled = trial.error.as_deref().is_some_and(stall::is_error);
        *starts.entry(trial.start).or_insert(true) &= is_stalled;
    }
    starts.values().filter(|is_spoilt| **is_spoilt).count()
}

/// The method whose trials yield a metric.
pub(crate) fn method_of<'a>(scenario: &'a ScenarioResults, metric: &str) -> Option<&'a str> {
    let mut trials = scenario.cells.iter().flat_map(|cell| &cell.trials);
    let yielding = trials.find(|trial| trial.values.contains_key(metric));
    yielding.map(|trial| trial.method.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{add, empty};
    use super::entry;
    use crate::results::{CellState, Coordinates, UpperLimit};

    const STALLED: &str = "the machine stalled for 60 ms";

    #[test]
    fn a_start_that_stalls_spoiled_casts_doubt_on_the_others() {
        let shown = |spoilt: usize| {
            let mut cell = empty("weir", &Coordinates::new(), CellState::Measured);
            add(&mut cell, "entries", None, &[8_190.0, 8_191.0, 8_192.0]);
            for attempt in 0..3 {
                for start in 0..spoilt {
                    let mut trial = cell.trials[0].clone();
                    trial.values.clear();
                    (trial.start, trial.attempt) = (3 + start, attempt);
                    trial.error = Some(STALLED.to_owned());
                    cell.trials.push(trial);
                }
            }
            // An attempt that is made again and succeeds spoils nothing.
            let mut again = cell.trials[0].clone();
            again.error = Some(STALLED.to_owned());
            cell.trials.insert(0, again);
            let figure = entry(Some(&cell), "entries", Some("method-entries")).unwrap();
            (figure.text(0), figure.remarks())
        };
        assert_eq!(shown(0), ("8,191 [8,190–8,192]".to_owned(), vec![]));
        assert_eq!(shown(1).1, ["doubtful: the machine stalled in 1 of 4 starts"]);
        assert_eq!(shown(2).1, ["doubtful: the machine stalled in 2 of 5 starts"]);
    }

    /// The committed run once printed 142,083 (99,073–185,932) beside "at most 148,810".
    #[test]
    fn a_range_is_never_beyond_the_arithmetic_but_for_what_was_seen() {
        let text = |samples: &[f64]| {
            let mut cell = empty("weir", &Coordinates::new(), CellState::Measured);
            add(&mut cell, "rate_pps", None, samples);
            let (value, by) = (148_810.0, "ports".to_owned());
            cell.bounds.push(UpperLimit { metric: "rate_pps".to_owned(), value, by });
            cell.rows[0].resolutions = samples.iter().map(|s| (s * 0.99, s * 1.05)).collect();
            entry(Some(&cell), "rate_pps", None).unwrap().text(0)
        };
        assert_eq!(text(&[130_000.0, 147_000.0]), "138,500 [128,700–148,810]");
        assert_eq!(text(&[130_000.0, 149_000.0]), "139,500 [128,700–149,000]");
        assert_eq!(text(&[100_000.0]), "100,000 [99,000–105,000]");
    }
}
