//! Entry of a table for a switch and a metric: a figure, or the reason that there is none.
//!
//! It must never be blank, and never show an interval that so few samples do not carry.

use crate::limit::Limit;
use crate::results::{CellResults, CellState, ResultRow, ScenarioResults, UpperLimit};
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
        Self::Figure(Box::new(ShownFigure {
            cell,
            row,
            value,
            interval,
            needed,
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
