//! Two runs beside each other: what changed between them, row by row.
//!
//! Rows of one scenario, switch, point and metric are compared by their samples, which are no
//! pairs: by Hodges and Lehmann's ratio with Mann and Whitney's interval from five samples of each
//! on, of fewer by Welch's t of the logarithms. They are judged with all comparisons counted (Holm,
//! on Welch's p-values, because those by ranks hold with no usual number of samples). What the
//! trials' resolution leaves open is part of the interval: it may have gone one way in a whole run.
//! It must never call a difference a change that the number of comparisons makes likely by chance.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::facts::Machine;
use crate::results::Better;
use crate::results::{CellState, Coordinates, ResultRow, Results, ScenarioResults};
use crate::stats::{CONFIDENCE, Interval, holm, mann_whitney, quantile, unpaired_ratio};

/// Verdict of a row on the second run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// Better, at 99 % with all comparisons counted.
    Better,
    /// Worse, so counted.
    Worse,
    /// Better, at 99 % for this row alone.
    BetterAlone,
    /// Worse, at 99 % for this row alone.
    WorseAlone,
    /// No change was seen.
    NoChange,
    /// So few samples leave the change unknown: its 99 % interval is wider than itself.
    TooFew,
}

impl RowVerdict {
    /// A few words for tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::BetterAlone => "better by itself",
            Self::WorseAlone => "worse by itself",
            Self::NoChange => "no change seen",
            Self::TooFew => "too few samples",
        }
    }
}

/// One row in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowChange {
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
    /// The unit of both medians, and of the shift.
    pub unit: String,
    /// Decimals that are printed.
    pub decimals: usize,
    /// The metric's good direction.
    pub better: Better,
    /// The median of the first run's samples.
    pub first: f64,
    /// The median of the second run's samples.
    pub second: f64,
    /// Number of each run's samples.
    pub samples: (usize, usize),
    /// Second by first; none where a sample is not above zero.
    pub ratio: Option<f64>,
    /// Second less first.
    pub shift: f64,
    /// The 99 % interval of the ratio, or of the shift where there is no ratio; of too few samples
    /// the widest that there is.
    pub interval: (f64, f64),
    /// The p-value of the row alone.
    pub p_value: f64,
    /// The p-value with all comparisons counted (Holm).
    pub p_adjusted: f64,
    /// Its verdict.
    pub verdict: RowVerdict,
}

/// Two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// Differences of the runs besides their figures: machine, versions, settings.
    pub differences: Vec<String>,
    /// The rows that both have.
    pub rows: Vec<RowChange>,
    /// The rows of the first run only, with the reason where it is known.
    pub only_first: Vec<String>,
    /// The rows of the second run only, with the reason where it is known.
    pub only_second: Vec<String>,
}

impl RunComparison {
    /// Number of rows with that verdict.
    #[must_use]
    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Whether something is worse with all comparisons counted.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count(RowVerdict::Worse) > 0
    }
}

/// A row's place in a run: scenario, switch, point, metric.
type RowKey<'a> = (&'a str, &'a str, &'a Coordinates, &'a str);

/// A row with its scenario.
type RowValue<'a> = (&'a ScenarioResults, &'a ResultRow);

/// Compares two runs.
#[must_use]
pub fn compare(first: &Results, second: &Results) -> RunComparison {
    let (before, after) = (rows_of(first), rows_of(second));
    let mut rows: Vec<RowChange> = before
        .iter()
        .filter_map(|(key, value)| row_change(*key, *value, after.get(key)?.1))
        .collect();
    let p_values: Vec<f64> = rows.iter().map(|row| row.p_value).collect();
    for (row, adjusted) in rows.iter_mut().zip(holm(&p_values)) {
        row.p_adjusted = adjusted;
        row.verdict = verdict(row);
    }
    let missing = |of: &BTreeMap<RowKey<'_>, _>, other: &BTreeMap<RowKey<'_>, _>, run: &Results| {
        let only = of.keys().filter(|key| !other.contains_key(*key));
        only.map(|key| absent(*key, run)).collect()
    };
    RunComparison {
        differences: differences(first, second),
        only_first: missing(&before, &after, second),
        only_second: missing(&after, &before, first),
        rows,
    }
}

