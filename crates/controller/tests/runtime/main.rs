//! The runtime over real sockets: switches, shards, and peers of every bad kind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod loopback;
mod scripted;
mod shards;
