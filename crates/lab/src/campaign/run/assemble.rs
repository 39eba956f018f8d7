//! From what a campaign found to its results: samples, states, conditions, programs.
//!
//! It must never make a sample of a trial that failed or stalled.

use std::collections::BTreeMap;

use super::{Campaign, FLOOR_DUT, Found, Part, Run};
use crate::campaign::scenario::{ScenarioCell, ScenarioError};
use crate::ceilings;
use crate::method;
use crate::results::{
    CellResults, CellState, Coordinates, MetricInfo, ResultRow, ScenarioResults, TrialRecord,
};
use crate::setup::TestbedKind;
use crate::stats::summarise;
use crate::tools::{Program, Tool};

/// What a start of a switch gave for a metric.
struct StartSample {
    value: f64,
    /// From where to where the truth may lie by what the method resolves.
    low: f64,
    high: f64,
}

impl Part<'_> {
    /// The samples of a metric, one for each start: the median of its trials there. Trials of one
    /// start share what the start was like, so that they are not independent.
    fn starts(&self, trials: &[TrialRecord], metric: &str) -> Vec<StartSample> {
        let mut starts: BTreeMap<usize, [Vec<f64>; 3]> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.error.is_none()) {
            let (Some(value), Some(method)) =
                (trial.values.get(metric), method::find(&trial.method))
            else {
                continue;
            };
            let (low, high) = trial.resolutions.get(metric).copied().unwrap_or((*value, *value));
            let in_start = self.scenario.trials(method, self.is_quick);
            let [values, lows, highs] = starts.entry(trial.repeat / in_start).or_default();
            values.push(*value);
            lows.push(low);
            highs.push(high);
        }
        let median = |values: &[f64]| Some(summarise(values)?.median);
        let sample = |[values, lows, highs]: &[Vec<f64>; 3]| {
            Some(StartSample { value: median(values)?, low: median(lows)?, high: median(highs)? })
        };
        starts.values().filter_map(sample).collect()
    }
}

impl Run<'_> {
    /// What was found of a scenario.
    pub(super) fn results(
        &mut self,
        index: usize,
        part: &Part<'_>,
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
            let floors = self.floors.get(&(index, part.traffic_of(place)));
            let duts = self.campaign.duts.iter();
            for dut in duts.filter(|dut| !scenario.is_without(dut.name(), &cell.at)) {
                let key = (index, dut.name().to_owned(), place);
                let found = self.found.remove(&key).unwrap_or_default();
                let floors = floors.filter(|_| dut.name() != FLOOR_DUT);
                let at = (dut.name(), &cell.at);
                let mut cell_results = cell_results(part, at, found, &metrics, floors);
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
    part: &Part<'_>,
    (dut, at): (&str, &Coordinates),
    found: Found,
    metrics: &[MetricInfo],
    floors: Option<&BTreeMap<&'static str, Vec<f64>>>,
) -> CellResults {
    let row = |metric: &MetricInfo| {
        let starts = part.starts(&found.trials, &metric.id);
        let samples: Vec<f64> = starts.iter().map(|start| start.value).collect();
        let is_resolved = starts.iter().all(|start| start.low >= start.high);
        let resolutions = match is_resolved {
            true => Vec::new(),
            false => starts.iter().map(|start| (start.low, start.high)).collect(),
        };
        let floor = floors.and_then(|floors| floors.get(metric.id.as_str()));
        let floor = floor.and_then(|values| summarise(values)).map(|summary| summary.median);
        let metric = metric.id.clone();
        (!samples.is_empty()).then_some(ResultRow { metric, samples, resolutions, floor })
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

/// Under what a scenario is measured: the testbed, the repeats, and each single value of the
/// settings that all cells share.
fn conditions(campaign: &Campaign, part: &Part<'_>) -> BTreeMap<String, String> {
    let testbed = match campaign.kind {
        TestbedKind::Kernel => "network namespaces joined by veth",
        TestbedKind::Memory => "ports in memory",
    };
    let mut conditions = BTreeMap::from([
        ("testbed".to_owned(), testbed.to_owned()),
        ("repeats".to_owned(), part.repeats.to_string()),
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

/// Every program that took part, once.
pub(super) fn programs(campaign: &Campaign) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut add = |found: Vec<Program>| {
        for program in found {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
    };
    for dut in &campaign.duts {
        add(dut.programs(&campaign.paths).unwrap_or_default());
    }
    let tools = [Tool::Ping, Tool::Iperf3, Tool::Iperf2];
    add(tools.into_iter().filter_map(|tool| tool.program().ok()).collect());
    programs
}
