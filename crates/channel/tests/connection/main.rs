//! The connection and its transports from outside: one program, so that it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod faults;
mod loopback;
mod property;
mod simulation;
mod tls;
