//! From what a campaign found to its results: samples, states, conditions, programs.
//!
//! It must never make a sample of a trial that failed or stalled.

use std::collections::BTreeMap;

use programs::tools::Program;

use super::record::{CellFindings, Floors, Record};
use super::{Campaign, CampaignPart, FLOOR_DUT, controller_of};
use crate::agent::clock::ClockRecord;
use crate::campaign::scenario::{ScenarioCell, ScenarioError};
use crate::ceilings;
use crate::facts::Machine;
use crate::limit;
use crate::results::{
    CellResults, CellState, Coordinates, DutInfo, FORMAT, MetricInfo, PartEnd, ResultRow, Results,
    RunPart, ScenarioResults, TrialRecord,
};
use crate::setup::TestbedKind;
use stats::{Observed, median};

/// The values of a metric by starts: each the median of its trials. They share what the start was
/// like, so that they are no repetitions. The first of several is the warm-up and does not count:
/// a rule that is known beforehand, where one that looks for the steady part (MSER-5) needs fifty
/// samples in order, and cuts each start elsewhere. `planned` are the trials of a method in each
/// start: a start of which the warm-up alone is left has no value.
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
        let found = Observed { value, low, high };
        starts.entry(one.start).or_default().push(found);
    }
    let start = |(start, trials): (usize, Vec<Observed>)| {
        Observed::of_trials(&trials).map(|found| (start, found))
    };
    starts.into_iter().filter_map(start).collect()
}

/// Origin of figures: the measuring party, the time and the programs.
#[derive(Debug)]
pub(super) struct Provenance {
    pub(super) weir: String,
    pub(super) started: String,
    pub(super) duration_s: f64,
    pub(super) command: Vec<String>,
    pub(super) machine: Machine,
    /// All of them, where there are several.
    pub(super) machines: Vec<Machine>,
    pub(super) programs: Vec<Program>,
    /// The parts, if there are several.
    pub(super) parts: Vec<RunPart>,
    /// Whether points without a measurement will never get one; else they are still to come.
    pub(super) is_over: bool,
}

impl Provenance {
    /// That of a run and of what it went on with.
    ///
    /// # Panics
    /// Without a part: a ledger begins with one.
    pub(super) fn of_runs(record: &Record) -> Self {
        let runs = &record.runs;
        let first = &runs.first().expect("a ledger begins with a part").head;
        let mut machines: Vec<Machine> = Vec::new();
        let mut programs: Vec<Program> = Vec::new();
        for run in runs {
            if !machines.iter().any(|known| known.id == run.head.machine.id) {
                machines.push(run.head.machine.clone());
            }
            add(&mut programs, run.head.programs.clone());
        }
        let part = |run: &super::record::PartRecord| RunPart {
            started: run.head.started.clone(),
            duration_s: run.last_s,
            command: run.head.command.clone(),
            machine: run.head.machine.id.clone(),
            end: run.end,
        };
        Self {
            weir: first.weir.clone(),
            started: first.started.clone(),
            duration_s: runs.iter().map(|run| run.last_s).sum(),
            command: first.command.clone(),
            machine: first.machine.clone(),
            machines: if machines.len() > 1 { machines } else { Vec::new() },
            programs,
            parts: if runs.len() > 1 { runs.iter().map(part).collect() } else { Vec::new() },
            is_over: runs.last().is_some_and(|run| run.end == PartEnd::Whole),
        }
    }

    /// Notes for the reader.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.parts.is_empty() {
            let anew = if self.machines.is_empty() {
                String::new()
            } else {
                format!(", on machines or after starts of one machine: {}", ids(&self.machines))
            };
            let parts = self.parts.len();
            notes
                .push(format!("Measured in {parts} parts, each gone on with the one before{anew}"));
        }
        if let Some(error) = &self.machine.real_time_error {
            notes.push(format!(
                "The lab's threads did not run in real time ({error}): delays hold the time that \
                 the lab took to wake up, as the floor shows"
            ));
        }
        notes
    }
}

/// Some machines by name.
pub(super) fn ids(machines: &[Machine]) -> String {
    let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    ids.join(", ")
}

