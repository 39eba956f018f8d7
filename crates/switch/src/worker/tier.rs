//! The kernel tier of a shard: the forwarder's decisions in the tables of [`netdev::KernelTier`],
//! with ports by number.
//!
//! Each shard has a tier of its own for the frames that its ports receive; they may leave by the
//! ports of any shard of the bridge. It must never be stopped later than an op is applied.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use datapath::fast::{KernelTable, TIER_BYTES, TIER_OUTPUTS_MAX, TierFlow};
use netdev::{KernelTier, TierKey, TierPort};
use openflow::PortNo;
use packet::Shape;

use super::WorkerPort;

/// Entries of a shard's tier. Their cells take 16 bytes for each processor.
const SLOTS: usize = 1 << 14;

const _: () = assert!(
    TIER_BYTES == netdev::TIER_BYTES && TIER_OUTPUTS_MAX == netdev::TIER_OUTPUTS_MAX,
    "forwarder and kernel have the same keys and entries"
);

/// The kernel devices of a bridge.
#[derive(Debug, Default)]
pub(crate) struct TierPorts(RwLock<BTreeMap<PortNo, TierPort>>);

impl TierPorts {
    /// Takes a port's device, which may be another one than before; whether it is one of a kernel.
    pub(crate) fn set(&self, port: &WorkerPort) -> bool {
        let found = port.device.as_ref().and_then(|device| device.device.tier_port());
        let mut ports = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_device = found.is_some();
        match found {
            Some(found) => drop(ports.insert(port.number, found)),
            None => drop(ports.remove(&port.number)),
        }
        is_device
    }

    fn with<T>(&self, inner: impl FnOnce(&BTreeMap<PortNo, TierPort>) -> T) -> T {
        inner(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ShardTier {
    kernel: KernelTier,
    ports: Arc<TierPorts>,
}

impl ShardTier {
    /// A tier without entries, and with the program at none of the ports.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn new(ports: Arc<TierPorts>) -> Result<Self, netdev::PortError> {
        Ok(Self { kernel: KernelTier::new(SLOTS)?, ports })
    }

    /// Puts the program at a port, whose number it returns, or notes why that is not possible.
    pub(crate) fn attach(&self, port: &mut WorkerPort) -> Option<PortNo> {
        let device = port.device.as_mut()?;
        let attached = self.kernel.attach(device);
        let note = attached.as_ref().err().map(|error| format!("no kernel tier: {error}"));
        if let Some(note) = &note {
            tracing::warn!(port = %port.number, name = port.info.name, "{note}");
        }
        port.note_tier(note);
        attached.ok().map(|()| port.number)
    }

    /// A port has another device: puts the program there too; whether it is there.
    pub(crate) fn reopened(&self, port: &mut WorkerPort) -> bool {
        self.ports.set(port);
        self.attach(port).is_some()
    }

    /// A port has gone.
    pub(crate) fn forget(&self, port: PortNo) {
        self.ports.0.write().unwrap_or_else(PoisonError::into_inner).remove(&port);
    }

    /// What the kernel knows a flow by; none without a device.
    fn key(&self, flow: &TierFlow) -> Option<TierKey> {
        let device = self.ports.with(|ports| ports.get(&flow.in_port).map(TierPort::index))?;
        Some(TierKey { device, shape: flow.shape, bytes: flow.bytes })
    }
}

impl KernelTable for ShardTier {
    fn slots(&self) -> usize {
        self.kernel.slots()
    }

    fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {
        self.kernel.start(masks);
    }

    fn stop(&mut self) {
        self.kernel.stop();
    }

    fn put(&mut self, slot: u32, flow: &TierFlow, outputs: &[PortNo]) -> bool {
        let Some(key) = self.key(flow) else { return false };
        let kernel = &mut self.kernel;
        self.ports.with(|ports| {
            let outputs: Option<Vec<&TierPort>> =
                outputs.iter().map(|port| ports.get(port)).collect();
            let Some(outputs) = outputs else { return false };
            let made = kernel.put(slot, &key, &outputs);
            made.inspect_err(|error| tracing::debug!(%error, "no entry in the kernel")).is_ok()
        })
    }

    fn remove(&mut self, flow: &TierFlow) {
        if let Some(key) = self.key(flow) {
            self.kernel.remove(&key);
        }
    }

    fn counts(&self, slot: u32) -> (u64, u64) {
        let counts = self.kernel.counts(slot);
        (counts.packets, counts.bytes)
    }

    fn credit(&mut self, in_port: PortNo, outputs: &[PortNo], packets: u64, bytes: u64) {
        self.ports.with(|ports| {
            if let Some(port) = ports.get(&in_port) {
                port.count_rx(packets, bytes);
            }
            for port in outputs.iter().filter_map(|port| ports.get(port)) {
                port.count_tx(packets, bytes);
            }
        });
    }
}
