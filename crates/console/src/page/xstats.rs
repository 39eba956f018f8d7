//! The xstats page: the counters of the devices since they were opened, and what the session counts
//! beside its streams.

use generator::statistics::PortStatistics;
use netdev::PortCounters;

use super::{PageInput, port_heads, table, title};

/// A row: its label, and the value of a port.
type Row = (&'static str, fn(&PortCounters, &PortStatistics) -> u64);

const ROWS: [Row; 11] = [
    ("rx_packets", |counters, _| counters.rx_packets),
    ("rx_bytes", |counters, _| counters.rx_bytes),
    ("rx_drops", |counters, _| counters.rx_drops),
    ("rx_errors", |counters, _| counters.rx_errors),
    ("tx_packets", |counters, _| counters.tx_packets),
    ("tx_bytes", |counters, _| counters.tx_bytes),
    ("tx_drops", |counters, _| counters.tx_drops),
    ("tx_errors", |counters, _| counters.tx_errors),
    ("foreign frames received", |_, port| port.rx.foreign),
    ("answers not sent", |_, port| port.tx.unanswered),
    ("departures", |_, port| port.tx.gaps.count),
];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Xstats")];
    let ports = &input.statistics.ports;
    let heads = port_heads(input);
    let row = |(label, value): &Row| {
        let cells = input.counters.iter().zip(ports).map(|(counters, port)| value(counters, port));
        let cells = cells.map(|count| count.to_string());
        std::iter::once((*label).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    lines.extend(table(input, heads, ROWS.iter().map(row)));
    lines
}
