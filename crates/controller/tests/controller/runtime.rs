//! The runtime over real sockets: switches, shards, and peers of every bad kind.

mod hostile;
mod loopback;
mod scripted;
mod shards;
