//! Counters with one writer, and those of ports, queues and groups with a cell for each forwarder.
//!
//! A cell is a plain number for its writer: a load, an addition and a store, without a locked
//! instruction. Two writers on one cell would lose counts, so each forwarder has its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use openflow::QueueId;

use super::sync::{AtomicU64, Ordering};
use crate::time::Nanos;

/// A counter with one writer.
#[derive(Debug)]
pub(crate) struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    /// The value.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value. For the one writer.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to the value. For the one writer.
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    /// Sets the value if it is higher. For the one writer.
    #[inline]
    pub(crate) fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }
}

/// Packets and bytes.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    pub(crate) packets: Cell,
    pub(crate) bytes: Cell,
}

impl Pair {
    /// Adds both. For the one writer.
    #[inline]
    pub(crate) fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

/// Sums pairs.
fn sum<'a>(pairs: impl Iterator<Item = &'a Pair>) -> (u64, u64) {
    pairs.fold((0, 0), |(packets, bytes), pair| {
        (packets.wrapping_add(pair.packets.get()), bytes.wrapping_add(pair.bytes.get()))
    })
}

/// Counts of a port by one forwarder; on a line of its own, as another forwarder's stands beside.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct PortCell {
    pub(crate) rx: Pair,
    pub(crate) rx_dropped: Cell,
    pub(crate) tx: Pair,
    pub(crate) tx_dropped: Cell,
}

/// A port's counters.
#[derive(Debug)]
pub(crate) struct PortCounters {
    cells: Box<[PortCell]>,
    queues: Mutex<BTreeMap<QueueId, Arc<QueueCounters>>>,
}

impl PortCounters {
    pub(crate) fn new(forwarders: usize) -> Self {
        let cells = (0..forwarders).map(|_| PortCell::default()).collect();
        Self { cells, queues: Mutex::default() }
    }

    /// The cells, one for each forwarder.
    #[inline]
    pub(crate) fn cells(&self) -> &[PortCell] {
        &self.cells
    }

    /// The counters of a queue, whose age begins with the first packet that is sent to it. Takes a
    /// lock: a forwarder keeps what it got.
    pub(crate) fn queue(&self, queue: QueueId, now: Nanos) -> Arc<QueueCounters> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(QueueCounters::new(self.cells.len(), now));
        Arc::clone(queues.entry(queue).or_insert_with(fresh))
    }

    /// The queues that packets were sent to.
    pub(crate) fn queues(&self) -> BTreeMap<QueueId, Arc<QueueCounters>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A queue's counters.
#[derive(Debug)]
pub(crate) struct QueueCounters {
    since: Nanos,
    cells: Box<[Pair]>,
}

impl QueueCounters {
    fn new(forwarders: usize, since: Nanos) -> Self {
        Self { since, cells: (0..forwarders).map(|_| Pair::default()).collect() }
    }

    /// Packets and bytes.
    pub(crate) fn sum(&self) -> (u64, u64) {
        sum(self.cells.iter())
    }

    /// When the first packet was sent to it.
    pub(crate) fn since(&self) -> Nanos {
        self.since
    }

    /// The cells, one for each forwarder.
    #[inline]
    pub(crate) fn cells(&self) -> &[Pair] {
        &self.cells
    }
}

/// A group's counters. A group whose buckets change gets new ones for its buckets.
#[derive(Debug)]
pub(crate) struct GroupCounters {
    group: Arc<[GroupCell]>,
    /// For each forwarder, a pair for each bucket.
    buckets: Box<[Box<[Pair]>]>,
}

/// Counts of a group by one forwarder, on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct GroupCell(Pair);

impl GroupCounters {
    pub(crate) fn new(forwarders: usize, buckets: usize) -> Self {
        let group = (0..forwarders).map(|_| GroupCell::default()).collect();
        Self { group, buckets: bucket_cells(forwarders, buckets) }
    }

    /// The counters of the same group with other buckets.
    pub(crate) fn with_buckets(&self, buckets: usize) -> Self {
        let forwarders = self.group.len();
        Self { group: Arc::clone(&self.group), buckets: bucket_cells(forwarders, buckets) }
    }

    /// The group's cell of a forwarder.
    #[inline]
    pub(crate) fn group(&self, forwarder: usize) -> Option<&Pair> {
        self.group.get(forwarder).map(|cell| &cell.0)
    }

    /// A bucket's cell of a forwarder.
    #[inline]
    pub(crate) fn bucket(&self, forwarder: usize, bucket: usize) -> Option<&Pair> {
        self.buckets.get(forwarder)?.get(bucket)
    }

    /// Packets and bytes of the group.
    pub(crate) fn sum(&self) -> (u64, u64) {
        sum(self.group.iter().map(|cell| &cell.0))
    }

    /// Packets and bytes of a bucket.
    pub(crate) fn bucket_sum(&self, bucket: usize) -> (u64, u64) {
        sum(self.buckets.iter().filter_map(|cells| cells.get(bucket)))
    }
}

fn bucket_cells(forwarders: usize, buckets: usize) -> Box<[Box<[Pair]>]> {
    (0..forwarders).map(|_| (0..buckets).map(|_| Pair::default()).collect()).collect()
}
