//! The fast datapath against the reference: the same commands and packets, and whatever can be seen
//! compared, frames byte for byte and every counter.
//!
//! A run is a row of scenarios, each of which follows from a number, its seed. Environment
//! variables choose more than the few that every test run does:
//!
//! - `WEIR_DIFFERENTIAL_PACKETS`: how many packets at least (10 million in continuous integration,
//!   in a release build: `cargo xtask test --only sameness`, a billion with
//!   `--differential-packets 1000000000`);
//! - `WEIR_DIFFERENTIAL_SEED`: the first seed, in decimal or with 0x; with no number of packets
//!   given, only this one runs.
//!
//! A scenario in which something differs is cut down to what it needs and printed in words.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod actions;
mod frames;
mod how;
mod matches;
mod run;
mod scenario;
mod shrink;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datapath::fast::testing::Template;
use how::How;
use run::Lookups;
use scenario::Scenario;

/// Packets of a run without the variable.
const PACKETS: u64 = 120_000;

/// The first seed of a run without the variable.
const SEED: u64 = 1;

fn asked(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.replace('_', "").parse(),
    };
    Some(parsed.unwrap_or_else(|_| panic!("{variable}={text}: not a number")))
}

#[test]
fn fast_is_reference() {
    let seed = asked("WEIR_DIFFERENTIAL_SEED");
    let packets = asked("WEIR_DIFFERENTIAL_PACKETS");
    let wanted = packets.unwrap_or(if seed.is_some() { 1 } else { PACKETS });
    let (next, sum) = (AtomicU64::new(seed.unwrap_or(SEED)), AtomicU64::new(0));
    let failed = AtomicBool::new(false);
    let (failures, forced) = (Mutex::new(Vec::new()), Mutex::new(Forced::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if packets.is_none() { 1 } else { threads };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while sum.load(Ordering::Relaxed) < wanted && !failed.load(Ordering::Relaxed) {
                    let scenario = Scenario::new(next.fetch_add(1, Ordering::Relaxed));
                    sum.fetch_add(scenario.packets(), Ordering::Relaxed);
                    let how = How::new(scenario.seed);
                    match one(&scenario, &how) {
                        Ok(lookups) => forced.lock().unwrap().add(&how, lookups),
                        Err(failure) => {
                            failed.store(true, Ordering::Relaxed);
                            failures.lock().unwrap().push(failure);
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    if wanted >= PACKETS {
        forced.into_inner().unwrap().check();
    }
    let (first, end) = (seed.unwrap_or(SEED), next.into_inner());
    println!("{} packets in seeds {first} to {}: the same", sum.into_inner(), end - 1);
}

/// Scenarios that differed once and lie beyond those that every run has.
const DIFFERED: &[u64] = &[6340, 900_102];

#[test]
fn what_differed_once_is_the_same() {
    for seed in DIFFERED.iter().copied() {
        let scenario = Scenario::new(seed);
        if let Err(failure) = one(&scenario, &How::new(seed)) {
            panic!("{failure}");
        }
    }
}

/// The lookups of the scenarios that forced each template and kept to it, by the template at work.
#[derive(Default)]
struct Forced(BTreeMap<Template, Lookups>);

impl Forced {
    fn add(&mut self, how: &How, lookups: Lookups) {
        if let Some(template) = how.template.filter(|_| !how.switches) {
            let sums = self.0.entry(template).or_default();
            sums.iter_mut().zip(lookups).for_each(|(sum, lookups)| *sum += lookups);
        }
    }

    /// A template that was forced has searched tables, and what it cannot be has not. Where exact
    /// is forced, masks beyond the room for groups are listed, and a list is all that is left when
    /// the groups have gone: once in a hundred million packets.
    fn check(&self) {
        for (template, never) in [
            (Template::Few, &[Template::Exact, Template::General, Template::Pruned][..]),
            (Template::Exact, &[Template::Pruned]),
            (Template::General, &[Template::Few, Template::Pruned]),
            (Template::Pruned, &[Template::Few, Template::Exact, Template::General]),
        ] {
            let lookups = self.0.get(&template).copied().unwrap_or_default();
            assert!(lookups[template as usize] > 0, "{template:?} was forced: {lookups:?}");
            for other in never {
                assert_eq!(lookups[*other as usize], 0, "{template:?} was forced: {lookups:?}");
            }
            println!("forced {}: {} lookups", template.name(), lookups[template as usize]);
        }
    }
}

/// Runs one scenario; what to print when something differs.
fn one(scenario: &Scenario, how: &How) -> Result<Lookups, String> {
    let (at, difference) = match shrink::check(scenario, how) {
        Ok(lookups) => return Ok(lookups),
        Err(failure) => failure,
    };
    let least = shrink::shrink(scenario, how, at);
    let found = shrink::check(&least, how).err().map_or(difference, |(_, found)| found);
    Err(format!(
        "WEIR_DIFFERENTIAL_SEED={} ({how}), step {at} of {}: {found}\nThe least that differs:\n{}",
        scenario.seed,
        scenario.steps.len(),
        shrink::describe(&least)
    ))
}
