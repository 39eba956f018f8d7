//! A run: every cell of the matrix, in turns, every method in every cell, all of it repeated.
//!
//! Each repeat starts each cell anew and the cells take turns, so that a machine that grows slower
//! or busier in the meantime does so for all of them, and a start is part of the spread. An
//! interrupted run yields no report; what it measured is in the file of raw samples. A failed or
//! missing cell stays in the table with its reason.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cancel::{Budget, Cancel, Stopped};
use crate::ceilings::Ceilings;
use crate::controller::{self, AppKind, ControllerProgram};
use crate::dut::{self, Dut};
use crate::facts::{Machine, now_utc};
use crate::limit::{self, limiting};
use crate::method::{Method, MethodContext, Timing, Trial};
use crate::progress::RunProgress;
use crate::report::{Cell, CellKey, FORMAT, Measurement, Report, SampleRecord, State};
use crate::samples::{Head, Line, SampleFile};
use crate::scenario::HostScenario;
use crate::service::ProgramPaths;
use crate::settings::Settings;
use crate::setup::{self, Setup, SetupParts, TestbedKind, explain};
use crate::tools::{Program, Tool};

/// About how long the start and the end of a cell take.
const START_COST: Duration = Duration::from_millis(1_500);

/// What is to be measured.
pub struct Plan {
    /// The question.
    pub scenario: &'static dyn HostScenario,
    /// The cells, in the order of the table.
    pub cells: Vec<CellKey>,
    /// The methods, in order.
    pub methods: Vec<&'static dyn Method>,
    /// Durations and rates.
    pub timing: Timing,
    /// How often every cell is started and measured.
    pub repeats: usize,
    /// How often the methods that do not load the path measure in each cell, at least `repeats`:
    /// they are short, and spread more. The measurements are shared out over the starts.
    pub idle_repeats: usize,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: ProgramPaths,
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
        let repeats = self.repeats.max(1);
        let cost = |method: &&dyn Method| {
            let times = if method.saturates() { 1 } else { self.idle_repeats.div_ceil(repeats) };
            method.cost(&self.timing, &Settings::default())
                * u32::try_from(times).unwrap_or(u32::MAX)
        };
        self.methods.iter().map(cost).sum::<Duration>() + START_COST
    }

    /// The numbers of the measurements that a method makes in the start `repeat` of a cell.
    fn numbers(&self, method: &dyn Method, repeat: usize) -> Range<usize> {
        if method.saturates() {
            return repeat..repeat + 1;
        }
        let repeats = self.repeats.max(1);
        let all = self.idle_repeats.max(repeats);
        all * repeat / repeats..all * (repeat + 1) / repeats
    }
}

struct Job {
    dut: &'static dyn Dut,
    controller: &'static dyn ControllerProgram,
    cell: Cell,
}

/// What a run has besides its plan.
struct Run<'a> {
    plan: &'a Plan,
    cancel: &'a Cancel,
    /// `None` after a write has failed.
    samples: Option<&'a mut SampleFile>,
    progress: RunProgress,
    notes: Vec<String>,
}

