//! Fuzzes a running switch over live connections, for a given time: half of the messages are right,
//! half are made of right ones and spoilt.
//!
//!     cargo run -p weir-switch --release --example live_fuzz -- --seconds 600 --seed 7
//!
//! The promises stand in `fuzzer/run.rs`; the exit code says whether they held.
#![forbid(unsafe_code)]

mod fuzzer;

use std::process::ExitCode;

use fuzzer::FuzzRun;

fn main() -> ExitCode {
    match run() {
        Ok(outcome) => {
            println!("{outcome}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("live_fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let (mut seconds, mut seed) = (20, 1);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        match (word.as_str(), value) {
            ("--seconds", Some(value)) => seconds = value,
            ("--seed", Some(value)) => seed = value,
            _ => return Err("usage: live_fuzz [--seconds N] [--seed N]".to_owned()),
        }
    }
    println!("seed {seed}, {seconds} s");
    FuzzRun { seconds_max: seconds, messages_max: u64::MAX, seed, is_alone: true }.run()
}
