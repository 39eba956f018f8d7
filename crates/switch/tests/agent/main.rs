//! The switch end to end: a real agent and worker in this process, memory ports, and a scripted
//! controller over a Unix socket that writes and reads frames itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auxiliary;
mod bad_input;
mod bridges;
mod cases;
mod connections;
mod control;
mod ctl;
mod errors;
mod every_error;
mod forward;
mod handshake;
mod harness;
mod queues;
mod roles;
mod statistics;
mod sweeps;
mod veth;
mod wire;
mod workers;
