//! One ledger of the ledgers of many jobs, measured anywhere.
//!
//! It is a ledger like any other: its parts are the jobs, and a run can go on with it. It must
//! never take a job twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ledger::{LedgerError, LedgerLine, NAME, Stamped, append, create, difference, read};
use super::record::{Record, results_of};
use super::scenario::PLAN_MAX;
use crate::results::{Results, RunPart};

/// Makes one ledger in `folder` of those of jobs, of each the first good one, or else the last.
/// With the results come the jobs without a good one, each with the reason.
pub fn gather(paths: &[PathBuf], folder: &Path) -> Result<(Results, Vec<String>), LedgerError> {
    let mut chosen: BTreeMap<usize, (PathBuf, Vec<Stamped>, Record)> = BTreeMap::new();
    let mut jobs = 0;
    for path in paths {
        let (path, lines) = read(path)?;
        let record = Record::of(lines.clone());
        let job = record.parts.last().and_then(|part| part.job);
        let (job, of) = job.filter(|_| record.head.is_some()).ok_or_else(|| no_job(&path))?;
        if job >= of || of > PLAN_MAX {
            let why = format!("is of job {job} of {of}; a plan has {PLAN_MAX} at most");
            return Err(LedgerError::new(path.display(), why));
        }
        jobs = of;
        if let Some((first, _, known)) = chosen.values().next()
            && let Some(what) = other_campaign(known, &record)
        {
            let other = format!("is of another campaign than {} ({what})", first.display());
            let why = format!("{other}: gather each by itself");
            return Err(LedgerError::new(path.display(), why));
        }
        if chosen.get(&job).is_none_or(|(.., known)| known.failure().is_some()) {
            chosen.insert(job, (path, lines, record));
        }
    }
    let missing = (0..jobs).filter_map(|job| {
        let known = chosen.get(&job);
        let fault = known.map_or(Some("no result".to_owned()), |(.., record)| record.failure());
        fault.map(|why| format!("job {job} of {jobs}: {why}"))
    });
    let missing: Vec<String> = missing.collect();
    let head = chosen.values().next().and_then(|(.., first)| first.head.clone());
    let head = head.ok_or_else(|| no_job(folder))?;
    let written = folder.join(NAME).canonicalize().ok();
    let is_written = |path: &Path| written.is_some() && path.canonicalize().ok() == written;
    if let Some((path, ..)) = chosen.values().find(|(path, ..)| is_written(path)) {
        let why = "is gathered, and would be replaced: gather into another folder";
        return Err(LedgerError::new(path.display(), why));
    }
    let file = create(folder, &head)?;
    for line in chosen.values().flat_map(|(_, lines, _)| lines) {
        if !matches!(line.line, LedgerLine::Head(_)) {
            append(&file, line).map_err(|why| LedgerError::of_folder(folder, &why))?;
        }
    }
    Ok((results_of(folder)?, missing))
}

fn no_job(path: &Path) -> LedgerError {
    let why = "is no ledger of a job: `weir lab run .. --job N` writes them";
    LedgerError::new(path.display(), why)
}

/// The difference between the campaigns of two jobs, if there is one.
fn other_campaign(first: &Record, other: &Record) -> Option<&'static str> {
    let (a, b) = (first.parts.last()?, other.parts.last()?);
    let jobs = |part: &RunPart| part.job.map(|(_, jobs)| jobs);
    let differs = difference(first.head.as_ref()?, other.head.as_ref()?);
    differs.or_else(|| match () {
        () if a.weir != b.weir => Some("another version of weir"),
        () if (&a.switches, a.starts, jobs(a)) != (&b.switches, b.starts, jobs(b)) => {
            Some("other switches or starts")
        }
        () => None,
    })
}
