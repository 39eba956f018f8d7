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

/// The most of each metric by the rate of the ports, and by that of a control link which every
/// packet crosses, both in bit/s; `None` where a link is not shaped. Small frames are packed
/// densely into the control link's stream, and TCP acknowledges two segments at a time.
fn ceilings(
    ports: Option<u64>,
    control: Option<u64>,
    version: Version,
    frame_size: u32,
) -> [(&'static str, Option<f64>, Option<f64>); 5] {
    let port = |payload: u64, line_bytes: u64| {
        ports.map(|rate| rate as f64 * payload as f64 / line_bytes as f64)
    };
    // What a byte of the control connection costs on the line.
    let stretch = (TCP_PAYLOAD + TCP_HEADERS + LINE_OVERHEAD) as f64 / TCP_PAYLOAD as f64;
    let stream = |payload: u64, bytes: u64| {
        control.map(|rate| rate as f64 * payload as f64 / (bytes as f64 * stretch))
    };
    let mbps = |bps: Option<f64>| bps.map(|bps| bps / 1e6);
    let added = packet_in_overhead(version).max(packet_out_overhead(version));
    let (tcp, udp) = (TCP_PAYLOAD + TCP_HEADERS, UDP_PAYLOAD + UDP_HEADERS);
    let two_segments = 2 * (tcp + added) + TCP_HEADERS + added;
    let tcp_mbps = mbps(port(TCP_PAYLOAD, tcp + LINE_OVERHEAD));
    let udp_mbps = mbps(port(UDP_PAYLOAD, udp + LINE_OVERHEAD));
    let small_pps = (port(1, 8 * LINE_MINIMUM), stream(1, 8 * (60 + added)));
    [
        ("tcp_mbps", tcp_mbps, mbps(stream(2 * TCP_PAYLOAD, two_segments))),
        ("udp2_mbps", udp_mbps, mbps(stream(UDP_PAYLOAD, udp + added))),
        ("pps_saturated", small_pps.0, small_pps.1),
        ("pps_carried", small_pps.0, small_pps.1),
        ("rate_pps", ports.map(|rate| rate as f64 / frame_line_bits(frame_size)), None),
    ]
}

/// Upper limits of a cell by its links, by the metrics of the methods.
pub fn upper_limits(settings: &Settings) -> Vec<UpperLimit> {
    let is_hub = settings.forwarding() == Forwarding::Controller
        && settings.app.unwrap_or(AppKind::Hub) == AppKind::Hub;
    let (ports, control) = (settings.port_rate().0, settings.control_rate().0);
    // A text that is no version is an error before any cell is measured.
    let version = settings.version().unwrap_or(Version::V1_3);
    let rows = ceilings(ports, control.filter(|_| is_hub), version, settings.frame_size());
    let limit = |metric: &str, value: Option<f64>, by: &str| {
        let (metric, by) = (metric.to_owned(), by.to_owned());
        value.map(|value| UpperLimit { metric, value, by })
    };
    let both = |(metric, port, control)| {
        [limit(metric, port, "ports"), limit(metric, control, "control link")]
    };
    rows.into_iter().flat_map(both).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{ceilings, line_bytes, packet_in_overhead, packet_out_overhead, upper_limits};
    use crate::rate::LinkRate;
    use crate::settings::{AppKind, Forwarding, Settings};
    use openflow::Version;

    #[test]
    fn the_arithmetic_of_e1() {
        let rate = Some(100_000_000);
        let [tcp, udp, small, ..] = ceilings(rate, rate, Version::V1_0, 64);
        let rounded = |value: Option<f64>| (value.unwrap() * 100.0).round() / 100.0;
        assert_eq!((rounded(udp.1), rounded(udp.2)), (95.70, 90.10));
        assert_eq!(rounded(tcp.1), 94.15);
        assert!((85.0..87.0).contains(&rounded(tcp.2)));
        assert_eq!(small.1.unwrap().round(), 148_810.0);
        let added = (packet_in_overhead(Version::V1_0), packet_out_overhead(Version::V1_0));
        assert_eq!(added, (18, 24));
    }

    #[test]
    fn links_without_a_rate_have_no_ceiling() {
        let free = ceilings(None, None, Version::V1_3, 64);
        assert!(free.iter().all(|(_, port, control)| port.is_none() && control.is_none()));
    }

    #[test]
    fn a_control_link_limits_a_hub_only() {
        let has_control_limit = |forwarding, app| {
            let control_rate = Some(LinkRate(Some(100_000_000)));
            let forwarding = Some(forwarding);
            let of = Settings { control_rate, forwarding, app, ..Settings::default() };
            upper_limits(&of).iter().any(|limit| limit.by == "control link")
        };
        assert!(has_control_limit(Forwarding::Controller, None));
        assert!(has_control_limit(Forwarding::Controller, Some(AppKind::Hub)));
        assert!(!has_control_limit(Forwarding::Controller, Some(AppKind::LearningSwitch)));
        assert!(!has_control_limit(Forwarding::Flows, None), "with installed entries");
    }

    #[test]
    fn short_frames_take_the_minimum_line_time() {
        assert_eq!(line_bytes(60, 1), 84);
        assert_eq!(line_bytes(42, 1), 84);
        assert_eq!(line_bytes(1512 * 3, 3), 1536 * 3);
    }
}
