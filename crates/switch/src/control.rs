//! The control socket: how people and scripts ask a running switch.
//!
//! JSON lines over a Unix socket that only its owner may open, for what OpenFlow has no message
//! for; and on request OpenFlow itself, from then on. Its words are the crate `control`'s.

mod answer;
mod bridges;
mod caches;
mod counts;
mod edit;
mod ports;
mod reload;
mod sample;
mod server;
mod show;
mod trace;
mod workers;

pub(crate) use reload::reload_on_hangup;
pub(crate) use server::serve_control;
pub(crate) use show::{learnt_addresses, named_counters};
pub(crate) use trace::{Traced, assumed, trace_frame};
