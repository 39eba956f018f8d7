//! Carries a campaign out: every cell on every switch, in turns, every trial in the ledger.
//!
//! Each repeat starts each switch anew, and the switches take turns at every cell: a machine that
//! grows slower or busier does so for all of them, and a start is part of the spread. A trial in
//! which the machine stalled is repeated, and said. It must never drop a trial from the results:
//! one that failed or stalled is there with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ledger::{
    Entry, Ledger, LedgerError, LedgerHead, LedgerLine, PartHead, RunStep, Stamped,
};
use super::ledger::{LEDGER_FORMAT, NAME};
use super::order::{Group, groups};
use super::scenario::{Scenario, ScenarioCell, ScenarioError};
use super::stall::{self, Stall};
use crate::agent::client::BoxFacts;
use crate::cancel::{Budget, Cancel, Stopped};
use crate::controller::{self, ControllerProgram};
use crate::dut::{self, Dut};
use crate::facts::{Machine, now_utc};
use crate::held::Held;
use crate::method::{Method, MethodContext, Trial};
use crate::progress::RunProgress;
use crate::results::{CellState, Coordinates, MeasuredDistribution, PartEnd, Results, TrialRecord};
use crate::scratch;
use crate::service::ProgramPaths;
use crate::settings::{ChannelTransport, Forwarding, Settings};
use crate::setup::{Setup, SetupError, SetupParts, TestbedKind, explain};
use crate::trial_error::TrialError;

mod assemble;
mod cells;
mod estimate;
mod gather;
mod plan;
mod record;
mod replay;
#[cfg(test)]
mod tests;
mod trial;

pub use cells::{CellSpec, MeasuredCell, cell_specs, measure};
pub use estimate::{ScenarioCost, estimate};
pub use gather::{GatherError, Gathered, gather};
pub use replay::{CampaignState, Follower, Seen};

use assemble::Provenance;
use plan::{BED_COST, Plan, group_cost, start_cost};
use record::{NOT_SUPPORTED, PartRecord, Place, Record, START};
use trial::{NoTrial, commands, failed, hits_between, record};

/// The name of the switch that is none: what is measured on it is the lab's own floor.
const FLOOR_DUT: &str = "wire";

/// How often a trial is tried when the machine stalls meanwhile.
const ATTEMPTS: usize = 3;

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
    #[error(transparent)]
    Ledger(#[from] LedgerError),
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

    /// Its trials of a cell: method and number.
    fn trials(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let (part, repeat) = (self.part, self.repeat);
        part.methods.iter().flat_map(move |method| {
            let trials = part.scenario.trials(*method, part.is_quick);
            (0..trials).map(move |trial| (method.id(), repeat * trials + trial))
        })
    }

    /// Where the cell's results are.
    fn place(&self, cell: usize) -> Place {
        (self.index, self.dut.name().to_owned(), cell)
    }
}

/// What a campaign takes from outside; tests put something else in its place.
struct Outside<'a> {
    /// Does the work, and says for how many milliseconds the machine stalled meanwhile.
    watch: &'a dyn Fn(&mut dyn FnMut()) -> f64,
    /// Whether what has a floor is measured on a wire too.
    has_floor: bool,
    machine: Machine,
}

/// A switch that is held still while others have their turns. A stopped process does not end, so it
/// is let go before.
struct HeldDut {
    _held: Vec<Held>,
    started: Started,
}

/// A switch that runs. The folder goes last: its programs write into it.
struct Started {
    setup: Setup,
    folder: tempfile::TempDir,
}

struct Run<'a> {
    campaign: &'a Campaign,
    parts: &'a [Part<'a>],
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
    /// Where one start serves all repeats: what waits for its next turn, by scenario, switch and
    /// first cell.
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
        duts: campaign.duts.iter().map(|dut| dut.name().to_owned()).collect(),
        repeats: campaign.repeats,
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

