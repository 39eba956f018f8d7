//! The arithmetic of payload ceilings: what a link can carry at most, before anything is measured.
//!
//! Ethernet adds to every frame 4 bytes of FCS, 8 of preamble and 12 of gap. A UDP datagram of
//! 1,470 bytes is a frame of 1,512 and takes 1,536 byte times of the line; a TCP segment of 1,448
//! (timestamps on) takes 1,538. Where every packet goes through the controller, the whole frame
//! crosses the control link twice, once as packet-in and once as packet-out, inside a TCP stream
//! that takes 1,538 byte times for every 1,448. It must never be fitted to a measurement.

use serde::{Deserialize, Serialize};

use openflow::Version;

use crate::rate::{LINE_MINIMUM, LINE_OVERHEAD, line_bytes};
use crate::results::UpperLimit;
use crate::settings::{AppKind, Forwarding, Settings};

/// Payload of E1's UDP datagrams in bytes.
pub const UDP_PAYLOAD: u64 = 1470;

/// Payload of a full TCP segment with timestamps in bytes.
pub const TCP_PAYLOAD: u64 = 1448;

/// Headers that Linux counts around a UDP payload: Ethernet, IPv4, UDP.
const UDP_HEADERS: u64 = 14 + 20 + 8;

/// Headers that Linux counts around a TCP payload: Ethernet, IPv4, TCP with timestamps.
const TCP_HEADERS: u64 = 14 + 20 + 32;

/// Bits of line time that a frame of that length takes; `frame_size` is in bytes, FCS included.
#[must_use]
pub fn frame_line_bits(frame_size: u32) -> f64 {
    // FCS counts as a part of the frame here.
    8.0 * line_bytes(u64::from(frame_size).saturating_sub(4), 1) as f64
}

/// Bytes that a packet-in adds to the frame that it carries.
/// OpenFlow 1.0 clause 5.4.1; 1.3 clause 7.4.1 with the match field `in_port` only.
#[must_use]
pub fn packet_in_overhead(version: Version) -> u64 {
    // With a match: header 8, buffer, length, reason, table and cookie 16, match 16, pad 2. In 1.1
    // two ports stand in its place.
    match (version.has_oxm(), version.has_wide_ports()) {
        (true, _) => 42,
        (false, true) => 24,
        (false, false) => 18,
    }
}

/// Bytes that a packet-out with one output action adds to its frame.
/// OpenFlow 1.0 clause 5.3.6; 1.3 clause 7.3.7.
#[must_use]
pub fn packet_out_overhead(version: Version) -> u64 {
    if version.has_wide_ports() { 24 + 16 } else { 16 + 8 }
}

/// The most payload that the links allow, bit/s; `None` where the link is not shaped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// UDP payload by the port rate.
    pub port_udp_bps: Option<f64>,
    /// TCP payload by the port rate.
    pub port_tcp_bps: Option<f64>,
    /// UDP payload by the control link's rate, when every packet goes through the controller.
    pub control_udp_bps: Option<f64>,
    /// TCP payload by the control link's rate, with one acknowledgement for two segments.
    pub control_tcp_bps: Option<f64>,
    /// The smallest frames a second by the port rate.
    pub port_small_pps: Option<f64>,
    /// The smallest frames a second by the control link's rate, packed densely into its stream.
    pub control_small_pps: Option<f64>,
}

impl Ceilings {
    /// The ceilings of a port and a control link of these rates in bit/s. With
    /// `through_controller` false the control link carries no packets and limits nothing.
    #[must_use]
    pub fn new(
        port_bps: Option<u64>,
        control_bps: Option<u64>,
        version: Version,
        through_controller: bool,
    ) -> Self {
        let share = |rate: Option<u64>, payload: u64, line: u64| {
            rate.map(|rate| rate as f64 * payload as f64 / line as f64)
        };
        let control = control_bps.filter(|_| through_controller);
        // What a byte of the control connection costs on the line.
        let stretch = (TCP_PAYLOAD + TCP_HEADERS + LINE_OVERHEAD) as f64 / TCP_PAYLOAD as f64;
        let added = packet_in_overhead(version).max(packet_out_overhead(version));
        let stream = |bytes: u64, payload: f64| {
            control.map(|rate| rate as f64 * payload / (bytes as f64 * stretch))
        };
        let segment = TCP_PAYLOAD + TCP_HEADERS + added;
        let acknowledgement = TCP_HEADERS + added;
        Self {
            port_udp_bps: share(port_bps, UDP_PAYLOAD, UDP_PAYLOAD + UDP_HEADERS + LINE_OVERHEAD),
            port_tcp_bps: share(port_bps, TCP_PAYLOAD, TCP_PAYLOAD + TCP_HEADERS + LINE_OVERHEAD),
            control_udp_bps: stream(UDP_PAYLOAD + UDP_HEADERS + added, UDP_PAYLOAD as f64),
            control_tcp_bps: stream(2 * segment + acknowledgement, 2.0 * TCP_PAYLOAD as f64),
            port_small_pps: share(port_bps, 1, 8 * LINE_MINIMUM),
            control_small_pps: stream(8 * (60 + added), 1.0),
        }
    }
}

