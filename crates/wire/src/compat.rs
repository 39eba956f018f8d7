//! Translation of values that OpenFlow 1.0 and 1.1 have in a form of their own: port numbers and
//! bits of 1.0, and the matches of both.
//!
//! Everything else in this crate reads and writes all versions in one place; here are the
//! translations that are more than another layout (those of actions are `openflow`'s). A
//! translation never guesses: a value without a counterpart is [`None`] or an error.

pub(crate) mod matching;
pub(crate) mod matching_v1_1;
pub(crate) mod port;

pub(crate) use port::{port_from_v1_0, port_to_v1_0};
