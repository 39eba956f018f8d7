//! The OpenFlow agent: connections to controllers, roles, asynchronous messages, replies.
//!
//! Runs on one thread beside the workers, with an [`Agent`] and tasks of its own for each bridge,
//! all of which rest while there is nothing for that bridge. What a message does to the tables is
//! the bridge's business; the agent keeps connections, roles and the order of answers. It never
//! blocks, and a controller that does not read harms none but itself.

mod accept;
mod answers;
mod asynchronous;
mod bridges;
mod connection_log;
mod controllers;
mod delivery;
mod parts;
mod peer;
mod police;
mod request;
mod role;
mod serve;
mod spanning;
mod standalone;
mod state;
mod upkeep;

pub(crate) use accept::accept_all;
pub(crate) use bridges::Bridges;
pub(crate) use controllers::keep_connected;
pub(crate) use delivery::deliver;
pub(crate) use peer::Peer;
pub(crate) use police::{Police, REASONS, place};
pub(crate) use serve::serve_tool;
pub(crate) use standalone::stand_alone;
pub(crate) use state::Agent;
pub(crate) use upkeep::keep_up;
