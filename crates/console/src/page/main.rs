//! The main page: rates, counts and settings, a column for each port and one for all of them.

use generator::profile::Payload;
use generator::statistics::{PortStatistics, PortTraffic};

use super::{PageInput, port_statistics, title};
use crate::state::packet::mac_text;
use crate::state::{EtherKind, PacketSettings, PortSettings, RangeField, SendMode};
use crate::streams;

/// Columns of a label, and of a port.
const LABEL: usize = 17;
const COLUMN: usize = 21;

/// A row: label, a port's value, and the value of all ports together.
type Row = (&'static str, fn(&Column<'_>) -> String, Option<fn(&Total) -> String>);

struct Column<'a> {
    port: usize,
    settings: &'a PortSettings,
    /// The packet of single mode, or the first one of range mode.
    packet: PacketSettings,
    counts: &'a PortStatistics,
}

#[derive(Default)]
struct Total {
    rx: PortTraffic,
    tx: PortTraffic,
}

const ROWS: [Row; 20] = [
    ("Flags:Port", |c| flags(c), None),
    ("Link State", |c| link(c.counts), Some(|_| "---Total Rate---".to_owned())),
    ("Pkts/s Rx", |c| rate(c.counts.rx.traffic.pps), Some(|t| rate(t.rx.pps))),
    ("       Tx", |c| rate(c.counts.tx.traffic.pps), Some(|t| rate(t.tx.pps))),
    (
        "MBits/s Rx/Tx",
        |c| megabits(&c.counts.rx.traffic, &c.counts.tx.traffic),
        Some(|t| megabits(&t.rx, &t.tx)),
    ),
    (
        "Total Rx Pkts",
        |c| c.counts.rx.traffic.packets.to_string(),
        Some(|t| t.rx.packets.to_string()),
    ),
    (
        "      Tx Pkts",
        |c| c.counts.tx.traffic.packets.to_string(),
        Some(|t| t.tx.packets.to_string()),
    ),
    ("      Rx MBs", |c| megabytes(&c.counts.rx.traffic), Some(|t| megabytes(&t.rx))),
    ("      Tx MBs", |c| megabytes(&c.counts.tx.traffic), Some(|t| megabytes(&t.tx))),
    ("Rx Drops/Errors", |c| pair(c.counts.rx.losses.drops, c.counts.rx.losses.errors), None),
    ("Tx Unsent/Late", |c| pair(c.counts.tx.unsent, c.counts.tx.late), None),
    ("Pattern Type", |c| pattern(&c.packet.payload), None),
    ("Tx Count/Rate", |c| count_and_rate(c.settings), None),
    ("PktSize", |c| size(c.settings), None),
    ("Src/Dest Port", |c| ports(&c.packet), None),
    ("Pkt Type:VLAN ID", |c| packet_type(&c.packet), None),
    ("Dst  IP Address", |c| c.packet.dst_ip.to_string(), None),
    ("Src  IP Address", |c| source(&c.packet), None),
    ("Dst MAC Address", |c| mac_text(c.packet.dst_mac), None),
    ("Src MAC Address", |c| mac_text(c.packet.src_mac), None),
];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let fitting = input.width.saturating_sub(LABEL + COLUMN) / COLUMN;
    // The sum is what a narrow screen does without first.
    let has_sum = fitting > 0;
    let shown = input.state.ports.iter().enumerate().skip(input.state.first_port);
    let columns: Vec<Column<'_>> = shown
        .take(fitting.max(1))
        .filter_map(|(port, settings)| {
            let packet = match settings.mode() {
                SendMode::Range => streams::range_packet(settings),
                SendMode::Single | SendMode::Sequence | SendMode::Capture => {
                    settings.single.clone()
                }
            };
            Some(Column { port, settings, packet, counts: port_statistics(input, port)? })
        })
        .collect();
    let mut total = Total::default();
    for port in &input.statistics.ports {
        add(&mut total.rx, &port.rx.traffic);
        add(&mut total.tx, &port.tx.traffic);
    }
    let mut lines = vec![title(input, "Main")];
    for (label, value, all) in ROWS {
        let mut line = format!("{label:<w$}:", w = LABEL - 1);
        for column in &columns {
            line += &format!("{:>COLUMN$}", value(column));
        }
        if let Some(all) = all.filter(|_| has_sum) {
            line += &format!("{:>COLUMN$}", all(&total));
        }
        lines.push(line);
    }
    lines
}

fn add(sum: &mut PortTraffic, traffic: &PortTraffic) {
    sum.packets += traffic.packets;
    sum.bytes += traffic.bytes;
    sum.pps += traffic.pps;
    sum.l1_bps += traffic.l1_bps;
    sum.l2_bps += traffic.l2_bps;
}

/// The send mode of the port, and whether it sends now.
fn flags(column: &Column<'_>) -> String {
    let mode = match column.settings.mode() {
        SendMode::Single => "Single",
        SendMode::Range => "Range",
        SendMode::Sequence => "Sequence",
        SendMode::Capture => "Pcap",
    };
    let latency = if column.settings.is_latency_on { "L" } else { "-" };
    let sending = match (column.counts.transmitting, column.counts.paused) {
        (true, true) => "P",
        (true, false) => "T",
        (false, _) => "-",
    };
    format!("{sending}{latency} {mode}:{}", column.port)
}

fn link(counts: &PortStatistics) -> String {
    match counts.link_up {
        true => format!("<UP-{:.0}-FD>", counts.line_rate_bps / 1e6),
        false => "<--Down-->".to_owned(),
    }
}

fn rate(pps: f64) -> String {
    format!("{pps:.0}")
}

fn megabits(rx: &PortTraffic, tx: &PortTraffic) -> String {
    format!("{:.0}/{:.0}", rx.l1_bps / 1e6, tx.l1_bps / 1e6)
}

fn megabytes(traffic: &PortTraffic) -> String {
    format!("{}", traffic.bytes / 1_000_000)
}

fn pair(left: u64, right: u64) -> String {
    format!("{left}/{right}")
}

fn pattern(payload: &Payload) -> String {
    match payload {
        Payload::Abc => "abcd...".to_owned(),
        Payload::Zero => "zero".to_owned(),
        Payload::User(text) => text.chars().take(COLUMN - 2).collect(),
    }
}

fn count_and_rate(settings: &PortSettings) -> String {
    let count = match settings.count {
        0 => "Forever".to_owned(),
        count => count.to_string(),
    };
    format!("{count} /{}", settings.rate)
}

fn size(settings: &PortSettings) -> String {
    match settings.mode() {
        SendMode::Single => settings.single.size.to_string(),
        SendMode::Range => {
            let span = settings.range.span(RangeField::PktSize);
            match span.inc {
                0 => span.start.to_string(),
                _ => format!("{}-{}", span.min, span.max),
            }
        }
        SendMode::Sequence => "see page seq".to_owned(),
        SendMode::Capture => "see page pcap".to_owned(),
    }
}

fn ports(packet: &PacketSettings) -> String {
    format!("{} / {}", packet.src_port, packet.dst_port)
}

fn packet_type(packet: &PacketSettings) -> String {
    let protocol = packet.protocol.word().to_uppercase();
    let kind = match packet.kind {
        EtherKind::Arp => "ARP".to_owned(),
        EtherKind::Ipv4 => format!("IPv4 / {protocol}"),
        EtherKind::Ipv6 => format!("IPv6 / {protocol}"),
    };
    format!("{kind}:{:04}", packet.vlan_id)
}

fn source(packet: &PacketSettings) -> String {
    format!("{}/{}", packet.src_ip, packet.src_prefix)
}
