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

/// The `data` of an error message: the first bytes of the request, at most 64 (clause 7.5.4 asks
/// for at least 64). Held without an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorData {
    bytes: [u8; 64],
    len: u8,
}

impl ErrorData {
    /// The first bytes of an encoded message.
    pub(crate) fn new(message: &[u8]) -> Self {
        let mut bytes = [0; 64];
        let len = message.len().min(bytes.len());
        for (to, from) in bytes.iter_mut().zip(message) {
            *to = *from;
        }
        Self { bytes, len: len as u8 }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorData;

    #[test]
    fn error_data_has_at_most_64_bytes() {
        assert_eq!(ErrorData::new(&[7; 100]).bytes(), &[7; 64]);
        assert_eq!(ErrorData::new(&[1, 2]).bytes(), &[1, 2]);
        assert!(ErrorData::new(&[]).bytes().is_empty());
    }
}
