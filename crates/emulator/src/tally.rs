//! Counts of the emulator: answers and their times, and every fault of a controller.
//!
//! Each thread has a tally of its own; they are added up when the switches have gone. Nothing that
//! a controller sends is left out of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hdrhistogram::Histogram;

/// Different reasons that are kept; what else there is counts as others.
const REASONS_MAX: usize = 16;

/// Longest time in the counts; longer ones count as this.
const TIME_MAX_NS: u64 = 600_000_000_000;

/// Times, in nanoseconds, with three digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        // The bounds are constants that hdrhistogram accepts; growing is the fall-back that it
        // documents for three digits.
        let made = Histogram::new_with_max(TIME_MAX_NS, 3).or_else(|_| Histogram::new(3));
        Self(made.expect("three significant digits are within hdrhistogram's range"))
    }
}

impl Times {
    /// Adds a time.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that a share of all, from 0 to 1, did not exceed, in microseconds.
    pub fn at_us(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    fn add(&mut self, other: &Self) {
        // It fails for a greater time than there is room for only, and both have the same.
        self.0.add(&other.0).expect("all have the same bounds");
    }
}

/// Counts of one thread, or of all together.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Flow-mods that add or change an entry, within the window that is measured.
    pub flow_mods: u64,
    /// Packet-outs that are no LLDP, within the window.
    pub packet_outs: u64,
    /// Packet-ins whose first answer came within the window.
    pub answered: u64,
    /// From when a packet-in was due to its first answer, of those due within the window.
    pub times: Times,
    /// Delay of each packet-in after it was due, of those due within the window.
    pub lateness: Times,
    /// From the first attempt to connect to the reply with the switch's features.
    pub described: Times,
    /// From the first attempt to connect to the answer to the first packet-in.
    pub served: Times,
    /// Further counts, from the beginning to the end.
    pub oddities: Oddities,
    /// Why connections ended, or could not be made, before the fleet was stopped.
    pub ended: BTreeMap<String, u64>,
}

/// Messages, from the beginning to the end, that are no plain answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Packet-ins that were never answered.
    pub unanswered: u64,
    /// Packet-ins that were due and not sent, because too many waited for an answer.
    pub unsent: u64,
    /// Messages that do not parse; each was answered with the protocol's error.
    pub malformed: u64,
    /// Errors that the controller sent.
    pub errors: u64,
    /// Answers to a packet-in that had one, or was never sent: a flow-mod beside a packet-out.
    pub further: u64,
    /// LLDP and removals of entries: the controller's own doing.
    pub own: u64,
    /// Requests that were answered, barriers among them.
    pub requests: u64,
    /// Connections that were made again.
    pub reconnected: u64,
}

impl Oddities {
    /// Each count with its name in JSON and in the text.
    pub fn rows(&self) -> [(&'static str, u64); 8] {
        [
            ("unanswered", self.unanswered),
            ("unsent", self.unsent),
            ("malformed", self.malformed),
            ("errors", self.errors),
            ("further", self.further),
            ("own", self.own),
            ("requests", self.requests),
            ("reconnected", self.reconnected),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.malformed += other.malformed;
        self.errors += other.errors;
        self.further += other.further;
        self.own += other.own;
        self.requests += other.requests;
        self.reconnected += other.reconnected;
    }
}

impl Tally {
    /// Flow-mods and packet-outs within the window: what `cbench` counts.
    pub fn responses(&self) -> u64 {
        self.flow_mods + self.packet_outs
    }

    /// A connection ended, or was not made, for this reason.
    pub fn note_end(&mut self, reason: String) {
        let has_room = self.ended.contains_key(&reason) || self.ended.len() < REASONS_MAX;
        let reason = if has_room { reason } else { "other".to_owned() };
        *self.ended.entry(reason).or_default() += 1;
    }

    /// The reasons, the most frequent first.
    pub fn reasons(&self) -> String {
        let mut reasons: Vec<(&String, &u64)> = self.ended.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1));
        let text = reasons.iter().map(|(reason, count)| format!("{count} x {reason}"));
        text.collect::<Vec<_>>().join("; ")
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        self.flow_mods += other.flow_mods;
        self.packet_outs += other.packet_outs;
        self.answered += other.answered;
        self.times.add(&other.times);
        self.lateness.add(&other.lateness);
        self.described.add(&other.described);
        self.served.add(&other.served);
        self.oddities.add(&other.oddities);
        for (reason, count) in &other.ended {
            *self.ended.entry(reason.clone()).or_default() += count;
        }
    }
}

/// Progress of the switches: for each step the number of switches that have taken it. Threads write
/// it, at most once for each switch and turn; the fleet reads it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Connections that were made.
    pub connected: AtomicU32,
    /// Attempts to connect that failed.
    pub refused: AtomicU32,
    /// Have told their features.
    pub described: AtomicU32,
    /// Had an answer to their first packet-in.
    pub served: AtomicU32,
    /// Have announced all hosts.
    pub learned: AtomicU32,
    /// Wait for no answer any more.
    pub drained: AtomicU32,
    /// Are gone for good.
    pub down: AtomicU32,
    /// Answers of all switches: whether anything happens at all.
    pub answers: AtomicU64,
}

impl Progress {
    /// One more.
    pub fn count(counter: &AtomicU32) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Value of a counter.
    pub fn read(counter: &AtomicU32) -> u32 {
        counter.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn tallies_add_up() {
        let mut one = Tally { flow_mods: 2, packet_outs: 3, answered: 4, ..Tally::default() };
        one.times.record(1_000);
        one.oddities.malformed = 5;
        one.note_end("the peer closed the connection".to_owned());
        let mut all = one.clone();
        all.times.record(900);
        all.add(&one);
        assert_eq!((all.responses(), all.answered, all.oddities.malformed), (10, 8, 10));
        assert_eq!((all.times.0.len(), all.times.at_us(0.1)), (3, 0.9));
        assert_eq!(all.reasons(), "2 x the peer closed the connection");
        for number in 0..100 {
            all.note_end(format!("reason {number}"));
        }
        assert!(all.ended.len() <= 17 && all.reasons().contains("x other"), "{}", all.reasons());
    }
}
