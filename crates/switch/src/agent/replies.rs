//! The replies of one connection in the order of its requests, ready and outstanding ones.

use std::collections::VecDeque;

use openflow::Error;

use super::peer::Reply;
use crate::bridge::RefusedMessage;
use crate::request::{ReplyPosition, RequestContext};

/// Replies that wait, the next to leave in front.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The position of the front one.
    first: u64,
    waiting: VecDeque<Option<Reply>>,
    /// Errors reported by workers, and the position that each comes before.
    late: VecDeque<(u64, Reply)>,
}

impl Replies {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.late.is_empty()
    }

    fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Reserves a position for a later reply.
    pub(super) fn reserve(&mut self) -> ReplyPosition {
        self.waiting.push_back(None);
        ReplyPosition::At(self.end() - 1)
    }

    /// The position of a reply that may come later, or never.
    pub(super) fn next(&self) -> ReplyPosition {
        ReplyPosition::Before(self.end())
    }

    /// Appends a reply.
    pub(super) fn push(&mut self, reply: Reply) {
        self.waiting.push_back(Some(reply));
    }

    /// Stores the refusal of a bundle's commit at its position, and that of the message for which
    /// it was refused before it.
    pub(super) fn fill_both(&mut self, refused: RefusedMessage, commit: RequestContext) {
        let RefusedMessage { xid, error_data, error } = refused;
        let position = match commit.position {
            ReplyPosition::At(position) | ReplyPosition::Before(position) => position,
        };
        let position = ReplyPosition::Before(position);
        let message = RequestContext { xid, error_data, position, ..commit.clone() };
        self.fill(Reply::Refused(message, error));
        self.fill(Reply::Refused(commit, Error::BundleMsgFailed));
    }

    /// Stores a reply at its position.
    pub(super) fn fill(&mut self, reply: Reply) {
        match reply.request().position {
            ReplyPosition::At(position) => {
                let at = position.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
                if let Some(waiting) = at.and_then(|at| self.waiting.get_mut(at)) {
                    *waiting = Some(reply);
                }
            }
            ReplyPosition::Before(position) => self.late.push_back((position, reply)),
        }
    }

    /// Removes the next reply, if it is ready.
    pub(super) fn pop(&mut self) -> Option<Reply> {
        if self.late.front().is_some_and(|(position, _)| *position <= self.first) {
            return self.late.pop_front().map(|(_, reply)| reply);
        }
        let reply = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.first += 1;
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowForm;
    use openflow::{Error, Version, Xid};

    use super::Replies;
    use crate::agent::peer::Reply;
    use crate::request::{ConnectionId, ErrorData, ReplyPosition, RequestContext};

    fn reply(xid: u32, position: ReplyPosition) -> Reply {
        let (from, error_data) = (ConnectionId(1), ErrorData::new(&[]));
        let (version, xid, form) = (Version::V1_3, Xid(xid), FlowForm::Standard);
        let request = RequestContext { from, version, xid, position, form, error_data };
        Reply::Refused(request, Error::BadRequestBadType)
    }

    #[test]
    fn replies_leave_in_the_order_of_requests() {
        let mut replies = Replies::default();
        let mut left = Vec::new();
        for round in 0..3 {
            let first = replies.reserve();
            replies.push(reply(round * 10 + 1, ReplyPosition::Before(0)));
            let (late, third) = (replies.next(), replies.reserve());
            replies.fill(reply(round * 10 + 2, late));
            assert!(replies.pop().is_none());
            replies.fill(reply(round * 10 + 3, third));
            assert!(replies.pop().is_none());
            replies.fill(reply(round * 10, first));
            left.extend(std::iter::from_fn(|| replies.pop()).map(|l| l.request().xid.0));
            assert!(replies.is_empty());
        }
        assert_eq!(left, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        // Nothing is in front of it any more.
        replies.fill(reply(5, ReplyPosition::Before(2)));
        assert_eq!(replies.pop().map(|reply| reply.request().xid), Some(Xid(5)));
    }
}
