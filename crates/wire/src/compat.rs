//! What OpenFlow 1.0 says in words of its own: port numbers and bits, the twelve-tuple, its
//! actions.
//!
//! Everything else in this crate reads and writes both versions in one place; here stand the
//! translations that are more than another layout. A translation never guesses: what has no
//! counterpart is [`None`] or an error.

pub(crate) mod action;
pub(crate) mod matching;
pub(crate) mod port;

pub(crate) use port::{port_from_v1_0, port_to_v1_0};