/// What the campaign is.
fn head(campaign: &Campaign, parts: &[Part<'_>]) -> Result<LedgerHead, ScenarioError> {
    Ok(LedgerHead {
        format: LEDGER_FORMAT,
        scenarios: campaign.scenarios.iter().map(|scenario| scenario.source.clone()).collect(),
        is_quick: campaign.is_quick,
        testbed: campaign.kind,
        values: parts.iter().map(Part::values).collect::<Result<_, _>>()?,
    })
}

impl PartHead {
    /// What figures hold for, by name.
    fn conditions(&self) -> Vec<(String, String)> {
        let mut all = conditions(&self.weir, Some(&self.machine));
        let programs = self.programs.iter();
        // The switch may have the lab's name and another form of its version.
        let named = programs.map(|one| (format!("program {}", one.name), one.version.clone()));
        all.extend(named);
        all
    }
}

impl BoxFacts {
    /// What figures hold for, by name.
    fn conditions(&self) -> Vec<(String, String)> {
        conditions(&self.weir, self.machine.as_ref())
    }
}

/// Of a version of Weir on a machine. A machine that was started anew is the same.
fn conditions(weir: &str, machine: Option<&Machine>) -> Vec<(String, String)> {
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = vec![named("weir", weir)];
    if let Some(machine) = machine {
        let real_time = machine.real_time_error.as_deref().unwrap_or("permitted");
        all.extend([
            named("processor", &machine.cpu),
            named("cores", &machine.cores.to_string()),
            named("kernel", &machine.kernel),
            named("system", &machine.os),
            named("real time", real_time),
        ]);
    }
    all
}

/// What of the conditions is another now; figures under both would be no one campaign's. What only
/// one of them names does not count.
fn difference(old: Vec<(String, String)>, now: Vec<(String, String)>) -> Option<String> {
    let other = |name: &str| now.iter().find(|(same, _)| same == name);
    let words: Vec<String> = old
        .iter()
        .filter_map(|(name, old)| Some((name, old, &other(name)?.1)))
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| format!("{name}: {old}, now {new}"))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
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
    fn values(&self) -> Result<Vec<(String, Vec<String>)>, ScenarioError> {
        let axes = self.scenario.axis_infos(self.is_quick)?.into_iter();
        Ok(axes.map(|axis| (axis.name, axis.values)).collect())
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
    fn new(
        campaign: &'a Campaign,
        parts: &'a [Part<'a>],
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
            for repeat in 0..part.repeats {
                self.floor(index, part, repeat)?;
                let mut turns = turns(part, self.campaign, &all);
                if part.scenario.is_held && repeat % 2 == 1 {
                    // A B B A: what changes steadily falls on all alike.
                    turns.reverse();
                }
                for (group, dut) in turns {
                    self.turn(&Round { index, part, group: &group, dut, repeat })?;
                }
            }
            self.held.clear();
        }
        Ok(())
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

    /// About how long everything takes that is not in the ledger.
    fn cost(&self) -> Duration {
        let mut cost = Duration::ZERO;
        for (index, part) in self.parts.iter().enumerate() {
            let all = groups(&part.cells);
            for repeat in 0..part.repeats {
                for (group, dut) in turns(part, self.campaign, &all) {
                    let round = Round { index, part, group: &group, dut, repeat };
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

    /// Measures what has a floor on a wire, once for everything that is sent.
    fn floor(&mut self, index: usize, part: &Part<'_>, repeat: usize) -> Result<(), CampaignError> {
        let missing: Vec<(usize, &'static dyn Method)> = part
            .traffics()
            .into_iter()
            .flat_map(|traffic| part.methods.iter().map(move |method| (traffic, *method)))
            .filter(|(traffic, method)| !self.has_floor((index, *traffic), *method, repeat))
            .collect();
        let Some(wire) = dut::find(FLOOR_DUT) else { return Ok(()) };
        if missing.is_empty() || !self.outside.has_floor {
            return Ok(());
        }
        self.begin(&format!("{}: the lab's own floor", part.scenario.id), Duration::ZERO);
        let settings = Settings { forwarding: Some(Forwarding::Flows), ..<_>::default() };
        let mut started = match self.start(wire, &settings) {
            Ok(started) => started,
            Err(error) if error.is_stop() => return Err(Stopped.into()),
            Err(error) => {
                self.note(format!("{}: no floor: {error}", part.scenario.id));
                return Ok(());
            }
        };
        for (traffic, method) in missing {
            let cell = &part.cells[traffic];
            let settings = part.settings(method, cell).traffic();
            match self.measure(method, &mut started, &settings, None)? {
                (Ok(_), stall) if stall.is_long() => {}
                (Ok(trial), _) => {
                    let values = trial.values.into_iter();
                    let values = values
                        .filter(|(id, value)| method.floors().contains(id) && value.is_finite());
                    let values = values.map(|(id, value)| (id.to_owned(), value)).collect();
                    let (scenario, at) = (part.scenario.id.clone(), cell.at.clone());
                    let method = method.id().to_owned();
                    self.log(LedgerLine::Floor { scenario, at, repeat, method, values });
                }
                (Err(NoTrial { why, .. }), _) => {
                    self.note(format!("{}: no floor: {why}", part.scenario.id));
                }
            }
        }
        Ok(())
    }

    /// Whether a method has its floor in a repeat, or has none.
    fn has_floor(&self, place: (usize, usize), method: &dyn Method, repeat: usize) -> bool {
        let known = self.record.floors.get(&place);
        let has = |id: &&str| {
            known
                .and_then(|floors| floors.get(id))
                .is_some_and(|values| values.contains_key(&repeat))
        };
        method.floors().is_empty() || method.floors().iter().any(has)
    }

    /// Measures the cells that one start of a switch serves.
    fn turn(&mut self, round: &Round<'_>) -> Result<(), CampaignError> {
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
                for number in (0..trials).map(|trial| round.repeat * trials + trial) {
                    self.trial(round, (*cell, number), *method, &mut started, &title)?;
                }
                self.progress.advance(1);
            }
        }
        if let Some(started) = started
            && round.part.scenario.is_held
            && round.repeat + 1 < round.part.repeats
        {
            self.hold(round, started);
        }
        Ok(true)
    }

    /// Files a box that measures; one that is another than it was ends the campaign.
    fn check_box(&mut self, of: BoxFacts) -> Result<(), CampaignError> {
        match self.record.boxes.get(&of.address) {
            Some(known) if known == &of => Ok(()),
            Some(known) => match difference(known.conditions(), of.conditions()) {
                Some(what) => {
                    let path = self.campaign.folder.join(NAME);
                    let what = format!("the box of the agent at {}: {what}", of.address);
                    Err(LedgerError::Conditions { path, what }.into())
                }
                None => Ok(()),
            },
            None => {
                self.log(LedgerLine::Box(of));
                Ok(())
            }
        }
    }

    /// A switch was started for the cells of a turn, or failed to start.
    fn log_start(&mut self, round: &Round<'_>, commands: Vec<String>) {
        let at: Vec<Coordinates> =
            round.group.cells.iter().map(|(_, cell)| cell.at.clone()).collect();
        let (scenario, dut) = (round.part.scenario.id.clone(), round.dut.name().to_owned());
        self.log(LedgerLine::Start { scenario, dut, repeat: round.repeat, at, commands });
    }

    fn not_started(&mut self, round: &Round<'_>, error: &SetupError) {
        let cells = &round.group.cells;
        self.progress.say(&format!("{}: {error}", round.title(cells[0].1)));
        self.log_start(round, Vec::new());
        for cell in cells {
            let record = failed(START, round.repeat, error.to_string());
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
        (cell, number): ((usize, &ScenarioCell), usize),
        method: &dyn Method,
        started: &mut Option<Started>,
        title: &str,
    ) -> Result<(), CampaignError> {
        let settings = round.part.settings(method, cell.1);
        let found = self.record.found.get(&round.place(cell.0));
        let before = found.and_then(|found| found.last(method));
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

    /// Says what became of cells that are not measured; one that has figures of an earlier repeat
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
    fn has_old(&self, round: &Round<'_>) -> bool {
        let is_over = |one: &TrialRecord| {
            one.error.as_ref().is_none_or(|error| error.starts_with(NOT_SUPPORTED))
        };
        round.group.cells.iter().all(|(cell, _)| {
            self.record.found.get(&round.place(*cell)).is_some_and(|found| {
                let mut trials = round.trials();
                trials.all(|(method, number)| {
                    let is_it = |one: &&TrialRecord| one.method == method && one.repeat == number;
                    found.trials.iter().filter(is_it).any(is_over)
                })
            })
        })
    }

    /// Why a switch is not started for these settings, if so.
    fn check(
        &mut self,
        part: &Part<'_>,
        dut: &dyn Dut,
        settings: &Settings,
    ) -> Result<(), CellState> {
        check_fit(self.campaign, part, dut, settings).map_err(CellState::NotSupported)?;
        let is_memory = self.campaign.kind == TestbedKind::Memory && settings.replay.is_none();
        if is_memory && !dut.has_memory_ports() {
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

    fn start(&self, dut: &dyn Dut, settings: &Settings) -> Result<Started, SetupError> {
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
    fn measure(
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
        let stall_ms = (self.outside.watch)(&mut || outcome = Some(method.run(&context)));
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
    settings.replay.as_ref().map_or(Ok(()), |replay| dut.replays(replay))?;
    dut.check(settings, &campaign.paths)
}
