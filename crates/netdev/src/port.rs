//! The `Port` trait: what every kind of port does, and the facts and counters it reports.
//!
//! One trait stands between the data path and every source of frames, so that switch, generator
//! and lab never ask which kind they hold. No method here may ever block.

use std::os::fd::BorrowedFd;

use packet::{Batch, PacketBuf, Pool};
use serde::Serialize;

use crate::error::PortError;

/// A place where frames come in and go out. Frames carry no FCS.
///
/// A port is owned by one worker at a time; nothing here blocks. The worker's loop is: call
/// [`Port::rx`] on its ports, and only after every port has returned 0 sleep in `poll(2)` on the
/// descriptors of [`Port::fd`] (a port without one is always ready, so then do not sleep).
///
/// Sleeping is not free for the other side: on a veth a frame that wakes a sleeper costs its sender
/// 3.0 us of CPU, one that finds the receiver awake 1.6 us (two virtual CPUs, Linux 6.18). A worker
/// under load does well to look again for some microseconds before it sleeps.
pub trait Port: Send {
    /// Appends up to `max` received frames to `batch`, in order of arrival, and returns how many.
    /// 0 means that none waits now.
    ///
    /// # Errors
    /// [`PortError::Gone`] once the device has disappeared (for good: the port must be opened
    /// anew); other errors say what failed, and a later call may succeed.
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError>;

    /// Sends a prefix of `frames` in order and returns how many the port took. The caller counts
    /// the rest as dropped (or offers them again). A frame that the port can never carry (too
    /// long, too short) is taken, and counted in [`PortCounters::tx_errors`].
    ///
    /// # Errors
    /// [`PortError::Gone`] once the device has disappeared; other errors say what failed.
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError>;

    /// Sends a prefix of `frames` in order and returns how many the port took, as [`Port::tx`]
    /// does; what it took is gone from `frames`, and the buffers are in `pool` or with the port. A
    /// port that sends memory of a device's own sends it without a copy only by this call.
    ///
    /// # Errors
    /// As [`Port::tx`]; what was not taken is still in `frames`.
    fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        let sent = self.tx(frames)?;
        pool.give_front(frames, sent);
        Ok(sent)
    }

    /// Receives up to `max` frames and sends them by `to` as they are, where both ports belong to
    /// one driver that does so without handing them out; returns how many came. `None` where that
    /// is not so; then there is [`Port::rx`] and [`Port::tx_batch`]. What `to` does not take is
    /// dropped and counted there.
    fn relay(&mut self, _to: &mut dyn Port, _max: usize) -> Option<usize> {
        None
    }

    /// The driver's device behind the port, for [`Port::relay`].
    fn driver_port(&mut self) -> Option<DriverPort<'_>> {
        None
    }

    /// The descriptor that polls readable (or in error) when [`Port::rx`] has something to say,
    /// valid from the moment when `rx` returned 0. `None` when the port is always ready.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// The facts of the port as they are now. Costs system calls on kernel ports.
    fn info(&mut self) -> PortInfo;

    /// Source of change notifications for [`Port::info`].
    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Polled
    }

    /// What the port has counted since it was opened. Costs a system call on kernel ports.
    fn counters(&mut self) -> PortCounters;
}

/// How a change of [`PortInfo`] becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkNotification {
    /// It never changes.
    Never,
    /// By netlink messages about the device with this interface index: see
    /// [`crate::LinkMonitor`].
    Netlink(u32),
    /// Only by polling [`Port::info`].
    Polled,
}

/// A device of a driver that passes frames on by itself: DPDK's.
#[derive(Debug)]
pub struct DriverPort<'a> {
    /// The driver's number of it.
    pub number: u16,
    /// What the port has counted.
    pub counters: &'a mut PortCounters,
}

/// The facts of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortInfo {
    /// The name within the kind: a device, a ring, a file.
    pub name: String,
    /// The kind's word in the spec text, for example `af_packet`.
    pub kind: &'static str,
    /// The Ethernet address; kinds without a device make up a locally administered one.
    pub mac: [u8; 6],
    /// The longest payload of a frame in bytes, without the Ethernet header and one VLAN tag.
    pub mtu: u32,
    /// Whether the port is administratively up and has carrier.
    pub link_up: bool,
    /// Speed in bit/s; 0 when unknown.
    pub speed_bps: u64,
    /// Whether both directions work at once; `None` when unknown.
    pub full_duplex: Option<bool>,
    /// False once the device behind the port has disappeared.
    pub exists: bool,
    /// What the user should know, for example offloads that the port switched off.
    pub notes: Vec<String>,
}

/// What a port has counted since it was opened. Bytes are those of frames without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Frames handed to the caller by `rx`.
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
    /// Frames that the port took and could not send: longer than the MTU, shorter than a header.
    pub tx_errors: u64,
}

impl PortCounters {
    /// Counts one received frame of `len` bytes.
    pub(crate) fn count_rx(&mut self, len: usize) {
        self.rx_packets += 1;
        self.rx_bytes += len as u64;
    }

    /// Counts one sent frame of `len` bytes.
    pub(crate) fn count_tx(&mut self, len: usize) {
        self.tx_packets += 1;
        self.tx_bytes += len as u64;
    }
}

/// A locally administered unicast address made from `name`: the same name gives the same address.
pub(crate) fn made_up_mac(name: &str) -> [u8; 6] {
    // FNV-1a, 64 bits.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    [0x02, a, b, c, d, e]
}
