//! Carries a campaign out: every cell on every switch, in turns, every trial in the ledger.
//!
//! Each repeat starts each switch anew, and the switches take turns at every cell: a machine that
//! grows slower or busier does so for all of them, and a start is part of the spread. A trial in
//! which the machine stalled is repeated, and said. It must never drop a trial from the results:
//! one that failed or stalled is there with its reason.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ledger::{Entry, Ledger, LedgerHead, OldTrials, TrialKey};
use super::order::{Group, groups};
use super::scenario::{Scenario, ScenarioCell, ScenarioError};
use super::stall;
use crate::cancel::{Budget, Cancel, Stopped};
use crate::controller::{self, ControllerProgram};
use crate::dut::{self, Dut};
use crate::facts::{Machine, now_utc};
use crate::limit::{self, limiting};
use crate::method::{Method, MethodContext, Trial};
use crate::progress::RunProgress;
use crate::results::{CellState, DutInfo, FORMAT, MeasuredDistribution, Results, TrialRecord};
use crate::scratch;
use crate::service::ProgramPaths;
use crate::settings::{ChannelTransport, Forwarding, Settings};
use crate::setup::{Setup, SetupError, SetupParts, TestbedKind, explain};
use crate::trial_error::TrialError;

mod assemble;
mod cells;
mod estimate;
mod gather;

pub use cells::{CellSpec, MeasuredCell, cell_specs, measure};
pub use estimate::{ScenarioCost, estimate};
pub use gather::{GatherError, Gathered, gather};

/// The name of the switch that is none: what is measured on it is the lab's own floor.
const FLOOR_DUT: &str = "wire";

/// How the error of a trial begins whose method does not fit.
const NOT_SUPPORTED: &str = "not supported: ";

/// How often a trial is tried when the machine stalls meanwhile.
const ATTEMPTS: usize = 3;

/// About how long the testbed takes to make, and how many flow entries are loaded in a second.
const BED_COST: Duration = Duration::from_millis(150);
const ENTRIES_A_SECOND: f64 = 80_000.0;

/// What is to be measured.
pub struct Campaign {
    /// The scenarios, in order.
    pub scenarios: Vec<Scenario>,
    /// The switches, in the order of the tables.
    pub duts: Vec<&'static dyn Dut>,
    /// Whether the scenarios' quick form is run.
    pub is_quick: bool,
    /// How often each cell is measured, where it is not the scenario's own number.
    pub repeats: Option<usize>,
    /// The time that it may take.
    pub limit: Option<Duration>,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: ProgramPaths,
    /// Where the ledger is.
    pub folder: PathBuf,
    /// Whether an earlier campaign is gone on with.
    pub is_resumed: bool,
    /// The command that was typed.
    pub command: Vec<String>,
    /// What the reader should know beforehand.
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
    #[error("{0}")]
    Resume(String),
    /// The folder takes no files.
    #[error("cannot write into {folder}; another folder: --out FOLDER: {source}")]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A scenario with its cells.
struct Part<'a> {
    scenario: &'a Scenario,
    methods: Vec<&'static dyn Method>,
    cells: Vec<ScenarioCell>,
    repeats: usize,
    is_quick: bool,
}

/// A switch's turn: the cells that one start of it serves, once.
struct Round<'a> {
    /// Of the scenario.
    index: usize,
    part: &'a Part<'a>,
    group: &'a Group<'a>,
    dut: &'static dyn Dut,
    repeat: usize,
}

