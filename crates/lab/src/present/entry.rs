//! Entry of a table for a switch and a metric: a figure, or the reason that there is none.
//!
//! It must never be blank, and never show an interval that so few samples do not carry.

use std::collections::BTreeMap;

use crate::limit::Limit;
use crate::results::{CellResults, CellState, ResultRow, ScenarioResults, TrialRecord, UpperLimit};
use crate::stall;
use crate::stats::{Reported, reported_mean_within, summarise};

use super::number::number;

/// The content of a table's cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableEntry<'a> {
    /// It was measured.
    Figure(Box<ShownFigure<'a>>),
    /// The switch cannot do this.
    NotSupported(&'a str),
    /// A program is missing.
    Missing(&'a str),
    /// It failed.
    Failed(&'a str),
    /// There was no time left.
    Skipped(&'a str),
    /// The run has not come to it.
    Pending(&'a str),
    /// The run has no such cell, or the cell has no such metric.
    NotMeasured,
}

/// A figure with what has to be said beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShownFigure<'a> {
    /// The cell.
    pub(crate) cell: &'a CellResults,
    /// The samples.
    pub(crate) row: &'a ResultRow,
    /// The figure.
    pub(crate) value: f64,
    /// Its 99 % interval, from low to high; none where the repeats are too few to know one.
    pub(crate) interval: Option<(f64, f64)>,
    /// Repeats needed until its interval is no wider than itself, where that is known.
    needed: Option<usize>,
    /// Repeats that the machine spoiled in every attempt. What spoiled them may have spoiled the
    /// others less visibly, so no interval is claimed.
    spoilt: usize,
    /// Whether it is not above the lab's own floor.
    pub(crate) is_below_floor: bool,
    /// The part that limited the trials of its method.
    pub(crate) limit: Option<&'a Limit>,
    /// The least of what it can be at most.
    pub(crate) bound: Option<&'a UpperLimit>,
}

impl ShownFigure<'_> {
    /// The figure with its interval; the samples' range where so few repeats leave it unknown.
    pub(crate) fn text(&self, decimals: usize) -> String {
        let value = number(self.value, decimals);
        match self.interval {
            Some(_) if self.is_constant() => value,
            Some((low, high)) if is_symmetric(self.value, low, high) => {
                format!("{value} ± {}", number((high - low) / 2.0, decimals))
            }
            Some((low, high)) => {
                format!("{value} ({}–{})", number(low, decimals), number(high, decimals))
            }
            None => {
                let samples = self.row.samples.iter().copied();
                let low = samples.clone().reduce(f64::min).unwrap_or(self.value);
                let high = samples.reduce(f64::max).unwrap_or(self.value);
                let (low, high) = (number(low, decimals), number(high, decimals));
                if low == high { value } else { format!("{low}…{high}") }
            }
        }
    }

    /// Whether the repeats do not differ, as those of a count.
    fn is_constant(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low >= high)
    }

    /// The error of the clocks of two boxes, where it is not below the figure itself, in the
    /// metric's unit.
    pub(crate) fn exceeding_clock_error(&self) -> Option<f64> {
        self.row.clock_error.filter(|error| *error >= self.value.abs())
    }

    /// Remarks on the figure: floor, clocks, repeats.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_below_floor {
            remarks.push("below the floor".to_owned());
        }
        if let Some(error) = self.exceeding_clock_error() {
            // More repeats would not narrow it.
            remarks.push(format!("clock error of {error:.1} µs exceeds it"));
        } else if self.spoilt > 0 {
            let (spoilt, all) = (self.spoilt, self.spoilt + self.row.samples.len());
            remarks.push(format!("doubtful: the machine stalled in {spoilt} of {all} repeats"));
        } else if self.interval.is_none() {
            let needed = self.needed.map_or(String::new(), |n| format!(", needs {n}"));
            remarks.push(format!("too few repeats: {}{needed}", self.row.samples.len()));
        }
        remarks
    }
}

/// Whether both ends are as far from the value, but for rounding.
fn is_symmetric(value: f64, low: f64, high: f64) -> bool {
    ((high - value) - (value - low)).abs() <= 1e-6 * (high - low)
}

impl<'a> TableEntry<'a> {
    /// The entry of a cell for a metric that `method` yields.
    pub(crate) fn new(
        cell: Option<&'a CellResults>,
        metric: &'a str,
        method: Option<&str>,
    ) -> Self {
        let Some(cell) = cell else { return Self::NotMeasured };
        match &cell.state {
            CellState::NotSupported(reason) => return Self::NotSupported(reason),
            CellState::Missing(reason) => return Self::Missing(reason),
            CellState::Failed(reason) => return Self::Failed(reason),
            CellState::Skipped(reason) => return Self::Skipped(reason),
            CellState::Pending(reason) => return Self::Pending(reason),
            CellState::Measured => {}
        }
        let Some(row) = cell.row(metric) else {
            return error_of(cell, method).map_or(Self::NotMeasured, Self::Failed);
        };
        let Some(Printable { value, interval, needed }) = printable(row) else {
            return Self::NotMeasured;
        };
        let spoilt = spoilt_repeats(cell, method);
        Self::Figure(Box::new(ShownFigure {
            cell,
            row,
            value,
            interval: interval.filter(|_| spoilt == 0),
            needed,
            spoilt,
            is_below_floor: row.floor.is_some_and(|floor| value <= floor),
            limit: method.and_then(|method| cell.limit(method)),
            bound: bound(cell, metric),
        }))
    }

