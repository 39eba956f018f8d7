//! The OpenFlow switch: agent, worker, configuration, control socket.
//!
//! Two threads: the *worker* owns ports and datapath and forwards; the *agent* owns the connections
//! to controllers and the control socket. Commands go down in batches, packet-ins and replies come
//! up in batches, and neither ever waits for the other.
#![forbid(unsafe_code)]

mod agent;
pub mod config;
pub mod control;
pub mod counters;
mod run;
mod worker;

pub use config::{SwitchArgs, parse_config};
pub use control::{CtlArgs, ctl};
pub use run::{SwitchError, run, run_until};