impl Round<'_> {
    /// What the cell is called in the progress.
    fn title(&self, cell: &ScenarioCell) -> String {
        let at: Vec<&str> = cell.at.values().map(String::as_str).collect();
        let (scenario, dut) = (&self.part.scenario.id, self.dut.name());
        format!("{scenario} {dut}: {}, repeat {}", at.join(", "), self.repeat + 1)
    }

    /// Its trials of a cell.
    fn keys(&self, cell: usize) -> Vec<TrialKey> {
        let part = self.part;
        let keys = |method: &&'static dyn Method| {
            let (method, trials) = (*method, part.scenario.trials(*method, part.is_quick));
            (0..trials).map(move |trial| {
                let (scenario, dut) = (part.scenario.id.clone(), self.dut.name().to_owned());
                let number = self.repeat * trials + trial;
                (scenario, dut, part.cells[cell].at.clone(), method.id().to_owned(), number)
            })
        };
        part.methods.iter().flat_map(keys).collect()
    }

    /// Where the cell's results are.
    fn place(&self, cell: usize) -> (usize, String, usize) {
        (self.index, self.dut.name().to_owned(), cell)
    }
}

/// What is known of a cell on a switch.
#[derive(Default)]
struct Found {
    state: Option<CellState>,
    commands: Vec<String>,
    trials: Vec<TrialRecord>,
    distributions: Vec<MeasuredDistribution>,
}

impl Found {
    /// The method's headline in the last trial that has one.
    fn last(&self, method: &dyn Method) -> Option<f64> {
        let headline = method.metrics().first()?.id;
        self.trials.iter().rev().find_map(|trial| trial.values.get(headline)).copied()
    }
}

/// Why there is no trial.
#[derive(Debug)]
struct NoTrial {
    why: String,
    /// The switch or the testbed cannot do it, whatever is tried.
    is_unfit: bool,
}

struct Run<'a> {
    campaign: &'a Campaign,
    cancel: &'a Cancel,
    budget: Budget,
    /// `None` after a write has failed.
    ledger: Option<Ledger>,
    /// Trials of an earlier campaign.
    old: OldTrials,
    /// The trials made here, as lines of a ledger, where they are handed on.
    kept: Option<Vec<Entry>>,
    /// The [`Machine::id`] of this machine.
    machine: String,
    progress: RunProgress,
    found: HashMap<(usize, String, usize), Found>,
    /// By scenario, the traffic, and metric: what was measured on a wire.
    floors: HashMap<(usize, usize), BTreeMap<&'static str, Vec<f64>>>,
    notes: Vec<String>,
    /// Switches and controllers whose programs are there: each was asked for its version once.
    installed: BTreeSet<&'static str>,
}

/// Measures everything.
///
/// # Errors
/// [`CampaignError`]; an interrupted campaign has taken everything down.
pub fn execute(campaign: &Campaign, cancel: &Cancel) -> Result<Results, CampaignError> {
    let (started, clock) = (now_utc(), Instant::now());
    let parts = parts(campaign)?;
    let head = LedgerHead {
        format: FORMAT,
        started: started.clone(),
        scenarios: campaign.scenarios.iter().map(|scenario| scenario.source.clone()).collect(),
        is_quick: campaign.is_quick,
        values: parts.iter().map(|part| part.values()).collect::<Result<_, _>>()?,
    };
    let (ledger, started, old) = if campaign.is_resumed {
        Ledger::resume(&campaign.folder, &head)
            .map_err(|error| CampaignError::Resume(error.to_string()))?
    } else {
        let folder = |source| CampaignError::Folder { folder: campaign.folder.clone(), source };
        (Ledger::create(&campaign.folder, &head).map_err(folder)?, started, HashMap::new())
    };
    let machine = Machine::read();
    let steps: usize = parts.iter().map(|part| part.steps(campaign)).sum();
    let mut run = Run::new(campaign, cancel, &machine, steps);
    (run.ledger, run.old) = (Some(ledger), old);
    for (index, part) in parts.iter().enumerate() {
        run.scenario(index, part)?;
    }
    let mut results = finish(run, &parts, machine)?;
    results.started = started;
    results.duration_s = clock.elapsed().as_secs_f64();
    results.programs = assemble::programs(campaign);
    Ok(results)
}

