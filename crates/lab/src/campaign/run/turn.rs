//! A switch's turn: it is started, or let go on where it was held, and measured in every cell that
//! this start serves.
//!
//! A trial in which the machine stalled is made again. One that failed or stalled is filed with its
//! reason, and never dropped.

use std::slice;

use programs::cancel::Stopped;
use programs::process::Held;
use programs::scratch;

use super::trial::{commands, failed, hits_between, record};
use super::{CampaignError, Run};
use crate::campaign::job::{Job, controller_of};
use crate::campaign::ledger::LedgerLine;
use crate::campaign::record::{Place, START};
use crate::dut::Dut;
use crate::method::{Method, MethodContext, Trial};
use crate::results::{CellState, NOT_SUPPORTED, ScenarioCell, TrialRecord};
use crate::settings::{ChannelTransport, Settings};
use crate::setup::{Setup, SetupError, SetupParts, TestbedKind, explain};
use crate::stall::Stall;
use crate::trial_error::TrialError;

/// Attempts at a trial when the machine stalls meanwhile.
const ATTEMPTS: usize = 3;

impl Job<'_> {
    /// Name of the cell in the progress.
    fn title(&self, cell: &ScenarioCell) -> String {
        let at: Vec<&str> = cell.at.values().map(String::as_str).collect();
        let (scenario, dut) = (&self.scenario.id, self.dut.name);
        format!("{scenario} {dut}: {}, start {}", at.join(", "), self.start + 1)
    }

    /// Key of the cell's results.
    fn place(&self, cell: &ScenarioCell) -> Place {
        (self.scenario.id.clone(), self.dut.name.to_owned(), cell.at.clone())
    }
}

/// A switch that runs, or is held still while others have their turns. A stopped process does not
/// end, so it is let go first; the folder goes last: its programs write into it.
pub(super) struct Started {
    held: Vec<Held>,
    setup: Setup,
    folder: tempfile::TempDir,
}

