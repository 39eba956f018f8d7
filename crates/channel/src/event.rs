//! The events of a connection, and why it ends.
//!
//! Values only; every reason says in its text what happened and who did it.

use openflow::{Error, Message, Version, Xid};

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The hello exchange is done; messages may be sent.
    Up {
        /// The version agreed on.
        version: Version,
    },
    /// A message for the owner. Hellos, echo requests and the replies to the connection's own echo
    /// requests are handled inside.
    Message {
        /// Its transaction number.
        xid: Xid,
        /// The message.
        message: Message,
    },
    /// A wrong message has been answered with this error, unless it was an error itself. The
    /// connection goes on.
    Refused {
        /// Its transaction number.
        xid: Xid,
        /// The mistake in it.
        error: Error,
    },
    /// The connection is over; this is the last event. What [`crate::Connection::transmit`] still
    /// holds should be sent before the stream is closed.
    Down(DownReason),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownReason {
    /// Nothing or not all of a hello within the deadline.
    #[error("the peer sent no hello in time")]
    NoHello,
    /// The first message was another one, or no OpenFlow at all.
    #[error("the peer's first message is no hello (version byte {version:#04x}, type {kind})")]
    NotHello {
        /// The first byte.
        version: u8,
        /// The second byte.
        kind: u8,
    },
    /// The versions have nothing in common; the text went to the peer too.
    #[error("no common version: {0}")]
    NoCommonVersion(String),
    /// The peer has sent `OFPET_HELLO_FAILED`.
    #[error("the peer refuses the connection: {0}")]
    RefusedByPeer(String),
    /// A header's length is below 8: message boundaries are lost.
    #[error("the peer sent a message with the impossible length {0}")]
    BadLength(u16),
    /// A message was not whole within its deadline.
    #[error("the peer did not finish a message in time")]
    HalfMessage,
    /// No byte came within the deadline after an echo request.
    #[error("the peer does not answer the echo request")]
    NoEchoReply,
    /// More bytes wait for the peer than allowed.
    #[error("the peer does not read: {0} bytes wait for it")]
    NotReading(usize),
    /// The peer has closed the stream.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// The stream failed.
    #[error("the stream failed: {0}")]
    Stream(String),
    /// We have closed it: [`crate::Connection::close`].
    #[error("closed on our side")]
    Closed,
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The hello exchange is not done, or the connection is over.
    #[error("the connection is not up")]
    NotUp,
    /// The agreed version does not have the message, or it is too long.
    #[error("{0}")]
    Encode(#[from] wire::EncodeError),
}

/// The counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Messages received, of every kind.
    pub messages_received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Messages queued for sending, of every kind.
    pub messages_sent: u64,
    /// Bytes that the stream has taken.
    pub bytes_sent: u64,
    /// Wrong messages from the peer.
    pub refused: u64,
    /// Messages dropped by [`crate::Connection::offer`] because the output was full.
    pub offers_dropped: u64,
}
