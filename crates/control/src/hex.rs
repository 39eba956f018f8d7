//! Frames as hex digits, both ways.

use std::fmt::Write;

/// The bytes of a text of hex digits; blanks between them are read over.
///
/// # Errors
/// When it is no hex, half a byte, or more than `bytes_max` bytes.
pub fn unhex(text: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or("the frame must be hex digits")?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the frame has half a byte at its end".to_owned());
    }
    if pairs.len() > bytes_max {
        return Err(format!("the frame is longer than {} bytes", bytes_max));
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{hex, unhex};

    #[test]
    fn hex_reads_back() {
        assert_eq!(unhex("00ff 1a2B\n", 4).unwrap(), [0, 255, 0x1a, 0x2b]);
        assert_eq!(hex(&[0, 255]), "00ff");
        for bad in ["0", "0g", "\u{e9}\u{e9}"] {
            assert!(unhex(bad, 4).is_err());
        }
        assert!(unhex(&"00".repeat(5), 4).is_err());
    }
}
