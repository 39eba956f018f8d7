//! Errors: [`DecodeError`] for frames that are wrong, [`EncodeError`] for messages
//! that a version has no encoding for.
//!
//! A decode error carries the protocol's own error, so that the answer to a bad message is known
//! where the fault is found. Nothing here decides whether to answer or to close the connection.

use openflow::message::ErrorMessage;
use openflow::{Error, Message, MessageKind, Version, Xid};

use crate::header::MessageHeader;

/// Bytes of a message that an error about it quotes at most: of nearly every message the whole, so
/// that a tool can print it, and not 64 KiB of each in a flood of them (clause 7.5.4: at least 64).
const QUOTED_MAX: usize = 1024;

/// The beginning of an encoded message that an error about it quotes.
#[must_use]
pub fn quote(message: &[u8]) -> &[u8] {
    message.get(..QUOTED_MAX).unwrap_or(message)
}

/// Why a frame could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}: {what} at byte {offset} (version {version}, xid {xid:#x})", xid = .xid.0)]
pub struct DecodeError {
    /// The protocol's name for the fault.
    pub error: Error,
    /// The version byte of the header; zero when there was none.
    pub version: u8,
    /// The header's xid; zero when there was none.
    pub xid: Xid,
    /// The structure that was read, for logs.
    pub what: &'static str,
    /// Offset in the frame, in bytes.
    pub offset: usize,
}

impl DecodeError {
    pub(crate) fn new(header: Option<MessageHeader>, fault: Fault) -> Self {
        let (version, xid) = header.map_or((0, Xid(0)), |header| (header.version, header.xid));
        Self { error: fault.error, version, xid, what: fault.what, offset: fault.offset }
    }

    /// The error message that answers the bad `frame`, and the version to encode it in: the
    /// frame's own, or the nearest one below that Weir speaks. It quotes the frame ([`quote`]).
    ///
    /// `None` where there must be no answer: the frame has no whole header, or is an error message
    /// or a hello itself.
    #[must_use]
    pub fn reply(&self, frame: &[u8]) -> Option<(Version, Message)> {
        let header = MessageHeader::parse(frame)?;
        let version = Version::at_most(header.version);
        match MessageKind::from_number(version, header.message_type) {
            Some(MessageKind::Error | MessageKind::Hello) => None,
            Some(_) | None => {
                let data = quote(frame).to_vec();
                let body = ErrorMessage::new(version, self.error, data);
                Some((version, Message::Error(body)))
            }
        }
    }
}

/// A fault at a place of a frame; becomes a [`DecodeError`] where the header is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) error: Error,
    pub(crate) what: &'static str,
    pub(crate) offset: usize,
}

/// Why a message could not be encoded. Nothing is written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The version has no way to say it.
    #[error("{version} cannot say: {what}")]
    Unsupported {
        /// The version.
        version: Version,
        /// The part without an encoding.
        what: &'static str,
    },
    /// A length field of 16 bits cannot hold it.
    #[error("{what} is longer than its length field can say")]
    TooLong {
        /// The part that is too long.
        what: &'static str,
    },
    /// No version can say it: the message contradicts itself.
    #[error("not a valid message: {what}")]
    Invalid {
        /// The mistake.
        what: &'static str,
    },
}
