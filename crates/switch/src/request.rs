//! The context of a controller's request, kept until it is answered: connection, version, xid, and
//! the position of the reply.
//!
//! The agent, the bridge and the workers pass it on; only the agent, which owns the connections,
//! interprets it.

use openflow::flow::FlowForm;
use openflow::{Version, Xid};

/// The number of a connection, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// The context in which a request is answered.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The connection that it came by.
    pub(crate) from: ConnectionId,
    /// The version of that connection.
    pub(crate) version: Version,
    /// Its transaction number.
    pub(crate) xid: Xid,
    /// The position of its reply among the replies of the connection.
    pub(crate) position: ReplyPosition,
    /// Form of the flow entries in its reply.
    pub(crate) form: FlowForm,
    /// Its first bytes, for an error message.
    pub(crate) error_data: ErrorData,
}

/// The position of a reply on its connection. Replies leave in the order of their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyPosition {
    /// A position reserved for it.
    At(u64),
    /// Before the reply at this position, after all earlier ones; it may never come.
    Before(u64),
}

/// The `data` of an error message: the beginning of the request.
#[derive(Clone, Debug)]
pub(crate) struct ErrorData(Box<[u8]>);

impl ErrorData {
    /// That of an error about an encoded message.
    pub(crate) fn new(message: &[u8]) -> Self {
        Self(wire::quote(message).into())
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
