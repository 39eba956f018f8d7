//! Two runs beside each other: what changed between them, row by row.
//!
//! Rows of one scenario, switch, point and metric are compared by their starts, the first of one
//! run with the first of the other and so on: what warms up or slows down in the course of a run
//! cancels. Whether something is worse is judged with all comparisons counted (Holm). It must never
//! take two trials of one start for two.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::facts::Machine;
use crate::results::Better;
use crate::results::{CellState, Coordinates, ResultRow, Results, ScenarioResults};
use stats::{CONFIDENCE, Comparison, Scale, holm, median};

/// Verdict of a row on the second run, by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// Better: its interval leaves out that there is no change.
    Better,
    /// Worse, likewise.
    Worse,
    /// No change was seen.
    NoChange,
    /// One start in common has no interval.
    SingleStart,
}

impl RowVerdict {
    /// A few words for tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoChange => "no change seen",
            Self::SingleStart => "one start: not known",
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
    /// The median of the first run's starts.
    pub first: f64,
    /// The median of the second run's starts.
    pub second: f64,
    /// Number of each run's starts.
    pub starts: (usize, usize),
    /// Second by first; none where a value is not above zero.
    pub ratio: Option<f64>,
    /// Second less first: of the medians, or without a ratio the mean of the pairs' differences.
    pub shift: f64,
    /// The 95 % interval of the ratio, or of the shift where there is no ratio; none of one start.
    pub interval: Option<(f64, f64)>,
    /// The p-value of the row alone.
    pub p_value: f64,
    /// The p-value with all comparisons counted (Holm).
    pub p_adjusted: f64,
    /// Its verdict, by itself.
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

    /// Number of rows with that verdict that hold with all comparisons counted.
    #[must_use]
    pub fn count_together(&self, verdict: RowVerdict) -> usize {
        let rows = self.rows.iter().filter(|row| row.verdict == verdict);
        rows.filter(|row| row.p_adjusted <= 1.0 - CONFIDENCE).count()
    }

    /// Whether something is worse with all comparisons counted.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count_together(RowVerdict::Worse) > 0
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
    let (first_median, second_median) = (median(&first.samples)?, median(&second.samples)?);
    let found = second.beside(first);
    let is_ratio = found.is_none_or(|found| found.scale == Scale::Ratio);
    let of_medians = second_median / first_median;
    let ratio = found.map_or(of_medians, |found| found.estimate);
    Some(RowChange {
        scenario: scenario.to_owned(),
        dut: dut.to_owned(),
        at: at.clone(),
        metric: metric.to_owned(),
        label: info.label.clone(),
        unit: info.unit.clone(),
        decimals: info.decimals,
        better: info.better,
        first: first_median,
        second: second_median,
        starts: (first.samples.len(), second.samples.len()),
        ratio: Some(ratio).filter(|ratio| is_ratio && ratio.is_finite()),
        shift: found.filter(|_| !is_ratio).map_or(second_median - first_median, |f| f.estimate),
        interval: found.map(|found| (found.low, found.high)),
        p_value: found.map_or(1.0, |found| found.p_value),
        p_adjusted: 1.0,
        verdict: found.map_or(RowVerdict::SingleStart, |found| verdict(&found, info.better)),
    })
}

fn verdict(found: &Comparison, better: Better) -> RowVerdict {
    match (found.is_different(), (found.estimate > found.none()) == (better == Better::Higher)) {
        (false, _) => RowVerdict::NoChange,
        (true, true) => RowVerdict::Better,
        (true, false) => RowVerdict::Worse,
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