/// What was found, without the time that it took and the programs that took part.
fn finish(
    mut run: Run<'_>,
    parts: &[Part<'_>],
    machine: Machine,
) -> Result<Results, ScenarioError> {
    let campaign = run.campaign;
    let scenarios = parts.iter().enumerate();
    let scenarios =
        scenarios.map(|(index, part)| run.results(index, part)).collect::<Result<_, _>>()?;
    Ok(Results {
        format: FORMAT,
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        started: String::new(),
        duration_s: 0.0,
        command: campaign.command.clone(),
        is_quick: campaign.is_quick,
        machine,
        machines: Vec::new(),
        programs: Vec::new(),
        switches: campaign
            .duts
            .iter()
            .map(|dut| DutInfo { name: dut.name().to_owned(), about: dut.about().to_owned() })
            .collect(),
        scenarios,
        notes: std::mem::take(&mut run.notes),
        rule: limit::RULE.to_owned(),
    })
}

fn parts(campaign: &Campaign) -> Result<Vec<Part<'_>>, ScenarioError> {
    let part = |scenario| {
        let scenario: &Scenario = scenario;
        Ok(Part {
            scenario,
            methods: scenario.methods(campaign.is_quick)?,
            cells: cells(scenario, campaign)?,
            repeats: campaign.repeats.unwrap_or_else(|| scenario.repeats(campaign.is_quick)),
            is_quick: campaign.is_quick,
        })
    };
    campaign.scenarios.iter().map(part).collect()
}

/// The cells of a scenario on the campaign's testbed: wires in memory have no rates.
fn cells(scenario: &Scenario, campaign: &Campaign) -> Result<Vec<ScenarioCell>, ScenarioError> {
    let mut cells = scenario.cells(campaign.is_quick)?;
    if campaign.kind == TestbedKind::Memory {
        for cell in &mut cells {
            (cell.settings.port_rate, cell.settings.control_rate) = (None, None);
        }
    }
    Ok(cells)
}

impl Part<'_> {
    fn steps(&self, campaign: &Campaign) -> usize {
        self.cells.len() * self.methods.len() * self.repeats * campaign.duts.len()
    }

    /// About how long a method takes in one start.
    fn cost(&self, method: &dyn Method, cell: &ScenarioCell) -> Duration {
        let settings = self.settings(method, cell);
        let trials = self.scenario.trials(method, self.is_quick);
        method.cost(&settings) * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    /// How a cell is measured by a method.
    fn settings(&self, method: &dyn Method, cell: &ScenarioCell) -> Settings {
        self.scenario.settings_of(method, &cell.settings, self.is_quick)
    }

    /// The values of its axes.
    fn values(&self) -> Result<Vec<Vec<String>>, ScenarioError> {
        let axes = self.scenario.axis_infos(self.is_quick)?.into_iter();
        Ok(axes.map(|axis| axis.values).collect())
    }

    /// Whether something of it has a floor.
    fn has_floor(&self) -> bool {
        self.methods.iter().any(|method| !method.floors().is_empty())
    }

    /// The cells that differ in what is sent, by their first.
    fn traffics(&self) -> Vec<usize> {
        let mut first: Vec<usize> = Vec::new();
        for index in 0..self.cells.len() {
            if !first.iter().any(|other| self.has_same_traffic(*other, index)) {
                first.push(index);
            }
        }
        first
    }

    fn has_same_traffic(&self, one: usize, other: usize) -> bool {
        self.cells[one].settings.traffic() == self.cells[other].settings.traffic()
    }

    /// The first cell with the traffic of that one.
    fn traffic_of(&self, cell: usize) -> usize {
        (0..=cell).find(|other| self.has_same_traffic(*other, cell)).unwrap_or(cell)
    }
}

/// The turns of one repeat: every group on every switch that is not left out there.
fn turns<'g>(
    part: &Part<'_>,
    campaign: &Campaign,
    all: &[Group<'g>],
) -> Vec<(Group<'g>, &'static dyn Dut)> {
    let mut turns = Vec::new();
    for group in all {
        for dut in &campaign.duts {
            let group = group.with(|cell| !part.scenario.is_without(dut.name(), &cell.at));
            if !group.cells.is_empty() {
                turns.push((group, *dut));
            }
        }
    }
    turns
}

