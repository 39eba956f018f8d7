//! A run: every cell of the matrix, in turns, every method in every cell, all of it repeated.
//!
//! Each repeat starts each cell anew and the cells take turns, so that a machine that grows slower
//! or busier in the meantime does so for all of them, and a start is part of the spread. An
//! interrupted run yields nothing; a failed or missing cell stays in the table with its reason.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cancel::{Budget, Cancel, Stopped};
use crate::ceilings::Ceilings;
use crate::controller::{self, AppKind, Controller};
use crate::dut::{self, Dut};
use crate::facts::{Machine, now_utc};
use crate::limit::{self, limiting};
use crate::method::{Bench, Method, Timing, Trial};
use crate::progress::Progress;
use crate::report::{Cell, CellKey, FORMAT, Measurement, Report, SampleRecord, State};
use crate::scenario::Scenario;
use crate::service::Settings;
use crate::session::{self, BedKind, Parts, Session, explain};
use crate::tools::{Program, Tool};

/// About how long the start and the end of a cell take.
const START_COST: Duration = Duration::from_millis(1_500);

/// What is to be measured.
pub struct Plan {
    /// The question.
    pub scenario: &'static dyn Scenario,
    /// The cells, in the order of the table.
    pub cells: Vec<CellKey>,
    /// The methods, in order.
    pub methods: Vec<&'static dyn Method>,
    /// Durations and rates.
    pub timing: Timing,
    /// How often every cell is measured.
    pub repeats: usize,
    /// The testbed.
    pub kind: BedKind,
    /// Paths.
    pub settings: Settings,
    /// The time that the run may take.
    pub limit: Option<Duration>,
    /// What the reader of the report should know beforehand.
    pub notes: Vec<String>,
    /// Shows no progress.
    pub quiet: bool,
}

impl Plan {
    /// About how long one repeat of one cell takes.
    #[must_use]
    pub fn cell_cost(&self) -> Duration {
        self.methods.iter().map(|method| method.cost(&self.timing)).sum::<Duration>() + START_COST
    }
}

struct Job {
    dut: &'static dyn Dut,
    controller: &'static dyn Controller,
    cell: Cell,
}

/// Measures everything.
///
/// # Errors
/// [`Stopped`] when the run was interrupted; everything is taken down then.
pub fn execute(plan: &Plan, cancel: &Cancel) -> Result<Report, Stopped> {
    let (started, clock) = (now_utc(), Instant::now());
    let machine = Machine::read();
    let budget = Budget::start(plan.limit);
    let mut jobs = jobs(plan);
    let mut notes = plan.notes.clone();
    let open = jobs.iter().filter(|job| job.cell.state == State::Measured).count();
    let steps = (open * plan.repeats * (plan.methods.len() + 1)) as u64;
    let mut progress = Progress::new(steps, plan.quiet);
    for repeat in 0..plan.repeats {
        for job in jobs.iter_mut().filter(|job| job.cell.state == State::Measured) {
            if !budget.allows(plan.cell_cost()) {
                skip(&mut job.cell, repeat, plan.repeats, &mut notes);
                progress.advance(plan.methods.len() as u64 + 1);
                continue;
            }
            measure_cell(plan, job, repeat, &mut notes, &mut progress, cancel)?;
        }
    }
    drop(progress);
    let cells: Vec<Cell> = jobs.into_iter().map(|job| job.cell).collect();
    Ok(Report {
        format: FORMAT,
        scenario: plan.scenario.id().to_owned(),
        question: plan.scenario.question().to_owned(),
        started,
        duration_s: clock.elapsed().as_secs_f64(),
        repeats: plan.repeats,
        timing: plan.timing,
        machine,
        programs: programs(plan),
        notes,
        rule: limit::RULE.to_owned(),
        cells,
    })
}

/// A cell for each key; one whose programs are missing is closed from the start.
fn jobs(plan: &Plan) -> Vec<Job> {
    plan.cells
        .iter()
        .filter_map(|key| {
            let (dut, controller) = (dut::find(&key.dut)?, controller::find(&key.controller)?);
            let missing = missing(plan, dut, controller);
            let hub = key.app == AppKind::Hub;
            Some(Job {
                dut,
                controller,
                cell: Cell {
                    key: key.clone(),
                    state: missing.map_or(State::Measured, State::Missing),
                    ceilings: Ceilings::new(key.port_rate.0, key.control_rate.0, key.version, hub),
                    commands: Vec::new(),
                    measurements: plan.methods.iter().map(|m| Measurement::new(*m)).collect(),
                },
            })
        })
        .collect()
}

fn missing(plan: &Plan, dut: &dyn Dut, controller: &dyn Controller) -> Option<String> {
    if plan.kind == BedKind::Memory && !dut.has_memory_ports() {
        return Some("has no in-memory ports: run as root".to_owned());
    }
    let settings = &plan.settings;
    let found = dut.programs(settings).and_then(|_| controller.programs(settings));
    found.err().map(|missing| missing.to_string())
}

