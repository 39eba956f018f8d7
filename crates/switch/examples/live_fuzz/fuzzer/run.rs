//! A run: connection after connection to one switch, until its time or its messages are over.
//!
//! The promises: the switch does not end; every message is answered as the oracle says, errors
//! with their xid and their first bytes; echo requests are answered; a flow that the messages leave
//! alone is forwarded, every frame of it; memory and file descriptors come back. It must never pass
//! over an answer that it does not understand.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use openflow::Version;

use super::entropy::Entropy;
use super::make::Maker;
use super::talk::{self, Connection, Tally};
use super::traffic::{Switch, Traffic};

/// Frames that are sent before their answers are read.
const BATCH: usize = 32;
/// Batches of one connection.
const BATCHES: usize = 24;
/// Connections between two times that everything is deleted.
const CLEAN_EVERY: u64 = 8;
/// Memory may grow by so much after the first part of the run: allocators keep some.
const GROWTH_MAX_KIB: u64 = 8 * 1024;

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FuzzRun {
    /// It ends after this number of seconds,
    pub(crate) seconds_max: u64,
    /// or of messages.
    pub(crate) messages_max: u64,
    /// The seed of the messages.
    pub(crate) seed: u64,
    /// Nothing else runs in this process, so that its memory and descriptors are those of the run.
    pub(crate) is_alone: bool,
}

/// Memory and descriptors of this process.
#[derive(Clone, Copy, Debug)]
struct Resources {
    /// Without what the ports share between their ends.
    memory_kib: u64,
    descriptors: usize,
}

impl Resources {
    fn read() -> Result<Self, String> {
        let own = ProcFolder::own();
        let memory = own.memory("RssAnon").ok_or("no RssAnon in /proc/self/status")?;
        let descriptors = own.open_descriptors().map_err(|error| error.to_string())?;
        Ok(Self { memory_kib: memory >> 10, descriptors })
    }
}

impl FuzzRun {
    /// Starts a switch, fuzzes it and stops it; what came of it in words.
    ///
    /// # Errors
    /// The promise that was broken.
    pub(crate) fn run(self) -> Result<String, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        // A port whose other end is not there has no link.
        let traffic = Traffic::start(self.seed)?;
        let switch = Switch::start(dir.path())?;
        let outcome = self.fuzz(dir.path(), &traffic);
        let slowest = traffic.stop()?;
        switch.stop()?;
        Ok(format!("{}; slowest frame of the unrelated flow {slowest:?}", outcome?))
    }

    /// The part of the run that is over.
    fn percent(self, elapsed: Duration, messages: u64) -> u64 {
        let percent = |done: u64, all: u64| done.saturating_mul(100) / all.max(1);
        let of_time = percent(elapsed.as_secs(), self.seconds_max);
        of_time.max(percent(messages, self.messages_max))
    }

    fn fuzz(self, dir: &Path, traffic: &Traffic) -> Result<String, String> {
        let mut entropy = Entropy::new(self.seed);
        let socket = dir.join("of");
        let mut control = Connection::open(&socket, Version::V1_3)?;
        control.install_unrelated()?;
        let ports = control.ports()?;
        let maker = Maker::new(ports)?;
        traffic.begin();
        let mut tally = Tally::default();
        maker.malformed().try_for_each(|known| talk::refuses(&socket, known, &mut tally))?;
        let begun = Instant::now();
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
            let percent = self.percent(begun.elapsed(), tally.messages());
            if number.is_multiple_of(CLEAN_EVERY) {
                control.clean()?;
                if self.is_alone && percent >= 25 && first.is_none() {
                    first = Some(Resources::read()?);
                }
            }
            if traffic.failed.load(Ordering::Relaxed) || percent >= 100 {
                break;
            }
        }
        control.clean()?;
        let frames = traffic.sent.load(Ordering::Relaxed);
        let outcome = format!("{tally}\n{frames} frames of the unrelated flow arrived");
        if !self.is_alone {
            return Ok(outcome);
        }
        let first = first.ok_or("too short a run: nothing was compared")?;
        Ok(format!("{outcome}; {}", compare(first, &mut control)?))
    }
}

/// The memory and descriptors of the run beyond those at a quarter of its time.
fn compare(before: Resources, control: &mut Connection) -> Result<String, String> {
    // Connections that were closed last are forgotten by the switch a moment later.
    let deadline = Instant::now() + Duration::from_secs(20);
    let after = loop {
        control.clean()?;
        let after = Resources::read()?;
        if after.descriptors <= before.descriptors || Instant::now() >= deadline {
            break after;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let (open_before, open) = (before.descriptors, after.descriptors);
    if open > open_before {
        return Err(format!("descriptors leak: {open_before} were open, {open} are"));
    }
    let (memory_before, memory) = (before.memory_kib, after.memory_kib);
    if memory > memory_before + GROWTH_MAX_KIB {
        return Err(format!("memory leaks: {memory_before} KiB were used, {memory} are"));
    }
    Ok(format!("memory {memory_before} KiB, then {memory} KiB; {open} descriptors open as before"))
}
