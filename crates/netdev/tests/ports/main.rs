//! The port kinds and the Linux facts around them, for real. What needs root makes its own network
//! namespaces without a name, so that nothing is left however a test ends.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod af_packet;
mod bridged;
mod capture_fifo;
mod contract;
mod dpdk;
mod links;
mod monitor;
mod offloads;
mod queues;
mod spawned;
mod take_over;
mod testbed;
