//! The ledger of a campaign: what it is, who carries it out, and each thing that happens, a line of
//! JSON each, written when it happens.
//!
//! It is the only file of a run that others are made from. Whatever ends a campaign, Ctrl-C,
//! `kill -9` or a full disk, what was found until then is whole lines in it. Results are a view of
//! these lines and of nothing else (`Record`), and need no scenario file,
//! switch or method of this program. It must never be changed in place: lines are added, and a new
//! campaign has a new file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use programs::tools::Program;
use serde::{Deserialize, Serialize};

use crate::facts::{BoxFacts, Machine};
use crate::results::{CellState, Coordinates, DutInfo, PartEnd, ScenarioResults, TrialRecord};
use crate::setup::TestbedKind;

/// Its name in the folder of a run.
pub const NAME: &str = "trials.jsonl";

/// Version of its form.
pub(super) const LEDGER_FORMAT: u32 = 5;

/// The first line: what the campaign is. A run that goes on has the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LedgerHead {
    /// [`LEDGER_FORMAT`].
    pub(super) format: u32,
    /// Whether it is the quick form.
    pub(super) is_quick: bool,
    /// Testbed of the hosts.
    pub(super) testbed: TestbedKind,
    /// The scenarios, without cells.
    pub(super) scenarios: Vec<ScenarioResults>,
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
    pub(super) switches: Vec<DutInfo>,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    pub(super) starts: Option<usize>,
    /// The one job that is measured, from 0, and the number of jobs; none for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<(usize, usize)>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum LedgerLine {
    /// The campaign.
    Head(LedgerHead),
    /// The measuring party from here on.
    Part(Box<PartHead>),
    /// A switch was started for some points of a scenario, or failed to start. What was found of
    /// these points in this start before is void.
    Start {
        scenario: String,
        dut: String,
        start: usize,
        at: Vec<Coordinates>,
        commands: Vec<String>,
    },
    /// A trial was made.
    Trial {
        scenario: String,
        dut: String,
        at: Coordinates,
        #[serde(flatten)]
        trial: Box<TrialRecord>,
    },
    /// State of a point that is not measured.
    State {
        scenario: String,
        dut: String,
        at: Coordinates,
        #[serde(flatten)]
        state: CellState,
    },
    /// A box with an agent that measures too, when it is first asked.
    Box(BoxFacts),
    /// A note for the reader.
    Note { text: String },
    /// This part is at its end.
    End { end: PartEnd },
}

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
    /// A line that does not parse. (An incomplete last line is ignored.)
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
    /// The form of another version.
    #[error(
        "{path}: was written by another version of weir (form {form}, and this one reads \
         {LEDGER_FORMAT}): use that version for it, or measure again"
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// Its form.
        form: u64,
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
        Ok(Self { file: file.persist(&path)? })
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
        let lines = read_lines(&path, &bytes)?;
        let what = match lines.first().map(|first| &first.line) {
            Some(LedgerLine::Head(old)) => difference(old, head),
            Some(_) | None => Some("it has no first line"),
        };
        if let Some(what) = what {
            return Err(LedgerError::Other { path, what: what.to_owned() });
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(io)?;
        file.set_len(whole_lines(&bytes).len() as u64).map_err(io)?;
        Ok((Self { file }, lines))
    }

    /// Writes a line, all of it at once.
    pub(super) fn append(&mut self, line: &Stamped) -> io::Result<()> {
        write_line(&self.file, line)
    }
}

#[cfg(test)]
impl From<File> for Ledger {
    fn from(file: File) -> Self {
        Self { file }
    }
}

/// The difference between two campaigns, if they are not the same.
pub(super) fn difference(old: &LedgerHead, head: &LedgerHead) -> Option<&'static str> {
    let is_same = |of: fn(&ScenarioResults, &ScenarioResults) -> bool| {
        let mut pairs = old.scenarios.iter().zip(&head.scenarios);
        old.scenarios.len() == head.scenarios.len() && pairs.all(|(a, b)| of(a, b))
    };
    if !is_same(|a, b| a.source == b.source) {
        Some("other scenarios")
    } else if old.is_quick != head.is_quick {
        Some("one of them is quick")
    } else if old.testbed != head.testbed {
        Some("another testbed")
    } else if !is_same(|a, b| a.axes == b.axes) {
        Some("other values of an axis")
    } else {
        None
    }
}

fn write_line(mut file: &File, line: &Stamped) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// Bytes up to the end of the last line that is whole.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |at| &bytes[..=at])
}

/// The lines in some bytes, but an incomplete last one.
pub(super) fn read_lines(path: &Path, bytes: &[u8]) -> Result<Vec<Stamped>, LedgerError> {
    let wrong = |index: usize, why: String| LedgerError::Line {
        path: path.to_owned(),
        line: index + 1,
        why,
    };
    let mut lines = Vec::new();
    for (index, text) in whole_lines(bytes).split(|byte| *byte == b'\n').enumerate() {
        if text.is_empty() {
            continue;
        }
        if index == 0 {
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
        Some(format) if format == u64::from(LEDGER_FORMAT) => Ok(()),
        Some(form) => Err(LedgerError::Form { path: path(), form }),
        None => {
            let why = "is no first line of a campaign: there is no number `format` in it";
            Err(LedgerError::Line { path: path(), line: 1, why: why.to_owned() })
        }
    }
}

/// The ledger at `path`, or in the folder there, and its lines but an incomplete last one.
pub(super) fn read(path: &Path) -> Result<(PathBuf, Vec<Stamped>), LedgerError> {
    let path = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
    let lines = read_lines(&path, &read_bytes(&path)?)?;
    Ok((path, lines))
}

/// The text of a file, which may be compressed by gzip.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, LedgerError> {
    let io = |why: String| LedgerError::Io { path: path.to_owned(), why };
    let bytes = files::read(path, LEDGER_MAX).map_err(|error| io(error.to_string()))?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(bytes.as_slice()).take(TEXT_MAX).read_to_end(&mut text);
    match read.map_err(|why| io(format!("it is no whole gzip file: {why}")))? as u64 {
        TEXT_MAX => Err(io(format!("it holds more than {} MiB of text", TEXT_MAX >> 20))),
        _ => Ok(text),
    }
}

/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The longest text that a compressed file may hold, bytes: a small file must not fill the memory.
const TEXT_MAX: u64 = 1 << 30;

/// Bytes of a ledger that is read, at most.
const LEDGER_MAX: u64 = 4 << 30;
