//! A switch's turn: it is started, or let go on where it was held, and measured in every cell that
//! this start serves.
//!
//! A trial in which the machine stalled is made again. One that failed or stalled is filed with its
//! reason, and never dropped.

use std::time::Duration;

use programs::cancel::Stopped;
use programs::held::Held;
use programs::scratch;

use super::part::{CampaignPart, controller_of};
use super::plan::{group_cost, start_cost};
use super::record::{NOT_SUPPORTED, Place, START};
use super::trial::{NoTrial, commands, failed, hits_between, record};
use super::{Campaign, CampaignError, Run};
use crate::campaign::ledger::LedgerLine;
use crate::campaign::order::Group;
use crate::campaign::scenario::ScenarioCell;
use crate::dut::Dut;
use crate::facts;
use crate::method::{Method, MethodContext, Trial};
use crate::results::{CellState, Coordinates, TrialRecord};
use crate::settings::{ChannelTransport, Settings};
use crate::setup::{Setup, SetupError, SetupParts, TestbedKind, explain};
use crate::stall::Stall;
use crate::trial_error::TrialError;

/// Attempts at a trial when the machine stalls meanwhile.
const ATTEMPTS: usize = 3;

/// A switch's turn: the cells that one start of it serves, once.
pub(super) struct Round<'a> {
    /// Of the scenario.
    pub(super) index: usize,
    pub(super) part: &'a CampaignPart<'a>,
    pub(super) group: &'a Group<'a>,
    pub(super) dut: &'static dyn Dut,
    pub(super) start: usize,
}

impl Round<'_> {
    /// Name of the cell in the progress.
    fn title(&self, cell: &ScenarioCell) -> String {
        let at: Vec<&str> = cell.at.values().map(String::as_str).collect();
        let (scenario, dut) = (&self.part.scenario.id, self.dut.name());
        format!("{scenario} {dut}: {}, start {}", at.join(", "), self.start + 1)
    }

    /// Its trials of a cell: method and number.
    fn trials(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let part = self.part;
        part.methods.iter().flat_map(move |method| {
            let trials = part.scenario.trials(*method, part.is_quick);
            (0..trials).map(move |trial| (method.id(), trial))
        })
    }

    /// Key of the cell's results.
    fn place(&self, cell: usize) -> Place {
        (self.index, self.dut.name().to_owned(), cell)
    }
}

/// A switch that is held still while others have their turns. A stopped process does not end, so it
/// is let go before.
pub(super) struct HeldDut {
    _held: Vec<Held>,
    started: Started,
}

/// A switch that runs. The folder goes last: its programs write into it.
pub(super) struct Started {
    setup: Setup,
    folder: tempfile::TempDir,
}

