//! The word that `weir ctl top` asks: the counts of all bridges at one moment.

use control::{BridgeCounts, CountsRecord, PortCounts, WorkerCounts};

use super::answer::{Record, Records};
use crate::agent::Bridges;
use crate::snapshot::{BridgeSnapshot, DropCount, PortSnapshot, drop_reasons, snapshot};
use crate::worker::PerfReading;

/// A record for each bridge, and one for each worker.
pub(super) async fn counts(bridges: &Bridges) -> Records {
    let snapshot = snapshot(bridges).await;
    let reasons: Vec<_> = drop_reasons().collect();
    let bridges = snapshot.bridges.iter();
    let bridges = bridges.map(|one| CountsRecord::Bridge(bridge(one, &reasons)));
    let workers = snapshot.workers.iter();
    let workers = workers.map(|(index, perf)| CountsRecord::Worker(worker(*index, perf)));
    bridges.chain(workers).filter_map(record).collect()
}

/// A structure of numbers, strings and string-keyed maps always has a JSON form.
fn record(counts: CountsRecord) -> Option<Record> {
    let value = serde_json::to_value(counts).ok()?;
    Some(Record { text: value.to_string(), value })
}

fn bridge(bridge: &BridgeSnapshot, reasons: &[(String, DropCount)]) -> BridgeCounts {
    let dropped = |(name, of): &(String, _)| (name.clone(), bridge.dropped(*of));
    BridgeCounts {
        bridge: bridge.name.clone(),
        entries: bridge.entries(),
        connections: bridge.connections as u64,
        ports: bridge.ports.iter().map(port).collect(),
        drops: reasons.iter().map(dropped).filter(|(_, count)| *count > 0).collect(),
    }
}

fn port(port: &PortSnapshot) -> PortCounts {
    let stats = &port.stats;
    PortCounts {
        port_no: port.number.0,
        name: port.name.clone(),
        up: port.is_up,
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_dropped: stats.rx_dropped,
        tx_dropped: stats.tx_dropped,
    }
}

fn worker(index: usize, perf: &PerfReading) -> WorkerCounts {
    WorkerCounts {
        worker: index,
        rx_packets: perf.packets,
        tx_packets: perf.sent,
        asleep_ns: perf.asleep_ns,
        idle_ns: perf.idle_ns,
        lived_ns: perf.lived_ns,
    }
}
