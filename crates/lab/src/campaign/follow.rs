//! A campaign by its ledger, while it runs and afterwards.
//!
//! Nothing is asked of the run itself but whether it still holds its folder: so a reader sees the
//! same before and behind its end, and after SIGKILL. It must never write, and never take half a
//! line for one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use programs::scratch::FolderLock;
use serde::Serialize;

use super::ledger::{LEDGER_MAX, LedgerError, NAME, RunStep, Stamped, read_lines};
use super::record::Record;
use crate::results::{PartEnd, Results};

/// A run that writes nothing for so long, and for three times as long as its step takes, is silent.
const SILENT_S: f64 = 60.0;

/// State of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CampaignState {
    /// There is none yet.
    Waiting,
    /// It measures.
    Running,
    /// It holds its folder, and has written nothing for long.
    Silent,
    /// It is through.
    Ended,
    /// A signal ended it.
    Interrupted,
    /// Nobody holds the folder, and nobody has written an end: killed, or the machine went down.
    CutOff,
    /// The ledger cannot be read.
    Unreadable,
}

/// View of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Its state.
    pub standing: CampaignState,
    /// That in words, with what there is to do.
    pub words: String,
    /// Another number wherever the results are others.
    pub version: u64,
    /// The present step.
    pub step: Option<RunStep>,
    /// Seconds that it has measured, all parts together.
    pub elapsed_s: f64,
    /// Seconds since the last line was written.
    pub age_s: f64,
    /// Trials that there are.
    pub trials: usize,
    /// Trials without a figure among them.
    pub failed: usize,
}

impl Seen {
    /// A folder in which there is nothing to be seen.
    #[must_use]
    pub fn nothing(standing: CampaignState, words: String, version: u64) -> Self {
        let (step, elapsed_s, age_s, trials, failed) = (None, 0.0, 0.0, 0, 0);
        Self { standing, words, version, step, elapsed_s, age_s, trials, failed }
    }
}

/// Reads the ledger of a folder as it grows.
pub struct Follower {
    folder: PathBuf,
    open: Option<Open>,
    /// Whether a run held the folder before the last reading.
    is_held: bool,
    version: u64,
}

/// A ledger that is being read.
struct Open {
    file: File,
    inode: u64,
    /// Bytes at the end that are no whole line.
    half: usize,
    /// Offset of the next line.
    offset: u64,
    lines: usize,
    record: Record,
}

