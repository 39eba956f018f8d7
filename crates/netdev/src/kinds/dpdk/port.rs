//! The DPDK port itself: the queue pairs of an Ethernet device.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::{Batch, PacketBuf, Pool};

use crate::counters::{Counted, PortCounters, PortQueueCounters, queue_counters};
use crate::error::PortError;
use crate::port::{Port, PortDevice, RxQueue, TxQueue};
use crate::port_info::PortInfo;
use crate::spec::PortSpec;
use crate::sys::dpdk::EthDevice;

/// Makes and starts the device that the name of `spec`, its devargs, describes.
pub(super) fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let queues = spec.queues()? as u16;
    let device = EthDevice::open(spec.name(), queues)
        .map_err(|error| PortError::Driver { name: spec.to_string(), source: error.into() })?;
    let device = Arc::new(device);
    let counters = queue_counters(queues.into());
    let handle = DpdkDevice {
        name: spec.name().to_owned(),
        device: Arc::clone(&device),
        counters: counters.clone(),
    };
    let pair = |(queue, counters): (u16, Arc<PortQueueCounters>)| {
        let rx = DpdkRx { device: Arc::clone(&device), queue, counters: Arc::clone(&counters) };
        Ok((rx, DpdkTx { device: Arc::clone(&device), queue, counters }))
    };
    Port::with_queues(handle, (0..queues).zip(counters).map(pair))
}

/// A receive queue.
struct DpdkRx {
    device: Arc<EthDevice>,
    /// Its number at the device.
    queue: u16,
    counters: Arc<PortQueueCounters>,
}

impl RxQueue for DpdkRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let (frames, _) = batch.parts_mut();
        let (count, bytes) = self.device.rx(self.queue, frames, max);
        let packets = count as u64;
        self.counters.rx.add(&Counted { packets, bytes, ..Counted::default() });
        Ok(count)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A transmit queue.
struct DpdkTx {
    device: Arc<EthDevice>,
    /// Its number at the device.
    queue: u16,
    counters: Arc<PortQueueCounters>,
}

impl DpdkTx {
    /// Sends a prefix and returns how many frames were taken.
    fn send(&self, frames: &mut Vec<PacketBuf>, done: impl FnMut(PacketBuf)) -> usize {
        let (sent, bytes, errors) = self.device.tx(self.queue, frames, done);
        self.counters.tx.add(&Counted { packets: sent as u64, bytes, drops: 0, errors });
        sent + errors as usize
    }
}

impl TxQueue for DpdkTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let mut copies: Vec<PacketBuf> = frames.to_vec();
        let taken = self.send(&mut copies, drop);
        Ok(taken)
    }

    fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        Ok(self.send(frames, |buf| pool.give(buf)))
    }
}

/// The device handle.
struct DpdkDevice {
    name: String,
    device: Arc<EthDevice>,
    counters: Vec<Arc<PortQueueCounters>>,
}

impl PortDevice for DpdkDevice {
    fn info(&mut self) -> PortInfo {
        let info = self.device.info();
        let known = info.unwrap_or_default();
        PortInfo {
            name: self.name.clone(),
            kind: super::ROW.word,
            mac: known.mac,
            mtu: known.mtu.into(),
            link_up: known.link_up(),
            is_set_down: None,
            speed_bps: u64::from(known.speed_mbps) * 1_000_000,
            full_duplex: info.map(|info| info.full_duplex()),
            exists: info.is_some(),
            receives: true,
            has_line_rate: true,
            peer: None,
            notes: Vec::new(),
        }
    }

    fn counters(&mut self) -> PortCounters {
        let losses = self.device.losses();
        let counters: PortCounters = self.counters.iter().map(|queue| queue.read()).sum();
        PortCounters {
            rx_drops: losses.rx_missed,
            rx_errors: losses.rx_errors,
            tx_errors: counters.tx_errors + losses.tx_errors,
            ..counters
        }
    }
}
