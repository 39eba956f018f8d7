//! Knowledge of a campaign: its ledger's lines, filed by scenario, switch and point, and the
//! results that they make.
//!
//! A run files each line that it writes, a run that goes on files those that are there, and a
//! reader files what it reads: all three know the same. It must never know what no line says, and
//! never make a sample of a trial that failed or stalled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ledger::{LedgerError, LedgerHead, LedgerLine, Stamped, read};
use crate::agent::clock::ClockComparison;
use crate::dut;
use crate::facts::{BoxFacts, Machine};
use crate::limit;
use crate::method::Method;
use crate::names::distinct;
use crate::results::{
    CellResults, CellState, Coordinates, FORMAT, Metric, PartEnd, ResultRow, Results, RunPart,
    ScenarioCell, ScenarioResults, TrialRecord,
};
use stats::{Observed, median};

/// Name in place of a method, for a trial that was none because the switch did not start.
pub(super) const START: &str = "start";

/// Of a scenario a switch at a point.
pub(super) type Place = (String, String, Coordinates);

/// The filed lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) head: Option<LedgerHead>,
    /// The trials of each cell; one without a line about its state is pending.
    pub(super) found: BTreeMap<Place, CellResults>,
    pub(super) notes: Vec<String>,
    /// The boxes of agents, by their addresses.
    pub(super) boxes: BTreeMap<String, BoxFacts>,
    /// The parts, with their ends.
    pub(super) parts: Vec<RunPart>,
}

/// The results in a ledger, or in that of a run's folder; an incomplete last line is ignored.
pub fn results_of(path: &Path) -> Result<Results, LedgerError> {
    let (file, lines) = read(path)?;
    let none = || LedgerError::new(file.display(), "the run has not begun to measure");
    Record::of(lines).results().ok_or_else(none)
}

impl Record {
    /// Files lines.
    pub(super) fn of(lines: Vec<Stamped>) -> Self {
        let mut record = Self::default();
        lines.into_iter().for_each(|line| record.apply(line));
        record
    }

    /// Files a line.
    pub(super) fn apply(&mut self, stamped: Stamped) {
        if let Some(part) = self.parts.last_mut() {
            part.duration_s = part.duration_s.map(|known| known.max(stamped.at_s));
        }
        match stamped.line {
            LedgerLine::Head(head) => self.head = Some(head),
            LedgerLine::Part(part) => {
                let (duration_s, end) = (Some(0.0), Some(PartEnd::CutOff));
                self.parts.push(RunPart { duration_s, end, ..*part });
            }
            LedgerLine::Start { scenario, dut, start, at, commands } => {
                for at in at {
                    let cell = self.cell(&scenario, &dut, at);
                    cell.trials.retain(|trial| trial.start != start);
                    cell.distributions.retain(|one| one.start != start);
                    cell.state = CellState::default();
                    if cell.commands.is_empty() {
                        cell.commands.clone_from(&commands);
                    }
                }
            }
            LedgerLine::Trial { scenario, dut, at, mut trial } => {
                let cell = self.cell(&scenario, &dut, at);
                cell.distributions.append(&mut trial.distributions);
                cell.trials.push(*trial);
            }
            LedgerLine::State { scenario, dut, at, state } => {
                self.cell(&scenario, &dut, at).state = state;
            }
            LedgerLine::Box(of) => {
                self.boxes.insert(of.address.clone(), of);
            }
            LedgerLine::Note { text } if self.notes.contains(&text) => {}
            LedgerLine::Note { text } => self.notes.push(text),
            LedgerLine::End { end } => {
                if let Some(part) = self.parts.last_mut() {
                    part.end = Some(end);
                }
            }
        }
    }

    fn cell(&mut self, scenario: &str, dut: &str, at: Coordinates) -> &mut CellResults {
        let new = CellResults { dut: dut.to_owned(), at: at.clone(), ..CellResults::default() };
        self.found.entry((scenario.to_owned(), dut.to_owned(), at)).or_insert(new)
    }

