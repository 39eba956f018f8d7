//! One cell as one command: what a campaign would measure, a line for each start of a switch, and
//! what came of such a line.
//!
//! A line needs nothing beside it but this program: it holds the scenario's file. What comes of it
//! is lines too, each with the cell's number and a word that is the same in all lines of one
//! measurement, so that outputs of many may be mixed. It must never choose another order or other
//! settings than a campaign on one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use programs::cancel::Cancel;
use programs::tools::Program;
use serde::{Deserialize, Serialize};

use super::{
    Campaign, CampaignError, CampaignPart, Outside, Round, Run, ScenarioError, groups, parts,
    stall, turns,
};
use crate::campaign::ledger::Entry;
use crate::campaign::scenario::Scenario;
use crate::dut;
use crate::facts::{Machine, now_utc};
use crate::results::{CellState, Coordinates, FORMAT};
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;

/// Task of one command: the points that one start of a switch serves, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// The form that this build writes and reads.
    pub format: u32,
    /// The version of the lab that wrote it; no other measures it.
    pub weir: String,
    /// Its number, from 0.
    pub cell: usize,
    /// Number of cells of the campaign.
    pub cells: usize,
    /// The switches of the campaign, in the order of the tables, as [`dut::find`] takes them.
    pub duts: Vec<String>,
    /// The switch, as it is taken there.
    pub dut: String,
    /// The points of the axes.
    pub at: Vec<Coordinates>,
    /// Number of the start, from 0.
    pub start: usize,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    pub starts: Option<usize>,
    /// Whether the scenario's quick form is measured.
    pub is_quick: bool,
    /// Testbed of the hosts.
    pub testbed: TestbedKind,
    /// The axes with the values that the campaign measures.
    pub values: Vec<(String, Vec<String>)>,
    /// The command that was typed.
    pub command: Vec<String>,
    /// The scenario's file.
    pub scenario: String,
}

/// A line of what came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CellLine {
    pub(super) cell: usize,
    /// The same in all lines of one measurement.
    pub(super) run: String,
    #[serde(flatten)]
    pub(super) part: CellPart,
}

/// A line of a cell's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum CellPart {
    /// The task, and the conditions of its measurement.
    Head { spec: Box<CellSpec>, machine: Machine, programs: Vec<Program>, started: String },
    /// A trial, as in a ledger.
    Trial(Box<Entry>),
    /// Facts of a point beside its trials; the floor is by metric.
    Point {
        at: Coordinates,
        #[serde(default)]
        state: Option<CellState>,
        commands: Vec<String>,
        floor: BTreeMap<String, Vec<f64>>,
    },
    /// It is through. With an error it is to be measured again.
    End { duration_s: f64, notes: Vec<String>, error: Option<String> },
}

/// Outcome of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCell {
    /// The lines, JSON, without line ends.
    pub lines: Vec<String>,
    /// Why it is to be measured again.
    pub error: Option<String>,
}

/// Cells of a campaign, in its order.
///
/// # Errors
/// A scenario that is wrong.
pub fn cell_specs(campaign: &Campaign) -> Result<Vec<CellSpec>, CampaignError> {
    let duts: Vec<String> = campaign.duts.iter().map(|dut| dut.word().to_owned()).collect();
    let mut specs = Vec::new();
    for part in &parts(campaign)? {
        let axes = part.scenario.axis_infos(campaign.is_quick)?;
        let values: Vec<_> = axes.into_iter().map(|axis| (axis.name, axis.values)).collect();
        let all = groups(&part.cells);
        for start in 0..part.starts {
            for (group, dut) in turns(part, campaign, &all) {
                specs.push(CellSpec {
                    format: FORMAT,
                    weir: env!("CARGO_PKG_VERSION").to_owned(),
                    cell: specs.len(),
                    cells: 0,
                    duts: duts.clone(),
                    dut: dut.word().to_owned(),
                    at: group.cells.iter().map(|(_, cell)| cell.at.clone()).collect(),
                    start,
                    starts: campaign.starts,
                    is_quick: campaign.is_quick,
                    testbed: campaign.kind,
                    values: values.clone(),
                    command: campaign.command.clone(),
                    scenario: part.scenario.source.clone(),
                });
            }
        }
    }
    let cells = specs.len();
    specs.iter_mut().for_each(|spec| spec.cells = cells);
    Ok(specs)
}

impl CellSpec {
    /// The name of its switch in the tables.
    pub(super) fn dut_name(&self) -> &str {
        dut::find(&self.dut).map_or(&self.dut, |dut| dut.name())
    }

    /// Refuses what another version of the lab wrote.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let (format, weir) = (FORMAT, env!("CARGO_PKG_VERSION"));
        if self.format == format && self.weir == weir {
            return Ok(());
        }
        let (of, by) = (self.format, &self.weir);
        let what = format!(
            "cell {}: of weir {by}, form {of}, and this is weir {weir}, form {format}: use the \
             same program for all",
            self.cell
        );
        Err(ScenarioError::Wrong(what))
    }

    /// Its scenario, with the values that the campaign measures.
    pub(super) fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::from_toml(&self.scenario)?;
        for (axis, values) in &self.values {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            if !scenario.restrict(axis, &values)? {
                let what = format!("cell {}: the scenario has no axis {axis:?}", self.cell);
                return Err(ScenarioError::Wrong(what));
            }
        }
        Ok(scenario)
    }

    /// A campaign of this scenario on some switches.
    pub(super) fn campaign(
        &self,
        scenarios: Vec<Scenario>,
        names: &[String],
        paths: ProgramPaths,
    ) -> Result<Campaign, ScenarioError> {
        let find = |name: &String| {
            let unknown = || format!("cell {}: no switch under test {name:?}", self.cell);
            dut::find(name).ok_or_else(|| ScenarioError::Wrong(unknown()))
        };
        Ok(Campaign {
            scenarios,
            duts: names.iter().map(find).collect::<Result<_, _>>()?,
            is_quick: self.is_quick,
            starts: self.starts,
            limit: None,
            kind: self.testbed,
            paths,
            folder: PathBuf::new(),
            is_resumed: false,
            command: self.command.clone(),
            notes: Vec::new(),
            quiet: true,
        })
    }
}

