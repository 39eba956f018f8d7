//! Hex in and out, as people write it: blanks, line breaks, `:` and `-` between bytes are ignored.
//!
//! It exists so that every test prints and reads bytes in one way. It must never guess: an odd
//! number of digits or a foreign character is an error that says where.

use std::fmt::Write as _;

/// Bytes of a hex text.
///
/// # Errors
/// A sentence that names the offending character and its position in characters, or the odd count.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high: Option<u8> = None;
    for (at, c) in text.chars().enumerate() {
        if c.is_whitespace() || c == ':' || c == '-' {
            continue;
        }
        let Some(digit) = c.to_digit(16).and_then(|d| u8::try_from(d).ok()) else {
            return Err(format!("`{c}` at position {at} is not a hex digit"));
        };
        high = match high {
            None => Some(digit),
            Some(h) => {
                bytes.push(h << 4 | digit);
                None
            }
        };
    }
    match high {
        None => Ok(bytes),
        Some(_) => Err(format!("odd number of hex digits ({})", bytes.len() * 2 + 1)),
    }
}

/// Bytes as digits without anything between them.
#[must_use]
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes as lines of at most 32, two digits each, a blank between bytes; no line break at the end.
#[must_use]
pub fn format(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            out.push(if at % 32 == 0 { '\n' } else { ' ' });
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{digits, format, parse};

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse("04 0e\n00:38-ff").unwrap(), [4, 14, 0, 0x38, 0xff]);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn refuses_half_bytes_and_foreign_characters() {
        assert_eq!(parse("123").unwrap_err(), "odd number of hex digits (3)");
        assert_eq!(parse("0x12").unwrap_err(), "`x` at position 1 is not a hex digit");
    }

    #[test]
    fn round_trip() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = format(&bytes);
        assert_eq!(text.lines().count(), 8);
        assert_eq!(parse(&text).unwrap(), bytes);
        assert_eq!(digits(&bytes), text.replace([' ', '\n'], ""));
    }
}