impl Run<'_> {
    /// Measures the cells that one start of a switch serves.
    pub(super) fn turn(&mut self, round: &Round<'_>) -> Result<(), CampaignError> {
        let cells = &round.group.cells;
        let steps = (cells.len() * round.part.methods.len()) as u64;
        if self.has_old(round) {
            self.progress.advance(steps);
            return Ok(());
        }
        let cost = group_cost(round.part, round.group, round.dut);
        let before = self.progress.steps().0;
        self.plan.begin();
        let is_measured = self.group(round, cost)?;
        self.plan.end(cost, is_measured);
        let done = self.progress.steps().0.saturating_sub(before);
        self.progress.advance(steps.saturating_sub(done));
        Ok(())
    }

    /// Measures the cells of a turn, if they can be; or says why they cannot.
    fn group(&mut self, round: &Round<'_>, cost: Duration) -> Result<bool, CampaignError> {
        let cells = &round.group.cells;
        let settings = &cells[0].1.settings;
        if let Err(state) = self.check(round.part, round.dut, settings) {
            self.close(round, &state);
            return Ok(false);
        }
        if !self.budget.allows(cost) {
            self.close(round, &CellState::Skipped("no time left in the budget".to_owned()));
            self.note(format!("{}: left out, no time left", round.title(cells[0].1)));
            return Ok(false);
        }
        let started = match self.held.remove(&round.place(cells[0].0)) {
            Some(HeldDut { started, .. }) => started,
            None => {
                let cost = start_cost(round.dut, settings);
                self.begin(&format!("{}: start", round.title(cells[0].1)), cost);
                match self.start(round.dut, settings) {
                    Ok(started) => started,
                    Err(error) if error.is_stop() => return Err(Stopped.into()),
                    Err(error) => {
                        self.not_started(round, &error);
                        return Ok(false);
                    }
                }
            }
        };
        self.log_start(round, commands(&started.setup, settings));
        for of in started.setup.bed().boxes() {
            self.check_box(of)?;
        }
        for note in started.setup.bed().notes() {
            self.note(note);
        }
        let mut started = Some(started);
        for cell in cells {
            for method in &round.part.methods {
                let title = format!("{}: {}", round.title(cell.1), method.label());
                self.begin(&title, round.part.cost(*method, cell.1));
                let trials = round.part.scenario.trials(*method, round.part.is_quick);
                for trial in 0..trials {
                    self.trial(round, (*cell, trial), *method, &mut started, &title)?;
                }
                self.progress.advance(1);
            }
        }
        if let Some(started) = started
            && round.part.scenario.is_held
            && round.start + 1 < round.part.starts
        {
            self.hold(round, started);
        }
        Ok(true)
    }

    /// A switch was started for the cells of a turn, or failed to start.
    fn log_start(&mut self, round: &Round<'_>, commands: Vec<String>) {
        let at: Vec<Coordinates> =
            round.group.cells.iter().map(|(_, cell)| cell.at.clone()).collect();
        let (scenario, dut) = (round.part.scenario.id.clone(), round.dut.name().to_owned());
        self.log(LedgerLine::Start { scenario, dut, start: round.start, at, commands });
    }

    fn not_started(&mut self, round: &Round<'_>, error: &SetupError) {
        let cells = &round.group.cells;
        self.progress.say(&format!("{}: {error}", round.title(cells[0].1)));
        self.log_start(round, Vec::new());
        for cell in cells {
            let record = failed(START, (round.start, 0), error.to_string());
            self.keep(round, *cell, record, Vec::new());
        }
        let state = match error.refusal() {
            Some(reason) => CellState::NotSupported(reason),
            None => CellState::Failed(error.to_string()),
        };
        self.close(round, &state);
    }

    /// Measures until the machine did not stall meanwhile, or the attempts are over. A switch that
    /// an attempt has spent, or that has ended, is started anew for the next.
    fn trial(
        &mut self,
        round: &Round<'_>,
        (cell, trial): ((usize, &ScenarioCell), usize),
        method: &dyn Method,
        started: &mut Option<Started>,
        title: &str,
    ) -> Result<(), CampaignError> {
        let settings = round.part.settings(method, cell.1);
        let found = self.record.found.get(&round.place(cell.0));
        let before = found.and_then(|found| found.last(method));
        let number = (round.start, trial);
        for attempt in 0..ATTEMPTS {
            let mut tier = (None, None);
            let (outcome, stall) = match self.running(round, started)? {
                Ok(running) => match method.fits(running.setup.bed()) {
                    Ok(()) => {
                        let first = running.setup.tier_hits();
                        let measured = self.measure(method, running, &settings, before)?;
                        tier = hits_between(first, running.setup.tier_hits());
                        measured
                    }
                    Err(reason) => {
                        let why = format!("{NOT_SUPPORTED}{reason}");
                        self.keep(round, cell, failed(method.id(), number, why), Vec::new());
                        self.set_state(round, cell.1, CellState::NotSupported(reason.to_owned()));
                        return Ok(());
                    }
                },
                Err(why) => (Err(NoTrial { why, is_unfit: false }), Stall::default()),
            };
            if let Err(NoTrial { why, is_unfit: true }) = &outcome {
                self.set_state(round, cell.1, CellState::NotSupported(why.clone()));
            }
            let is_spent = method.spends_setup();
            if is_spent || started.as_mut().is_some_and(|one| one.setup.check().is_err()) {
                *started = None;
            }
            let is_stalled = stall.is_long();
            let is_over = !is_stalled || attempt + 1 == ATTEMPTS;
            let (mut record, distributions) = record(method, number, outcome);
            record.attempt = attempt;
            record.stall_ms = stall.ms;
            (record.tier_hits, record.tier_error) = tier;
            if is_stalled && record.error.is_none() {
                // The last attempt too: what a stall spoiled is named, and no sample.
                record.error = Some(stall.error());
            }
            record.stall_at = stall.at;
            if let Some(error) = &record.error {
                self.progress.say(&format!("{title}: {error}"));
            }
            let distributions = if record.error.is_none() { distributions } else { Vec::new() };
            self.keep(round, cell, record, distributions);
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// The switch of a turn, started anew where a trial has spent it; or why it did not start.
    fn running<'s>(
        &self,
        round: &Round<'_>,
        started: &'s mut Option<Started>,
    ) -> Result<Result<&'s mut Started, String>, Stopped> {
        let new = match started.take() {
            Some(running) => running,
            None => match self.start(round.dut, &round.group.cells[0].1.settings) {
                Ok(new) => new,
                Err(error) if error.is_stop() => return Err(Stopped),
                Err(error) => return Ok(Err(format!("started anew: {error}"))),
            },
        };
        Ok(Ok(started.insert(new)))
    }

    /// Says what became of cells that are not measured; one that has figures of an earlier start
    /// keeps them.
    fn close(&mut self, round: &Round<'_>, state: &CellState) {
        for (_, cell) in &round.group.cells {
            self.set_state(round, cell, state.clone());
        }
    }

    fn set_state(&mut self, round: &Round<'_>, cell: &ScenarioCell, state: CellState) {
        let (scenario, dut) = (round.part.scenario.id.clone(), round.dut.name().to_owned());
        self.log(LedgerLine::State { scenario, dut, at: cell.at.clone(), state });
    }

    /// Whether an earlier part of the campaign has all trials of this turn.
    pub(super) fn has_old(&self, round: &Round<'_>) -> bool {
        let is_over = |one: &TrialRecord| {
            one.error.as_ref().is_none_or(|error| error.starts_with(NOT_SUPPORTED))
        };
        round.group.cells.iter().all(|(cell, _)| {
            self.record.found.get(&round.place(*cell)).is_some_and(|found| {
                let mut trials = round.trials();
                trials.all(|(method, trial)| {
                    let is_it = |one: &&TrialRecord| {
                        (one.method.as_str(), one.start, one.trial) == (method, round.start, trial)
                    };
                    found.trials.iter().filter(is_it).any(is_over)
                })
            })
        })
    }

    /// Why a switch is not started for these settings, if so.
    fn check(
        &mut self,
        part: &CampaignPart<'_>,
        dut: &dyn Dut,
        settings: &Settings,
    ) -> Result<(), CellState> {
        check_fit(self.campaign, part, dut, settings)?;
        let is_memory = self.campaign.kind == TestbedKind::Memory && settings.replay.is_none();
        if is_memory && (!dut.has_memory_ports() || settings.line() > 1) {
            let what = "has no such in-memory ports: run as root".to_owned();
            return Err(CellState::Missing(what));
        }
        let missing = |missing: programs::tools::Missing| CellState::Missing(missing.to_string());
        if !self.installed.contains(dut.name()) {
            dut.programs(&self.campaign.paths).map_err(missing)?;
            self.installed.insert(dut.name());
        }
        if let Some(controller) = controller_of(settings) {
            let controller = controller?;
            // No switch has the name of a controller but Weir, which is one program.
            if !self.installed.contains(controller.name()) {
                controller.programs(&self.campaign.paths).map_err(missing)?;
                self.installed.insert(controller.name());
            }
            if settings.transport() == ChannelTransport::Tls && !controller.has_tls() {
                let what = format!("the lab starts {} without TLS only", controller.name());
                return Err(CellState::NotSupported(what));
            }
        }
        Ok(())
    }

    pub(super) fn start(&self, dut: &dyn Dut, settings: &Settings) -> Result<Started, SetupError> {
        let folder = scratch::make(scratch::LAB)?;
        let parts = SetupParts {
            settings,
            dut,
            controller: controller_of(settings).and_then(Result::ok),
            kind: self.campaign.kind,
            paths: &self.campaign.paths,
            dir: folder.path(),
            cancel: self.cancel,
        };
        let setup = Setup::start(&parts)?;
        Ok(Started { setup, folder })
    }

    /// One measurement, and the longest stall meanwhile.
    pub(super) fn measure(
        &self,
        method: &dyn Method,
        started: &mut Started,
        settings: &Settings,
        before: Option<f64>,
    ) -> Result<(Result<Trial, NoTrial>, Stall), Stopped> {
        let setup = &mut started.setup;
        let unfit = |why: &str| NoTrial { why: why.to_owned(), is_unfit: true };
        let watched = setup.watched();
        let context = MethodContext {
            bed: setup.bed(),
            setup: Some(setup),
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
            Err(error) => {
                let why = format!("choosing cores: {error}");
                return Ok((Err(NoTrial { why, is_unfit: false }), Stall::default()));
            }
        };
        let stall_ms = (self.outside.watch)(&mut || outcome = Some(method.run(&context)));
        drop(off);
        let stall = Stall::here(stall_ms).or(context.bed.take_stall());
        let stall = if method.finds_stalls() { Stall::default() } else { stall };
        match outcome.expect("the watch does its work") {
            // What a switch that has ended meanwhile let through is no figure.
            Ok(trial) => match setup.check_switch() {
                Ok(()) => Ok((Ok(trial), stall)),
                Err(ended) => Ok((Err(NoTrial { why: ended.to_string(), is_unfit: false }), stall)),
            },
            Err(error) if error.is_stop() => Err(Stopped),
            Err(TrialError::Unfit(reason)) => Ok((Err(unfit(reason)), stall)),
            Err(error) => {
                Ok((Err(NoTrial { why: explain(setup, &error), is_unfit: false }), stall))
            }
        }
    }

    /// Lets a switch wait for its next turn. One that has ended until now is started anew then; one
    /// that ends while it waits fails there.
    fn hold(&mut self, round: &Round<'_>, started: Started) {
        let held: anyhow::Result<Vec<Held>> =
            started.setup.switch_pids().into_iter().map(Held::hold).collect();
        if let Ok(held) = held {
            let place = round.place(round.group.cells[0].0);
            self.held.insert(place, HeldDut { _held: held, started });
        }
    }
}

/// Whether a switch can run with these settings at all, whatever is installed, and this machine has
/// a core for each thread that forwards.
pub(super) fn check_fit(
    campaign: &Campaign,
    part: &CampaignPart<'_>,
    dut: &dyn Dut,
    settings: &Settings,
) -> Result<(), CellState> {
    let only = &part.scenario.switches;
    if !only.is_empty() && !only.iter().any(|name| name == dut.name()) {
        let what = format!("this scenario is about {}", only.join(", "));
        return Err(CellState::NotSupported(what));
    }
    let fits = settings.replay.as_ref().map_or(Ok(()), |replay| dut.replays(replay));
    let fits = fits.and_then(|()| dut.check(settings, &campaign.paths));
    fits.map_err(CellState::NotSupported)?;
    let (threads, cores) = (usize::from(settings.workers.unwrap_or(1)), facts::cores());
    if threads > cores {
        return Err(CellState::Missing(format!("needs {threads} cores, has {cores}")));
    }
    Ok(())
}
