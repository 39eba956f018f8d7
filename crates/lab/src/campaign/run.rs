//! Carries a campaign out: every job of its plan, every trial in the ledger.
//!
//! Each job starts its switch anew: a start is part of the spread. It must never drop a trial from
//! the results: one that failed or stalled is there with its reason. Where the ledger cannot be
//! written it ends: what is measured must be in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::time::{Duration, Instant};

use programs::cancel::{Cancel, Stopped};
use programs::tools::{Missing, Program};

use super::job::{Campaign, Job, controller_of, head, jobs};
use super::ledger::{self, LedgerError, LedgerLine, Stamped};
use super::record::{Place, Record};
use super::scenario::Scenario;
use crate::dut::Dut;
use crate::facts::{Machine, now_utc};
use crate::names::distinct;
use crate::progress::RunProgress;
use crate::results::{DutInfo, PartEnd, Results, RunPart, ScenarioCell, TrialRecord};
use crate::stall;

mod conditions;
mod further;
#[cfg(test)]
pub(super) mod tests;
mod trial;
mod turn;

use conditions::check_part;
use turn::Started;

/// Why a campaign yields nothing.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// It was interrupted; its trials are in the ledger.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The ledger: that of an earlier campaign, or no room for its lines.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Its plan has no job of that number, but so many.
    #[error("--job {0}: there are {1} jobs, from 0 on (`weir lab jobs` lists them)")]
    NoJob(usize, usize),
}

/// Functions that a campaign takes from outside; tests put others in their place.
struct Outside<'a> {
    /// Does the work, and says for how many milliseconds the machine stalled meanwhile.
    watch: &'a dyn Fn(&mut dyn FnMut()) -> f64,
    /// Draws what there is so far, with how the run stands until it ends; no more often than this.
    draw: &'a Draw<'a>,
    draw_every: Duration,
    has_floor: bool,
    machine: Machine,
}

/// Draws results; while the run goes on, with its state in words.
pub type Draw<'a> = dyn Fn(&Results, Option<&str>) + 'a;

/// Pause between two drawings: each takes time from the run, though from no trial.
const DRAW_EVERY: Duration = Duration::from_secs(15);

struct Run<'a> {
    campaign: &'a Campaign,
    outside: &'a Outside<'a>,
    cancel: &'a Cancel,
    clock: Instant,
    ledger: File,
    /// All that is known, of earlier parts of the campaign too.
    record: Record,
    progress: RunProgress,
    drawn: Instant,
    /// The switches and controllers of which a program is not installed, with the remedy.
    missing: BTreeMap<&'static str, Missing>,
    /// Switches that wait for their next turn of one start, by their first point.
    held: BTreeMap<Place, Started>,
}

/// Measures everything, or the campaign's one job, and draws it between two jobs. With the results
/// comes a failure that might not come again. An interrupted campaign has taken everything down.
pub fn execute(
    campaign: &Campaign,
    cancel: &Cancel,
    draw: &Draw<'_>,
) -> Result<(Results, Option<String>), CampaignError> {
    let watch = &|work: &mut dyn FnMut()| stall::watch(work);
    let (has_floor, machine) = (campaign.has_floor(), Machine::read());
    let outside = Outside { watch, draw, draw_every: DRAW_EVERY, has_floor, machine };
    let record = execute_with(campaign, cancel, &outside)?;
    Ok((record.results().expect("a run has a part"), record.failure()))
}

