//! Carries a campaign out: every cell on every switch, in turns, every trial in the ledger.
//!
//! Each turn starts each switch anew, and the switches take turns at every cell: a machine that
//! grows slower or busier does so for all of them, and a start is part of the spread. It must never
//! drop a trial from the results: one that failed or stalled is there with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ledger::{
    Entry, LEDGER_FORMAT, Ledger, LedgerError, LedgerHead, LedgerLine, PartHead, RunStep, Stamped,
};
use super::order::groups;
use super::scenario::{Scenario, ScenarioCell, ScenarioError};
use crate::dut::Dut;
use crate::facts::{Machine, now_utc};
use crate::progress::RunProgress;
use crate::results::{MeasuredDistribution, PartEnd, Results, TrialRecord};
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;
use crate::stall;

mod assemble;
mod cells;
mod conditions;
mod estimate;
mod floor;
mod follow;
mod gather;
mod part;
mod plan;
mod record;
#[cfg(test)]
mod tests;
mod trial;
mod turn;

pub use cells::{CellSpec, MeasuredCell, cell_specs, measure};
pub use estimate::{ScenarioCost, estimate};
pub use follow::{CampaignState, Follower, Seen};
pub use gather::{GatherError, Gathered, gather};

use assemble::Provenance;
use conditions::difference;
use floor::FLOOR_DUT;
use part::{CampaignPart, controller_of, parts, turns};
use plan::{BED_COST, Plan, group_cost};
use programs::cancel::{Budget, Cancel, Stopped};
use record::{PartRecord, Place, Record};
use turn::{HeldDut, Round, check_fit};

/// Order for a campaign.
pub struct Campaign {
    /// The scenarios, in order.
    pub scenarios: Vec<Scenario>,
    /// The switches, in the order of the tables.
    pub duts: Vec<&'static dyn Dut>,
    /// Whether the scenarios' quick form is run.
    pub is_quick: bool,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    pub starts: Option<usize>,
    /// The time that it may take.
    pub limit: Option<Duration>,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: ProgramPaths,
    /// Folder of the ledger.
    pub folder: PathBuf,
    /// Whether an earlier campaign is gone on with.
    pub is_resumed: bool,
    /// The command that was typed.
    pub command: Vec<String>,
    /// Notes for the reader, known beforehand.
    pub notes: Vec<String>,
    /// Shows no progress.
    pub quiet: bool,
}

/// Why a campaign yields nothing.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// It was interrupted; its trials are in the ledger.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The ledger of an earlier campaign.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The folder takes no files.
    #[error("cannot write into {folder}; another folder: --out FOLDER: {source}")]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Functions that a campaign takes from outside; tests put others in their place.
struct Outside<'a> {
    /// Does the work, and says for how many milliseconds the machine stalled meanwhile.
    watch: &'a dyn Fn(&mut dyn FnMut()) -> f64,
    /// Whether what has a floor is measured on a wire too.
    has_floor: bool,
    machine: Machine,
}

struct Run<'a> {
    campaign: &'a Campaign,
    parts: &'a [CampaignPart<'a>],
    outside: &'a Outside<'a>,
    cancel: &'a Cancel,
    budget: Budget,
    clock: Instant,
    /// `None` after a write has failed.
    ledger: Option<Ledger>,
    /// All that is known, of earlier parts of the campaign too.
    record: Record,
    /// The trials made here, as lines of a ledger, where they are handed on.
    kept: Option<Vec<Entry>>,
    progress: RunProgress,
    plan: Plan,
    /// Switches and controllers whose programs are there: each was asked for its version once.
    installed: BTreeSet<&'static str>,
    /// Switches that wait for their next turn where one start serves all of them, by scenario,
    /// switch and first cell.
    held: BTreeMap<Place, HeldDut>,
}

/// Measures everything.
///
/// # Errors
/// [`CampaignError`]; an interrupted campaign has taken everything down.
pub fn execute(campaign: &Campaign, cancel: &Cancel) -> Result<Results, CampaignError> {
    let outside = Outside {
        watch: &|work| stall::watch(work),
        has_floor: campaign.kind == TestbedKind::Kernel,
        machine: Machine::read(),
    };
    execute_with(campaign, cancel, &outside)
}