fn rows_of(run: &Results) -> BTreeMap<RowKey<'_>, RowValue<'_>> {
    let mut rows = BTreeMap::new();
    for scenario in &run.scenarios {
        for cell in &scenario.cells {
            for row in &cell.rows {
                let key = (scenario.id.as_str(), cell.dut.as_str(), &cell.at, row.metric.as_str());
                rows.entry(key).or_insert((scenario, row));
            }
        }
    }
    rows
}

fn row_change(
    (scenario, dut, at, metric): RowKey<'_>,
    (scenario_found, first): RowValue<'_>,
    second: &ResultRow,
) -> Option<RowChange> {
    let info = scenario_found.metric(metric)?;
    let shift = Estimate::of_shift(&first.samples, &second.samples)?;
    let pairs = [
        [first.samples.clone(), second.samples.clone()],
        [highest(first), lowest(second)],
        [lowest(first), highest(second)],
    ];
    let all = |of: fn(&[f64], &[f64]) -> Option<Estimate>| -> Option<Vec<Estimate>> {
        pairs.iter().map(|[first, second]| of(first, second)).collect()
    };
    let ratios = all(Estimate::of_ratio);
    let (ratio, all, none) = match ratios {
        Some(ratios) => (Some(ratios[0].value), ratios, 1.0),
        None => (None, all(Estimate::of_shift)?, 0.0),
    };
    // A t-interval has its confidence of any two samples, and may still say nothing.
    let says_something = ratio.is_none_or(|ratio| all[0].interval.width() <= ratio);
    let is_known = all[0].interval.reaches(CONFIDENCE) && says_something;
    let least = |of: fn(&Estimate) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Estimate) -> f64| all.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = (least(|one| one.interval.low), most(|one| one.interval.high));
    // Where it is not known which way, the evidence for both is none.
    let is_either = least(|one| one.value) < none && most(|one| one.value) > none;
    let is_open = !(first.resolutions.is_empty() && second.resolutions.is_empty());
    let p_value = if is_open && is_either { 1.0 } else { most(|one| one.p_value) };
    Some(RowChange {
        scenario: scenario.to_owned(),
        dut: dut.to_owned(),
        at: at.clone(),
        metric: metric.to_owned(),
        label: info.label.clone(),
        unit: info.unit.clone(),
        decimals: info.decimals,
        better: info.better,
        first: median(&first.samples),
        second: median(&second.samples),
        samples: (first.samples.len(), second.samples.len()),
        ratio,
        shift: shift.value,
        interval: (low, high),
        p_value,
        p_adjusted: 1.0,
        verdict: if is_known { RowVerdict::NoChange } else { RowVerdict::TooFew },
    })
}

/// Difference or ratio of the second of two sets of samples to the first.
struct Estimate {
    value: f64,
    interval: Interval,
    p_value: f64,
}

impl Estimate {
    fn of_shift(first: &[f64], second: &[f64]) -> Option<Self> {
        let shift = mann_whitney(second, first, CONFIDENCE).ok()?;
        Some(Self { value: shift.estimate, interval: shift.interval, p_value: shift.p_value })
    }

    /// `None` where a sample is not above zero, or there are too few.
    fn of_ratio(first: &[f64], second: &[f64]) -> Option<Self> {
        let ratio = unpaired_ratio(second, first, CONFIDENCE).ok()?;
        let (value, interval) = match ratio.ranks.interval.reaches(CONFIDENCE) {
            true => (ratio.ranks.estimate, ratio.ranks.interval),
            false => (ratio.geometric_mean, ratio.t_interval),
        };
        Some(Self { value, interval, p_value: ratio.t_p_value })
    }
}

/// The lowest values that agree with what a row's trials saw.
fn lowest(row: &ResultRow) -> Vec<f64> {
    match row.resolutions.as_slice() {
        [] => row.samples.clone(),
        open => open.iter().map(|(low, _)| *low).collect(),
    }
}

