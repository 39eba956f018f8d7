//! Packets against what other programs and a second, slower reader make of the same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod etherparse;
mod frames;
mod garbage;
mod os_ken;
mod rewriting;
mod rows;
mod written;

use proptest::test_runner::{Config, RngSeed};

/// The same frames in every run; `PROPTEST_CASES` asks for more of them.
fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..Config::default() }
}