    /// The figure, if there is one.
    pub(crate) fn figure(&self) -> Option<&ShownFigure<'a>> {
        match self {
            Self::Figure(figure) => Some(figure),
            Self::NotSupported(_)
            | Self::Missing(_)
            | Self::Failed(_)
            | Self::Skipped(_)
            | Self::Pending(_)
            | Self::NotMeasured => None,
        }
    }

    /// The words instead of a figure, and the reason.
    pub(crate) fn absence(&self) -> Option<(&'static str, &'a str)> {
        match self {
            Self::Figure(_) => None,
            Self::NotSupported(reason) => Some(("not supported", reason)),
            Self::Missing(reason) => Some(("missing here", reason)),
            Self::Failed(reason) => Some(("failed", reason)),
            Self::Skipped(reason) => Some(("no time left", reason)),
            Self::Pending(reason) => Some(("not measured", reason)),
            Self::NotMeasured => Some(("not measured", "")),
        }
    }
}

/// The least of the upper limits of a metric.
fn bound<'a>(cell: &'a CellResults, metric: &str) -> Option<&'a UpperLimit> {
    let of_metric = cell.bounds.iter().filter(|bound| bound.metric == metric);
    of_metric.min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Printable form of samples.
struct Printable {
    value: f64,
    interval: Option<(f64, f64)>,
    needed: Option<usize>,
}

/// The mean, its interval where the repeats carry one, and how many repeats it would take.
fn printable(row: &ResultRow) -> Option<Printable> {
    let value = summarise(&row.samples)?.mean;
    Some(match reported_mean_within(&row.samples, &row.resolutions)? {
        Reported::Known { interval, .. } => {
            Printable { value, interval: Some((interval.low, interval.high)), needed: None }
        }
        Reported::Single { .. } => Printable { value, interval: None, needed: None },
        Reported::TooFew { needed, .. } => Printable { value, interval: None, needed },
    })
}

/// Number of the method's repeats that stalls of the machine spoiled in every attempt.
fn spoilt_repeats(cell: &CellResults, method: Option<&str>) -> usize {
    let of_method = |trial: &&TrialRecord| method.is_none_or(|method| method == trial.method);
    let mut repeats: BTreeMap<usize, bool> = BTreeMap::new();
    for trial in cell.trials.iter().filter(of_method) {
        let is_stalled = trial.error.as_deref().is_some_and(stall::is_error);
        *repeats.entry(trial.repeat).or_insert(true) &= is_stalled;
    }
    repeats.values().filter(|is_spoilt| **is_spoilt).count()
}

/// Why no trial of the method gave a value.
fn error_of<'a>(cell: &'a CellResults, method: Option<&str>) -> Option<&'a str> {
    let of_method = |name: &str| method.is_none_or(|method| method == name);
    let mut trials = cell.trials.iter().filter(|trial| of_method(&trial.method));
    trials.find_map(|trial| trial.error.as_deref())
}

/// The method whose trials yield a metric.
pub(crate) fn method_of<'a>(scenario: &'a ScenarioResults, metric: &str) -> Option<&'a str> {
    let trials = scenario.cells.iter().flat_map(|cell| &cell.trials);
    let mut yielding = trials.filter(|trial| trial.values.contains_key(metric));
    yielding.next().map(|trial| trial.method.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{add, empty};
    use super::TableEntry;
    use crate::results::{CellState, Coordinates};

    const STALLED: &str = "the machine stalled for 60 ms";

    #[test]
    fn a_repeat_that_stalls_spoiled_casts_doubt_on_the_others() {
        let shown = |spoilt: usize| {
            let mut cell = empty("weir", &Coordinates::new(), CellState::Measured);
            add(&mut cell, "entries", None, &[8_190.0, 8_191.0, 8_192.0]);
            for attempt in 0..3 {
                for repeat in 0..spoilt {
                    let mut trial = cell.trials[0].clone();
                    trial.values.clear();
                    (trial.repeat, trial.attempt) = (3 + repeat, attempt);
                    trial.error = Some(STALLED.to_owned());
                    cell.trials.push(trial);
                }
            }
            // An attempt that is made again and succeeds spoils nothing.
            let mut again = cell.trials[0].clone();
            again.error = Some(STALLED.to_owned());
            cell.trials.insert(0, again);
            let entry = TableEntry::new(Some(&cell), "entries", Some("method-entries"));
            let figure = entry.figure().unwrap();
            (figure.interval.is_some(), figure.text(0), figure.remarks())
        };
        let (has_interval, text, remarks) = shown(0);
        assert!(has_interval && remarks.is_empty(), "{text} {remarks:?}");
        let (has_interval, text, remarks) = shown(1);
        assert!(!has_interval && text.contains('…'), "{text}");
        assert_eq!(remarks, ["doubtful: the machine stalled in 1 of 4 repeats"]);
        assert_eq!(shown(2).2, ["doubtful: the machine stalled in 2 of 5 repeats"]);
    }
}
