//! The fuzzer of the example `live_fuzz` for some thousand messages, beside other tests.
//!
//! `WEIR_FUZZ_MESSAGES` is how many are sent (default 4,000), `WEIR_FUZZ_SEED` which. With 200,000
//! and more, for which it must be run alone, memory and descriptors are compared too.

#[path = "../../examples/live_fuzz/fuzzer/mod.rs"]
mod fuzzer;

use fuzzer::FuzzRun;

/// A run that is long enough to show a leak.
const LONG: u64 = 200_000;

fn setting(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

#[test]
fn damaged_messages_hurt_nobody() {
    let seed = setting("WEIR_FUZZ_SEED", 1);
    let count = setting("WEIR_FUZZ_MESSAGES", 4_000);
    println!("WEIR_FUZZ_SEED={seed} WEIR_FUZZ_MESSAGES={count}");
    let is_alone = count >= LONG;
    let run = FuzzRun { seconds_max: u64::MAX, messages_max: count, seed, is_alone };
    println!("{}", run.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}")));
}
