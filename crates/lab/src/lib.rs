//! Measures any OpenFlow switch: switches under test, testbeds, scenarios, methods, statistics,
//! reports.
//!
//! Every switch and controller, Weir's own included, is a process that is started and measured
//! over the same wires. The lab must never import `switch`, `datapath` or `controller`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod bench;
pub mod campaign;
pub mod ceilings;
pub mod cli;
pub mod compare;
pub mod controller;
pub mod demo;
pub mod dut;
pub mod facts;
pub mod history;
pub mod host_program;
pub mod hosts;
pub mod keys;
pub mod limit;
pub mod load;
pub mod method;
pub mod names;
pub mod present;
pub mod progress;
pub mod rate;
pub mod results;
pub mod serve;
pub mod service;
pub mod settings;
pub mod setup;
pub mod stall;
pub mod switch_at_ports;
pub mod switch_client;
pub mod testbed;
pub mod trial_error;
pub mod workload;
