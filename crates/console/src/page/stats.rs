//! The stats page: all that is counted of each port.

use generator::statistics::PortStatistics;

use super::{PageInput, port_heads, table, title};

/// A row of the table: its label and the value of a port.
type Row = (&'static str, fn(&PortStatistics) -> String);

const ROWS: [Row; 16] = [
    ("Tx packets", |p| p.tx.traffic.packets.to_string()),
    ("Tx bytes", |p| p.tx.traffic.bytes.to_string()),
    ("Tx packets/s", |p| format!("{:.0}", p.tx.traffic.pps)),
    ("Tx Mbit/s layer 1", |p| format!("{:.1}", p.tx.traffic.l1_bps / 1e6)),
    ("Tx unsent", |p| p.tx.unsent.to_string()),
    ("Tx late", |p| p.tx.late.to_string()),
    ("Tx latest, us", |p| microseconds(p.tx.late_ns_max)),
    ("Gap median, us", |p| microseconds(p.tx.gaps.p50_ns)),
    ("Gap 99 %, us", |p| microseconds(p.tx.gaps.p99_ns)),
    ("Gap longest, us", |p| microseconds(p.tx.gaps.max_ns)),
    ("Rx packets", |p| p.rx.traffic.packets.to_string()),
    ("Rx bytes", |p| p.rx.traffic.bytes.to_string()),
    ("Rx packets/s", |p| format!("{:.0}", p.rx.traffic.pps)),
    ("Rx Mbit/s layer 1", |p| format!("{:.1}", p.rx.traffic.l1_bps / 1e6)),
    ("Rx drops", |p| p.rx.losses.drops.to_string()),
    ("Rx errors", |p| p.rx.losses.errors.to_string()),
];

fn microseconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e3)
}

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Stats")];
    let ports = &input.statistics.ports;
    let heads = port_heads(input);
    let row = |(label, value): &Row| {
        let cells = ports.iter().map(value);
        std::iter::once((*label).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    lines.extend(table(input, heads, ROWS.iter().map(row)));
    for port in ports {
        if let Some(stop) = &port.stopped {
            let (at_s, reason) = (stop.at_ns as f64 / 1e9, &stop.reason);
            lines.push(format!("Port {} stopped at {at_s:.3} s: {reason}", port.port));
        }
    }
    lines
}
