//! Results from the lines of many cells, measured anywhere.
//!
//! They are drawn by the code that draws those of a campaign on one machine. It must never take a
//! cell twice, and must never leave out a cell without saying so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use programs::tools::Program;

use super::assemble::{self, Provenance};
use super::cells::{CellLine, CellPart};
use super::record::{CellFindings, Record};
use super::{CampaignError, CellSpec, ScenarioError, parts};
use crate::campaign::ledger::Entry;
use crate::campaign::scenario::Scenario;
use crate::facts::Machine;
use crate::method;
use crate::results::{CellState, Coordinates, Results};
use crate::service::ProgramPaths;

/// Cells without results that are named in the notes, at most.
const MISSING_MAX: usize = 20;

/// Why lines are no campaign.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// A line that is none.
    #[error("{path}, line {line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// The mistake in it.
        why: String,
    },
    /// Lines of two campaigns.
    #[error("cell {cell} is of another campaign than cell {first} ({what}): gather each by itself")]
    Other {
        /// The cell.
        cell: usize,
        /// The first cell.
        first: usize,
        /// The difference.
        what: &'static str,
    },
    /// There is nothing in them.
    #[error("no file has the lines of a cell: `weir lab cell` writes them")]
    Empty,
    /// A scenario in them, or another version of the lab.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
}

impl From<ScenarioError> for GatherError {
    fn from(error: ScenarioError) -> Self {
        Self::Campaign(error.into())
    }
}

/// Results gathered from many cells.
#[derive(Debug)]
pub struct Gathered {
    /// The results.
    pub results: Results,
    /// Cells without a result, or with a failure in every measurement.
    pub missing: usize,
}

/// The lines of one measurement.
#[derive(Default)]
struct Measured {
    cell: usize,
    head: Option<Head>,
    entries: Vec<Entry>,
    points: Vec<Point>,
    end: Option<End>,
}

struct Head {
    machine: Machine,
    programs: Vec<Program>,
    started: String,
}

struct Point {
    at: Coordinates,
    state: Option<CellState>,
    commands: Vec<String>,
    floor: BTreeMap<String, Vec<f64>>,
}

struct End {
    duration_s: f64,
    notes: Vec<String>,
    error: Option<String>,
}

impl Measured {
    fn is_good(&self) -> bool {
        self.head.is_some() && self.end.as_ref().is_some_and(|end| end.error.is_none())
    }

    /// Why it is no good.
    fn error(&self) -> &str {
        let reason = self.end.as_ref().map(|end| end.error.as_deref().unwrap_or_default());
        reason.unwrap_or("it was cut off")
    }
}

/// Lines of the files.
#[derive(Default)]
struct Lines {
    /// By number, what is to be measured.
    specs: BTreeMap<usize, CellSpec>,
    measured: Vec<Measured>,
    notes: Vec<String>,
}

