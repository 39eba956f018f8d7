//! Matching of replies to requests by xid, with the parts of a multipart reply joined
//! (clauses 6.2 and 7.3.5).
//!
//! The number of pending requests, the entries and bytes of one reply, and the bytes of all replies
//! together of which a part has come are bounded, since the peer chooses how much it sends. A reply
//! that nobody asked for is never kept.

use crate::parts;
use openflow::message::{ErrorMessage, MultipartReply, MultipartReplyBody};
use openflow::{Message, MessageKind, Xid};
use std::collections::HashMap;

/// Pending requests, each with a value of the owner.
#[derive(Debug)]
pub struct Pending<T> {
    waiting: HashMap<Xid, Waiting<T>>,
    requests_max: usize,
    entries_max: usize,
    bytes_max: usize,
    /// Of all replies of which a part has come.
    bytes: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    reply: MessageKind,
    context: T,
    parts: Option<MultipartReplyBody>,
    /// Of all parts so far, as the peer sent them.
    bytes: usize,
}

/// The result of [`Pending::pair`].
#[derive(Debug, PartialEq, Eq)]
pub enum Paired<T> {
    /// Not a reply to a pending request: the message itself.
    Other(Message),
    /// A part of a multipart reply; more follow.
    Part,
    /// The reply is complete.
    Done {
        /// The value that was given with the request.
        context: T,
        /// The reply; a multipart reply is one message with all its entries.
        answer: Result<Message, Unanswered>,
    },
}

/// Why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The peer answered with an error.
    #[error("the peer answered with error type {}, code {}", .0.error_type, .0.code)]
    Error(ErrorMessage),
    /// The parts of a multipart reply are not of one type.
    #[error("the parts of the answer do not fit together")]
    Mismatch,
    /// The reply has more entries than allowed.
    #[error("the answer has more than {0} entries")]
    TooLong(usize),
    /// The reply has more bytes than allowed.
    #[error("the answer has more than {0} bytes")]
    TooBig(usize),
    /// All replies of which a part has come have more bytes than allowed.
    #[error("the answers that are not whole yet have more than {0} bytes together")]
    TooMany(usize),
}

/// Why a request cannot be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWait {
    /// The message has no reply.
    #[error("the message gets no answer")]
    NoReply,
    /// The limit of pending requests is reached.
    #[error("{0} requests wait already")]
    Full(usize),
    /// A request with this xid is pending.
    #[error("a request with this xid waits already")]
    XidInUse,
}

impl<T> Default for Pending<T> {
    /// At most 1,024 requests, at most 4,000,000 entries in a reply.
    fn default() -> Self {
        Self::new(1024, 4_000_000)
    }
}

impl<T> Pending<T> {
    /// At most `requests_max` requests at a time, at most `entries_max` entries in a reply.
    #[must_use]
    pub fn new(requests_max: usize, entries_max: usize) -> Self {
        let (waiting, bytes_max) = (HashMap::new(), usize::MAX);
        Self { waiting, requests_max, entries_max, bytes_max, bytes: 0 }
    }

    /// The same with at most `bytes_max` bytes in a reply, as the peer sent them, and in all
    /// replies together of which a part has come. Such an owner takes messages by
    /// [`Pending::pair_sized`].
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Adds `request`, which is sent with `xid`.
    ///
    /// # Errors
    /// When the request has no reply, its xid is in use, or too many are pending.
    pub fn expect(&mut self, xid: Xid, request: &Message, context: T) -> Result<(), CannotWait> {
        self.expect_reply(xid, request.kind(), context)
    }

    /// The same for a request that is encoded already, and was of this kind.
    ///
    /// # Errors
    /// As [`Pending::expect`].
    pub fn expect_reply(
        &mut self,
        xid: Xid,
        request: MessageKind,
        context: T,
    ) -> Result<(), CannotWait> {
        let reply = request.row().reply.ok_or(CannotWait::NoReply)?;
        if self.waiting.len() >= self.requests_max {
            return Err(CannotWait::Full(self.requests_max));
        }
        if self.waiting.contains_key(&xid) {
            return Err(CannotWait::XidInUse);
        }
        self.waiting.insert(xid, Waiting { reply, context, parts: None, bytes: 0 });
        Ok(())
    }