/// Measures everything; each measurement is a line of `samples` as soon as it is made.
///
/// # Errors
/// [`Stopped`] when the run was interrupted; everything is taken down then.
pub fn execute(plan: &Plan, samples: &mut SampleFile, cancel: &Cancel) -> Result<Report, Stopped> {
    let (started, clock) = (now_utc(), Instant::now());
    let machine = Machine::read();
    let budget = Budget::start(plan.limit);
    let mut jobs = jobs(plan);
    let open = jobs.iter().filter(|job| job.cell.state == State::Measured).count();
    let steps = (open * plan.repeats * (plan.methods.len() + 1)) as u64;
    let progress = RunProgress::new(steps, plan.quiet);
    let notes = plan.notes.clone();
    let mut run = Run { plan, cancel, samples: Some(samples), progress, notes };
    run.write(&Head {
        format: FORMAT,
        scenario: plan.scenario.id().to_owned(),
        started: started.clone(),
        timing: plan.timing,
        machine: machine.clone(),
    });
    for repeat in 0..plan.repeats {
        for job in jobs.iter_mut().filter(|job| job.cell.state == State::Measured) {
            if !budget.allows(plan.cell_cost()) {
                skip(&mut job.cell, repeat, plan.repeats, &mut run.notes);
                run.progress.advance(plan.methods.len() as u64 + 1);
                continue;
            }
            run.measure_cell(job, repeat)?;
        }
    }
    let Run { notes, progress, .. } = run;
    drop(progress);
    let cells: Vec<Cell> = jobs.into_iter().map(|job| job.cell).collect();
    Ok(Report {
        format: FORMAT,
        scenario: plan.scenario.id().to_owned(),
        question: plan.scenario.question().to_owned(),
        started,
        duration_s: clock.elapsed().as_secs_f64(),
        repeats: plan.repeats,
        idle_repeats: plan.idle_repeats.max(plan.repeats),
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

fn missing(plan: &Plan, dut: &dyn Dut, controller: &dyn ControllerProgram) -> Option<String> {
    if plan.kind == TestbedKind::Memory && !dut.has_memory_ports() {
        return Some("has no in-memory ports: run as root".to_owned());
    }
    let paths = &plan.paths;
    let found = dut.programs(paths).and_then(|_| controller.programs(paths));
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

impl Run<'_> {
    fn measure_cell(&mut self, job: &mut Job, repeat: usize) -> Result<(), Stopped> {
        let title = format!(
            "{}, ports {}, control {}, repeat {}",
            job.cell.key.title(),
            job.cell.key.port_rate,
            job.cell.key.control_rate,
            repeat + 1
        );
        self.progress.begin(&format!("{title}: start"));
        let (mut setup, dir) = match start(self.plan, job, self.cancel) {
            Ok(started) => started,
            Err(error) if error.is_stop() => return Err(Stopped),
            Err(error) => {
                self.progress.say(&format!("{title}: {error}"));
                fail(&mut job.cell, &error.to_string());
                self.progress.advance(self.plan.methods.len() as u64 + 1);
                return Ok(());
            }
        };
        self.progress.advance(1);
        job.cell.commands = setup.commands();
        for note in setup.bed().notes() {
            self.note(note);
        }
        let Cell { key, measurements, .. } = &mut job.cell;
        for (method, measurement) in self.plan.methods.iter().zip(measurements) {
            self.progress.begin(&format!("{title}: {}", method.label()));
            for number in self.plan.numbers(*method, repeat) {
                let outcome = apply(*method, self.plan, &setup, dir.path(), self.cancel);
                let mut line = Line::new(key, *method, number);
                if let Err(error) = keep(*method, measurement, &mut line, outcome)? {
                    let error = explain(&mut setup, &error);
                    self.progress.say(&format!("{title}: {}: {error}", method.label()));
                    measurement.errors.push(format!("repeat {}: {error}", number + 1));
                    line.error = Some(error);
                }
                self.write(&line);
            }
            self.progress.advance(1);
        }
        Ok(())
    }

    /// Adds a line to the samples. A disk that is full does not end the measurements: the report
    /// may still find a place.
    fn write(&mut self, line: &impl Serialize) {
        let Some(samples) = &mut self.samples else { return };
        if let Err(error) = samples.append(line) {
            let note = format!("{}: no samples from here on: {error}", samples.path().display());
            self.samples = None;
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

fn start(
    plan: &Plan,
    job: &Job,
    cancel: &Cancel,
) -> Result<(Setup, tempfile::TempDir), setup::SetupError> {
    let dir = tempfile::Builder::new().prefix("weir-lab-").tempdir()?;
    let parts = SetupParts {
        settings: &job.cell.key.settings(),
        dut: job.dut,
        controller: Some(job.controller),
        kind: plan.kind,
        paths: &plan.paths,
        dir: dir.path(),
        cancel,
    };
    Ok((Setup::start(&parts)?, dir))
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
    setup: &Setup,
    dir: &Path,
    cancel: &Cancel,
) -> Result<Trial, crate::trial_error::TrialError> {
    method.fits(setup.bed()).map_err(crate::trial_error::TrialError::Unfit)?;
    let watched = setup.watched();
    let bench = MethodContext {
        bed: setup.bed(),
        setup: Some(setup),
        settings: &Settings::default(),
        watched: &watched,
        timing: plan.timing,
        dir,
        cancel,
    };
    method.run(&bench)
}

/// Files the outcome of a measurement, in the report and in the line of samples; hands back an
/// error that does not end the run.
fn keep(
    method: &dyn Method,
    measurement: &mut Measurement,
    line: &mut Line,
    outcome: Result<Trial, crate::trial_error::TrialError>,
) -> Result<Result<(), crate::trial_error::TrialError>, Stopped> {
    let trial = match outcome {
        Ok(trial) => trial,
        Err(error) if error.is_stop() => return Err(Stopped),
        Err(crate::trial_error::TrialError::Unfit(reason)) => {
            measurement.unfit = Some(reason.to_owned());
            line.error = Some(reason.to_owned());
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
    let sample = SampleRecord { repeat: line.repeat, load: trial.load, limit, raw: trial.raw };
    line.values = trial.values.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
    line.sample = Some(sample.clone());
    measurement.add(&trial.values, sample);
    Ok(Ok(()))
}

/// Every program that took part, once.
fn programs(plan: &Plan) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let paths = &plan.paths;
    let mut add = |found: Vec<Program>| {
        for program in found {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
    };
    for key in &plan.cells {
        let dut = dut::find(&key.dut).and_then(|dut| dut.programs(paths).ok());
        add(dut.unwrap_or_default());
        let controller = controller::find(&key.controller);
        add(controller.and_then(|c| c.programs(paths).ok()).unwrap_or_default());
    }
    if plan.kind == TestbedKind::Kernel {
        let tools = [Tool::Ping, Tool::Iperf3, Tool::Iperf2];
        add(tools.into_iter().filter_map(|tool| tool.program().ok()).collect());
    }
    programs
}

#[cfg(test)]
mod tests {
    use crate::demo;
    use crate::method;
    use crate::service::ProgramPaths;
    use crate::setup::TestbedKind;
    use std::time::Duration;

    #[test]
    fn measurements_at_rest_are_shared_out_over_the_starts() {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let paths = ProgramPaths { weir: nowhere.clone(), os_ken_dir: nowhere };
        let mut plan = demo::plan(paths, TestbedKind::Memory, 3, Duration::MAX);
        let numbers = |plan: &super::Plan, id: &str| -> Vec<Vec<usize>> {
            let method = method::find(id).unwrap();
            (0..plan.repeats).map(|repeat| plan.numbers(method, repeat).collect()).collect()
        };
        assert_eq!(numbers(&plan, "tcp"), [[0], [1], [2]]);
        plan.idle_repeats = 10;
        assert_eq!(numbers(&plan, "ping"), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8, 9]]);
        plan.idle_repeats = 1;
        assert_eq!(numbers(&plan, "ping"), [[0], [1], [2]], "never fewer than the others");
    }
}