impl<'a> Run<'a> {
    fn new(campaign: &'a Campaign, cancel: &'a Cancel, machine: &Machine, steps: usize) -> Self {
        Self {
            campaign,
            cancel,
            budget: Budget::start(campaign.limit),
            ledger: None,
            old: HashMap::new(),
            kept: None,
            machine: machine.id.clone(),
            progress: RunProgress::new(steps as u64, campaign.quiet),
            found: HashMap::new(),
            floors: HashMap::new(),
            notes: campaign.notes.clone(),
            installed: BTreeSet::new(),
        }
    }

    fn scenario(&mut self, index: usize, part: &Part<'_>) -> Result<(), CampaignError> {
        let all = groups(&part.cells);
        for repeat in 0..part.repeats {
            if part.has_floor() && self.campaign.kind == TestbedKind::Kernel {
                self.floor(index, part)?;
            }
            for (group, dut) in turns(part, self.campaign, &all) {
                self.group(&Round { index, part, group: &group, dut, repeat })?;
            }
        }
        Ok(())
    }

    /// Measures what has a floor on a wire, once for everything that is sent.
    fn floor(&mut self, index: usize, part: &Part<'_>) -> Result<(), CampaignError> {
        let Some(wire) = dut::find(FLOOR_DUT) else { return Ok(()) };
        let traffics = part.traffics();
        self.progress.begin(&format!("{}: the lab's own floor", part.scenario.id));
        let settings = Settings { forwarding: Some(Forwarding::Flows), ..<_>::default() };
        // The folder goes last: its programs write into it.
        let (folder, mut setup) = match self.start(wire, &settings) {
            Ok(started) => started,
            Err(error) if error.is_stop() => return Err(Stopped.into()),
            Err(error) => {
                self.note(format!("{}: no floor: {error}", part.scenario.id));
                return Ok(());
            }
        };
        for traffic in traffics {
            for method in part.methods.iter().filter(|method| !method.floors().is_empty()) {
                let settings = part.settings(*method, &part.cells[traffic]).traffic();
                match self.measure(*method, &mut setup, &settings, (folder.path(), None))? {
                    (Ok(_), stall_ms) if stall_ms >= stall::STALL_MS => {}
                    (Ok(trial), _) => {
                        let floors = self.floors.entry((index, traffic)).or_default();
                        for (metric, value) in trial.values {
                            if method.floors().contains(&metric) {
                                floors.entry(metric).or_default().push(value);
                            }
                        }
                    }
                    (Err(NoTrial { why, .. }), _) => {
                        self.note(format!("{}: no floor: {why}", part.scenario.id));
                    }
                }
            }
        }
        Ok(())
    }

    /// Measures the cells that one start of a switch serves.
    fn group(&mut self, round: &Round<'_>) -> Result<(), CampaignError> {
        let cells = &round.group.cells;
        let steps = (cells.len() * round.part.methods.len()) as u64;
        let settings = &cells[0].1.settings;
        if cells.iter().all(|(cell, _)| self.has_old(round, *cell)) {
            cells.iter().for_each(|(cell, _)| self.take_old(round, *cell));
            self.progress.advance(steps);
            return Ok(());
        }
        if let Err(state) = self.check(round.part, round.dut, settings) {
            self.close(round, &state);
            self.progress.advance(steps);
            return Ok(());
        }
        if !self.budget.allows(group_cost(round.part, round.group, round.dut)) {
            self.close(round, &CellState::Skipped("no time left in the budget".to_owned()));
            self.note(format!("{}: left out, no time left", round.title(cells[0].1)));
            self.progress.advance(steps);
            return Ok(());
        }
        self.progress.begin(&format!("{}: start", round.title(cells[0].1)));
        // The folder goes last: its programs write into it.
        let (folder, mut setup) = match self.start(round.dut, settings) {
            Ok(started) => started,
            Err(error) if error.is_stop() => return Err(Stopped.into()),
            Err(error) => {
                self.progress.say(&format!("{}: {error}", round.title(cells[0].1)));
                for cell in cells {
                    let record = failed("start", round.repeat, error.to_string());
                    self.keep(round, *cell, record, Vec::new());
                }
                let state = match error.refusal() {
                    Some(refused) => CellState::NotSupported(refused.to_string()),
                    None => CellState::Failed(error.to_string()),
                };
                self.close(round, &state);
                self.progress.advance(steps);
                return Ok(());
            }
        };
        for note in setup.bed().notes() {
            self.note(note);
        }
        for cell in cells {
            let found = self.found.entry(round.place(cell.0)).or_default();
            if found.commands.is_empty() {
                found.commands = commands(&setup, &cell.1.settings);
            }
            for method in &round.part.methods {
                let title = format!("{}: {}", round.title(cell.1), method.label());
                self.progress.begin(&title);
                let trials = round.part.scenario.trials(*method, round.part.is_quick);
                for number in (0..trials).map(|trial| round.repeat * trials + trial) {
                    let numbered = (*cell, number);
                    self.trial(round, numbered, *method, &mut setup, folder.path(), &title)?;
                }
                self.progress.advance(1);
            }
        }
        Ok(())
    }