    /// Takes a message from the peer.
    pub fn pair(&mut self, xid: Xid, message: Message) -> Paired<T> {
        self.pair_sized(xid, message, 0)
    }

    /// The same for a message of that number of bytes.
    pub fn pair_sized(&mut self, xid: Xid, message: Message, bytes: usize) -> Paired<T> {
        let (entries_max, bytes_max) = (self.entries_max, self.bytes_max);
        let Some(waiting) = self.waiting.get_mut(&xid) else { return Paired::Other(message) };
        let answer = if let Message::Error(error) = message {
            Err(Unanswered::Error(error))
        } else if message.kind() != waiting.reply {
            return Paired::Other(message);
        } else if let Message::MultipartReply(part) = message {
            waiting.bytes = waiting.bytes.saturating_add(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            if waiting.bytes > bytes_max {
                Err(Unanswered::TooBig(bytes_max))
            } else if self.bytes > bytes_max {
                Err(Unanswered::TooMany(bytes_max))
            } else {
                match waiting.take_part(part, entries_max) {
                    Some(answer) => answer,
                    None => return Paired::Part,
                }
            }
        } else {
            Ok(message)
        };
        match self.cancel(xid) {
            Some(context) => Paired::Done { context, answer },
            None => Paired::Part,
        }
    }

    /// The number of pending requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The bytes of all replies of which a part has come, as the peer sent them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no request is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Cancels one request and returns its value.
    pub fn cancel(&mut self, xid: Xid) -> Option<T> {
        let waiting = self.waiting.remove(&xid)?;
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        Some(waiting.context)
    }

    /// Cancels all requests, for a connection that is over, and returns their values.
    pub fn cancel_all(&mut self) -> Vec<(Xid, T)> {
        self.bytes = 0;
        self.waiting.drain().map(|(xid, waiting)| (xid, waiting.context)).collect()
    }
}

impl<T> Waiting<T> {
    /// Adds a part; returns the whole reply once no more follow.
    fn take_part(
        &mut self,
        part: MultipartReply,
        entries_max: usize,
    ) -> Option<Result<Message, Unanswered>> {
        let whole = match self.parts.take() {
            None => part.body,
            Some(mut whole) => {
                if parts::append(&mut whole, part.body).is_err() {
                    return Some(Err(Unanswered::Mismatch));
                }
                whole
            }
        };
        if parts::entries(&whole) > entries_max {
            return Some(Err(Unanswered::TooLong(entries_max)));
        }
        if part.more {
            self.parts = Some(whole);
            return None;
        }
        Some(Ok(Message::MultipartReply(MultipartReply { more: false, body: whole })))
    }
}

#[cfg(test)]
mod tests {
    use super::{CannotWait, Paired, Pending, Unanswered};
    use openflow::message::{
        ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    };
    use openflow::port::PortDesc;
    use openflow::{Error, Message, PortNo, Version, Xid};

    fn request() -> Message {
        let body = MultipartRequestBody::PortDesc;
        Message::MultipartRequest(MultipartRequest { more: false, body })
    }

    fn part(more: bool, ports: std::ops::Range<u32>) -> Message {
        let ports = ports.map(|n| PortDesc { port_no: PortNo(n), ..PortDesc::default() }).collect();
        Message::MultipartReply(MultipartReply { more, body: MultipartReplyBody::PortDesc(ports) })
    }

    #[test]
    fn parts_become_one_answer() {
        let mut pending = Pending::default();
        pending.expect(Xid(7), &request(), "ports").unwrap();
        assert_eq!(pending.pair(Xid(7), part(true, 1..3)), Paired::Part);
        assert_eq!(pending.pair(Xid(8), part(true, 9..10)), Paired::Other(part(true, 9..10)));
        assert_eq!(pending.pair(Xid(7), part(true, 3..3)), Paired::Part);
        let done = pending.pair(Xid(7), part(false, 3..6));
        assert_eq!(done, Paired::Done { context: "ports", answer: Ok(part(false, 1..6)) });
        assert!(pending.is_empty());
    }

