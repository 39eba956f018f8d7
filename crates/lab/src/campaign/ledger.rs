//! The ledger of a campaign: what it is, who carries it out, and each thing that happens, a line of
//! JSON each, written when it happens.
//!
//! Whatever ends a campaign, Ctrl-C, `kill -9` or a full disk, what was found until then is whole
//! lines in this file. Results are made of these lines and of nothing else, be it at the end, by a
//! run that goes on (`--resume`), or by a reader meanwhile (`weir lab serve`). It must never be
//! changed in place: lines are added, and a new campaign has a new file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use programs::tools::Program;
use serde::{Deserialize, Serialize};

use crate::agent::client::BoxFacts;
use crate::facts::Machine;
use crate::results::{CellState, Coordinates, MeasuredDistribution, PartEnd, TrialRecord};
use crate::setup::TestbedKind;

/// Its name, beside the results.
pub const NAME: &str = "trials.jsonl";

/// Version of its form.
pub(super) const LEDGER_FORMAT: u32 = 4;

/// The form before, which is read and not gone on with: a trial had one number, counted through all
/// starts.
pub(super) const OLD_FORMAT: u32 = 3;

/// The first line: what the campaign is. A run that goes on has the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LedgerHead {
    /// [`LEDGER_FORMAT`].
    pub(super) format: u32,
    /// The scenario files, as they are run.
    pub(super) scenarios: Vec<String>,
    /// Whether it is the quick form.
    pub(super) is_quick: bool,
    /// Testbed of the hosts.
    pub(super) testbed: TestbedKind,
    /// The values of each scenario's axes that are measured.
    pub(super) values: Vec<Vec<(String, Vec<String>)>>,
}

/// The second line, and one for each time that the campaign is gone on with: who measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PartHead {
    /// When it began, UTC.
    pub(super) started: String,
    /// The command that was typed.
    pub(super) command: Vec<String>,
    /// The version of the lab.
    pub(super) weir: String,
    /// The machine.
    pub(super) machine: Machine,
    /// The programs that take part.
    pub(super) programs: Vec<Program>,
    /// The switches, in the order of the tables.
    pub(super) duts: Vec<String>,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    #[serde(alias = "repeats")]
    pub(super) starts: Option<usize>,
}

/// Step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// In words.
    pub title: String,
    /// Steps that are done.
    pub done: u64,
    /// Steps that there are.
    pub of: u64,
    /// About how long it takes, seconds.
    pub cost_s: f64,
    /// About how long everything takes from now on, seconds.
    pub left_s: f64,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) scenario: String,
    pub(super) dut: String,
    pub(super) at: Coordinates,
    pub(super) trial: TrialRecord,
    pub(super) distributions: Vec<MeasuredDistribution>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum LedgerLine {
    /// The campaign.
    Head(LedgerHead),
    /// The measuring party from here on.
    Part(Box<PartHead>),
    /// The next step.
    Step(RunStep),
    /// A switch was started for some points of a scenario, or failed to start. What was found of
    /// these points in this start before is void.
    Start {
        scenario: String,
        dut: String,
        #[serde(alias = "repeat")]
        start: usize,
        at: Vec<Coordinates>,
        commands: Vec<String>,
    },
    /// A trial was made.
    Trial(Box<Entry>),
    /// State of a point that is not measured.
    State {
        scenario: String,
        dut: String,
        at: Coordinates,
        #[serde(flatten)]
        state: CellState,
    },
    /// Measurement without a switch; `at` is the first point with this traffic.
    Floor {
        scenario: String,
        at: Coordinates,
        #[serde(alias = "repeat")]
        start: usize,
        method: String,
        values: FloorValues,
    },
    /// A box with an agent that measures too, when it is first asked.
    Box(BoxFacts),
    /// A note for the reader.
    Note { text: String },
    /// This part is at its end.
    End { end: PartEnd },
}

/// Values by metric.
pub(super) type FloorValues = std::collections::BTreeMap<String, f64>;

/// A line with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stamped {
    /// Seconds since this part began.
    pub(super) at_s: f64,
    #[serde(flatten)]
    pub(super) line: LedgerLine,
}

/// The file, open for the lines to come.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    path: PathBuf,
}

