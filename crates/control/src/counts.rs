//! The answer to [`ControlCommand::Counts`](crate::ControlCommand): the counts of all bridges at
//! one moment, a record for each bridge and each worker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A record of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CountsRecord {
    /// Of a bridge.
    Bridge(BridgeCounts),
    /// Of a worker.
    Worker(WorkerCounts),
}

/// The counts of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeCounts {
    /// Its name.
    pub bridge: String,
    /// Its flow entries.
    pub entries: u64,
    /// Connections with controllers that are up.
    pub connections: u64,
    /// Its ports.
    pub ports: Vec<PortCounts>,
    /// Packets dropped, by reason, without those that have dropped none.
    pub drops: BTreeMap<String, u64>,
}

/// The counts of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounts {
    /// Its number.
    pub port_no: u32,
    /// Its name.
    pub name: String,
    /// Whether its device is there and has a link.
    pub up: bool,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Packets dropped on receive.
    pub rx_dropped: u64,
    /// Packets dropped on send.
    pub tx_dropped: u64,
}

/// The counts of a worker, of all bridges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// Its index.
    pub worker: usize,
    /// Frames that it received.
    pub rx_packets: u64,
    /// Frames that ports took from it.
    pub tx_packets: u64,
    /// Nanoseconds asleep.
    pub asleep_ns: u64,
    /// Nanoseconds of rounds without work.
    pub idle_ns: u64,
    /// Nanoseconds since it began.
    pub lived_ns: u64,
}