    /// The method's headline in the last trial of a cell that has one.
    pub(super) fn last(&self, place: &Place, method: &Method) -> Option<f64> {
        let headline = &*method.metrics.first()?.id;
        let trials = &self.found.get(place)?.trials;
        trials.iter().rev().find_map(|trial| trial.values.get(headline)).copied()
    }

    /// A failure that might not come again: of the last part, of a start, or of every attempt at a
    /// trial. What is not supported or missing is so the next time too.
    pub(super) fn failure(&self) -> Option<String> {
        match self.parts.last().and_then(|part| part.end) {
            Some(PartEnd::Whole) => {}
            Some(PartEnd::Interrupted) => return Some("it was interrupted".to_owned()),
            Some(PartEnd::CutOff) | None => return Some("it was cut off".to_owned()),
        }
        let of_cell = |((scenario, dut, _), cell): (&Place, &CellResults)| {
            let failed = match &cell.state {
                CellState::Failed(why) => Some(why.clone()),
                CellState::NotSupported(_) | CellState::Missing(_) => None,
                CellState::Measured | CellState::Skipped(_) | CellState::Pending(_) => {
                    let key = |one: &TrialRecord| (one.method.clone(), one.start, one.trial);
                    let good = cell.trials.iter().filter(|one| one.error.is_none()).map(key);
                    let good: BTreeSet<_> = good.collect();
                    let bad = cell.trials.iter().find(|one| !good.contains(&key(one)));
                    bad.map(|one| {
                        format!("{}: {}", one.method, one.error.as_deref().unwrap_or_default())
                    })
                }
            };
            failed.map(|why| format!("{scenario} on {dut}: {why}"))
        };
        self.found.iter().find_map(of_cell)
    }

    /// Whether no further trial will come: the last part is at its end, or of single jobs each.
    fn is_over(&self) -> bool {
        let Some(last) = self.parts.last() else { return false };
        let Some((_, jobs)) = last.job else { return last.end == Some(PartEnd::Whole) };
        let ended = self.parts.iter().filter(|part| part.end == Some(PartEnd::Whole));
        let ended: BTreeSet<usize> = ended.filter_map(|part| Some(part.job?.0)).collect();
        ended.len() == jobs
    }

    /// The results so far; none before somebody measures.
    pub(super) fn results(&self) -> Option<Results> {
        let head = self.head.as_ref()?;
        let (parts, first, last) = (&self.parts, self.parts.first()?, self.parts.last()?);
        let mut machines = self.machines();
        let machine = machines.first()?.clone();
        if machines.len() == 1 {
            machines.clear();
        }
        let programs = parts.iter().flat_map(|part| part.programs.iter().cloned());
        let scenarios = head.scenarios.iter().map(|scenario| self.scenario(scenario, last));
        Some(Results {
            format: FORMAT,
            weir: first.weir.clone(),
            started: parts.iter().map(|part| part.started.clone()).min()?,
            duration_s: parts.iter().filter_map(|part| part.duration_s).sum(),
            command: first.command.clone(),
            is_quick: head.is_quick,
            notes: self.notes(&machine, &machines),
            machine,
            machines,
            parts: if parts.len() > 1 { parts.clone() } else { Vec::new() },
            programs: distinct(programs),
            switches: last.switches.clone(),
            scenarios: scenarios.collect(),
            rule: limit::RULE.to_owned(),
        })
    }

    /// The machines, the one with most of the trials first.
    fn machines(&self) -> Vec<Machine> {
        let mut machines: Vec<Machine> = Vec::new();
        for RunPart { machine, .. } in &self.parts {
            if !machines.iter().any(|known| known.id == machine.id) {
                machines.push(machine.clone());
            }
        }
        let trials = || self.found.values().flat_map(|cell| &cell.trials);
        let made = |of: &Machine| trials().filter(|trial| trial.machine == of.id).count();
        machines.sort_by_cached_key(|of| std::cmp::Reverse(made(of)));
        machines
    }

