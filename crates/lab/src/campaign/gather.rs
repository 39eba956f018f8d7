//! One ledger of the ledgers of many jobs, measured anywhere.
//!
//! It is a ledger like any other: its parts are the jobs, and a run can go on with it. It must
//! never take a job twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ledger::{Ledger, LedgerError, LedgerLine, Stamped, difference, read};
use super::record::Record;
use crate::results::{PartEnd, Results};

/// Why ledgers are no campaign.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// A ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It is of no single job.
    #[error("{0}: is no ledger of a job: `weir lab run .. --job N` writes them")]
    NoJob(PathBuf),
    /// Two campaigns.
    #[error("{path}: is of another campaign than {first} ({what}): gather each by itself")]
    Other {
        /// The ledger.
        path: PathBuf,
        /// The first one.
        first: PathBuf,
        /// The difference.
        what: &'static str,
    },
    /// The new ledger.
    #[error("cannot write into {folder}; another folder: --out FOLDER: {source}")]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The ledger of a job.
struct Measured {
    path: PathBuf,
    lines: Vec<Stamped>,
    record: Record,
}

impl Measured {
    /// Why it is no good.
    fn fault(&self) -> Option<String> {
        match self.record.parts.last().map(|(_, part)| part.end) {
            Some(PartEnd::Whole) => self.record.failure(),
            Some(PartEnd::Interrupted) => Some("it was interrupted".to_owned()),
            Some(PartEnd::CutOff) | None => Some("it was cut off".to_owned()),
        }
    }

    /// Its job, and the number of jobs.
    fn job(&self) -> Option<(usize, usize)> {
        self.record.head.as_ref()?;
        self.record.parts.last()?.0.job
    }

    /// The difference to the campaign of another job, if there is one.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let (a, b) = (self.record.head.as_ref()?, other.record.head.as_ref()?);
        let part = |of: &Self| {
            let (head, _) = of.record.parts.last()?;
            let (_, jobs) = head.job?;
            Some((head.weir.clone(), head.switches.clone(), head.starts, jobs))
        };
        let (ours, theirs) = (part(self)?, part(other)?);
        difference(a, b).or_else(|| match () {
            () if ours.0 != theirs.0 => Some("another version of weir"),
            () if ours != theirs => Some("other switches or starts"),
            () => None,
        })
    }
}

/// Makes one ledger in `folder` of those of jobs. Of a job that was measured more than once the
/// first good measurement counts, or else the last. With the results come the jobs without a good
/// one, each with the reason.
///
/// # Errors
/// [`GatherError`].
pub fn gather(paths: &[PathBuf], folder: &Path) -> Result<(Results, Vec<String>), GatherError> {
    let mut chosen: BTreeMap<usize, Measured> = BTreeMap::new();
    let mut jobs = 0;
    for path in paths {
        let (path, lines) = read(path)?;
        let mut record = Record::default();
        lines.iter().cloned().for_each(|line| record.apply(line));
        let measured = Measured { path, lines, record };
        let no_job = || GatherError::NoJob(measured.path.clone());
        let (job, of) = measured.job().ok_or_else(no_job)?;
        jobs = of;
        if let Some(first) = chosen.values().next()
            && let Some(what) = measured.difference(first)
        {
            let (path, first) = (measured.path, first.path.clone());
            return Err(GatherError::Other { path, first, what });
        }
        if chosen.get(&job).is_none_or(|known| known.fault().is_some()) {
            chosen.insert(job, measured);
        }
    }
    let missing = (0..jobs).filter_map(|job| {
        let known = chosen.get(&job).map_or(Some("no result".to_owned()), Measured::fault);
        known.map(|why| format!("job {job} of {jobs}: {why}"))
    });
    let missing = missing.collect();
    let no_results = || GatherError::NoJob(paths.first().cloned().unwrap_or_default());
    let head = chosen.values().next().and_then(|first| first.record.head.clone());
    let mut record = Record { head: head.clone(), ..<_>::default() };
    let written = |source| GatherError::Folder { folder: folder.to_owned(), source };
    let mut ledger = Ledger::create(folder, &head.ok_or_else(no_results)?).map_err(written)?;
    for line in chosen.into_values().flat_map(|measured| measured.lines) {
        if !matches!(line.line, LedgerLine::Head(_)) {
            ledger.append(&line).map_err(written)?;
            record.apply(line);
        }
    }
    let results = record.results().ok_or_else(no_results)?;
    Ok((results, missing))
}
