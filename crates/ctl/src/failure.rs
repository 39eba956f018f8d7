//! The failures of a command, and their exit codes.

use std::io;
use std::process::ExitCode;

/// Why a command ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A word of the command or of its texts is not understood.
    NotUnderstood(String),
    /// The command is not possible, or the switch refuses it.
    Refused(String),
    /// The sides of a comparison differ; the output has the differences.
    Differs,
    /// There is no switch, or it has gone.
    Unreached(String),
    /// The time that `--timeout` gives is over.
    TimedOut,
    /// The reader of our output has gone: there is nobody to report to.
    Pipe,
}

/// The exit codes, for the help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused by the switch, or not understood
  2  wrong usage; of diff-flows: there are differences
  3  no switch was reached, or it has gone
  4  the time of --timeout is over
  141  the reader of the output has gone";

impl Failure {
    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    /// Message of the failure, if it has one.
    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::NotUnderstood(why) | Self::Refused(why) | Self::Unreached(why) => Some(why),
            Self::TimedOut => Some("the time is over"),
            Self::Differs | Self::Pipe => None,
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NotUnderstood(_) | Self::Refused(_) => 1,
            Self::Differs => 2,
            Self::Unreached(_) => 3,
            Self::TimedOut => 4,
            Self::Pipe => files::EXIT_READER_GONE,
        })
    }
}

/// Failures of input and output are those of our own output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Pipe
        } else {
            Self::Refused(error.to_string())
        }
    }
}