/// Measures a cell.
///
/// # Errors
/// [`CampaignError`]: it was interrupted, or the line is none of this program's.
pub fn measure(
    spec: &CellSpec,
    paths: ProgramPaths,
    quiet: bool,
    cancel: &Cancel,
) -> Result<MeasuredCell, CampaignError> {
    spec.check()?;
    let (started, clock) = (now_utc(), Instant::now());
    let outside = Outside {
        watch: &|work| stall::watch(work),
        has_floor: spec.testbed == TestbedKind::Kernel,
        machine: Machine::read(),
    };
    let scenario = spec.scenario()?;
    let names = std::slice::from_ref(&spec.dut);
    let mut campaign = spec.campaign(vec![scenario], names, paths)?;
    campaign.quiet = quiet;
    let mut parts = parts(&campaign)?;
    parts.iter_mut().for_each(|part| part.cells.retain(|cell| spec.at.contains(&cell.at)));
    let Some(part) = parts.first() else { return Err(wrong(spec, "no scenario").into()) };
    let all = groups(&part.cells);
    let [group] = all.as_slice() else {
        return Err(wrong(spec, "its points are not those of one start of a switch").into());
    };
    if group.cells.len() != spec.at.len() || spec.start >= part.starts {
        return Err(wrong(spec, "the scenario has no such points or start").into());
    }
    let mut run = Run::new(&campaign, &parts, cancel, &outside);
    run.kept = Some(Vec::new());
    run.floor(0, part, spec.start)?;
    let dut = campaign.duts[0];
    run.turn(&Round { index: 0, part, group, dut, start: spec.start })?;
    let programs = super::assemble::programs(&campaign, &parts);
    let machine = outside.machine.clone();
    let head = CellPart::Head { spec: Box::new(spec.clone()), machine, programs, started };
    let kept = run.kept.take().unwrap_or_default();
    let error = failure(&run, part, &kept);
    let trials = kept.into_iter().map(|entry| CellPart::Trial(Box::new(entry)));
    let mut all = vec![head];
    all.extend(trials);
    all.extend(points(&run, part, dut.name()));
    let (duration_s, notes) = (clock.elapsed().as_secs_f64(), run.record.notes.clone());
    all.push(CellPart::End { duration_s, notes, error: error.clone() });
    let word = format!("{:016x}", fastrand::u64(..));
    let line = |part| serde_json::to_string(&CellLine { cell: spec.cell, run: word.clone(), part });
    let lines = all.into_iter().map(line).collect::<Result<_, _>>();
    let lines = lines.map_err(|error| wrong(spec, &error.to_string()))?;
    Ok(MeasuredCell { lines, error })
}

fn wrong(spec: &CellSpec, what: &str) -> ScenarioError {
    ScenarioError::Wrong(format!("cell {}: {what}", spec.cell))
}

/// Failures that might not come again: of a start, or of every attempt at a trial.
fn failure(run: &Run<'_>, part: &CampaignPart<'_>, kept: &[Entry]) -> Option<String> {
    let is_good = |entry: &Entry| entry.trial.error.is_none();
    let key = |entry: &Entry| {
        let trial = &entry.trial;
        (entry.at.clone(), trial.method.clone(), trial.start, trial.trial)
    };
    let good: BTreeSet<_> = kept.iter().filter(|one| is_good(one)).map(key).collect();
    let closed: Vec<&CellState> =
        run.record.found.values().filter_map(|found| found.state.as_ref()).collect();
    for state in &closed {
        match state {
            CellState::Failed(reason) => return Some(format!("{}: {reason}", part.scenario.id)),
            // What is so on this machine, or with this switch, is so the next time too.
            CellState::NotSupported(_) | CellState::Missing(_) => return None,
            CellState::Measured | CellState::Skipped(_) | CellState::Pending(_) => {}
        }
    }
    let bad = kept.iter().find(|entry| !good.contains(&key(entry)))?;
    let (method, error) = (&bad.trial.method, bad.trial.error.as_deref().unwrap_or_default());
    Some(format!("{} {method}: {error}", part.scenario.id))
}

fn points(run: &Run<'_>, part: &CampaignPart<'_>, dut: &str) -> Vec<CellPart> {
    let point = |(place, cell): (usize, &super::ScenarioCell)| {
        let found = run.record.found.get(&(0, dut.to_owned(), place));
        let floors = run.record.floors.get(&(0, part.traffic_of(place))).into_iter().flatten();
        CellPart::Point {
            at: cell.at.clone(),
            state: found.and_then(|found| found.state.clone()),
            commands: found.map(|found| found.commands.clone()).unwrap_or_default(),
            floor: floors
                .map(|(id, values)| ((*id).to_owned(), values.values().copied().collect()))
                .collect(),
        }
    };
    part.cells.iter().enumerate().map(point).collect()
}
