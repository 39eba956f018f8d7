//! The controller from outside: sessions and apps in virtual time, the runtime over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod apps;
mod handle;
mod ready_apps;
mod runtime;
mod simulation;
