//! Wrong usage: its error and exit codes, and the values that several subcommands read.

use std::process::ExitCode;
use std::time::Duration;

use generator::session::SessionError;
use netdev::PortError;
use openflow::text::decimal_where;

use crate::stderr::{bounded, print_line};

/// Exit code of wrong usage, a wrong profile included.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Exit code after a signal, as shells report SIGINT.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// The arguments make no sense: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// An error of the session, as one of usage where it is one.
pub(crate) fn session_error(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Option(_)
        | SessionError::Profile(_)
        | SessionError::NoPort { .. }
        | SessionError::Overlap(_)
        | SessionError::Port(PortError::Spec(_)) => UsageError(error.to_string()).into(),
        SessionError::Port(_)
        | SessionError::NoStreams(_)
        | SessionError::Down { .. }
        // Its text has that of its source, which would be printed twice.
        | SessionError::Thread { .. } => anyhow::Error::msg(error.to_string()),
    }
}

/// Prints the mistake in the arguments.
pub(crate) fn usage(why: &str) -> ExitCode {
    print_line(format_args!("weir gen: {}", bounded(why)));
    ExitCode::from(EXIT_USAGE)
}

/// The longest time that is taken, in seconds: a hundred years.
const TIME_MAX_S: f64 = 100.0 * 365.25 * 86_400.0;

/// A number of seconds, 0 or more.
fn seconds(text: &str) -> Result<f64, String> {
    let is_allowed = |seconds: &f64| (0.0..=TIME_MAX_S).contains(seconds);
    decimal_where(text, is_allowed, "a number of seconds, 0 or more")
}

/// A time, 0 or more.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    seconds(text).map(Duration::from_secs_f64)
}

/// A number of seconds above 0.
pub(crate) fn some_time(text: &str) -> Result<f64, String> {
    let read = Some(seconds(text)?).filter(|seconds| *seconds > 0.0);
    read.ok_or_else(|| "a number of seconds above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{some_time, time};

    #[test]
    fn a_time_that_is_no_number_is_refused() {
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!((time("0"), some_time("1e-3")), (Ok(Duration::ZERO), Ok(0.001)));
        for text in ["nan", "-nan", "inf", "-1", "1e300", "x", ""] {
            assert!(time(text).is_err() && some_time(text).is_err(), "{text}");
        }
        assert!(some_time("0").is_err());
    }
}
