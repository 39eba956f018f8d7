//! The port kinds and the Linux facts around them, for real. What needs root makes its own network
//! namespaces without a name, so that nothing is left however a test ends.

#![allow(clippy::unwrap_used)]

mod af_packet;
mod contract;
mod dpdk;
mod links;
mod monitor;
mod spawned;
mod testbed;
