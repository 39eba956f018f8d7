//! The ready apps from end to end: controller, codec and real datapaths, in memory and in virtual
//! time.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod balancing;
mod bridging;
mod discovery;
mod documented;
mod fabric;
mod filtering;
mod managed_routing;
mod routing;
mod statistics;