impl Follower {
    /// Of the folder that a run writes into; it may not be there yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None, is_held: false, version: 0 }
    }

    /// Of a folder, once read.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        let mut follower = Self::new(folder);
        follower.read().unwrap();
        follower
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// A ledger that is none; what was read before is forgotten.
    pub fn read(&mut self) -> Result<(), LedgerError> {
        self.read_held(|folder| FolderLock::is_taken(folder).unwrap_or(false))
    }

    /// The same where `is_held` says whether a run holds the folder. It is asked before the lines
    /// are read: a run writes its end and lets go afterwards. Where lines came and nobody held the
    /// folder, a run may have begun in between, and both are looked at once more.
    fn read_held(&mut self, mut is_held: impl FnMut(&Path) -> bool) -> Result<(), LedgerError> {
        let path = self.folder.join(NAME);
        for _ in 0..2 {
            self.is_held = is_held(&self.folder);
            let before = self.version;
            let outcome = self.read_file(&path);
            if outcome.is_err() {
                self.version += u64::from(self.open.take().is_some());
                return outcome;
            }
            if self.is_held || self.version == before {
                break;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), LedgerError> {
        let io = |why: io::Error| LedgerError::Io { path: path.to_owned(), why: why.to_string() };
        let inode = match path.metadata() {
            Ok(meta) => meta.ino(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.version += u64::from(self.open.take().is_some());
                return Ok(());
            }
            Err(error) => return Err(io(error)),
        };
        if self.open.as_ref().is_none_or(|open| open.inode != inode) {
            self.open = Some(Open::new(path).map_err(io)?);
            self.version += 1;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let lines = open.read(path, io)?;
        self.version += u64::from(!lines.is_empty());
        lines.into_iter().for_each(|line| open.record.apply(line));
        Ok(())
    }

    /// View of the campaign as read so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let folder = self.folder.display();
        let Some((open, run)) =
            self.open.as_ref().and_then(|open| Some((open, &open.record.parts.last()?.1)))
        else {
            let words =
                format!("no campaign in {folder} yet: `weir lab run .. --out {folder}` begins one");
            return Seen::nothing(CampaignState::Waiting, words, self.version);
        };
        let written = open.file.metadata().and_then(|meta| meta.modified());
        let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let age_s = age.map_or(0.0, |age| age.as_secs_f64());
        let step = open.record.step.clone();
        let cost_s = step.as_ref().map_or(0.0, |step| step.cost_s);
        let half = match open.half {
            0 => String::new(),
            bytes => format!("; of its last line there are {bytes} bytes, which do not count"),
        };
        let (standing, words) = match (run.end, self.is_held) {
            (PartEnd::Whole, _) => (CampaignState::Ended, "the run is at its end".to_owned()),
            (PartEnd::Interrupted, _) => {
                (CampaignState::Interrupted, "by a signal; --resume goes on behind it".to_owned())
            }
            (PartEnd::CutOff, true) if age_s > SILENT_S.max(3.0 * cost_s) => {
                let words = format!(
                    "the run holds the folder and has written nothing for long; what it does takes \
                     about {cost_s:.0} s"
                );
                (CampaignState::Silent, words)
            }
            (PartEnd::CutOff, true) => {
                (CampaignState::Running, "the run writes its ledger".to_owned())
            }
            (PartEnd::CutOff, false) => {
                let words = format!(
                    "the run ended without writing so, by SIGKILL, with the machine or on a full \
                     disk{half}; --resume goes on behind it, `weir lab clean` removes what it \
                     left"
                );
                (CampaignState::CutOff, words)
            }
        };
        let is_on = matches!(standing, CampaignState::Running | CampaignState::Silent);
        let parts_s: f64 = open.record.parts.iter().map(|(_, part)| part.duration_s).sum();
        Seen {
            standing,
            words,
            version: self.version,
            step: step.filter(|_| standing != CampaignState::Ended),
            elapsed_s: parts_s + if is_on { age_s } else { 0.0 },
            age_s,
            trials: open.record.trials().count(),
            failed: open.record.trials().filter(|trial| trial.error.is_some()).count(),
        }
    }

    /// The results so far; none before there is a campaign.
    #[must_use]
    pub fn results(&self) -> Option<Results> {
        self.open.as_ref()?.record.results()
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Self { file, inode, half: 0, offset: 0, lines: 0, record: Record::default() })
    }

    /// The whole lines behind those that were read.
    fn read(
        &mut self,
        path: &Path,
        io: impl Fn(io::Error) -> LedgerError,
    ) -> Result<Vec<Stamped>, LedgerError> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.offset)).map_err(&io)?;
        (&self.file).take(LEDGER_MAX).read_to_end(&mut bytes).map_err(&io)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.half = bytes.len() - whole;
        let lines = read_lines(path, &bytes[..whole], self.lines)?;
        self.offset += whole as u64;
        self.lines += bytes[..whole].iter().filter(|byte| **byte == b'\n').count();
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::{CampaignState, Follower};
    use crate::campaign::fake::{Act, TWO_POINTS, campaign, play};
    use crate::campaign::ledger::NAME;
    use crate::campaign::run::tests::run;

    #[test]
    fn a_run_that_begins_between_two_looks_is_not_cut_off() {
        let [made, folder] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        play(&[Act::Yields(1.0)]);
        run(&campaign(TWO_POINTS, made.path())).unwrap();
        let text = std::fs::read_to_string(made.path().join(NAME)).unwrap();
        let begun: String = text.lines().take(3).flat_map(|line| [line, "\n"]).collect();
        let mut follower = Follower::new(folder.path());
        let mut looks = 0;
        // It takes its lock and writes right behind the first look.
        let taken = |folder: &std::path::Path| {
            looks += 1;
            if looks == 1 {
                std::fs::write(folder.join(NAME), &begun).unwrap();
            }
            looks > 1
        };
        follower.read_held(taken).unwrap();
        assert_eq!(follower.seen().standing, CampaignState::Running);
        // One that was killed is, though its lines are new.
        let mut late = Follower::new(folder.path());
        late.read_held(|_| false).unwrap();
        assert_eq!(late.seen().standing, CampaignState::CutOff);
    }
}