impl Lines {
    fn read(&mut self, path: &Path, text: &str) -> Result<(), GatherError> {
        let mut places: HashMap<String, usize> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            // A line of `weir lab cells` says what is to be measured, and no more.
            let read = serde_json::from_str::<CellSpec>(line).map(Err);
            let read = read.or_else(|_| serde_json::from_str::<CellLine>(line).map(Ok));
            match read {
                Ok(Err(spec)) => self.spec(spec)?,
                Ok(Ok(line)) => {
                    let place = *places.entry(line.run).or_insert_with(|| {
                        self.measured.push(Measured { cell: line.cell, ..<_>::default() });
                        self.measured.len() - 1
                    });
                    self.part(place, line.part)?;
                }
                Err(_) if !text.ends_with('\n') && number + 1 == text.lines().count() => {
                    let path = path.display();
                    self.notes.push(format!("{path}: the last line is cut off; it is left out"));
                }
                Err(error) => {
                    let (path, line) = (path.to_owned(), number + 1);
                    return Err(GatherError::Line { path, line, why: error.to_string() });
                }
            }
        }
        Ok(())
    }

    fn spec(&mut self, spec: CellSpec) -> Result<(), GatherError> {
        spec.check()?;
        if let Some((number, first)) = self.specs.first_key_value() {
            let other = |what| GatherError::Other { cell: spec.cell, first: *number, what };
            if spec.cells != first.cells || spec.duts != first.duts {
                return Err(other("other cells or switches"));
            }
            if (spec.is_quick, spec.testbed) != (first.is_quick, first.testbed)
                || spec.starts != first.starts
            {
                return Err(other("another form, testbed or number of starts"));
            }
        }
        let cell = spec.cell;
        match self.specs.get(&cell) {
            Some(known) if *known != spec => {
                Err(GatherError::Other { cell, first: cell, what: "two cells of one number" })
            }
            Some(_) => Ok(()),
            None => {
                self.specs.insert(cell, spec);
                Ok(())
            }
        }
    }

    fn part(&mut self, place: usize, part: CellPart) -> Result<(), GatherError> {
        let measured = &mut self.measured[place];
        match part {
            CellPart::Head { spec, machine, programs, started } => {
                measured.head = Some(Head { machine, programs, started });
                return self.spec(*spec);
            }
            CellPart::Trial(entry) => measured.entries.push(*entry),
            CellPart::Point { at, state, commands, floor } => {
                measured.points.push(Point { at, state, commands, floor });
            }
            CellPart::End { duration_s, notes, error } => {
                measured.end = Some(End { duration_s, notes, error });
            }
        }
        Ok(())
    }

    /// For each cell the measurement that counts: the first good one, or else the last.
    fn choose(&self) -> BTreeMap<usize, &Measured> {
        let mut chosen: BTreeMap<usize, &Measured> = BTreeMap::new();
        for measured in self.measured.iter().filter(|measured| measured.head.is_some()) {
            let is_better = chosen.get(&measured.cell).is_none_or(|known| !known.is_good());
            if is_better {
                chosen.insert(measured.cell, measured);
            }
        }
        chosen
    }

    /// The scenarios, in the order of the campaign.
    fn scenarios(&self) -> Result<Vec<Scenario>, GatherError> {
        let mut all: Vec<(&CellSpec, Scenario)> = Vec::new();
        for spec in self.specs.values() {
            let is_known = |(other, _): &(&CellSpec, Scenario)| {
                other.scenario == spec.scenario && other.values == spec.values
            };
            if all.iter().any(is_known) {
                continue;
            }
            let scenario = spec.scenario()?;
            if let Some((other, _)) = all.iter().find(|(_, other)| other.id == scenario.id) {
                let (cell, first) = (spec.cell, other.cell);
                let what = "another scenario of the same name";
                return Err(GatherError::Other { cell, first, what });
            }
            all.push((spec, scenario));
        }
        Ok(all.into_iter().map(|(_, scenario)| scenario).collect())
    }
}

/// Makes results of the lines in some files, each a path and its text.
///
/// # Errors
/// [`GatherError`].
pub fn gather(files: &[(PathBuf, String)]) -> Result<Gathered, GatherError> {
    let mut lines = Lines::default();
    for (path, text) in files {
        lines.read(path, text)?;
    }
    let chosen = lines.choose();
    let Some(first) = lines.specs.values().next().filter(|_| !chosen.is_empty()) else {
        return Err(GatherError::Empty);
    };
    let paths = ProgramPaths::new(PathBuf::new(), PathBuf::new());
    let campaign = first.campaign(lines.scenarios()?, &first.duts, paths)?;
    let parts = parts(&campaign).map_err(CampaignError::from)?;
    let mut record = Record::default();
    lines.notes.iter().for_each(|note| record.note(note.clone()));
    let missing = file(&mut record, &parts, &lines, &chosen)?;
    let provenance = provenance(first, &chosen);
    let several = (!provenance.machines.is_empty()).then(|| several(&provenance.machines));
    let mut results = assemble::results(&campaign, &parts, record, provenance)?;
    results.notes.splice(0..0, several);
    Ok(Gathered { results, missing })
}

/// Origin of the cells that count.
fn provenance(first: &CellSpec, chosen: &BTreeMap<usize, &Measured>) -> Provenance {
    let heads = || chosen.values().filter_map(|measured| measured.head.as_ref());
    let ends = chosen.values().filter_map(|measured| measured.end.as_ref());
    let machines = machines(chosen);
    let mut programs: Vec<Program> = Vec::new();
    heads().for_each(|head| assemble::add(&mut programs, head.programs.clone()));
    Provenance {
        weir: first.weir.clone(),
        started: heads().map(|head| head.started.clone()).min().unwrap_or_default(),
        duration_s: ends.map(|end| end.duration_s).sum(),
        command: first.command.clone(),
        machine: machines[0].clone(),
        machines: if machines.len() > 1 { machines } else { Vec::new() },
        programs,
        parts: Vec::new(),
        is_over: true,
    }
}

