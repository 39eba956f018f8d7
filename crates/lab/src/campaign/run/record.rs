//! Knowledge of a campaign: its ledger's lines, filed where results need them.
//!
//! A run files each line that it writes, a run that goes on files those that are there, and a
//! reader files what it reads: all three know the same. It must never know what no line says.

use std::collections::{BTreeMap, HashMap};

use super::CampaignPart;
use crate::agent::client::BoxFacts;
use crate::campaign::ledger::{Entry, LedgerLine, PartHead, RunStep, Stamped};
use crate::method::{self, Method};
use crate::results::{CellState, Coordinates, MeasuredDistribution, PartEnd, TrialRecord};

/// Beginning of a trial's error when the method does not fit.
pub(super) const NOT_SUPPORTED: &str = "not supported: ";

/// Name in place of a method, for a trial that was none because the switch did not start.
pub(super) const START: &str = "start";

/// Findings for a cell on a switch.
#[derive(Clone, Debug, Default)]
pub(super) struct CellFindings {
    pub(super) state: Option<CellState>,
    pub(super) commands: Vec<String>,
    pub(super) trials: Vec<TrialRecord>,
    pub(super) distributions: Vec<MeasuredDistribution>,
}

impl CellFindings {
    /// The method's headline in the last trial that has one.
    pub(super) fn last(&self, method: &dyn Method) -> Option<f64> {
        let headline = method.metrics().first()?.id;
        self.trials.iter().rev().find_map(|trial| trial.values.get(headline)).copied()
    }
}

/// Of a scenario a switch and a cell, by its place.
pub(super) type Place = (usize, String, usize);

/// Values of metrics on a wire, by start.
pub(super) type Floors = BTreeMap<&'static str, BTreeMap<usize, f64>>;

/// A part of the run.
#[derive(Clone, Debug)]
pub(super) struct PartRecord {
    pub(super) head: PartHead,
    /// Seconds from its begin to its last line.
    pub(super) last_s: f64,
    pub(super) end: PartEnd,
}

/// The filed lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// Whether its lines are of the form before.
    pub(super) is_old: bool,
    pub(super) found: HashMap<Place, CellFindings>,
    /// By scenario and first cell of that traffic.
    pub(super) floors: HashMap<(usize, usize), Floors>,
    pub(super) notes: Vec<String>,
    /// The boxes of agents, by their addresses.
    pub(super) boxes: BTreeMap<String, BoxFacts>,
    pub(super) runs: Vec<PartRecord>,
    /// The present step.
    pub(super) step: Option<RunStep>,
}

impl Record {
    /// Files a line.
    pub(super) fn apply(&mut self, parts: &[CampaignPart<'_>], stamped: Stamped) {
        if let Some(run) = self.runs.last_mut() {
            run.last_s = run.last_s.max(stamped.at_s);
        }
        match stamped.line {
            LedgerLine::Head(_) => {}
            LedgerLine::Part(head) => {
                self.step = None;
                self.runs.push(PartRecord { head: *head, last_s: 0.0, end: PartEnd::CutOff });
            }
            LedgerLine::Step(step) => self.step = Some(step),
            LedgerLine::Start { scenario, dut, start, at, commands } => {
                let Some((index, part)) = find(parts, &scenario) else { return };
                for place in at.iter().filter_map(|at| part.place(at)) {
                    let found = self.found.entry((index, dut.clone(), place)).or_default();
                    found.trials.retain(|trial| trial.start != start);
                    found.distributions.retain(|one| one.start != start);
                    found.state = None;
                    if found.commands.is_empty() {
                        found.commands.clone_from(&commands);
                    }
                }
            }
            LedgerLine::Trial(entry) => self.trial(parts, *entry),
            LedgerLine::State { scenario, dut, at, state } => {
                if let Some(found) = self.at(parts, &scenario, dut, &at) {
                    found.state = Some(state);
                }
            }
            LedgerLine::Floor { scenario, at, start, method: _, values } => {
                let Some((index, part)) = find(parts, &scenario) else { return };
                let Some(place) = part.place(&at) else { return };
                let floors = self.floors.entry((index, part.traffic_of(place))).or_default();
                for (id, value) in values {
                    if let Some(metric) = method::metric(&id) {
                        floors.entry(metric.id).or_default().insert(start, value);
                    }
                }
            }
            LedgerLine::Box(of) => {
                self.boxes.insert(of.address.clone(), of);
            }
            LedgerLine::Note { text } => self.note(text),
            LedgerLine::End { end } => {
                self.step = None;
                if let Some(run) = self.runs.last_mut() {
                    run.end = end;
                }
            }
        }
    }

    fn at(
        &mut self,
        parts: &[CampaignPart<'_>],
        scenario: &str,
        dut: String,
        at: &Coordinates,
    ) -> Option<&mut CellFindings> {
        let (index, part) = find(parts, scenario)?;
        Some(self.found.entry((index, dut, part.place(at)?)).or_default())
    }

    fn trial(&mut self, parts: &[CampaignPart<'_>], entry: Entry) {
        let Entry { scenario, dut, at, mut trial, mut distributions } = entry;
        if let (true, Some((_, part))) = (self.is_old, find(parts, &scenario)) {
            trial.decode(part.trials(&trial.method));
            distributions.iter_mut().for_each(|one| one.start = trial.start);
        }
        if let Some(found) = self.at(parts, &scenario, dut, &at) {
            found.trials.push(trial);
            found.distributions.extend(distributions);
        }
    }

    /// Keeps a note, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The scenario of that name.
fn find<'p, 'a>(parts: &'p [CampaignPart<'a>], id: &str) -> Option<(usize, &'p CampaignPart<'a>)> {
    parts.iter().enumerate().find(|(_, part)| part.scenario.id == id)
}

impl CampaignPart<'_> {
    /// The place of a point.
    pub(super) fn place(&self, at: &Coordinates) -> Option<usize> {
        self.cells.iter().position(|cell| cell.at == *at)
    }

    /// Trials of a method in each start; a start that failed is one.
    pub(super) fn trials(&self, method: &str) -> usize {
        method::find(method).map_or(1, |method| self.scenario.trials(method, self.is_quick))
    }
}
