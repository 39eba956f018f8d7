//! Standard output and standard error of all programs: what fails there is an error, never a panic.
//!
//! The binary recognises an error of the standard output, wherever it comes from: a reader that has
//! gone, such as `head`, ends a program without a word, and a full disk is an error.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Arguments;
use std::io::{self, Write};

/// The exit code of a program whose reader has gone: as of one that the signal SIGPIPE ends.
pub const EXIT_READER_GONE: u8 = 141;

/// Why nothing can be printed.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
struct OutputError(io::Error);

/// The standard output, whose errors [`is_reader_gone`] recognises.
#[derive(Debug)]
pub struct StandardOutput(io::Stdout);

/// The standard output.
#[must_use]
pub fn stdout() -> StandardOutput {
    StandardOutput(io::stdout())
}

/// An error of the standard output, as those of [`stdout`] are.
pub fn output_error(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OutputError(error))
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The caller's `write_all` goes on after a signal, which it knows by its kind.
        self.0.write(bytes).map_err(output_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(output_error)
    }
}

/// Writes all of a text to the standard output.
///
/// # Errors
/// The reader has gone, or the disk is full.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard error, as [`printable`] text. That nobody reads it ends nothing.
pub fn eprint_line(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", printable(&line.to_string()));
}

/// A text with words from outside in it, whose control characters, which a terminal would obey, are
/// escaped as in JSON. The ends of its lines and its tabs stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let escaped = |letter| match letter {
        letter if is_obeyed(letter) => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Whether an error, or one of its sources, is that nobody reads the standard output any more.
#[must_use]
pub fn is_reader_gone(error: &(dyn Error + 'static)) -> bool {
    let own = error.downcast_ref::<io::Error>().is_some_and(|error| {
        error.kind() == io::ErrorKind::BrokenPipe
            && error.get_ref().is_some_and(|inner| inner.is::<OutputError>())
    });
    own || error.source().is_some_and(is_reader_gone)
}

/// An error and its sources, without those that the text before them has already.
#[must_use]
pub fn with_sources(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.map(ToString::to_string).fold(String::new(), |text, source| match text.as_str() {
        "" => source,
        known if known.contains(&source) => text,
        known => format!("{known}: {source}"),
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{is_reader_gone, output_error, printable};
    use crate::ReadError;

    #[test]
    fn control_characters_are_escaped_and_lines_stay() {
        assert_eq!(printable("a\u{1b}[2J\r\u{9b}\n\té"), "a\\u001b[2J\\u000d\\u009b\n\té");
        assert_eq!(printable("in_port=1"), "in_port=1");
    }

    #[test]
    fn a_gone_reader_is_recognised_and_a_broken_connection_is_none() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_reader_gone(&output_error(broken())));
        assert!(is_reader_gone(&ReadError::from(output_error(broken()))));
        assert!(!is_reader_gone(&broken()));
        let full = output_error(io::ErrorKind::StorageFull.into());
        assert!(!is_reader_gone(&full));
        assert_eq!(full.to_string(), "standard output: no storage space");
    }
}