fn skip(cell: &mut Cell, repeat: usize, repeats: usize, notes: &mut Vec<String>) {
    let title = cell.key.title();
    if repeat == 0 {
        cell.state = State::Skipped("no time left in the budget".to_owned());
        return;
    }
    let note = format!("{title}: repeats {} to {repeats} left out, no time left", repeat + 1);
    if !notes.iter().any(|old| old.starts_with(&format!("{title}: repeats"))) {
        notes.push(note);
    }
}

fn measure_cell(
    plan: &Plan,
    job: &mut Job,
    repeat: usize,
    notes: &mut Vec<String>,
    progress: &mut Progress,
    cancel: &Cancel,
) -> Result<(), Stopped> {
    let title = format!(
        "{}, ports {}, control {}, repeat {}",
        job.cell.key.title(),
        job.cell.key.port_rate,
        job.cell.key.control_rate,
        repeat + 1
    );
    progress.begin(&format!("{title}: start"));
    let started = start(plan, job, cancel);
    let (mut session, dir) = match started {
        Ok(started) => started,
        Err(error) if error.is_stop() => return Err(Stopped),
        Err(error) => {
            progress.say(&format!("{title}: {error}"));
            fail(&mut job.cell, &error.to_string());
            progress.advance(plan.methods.len() as u64 + 1);
            return Ok(());
        }
    };
    progress.advance(1);
    job.cell.commands = session.commands();
    for note in session.bed().notes() {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    for (method, measurement) in plan.methods.iter().zip(&mut job.cell.measurements) {
        progress.begin(&format!("{title}: {}", method.label()));
        let outcome = apply(*method, plan, &session, dir.path(), cancel);
        progress.advance(1);
        if let Err(error) = keep(*method, measurement, repeat, outcome)? {
            let error = explain(&mut session, &error);
            progress.say(&format!("{title}: {}: {error}", method.label()));
            measurement.errors.push(format!("repeat {}: {error}", repeat + 1));
        }
    }
    Ok(())
}

fn start(
    plan: &Plan,
    job: &Job,
    cancel: &Cancel,
) -> Result<(Session, tempfile::TempDir), session::Error> {
    let dir = tempfile::Builder::new().prefix("weir-lab-").tempdir()?;
    let parts = Parts {
        key: &job.cell.key,
        dut: job.dut,
        controller: job.controller,
        kind: plan.kind,
        settings: &plan.settings,
        dir: dir.path(),
        cancel,
    };
    Ok((Session::start(&parts)?, dir))
}

/// A cell that has figures from an earlier repeat keeps them.
fn fail(cell: &mut Cell, error: &str) {
    let measured = cell.measurements.iter().any(|measurement| !measurement.samples.is_empty());
    if measured {
        for measurement in &mut cell.measurements {
            measurement.errors.push(error.to_owned());
        }
    } else {
        cell.state = State::Failed(error.to_owned());
    }
}

fn apply(
    method: &dyn Method,
    plan: &Plan,
    session: &Session,
    dir: &Path,
    cancel: &Cancel,
) -> Result<Trial, crate::method::Error> {
    method.fits(session.bed()).map_err(crate::method::Error::Unfit)?;
    let watched = session.watched();
    let bench = Bench { bed: session.bed(), watched: &watched, timing: plan.timing, dir, cancel };
    method.run(&bench)
}

/// Files the outcome of a measurement; hands back an error that does not end the run.
fn keep(
    method: &dyn Method,
    measurement: &mut Measurement,
    repeat: usize,
    outcome: Result<Trial, crate::method::Error>,
) -> Result<Result<(), crate::method::Error>, Stopped> {
    let trial = match outcome {
        Ok(trial) => trial,
        Err(error) if error.is_stop() => return Err(Stopped),
        Err(crate::method::Error::Unfit(reason)) => {
            measurement.unfit = Some(reason.to_owned());
            return Ok(Ok(()));
        }
        Err(error) => return Ok(Err(error)),
    };
    let limit = trial
        .load
        .as_ref()
        .filter(|_| method.saturates())
        .map(|load| limiting(load, trial.carried));
    if !measurement.tools.contains(&trial.tool) {
        measurement.tools.push(trial.tool);
    }
    if measurement.commands.is_empty() {
        measurement.commands = trial.commands;
    }
    let sample = SampleRecord { repeat, load: trial.load, limit, raw: trial.raw };
    measurement.add(&trial.values, sample);
    Ok(Ok(()))
}

/// Every program that took part, once.
fn programs(plan: &Plan) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let settings = &plan.settings;
    let mut add = |found: Vec<Program>| {
        for program in found {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
    };
    for key in &plan.cells {
        let dut = dut::find(&key.dut).and_then(|dut| dut.programs(settings).ok());
        add(dut.unwrap_or_default());
        let controller = controller::find(&key.controller);
        add(controller.and_then(|c| c.programs(settings).ok()).unwrap_or_default());
    }
    if plan.kind == BedKind::Kernel {
        let tools = [Tool::Ping, Tool::Iperf3, Tool::Iperf2];
        add(tools.into_iter().filter_map(|tool| tool.program().ok()).collect());
    }
    programs
}
