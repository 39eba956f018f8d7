//! The OpenFlow agent: connections to controllers, roles, asynchronous messages, replies.
//!
//! It runs on one thread beside the workers, with an [`Agent`] and tasks of its own for each
//! bridge, all idle while the bridge has no work. The bridge carries out what messages do to the
//! tables; the agent keeps connections, roles and the order of replies. It never blocks, and a
//! controller that does not read harms only itself.

mod accept;
mod asynchronous;
mod bridges;
mod bundles;
mod connection;
mod continuation;
mod controllers;
mod delivery;
mod ending;
mod expiry;
mod fail_standalone;
mod monitors;
mod nicira;
mod peer;
mod reassembly;
mod replies;
mod reply_stream;
mod request;
mod role;
mod snoop;
mod state;
mod storm;

pub(crate) use bridges::Bridges;
pub(crate) use connection::serve_tool;
pub(crate) use delivery::deliver;
pub(crate) use expiry::{expire_restored, run_expiry, run_journal};
pub(crate) use fail_standalone::{flush_tables, note_restored, run_fail_standalone};
pub(crate) use peer::Peer;
pub(crate) use state::Agent;
