//! The ledger of a campaign: what it is, who carries it out, and each thing that happens, a line of
//! JSON each, written when it happens.
//!
//! It is the only file of a run that others are made from. Whatever ends a campaign, Ctrl-C,
//! `kill -9` or a full disk, what was found until then is whole lines in it. Results are a view of
//! these lines and of nothing else (`Record`), and need no scenario file, switch or method of this
//! program. It must never be changed in place: lines are added, and a new campaign has a new file.

use std::fmt::Display;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::facts::BoxFacts;
use crate::results::{CellState, Coordinates, PartEnd, RunPart, ScenarioResults, TrialRecord};
use crate::setup::TestbedKind;

/// Its name in the folder of a run.
pub const NAME: &str = "trials.jsonl";

/// Its name there once it is compressed by gzip.
pub const COMPRESSED: &str = "trials.jsonl.gz";

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

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum LedgerLine {
    /// The campaign.
    Head(LedgerHead),
    /// The measuring party from here on: the second line, and one for each time that the campaign
    /// is gone on with.
    Part(Box<RunPart>),
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

/// Why a ledger is not read, written or gone on with: its path, the line, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(String);

impl LedgerError {
    /// Of a file or of a line of it.
    pub(super) fn new(place: impl Display, why: impl Display) -> Self {
        Self(format!("{place}: {why}"))
    }

    /// The folder of a ledger takes no file, or the file no line.
    pub(super) fn of_folder(folder: &Path, why: &io::Error) -> Self {
        let folder = folder.display();
        Self(format!("cannot write into {folder}; another folder: --out FOLDER: {why}"))
    }
}

/// A new ledger with its first line in `folder`, in place of one of an earlier campaign. It is
/// another file: a reader of the earlier one finds out.
pub(super) fn create(folder: &Path, head: &LedgerHead) -> Result<File, LedgerError> {
    let path = folder.join(NAME);
    let make = || {
        let first = text(&Stamped { at_s: 0.0, line: LedgerLine::Head(head.clone()) })?;
        write_whole(&path, first.as_bytes())
    };
    make().map_err(|why| LedgerError::of_folder(folder, &why))
}

/// Writes a file under its name only once it is whole. A link of that name is replaced, and what it
/// leads to stays: the lab runs as root, in folders that others may write to.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<File> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("is no regular file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    Ok(file.persist(path)?)
}

/// The ledger of an earlier campaign, open for the lines to come, and the lines in it. A last line
/// that is not whole is what a full disk or SIGKILL left; it is cut off.
pub(super) fn resume(
    folder: &Path,
    head: &LedgerHead,
) -> Result<(File, Vec<Stamped>), LedgerError> {
    let path = folder.join(NAME);
    let wrong = |why: &dyn Display| LedgerError::new(path.display(), why);
    let bytes = files::read(&path, LEDGER_MAX).map_err(|why| wrong(&why))?;
    let lines = read_lines(&path, &bytes)?;
    let what = match lines.first().map(|first| &first.line) {
        Some(LedgerLine::Head(old)) => difference(old, head),
        Some(_) | None => Some("it has no first line"),
    };
    if let Some(what) = what {
        let remedy = "choose another --out, or leave --resume out";
        return Err(wrong(&format_args!("is of another campaign ({what}); {remedy}")));
    }
    let file = OpenOptions::new().append(true).open(&path).map_err(|why| wrong(&why))?;
    file.set_len(whole_lines(&bytes).len() as u64).map_err(|why| wrong(&why))?;
    Ok((file, lines))
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

/// Writes a line, all of it at once.
pub(super) fn append(mut file: &File, line: &Stamped) -> io::Result<()> {
    file.write_all(text(line)?.as_bytes())
}

fn text(line: &Stamped) -> io::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// Bytes up to the end of the last line that is whole.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |at| &bytes[..=at])
}

/// The lines in some bytes, but an incomplete last one.
fn read_lines(path: &Path, bytes: &[u8]) -> Result<Vec<Stamped>, LedgerError> {
    let mut lines = Vec::new();
    for (index, text) in whole_lines(bytes).split(|byte| *byte == b'\n').enumerate() {
        if text.is_empty() {
            continue;
        }
        let place = || format!("{}, line {}", path.display(), index + 1);
        if index == 0 {
            let head: serde_json::Value =
                serde_json::from_slice(text).map_err(|why| LedgerError::new(place(), why))?;
            let Some(form) = head.get("format").and_then(serde_json::Value::as_u64) else {
                let why = "is no first line of a campaign: there is no number `format` in it";
                return Err(LedgerError::new(place(), why));
            };
            if form != u64::from(LEDGER_FORMAT) {
                let why = format!(
                    "was written by another version of weir (form {form}, and this one reads \
                     {LEDGER_FORMAT}): use that version for it, or measure again"
                );
                return Err(LedgerError::new(path.display(), why));
            }
        }
        lines.push(serde_json::from_slice(text).map_err(|why| LedgerError::new(place(), why))?);
    }
    Ok(lines)
}

/// The ledger at `path`, or in the folder there, compressed by gzip or not, and its lines but an
/// incomplete last one.
pub(super) fn read(path: &Path) -> Result<(PathBuf, Vec<Stamped>), LedgerError> {
    let mut file = path.to_owned();
    if path.is_dir() {
        let files = [NAME, COMPRESSED].map(|name| path.join(name));
        let found = files.into_iter().find(|file| file.exists());
        let none = || LedgerError::new(path.display(), format_args!("no {NAME} in it"));
        file = found.ok_or_else(none)?;
    }
    let lines = read_lines(&file, &read_bytes(&file)?)?;
    Ok((file, lines))
}

/// The text of a file, which may be compressed.
fn read_bytes(path: &Path) -> Result<Vec<u8>, LedgerError> {
    let wrong = |why: &dyn Display| LedgerError::new(path.display(), why);
    let bytes = files::read(path, LEDGER_MAX).map_err(|why| wrong(&why))?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(bytes.as_slice()).take(TEXT_MAX).read_to_end(&mut text);
    match read.map_err(|why| wrong(&format_args!("it is no whole gzip file: {why}")))? as u64 {
        TEXT_MAX => Err(wrong(&format_args!("it holds more than {} MiB of text", TEXT_MAX >> 20))),
        _ => Ok(text),
    }
}

/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The longest text that a compressed file may hold, bytes: a small file must not fill the memory.
const TEXT_MAX: u64 = 1 << 30;

/// Bytes of a ledger that is read, at most.
const LEDGER_MAX: u64 = 4 << 30;
