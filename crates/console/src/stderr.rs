//! Output on standard error.
//!
//! A closed standard error is no reason to end a measurement, so nothing here can fail or panic.
//! The user's own text comes back in messages; a line of megabytes must not.

use std::fmt::Arguments;
use std::io::Write;

/// Characters of a message, at most.
const MESSAGE_MAX: usize = 1_200;

/// Writes one line.
pub(crate) fn print_line(line: Arguments<'_>) {
    // Nobody is left to read it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The message, without its middle where it is too long: what was typed may be in it.
pub(crate) fn bounded(message: &str) -> String {
    let count = message.chars().count();
    if count <= MESSAGE_MAX {
        return message.to_owned();
    }
    let half = MESSAGE_MAX / 2;
    let head: String = message.chars().take(half).collect();
    let tail: String = message.chars().skip(count - half).collect();
    format!("{head} ... {} characters ... {tail}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::{MESSAGE_MAX, bounded};

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        assert_eq!(bounded("short"), "short");
        let long = format!("begin{}end", "\u{fc}".repeat(1 << 20));
        let kept = bounded(&long);
        assert!(kept.starts_with("begin") && kept.ends_with("end"), "{kept}");
        assert!(kept.chars().count() < MESSAGE_MAX + 60);
    }
}