fn execute_with(
    campaign: &Campaign,
    cancel: &Cancel,
    outside: &Outside<'_>,
) -> Result<Results, CampaignError> {
    let parts = parts(campaign)?;
    let head = head(campaign, &parts)?;
    let part_head = PartHead {
        started: now_utc(),
        command: campaign.command.clone(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        machine: outside.machine.clone(),
        programs: assemble::programs(campaign, &parts),
        duts: campaign.duts.iter().map(|dut| dut.word().to_owned()).collect(),
        starts: campaign.starts,
    };
    let mut run = Run::new(campaign, &parts, cancel, outside);
    if campaign.is_resumed {
        let (ledger, lines) = Ledger::resume(&campaign.folder, &head)?;
        let path = ledger.path().to_owned();
        lines.into_iter().for_each(|line| run.record.apply(&parts, line));
        let last = run.record.runs.last();
        let differs = |old: &PartRecord| difference(old.head.conditions(), part_head.conditions());
        if let Some(what) = last.and_then(differs) {
            return Err(LedgerError::Conditions { path, what }.into());
        }
        run.ledger = Some(ledger);
    } else {
        let folder = |source| CampaignError::Folder { folder: campaign.folder.clone(), source };
        run.ledger = Some(Ledger::create(&campaign.folder, &head).map_err(folder)?);
    }
    run.log(LedgerLine::Part(Box::new(part_head)));
    campaign.notes.iter().for_each(|note| run.note(note.clone()));
    let outcome = run.scenarios();
    match &outcome {
        Ok(()) => run.log(LedgerLine::End { end: PartEnd::Whole }),
        Err(CampaignError::Stopped(_)) => run.log(LedgerLine::End { end: PartEnd::Interrupted }),
        Err(_) => {}
    }
    outcome?;
    let provenance = Provenance::of_runs(&run.record);
    Ok(assemble::results(campaign, &parts, run.record, provenance)?)
}

/// Head of the campaign's ledger.
fn head(campaign: &Campaign, parts: &[CampaignPart<'_>]) -> Result<LedgerHead, ScenarioError> {
    Ok(LedgerHead {
        format: LEDGER_FORMAT,
        scenarios: campaign.scenarios.iter().map(|scenario| scenario.source.clone()).collect(),
        is_quick: campaign.is_quick,
        testbed: campaign.kind,
        values: parts.iter().map(CampaignPart::values).collect::<Result<_, _>>()?,
    })
}

impl<'a> Run<'a> {
    fn new(
        campaign: &'a Campaign,
        parts: &'a [CampaignPart<'a>],
        cancel: &'a Cancel,
        outside: &'a Outside<'a>,
    ) -> Self {
        let steps: usize = parts.iter().map(|part| part.steps(campaign)).sum();
        Self {
            campaign,
            parts,
            outside,
            cancel,
            budget: Budget::start(campaign.limit),
            clock: Instant::now(),
            ledger: None,
            record: Record::default(),
            kept: None,
            progress: RunProgress::new(steps as u64, campaign.quiet),
            plan: Plan::new(Duration::ZERO),
            installed: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    fn scenarios(&mut self) -> Result<(), CampaignError> {
        self.plan = Plan::new(self.cost());
        let parts = self.parts;
        for (index, part) in parts.iter().enumerate() {
            let all = groups(&part.cells);
            for start in 0..part.starts {
                self.floor(index, part, start)?;
                let mut turns = turns(part, self.campaign, &all);
                if part.scenario.is_held && start % 2 == 1 {
                    // A B B A: what changes steadily falls on all alike.
                    turns.reverse();
                }
                for (group, dut) in turns {
                    self.turn(&Round { index, part, group: &group, dut, start })?;
                }
            }
            self.held.clear();
        }
        Ok(())
    }

    /// About how long everything takes that is not in the ledger.
    fn cost(&self) -> Duration {
        let mut cost = Duration::ZERO;
        for (index, part) in self.parts.iter().enumerate() {
            let all = groups(&part.cells);
            for start in 0..part.starts {
                for (group, dut) in turns(part, self.campaign, &all) {
                    let round = Round { index, part, group: &group, dut, start };
                    let settings = &group.cells[0].1.settings;
                    let fits = check_fit(self.campaign, part, dut, settings).is_ok();
                    if fits && !self.has_old(&round) {
                        cost += group_cost(part, &group, dut);
                    }
                }
            }
        }
        cost
    }

    /// A step begins.
    fn begin(&mut self, title: &str, cost: Duration) {
        let left_s = self.plan.left_s();
        self.progress.left(left_s);
        self.progress.begin(title);
        let (done, of) = self.progress.steps();
        let (title, cost_s) = (title.to_owned(), cost.as_secs_f64());
        self.log(LedgerLine::Step(RunStep { title, done, of, cost_s, left_s }));
    }

    /// Files a trial, in the results and in the ledger.
    fn keep(
        &mut self,
        round: &Round<'_>,
        (_, of): (usize, &ScenarioCell),
        mut trial: TrialRecord,
        distributions: Vec<MeasuredDistribution>,
    ) {
        trial.machine.clone_from(&self.outside.machine.id);
        let (scenario, dut) = (round.part.scenario.id.clone(), round.dut.name().to_owned());
        let entry = Entry { scenario, dut, at: of.at.clone(), trial, distributions };
        if let Some(kept) = &mut self.kept {
            kept.push(entry.clone());
        }
        self.log(LedgerLine::Trial(Box::new(entry)));
    }

    /// Adds a line to the ledger, and to what is known. A disk that is full does not end the
    /// measurements: the results may still find a place.
    fn log(&mut self, line: LedgerLine) {
        let at_s = (self.clock.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let stamped = Stamped { at_s, line };
        let written = self.ledger.as_mut().map(|ledger| ledger.append(&stamped));
        self.record.apply(self.parts, stamped);
        if let Some(Err(error)) = written
            && let Some(ledger) = self.ledger.take()
        {
            let note = format!("{}: no trials from here on: {error}", ledger.path().display());
            self.progress.say(&note);
            self.record.note(note);
        }
    }

    fn note(&mut self, text: String) {
        if !self.record.notes.contains(&text) {
            self.log(LedgerLine::Note { text });
        }
    }
}
