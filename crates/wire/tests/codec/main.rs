//! The codec against itself, against os-ken's messages, and against os-ken and Open vSwitch as
//! peers: one program, because all of it makes, describes and compares the same messages.
//!
//! What os-ken or Open vSwitch says counts, never what our own encoder says of our decoder alone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod describe;
mod os_ken;
mod peer;
mod random;
mod round_trip;
