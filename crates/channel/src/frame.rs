//! Cutting the byte stream into messages by the common header (clause 7.1.1).
//!
//! Only the common header is read here; `wire` reads the rest. It never holds more than what was
//! received and not yet taken.

use std::ops::Range;
use wire::{HEADER_LEN, MessageHeader};

/// The next part of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Empty,
    /// The beginning of a message, with its header if that much is here.
    Partial(Option<MessageHeader>),
    /// A whole message at these bytes.
    Frame(MessageHeader, Range<usize>),
}

/// The bytes received and not yet consumed.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
}

impl Input {
    /// Appends received bytes and frees the consumed ones.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next part, without consuming it. A header whose length is below
    /// [`HEADER_LEN`] is `Partial`: the stream cannot be cut there, the caller checks the length.
    pub(crate) fn next(&self) -> Next {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let Some(header) = MessageHeader::parse(rest) else {
            return if rest.is_empty() { Next::Empty } else { Next::Partial(None) };
        };
        let length = usize::from(header.length);
        if length < HEADER_LEN || length > rest.len() {
            return Next::Partial(Some(header));
        }
        Next::Frame(header, self.start..self.start + length)
    }

    /// Consumes everything before `end`, the end of a frame of [`Input::next`].
    pub(crate) fn use_up(&mut self, end: usize) {
        debug_assert!(self.start <= end && end <= self.bytes.len(), "a frame of `next`");
        self.start = end;
    }

    /// The bytes of a frame of [`Input::next`]; they stay until the next [`Input::push`].
    pub(crate) fn frame(&self, at: Range<usize>) -> &[u8] {
        self.bytes.get(at).unwrap_or_default()
    }

    /// The bytes not yet consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Frees the buffer when nothing is left in it; whether it did.
    pub(crate) fn shrink(&mut self) -> bool {
        let is_empty = self.start == self.bytes.len();
        if is_empty {
            self.clear();
        }
        is_empty
    }

    /// The size of the buffer in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees everything.
    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Input, Next};
    use openflow::Xid;

    #[test]
    fn frames_are_cut_wherever_the_stream_was_split() {
        let stream = [4, 2, 0, 10, 0, 0, 0, 1, 9, 9, 4, 3, 0, 8, 0, 0, 0, 2];
        for split in 0..=stream.len() {
            let mut input = Input::default();
            let mut xids = Vec::new();
            for part in [&stream[..split], &stream[split..]] {
                input.push(part);
                while let Next::Frame(header, at) = input.next() {
                    assert_eq!(input.frame(at.clone()).len(), usize::from(header.length));
                    input.use_up(at.end);
                    xids.push(header.xid);
                }
            }
            assert_eq!(xids, [Xid(1), Xid(2)], "split at {split}");
            assert_eq!(input.next(), Next::Empty);
        }
    }

    #[test]
    fn a_length_below_eight_is_no_frame() {
        let mut input = Input::default();
        input.push(&[4, 2, 0, 7, 0, 0, 0, 1]);
        assert!(matches!(input.next(), Next::Partial(Some(header)) if header.length == 7));
    }
}
