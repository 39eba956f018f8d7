//! The DPDK port itself.

use std::os::fd::BorrowedFd;

use packet::{Batch, PacketBuf, Pool};

use crate::error::PortError;
use crate::port::{DriverPort, Port, PortCounters, PortInfo};
use crate::spec::PortSpec;
use crate::sys::dpdk::EthDevice;

/// A device that DPDK drives.
pub(super) struct Dpdk {
    name: String,
    device: EthDevice,
    counters: PortCounters,
}

impl Dpdk {
    /// Makes and starts the device that the name of `spec`, devargs, tells.
    pub(super) fn open(spec: &PortSpec) -> Result<Self, PortError> {
        let name = spec.name().to_owned();
        let device = EthDevice::open(&name)
            .map_err(|error| PortError::Driver { name: spec.to_string(), source: error.into() })?;
        Ok(Self { name, device, counters: PortCounters::default() })
    }
}

impl Dpdk {
    /// Sends a prefix and returns how many frames were taken.
    fn send(&mut self, frames: &mut Vec<PacketBuf>, done: impl FnMut(PacketBuf)) -> usize {
        let (sent, bytes, unfit) = self.device.tx(frames, done);
        self.counters.tx_packets += sent as u64;
        self.counters.tx_bytes += bytes;
        self.counters.tx_errors += unfit;
        sent + unfit as usize
    }
}

impl Port for Dpdk {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let (frames, _) = batch.parts_mut();
        let (count, bytes) = self.device.rx(frames, max);
        self.counters.rx_packets += count as u64;
        self.counters.rx_bytes += bytes;
        Ok(count)
    }

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

    fn relay(&mut self, to: &mut dyn Port, max: usize) -> Option<usize> {
        let to = to.driver_port()?;
        let relayed = self.device.relay(to.number, max);
        self.counters.rx_packets += relayed.received;
        self.counters.rx_bytes += relayed.received_bytes;
        to.counters.tx_packets += relayed.sent;
        to.counters.tx_bytes += relayed.sent_bytes;
        to.counters.tx_drops += relayed.received - relayed.sent;
        Some(relayed.received as usize)
    }

    fn driver_port(&mut self) -> Option<DriverPort<'_>> {
        Some(DriverPort { number: self.device.number(), counters: &mut self.counters })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn info(&mut self) -> PortInfo {
        let info = self.device.info();
        let known = info.unwrap_or_default();
        PortInfo {
            name: self.name.clone(),
            kind: "dpdk",
            mac: known.mac,
            mtu: known.mtu.into(),
            link_up: known.link_up(),
            speed_bps: u64::from(known.speed_mbps) * 1_000_000,
            full_duplex: info.map(|info| info.full_duplex()),
            exists: info.is_some(),
            notes: Vec::new(),
        }
    }

    fn counters(&mut self) -> PortCounters {
        let losses = self.device.losses();
        PortCounters {
            rx_drops: losses.rx_missed,
            rx_errors: losses.rx_errors,
            tx_errors: self.counters.tx_errors + losses.tx_errors,
            ..self.counters
        }
    }
}
