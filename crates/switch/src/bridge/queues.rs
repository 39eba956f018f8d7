//! The queues of ports on the agent's side: their configuration and their counters.

use std::sync::Arc;

use datapath::{Nanos, QueueRates, QueueTally};
use openflow::port::{PacketQueue, QueueStats};
use openflow::{PortNo, QueueId};

use super::{Bridge, BridgePort, ShardLink};
use crate::worker::{QueueCells, Shaper, Shard, ShardCommand};

/// The queue that every dummy has, as those of Open vSwitch have one, which counts nothing.
const DUMMY_QUEUE: QueueId = QueueId(0);

/// A count that is not kept (clause 7.3.5.8).
const UNKNOWN: u64 = u64::MAX;

/// The queues of one port.
#[derive(Debug)]
pub(crate) struct BridgeQueues {
    pub(super) port: PortNo,
    rate_bps: u64,
    queues: Vec<QueueRates>,
    cells: Arc<QueueCells>,
}

impl BridgeQueues {
    /// The queues of a port of this rate, with the counters that its worker writes.
    pub(crate) fn new(
        port: PortNo,
        rate_bps: u64,
        queues: Vec<QueueRates>,
        cells: Arc<QueueCells>,
    ) -> Self {
        Self { port, rate_bps, queues, cells }
    }
}

impl Bridge {
    /// The same bridge with these queues.
    pub(crate) fn with_queues(self, queues: Vec<BridgeQueues>) -> Self {
        self.queues.replace(queues);
        self
    }

    /// Gives a port other queues, or none.
    pub(crate) fn reshape(&self, port: PortNo, queues: Option<(Shaper, BridgeQueues)>) {
        let place = self.map.borrow().location(port);
        let Some((place, link)) =
            place.and_then(|place| Some((place, self.links.get(place.worker)?)))
        else {
            return;
        };
        let (shaper, held) = queues.unzip();
        // Only its home holds frames back. It goes on sending alone when the queues are gone, since
        // what it still has must not be overtaken.
        let from_home = self.map.borrow().sent_from_home(port).filter(|_| shaper.is_some());
        if let Some(map) = from_home {
            self.set_map(map);
        }
        let mut all = self.queues.borrow_mut();
        all.retain(|held| held.port != port);
        all.extend(held);
        // Frames past the queues would be faster than these allow.
        let sends = shaper.is_none();
        let set = move |shard: &mut Shard| shard.set_tier_sends(port, sends);
        self.stage_for_all(|| ShardCommand::Ask(Box::new(set)));
        self.links.iter().for_each(ShardLink::send);
        let command = ShardCommand::Reshape(place.index, shaper.map(Box::new));
        link.staged.borrow_mut().push(command);
        link.send();
    }

    /// The tallies of the queues of a port; frames of no queue count under number 0.
    pub(crate) fn queue_tallies(&self, port: PortNo) -> Vec<(QueueId, QueueTally)> {
        let queues = self.queues.borrow();
        let held = queues.iter().find(|held| held.port == port);
        held.map(|held| held.cells.tallies().collect()).unwrap_or_default()
    }

    /// The queues that a port is configured with, or all ports ([`PortNo::ANY`]).
    pub(super) fn queue_configs(&self, port: PortNo) -> Vec<PacketQueue> {
        let queues = self.queues.borrow();
        let meant = queues.iter().filter(|held| port == PortNo::ANY || held.port == port);
        let config = |held: &BridgeQueues| {
            let (port, rate_bps) = (held.port, held.rate_bps);
            let queue = move |queue: &QueueRates| PacketQueue {
                queue_id: queue.id,
                port,
                properties: queue.properties(rate_bps),
            };
            held.queues.iter().map(queue).collect::<Vec<_>>()
        };
        let of_dummies = self.dummies_of(port).map(|port| PacketQueue {
            queue_id: DUMMY_QUEUE,
            port,
            properties: Vec::new(),
        });
        meant.flat_map(config).chain(of_dummies).collect()
    }

    /// The ports, of those that are meant, which have the one queue of a dummy.
    pub(super) fn dummies_of(&self, port: PortNo) -> impl Iterator<Item = PortNo> {
        let ports = self.ports.borrow();
        let is_meant = |held: &&BridgePort| {
            (port == PortNo::ANY || held.number == port) && held.spec.kind().word == "dummy"
        };
        ports.iter().filter(is_meant).map(|held| held.number).collect::<Vec<_>>().into_iter()
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
        let queues = self.queues.borrow();
        let is_ours = |number: PortNo| queues.iter().any(|held| held.port == number);
        let mut stats: Vec<QueueStats> =
            known.into_iter().filter(|stats| !is_ours(stats.port_no)).collect();
        let (duration_s, duration_ns) = now.age(self.clock.begun());
        let has_dummies = queue == QueueId::ALL || queue == DUMMY_QUEUE;
        let of_dummies = self.dummies_of(port).filter(|_| has_dummies);
        stats.extend(of_dummies.map(|port_no| QueueStats {
            port_no,
            queue_id: DUMMY_QUEUE,
            tx_bytes: UNKNOWN,
            tx_packets: UNKNOWN,
            tx_errors: UNKNOWN,
            duration_s: u32::MAX,
            duration_ns: u32::MAX,
        }));
        for held in queues.iter().filter(|held| port == PortNo::ANY || held.port == port) {
            let meant =
                held.cells.tallies().filter(|(id, _)| queue == QueueId::ALL || *id == queue);
            stats.extend(meant.map(|(queue_id, tally)| QueueStats {
                port_no: held.port,
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
