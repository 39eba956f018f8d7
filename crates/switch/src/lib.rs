//! The OpenFlow switch: agent, workers, configuration, control socket.
#![forbid(unsafe_code)]

pub mod config;
pub mod control;
pub mod counters;