/// Upper limits of a cell by its links, by the metrics of the methods.
#[must_use]
pub fn upper_limits(settings: &Settings) -> Vec<UpperLimit> {
    let is_hub = settings.forwarding() == Forwarding::Controller
        && settings.app.unwrap_or(AppKind::Hub) == AppKind::Hub;
    let (ports, control) = (settings.port_rate().0, settings.control_rate().0);
    // A text that is no version is an error before any cell is measured.
    let version = settings.version().unwrap_or(Version::V1_3);
    let all = Ceilings::new(ports, control, version, is_hub);
    let mbps = |bps: Option<f64>| bps.map(|bps| bps / 1e6);
    let line_bytes = line_bytes(u64::from(settings.frame_size()) - 4, 1);
    let frames = ports.map(|bps| bps as f64 / (8 * line_bytes) as f64);
    let rows: [(&str, Option<f64>, Option<f64>); 5] = [
        ("tcp_mbps", mbps(all.port_tcp_bps), mbps(all.control_tcp_bps)),
        ("udp2_mbps", mbps(all.port_udp_bps), mbps(all.control_udp_bps)),
        ("pps_saturated", all.port_small_pps, all.control_small_pps),
        ("pps_carried", all.port_small_pps, all.control_small_pps),
        ("rate_pps", frames, None),
    ];
    let limit = |metric: &str, value: Option<f64>, by: &str| {
        let (metric, by) = (metric.to_owned(), by.to_owned());
        value.map(|value| UpperLimit { metric, value, by })
    };
    rows.iter()
        .flat_map(|(metric, port, control)| {
            [limit(metric, *port, "ports"), limit(metric, *control, "control link")]
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Ceilings, line_bytes, packet_in_overhead, packet_out_overhead};
    use openflow::Version;

    fn mbps(value: Option<f64>) -> f64 {
        (value.unwrap() / 1e4).round() / 100.0
    }

    #[test]
    fn the_arithmetic_of_e1() {
        let rate = Some(100_000_000);
        let ceilings = Ceilings::new(rate, rate, Version::V1_0, true);
        assert_eq!(mbps(ceilings.port_udp_bps), 95.70);
        assert_eq!(mbps(ceilings.port_tcp_bps), 94.15);
        assert_eq!(mbps(ceilings.control_udp_bps), 90.10);
        assert!((85.0..87.0).contains(&mbps(ceilings.control_tcp_bps)));
        assert_eq!(ceilings.port_small_pps.unwrap().round(), 148_810.0);
        assert_eq!(
            (packet_in_overhead(Version::V1_0), packet_out_overhead(Version::V1_0)),
            (18, 24)
        );
    }

    #[test]
    fn unshaped_links_and_installed_entries_have_no_ceiling() {
        let free = Ceilings::new(None, None, Version::V1_3, true);
        assert_eq!((free.port_udp_bps, free.control_udp_bps), (None, None));
        let installed = Ceilings::new(Some(1), Some(100_000_000), Version::V1_0, false);
        assert_eq!((installed.control_tcp_bps, installed.control_small_pps), (None, None));
    }

    #[test]
    fn short_frames_take_the_minimum_line_time() {
        assert_eq!(line_bytes(60, 1), 84);
        assert_eq!(line_bytes(42, 1), 84);
        assert_eq!(line_bytes(1512 * 3, 3), 1536 * 3);
    }
}
