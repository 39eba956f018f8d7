//! The queues of ports as the agent sees them: their configuration, and what passed them.

use std::sync::Arc;

use datapath::{Nanos, QueueRates};
use openflow::port::{PacketQueue, QueueStats};
use openflow::{PortNo, QueueId};

use super::Bridge;
use crate::worker::QueueCells;

/// The queues of one port.
#[derive(Debug)]
pub(crate) struct QueueFacts {
    port: PortNo,
    queues: Vec<QueueRates>,
    cells: Arc<QueueCells>,
}

impl QueueFacts {
    /// The queues of a port, with the counters that its worker writes.
    pub(crate) fn new(port: PortNo, queues: Vec<QueueRates>, cells: Arc<QueueCells>) -> Self {
        Self { port, queues, cells }
    }
}

impl Bridge {
    /// The same bridge with these queues.
    pub(crate) fn with_queues(mut self, queues: Vec<QueueFacts>) -> Self {
        self.queues = queues;
        self
    }

    /// The queues that a port is configured with, or all ports ([`PortNo::ANY`]).
    pub(super) fn queue_configs(&self, port: PortNo) -> Vec<PacketQueue> {
        let meant = self.queues.iter().filter(|facts| port == PortNo::ANY || facts.port == port);
        let config = |facts: &QueueFacts| {
            let port = facts.port;
            let queue = move |queue: &QueueRates| PacketQueue {
                queue_id: queue.id,
                port,
                properties: queue.properties(),
            };
            facts.queues.iter().map(queue).collect::<Vec<_>>()
        };
        meant.flat_map(config).collect()
    }

    /// Puts the counters of configured queues, those that are meant, in the place of what tables
    /// know of them: tables know what was sent to a queue, not what left it. A port's frames of no
    /// queue count under number 0.
    pub(super) fn queue_stats(
        &self,
        known: Vec<QueueStats>,
        port: PortNo,
        queue: QueueId,
        now: Nanos,
    ) -> Vec<QueueStats> {
        let is_ours = |number: PortNo| self.queues.iter().any(|facts| facts.port == number);
        let mut stats: Vec<QueueStats> =
            known.into_iter().filter(|stats| !is_ours(stats.port_no)).collect();
        let (duration_s, duration_ns) = now.age(Nanos(0));
        for facts in self.queues.iter().filter(|f| port == PortNo::ANY || f.port == port) {
            let meant =
                facts.cells.tallies().filter(|(id, _)| queue == QueueId::ALL || *id == queue);
            stats.extend(meant.map(|(queue_id, tally)| QueueStats {
                port_no: facts.port,
                queue_id,
                tx_bytes: tally.bytes,
                tx_packets: tally.packets,
                tx_errors: tally.dropped,
                duration_s,
                duration_ns,
            }));
        }
        stats.sort_by_key(|stats| (stats.port_no, stats.queue_id));
        stats
    }
}
