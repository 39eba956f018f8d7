//! A stream of bytes, cut into JSON objects.
//!
//! JSON-RPC has no frames: an object ends where its last brace closes. Each byte is looked at once,
//! however it arrives, and an object has a greatest length.

use serde_json::Value;

/// Longest object in bytes: the first contents of a database with some thousands of bridges are a
/// few million.
const OBJECT_MAX: usize = 64 << 20;

/// Deepest nesting; rows need eight, and the parser has a limit of its own above this.
const DEPTH_MAX: u32 = 100;

/// The fault of a stream that is no sequence of JSON objects. The connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStream {
    /// Something else than an object begins.
    #[error("a JSON object begins with a brace, not with byte 0x{0:02x}")]
    NotAnObject(u8),
    /// Nested too deeply.
    #[error("a JSON value is nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// Too long.
    #[error("a JSON object is longer than {0} bytes")]
    TooLong(usize),
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
}

/// Cuts a stream.
#[derive(Debug)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been looked at.
    scanned: usize,
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    longest: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::with_longest(OBJECT_MAX)
    }
}

impl Splitter {
    /// A splitter whose objects are no longer than `longest` bytes.
    #[must_use]
    pub fn with_longest(longest: usize) -> Self {
        let buffer = Vec::new();
        Self { buffer, scanned: 0, depth: 0, is_in_string: false, is_escaped: false, longest }
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole object.
    ///
    /// # Errors
    /// [`BadStream`]; what follows in the stream has no meaning then.
    pub fn next_object(&mut self) -> Result<Option<Value>, BadStream> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            if self.depth == 0 && byte.is_ascii_whitespace() {
                self.scanned += 1;
                continue;
            }
            if self.depth == 0 {
                if byte != b'{' {
                    return Err(BadStream::NotAnObject(byte));
                }
                self.buffer.drain(..self.scanned);
                self.scanned = 0;
            }
            self.scanned += 1;
            if self.scanned > self.longest {
                return Err(BadStream::TooLong(self.longest));
            }
            if self.ends_object(byte)? {
                let object = self.buffer.get(..self.scanned).unwrap_or_default();
                let parsed = serde_json::from_slice(object);
                self.buffer.drain(..self.scanned);
                self.scanned = 0;
                return parsed.map(Some).map_err(|error| BadStream::NotJson(error.to_string()));
            }
        }
        Ok(None)
    }

    /// Goes on by one byte; true at the end of an object.
    fn ends_object(&mut self, byte: u8) -> Result<bool, BadStream> {
        if self.is_in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return Ok(false);
        }
        match byte {
            b'"' => self.is_in_string = true,
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(BadStream::TooDeep);
                }
            }
            b'}' | b']' => {
                self.depth -= 1;
                return Ok(self.depth == 0);
            }
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, proptest};
    use serde_json::json;

    use super::{BadStream, Splitter};

    #[test]
    fn objects_are_found_however_they_arrive() {
        let stream = br#" {"a":"}\"{"}
            {"b":[{"c":[]}]}{}"#;
        let expected = [json!({"a": "}\"{"}), json!({"b": [{"c": []}]}), json!({})];
        for piece in 1..stream.len() {
            let (mut splitter, mut found) = (Splitter::default(), Vec::new());
            for bytes in stream.chunks(piece) {
                splitter.push(bytes);
                while let Some(object) = splitter.next_object().unwrap() {
                    found.push(object);
                }
            }
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let of = |stream: &[u8]| {
            let mut splitter = Splitter::with_longest(1000);
            splitter.push(stream);
            splitter.next_object().unwrap_err()
        };
        assert_eq!(of(b"  7"), BadStream::NotAnObject(b'7'));
        assert_eq!(of(b"}"), BadStream::NotAnObject(b'}'));
        assert!(matches!(of(b"{]"), BadStream::NotJson(_)));
        assert!(matches!(of(b"{\"\xff\":1}"), BadStream::NotJson(_)));
        assert_eq!(of(&[b"{".as_slice(), &[b'['; 200]].concat()), BadStream::TooDeep);
        assert_eq!(of(&[b"{\"".as_slice(), &[b'x'; 2000]].concat()), BadStream::TooLong(1000));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(stream in proptest::collection::vec(
            any::<u8>().prop_map(|byte| b"{}[]\"\\:,1e \xff"[usize::from(byte) % 12]), 0..200)) {
            let mut splitter = Splitter::default();
            splitter.push(&stream);
            while let Ok(Some(_)) = splitter.next_object() {}
        }
    }
}
