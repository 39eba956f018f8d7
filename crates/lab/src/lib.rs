//! Measures any OpenFlow switch: switches under test, testbeds, scenarios, methods, statistics,
//! reports.
//!
//! Every switch and controller, Weir's own included, is a process that is started and measured
//! over the same wires. The lab must never import `switch`, `datapath` or `controller`.
#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "a module that is not public lets the compiler find dead code")]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod campaign;
mod ceilings;
pub mod cli;
pub mod dut;
mod facts;
mod fleet;
mod host_program;
mod hosts;
mod keys;
mod limit;
mod load;
mod method;
mod names;
mod present;
mod progress;
mod rate;
mod results;
mod service;
mod settings;
mod setup;
mod stall;
mod switch_at_ports;
mod switch_client;
mod testbed;
mod trial_error;
mod workload;

pub use campaign::catalogue;
