//! The ledger of a campaign: one line of JSON for each trial, written when it is made.
//!
//! Whatever ends a campaign, Ctrl-C, `kill -9` or a full disk, the trials made until then are whole
//! lines in this file, and `--resume` goes on behind them. The file is made before the first trial,
//! so that a folder that takes no files is found out then.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::results::{Coordinates, MeasuredDistribution, TrialRecord};

/// Its name, beside the results.
pub(super) const NAME: &str = "trials.jsonl";

/// The first line: what the campaign is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LedgerHead {
    /// [`crate::results::FORMAT`].
    pub(super) format: u32,
    /// When it started, UTC.
    pub(super) started: String,
    /// The scenario files, as they are run.
    pub(super) scenarios: Vec<String>,
    /// Whether it is the quick form.
    pub(super) is_quick: bool,
    /// The values of each scenario's axes that are measured.
    pub(super) values: Vec<Vec<Vec<String>>>,
}

/// Every other line: a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) scenario: String,
    pub(super) dut: String,
    pub(super) at: Coordinates,
    pub(super) trial: TrialRecord,
    pub(super) distributions: Vec<MeasuredDistribution>,
}

/// What stands for a trial in the ledger.
pub(super) type TrialKey = (String, String, Coordinates, String, usize);

/// Trials of an earlier campaign, by what they are of.
pub(super) type OldTrials = HashMap<TrialKey, Vec<Entry>>;

impl Entry {
    /// What it is the trial of.
    pub(super) fn key(&self) -> TrialKey {
        let trial = &self.trial;
        (
            self.scenario.clone(),
            self.dut.clone(),
            self.at.clone(),
            trial.method.clone(),
            trial.repeat,
        )
    }
}

/// The file, open for the lines to come.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    path: PathBuf,
}

/// Why an earlier campaign is not gone on with.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResumeError {
    /// The file.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// A line that is none, before the last.
    #[error("{path}, line {line}: {why}")]
    Line { path: PathBuf, line: usize, why: String },
    /// Another campaign.
    #[error("{path}: is of another campaign ({what}); choose another --out, or leave --resume out")]
    Other { path: PathBuf, what: &'static str },
}

impl Ledger {
    /// A file with its first line in `folder`, in place of one of an earlier campaign.
    pub(super) fn create(folder: &Path, head: &LedgerHead) -> io::Result<Self> {
        let path = folder.join(NAME);
        let mut ledger = Self { file: File::create(&path)?, path };
        ledger.append(head)?;
        Ok(ledger)
    }

    /// Goes on with the file of an earlier campaign: its trials, by what they are of. A last line
    /// that is not whole is what a full disk or SIGKILL left; it is cut off.
    pub(super) fn resume(
        folder: &Path,
        head: &LedgerHead,
    ) -> Result<(Self, String, OldTrials), ResumeError> {
        let path = folder.join(NAME);
        let io = |source| ResumeError::Io { path: path.clone(), source };
        let bytes = files::read(&path, LEDGER_MAX)
            .map_err(|error| io(io::Error::other(error.to_string())))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|why| ResumeError::Line {
            path: path.clone(),
            line: 0,
            why: why.to_string(),
        })?;
        let line = |number: usize, why: serde_json::Error| ResumeError::Line {
            path: path.clone(),
            line: number + 1,
            why: why.to_string(),
        };
        let mut lines = text.lines().enumerate();
        let other = |what| ResumeError::Other { path: path.clone(), what };
        let (_, first) = lines.next().ok_or_else(|| other("it has no first line"))?;
        let old: LedgerHead = serde_json::from_str(first).map_err(|why| line(0, why))?;
        if old.format != head.format {
            return Err(other("another version of the lab"));
        }
        let is_same = old.scenarios == head.scenarios
            && old.is_quick == head.is_quick
            && old.values == head.values;
        if !is_same {
            return Err(other("other scenarios, or other values in them"));
        }
        let mut trials = OldTrials::new();
        for (number, text) in lines {
            let entry: Entry = serde_json::from_str(text).map_err(|why| line(number, why))?;
            trials.entry(entry.key()).or_default().push(entry);
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(io)?;
        file.set_len(whole as u64).map_err(io)?;
        Ok((Self { file, path }, old.started, trials))
    }

    /// Writes a line, all of it at once.
    pub(super) fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Bytes of a ledger that is gone on with, at most.
const LEDGER_MAX: u64 = 4 << 30;