/// The highest of them.
fn highest(row: &ResultRow) -> Vec<f64> {
    match row.resolutions.as_slice() {
        [] => row.samples.clone(),
        open => open.iter().map(|(_, high)| *high).collect(),
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

fn verdict(row: &RowChange) -> RowVerdict {
    if row.verdict == RowVerdict::TooFew {
        return RowVerdict::TooFew;
    }
    let none = if row.ratio.is_some() { 1.0 } else { 0.0 };
    let (low, high) = row.interval;
    let is_more = low > none;
    if !is_more && high >= none {
        return RowVerdict::NoChange;
    }
    let is_better = is_more == (row.better == Better::Higher);
    match (row.p_adjusted <= 1.0 - CONFIDENCE, is_better) {
        (true, true) => RowVerdict::Better,
        (true, false) => RowVerdict::Worse,
        (false, true) => RowVerdict::BetterAlone,
        (false, false) => RowVerdict::WorseAlone,
    }
}

/// A row that `run` does not have, with what its cell says there.
fn absent((scenario, dut, at, metric): RowKey<'_>, run: &Results) -> String {
    let place: Vec<String> = at.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    let place = if place.is_empty() { String::new() } else { format!(" at {}", place.join(", ")) };
    let name = format!("{scenario}, {dut}{place}: {metric}");
    let mut cells = run.scenarios.iter().filter(|s| s.id == scenario).flat_map(|s| &s.cells);
    let Some(cell) = cells.find(|cell| cell.dut == dut && cell.at == *at) else { return name };
    match &cell.state {
        CellState::Measured => format!("{name} (no trial gave it in the other)"),
        CellState::NotSupported(why) => format!("{name} (not supported in the other: {why})"),
        CellState::Missing(why) => format!("{name} (missing in the other: {why})"),
        CellState::Failed(why) => format!("{name} (failed in the other: {why})"),
        CellState::Skipped(why) => format!("{name} (no time left in the other: {why})"),
        CellState::Pending(why) => format!("{name} (not measured in the other: {why})"),
    }
}

/// Differences of two runs besides their figures.
#[must_use]
pub fn differences(first: &Results, second: &Results) -> Vec<String> {
    let (a, b) = (&first.machine, &second.machine);
    let pairs = [
        ("processor", a.cpu.clone(), b.cpu.clone()),
        ("cores", a.cores.to_string(), b.cores.to_string()),
        ("memory, MiB", a.memory_mib.to_string(), b.memory_mib.to_string()),
        ("kernel", a.kernel.clone(), b.kernel.clone()),
        ("system", a.os.clone(), b.os.clone()),
        ("real time", real_time(a), real_time(b)),
        ("weir", first.weir.clone(), second.weir.clone()),
        ("quick", first.is_quick.to_string(), second.is_quick.to_string()),
    ];
    let mut found: Vec<String> = pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(name, a, b)| format!("{name}: {a} → {b}"))
        .collect();
    let versions = |run: &Results| -> BTreeMap<String, String> {
        run.programs.iter().map(|p| (p.name.clone(), p.version.clone())).collect()
    };
    found.extend(changed("", &versions(first), &versions(second)));
    for scenario in &first.scenarios {
        let Some(other) = second.scenarios.iter().find(|other| other.id == scenario.id) else {
            continue;
        };
        if scenario.source != other.source {
            found.push(format!("{}: the scenario's file is another", scenario.id));
        }
        let prefix = format!("{}: ", scenario.id);
        found.extend(changed(&prefix, &scenario.conditions, &other.conditions));
    }
    found
}

fn real_time(machine: &Machine) -> String {
    machine.real_time_error.clone().unwrap_or_else(|| "permitted".to_owned())
}

fn changed(
    prefix: &str,
    first: &BTreeMap<String, String>,
    second: &BTreeMap<String, String>,
) -> Vec<String> {
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let value = |of: &BTreeMap<String, String>, name: &String| {
        of.get(name).cloned().unwrap_or_else(|| "-".to_owned())
    };
    let differing = names.into_iter().filter(|name| first.get(*name) != second.get(*name));
    differing
        .map(|name| format!("{prefix}{name}: {} → {}", value(first, name), value(second, name)))
        .collect()
}

#[cfg(test)]
mod tests;