    /// Notes for the reader.
    fn notes(&self, machine: &Machine, machines: &[Machine]) -> Vec<String> {
        let mut notes = Vec::new();
        let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
        let (ids, several) = (ids.join(", "), !machines.is_empty());
        let is_pool = self.parts.iter().any(|part| part.job.is_some());
        if is_pool && several {
            let kind = |machine: &Machine| (machine.cpu.clone(), machine.cores);
            let kinds: BTreeSet<_> = machines.iter().map(kind).collect();
            let same = match kinds.len() {
                1 => "all of one processor and number of cores",
                _ => "not all alike",
            };
            notes.push(format!(
                "Measured on {} machines, {same}: {ids}. Differences between machines are part of \
                 every interval and of every ratio; each trial names its machine.",
                machines.len()
            ));
        } else if !is_pool && self.parts.len() > 1 {
            let anew = format!(", on machines or after starts of one machine: {ids}");
            let (parts, anew) = (self.parts.len(), if several { &anew } else { "" });
            notes.push(format!("Measured in {parts} parts, each resuming the one before{anew}"));
        }
        if let Some(error) = &machine.real_time_error {
            notes.push(format!(
                "The lab's threads did not run in real time ({error}): delays hold the time that \
                 the lab took to wake up, as the floor shows"
            ));
        }
        let floors = self.found.iter().filter(|((_, dut, _), _)| dut == dut::FLOOR.name);
        for ((scenario, ..), cell) in floors {
            let error = cell.trials.iter().rev().find_map(|trial| trial.error.as_deref());
            let is_good = cell.trials.iter().any(|trial| trial.error.is_none());
            let note = error.filter(|_| !is_good).map(|why| format!("{scenario}: no floor: {why}"));
            notes.extend(note.filter(|note| !notes.contains(note)));
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }

    /// Results of a scenario, by the switches and starts of the last part.
    fn scenario(&self, scenario: &ScenarioResults, part: &RunPart) -> ScenarioResults {
        let starts = part.starts.unwrap_or(scenario.starts);
        let unit = if scenario.is_held { "turns of one start" } else { "starts" };
        let mut results = ScenarioResults { starts, ..scenario.clone() };
        results.conditions.insert(unit.to_owned(), starts.to_string());
        for point in &scenario.points {
            for dut in part.switches.iter().filter(|dut| !point.without.contains(&dut.name)) {
                results.cells.push(self.cell_results(scenario, point, &dut.name));
            }
        }
        results
    }

    fn cell_results(
        &self,
        scenario: &ScenarioResults,
        point: &ScenarioCell,
        dut: &str,
    ) -> CellResults {
        let found = |dut: &str, at: &Coordinates| {
            self.found.get(&(scenario.id.clone(), dut.to_owned(), at.clone()))
        };
        let mut cell = found(dut, &point.at).cloned().unwrap_or_default();
        (cell.dut, cell.at) = (dut.to_owned(), point.at.clone());
        let is_wire = dut == dut::WIRE.name;
        let floor = found(dut::FLOOR.name, &point.floor_at).filter(|_| !is_wire);
        let planned = |method: &str| scenario.trials.get(method).copied().unwrap_or(1);
        let row = |metric: &Metric| row(&cell.trials, floor, &metric.id, planned);
        cell.rows = scenario.metrics.iter().filter_map(row).collect();
        cell.bounds.clone_from(&point.bounds);
        if !cell.rows.is_empty() {
            cell.state = CellState::Measured;
        } else if matches!(cell.state, CellState::Pending(_)) {
            let error = cell.trials.iter().rev().find_map(|trial| trial.error.clone());
            match error {
                Some(error) => cell.state = CellState::Failed(error),
                None if self.is_over() => cell.state = CellState::Failed("no trial".to_owned()),
                None => {}
            }
        }
        cell
    }
}

/// The row of a metric; none without a sample.
fn row(
    trials: &[TrialRecord],
    floor: Option<&CellResults>,
    metric: &str,
    planned: impl Fn(&str) -> usize + Copy,
) -> Option<ResultRow> {
    let all = observed(trials, metric, planned);
    let is_resolved = all.values().all(|start| start.low >= start.high);
    let resolutions = all.values().filter(|_| !is_resolved).map(|start| (start.low, start.high));
    let floor = floor.map(|floor| observed(&floor.trials, metric, planned)).unwrap_or_default();
    let floor: Vec<f64> = floor.values().map(|start| start.value).collect();
    let good = trials.iter().filter(|trial| trial.error.is_none());
    let clock_errors = good.filter_map(|trial| ClockComparison::error_us(&trial.raw, metric));
    let row = ResultRow {
        metric: metric.to_owned(),
        samples: all.values().map(|start| start.value).collect(),
        starts: all.keys().copied().collect(),
        resolutions: resolutions.collect(),
        floor: median(&floor),
        clock_error: clock_errors.reduce(f64::max),
    };
    (!row.samples.is_empty()).then_some(row)
}

/// The values of a metric by starts, each the median of its trials: they share what the start was
/// like, so that they are no repetitions. The first of several is the warm-up and does not count;
/// a rule that looks for the steady part (MSER-5) needs fifty samples in order, and cuts each start
/// elsewhere. `planned` are the trials of a method in each start.
fn observed(
    trials: &[TrialRecord],
    metric: &str,
    planned: impl Fn(&str) -> usize,
) -> BTreeMap<usize, Observed> {
    let mut starts: BTreeMap<usize, Vec<Observed>> = BTreeMap::new();
    let is_counted = |trial: &&TrialRecord| trial.trial > 0 || planned(&trial.method) == 1;
    for one in trials.iter().filter(|trial| trial.error.is_none()).filter(is_counted) {
        let Some(value) = one.values.get(metric).copied() else { continue };
        let (low, high) = one.resolutions.get(metric).copied().unwrap_or((value, value));
        starts.entry(one.start).or_default().push(Observed { value, low, high });
    }
    let starts = starts.into_iter();
    starts.filter_map(|(start, all)| Some((start, Observed::of_trials(&all)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::observed;
    use crate::results::TrialRecord;

    /// A demo once paired the four trials of each start, and so claimed twelve pairs of three.
    #[test]
    fn trials_of_a_start_are_one_value_without_the_warm_up() {
        let trial = |(start, trial, value): (usize, usize, Option<f64>)| TrialRecord {
            method: "ping".to_owned(),
            start,
            trial,
            values: value.map(|value| ("ping_avg_ms".to_owned(), value)).into_iter().collect(),
            error: value.is_none().then(|| "no answer".to_owned()),
            ..TrialRecord::default()
        };
        let of_start = |start, values: &[Option<f64>]| -> Vec<TrialRecord> {
            (0..).zip(values).map(|(number, value)| trial((start, number, *value))).collect()
        };
        let mut trials = of_start(0, &[Some(9.0), Some(1.0), Some(3.0), Some(2.0)]);
        trials.extend(of_start(1, &[Some(7.0), None]));
        trials.extend(of_start(2, &[Some(9.0), Some(4.0)]));
        trials.extend(of_start(3, &[None]));
        trials[7].resolutions.insert("ping_avg_ms".to_owned(), (3.0, 5.0));
        let values = |trials: &[TrialRecord], planned| -> Vec<(usize, f64)> {
            let found = observed(trials, "ping_avg_ms", |_| planned);
            found.iter().map(|(at, one)| (*at, one.value)).collect()
        };
        // What is left of start 1 is its warm-up.
        assert_eq!(values(&trials, 4), [(0, 2.0), (2, 4.0)]);
        let found = &observed(&trials, "ping_avg_ms", |_| 4)[&2];
        assert_eq!((found.low, found.high), (3.0, 5.0));
        assert_eq!(values(&trials[4..5], 1), [(1, 7.0)]);
    }
}