fn execute_with(
    campaign: &Campaign,
    cancel: &Cancel,
    outside: &Outside<'_>,
) -> Result<Record, CampaignError> {
    let mut jobs = jobs(campaign, outside.has_floor);
    let of = jobs.len();
    if let Some(job) = campaign.job {
        jobs = jobs.into_iter().skip(job).take(1).collect();
        if jobs.is_empty() {
            return Err(CampaignError::NoJob(job, of));
        }
    }
    let (programs, missing) = programs(campaign);
    let switch = |dut: &&Dut| DutInfo { name: dut.name.to_owned(), about: dut.about.to_owned() };
    let part = RunPart {
        started: now_utc(),
        command: std::env::args().collect(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        machine: outside.machine.clone(),
        programs,
        switches: campaign.duts.iter().map(switch).collect(),
        starts: campaign.starts,
        job: campaign.job.map(|job| (job, of)),
        duration_s: None,
        end: None,
    };
    let (ledger, record) = open(campaign, &part)?;
    let mut run = Run::new(campaign, ledger, record, cancel, outside);
    run.missing = missing;
    run.log(LedgerLine::Part(Box::new(part)))?;
    for note in &campaign.notes {
        run.note(note.clone())?;
    }
    let outcome = run.jobs(&jobs);
    match &outcome {
        Ok(()) => run.log(LedgerLine::End { end: PartEnd::Whole })?,
        Err(CampaignError::Stopped(_)) => {
            run.log(LedgerLine::End { end: PartEnd::Interrupted })?;
            run.draw(None);
        }
        Err(_) => {}
    }
    outcome.map(|()| run.record)
}

/// The campaign's ledger, and what is in it.
fn open(campaign: &Campaign, part: &RunPart) -> Result<(File, Record), CampaignError> {
    let (head, folder) = (head(campaign), &campaign.folder);
    if !campaign.is_resumed {
        let ledger = ledger::create(folder, &head)?;
        return Ok((ledger, Record { head: Some(head), ..Record::default() }));
    }
    let (ledger, lines) = ledger::resume(folder, &head)?;
    let record = Record::of(lines);
    if let Some(old) = record.parts.last() {
        check_part(folder, [old, part])?;
    }
    Ok((ledger, record))
}

/// The programs of the switches, of the controllers that the cells name, and of the methods, each
/// asked for its version once; and the switches and controllers that lack one.
fn programs(campaign: &Campaign) -> (Vec<Program>, BTreeMap<&'static str, Missing>) {
    let (mut programs, mut missing, mut asked) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let cells = campaign.scenarios.iter().flat_map(Scenario::cells);
    let controllers = cells.filter_map(|cell| controller_of(&cell.settings)?.ok());
    let all = campaign.duts.iter().copied().chain(controllers);
    for dut in all.filter(|dut| asked.insert((dut.name, dut.is_controller))) {
        match (dut.programs)(dut, &campaign.paths) {
            Ok(found) => programs.extend(found),
            Err(why) => drop(missing.insert(dut.name, why)),
        }
    }
    let methods = campaign.scenarios.iter().flat_map(Scenario::methods);
    programs.extend(methods.flat_map(|one| one.tools).filter_map(|tool| tool.program().ok()));
    (distinct(programs), missing)
}

impl<'a> Run<'a> {
    fn new(
        campaign: &'a Campaign,
        ledger: File,
        record: Record,
        cancel: &'a Cancel,
        outside: &'a Outside<'a>,
    ) -> Self {
        Self {
            campaign,
            outside,
            cancel,
            clock: Instant::now(),
            ledger,
            record,
            progress: RunProgress::new(0, true),
            drawn: Instant::now(),
            missing: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    fn jobs(&mut self, jobs: &[Job<'_>]) -> Result<(), CampaignError> {
        let to_measure = jobs.iter().filter(|job| job.check_fit().is_ok() && !self.has_all(job));
        let cost = to_measure.map(Job::cost).sum();
        let steps = jobs.iter().map(Job::steps).sum();
        self.progress = RunProgress::new(steps, self.campaign.quiet);
        for job in jobs {
            if self.held.keys().any(|(scenario, ..)| *scenario != job.scenario.id) {
                self.held.clear();
            }
            self.job(job)?;
        }
        self.held.clear();
        match self.campaign.further_limit(cost) {
            Some(limit) => self.further_starts(jobs, limit),
            None => Ok(()),
        }
    }

    /// Draws what there is so far.
    fn draw(&mut self, state: Option<&str>) {
        if let Some(results) = self.record.results() {
            (self.outside.draw)(&results, state);
        }
        self.drawn = Instant::now();
    }

    /// Files a trial.
    fn keep(
        &mut self,
        job: &Job<'_>,
        cell: &ScenarioCell,
        mut trial: TrialRecord,
    ) -> Result<(), CampaignError> {
        trial.machine.clone_from(&self.outside.machine.id);
        let (scenario, dut) = (job.scenario.id.clone(), job.dut.name.to_owned());
        let (at, trial) = (cell.at.clone(), Box::new(trial));
        self.log(LedgerLine::Trial { scenario, dut, at, trial })
    }

    /// Adds a line to the ledger, and to what is known.
    fn log(&mut self, line: LedgerLine) -> Result<(), CampaignError> {
        let at_s = (self.clock.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let stamped = Stamped { at_s, line };
        ledger::append(&self.ledger, &stamped).map_err(|error| {
            let path = self.campaign.folder.join(ledger::NAME);
            let remedy = "its whole lines are kept: make room and go on with --resume";
            LedgerError::new(path.display(), format_args!("{error}; {remedy}"))
        })?;
        self.record.apply(stamped);
        Ok(())
    }

    fn note(&mut self, text: String) -> Result<(), CampaignError> {
        if self.record.notes.contains(&text) {
            return Ok(());
        }
        self.log(LedgerLine::Note { text })
    }
}
