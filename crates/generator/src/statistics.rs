//! Statistics of a session: for each port the frames that left and came, for each stream its
//! frames' arrivals.
//!
//! A snapshot of plain numbers that every page, report and interface is made of. Packets and bytes
//! are since the last [`crate::session::Session::clear`]; bytes are those of frames with FCS. It
//! must never say that something was sent which the port did not take.

use serde::{Deserialize, Serialize};

use crate::profile::LAYER_1_OVERHEAD;
use crate::receiver::StreamReport;

/// A snapshot of a whole session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatistics {
    /// When it was taken, in nanoseconds of the session's clock.
    pub at_ns: u64,
    /// The ports, in the session's order.
    pub ports: Vec<PortStatistics>,
    /// The streams of all ports, by port and in the order of the profile.
    pub streams: Vec<StreamStatistics>,
    /// The delay that the generator itself adds, where it was measured.
    pub floor: Option<DelayFloor>,
}

/// The delay that the generator itself adds: that of probes over a wire in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayFloor {
    /// The median: the floor.
    pub p50_ns: f64,
    /// 99 of 100 are at most this.
    pub p99_ns: f64,
    /// The shortest.
    pub least_ns: u64,
    /// The number of probes.
    pub probes: u64,
    /// The smallest time that the clock tells from nothing.
    pub resolution_ns: f64,
}

impl DelayFloor {
    /// Whether a delay is below the floor: then it is the generator's own.
    #[must_use]
    pub fn is_above(&self, delay_ns: f64) -> bool {
        delay_ns < self.p50_ns
    }
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortStatistics {
    /// Its index in the session.
    pub port: usize,
    /// Its spec text, or its name where it was handed over open.
    pub name: String,
    /// Whether it is up.
    pub link_up: bool,
    /// The rate of its line at layer 1, in bit/s; per cent are of this.
    pub line_rate_bps: f64,
    /// Whether it has frames to send: started, not at its end, not stopped.
    pub transmitting: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// Why its streams ended before their time, and when: the port went down or disappeared.
    pub stopped: Option<PortStop>,
    /// Frames that left.
    pub tx: TxStatistics,
    /// Frames that came.
    pub rx: RxStatistics,
}

/// The end of a port's streams before their time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStop {
    /// When, in nanoseconds of the session's clock.
    pub at_ns: u64,
    /// The port's error.
    pub reason: String,
}

/// Frames and bytes, and their rate in the last one to two seconds, or since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortTraffic {
    /// Frames.
    pub packets: u64,
    /// Their bytes, FCS included.
    pub bytes: u64,
    /// Frames a second.
    pub pps: f64,
    /// Bit/s at layer 1: with FCS, preamble and gap.
    pub l1_bps: f64,
    /// Bit/s at layer 2: with FCS.
    pub l2_bps: f64,
}

/// The sending side of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TxStatistics {
    /// Frames that the port took.
    #[serde(flatten)]
    pub traffic: PortTraffic,
    /// Frames that were due and that the port did not take in time; they never left.
    pub unsent: u64,
    /// Frames that the port took and that its device did not carry, as the port counts them.
    pub errors: u64,
    /// Answers for claimed addresses that were not sent, for want of room.
    pub unanswered: u64,
    /// Frames that left later than due by more than the session's threshold.
    pub late: u64,
    /// The delay of the latest after its due time, in nanoseconds.
    pub late_ns_max: u64,
    /// From the first departure to the last, in nanoseconds: `packets` - 1 intervals.
    pub span_ns: u64,
    /// Time between one frame's departure and the next.
    pub gaps: GapStatistics,
}

/// Time between departures, in nanoseconds. Frames of one burst leave at one time. Of a port with
/// several queues, each figure is that of the queue where it is greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapStatistics {
    /// The number of gaps.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Frames that a port lost by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxLosses {
    /// Frames that the port lost for want of room.
    pub drops: u64,
    /// Frames that arrived broken.
    pub errors: u64,
}

/// The receiving side of a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RxStatistics {
    /// Frames that were received.
    #[serde(flatten)]
    pub traffic: PortTraffic,
    /// Frames without a probe of the session's streams.
    pub foreign: u64,
    /// Frames that the port lost by itself.
    pub losses: RxLosses,
    /// Why nothing can be received any more.
    pub error: Option<String>,
}

/// One stream: what left, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamStatistics {
    /// The port that sends it.
    pub port: usize,
    /// Its name.
    pub name: String,
    /// Its number in the frames.
    pub id: u16,
    /// Frames that left.
    pub sent: u64,
    /// Their bytes, FCS included.
    pub sent_bytes: u64,
    /// Frames that left with a sequence number and a time stamp.
    pub probes: u64,
    /// Frames that left without them, though the stream has them: they were too
    /// short. Their loss, order and delay are not known.
    pub unnumbered: u64,
    /// The size from which on its frames have room for them, FCS included.
    pub probe_size: u32,
    /// Frames that were due and never left.
    pub unsent: u64,
    /// Those of them that were due while the port's link was down, where its streams outlast that.
    pub unsent_down: u64,
    /// Frames that left late.
    pub late: u64,
    /// Whether it has frames to send.
    pub active: bool,
    /// Frames with a probe that came at no port; `None` for a stream without probes. While it
    /// sends, only gaps in the numbers count.
    pub lost: Option<u64>,
    /// Its arrivals, by port.
    pub arrivals: Vec<StreamArrival>,
}

/// The arrivals of a stream at one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamArrival {
    /// The port.
    pub port: usize,
    /// Loss, order and delay.
    pub report: StreamReport,
}

impl PortTraffic {
    /// Packets and bytes now, with the rate since `before`, `passed_s` seconds ago.
    #[must_use]
    pub fn since(packets: u64, bytes: u64, before: (u64, u64), passed_s: f64) -> Self {
        let new = packets.saturating_sub(before.0) as f64;
        let bits = 8.0 * bytes.saturating_sub(before.1) as f64;
        let rate = |number: f64| if passed_s > 0.0 { number / passed_s } else { 0.0 };
        Self {
            packets,
            bytes,
            pps: rate(new),
            l1_bps: rate(bits + new * f64::from(8 * LAYER_1_OVERHEAD)),
            l2_bps: rate(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PortTraffic;

    #[test]
    fn a_full_line_of_the_shortest_frames_is_a_full_line_at_layer_1() {
        let traffic = PortTraffic::since(14_880_952, 14_880_952 * 64, (0, 0), 1.0);
        assert!((traffic.l1_bps - 10e9).abs() < 1e3, "{traffic:?}");
        assert!((traffic.l2_bps - 7_619_047_424.0).abs() < 1.0);
        assert_eq!(PortTraffic::since(5, 320, (0, 0), 0.0).pps, 0.0);
    }
}