    #[test]
    fn an_error_is_an_answer_and_a_stranger_is_not() {
        let mut pending = Pending::default();
        pending.expect(Xid(1), &Message::BarrierRequest, ()).unwrap();
        let stranger = Message::EchoReply(vec![]);
        assert_eq!(pending.pair(Xid(1), stranger.clone()), Paired::Other(stranger));
        let error = ErrorMessage::new(Version::V1_3, Error::BadRequestEperm, vec![]);
        let answer = Err(Unanswered::Error(error.clone()));
        let done = pending.pair(Xid(1), Message::Error(error));
        assert_eq!(done, Paired::Done { context: (), answer });
    }

    #[test]
    fn bounds_hold() {
        let mut pending = Pending::new(1, 3);
        assert_eq!(
            pending.expect(Xid(1), &Message::BarrierReply, ()),
            Err(CannotWait::NoReply),
            "a reply gets no reply"
        );
        pending.expect(Xid(1), &request(), ()).unwrap();
        assert_eq!(pending.expect(Xid(2), &request(), ()), Err(CannotWait::Full(1)));
        assert_eq!(pending.pair(Xid(1), part(true, 1..4)), Paired::Part);
        let done = pending.pair(Xid(1), part(true, 4..5));
        assert_eq!(done, Paired::Done { context: (), answer: Err(Unanswered::TooLong(3)) });
    }

    #[test]
    fn bytes_of_all_parts_count_however_few_entries_they_have() {
        let mut pending = Pending::new(1, 3).with_bytes_max(100);
        pending.expect(Xid(1), &request(), ()).unwrap();
        assert_eq!(pending.pair_sized(Xid(1), part(true, 0..0), 100), Paired::Part);
        let done = pending.pair_sized(Xid(1), part(true, 0..0), 1);
        assert_eq!(done, Paired::Done { context: (), answer: Err(Unanswered::TooBig(100)) });
        assert!(pending.is_empty());
    }

    #[test]
    fn replies_that_are_not_whole_are_bounded_together() {
        let mut pending = Pending::new(8, 3).with_bytes_max(100);
        (1..=5).for_each(|xid| pending.expect(Xid(xid), &request(), xid).unwrap());
        assert_eq!(pending.pair_sized(Xid(1), part(true, 0..0), 60), Paired::Part);
        assert_eq!(pending.pair_sized(Xid(2), part(true, 0..0), 40), Paired::Part);
        let answer = Err(Unanswered::TooMany(100));
        let done = pending.pair_sized(Xid(3), part(true, 0..0), 1);
        assert_eq!(done, Paired::Done { context: 3, answer });
        // What has ended leaves its room: by its last part, or since nobody waits any more.
        let done = pending.pair_sized(Xid(2), part(false, 0..0), 0);
        assert_eq!(done, Paired::Done { context: 2, answer: Ok(part(false, 0..0)) });
        assert_eq!(pending.pair_sized(Xid(4), part(true, 0..0), 40), Paired::Part);
        assert_eq!(pending.cancel(Xid(1)), Some(1));
        assert_eq!(pending.pair_sized(Xid(5), part(true, 0..0), 60), Paired::Part);
        assert_eq!(pending.cancel_all().len(), 2);
        pending.expect(Xid(6), &request(), 6).unwrap();
        assert_eq!(pending.pair_sized(Xid(6), part(true, 0..0), 100), Paired::Part);
    }

    #[test]
    fn parts_of_two_types_do_not_mix() {
        let mut pending = Pending::default();
        pending.expect(Xid(1), &request(), ()).unwrap();
        assert_eq!(pending.pair(Xid(1), part(true, 1..4)), Paired::Part);
        let body = MultipartReplyBody::Table(vec![]);
        let other = Message::MultipartReply(MultipartReply { more: false, body });
        let done = pending.pair(Xid(1), other);
        assert_eq!(done, Paired::Done { context: (), answer: Err(Unanswered::Mismatch) });
    }
}