/// The machines, the one with most of the trials first.
fn machines(chosen: &BTreeMap<usize, &Measured>) -> Vec<Machine> {
    let mut all: Vec<(usize, &Machine)> = Vec::new();
    for measured in chosen.values() {
        let Some(head) = &measured.head else { continue };
        match all.iter_mut().find(|(_, machine)| machine.id == head.machine.id) {
            Some((trials, _)) => *trials += measured.entries.len(),
            None => all.push((measured.entries.len(), &head.machine)),
        }
    }
    all.sort_by_key(|(trials, _)| std::cmp::Reverse(*trials));
    all.into_iter().map(|(_, machine)| machine.clone()).collect()
}

/// Warning for the reader of figures of several machines.
fn several(machines: &[Machine]) -> String {
    let mut kinds: Vec<(&str, usize)> =
        machines.iter().map(|machine| (machine.cpu.as_str(), machine.cores)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let same =
        if kinds.len() == 1 { "all of one processor and number of cores" } else { "not all alike" };
    format!(
        "Measured on {} machines, {same}: {}. Differences between machines are part of every \
         interval and of every ratio; each trial names its machine.",
        machines.len(),
        assemble::ids(machines)
    )
}

/// Puts what was measured in the places that a campaign on one machine gives it, and says what is
/// missing.
fn file(
    record: &mut Record,
    parts: &[super::CampaignPart<'_>],
    lines: &Lines,
    chosen: &BTreeMap<usize, &Measured>,
) -> Result<usize, GatherError> {
    let mut missing: Vec<(usize, String)> = Vec::new();
    let known = lines.specs.values().next().map_or(0, |spec| spec.cells);
    for cell in 0..known {
        let Some(spec) = lines.specs.get(&cell) else {
            missing.push((cell, "no result".to_owned()));
            continue;
        };
        let scenario = spec.scenario()?.id;
        let Some(index) = parts.iter().position(|part| part.scenario.id == scenario) else {
            continue;
        };
        let part = &parts[index];
        let place = |at: &Coordinates| part.cells.iter().position(|one| one.at == *at);
        let dut = spec.dut_name();
        let label = format!("{scenario} on {dut}, start {}", spec.start + 1);
        let Some(measured) = chosen.get(&cell) else {
            missing.push((cell, format!("{label}: no result")));
            for place in spec.at.iter().filter_map(place) {
                let found = record.found.entry((index, dut.to_owned(), place)).or_default();
                found.state = Some(CellState::Failed(format!("cell {cell} has no result")));
            }
            continue;
        };
        if !measured.is_good() {
            missing.push((cell, format!("{label}: {}", measured.error())));
        }
        for point in &measured.points {
            let Some(place) = place(&point.at) else { continue };
            let found = record.found.entry((index, dut.to_owned(), place)).or_default();
            found.state = point.state.clone().or(found.state.take());
            if found.commands.is_empty() {
                found.commands.clone_from(&point.commands);
            }
            let floors = record.floors.entry((index, part.traffic_of(place))).or_default();
            for (id, values) in &point.floor {
                if let Some(metric) = method::metric(id) {
                    // Each cell has measured its own.
                    let known = floors.entry(metric.id).or_default();
                    for value in values {
                        known.insert(known.len(), *value);
                    }
                }
            }
        }
        for entry in &measured.entries {
            let Some(place) = place(&entry.at) else { continue };
            take(record.found.entry((index, dut.to_owned(), place)).or_default(), entry);
        }
        for note in measured.end.iter().flat_map(|end| &end.notes) {
            record.note(note.clone());
        }
    }
    note_missing(record, &missing, known);
    Ok(missing.len())
}

fn take(found: &mut CellFindings, entry: &Entry) {
    found.trials.push(entry.trial.clone());
    found.distributions.extend(entry.distributions.iter().cloned());
}

fn note_missing(record: &mut Record, missing: &[(usize, String)], cells: usize) {
    for (cell, why) in missing.iter().take(MISSING_MAX) {
        record.note(format!("cell {cell} of {cells}: {why}"));
    }
    if missing.len() > MISSING_MAX {
        let numbers: BTreeSet<String> =
            missing[MISSING_MAX..].iter().map(|(cell, _)| cell.to_string()).collect();
        let numbers: Vec<String> = numbers.into_iter().collect();
        record.note(format!("and without a good result: cells {}", numbers.join(", ")));
    }
}
