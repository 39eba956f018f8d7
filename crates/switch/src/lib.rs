//! The OpenFlow switch: agent, worker, configuration, control socket.
//!
//! The *workers* are threads that each own some ports and a forwarder; the *agent* is one thread
//! that owns the connections to controllers, the control socket and, by its bridge, the state that
//! commands change. Changes go down in batches, packet-ins and news come up in batches, and neither
//! side ever waits for the other.
#![forbid(unsafe_code)]

mod agent;
mod bridge;
pub mod config;
pub mod control;
pub mod counters;
mod ctl;
mod run;
mod worker;

pub use config::{SwitchArgs, parse_config};
pub use ctl::{CtlArgs, run as ctl};
pub use run::{SwitchError, run, run_until};
