//! Counters of a port: each queue adds to its own, and the device handle reads them all.
//!
//! A queue counts one call in plain numbers and adds them once, so that a frame costs no shared
//! memory access. It must never be needed to hold a queue in order to read what it has counted.

use std::iter::Sum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use packet::PacketBuf;
use serde::Serialize;

/// Counts of a port since it was opened. Bytes are those of frames without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Frames received, as handed to the caller.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that arrived and were lost for want of room.
    pub rx_drops: u64,
    /// Frames that arrived broken, or longer than the port can take.
    pub rx_errors: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that the port took and dropped by itself; those that it did not take are not here.
    pub tx_drops: u64,
    /// Frames that the port took and could not send: longer than the MTU, shorter than a header, or
    /// on a full disk.
    pub tx_errors: u64,
}

impl PortCounters {
    /// The difference to earlier counts. What did not come to the device is taken back late, so
    /// that a count may be less than before.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            rx_bytes: self.rx_bytes.saturating_sub(earlier.rx_bytes),
            rx_drops: self.rx_drops.saturating_sub(earlier.rx_drops),
            rx_errors: self.rx_errors.saturating_sub(earlier.rx_errors),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
            tx_bytes: self.tx_bytes.saturating_sub(earlier.tx_bytes),
            tx_drops: self.tx_drops.saturating_sub(earlier.tx_drops),
            tx_errors: self.tx_errors.saturating_sub(earlier.tx_errors),
        }
    }
}

impl Sum for PortCounters {
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(Self::default(), |sum, one| Self {
            rx_packets: sum.rx_packets + one.rx_packets,
            rx_bytes: sum.rx_bytes + one.rx_bytes,
            rx_drops: sum.rx_drops + one.rx_drops,
            rx_errors: sum.rx_errors + one.rx_errors,
            tx_packets: sum.tx_packets + one.tx_packets,
            tx_bytes: sum.tx_bytes + one.tx_bytes,
            tx_drops: sum.tx_drops + one.tx_drops,
            tx_errors: sum.tx_errors + one.tx_errors,
        })
    }
}

/// Counts of one call of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
    pub(crate) errors: u64,
}

impl Counted {
    /// Counts what a wire would carry for a frame.
    #[inline]
    pub(crate) fn on_wire(&mut self, frame: &PacketBuf) {
        let (packets, bytes) = frame.on_wire();
        self.packets += packets;
        self.bytes += bytes;
    }

    /// Counts one frame of `len` bytes.
    #[inline]
    pub(crate) fn frame(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }
}

/// The counters of one queue. Queues of a port are written by different threads, so each has cache
/// lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct QueueCounters {
    packets: AtomicU64,
    bytes: AtomicU64,
    drops: AtomicU64,
    errors: AtomicU64,
}

impl QueueCounters {
    /// Adds what a call has counted. Only the queue itself calls this, so no atomic addition is
    /// needed.
    #[inline]
    pub(crate) fn add(&self, counted: &Counted) {
        let add = |counter: &AtomicU64, number: u64| {
            counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
        };
        add(&self.packets, counted.packets);
        add(&self.bytes, counted.bytes);
        if counted.drops | counted.errors != 0 {
            add(&self.drops, counted.drops);
            add(&self.errors, counted.errors);
        }
    }

    fn read(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            packets: read(&self.packets),
            bytes: read(&self.bytes),
            drops: read(&self.drops),
            errors: read(&self.errors),
        }
    }
}

/// The counters of a receive queue and a transmit queue, and of what passes in the kernel.
#[derive(Debug, Default)]
pub(crate) struct PortQueueCounters {
    pub(crate) rx: QueueCounters,
    pub(crate) tx: QueueCounters,
    pub(crate) tier: TierPortCounters,
}

/// The counters of a number of queues.
pub(crate) fn queue_counters(queues: usize) -> Vec<Arc<PortQueueCounters>> {
    (0..queues).map(|_| Arc::default()).collect()
}

impl PortQueueCounters {
    /// The sums.
    pub(crate) fn read(&self) -> PortCounters {
        let (rx, tx) = (self.rx.read(), self.tx.read());
        let of_queues = PortCounters {
            rx_packets: rx.packets,
            rx_bytes: rx.bytes,
            rx_drops: rx.drops,
            rx_errors: rx.errors,
            tx_packets: tx.packets,
            tx_bytes: tx.bytes,
            tx_drops: tx.drops,
            tx_errors: tx.errors,
        };
        [of_queues, self.tier.read()].into_iter().sum()
    }
}

/// The tier's counts for a port: by any forwarder of the bridge.
#[derive(Debug, Default)]
pub(crate) struct TierPortCounters {
    rx: [AtomicU64; 2],
    tx: [AtomicU64; 2],
    /// Of these, what did not come to the device.
    unsent: [AtomicU64; 2],
    tx_drops: AtomicU64,
    /// Packets dropped below a call that sends, which are no drops of the tier.
    dropped_below: AtomicU64,
}

impl TierPortCounters {
    pub(crate) fn add_rx(&self, packets: u64, bytes: u64) {
        add(&self.rx, packets, bytes);
    }

    pub(crate) fn add_tx(&self, packets: u64, bytes: u64) {
        add(&self.tx, packets, bytes);
    }

    pub(crate) fn add_unsent(&self, packets: u64, bytes: u64) {
        add(&self.unsent, packets, bytes);
    }

    pub(crate) fn read(&self) -> PortCounters {
        let (rx, unsent, sent) = (both(&self.rx), both(&self.unsent), both(&self.tx));
        PortCounters {
            rx_packets: rx.0,
            rx_bytes: rx.1,
            tx_packets: sent.0.saturating_sub(unsent.0),
            tx_bytes: sent.1.saturating_sub(unsent.1),
            tx_drops: self.tx_drops.load(Ordering::Relaxed),
            ..PortCounters::default()
        }
    }

    pub(crate) fn add_dropped_below(&self, frames: u64) {
        self.dropped_below.fetch_add(frames, Ordering::Relaxed);
    }

    pub(crate) fn dropped_below(&self) -> u64 {
        self.dropped_below.load(Ordering::Relaxed)
    }

    pub(crate) fn add_tx_dropped(&self, packets: u64) {
        self.tx_drops.fetch_add(packets, Ordering::Relaxed);
    }
}

fn add([all, sum]: &[AtomicU64; 2], packets: u64, bytes: u64) {
    all.fetch_add(packets, Ordering::Relaxed);
    sum.fetch_add(bytes, Ordering::Relaxed);
}

fn both([packets, bytes]: &[AtomicU64; 2]) -> (u64, u64) {
    (packets.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
}

/// Losses of frames between the kernel tier's program and the port.
pub trait HandoverLosses: Send + Sync + std::fmt::Debug {
    /// The number of frames that were handed over and found no room.
    fn not_received(&mut self) -> u64;

    /// The number of frames that the tier has counted as sent and that were dropped below. Of all
    /// frames dropped there, `refused` were the worker's.
    fn not_sent(&mut self, refused: u64) -> u64;
}