/// Results of a campaign.
///
/// # Errors
/// A scenario that is wrong.
pub(super) fn results(
    campaign: &Campaign,
    parts: &[CampaignPart<'_>],
    mut record: Record,
    provenance: Provenance,
) -> Result<Results, ScenarioError> {
    let mut notes = provenance.notes();
    notes.append(&mut record.notes);
    let mut found = Assembly { campaign, record, is_over: provenance.is_over };
    let scenarios = parts.iter().enumerate();
    let scenarios =
        scenarios.map(|(index, part)| found.scenario(index, part)).collect::<Result<_, _>>()?;
    let switch = |dut: &&dyn crate::dut::Dut| DutInfo {
        name: dut.name().to_owned(),
        about: dut.about().to_owned(),
    };
    Ok(Results {
        format: FORMAT,
        weir: provenance.weir,
        started: provenance.started,
        duration_s: provenance.duration_s,
        command: provenance.command,
        is_quick: campaign.is_quick,
        machine: provenance.machine,
        machines: provenance.machines,
        parts: provenance.parts,
        programs: provenance.programs,
        switches: campaign.duts.iter().map(switch).collect(),
        scenarios,
        notes,
        rule: limit::RULE.to_owned(),
    })
}

struct Assembly<'a> {
    campaign: &'a Campaign,
    record: Record,
    is_over: bool,
}

impl Assembly<'_> {
    /// Results of a scenario.
    fn scenario(
        &mut self,
        index: usize,
        part: &CampaignPart<'_>,
    ) -> Result<ScenarioResults, ScenarioError> {
        let scenario = part.scenario;
        let metrics = part.methods.iter().flat_map(|method| method.metrics());
        let metrics: Vec<MetricInfo> = metrics
            .map(|metric| MetricInfo {
                id: metric.id.to_owned(),
                label: metric.label.to_owned(),
                unit: metric.unit.to_owned(),
                better: metric.better,
                decimals: metric.decimals,
            })
            .collect();
        let mut cells = Vec::new();
        for (place, cell) in part.cells.iter().enumerate() {
            let floors = self.record.floors.get(&(index, part.traffic_of(place)));
            let duts = self.campaign.duts.iter();
            for dut in duts.filter(|dut| !scenario.is_without(dut.name(), &cell.at)) {
                let key = (index, dut.name().to_owned(), place);
                let found = self.record.found.remove(&key).unwrap_or_default();
                let floors = floors.filter(|_| dut.name() != FLOOR_DUT);
                let at = (dut.name(), &cell.at);
                let has_error = found.trials.iter().any(|trial| trial.error.is_some());
                let is_to_come = !self.is_over && !has_error && found.state.is_none();
                let mut cell_results = cell_results(at, found, (&metrics, part), floors);
                if is_to_come && cell_results.rows.is_empty() {
                    let why = "the run has not come to it".to_owned();
                    cell_results.state = CellState::Pending(why);
                }
                cell_results.bounds = ceilings::upper_limits(&cell.settings);
                cell_results.bounds.retain(|of| metrics.iter().any(|info| info.id == of.metric));
                cells.push(cell_results);
            }
        }
        Ok(ScenarioResults {
            id: scenario.id.clone(),
            evaluation: scenario.evaluation.clone(),
            title: scenario.title.clone(),
            question: scenario.question.clone(),
            background: scenario.background.clone(),
            source: scenario.source.clone(),
            is_held: scenario.is_held,
            conditions: conditions(self.campaign, part),
            axes: scenario.axis_infos(self.campaign.is_quick)?,
            metrics,
            plots: scenario.plots.clone(),
            published: scenario.published.clone(),
            cells,
        })
    }
}

