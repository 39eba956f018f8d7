//! Translation of values that OpenFlow 1.0 has in a form of its own: port numbers and bits, and the
//! twelve-tuple.
//!
//! Everything else in this crate reads and writes both versions in one place; here are the
//! translations that are more than another layout (those of actions are `openflow`'s). A
//! translation never guesses: a value without a counterpart is [`None`] or an error.

pub(crate) mod matching;
pub(crate) mod port;

pub(crate) use port::{port_from_v1_0, port_to_v1_0};
