//! The send queue of a connection, and how much of it must arrive.
//!
//! Two classes share one queue, so that order on the wire is order of sending: messages that must
//! arrive (replies, requests, flow-mods) and offers (packet-ins), which a full queue refuses. The
//! count per class lets a switch stop reading requests when *replies* pile up, and go on reading
//! when only packet-ins do; otherwise two peers that both wait to write would wait for ever.

use std::collections::VecDeque;

/// Whether a message may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Must arrive.
    Must,
    /// Refused when the queue is full.
    Offer,
}

/// The queue of bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    start: usize,
    /// Class and length of the runs that wait; neighbours of one class are one run.
    runs: VecDeque<(Class, usize)>,
    must_bytes: usize,
}

impl Output {
    /// Appends one message of `class`: `write` appends its bytes, or fails and changes nothing. The
    /// number of bytes.
    pub(crate) fn push<E>(
        &mut self,
        class: Class,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.reclaim();
        let before = self.bytes.len();
        let result = write(&mut self.bytes);
        if result.is_err() {
            self.bytes.truncate(before);
        }
        let len = self.bytes.len() - before;
        self.count(class, len);
        result.map(|()| len)
    }

    fn count(&mut self, class: Class, length: usize) {
        if length == 0 {
            return;
        }
        if class == Class::Must {
            self.must_bytes += length;
        }
        match self.runs.back_mut() {
            Some((last, sum)) if *last == class => *sum += length,
            Some(_) | None => self.runs.push_back((class, length)),
        }
    }

    /// Moves the queue to the front when at least half of a large buffer has been sent.
    fn reclaim(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start >= 1 << 16 && self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Frees the buffer when nothing waits.
    pub(crate) fn shrink(&mut self) {
        if self.start == self.bytes.len() {
            *self = Self::default();
        }
    }

    /// The size of the buffer in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes not yet sent.
    pub(crate) fn waiting(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The number of bytes of [`Output::waiting`] that must arrive.
    pub(crate) fn must_bytes(&self) -> usize {
        self.must_bytes
    }

    /// The first `sent` bytes of [`Output::waiting`] have been sent.
    pub(crate) fn sent(&mut self, sent: usize) {
        let sent = sent.min(self.bytes.len() - self.start);
        self.start += sent;
        let mut left = sent;
        while left > 0 {
            let Some((class, length)) = self.runs.front_mut() else { break };
            let step = left.min(*length);
            if *class == Class::Must {
                self.must_bytes -= step;
            }
            *length -= step;
            left -= step;
            if *length == 0 {
                self.runs.pop_front();
            }
        }
        if self.start == self.bytes.len() && self.bytes.capacity() > 1 << 22 {
            self.bytes = Vec::new();
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Output};
    use std::convert::Infallible;

    fn push(output: &mut Output, class: Class, length: usize) {
        let write = |bytes: &mut Vec<u8>| {
            bytes.resize(bytes.len() + length, 7);
            Ok::<_, Infallible>(())
        };
        output.push(class, write).unwrap();
    }

    #[test]
    fn bytes_that_must_arrive_are_counted_through_partial_writes() {
        let mut output = Output::default();
        push(&mut output, Class::Must, 10);
        push(&mut output, Class::Offer, 100);
        push(&mut output, Class::Must, 5);
        assert_eq!((output.waiting().len(), output.must_bytes()), (115, 15));
        output.sent(4);
        assert_eq!((output.waiting().len(), output.must_bytes()), (111, 11));
        output.sent(56);
        assert_eq!((output.waiting().len(), output.must_bytes()), (55, 5));
        output.sent(52);
        assert_eq!((output.waiting().len(), output.must_bytes()), (3, 3));
        output.sent(99);
        assert_eq!((output.waiting().len(), output.must_bytes()), (0, 0));
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let mut output = Output::default();
        push(&mut output, Class::Must, 3);
        let failed = output.push(Class::Must, |bytes| {
            bytes.extend([1, 2]);
            Err("no")
        });
        assert_eq!(failed, Err("no"));
        assert_eq!((output.waiting().len(), output.must_bytes()), (3, 3));
    }

    #[test]
    fn a_long_queue_keeps_its_order_while_it_is_reclaimed() {
        let mut output = Output::default();
        let mut sent = Vec::new();
        for number in 0..100_000_u32 {
            let write = |bytes: &mut Vec<u8>| {
                bytes.extend(number.to_be_bytes());
                Ok::<_, Infallible>(())
            };
            output.push(Class::Offer, write).unwrap();
            if number % 3 == 0 {
                let part = output.waiting()[..7.min(output.waiting().len())].to_vec();
                output.sent(part.len());
                sent.extend(part);
            }
        }
        sent.extend_from_slice(output.waiting());
        let expected: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
        assert!(sent == expected);
    }
}
