//! The cases of `cases/` on a switch under test: each is played, and passes, fails, or says what
//! the switch does not take.
//!
//! The lab sees a switch at the far ends of its ports and on its channel, and nowhere else: the
//! reason of a dropped frame is unseen. So steps about reasons are passed over, and a case beyond
//! the lab's reach at this switch is reported so. A switch that refuses a part of a case with an
//! error of "not supported" is believed, one that takes it must do it.

mod counters;
mod obstacle;
mod player;

use std::path::Path;
use std::time::Duration;

pub use ::cases::Case;
use openflow::message::{ErrorMessage, MultipartReplyBody, MultipartRequestBody};
use openflow::{Message, Version};
use serde::Serialize;

use super::{CheckError, Finding, Truth};

pub use obstacle::obstacle;
use player::Player;

/// Verdict on a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseVerdict {
    /// The switch does what the case says.
    Passed,
    /// It does something else.
    Failed,
    /// It refuses what the case needs, and says that it does not have it.
    NotSupported,
    /// The lab cannot play it here.
    NotPlayed,
}

impl CaseVerdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::NotSupported, Self::NotPlayed];

    /// As a table shows it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotSupported => "not supported",
            Self::NotPlayed => "not played",
        }
    }
}

/// Finding about one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseFinding {
    /// The file, below the folder of the cases where they are built in.
    pub file: String,
    /// The line of the case, or of the step at which it ended.
    pub line: usize,
    /// Its name.
    pub case: String,
    /// The verdict.
    pub verdict: CaseVerdict,
    /// The expectation beside the frames seen; the refusal; the obstacle.
    pub note: String,
    /// Whether it passes only when frames are kept back after the answer to the barrier.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// A switch on which cases are played. Every call fails when a channel or a port does.
pub trait PlayedSwitch {
    /// Number of its ports: 1, 2 and so on.
    fn ports(&self) -> u32;

    /// Whether the lab can take the link of a port away.
    fn has_links(&self) -> bool;

    /// Deletes all entries, groups and meters, and forgets what is on its way.
    fn reset(&mut self) -> Result<(), CheckError>;

    /// Opens its channels anew, after one has failed.
    fn reconnect(&mut self) -> Result<(), CheckError>;

    /// Sends a message and a barrier in that version, over a connection of its own where it is not
    /// the one that is checked, and waits for its answer: the error, if it has refused the message,
    /// and everything else that has come.
    fn carry_out(
        &mut self,
        version: Version,
        message: &Message,
    ) -> Result<(Option<ErrorMessage>, Vec<Message>), CheckError>;

    /// Messages that have come on the channel of a version, without waiting.
    fn came(&mut self, version: Version) -> Result<Vec<Message>, CheckError>;

    /// Asks something that is answered with one message.
    fn ask(&mut self, message: &Message) -> Result<Message, CheckError>;

    /// Asks for statistics, in the version that is checked.
    fn statistics(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError>;

    /// Puts a frame in at a port.
    fn put(&mut self, port: u32, frame: &[u8]) -> Result<(), CheckError>;

    /// The frames that have left by a port since the last call.
    fn take(&mut self, port: u32) -> Result<Vec<Vec<u8>>, CheckError>;

    /// Takes the link of a port away, or gives it back.
    fn set_link(&mut self, port: u32, is_up: bool) -> Result<(), CheckError>;
}

/// Waits of a play.
#[derive(Clone, Copy, Debug)]
pub struct PlayPace {
    /// The wait for what must come.
    pub patience: Duration,
    /// The wait for what must not come: within it a switch has dealt with a frame.
    pub quiet: Duration,
    /// The wait between the answer to a barrier and the first frame behind it.
    pub obey: Duration,
}

impl Default for PlayPace {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(1),
            quiet: Duration::from_millis(20),
            obey: Duration::ZERO,
        }
    }
}

/// Time within which a switch that caches decisions looks at them again: Open vSwitch does so every
/// 500 ms at the latest (`max-revalidator`).
const OBEY_LATE: Duration = Duration::from_millis(600);

/// Cases that pass only with [`OBEY_LATE`], before all others are played so too.
const LATE_MAX: usize = 3;

/// Time in which a meter of a packet a second lets another one through.
const TOO_LATE: Duration = Duration::from_millis(500);

/// Failures of a case before frames are kept back, and it may pass and be called late: a machine
/// that stood still must not accuse a switch.
const ATTEMPTS: usize = 2;

/// Attempts at a case with a meter in which the lab was too slow for its rate.
const SLOW_ATTEMPTS: usize = 6;

