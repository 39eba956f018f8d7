//! The errors of a client.

use std::io;
use std::time::Duration;

use channel::{CannotWait, DownReason, SendError, TransportError};
use control::AskError;
use openflow::message::ErrorMessage;
use openflow::{Error, Version};

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The stream could not be opened.
    #[error(transparent)]
    Connect(#[from] TransportError),
    /// The control socket gave no stream.
    #[error(transparent)]
    Control(#[from] AskError),
    /// An open stream could not be used.
    #[error("setting up a stream: {0}")]
    Stream(#[source] io::Error),
    /// The connection is over.
    #[error("{name}: {reason}")]
    Down {
        /// The peer, for people.
        name: String,
        /// Why.
        reason: DownReason,
    },
    /// No answer, or no further part of one, within the time that the settings give.
    #[error("no answer from {name} after {seconds} s", seconds = after.as_secs_f64())]
    Silent {
        /// The peer, for people.
        name: String,
        /// Time that it was waited for.
        after: Duration,
    },
    /// The settings' hook ended the wait.
    #[error("interrupted")]
    Cancelled,
    /// The version of the connection has no encoding for the message, or it is too long.
    #[error("{0}")]
    Encode(#[from] wire::EncodeError),
    /// The peer answers the request with an error.
    #[error("the switch refuses: {}", error.explained(*version))]
    Refused {
        /// The version of the connection, which gives the numbers their meaning.
        version: Version,
        /// The error.
        error: ErrorMessage,
    },
    /// The answer cannot be decoded; the peer got an error message.
    #[error("the switch gave an answer that cannot be read: {}", .0.name())]
    Unreadable(Error),
    /// The parts of the answer do not fit together, or are too many.
    #[error("{0}")]
    Unanswered(channel::Unanswered),
    /// The answer is another message than the request's.
    #[error("the switch gave another answer than asked: {0}")]
    Unexpected(&'static str),
    /// The message is none that gets an answer.
    #[error("asking: {0}")]
    NoAnswer(#[from] CannotWait),
}

impl ClientError {
    /// The protocol's error with which the peer answers, if it is one that has a name.
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        match self {
            Self::Refused { version, error } => error.error(*version),
            Self::Connect(_)
            | Self::Control(_)
            | Self::Stream(_)
            | Self::Down { .. }
            | Self::Silent { .. }
            | Self::Cancelled
            | Self::Encode(_)
            | Self::Unreadable(_)
            | Self::Unanswered(_)
            | Self::Unexpected(_)
            | Self::NoAnswer(_) => None,
        }
    }

    /// The error for a message that was not sent on the connection with that name.
    pub(crate) fn unsent(name: &str, error: SendError) -> Self {
        match error {
            SendError::NotUp => Self::Down { name: name.to_owned(), reason: DownReason::Closed },
            SendError::Encode(error) => Self::Encode(error),
        }
    }
}
