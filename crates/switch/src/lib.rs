//! The OpenFlow switch: agent, worker, configuration, control socket.
//!
//! A process has any number of bridges, each a datapath of its own. The *workers* are a few threads
//! that each own, for every bridge, some ports and a forwarder; the *agent* is one thread that owns
//! the connections to controllers, the control socket and, by the bridges, the state that commands
//! change. Commands go down and upcalls come up in batches, and neither side ever waits for the
//! other.
#![forbid(unsafe_code)]

mod agent;
mod assemble;
mod bridge;
mod capabilities;
pub mod config;
pub mod control;
pub mod counters;
mod error;
mod journal;
mod kept_tiers;
mod memory;
mod metrics;
pub mod reconcile;
mod request;
mod rights;
mod run;
mod serve;
mod snapshot;
mod upcall;
pub mod vswitchd;
mod worker;

pub use self::metrics::declared as declared_metrics;
pub use config::{SwitchArgs, parse_config};
pub use error::SwitchError;
pub use journal::{JournalFault, read_journal};
pub use run::{run, run_args_until, run_driven_until, run_until};
