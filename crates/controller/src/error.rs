//! Why a call of a handle did not do what it was asked for.

use channel::Unanswered;
use openflow::message::ErrorMessage;
use openflow::{DatapathId, Version};
use std::time::Duration;

/// Why a call of a [`crate::Handle`] did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// The switch is not connected, or its connection has ended meanwhile.
    #[error("switch {0} is not connected")]
    NoSwitch(DatapathId),
    /// As much waits for the switch as may: it does not take what it is sent.
    #[error("switch {0} does not take what it is sent: its queue is full")]
    Full(DatapathId),
    /// The switch answers with an error.
    #[error("the switch refuses message {index}: {}", error.explained(*version))]
    Refused {
        /// The place of the message, counted from zero.
        index: usize,
        /// The version of the connection, which gives the numbers their meaning.
        version: Version,
        /// The error.
        error: ErrorMessage,
    },
    /// The version of the connection has no encoding for a message. Nothing was sent.
    #[error("message {index}: {error}")]
    NotEncodable {
        /// The place of the message, counted from zero.
        index: usize,
        /// The part that has no encoding.
        error: wire::EncodeError,
    },
    /// The message gets no answer; `Handle::apply` shows whether it is carried out.
    #[error("{0} gets no answer")]
    NoReply(&'static str),
    /// No answer, or no further part of one, within the options' time.
    #[error("the switch gave no answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The parts of the answer do not fit together, or are too many.
    #[error("{0}")]
    Unanswered(Unanswered),
    /// The switch gave another message than the answer that was asked for.
    #[error("the switch gave another answer than asked: {0}")]
    Unexpected(&'static str),
    /// A handler of an app does not return, so that nobody serves the switch.
    #[error("switch {0} is not served: a handler of an app does not return (the log says which)")]
    Blocked(DatapathId),
    /// The controller has ended.
    #[error("the controller has ended")]
    Gone,
    /// The controller is a node of no cluster.
    #[error("the controller is in no cluster: give --cluster")]
    NoCluster,
    /// A shard does not take events as fast as they are raised; the event is not told there.
    #[error("shard {0} does not take events as fast as they are raised")]
    EventsFull(usize),
    /// A blocking call on a thread that serves switches, which would stop it for good.
    #[error("a handler must not wait for a switch: use the calls of `Switch`, or another thread")]
    WouldBlock,
}
