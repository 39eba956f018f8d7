//! Fuzzes a running switch over live connections, for a time that is told: half of the messages are
//! right, half are made of right ones and spoilt.
//!
//!     cargo run -p weir-switch --release --example live_fuzz -- --seconds 600 --seed 7
//!
//! What must hold: the switch does not end; every message is answered as the oracle says, errors
//! with their xid and their first bytes; echo requests are answered; a flow that the messages leave
//! alone is forwarded, every frame of it; memory and file descriptors come back. The exit code says
//! whether it did. It must never pass over an answer that it does not understand.
#![forbid(unsafe_code)]

mod entropy;
mod make;
mod oracle;
mod spoil;
mod talk;
mod tame;
mod traffic;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use openflow::Version;

use entropy::Entropy;
use make::Maker;
use talk::{Connection, Tally};
use traffic::Traffic;

/// Frames that are sent before their answers are read.
const BATCH: usize = 32;
/// Batches of one connection.
const BATCHES: usize = 24;
/// Connections between two times that everything is deleted.
const CLEAN_EVERY: u64 = 8;
/// Memory may grow by so much after the first part of the run: allocators keep some.
const GROWTH_MAX_KIB: u64 = 8 * 1024;

fn main() -> ExitCode {
    match run() {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("live_fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    seconds: u64,
    seed: u64,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seconds: 20, seed: 1 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        match (word.as_str(), value) {
            ("--seconds", Some(value)) => options.seconds = value,
            ("--seed", Some(value)) => options.seed = value,
            _ => return Err("usage: live_fuzz [--seconds N] [--seed N]".to_owned()),
        }
    }
    Ok(options)
}

/// Memory in KiB, without what the ports share between their ends, and open descriptors, of this
/// process.
fn resources() -> Result<(u64, usize), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let memory = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let open = fs::read_dir("/proc/self/fd").map_err(|error| error.to_string())?.count();
    Ok((memory.ok_or("no RssAnon in /proc/self/status")?, open))
}

fn run() -> Result<String, String> {
    let options = options()?;
    println!("seed {}, {} s", options.seed, options.seconds);
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    // A port whose other end is not there has no link.
    let traffic = Traffic::start(options.seed)?;
    let switch = traffic::Switch::start(dir.path())?;
    let outcome = fuzz(&options, dir.path(), &traffic);
    let slowest = traffic.stop()?;
    switch.stop()?;
    Ok(format!("{}; slowest frame of the unrelated flow {slowest:?}", outcome?))
}

fn fuzz(options: &Options, dir: &Path, traffic: &Traffic) -> Result<String, String> {
    let mut entropy = Entropy::new(options.seed);
    let socket = dir.join("of");
    let mut control = Connection::open(&socket, Version::V1_3)?;
    control.install_unrelated()?;
    let ports = control.ports()?;
    let maker = Maker::new(ports)?;
    traffic.begin();
    let mut tally = Tally::default();
    maker.malformed().try_for_each(|known| talk::refuses(&socket, known, &mut tally))?;
    let begun = Instant::now();
    let end = begun + Duration::from_secs(options.seconds);
    let warm = begun + Duration::from_secs(options.seconds / 4);
    let mut first = None;
    for number in 1_u64.. {
        let version = if entropy.once_in(4) { Version::V1_0 } else { Version::V1_3 };
        let mut connection = Connection::open(&socket, version)?;
        for _ in 0..BATCHES {
            if !talk::batch(&mut connection, &maker, &mut entropy, BATCH, &mut tally)? {
                break;
            }
        }
        drop(connection);
        if number.is_multiple_of(CLEAN_EVERY) {
            control.clean()?;
            if Instant::now() >= warm && first.is_none() {
                first = Some(resources()?);
            }
        }
        if traffic.failed.load(Ordering::Relaxed) || Instant::now() >= end {
            break;
        }
    }
    control.clean()?;
    compare(first, &mut control, Arc::as_ref(&traffic.sent).load(Ordering::Relaxed), &tally)
}

/// What the run has used beyond what it used at a quarter of its time.
fn compare(
    first: Option<(u64, usize)>,
    control: &mut Connection,
    frames: u64,
    tally: &Tally,
) -> Result<String, String> {
    let (memory_before, open_before) = first.ok_or("too short a run: nothing was compared")?;
    // Connections that were closed last are forgotten by the switch a moment later.
    let deadline = Instant::now() + Duration::from_secs(20);
    let (memory, open) = loop {
        control.clean()?;
        let (memory, open) = resources()?;
        if open <= open_before || Instant::now() >= deadline {
            break (memory, open);
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if open > open_before {
        return Err(format!("descriptors leak: {open_before} were open, {open} are"));
    }
    if memory > memory_before + GROWTH_MAX_KIB {
        return Err(format!("memory leaks: {memory_before} KiB were used, {memory} are"));
    }
    Ok(format!(
        "{tally}\n{frames} frames of the unrelated flow arrived; memory {memory_before} KiB, then \
         {memory} KiB; {open} descriptors open as before"
    ))
}