/// Why a ledger is not read, or not gone on with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The file.
    #[error("{path}: {why}")]
    Io {
        /// Path of the ledger.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A line that is none, before the last.
    #[error("{path}, line {line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// The mistake in it.
        why: String,
    },
    /// Another campaign.
    #[error("{path}: is of another campaign ({what}); choose another --out, or leave --resume out")]
    Other {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// The same campaign, in the form of another version.
    #[error(
        "{path}: was written by another version of weir (form {form}, and this one writes \
         {LEDGER_FORMAT}): go on with it by that version, or leave --resume out"
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// Its form.
        form: u32,
    },
    /// The same campaign elsewhere.
    #[error(
        "{path}: was measured under other conditions ({what}): their figures are not those of one \
         campaign. Go on where it began, or leave --resume out"
    )]
    Conditions {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
}

impl Ledger {
    /// A file with its first line in `folder`, in place of one of an earlier campaign. It is
    /// another file: who reads the earlier one finds out.
    pub(super) fn create(folder: &Path, head: &LedgerHead) -> io::Result<Self> {
        let path = folder.join(NAME);
        let file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        let first = Stamped { at_s: 0.0, line: LedgerLine::Head(head.clone()) };
        write_line(file.as_file(), &first)?;
        let file = file.persist(&path)?;
        Ok(Self { file, path })
    }

    /// Goes on with the file of an earlier campaign, and says what is in it. A last line that is
    /// not whole is what a full disk or SIGKILL left; it is cut off.
    pub(super) fn resume(
        folder: &Path,
        head: &LedgerHead,
    ) -> Result<(Self, Vec<Stamped>), LedgerError> {
        let path = folder.join(NAME);
        let io = |why: io::Error| LedgerError::Io { path: path.clone(), why: why.to_string() };
        let bytes = files::read(&path, LEDGER_MAX)
            .map_err(|error| io(io::Error::other(error.to_string())))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = read_lines(&path, &bytes[..whole], 0)?;
        let other = |what: &str| LedgerError::Other { path: path.clone(), what: what.to_owned() };
        match lines.first().map(|first| &first.line) {
            Some(LedgerLine::Head(old)) if old == head => {}
            Some(LedgerLine::Head(old)) if old.format != head.format => {
                return Err(LedgerError::Form { path, form: old.format });
            }
            Some(LedgerLine::Head(old)) => return Err(other(difference(old, head))),
            Some(_) | None => return Err(other("it has no first line")),
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(io)?;
        file.set_len(whole as u64).map_err(io)?;
        Ok((Self { file, path }, lines))
    }

    /// Writes a line, all of it at once.
    pub(super) fn append(&mut self, line: &Stamped) -> io::Result<()> {
        write_line(&self.file, line)
    }

    /// Path of the ledger.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The difference between the heads of two campaigns.
fn difference(old: &LedgerHead, head: &LedgerHead) -> &'static str {
    if old.scenarios != head.scenarios {
        "other scenarios"
    } else if old.is_quick != head.is_quick {
        "one of them is quick"
    } else if old.testbed != head.testbed {
        "another testbed"
    } else {
        "other values of an axis"
    }
}

fn write_line(mut file: &File, line: &Stamped) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// The lines in some bytes that begin behind `before` lines and end with a line.
pub(super) fn read_lines(
    path: &Path,
    bytes: &[u8],
    before: usize,
) -> Result<Vec<Stamped>, LedgerError> {
    let wrong = |index: usize, why: String| {
        let line = before + index + 1;
        LedgerError::Line { path: path.to_owned(), line, why }
    };
    let mut lines = Vec::new();
    for (index, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if text.is_empty() {
            continue;
        }
        if before + index == 0 {
            check_format(path, text)?;
        }
        let read = serde_json::from_slice(text);
        lines.push(read.map_err(|why: serde_json::Error| wrong(index, why.to_string()))?);
    }
    Ok(lines)
}

/// Whether the first line is one of this form.
fn check_format(path: &Path, text: &[u8]) -> Result<(), LedgerError> {
    let path = || path.to_owned();
    let head: serde_json::Value = serde_json::from_slice(text)
        .map_err(|why| LedgerError::Line { path: path(), line: 1, why: why.to_string() })?;
    match head.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if [LEDGER_FORMAT, OLD_FORMAT].map(u64::from).contains(&format) => Ok(()),
        Some(format) => {
            let what = format!(
                "of another version of weir: form {format}, and this one reads {LEDGER_FORMAT}"
            );
            Err(LedgerError::Other { path: path(), what })
        }
        None => {
            let why = "is no first line of a campaign: there is no number `format` in it";
            Err(LedgerError::Line { path: path(), line: 1, why: why.to_owned() })
        }
    }
}

/// Bytes of a ledger that is read, at most.
pub(super) const LEDGER_MAX: u64 = 4 << 30;
