//! The counts of the controller, and the line of a second of them.
//!
//! Plain numbers; nothing here decides.

use openflow::Message;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

/// Counters over all switches since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Switches that are ready now.
    pub switches: u64,
    /// Packet-ins received.
    pub packet_ins: u64,
    /// Packet-ins that no handler saw since the switch does not take our messages fast enough.
    pub packet_ins_dropped: u64,
    /// Packet-ins that no handler saw since another controller of the cluster is the master.
    pub held_back: u64,
    /// Packet-ins whose packet an app could not forward: neither kept by the switch nor whole.
    pub not_forwarded: u64,
    /// Packet-outs sent.
    pub packet_outs: u64,
    /// Flow-mods sent.
    pub flow_mods: u64,
    /// Messages of switches that were wrong and have been answered with an error.
    pub refused: u64,
    /// Messages of the app that could not be sent.
    pub unsent: u64,
    /// Errors of switches about messages of ours.
    pub errors: u64,
    /// Requests that no answer came to in time.
    pub unanswered: u64,
    /// Ports and timers of switches that were left out, since a switch had as many as may be.
    pub beyond_bounds: u64,
    /// Messages that a handle could not queue, since the switch does not take what it is sent.
    pub commands_full: u64,
    /// Events that those who watch by a handle were too slow for.
    pub events_lagged: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.switches += other.switches;
        self.packet_ins += other.packet_ins;
        self.packet_ins_dropped += other.packet_ins_dropped;
        self.held_back += other.held_back;
        self.not_forwarded += other.not_forwarded;
        self.packet_outs += other.packet_outs;
        self.flow_mods += other.flow_mods;
        self.refused += other.refused;
        self.unsent += other.unsent;
        self.errors += other.errors;
        self.unanswered += other.unanswered;
        self.beyond_bounds += other.beyond_bounds;
        self.commands_full += other.commands_full;
        self.events_lagged += other.events_lagged;
    }
}

impl Stats {
    pub(crate) fn count_sent(&mut self, message: &Message) {
        if let Message::PacketOut(_) = message {
            self.packet_outs += 1;
        } else if let Message::FlowMod(_) = message {
            self.flow_mods += 1;
        }
    }

    /// The rates since `before`, `elapsed` ago.
    #[must_use]
    pub fn since(&self, before: &Self, elapsed: Duration) -> Rates {
        Rates { now: *self, before: *before, elapsed }
    }
}

/// Rates between two moments, printed as one line.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    now: Stats,
    before: Stats,
    elapsed: Duration,
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let (now, before) = (&self.now, &self.before);
        write!(
            f,
            "{} switches, {:.0} packet-ins/s ({:.0} dropped), {:.0} packet-outs/s, \
             {:.0} flow-mods/s",
            now.switches,
            rate(now.packet_ins, before.packet_ins),
            rate(now.packet_ins_dropped, before.packet_ins_dropped),
            rate(now.packet_outs, before.packet_outs),
            rate(now.flow_mods, before.flow_mods),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Stats;
    use std::time::Duration;

    #[test]
    fn rates_are_per_second() {
        let before = Stats { packet_ins: 1000, ..Stats::default() };
        let now = Stats { switches: 2, packet_ins: 5000, packet_outs: 3000, ..before };
        assert_eq!(
            now.since(&before, Duration::from_secs(2)).to_string(),
            "2 switches, 2000 packet-ins/s (0 dropped), 1500 packet-outs/s, 0 flow-mods/s"
        );
    }
}
