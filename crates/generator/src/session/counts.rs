//! The counts of a session's ports, read beside the thread that runs the session.
//!
//! A reader asks the threads of the ports as the session does, and each by its own time. What it
//! asks by belongs to the session, which takes it away before it waits for its threads: a session
//! never waits for a reader longer than for one answer, and a reader finds nothing after its end.
//! It must never reset a count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Session;
use super::rx_thread::{ReceiveCommand, ReceiverHandle};
use super::sender::SenderHandle;
use super::watcher::Devices;

/// The counts of a port. Frames and bytes are since the last [`Session::clear`], those of the
/// device since it was opened; bytes are those of frames with FCS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPortCounts {
    /// Its spec text, or its name where it was handed over open.
    pub name: String,
    /// Whether it carries frames.
    pub is_up: bool,
    /// Whether it has frames to send.
    pub is_transmitting: bool,
    /// Frames that the port took.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that were due and that the port did not take in time; they never left.
    pub unsent: u64,
    /// Frames that left later than due by more than the session's threshold.
    pub late: u64,
    /// Frames that the port took and that its device did not carry.
    pub tx_errors: u64,
    /// Frames that came.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Those without a probe of the session's streams.
    pub rx_foreign: u64,
    /// Frames that the device lost for want of room.
    pub rx_drops: u64,
    /// Frames that arrived broken.
    pub rx_errors: u64,
}

/// A reader of a session's counts; its clones read the same.
#[derive(Clone, Debug)]
pub struct CountsReader(Arc<Ways>);

/// The ways to the threads of all ports.
#[derive(Debug)]
struct Ways {
    /// By port, as long as the session lasts.
    ports: Mutex<Vec<PortWays>>,
    /// The session ends: who reads again and again leaves the lock to it.
    is_over: AtomicBool,
}

impl Ways {
    fn lock(&self) -> MutexGuard<'_, Vec<PortWays>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session's end of its readers: dropped, they have nothing to ask any more.
#[derive(Debug)]
pub(super) struct Asked(Arc<Ways>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.lock().clear();
    }
}

/// The ways to the threads and the device of a port.
struct PortWays {
    name: String,
    senders: Vec<SenderHandle>,
    receiver: Option<ReceiverHandle>,
    devices: Devices,
}

impl std::fmt::Debug for PortWays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortWays").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Session {
    /// A reader of the ports' counts, for another thread.
    #[must_use]
    pub fn counts_reader(&mut self) -> CountsReader {
        let ways = self.ports.iter().map(|port| PortWays {
            name: port.name.clone(),
            senders: port.senders.handles(),
            receiver: port.receiver.handle(),
            devices: self.watcher.devices.clone(),
        });
        let asked = self.readers.get_or_insert_with(|| {
            let ports = Mutex::new(ways.collect());
            Asked(Arc::new(Ways { ports, is_over: AtomicBool::new(false) }))
        });
        CountsReader(Arc::clone(&asked.0))
    }
}

impl CountsReader {
    /// The counts of each port, in the session's order; none after the session's end. It waits for
    /// an answer of each thread, some microseconds a port.
    #[must_use]
    pub fn read(&self) -> Vec<SessionPortCounts> {
        if self.0.is_over.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let ways = self.0.lock();
        ways.iter().enumerate().map(|(port, ways)| ways.read(port)).collect()
    }
}

impl PortWays {
    fn read(&self, port: usize) -> SessionPortCounts {
        let asked: Vec<_> = self.senders.iter().filter_map(SenderHandle::request_report).collect();
        let receiver = self.receiver.as_ref();
        let taken = receiver.and_then(|receiver| {
            receiver.request(|answer| ReceiveCommand::Report(Vec::new(), answer))
        });
        let device = self.devices.counters(port);
        let mut counts = SessionPortCounts {
            name: self.name.clone(),
            is_up: self.devices.is_up(port),
            is_transmitting: self.senders.iter().any(|sender| sender.flags.is_transmitting()),
            tx_errors: device.tx_errors,
            rx_drops: device.rx_drops,
            rx_errors: device.rx_errors,
            ..SessionPortCounts::default()
        };
        // A thread that has ended, by a panic, has nothing more to say.
        for sent in asked.iter().filter_map(|inbox| inbox.recv().ok()) {
            counts.tx_packets += sent.counts.packets;
            counts.tx_bytes += sent.counts.bytes;
            counts.unsent += sent.counts.unsent;
            counts.late += sent.counts.late;
        }
        if let Some(taken) = taken.and_then(|inbox| inbox.recv().ok()) {
            counts.rx_packets = taken.counts.packets;
            counts.rx_bytes = taken.counts.bytes;
            counts.rx_foreign = taken.counts.foreign;
        }
        counts
    }
}
