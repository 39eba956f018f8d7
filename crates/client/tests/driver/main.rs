//! Both drivers of the client against switches that are scripts.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod close;
mod requests;