    /// Measures until the machine did not stall meanwhile, or the attempts are over.
    fn trial(
        &mut self,
        round: &Round<'_>,
        (cell, number): ((usize, &ScenarioCell), usize),
        method: &dyn Method,
        setup: &mut Setup,
        folder: &Path,
        title: &str,
    ) -> Result<(), CampaignError> {
        let place = round.place(cell.0);
        if let Err(reason) = method.fits(setup.bed()) {
            let why = format!("{NOT_SUPPORTED}{reason}");
            self.keep(round, cell, failed(method.id(), number, why), Vec::new());
            let state = CellState::NotSupported(reason.to_owned());
            self.found.entry(place).or_default().state.get_or_insert(state);
            return Ok(());
        }
        let settings = round.part.settings(method, cell.1);
        let before = self.found.get(&place).and_then(|found| found.last(method));
        for attempt in 0..ATTEMPTS {
            let (outcome, stall_ms) = self.measure(method, setup, &settings, (folder, before))?;
            if let Err(NoTrial { why, is_unfit: true }) = &outcome {
                let state = CellState::NotSupported(why.clone());
                self.found.entry(place.clone()).or_default().state = Some(state);
            }
            let is_stalled = stall_ms >= stall::STALL_MS;
            let is_over = !is_stalled || attempt + 1 == ATTEMPTS;
            let (mut record, distributions) = record(method, number, outcome);
            record.attempt = attempt;
            record.stall_ms = stall_ms;
            if is_stalled && record.error.is_none() {
                // The last attempt too: what a stall spoiled is named, and no sample.
                record.error = Some(format!("the machine stalled for {stall_ms:.0} ms"));
            }
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

    /// Says what became of cells that are not measured; one that has figures of an earlier repeat
    /// keeps them.
    fn close(&mut self, round: &Round<'_>, state: &CellState) {
        for (cell, _) in &round.group.cells {
            self.found.entry(round.place(*cell)).or_default().state = Some(state.clone());
        }
    }

    /// Whether an earlier campaign has all trials of this cell and repeat.
    fn has_old(&self, round: &Round<'_>, cell: usize) -> bool {
        let is_over = |one: &Entry| {
            one.trial.error.as_ref().is_none_or(|error| error.starts_with(NOT_SUPPORTED))
        };
        let has = |key: &TrialKey| self.old.get(key).is_some_and(|all| all.iter().any(is_over));
        round.keys(cell).iter().all(has)
    }

    /// Takes the trials of an earlier campaign over.
    fn take_old(&mut self, round: &Round<'_>, cell: usize) {
        let place = round.place(cell);
        for key in round.keys(cell) {
            let mut all = self.old.remove(&key).unwrap_or_default();
            // A group that was cut off was measured again, all of it: each trial counts once.
            let good = all.iter().position(|one| one.trial.error.is_none());
            all.truncate(good.map_or(all.len(), |good| good + 1));
            for entry in all {
                let found = self.found.entry(place.clone()).or_default();
                found.trials.push(entry.trial);
                found.distributions.extend(entry.distributions);
            }
        }
    }

    /// Why a switch is not started for these settings, if so.
    fn check(
        &mut self,
        part: &Part<'_>,
        dut: &dyn Dut,
        settings: &Settings,
    ) -> Result<(), CellState> {
        check_fit(self.campaign, part, dut, settings).map_err(CellState::NotSupported)?;
        if self.campaign.kind == TestbedKind::Memory && !dut.has_memory_ports() {
            let what = "has no in-memory ports: run as root".to_owned();
            return Err(CellState::Missing(what));
        }
        let missing = |missing: crate::tools::Missing| CellState::Missing(missing.to_string());
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

    fn start(
        &self,
        dut: &dyn Dut,
        settings: &Settings,
    ) -> Result<(tempfile::TempDir, Setup), SetupError> {
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
        Ok((folder, setup))
    }

    /// One measurement, and by how much the machine stalled meanwhile, in milliseconds.
    fn measure(
        &self,
        method: &dyn Method,
        setup: &mut Setup,
        settings: &Settings,
        (folder, before): (&Path, Option<f64>),
    ) -> Result<(Result<Trial, NoTrial>, f64), Stopped> {
        let unfit = |why: &str| NoTrial { why: why.to_owned(), is_unfit: true };
        let watched = setup.watched();
        let context = MethodContext {
            bed: setup.bed(),
            setup: Some(setup),
            settings,
            watched: &watched,
            before,
            dir: folder,
            cancel: self.cancel,
        };
        let (outcome, stall_ms) = stall::watch(|| method.run(&context));
        match outcome {
            // What a switch that has ended meanwhile let through is no figure.
            Ok(trial) => match setup.check_switch() {
                Ok(()) => Ok((Ok(trial), stall_ms)),
                Err(ended) => {
                    Ok((Err(NoTrial { why: ended.to_string(), is_unfit: false }), stall_ms))
                }
            },
            Err(error) if error.is_stop() => Err(Stopped),
            Err(TrialError::Unfit(reason)) => Ok((Err(unfit(reason)), stall_ms)),
            Err(error) => {
                Ok((Err(NoTrial { why: explain(setup, &error), is_unfit: false }), stall_ms))
            }
        }
    }

    /// Files a trial, in the results and in the ledger.
    fn keep(
        &mut self,
        round: &Round<'_>,
        (cell, of): (usize, &ScenarioCell),
        mut trial: TrialRecord,
        distributions: Vec<MeasuredDistribution>,
    ) {
        trial.machine.clone_from(&self.machine);
        let entry = Entry {
            scenario: round.part.scenario.id.clone(),
            dut: round.dut.name().to_owned(),
            at: of.at.clone(),
            trial,
            distributions,
        };
        self.write(&entry);
        if let Some(kept) = &mut self.kept {
            kept.push(entry.clone());
        }
        let found = self.found.entry(round.place(cell)).or_default();
        found.trials.push(entry.trial);
        found.distributions.extend(entry.distributions);
    }

    /// Adds a line to the ledger. A disk that is full does not end the measurements: the results
    /// may still find a place.
    fn write(&mut self, entry: &Entry) {
        let Some(ledger) = &mut self.ledger else { return };
        if let Err(error) = ledger.append(entry) {
            let note = format!("{}: no trials from here on: {error}", ledger.path().display());
            self.ledger = None;
            self.progress.say(&note);
            self.note(note);
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The controller that decides, where one does.
fn controller_of(settings: &Settings) -> Option<Result<&'static dyn ControllerProgram, CellState>> {
    if settings.forwarding() != Forwarding::Controller {
        return None;
    }
    let name = settings.controller.as_deref().unwrap_or("weir");
    Some(controller::find(name).ok_or_else(|| {
        let known: Vec<&str> = controller::ALL.iter().map(|one| one.name()).collect();
        CellState::Failed(format!("no controller {name:?}: there is {}", known.join(", ")))
    }))
}

/// Whether a switch can run with these settings at all, whatever is installed.
fn check_fit(
    campaign: &Campaign,
    part: &Part<'_>,
    dut: &dyn Dut,
    settings: &Settings,
) -> Result<(), String> {
    let only = &part.scenario.switches;
    if !only.is_empty() && !only.iter().any(|name| name == dut.name()) {
        return Err(format!("this scenario is about {}", only.join(", ")));
    }
    dut.check(settings, &campaign.paths)
}

/// About how long a switch's turn takes.
fn group_cost(part: &Part<'_>, group: &Group<'_>, dut: &dyn Dut) -> Duration {
    let trials: Duration = group
        .cells
        .iter()
        .flat_map(|(_, cell)| part.methods.iter().map(|method| part.cost(*method, cell)))
        .sum();
    let settings = &group.cells[0].1.settings;
    let entries = settings.flow_count() as f64 / ENTRIES_A_SECOND;
    let controller = controller_of(settings).and_then(Result::ok);
    let controller = controller.map_or(Duration::ZERO, ControllerProgram::start_cost);
    let start = BED_COST + dut.start_cost(settings) + controller;
    trials + start + Duration::from_secs_f64(entries)
}

/// The commands that a reader would type, with the first of the flow entries.
fn commands(setup: &Setup, settings: &Settings) -> Vec<String> {
    let mut commands = setup.commands();
    let single = settings.flows.iter().flatten().take(4);
    commands.extend(single.map(|flow| format!("add-flow {flow}")));
    let series = settings.series.iter().flatten();
    commands
        .extend(series.map(|series| format!("add-flow {} times {}", series.count, series.flow)));
    let groups = settings.groups.iter().flatten();
    commands.extend(groups.map(|group| format!("add-group {group}")));
    let meters = settings.meters.iter().flatten();
    commands.extend(meters.map(|meter| format!("add-meter {meter}")));
    commands
}

fn failed(method: &str, repeat: usize, error: String) -> TrialRecord {
    TrialRecord {
        method: method.to_owned(),
        repeat,
        attempt: 0,
        tool: String::new(),
        machine: String::new(),
        stall_ms: 0.0,
        error: Some(error),
        values: BTreeMap::new(),
        resolutions: BTreeMap::new(),
        load: None,
        limit: None,
        raw: serde_json::Value::Null,
    }
}

fn record(
    method: &dyn Method,
    repeat: usize,
    outcome: Result<Trial, NoTrial>,
) -> (TrialRecord, Vec<MeasuredDistribution>) {
    let trial = match outcome {
        Ok(trial) => trial,
        Err(error) => return (failed(method.id(), repeat, error.why), Vec::new()),
    };
    let saturating = trial.load.as_ref().filter(|_| method.saturates());
    let limit = saturating.map(|load| limiting(load, trial.carried));
    let distributions = trial.distributions.into_iter().map(|of| MeasuredDistribution {
        metric: of.metric.to_owned(),
        repeat,
        count: of.count,
        quantiles: of.quantiles,
    });
    let values = trial.values.iter().filter(|(_, value)| value.is_finite());
    let resolutions =
        trial.resolutions.iter().filter(|of| of.low.is_finite() && of.high.is_finite());
    let record = TrialRecord {
        method: method.id().to_owned(),
        repeat,
        attempt: 0,
        tool: trial.tool,
        machine: String::new(),
        stall_ms: 0.0,
        error: None,
        values: values.map(|(id, value)| ((*id).to_owned(), *value)).collect(),
        resolutions: resolutions.map(|of| (of.metric.to_owned(), (of.low, of.high))).collect(),
        load: trial.load,
        limit,
        raw: trial.raw,
    };
    (record, distributions.collect())
}
