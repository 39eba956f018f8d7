//! Counts of packets by the parts of the datapath that they pass, in this forwarder's counters.

use openflow::{GroupId, PortNo, QueueId, TableId};

use super::Replica;
use crate::counter::{Counter, DropReason};
use crate::fast::ids::EntryId;
use crate::fast::op::Life;
use crate::fast::shared::PortCell;
use crate::time::Nanos;

impl Replica {
    /// Counts a lookup in a table without a match.
    pub(in crate::fast::forwarder) fn count_miss(&self, table: TableId, packets: u64) {
        if let Some(cell) = self.counters().table(table) {
            cell.lookups.add(packets);
        }
    }

    /// Counts packets that matched an entry.
    pub(in crate::fast::forwarder) fn count_hit(
        &self,
        table: TableId,
        id: EntryId,
        packets: u64,
        bytes: u64,
    ) {
        let own = self.counters();
        if let Some(cell) = own.table(table) {
            cell.lookups.add(packets);
            cell.matches.add(packets);
        }
        own.entries.add(id, packets, bytes);
    }

    /// Marks an entry with an idle timeout as used, at once.
    #[inline]
    pub(in crate::fast::forwarder) fn touch(&self, id: EntryId, life: Life, now: Nanos) {
        if life.idle_timeout_s != 0 {
            self.counters().entries.touch(id, now);
        }
    }

    /// Counts packets that a port refused to take in.
    pub(in crate::fast::forwarder) fn count_rx_dropped(&self, in_port: PortNo, packets: u64) {
        if let Some(cell) = self.port_cell(in_port) {
            cell.rx_dropped.add(packets);
        }
    }

    /// Counts a drop.
    #[inline]
    pub(in crate::fast::forwarder) fn count_drops(&self, reason: DropReason, packets: u64) {
        self.counters().add_drops(reason, packets);
    }

    /// Adds to a counter of the datapath.
    #[inline]
    pub(in crate::fast::forwarder) fn count(&self, counter: Counter, amount: u64) {
        self.counters().add(counter, amount);
    }

    /// This forwarder's counters of a port.
    #[inline]
    pub(in crate::fast::forwarder) fn port_cell(&self, port: PortNo) -> Option<&PortCell> {
        self.tx_counters.get(&port)?.counters.cells().get(self.number)
    }

    /// Counts packets that leave by a port.
    pub(in crate::fast::forwarder) fn count_tx(
        &self,
        port: PortNo,
        queue: Option<QueueId>,
        packets: u64,
        bytes: u64,
        now: Nanos,
    ) {
        self.count(Counter::Outputs, packets);
        let Some(counters) = self.tx_counters.get(&port) else { return };
        if let Some(cell) = counters.counters.cells().get(self.number) {
            cell.tx.add(packets, bytes);
        }
        if let Some(queue) = queue {
            let mut queues = counters.queues.borrow_mut();
            let counters =
                queues.entry(queue).or_insert_with(|| counters.counters.queue(queue, now));
            if let Some(cell) = counters.cells().get(self.number) {
                cell.add(packets, bytes);
            }
        }
    }

    /// Counts packets of a group.
    pub(in crate::fast::forwarder) fn count_group(&self, id: GroupId, packets: u64, bytes: u64) {
        let cell = self.group_counters.get(&id).and_then(|group| group.group(self.number));
        if let Some(cell) = cell {
            cell.add(packets, bytes);
        }
    }

    /// Counts packets of a bucket.
    pub(in crate::fast::forwarder) fn count_bucket(
        &self,
        id: GroupId,
        bucket: usize,
        packets: u64,
        bytes: u64,
    ) {
        let group = self.group_counters.get(&id);
        if let Some(cell) = group.and_then(|group| group.bucket(self.number, bucket)) {
            cell.add(packets, bytes);
        }
    }
}
