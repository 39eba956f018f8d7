//! The operations of a client, each a state machine over the events of its connection.

mod load;
mod request;
mod take;

pub(crate) use load::{BUNDLE, Load, bundle_control};
pub use load::{LoadOutcome, Refusal, RefusalReason};
pub(crate) use request::{Frames, Greet, Parts, Request};
pub(crate) use take::{Drain, Next, NextFrame, Room};
