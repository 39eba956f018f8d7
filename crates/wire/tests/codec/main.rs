//! The codec against itself, against os-ken's messages, and against os-ken and Open vSwitch as
//! peers: one program, because all of it makes, describes and compares the same messages.
//!
//! The peers' bytes count, os-ken's or Open vSwitch's, never our own encoder's alone.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod compare;
mod describe;
mod malformed;
mod nicira;
mod os_ken;
mod ovs_ofctl;
mod peer;
mod random;
mod round_trip;