impl Run<'_> {
    /// Measures a job, unless an earlier part of the campaign has.
    pub(super) fn job(&mut self, job: &Job<'_>) -> Result<(), CampaignError> {
        let before = self.progress.steps().0;
        if !self.has_all(job) {
            self.measure_job(job)?;
        }
        let done = self.progress.steps().0.saturating_sub(before);
        self.progress.advance(job.steps().saturating_sub(done));
        if self.drawn.elapsed() >= self.outside.draw_every {
            let (done, of) = self.progress.steps();
            self.draw(Some(&format!("{done} of {of} steps")));
        }
        Ok(())
    }

    /// Measures the points of a job, if they can be; or says why they cannot.
    fn measure_job(&mut self, job: &Job<'_>) -> Result<(), CampaignError> {
        let first = &job.cells[0];
        if let Err(state) = self.check(job) {
            return self.close(job, &job.cells, &state);
        }
        if self.campaign.limit.is_some_and(|limit| self.clock.elapsed() + job.cost() > limit) {
            let state = CellState::Skipped("no time left in the budget".to_owned());
            self.close(job, &job.cells, &state)?;
            return self.note(format!("{}: left out, no time left", job.title(first)));
        }
        let mut started = self.held.remove(&job.place(first));
        match &mut started {
            Some(held) => held.held.clear(),
            None => self.progress.begin(&format!("{}: start", job.title(first))),
        }
        let setup = match self.running(job, &mut started)? {
            Ok(running) => &running.setup,
            Err(error) => return self.not_started(job, &error),
        };
        self.log_start(job, commands(setup, job.setup()))?;
        for of in setup.bed().boxes() {
            self.check_box(of)?;
        }
        for note in setup.bed().notes().into_iter().filter(|_| !job.is_floor()) {
            self.note(note)?;
        }
        for cell in &job.cells {
            for method in &job.methods {
                let title = format!("{}: {}", job.title(cell), method.label);
                self.progress.begin(&title);
                for trial in 0..job.scenario.trials(method) {
                    self.trial(job, (cell, trial), method, &mut started, &title)?;
                }
                self.progress.advance(1);
            }
        }
        let has_next =
            self.campaign.job.is_none() && job.start + 1 < self.campaign.starts(job.scenario);
        let is_held = job.scenario.is_held && !job.is_floor() && has_next;
        if let Some(started) = started.filter(|_| is_held) {
            self.hold(job, started);
        }
        Ok(())
    }

    /// A switch was started for the cells of a job, or failed to start.
    fn log_start(&mut self, job: &Job<'_>, commands: Vec<String>) -> Result<(), CampaignError> {
        let (scenario, dut) = (job.scenario.id.clone(), job.dut.name.to_owned());
        self.log(LedgerLine::Start { scenario, dut, start: job.start, at: job.at(), commands })
    }

    fn not_started(&mut self, job: &Job<'_>, error: &SetupError) -> Result<(), CampaignError> {
        let why = error.to_string();
        self.progress.say(&format!("{}: {why}", job.title(&job.cells[0])));
        self.log_start(job, Vec::new())?;
        for cell in &job.cells {
            self.keep(job, cell, failed(START, (job.start, 0), why.clone()))?;
        }
        let state = error.refusal().map_or(CellState::Failed(why), CellState::NotSupported);
        self.close(job, &job.cells, &state)
    }

    /// Measures until the machine did not stall meanwhile, or the attempts are over. A switch that
    /// an attempt has spent, or that has ended, is started anew for the next.
    fn trial(
        &mut self,
        job: &Job<'_>,
        (cell, trial): (&ScenarioCell, usize),
        method: &Method,
        started: &mut Option<Started>,
        title: &str,
    ) -> Result<(), CampaignError> {
        let settings = job.scenario.settings_of(method, &cell.settings);
        let before = self.record.last(&job.place(cell), method);
        for attempt in 0..ATTEMPTS {
            let (mut tier, mut is_unfit) = ((None, None), false);
            let (outcome, stall) = match self.running(job, started)? {
                Ok(running) => {
                    // Only what is known beforehand leaves the switch unused and goes unprinted.
                    is_unfit = (method.fits)(running.setup.bed()).is_err();
                    let first = running.setup.tier_hits();
                    let measured = self.measure(method, running, &settings, before)?;
                    tier = hits_between(first, running.setup.tier_hits());
                    measured
                }
                Err(error) => {
                    let why = format!("started anew: {error}");
                    (Err(CellState::Failed(why)), Stall::default())
                }
            };
            if let Err(state @ CellState::NotSupported(_)) = &outcome {
                self.close(job, slice::from_ref(cell), state)?;
            } else if let Err(CellState::Missing(why)) = &outcome {
                self.note(format!("No figures of {}: {why}", method.label))?;
            }
            let is_spent = method.spends_setup && !is_unfit;
            if is_spent || started.as_mut().is_some_and(|one| one.setup.check().is_err()) {
                *started = None;
            }
            let is_stalled = stall.is_long();
            let mut record = record(method, (job.start, trial), outcome);
            if job.is_floor() {
                record.values.retain(|id, _| method.floors.contains(&id.as_str()));
                record.resolutions.clear();
                record.distributions.clear();
            }
            record.attempt = attempt;
            record.stall_ms = stall.ms;
            (record.tier_hits, record.tier_error) = tier;
            if is_stalled && record.error.is_none() {
                // The last attempt too: what a stall spoiled is named, and no sample.
                record.error = Some(stall.error());
            }
            record.stall_at = stall.at;
            if let Some(error) = record.error.as_ref().filter(|_| !is_unfit) {
                self.progress.say(&format!("{title}: {error}"));
                record.distributions.clear();
            }
            self.keep(job, cell, record)?;
            if !is_stalled {
                break;
            }
        }
        Ok(())
    }

    /// The switch of a turn, started where there is none; or why it did not start.
    fn running<'s>(
        &self,
        job: &Job<'_>,
        started: &'s mut Option<Started>,
    ) -> Result<Result<&'s mut Started, SetupError>, Stopped> {
        let new = match started.take() {
            Some(running) => Ok(running),
            None => self.start(job),
        };
        match new {
            Err(error) if error.is_stop() => Err(Stopped),
            new => Ok(new.map(|new| started.insert(new))),
        }
    }

    /// Says what became of cells that are not measured; figures of an earlier start stay.
    fn close(
        &mut self,
        job: &Job<'_>,
        cells: &[ScenarioCell],
        state: &CellState,
    ) -> Result<(), CampaignError> {
        cells.iter().try_for_each(|cell| {
            let ((scenario, dut, at), state) = (job.place(cell), state.clone());
            self.log(LedgerLine::State { scenario, dut, at, state })
        })
    }

    /// Whether an earlier part of the campaign has all trials of this job.
    pub(super) fn has_all(&self, job: &Job<'_>) -> bool {
        let is_over = |one: &TrialRecord| {
            one.error.as_ref().is_none_or(|error| error.starts_with(NOT_SUPPORTED))
        };
        let has = |trials: &[TrialRecord], number: (&str, usize, usize)| {
            let is_it = |one: &&TrialRecord| (&*one.method, one.start, one.trial) == number;
            trials.iter().filter(is_it).any(is_over)
        };
        job.cells.iter().all(|cell| {
            let Some(found) = self.record.found.get(&job.place(cell)) else { return false };
            let all = |method: &&Method| {
                let mut trials = 0..job.scenario.trials(method);
                trials.all(|at| has(&found.trials, (method.id, job.start, at)))
            };
            job.methods.iter().all(all)
        })
    }

    /// Why a job's switch is not started, if so.
    fn check(&self, job: &Job<'_>) -> Result<(), CellState> {
        job.check_fit()?;
        let (dut, settings) = (job.dut, job.setup());
        let has_ports = settings.replay.is_none() && settings.fleet.is_none();
        let is_memory = self.campaign.kind == TestbedKind::Memory && has_ports;
        if is_memory && !job.is_floor() && (!dut.has_memory_ports || settings.line() > 1) {
            let what = "has no such in-memory ports: run as root".to_owned();
            return Err(CellState::Missing(what));
        }
        let is_installed = |dut: &Dut| match self.missing.get(dut.name) {
            Some(missing) => Err(CellState::Missing(missing.to_string())),
            None => Ok(()),
        };
        is_installed(dut)?;
        if let Some(controller) = controller_of(settings) {
            let controller = controller?;
            is_installed(controller)?;
            if settings.transport() == ChannelTransport::Tls && !controller.has_tls {
                let what = format!("the lab starts {} without TLS only", controller.name);
                return Err(CellState::NotSupported(what));
            }
        }
        Ok(())
    }

    fn start(&self, job: &Job<'_>) -> Result<Started, SetupError> {
        let folder = scratch::make()?;
        let parts = SetupParts {
            settings: job.setup(),
            dut: job.dut,
            controller: controller_of(job.setup()).and_then(Result::ok),
            kind: self.campaign.kind,
            paths: &self.campaign.paths,
            dir: folder.path(),
            cancel: self.cancel,
        };
        let setup = Setup::start(&parts)?;
        Ok(Started { held: Vec::new(), setup, folder })
    }

    /// One measurement, and the longest stall meanwhile.
    fn measure(
        &self,
        method: &Method,
        started: &mut Started,
        settings: &Settings,
        before: Option<f64>,
    ) -> Result<(Result<Trial, CellState>, Stall), Stopped> {
        let none = |state| Ok((Err(state), Stall::default()));
        let setup = &mut started.setup;
        if let Err(reason) = (method.fits)(setup.bed()) {
            return none(CellState::NotSupported(reason.to_owned()));
        }
        let watched = setup.watched();
        let context = MethodContext {
            bed: setup.bed(),
            setup,
            settings,
            watched: &watched,
            before,
            dir: started.folder.path(),
            cancel: self.cancel,
        };
        let mut outcome = None;
        // What stalled before is of another trial.
        let _ = context.bed.take_stall();
        // What watches for stalls keeps off the cores that forward too: it would wait there for
        // the forwarder, and take time from it.
        let off = match context.bed.keep_off() {
            Ok(off) => off,
            Err(error) => return none(CellState::Failed(format!("choosing cores: {error}"))),
        };
        let stall_ms = (self.outside.watch)(&mut || outcome = Some((method.run)(&context)));
        drop(off);
        let stall = Stall::here(stall_ms).or(context.bed.take_stall());
        let stall = if method.finds_stalls { Stall::default() } else { stall };
        let outcome = match outcome.expect("the watch does its work") {
            // What a switch that has ended meanwhile let through is no figure.
            Ok(trial) => match setup.check_switch() {
                Ok(()) => Ok(trial),
                Err(ended) => Err(CellState::Failed(ended.to_string())),
            },
            Err(_) if self.cancel.check().is_err() => return Err(Stopped),
            Err(TrialError::Unfit(reason)) => Err(CellState::NotSupported(reason.to_owned())),
            Err(TrialError::Missing(tool)) => Err(CellState::Missing(tool.0)),
            Err(error) => Err(CellState::Failed(explain(setup, &error))),
        };
        Ok((outcome, stall))
    }

    /// Lets a switch wait for its next turn. One that has ended until now is started anew then; one
    /// that ends while it waits fails there.
    fn hold(&mut self, job: &Job<'_>, mut started: Started) {
        let held = started.setup.switch_pids().into_iter().map(Held::hold);
        if let Ok(held) = held.collect::<anyhow::Result<_>>() {
            started.held = held;
            self.held.insert(job.place(&job.cells[0]), started);
        }
    }
}
