//! `af_packet`: a Linux network device through packet sockets.
//!
//! Frames come out as they would stand on a wire, whatever the sender left to its network card: a
//! VLAN tag that the kernel took out is put back, a partial checksum is completed, a GSO frame is
//! cut. Nobody has to switch offloads off, which on a veth would be needed at the end that lies in
//! another namespace. The kernel's own stack sees every frame too; give the device no address.

use std::io;
use std::os::fd::BorrowedFd;

use packet::{Batch, PacketBuf};

use crate::device::{KernelDevice, is_gone};
use crate::error::PortError;
use crate::offload::{VNET_LEN, VnetHeader};
use crate::port::{LinkNotification, Port, PortCounters, PortInfo};
use crate::soft_offload::{SoftOffload, complete_into};
use crate::spec::PortSpec;
use crate::sys::ethtool::Ethtool;
use crate::sys::packet_socket::{RingSlot, RxRing, TxSocket};

const FIX: &str = "give the program CAP_NET_RAW and CAP_NET_ADMIN";
const SLOTS: u32 = 2_048;
/// After so many empty calls of `rx` the socket is asked for errors, since it is only then that a
/// missing frame can mean a missing device. A worker that sleeps is woken by the error.
const EMPTY_CALLS: u32 = 32;

/// A Linux network device.
#[derive(Debug)]
pub struct AfPacketPort {
    device: KernelDevice,
    rx_ring: RxRing,
    tx_socket: TxSocket,
    soft_offload: SoftOffload,
    counters: PortCounters,
    empty_calls: u32,
    notes: Vec<String>,
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    let slots = spec.number("slots", 64..=65_536)?.unwrap_or(SLOTS);
    let bypass = spec.flag("qdisc_bypass", false)?;
    let name = spec.name();
    let device = KernelDevice::find("af_packet", name)?;
    let failed = |source| PortError::from_io(format!("af_packet:{name}"), FIX, source);
    let frame_len = device.mtu() as usize + 18;
    let rx_ring = RxRing::open(device.index(), frame_len, slots as usize).map_err(failed)?;
    let tx_socket = TxSocket::open(device.index(), bypass).map_err(failed)?;
    Ok(Box::new(AfPacketPort {
        notes: switch_off_lro(name),
        device,
        rx_ring,
        tx_socket,
        soft_offload: SoftOffload::new(),
        counters: PortCounters::default(),
        empty_calls: 0,
    }))
}

/// LRO merges frames so that they cannot be taken apart again; no switch can work with it.
fn switch_off_lro(name: &str) -> Vec<String> {
    let Ok(ethtool) = Ethtool::open() else { return Vec::new() };
    let features = ethtool.features(name).unwrap_or_default();
    if !features.iter().any(|f| f.name == "rx-lro" && f.active && f.changeable) {
        return Vec::new();
    }
    let note = match ethtool.set_features(name, &[("rx-lro", false)]) {
        Ok(()) => "rx-lro was on and has been switched off".to_owned(),
        Err(error) => format!("rx-lro is on and merges frames: {error}"),
    };
    tracing::info!(device = name, "{note}");
    vec![note]
}

impl AfPacketPort {
    /// Takes the frame of `slot` out of the ring: into the batch, or to be segmented.
    fn take(&mut self, slot: &RingSlot, batch: &mut Batch) {
        if slot.copied {
            self.take_whole(slot, batch);
            return;
        }
        if slot.held < slot.len {
            // The kernel had no room to queue it whole.
            self.counters.rx_drops += 1;
            return;
        }
        let header = self.rx_ring.read_vnet(slot);
        let vnet = VnetHeader::read(&header);
        if vnet.is_gso() {
            let end = VNET_LEN + slot.held;
            let Some(buffer) = self.soft_offload.buffer().get_mut(..end) else {
                self.counters.rx_errors += 1;
                return;
            };
            buffer[..VNET_LEN].copy_from_slice(&header);
            self.rx_ring.read(slot, &mut buffer[VNET_LEN..]);
            self.soft_offload.process(end, slot.vlan, batch, &mut self.counters);
        } else {
            let mut frame = batch.take_spare();
            self.rx_ring.read(slot, frame.prepare(slot.held));
            complete_into(frame, &vnet, slot.vlan, batch, &mut self.counters);
        }
    }

    fn take_whole(&mut self, slot: &RingSlot, batch: &mut Batch) {
        let mut read = self.rx_ring.read_whole(self.soft_offload.buffer());
        if read.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::WouldBlock) {
            // An error of the device stands before the frame; it is told once.
            self.empty_calls = EMPTY_CALLS;
            read = self.rx_ring.read_whole(self.soft_offload.buffer());
        }
        match read {
            Ok(end) => self.soft_offload.process(end, slot.vlan, batch, &mut self.counters),
            Err(_) => self.counters.rx_drops += 1,
        }
    }

    /// After enough empty calls: has the socket an error to tell, and is the device still there?
    fn check_device(&mut self) -> Result<(), PortError> {
        self.empty_calls += 1;
        if self.empty_calls < EMPTY_CALLS {
            return Ok(());
        }
        self.empty_calls = 0;
        match rustix::net::sockopt::socket_error(self.rx_ring.fd()) {
            Ok(Ok(())) => Ok(()),
            // "Network is down" comes for both a device set down and one that has gone.
            Ok(Err(_)) | Err(_) => self.device.ask(),
        }
    }

    /// What to do about a frame that could not be sent: `true` to go on after it.
    fn send_failed(&mut self, error: &io::Error) -> Result<bool, PortError> {
        match error.raw_os_error() {
            // Longer than the MTU, or shorter than a header.
            Some(libc::EMSGSIZE | libc::EINVAL) => {
                self.counters.tx_errors += 1;
                Ok(true)
            }
            // A full queue, or a device that is down: not taken.
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ENETDOWN | libc::EINTR) => {
                Ok(false)
            }
            _ if is_gone(error) => self.device.ask().map(|()| false),
            code => {
                let source = code
                    .map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
                let what = format!("sending on {}", self.device.name());
                Err(PortError::from_io(what, FIX, source))
            }
        }
    }
}

impl Port for AfPacketPort {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.device.check()?;
        let before = batch.len();
        while batch.len() - before < max {
            if self.soft_offload.next_segment(batch, &mut self.counters) {
                continue;
            }
            let Some(slot) = self.rx_ring.peek() else { break };
            self.take(&slot, batch);
            self.rx_ring.release();
        }
        let received = batch.len() - before;
        if received == 0 {
            self.check_device()?;
        }
        Ok(received)
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.device.check()?;
        let mut taken = 0;
        while let Some(rest) = frames.get(taken..).filter(|rest| !rest.is_empty()) {
            match self.tx_socket.send(rest) {
                Ok(0) => break,
                Ok(sent) => {
                    rest.iter().take(sent).for_each(|f| self.counters.count_tx(f.len()));
                    taken += sent;
                }
                Err(error) if self.send_failed(&error)? => taken += 1,
                Err(_) => break,
            }
        }
        Ok(taken)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx_ring.fd())
    }

    fn info(&mut self) -> PortInfo {
        self.device.info(&self.notes)
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Netlink(self.device.index())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.rx_drops += self.rx_ring.take_drops().unwrap_or_default();
        self.counters
    }
}