/// The built-in cases, or those of a file or of a folder.
///
/// # Errors
/// A file cannot be read, or a line of it is not understood.
pub fn load(path: Option<&Path>) -> Result<Vec<Case>, ::cases::Error> {
    match path {
        None => ::cases::built_in(),
        Some(folder) if folder.is_dir() => ::cases::load_dir(folder),
        Some(file) => ::cases::parse(file, &::cases::block::read(file)?),
    }
}

/// Plays a case on a switch that was asked to speak `version`.
///
/// # Errors
/// The channel or a port failed, and cannot be opened anew.
pub fn play(
    switch: &mut dyn PlayedSwitch,
    version: Version,
    case: &Case,
    pace: PlayPace,
) -> Result<CaseFinding, CheckError> {
    let finding = |line, verdict, note| CaseFinding {
        file: case.file.display().to_string(),
        line,
        case: case.name.clone(),
        verdict,
        note,
        is_late: false,
    };
    if let Some(why) = obstacle(case, version, switch.ports(), switch.has_links()) {
        return Ok(finding(case.line, CaseVerdict::NotPlayed, why));
    }
    let has_meter = obstacle::has_meter(case);
    let can_wait = pace.obey < OBEY_LATE;
    let attempts = if can_wait { ATTEMPTS + 1 } else { ATTEMPTS };
    let (mut failed, mut passed_late, mut slow) = (0, 0, 0);
    loop {
        let is_kept_back = can_wait && failed == ATTEMPTS;
        let pace = if is_kept_back { PlayPace { obey: OBEY_LATE, ..pace } } else { pace };
        let mut player = Player::new(switch, version, pace);
        let Err((line, end)) = player.play(case) else {
            passed_late += usize::from(is_kept_back);
            // What a meter lets through depends on more than when the entries are in force.
            if is_kept_back && !has_meter && passed_late < ATTEMPTS {
                continue;
            }
            let passed = finding(case.line, CaseVerdict::Passed, String::new());
            return Ok(CaseFinding { is_late: passed_late == ATTEMPTS, ..passed });
        };
        let is_slow = has_meter && player.traffic() > TOO_LATE;
        let (verdict, note) = match end {
            CheckError::Otherwise(_) if is_slow => {
                slow += 1;
                if slow < SLOW_ATTEMPTS {
                    continue;
                }
                let note = "the lab was slower than the rate of its meter".to_owned();
                (CaseVerdict::NotPlayed, note)
            }
            CheckError::Otherwise(_) if failed + 1 < attempts => {
                failed += 1;
                continue;
            }
            CheckError::Otherwise(note) => (CaseVerdict::Failed, note),
            CheckError::Refused(note) => (CaseVerdict::NotSupported, note),
            CheckError::Unsaid(note) => (CaseVerdict::NotPlayed, note),
            CheckError::Stopped(stopped) => return Err(stopped.into()),
            CheckError::Broken(error) => match player.reconnect() {
                Ok(()) => (CaseVerdict::Failed, error),
                Err(CheckError::Stopped(stopped)) => return Err(stopped.into()),
                Err(CheckError::Broken(then)) => {
                    let note = format!("{}: {error}; then {then}", case.place(line));
                    return Err(CheckError::Broken(note));
                }
                Err(then) => (CaseVerdict::Failed, format!("{error}; then {then}")),
            },
        };
        return Ok(finding(line, verdict, note));
    }
}

/// Plays all cases; `begin` hears of each.
pub fn play_all(
    switch: &mut dyn PlayedSwitch,
    version: Version,
    cases: &[Case],
    mut pace: PlayPace,
    mut begin: impl FnMut(&Case),
) -> Result<Vec<CaseFinding>, CheckError> {
    let mut found: Vec<CaseFinding> = Vec::with_capacity(cases.len());
    for case in cases {
        begin(case);
        found.push(play(switch, version, case, pace)?);
        if count_late(&found) >= LATE_MAX {
            pace.obey = OBEY_LATE;
        }
    }
    Ok(found)
}

fn count_late(found: &[CaseFinding]) -> usize {
    found.iter().filter(|found| found.is_late).count()
}

/// Whether packets obey all messages before the answered barrier, by the cases that were played.
pub fn obedience(found: &[CaseFinding]) -> Option<Finding> {
    if !found.iter().any(|found| found.verdict == CaseVerdict::Passed) {
        return None;
    }
    let (verdict, note) = if count_late(found) >= LATE_MAX {
        let late_ms = OBEY_LATE.as_millis();
        let note =
            format!("cases pass only when a frame comes {late_ms} ms after the barrier's answer");
        (Truth::Lies, note)
    } else {
        (Truth::Yes, String::new())
    };
    let feature = "known packets obey when the barrier is answered";
    Some(Finding::new("truth", feature, verdict, note))
}

#[cfg(test)]
mod tests;
