//! The arithmetic of payload ceilings: what a link can carry at most, before anything is measured.
//!
//! Ethernet adds to every frame 4 bytes of FCS, 8 of preamble and 12 of gap. A UDP datagram of
//! 1,470 bytes is a frame of 1,512 and takes 1,536 byte times of the line; a TCP segment of 1,448
//! (timestamps on) takes 1,538. Where every packet goes through the controller, the whole frame
//! crosses the control link twice, once as packet-in and once as packet-out, inside a TCP stream
//! that takes 1,538 byte times for every 1,448. It must never be fitted to a measurement.

use openflow::Version;

use crate::rate::{LINE_MINIMUM, LINE_OVERHEAD, line_bytes};
use crate::results::UpperLimit;
use crate::settings::{AppKind, Forwarding, Settings};

/// Payload of E1's UDP datagrams in bytes.
const UDP_PAYLOAD: u64 = 1470;

/// Payload of a full TCP segment with timestamps in bytes.
const TCP_PAYLOAD: u64 = 1448;

/// Headers that Linux counts around a UDP payload: Ethernet, IPv4, UDP.
const UDP_HEADERS: u64 = 14 + 20 + 8;

/// Headers that Linux counts around a TCP payload: Ethernet, IPv4, TCP with timestamps.
const TCP_HEADERS: u64 = 14 + 20 + 32;

/// Bits of line time that a frame of that length takes; `frame_size` is in bytes, FCS included.
pub fn frame_line_bits(frame_size: u32) -> f64 {
    // FCS counts as a part of the frame here.
    8.0 * line_bytes(u64::from(frame_size).saturating_sub(4), 1) as f64
}

/// Bytes that a packet-in adds to the frame that it carries.
/// OpenFlow 1.0 clause 5.4.1; 1.3 clause 7.4.1 with the match field `in_port` only.
fn packet_in_overhead(version: Version) -> u64 {
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
fn packet_out_overhead(version: Version) -> u64 {
    if version.has_wide_ports() { 24 + 16 } else { 16 + 8 }
}

/// Upper limits of a cell by its links, by the metrics of the methods: of its ports where they are
/// shaped, and of a shaped control link which every packet crosses.
pub fn upper_limits(settings: &Settings) -> Vec<UpperLimit> {
    let is_hub = settings.forwarding() == Forwarding::Controller
        && settings.app.unwrap_or(AppKind::Hub) == AppKind::Hub;
    let control = settings.control_rate().0.filter(|_| is_hub);
    // A text that is no version is an error before any cell is measured.
    let version = settings.version().unwrap_or(Version::V1_3);
    let added = packet_in_overhead(version).max(packet_out_overhead(version));
    let (tcp, udp) = (TCP_PAYLOAD + TCP_HEADERS, UDP_PAYLOAD + UDP_HEADERS);
    // TCP acknowledges two segments at a time.
    let two_segments = 2 * (tcp + added) + TCP_HEADERS + added;
    // Small frames are packed densely into the control link's stream.
    let small = ((1, 8 * LINE_MINIMUM), Some((1, 8 * (60 + added))));
    let frame = ((1, frame_line_bits(settings.frame_size()) as u64), None);
    let segments = ((TCP_PAYLOAD, tcp + LINE_OVERHEAD), Some((2 * TCP_PAYLOAD, two_segments)));
    let datagrams = ((UDP_PAYLOAD, udp + LINE_OVERHEAD), Some((UDP_PAYLOAD, udp + added)));
    // What a byte of the control connection costs on the line.
    let stretch = (tcp + LINE_OVERHEAD) as f64 / TCP_PAYLOAD as f64;
    let mut limits = Vec::new();
    // Each with what is counted and what that takes: of a port's line, of the control connection.
    for (metric, unit, (at_port, in_stream)) in [
        ("tcp_mbps", 1e6, segments),
        ("udp2_mbps", 1e6, datagrams),
        ("pps_saturated", 1.0, small),
        ("pps_carried", 1.0, small),
        ("rate_pps", 1.0, frame),
    ] {
        let mut limit = |rate: Option<u64>, (counted, cost): (u64, f64), by: &str| {
            let value = rate.map(|rate| rate as f64 * counted as f64 / cost / unit);
            let (metric, by) = (metric.to_owned(), by.to_owned());
            limits.extend(value.map(|value| UpperLimit { metric, value, by }));
        };
        limit(settings.port_rate().0, (at_port.0, at_port.1 as f64), "ports");
        if let Some((counted, bytes)) = in_stream {
            limit(control, (counted, bytes as f64 * stretch), "control link");
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::{line_bytes, packet_in_overhead, packet_out_overhead, upper_limits};
    use crate::rate::LinkRate;
    use crate::settings::{AppKind, Forwarding, Settings};
    use openflow::Version;

    fn hub() -> Settings {
        let rate = Some(LinkRate(Some(100_000_000)));
        let (forwarding, version) = (Some(Forwarding::Controller), Some("1.0".to_owned()));
        Settings { port_rate: rate, control_rate: rate, forwarding, version, ..<_>::default() }
    }

    #[test]
    fn the_arithmetic_of_e1() {
        let limits = upper_limits(&hub());
        let rounded = |metric: &str, by: &str| {
            let found = limits.iter().find(|limit| limit.metric == metric && limit.by == by);
            (found.unwrap().value * 100.0).round() / 100.0
        };
        let udp = ["ports", "control link"].map(|by| rounded("udp2_mbps", by));
        assert_eq!((udp, rounded("tcp_mbps", "ports")), ([95.70, 90.10], 94.15));
        assert!((85.0..87.0).contains(&rounded("tcp_mbps", "control link")));
        assert_eq!(rounded("pps_saturated", "ports").round(), 148_810.0);
        let added = (packet_in_overhead(Version::V1_0), packet_out_overhead(Version::V1_0));
        assert_eq!(added, (18, 24));
    }

    #[test]
    fn a_control_link_limits_a_hub_only() {
        let has_control_limit = |forwarding, app| {
            let of = Settings { forwarding: Some(forwarding), app, ..hub() };
            upper_limits(&of).iter().any(|limit| limit.by == "control link")
        };
        assert!(has_control_limit(Forwarding::Controller, None));
        assert!(has_control_limit(Forwarding::Controller, Some(AppKind::Hub)));
        assert!(!has_control_limit(Forwarding::Controller, Some(AppKind::LearningSwitch)));
        assert!(!has_control_limit(Forwarding::Flows, None), "with installed entries");
        assert!(upper_limits(&Settings::default()).is_empty(), "links without a rate");
    }

    #[test]
    fn short_frames_take_the_minimum_line_time() {
        assert_eq!(line_bytes(60, 1), 84);
        assert_eq!(line_bytes(42, 1), 84);
        assert_eq!(line_bytes(1512 * 3, 3), 1536 * 3);
    }
}
