//! Entry of a table for a switch and a metric: a figure with its signs and remarks, or the reason
//! that there is none.
//!
//! It must never be blank, and never show a range beyond what was seen or can be.

use std::collections::BTreeMap;

use crate::limit::{Limit, Part};
use crate::names::distinct;
use crate::results::{CellResults, Metric, ResultRow, ScenarioResults, TrialRecord, UpperLimit};
use crate::stall;
use stats::Figure;

use super::number::{number, short_with_range, with_range};

/// A figure, or the words instead of it with their reason.
pub(crate) type Entry<'a> = Result<ShownFigure<'a>, (&'static str, &'a str)>;

/// The run has no such cell, or the cell has no such metric.
pub(crate) const NOT_MEASURED: (&str, &str) = ("not measured", "");

/// A figure with what has to be said beside it.
#[derive(Clone, Debug)]
pub(crate) struct ShownFigure<'a> {
    pub(crate) scenario: &'a ScenarioResults,
    pub(crate) cell: &'a CellResults,
    pub(crate) metric: &'a Metric,
    /// The number of its switch's colour.
    pub(crate) colour: usize,
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
    scenario: &'a ScenarioResults,
    cell: &'a CellResults,
    metric: &'a Metric,
    method: Option<&str>,
    colour: usize,
) -> Entry<'a> {
    if let Some(absence) = cell.state.absence() {
        return Err(absence);
    }
    let Some(row) = cell.row(&metric.id) else {
        // Why no trial of the method gave a value.
        let error = trials_of(cell, method).find_map(|trial| trial.error.as_deref());
        return Err(error.map_or(NOT_MEASURED, |error| ("failed", error)));
    };
    let Figure { median, low, high, n } = row.figure().ok_or(NOT_MEASURED)?;
    let bounds = cell.bounds.iter().filter(|bound| bound.metric == metric.id);
    let bound = bounds.min_by(|a, b| a.value.total_cmp(&b.value));
    // No method that leaves something open goes beyond the arithmetic, but for what was seen.
    let seen = row.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(ShownFigure {
        scenario,
        cell,
        metric,
        colour,
        row,
        value: median,
        range: (low, bound.map_or(high, |bound| high.min(bound.value.max(seen)))),
        starts: n,
        spoilt: spoilt_starts(cell, method),
        limit: method.and_then(|method| cell.limit(method)),
        bound,
    })
}

impl ScenarioResults {
    /// The unit of repetition: starts of a switch, or turns of one start.
    pub(crate) fn turns(&self) -> (&'static str, &'static str) {
        if self.is_held { ("turn", "turns") } else { ("start", "starts") }
    }
}

impl ShownFigure<'_> {
    /// The figure with its range: `487 [467–515]`.
    pub(crate) fn text(&self) -> String {
        with_range(self.value, self.range, self.metric.decimals)
    }

    /// The same in short: `147k [129–149]`.
    pub(crate) fn short_text(&self) -> String {
        short_with_range(self.value, self.range, self.metric.decimals)
    }

    /// The signs behind it: of a remark, and of the part that limited it.
    pub(crate) fn signs(&self) -> String {
        let remark = if self.remarks().is_empty() { "" } else { " ?" };
        self.mark().map_or_else(|| remark.to_owned(), |(sign, _)| format!("{remark} {sign}"))
    }

    /// The sign of the part that limited it, and its words.
    pub(crate) fn mark(&self) -> Option<(&'static str, &'static str)> {
        match self.limit?.part {
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

    /// Its starts and what limited it, for who points at it.
    pub(crate) fn starts_text(&self) -> String {
        let samples = self.row.samples.iter();
        let samples = samples.map(|sample| number(*sample, self.metric.decimals));
        let samples = samples.collect::<Vec<_>>().join("; ");
        let why = self.limit.map_or_else(String::new, |limit| format!(". {}", limit.why));
        format!("{}: {samples}{why}", self.scenario.turns().1)
    }

    /// Whether it is above the lab's own floor and the error of the clocks: else it says nothing
    /// about the switch.
    pub(crate) fn is_known(&self) -> bool {
        !self.is_below_floor() && self.exceeding_clock_error().is_none()
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

/// Meaning of the signs behind these figures; `more` is where the remarks stand in words.
pub(crate) fn meanings(figures: &[&ShownFigure<'_>], more: &str) -> Vec<String> {
    let marks = distinct(figures.iter().filter_map(|figure| figure.mark()));
    let marks: Vec<String> = marks.iter().map(|(sign, words)| format!("{sign} {words}")).collect();
    let limits = (!marks.is_empty()).then(|| format!("at its limit: {}", marks.join(", ")));
    let has_remark = figures.iter().any(|figure| !figure.remarks().is_empty());
    let why = "below the floor, clock error or doubtful";
    let remark = has_remark.then(|| format!("? not compared: {why}{more}"));
    // Trials that leave something open make a range wider than its starts.
    let mut open = figures.iter().flat_map(|figure| &figure.row.resolutions);
    let open = open.any(|(low, high)| low < high).then(|| {
        "ranges reach to what trials leave open, as a search between the load that passes and the \
         one that fails"
            .to_owned()
    });
    [limits, remark, open].into_iter().flatten().collect()
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
    use crate::results::{CellState, Coordinates, Metric, ScenarioResults, UpperLimit};

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
            let metric = Metric::higher("entries", "Entries", "", 0);
            let (scenario, method) = (ScenarioResults::default(), Some("method-entries"));
            let figure = entry(&scenario, &cell, &metric, method, 0).unwrap();
            (figure.text(), figure.remarks())
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
            let metric = Metric::higher("rate_pps", "Rate", "", 0);
            entry(&ScenarioResults::default(), &cell, &metric, None, 0).unwrap().text()
        };
        assert_eq!(text(&[130_000.0, 147_000.0]), "138,500 [128,700–148,810]");
        assert_eq!(text(&[130_000.0, 149_000.0]), "139,500 [128,700–149,000]");
        assert_eq!(text(&[100_000.0]), "100,000 [99,000–105,000]");
    }
}
