//! Both datapaths from outside, in virtual time. The comparison on random packets is the program
//! `differential`, which runs for as long as it is given packets.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod bundles;
mod capabilities;
mod cases;
mod control;
mod kernel_tier;
mod kernel_tier_stations;
mod metadata;
mod meter_rates;
mod mirrors;
mod offloads;
mod properties;
mod resubmits;
mod resumes;
mod saved;
mod seam;
mod select_groups;
mod shared_programs;
mod support;
mod v1_0;
mod watched;