fn cell_results(
    (dut, at): (&str, &Coordinates),
    found: CellFindings,
    (metrics, part): (&[MetricInfo], &CampaignPart<'_>),
    floors: Option<&Floors>,
) -> CellResults {
    let row = |metric: &MetricInfo| {
        let all = observed(&found.trials, &metric.id, |method| part.trials(method));
        let starts: Vec<usize> = all.keys().copied().collect();
        let samples: Vec<f64> = all.values().map(|start| start.value).collect();
        let is_resolved = all.values().all(|start| start.low >= start.high);
        let resolutions = match is_resolved {
            true => Vec::new(),
            false => all.values().map(|start| (start.low, start.high)).collect(),
        };
        let floor = floors.and_then(|floors| floors.get(metric.id.as_str()));
        let floor: Vec<f64> = floor.into_iter().flatten().map(|(_, value)| *value).collect();
        let floor = median(&floor);
        let good = found.trials.iter().filter(|trial| trial.error.is_none());
        let clock_errors = good.filter_map(|trial| ClockRecord::error_us(&trial.raw, &metric.id));
        let clock_error = clock_errors.reduce(f64::max);
        let metric = metric.id.clone();
        let row = ResultRow { metric, samples, starts, resolutions, floor, clock_error };
        (!row.samples.is_empty()).then_some(row)
    };
    let rows: Vec<ResultRow> = metrics.iter().filter_map(row).collect();
    let state = if rows.is_empty() {
        let last = found.trials.iter().rev().find_map(|trial| trial.error.clone());
        let failed = || CellState::Failed(last.unwrap_or_else(|| "no trial".to_owned()));
        found.state.unwrap_or_else(failed)
    } else {
        CellState::Measured
    };
    CellResults {
        dut: dut.to_owned(),
        at: at.clone(),
        state,
        rows,
        bounds: Vec::new(),
        distributions: found.distributions,
        commands: found.commands,
        trials: found.trials,
    }
}

/// Under what a scenario is measured: the testbed, the starts, and each single value of the
/// settings that all cells share.
fn conditions(campaign: &Campaign, part: &CampaignPart<'_>) -> BTreeMap<String, String> {
    let is_replay = |cell: &ScenarioCell| cell.settings.replay.is_some();
    let testbed = match campaign.kind {
        _ if part.cells.iter().all(is_replay) => "a trace that each switch replays by itself",
        TestbedKind::Kernel => "network namespaces joined by veth",
        TestbedKind::Memory => "ports in memory",
    };
    let starts = if part.scenario.is_held { "turns of one start" } else { "starts" };
    let mut conditions = BTreeMap::from([
        ("testbed".to_owned(), testbed.to_owned()),
        (starts.to_owned(), part.starts.to_string()),
    ]);
    let values = |cell: &ScenarioCell| match serde_json::to_value(&cell.settings) {
        Ok(serde_json::Value::Object(values)) => values,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let all: Vec<_> = part.cells.iter().map(values).collect();
    for (key, value) in all.first().into_iter().flatten() {
        let is_shared = all.iter().all(|values| values.get(key) == Some(value));
        // Lists, such as the flow entries, stand with the commands of each cell.
        let is_single = !value.is_array() && !value.is_object() && !value.is_null();
        if is_shared && is_single {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            conditions.insert(key.clone(), text);
        }
    }
    conditions
}

/// Every program that takes part, once: those of the switches, of the controllers that the cells
/// name, and those that the methods measure with, as far as they are installed.
pub(super) fn programs(campaign: &Campaign, parts: &[CampaignPart<'_>]) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for dut in &campaign.duts {
        add(&mut programs, dut.programs(&campaign.paths).unwrap_or_default());
    }
    let mut controllers: Vec<&str> = Vec::new();
    for cell in parts.iter().flat_map(|part| &part.cells) {
        let Some(Ok(controller)) = controller_of(&cell.settings) else { continue };
        if !controllers.contains(&controller.name()) {
            controllers.push(controller.name());
            add(&mut programs, controller.programs(&campaign.paths).unwrap_or_default());
        }
    }
    for method in parts.iter().flat_map(|part| &part.methods) {
        let tools = method.tools().iter().filter_map(|tool| tool.program().ok());
        add(&mut programs, tools.collect());
    }
    programs
}

/// Adds what is not there yet.
pub(super) fn add(programs: &mut Vec<Program>, more: Vec<Program>) {
    for program in more {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::observed;
    use crate::campaign::run::trial::failed;
    use crate::results::TrialRecord;

    /// A demo once paired the four trials of each start, and so claimed twelve pairs of three.
    #[test]
    fn trials_of_a_start_are_one_value_without_the_warm_up() {
        let trial = |start, number, value| {
            let mut trial = failed("ping", (start, number), String::new());
            trial.error = None;
            trial.values.insert("ping_avg_ms".to_owned(), value);
            trial
        };
        let mut trials = vec![
            trial(0, 0, 9.0),
            trial(0, 1, 1.0),
            trial(0, 2, 3.0),
            trial(0, 3, 2.0),
            trial(1, 0, 7.0),
            trial(2, 0, 9.0),
            trial(2, 1, 4.0),
        ];
        trials[6].resolutions.insert("ping_avg_ms".to_owned(), (3.0, 5.0));
        trials.push(failed("ping", (1, 1), "no answer".to_owned()));
        trials.push(failed("ping", (3, 0), "no answer".to_owned()));
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
