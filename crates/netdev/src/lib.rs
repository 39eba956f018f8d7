//! Ports of several kinds behind one set of traits, and the Linux facts around them.
//!
//! A port is named by a text, `kind:name?option=value&option=value`, and opened by [`open_text`].
//! [`KINDS`] is the table of kinds, with the options of each: network devices (`af_packet:eth0`),
//! TAP devices, wires in memory between two ports of one process or of two (`memory:name?end=a`),
//! capture files, `null:`, and DPDK's devices with the cargo feature `dpdk`.
//!
//! ```
//! use netdev::open_text;
//! use packet::{Batch, PacketBuf};
//!
//! let mut a = open_text("memory:example?end=a")?;
//! let mut b = open_text("memory:example?end=b")?;
//! let frames = [PacketBuf::from_slice(&[0; 60])];
//! assert_eq!(a.tx(&frames)?, 1);
//! let mut batch = Batch::default();
//! assert_eq!(b.rx(&mut batch, 64)?, 1);
//! assert_eq!(batch.frames(), frames);
//! # Ok::<(), netdev::PortError>(())
//! ```
//!
//! A [`Port`] has three parts: a [`PortDevice`] with its properties, link state and counters, an
//! [`RxQueue`] and a [`TxQueue`]. They may be used by three threads:
//!
//! ```
//! use netdev::{Port, PortDevice as _, open_text};
//! use packet::{Batch, PacketBuf};
//!
//! let Port { mut device, mut tx, .. } = open_text("memory:parts?end=a")?;
//! let Port { mut rx, .. } = open_text("memory:parts?end=b")?;
//! let sender = std::thread::spawn(move || tx.tx(&[PacketBuf::from_slice(&[0; 60])]));
//! let mut batch = Batch::default();
//! while rx.rx(&mut batch, 64)? == 0 {}
//! assert_eq!(sender.join().unwrap()?, 1);
//! assert_eq!(device.counters().tx_packets, 1);
//! # Ok::<(), netdev::PortError>(())
//! ```
//!
//! Nothing in these traits blocks. A worker that has found nothing in any of its queues sleeps in
//! [`sys::event::wait`] on their descriptors, and on a [`sys::event::WakeEvent`] of its own by
//! which other threads wake it. Opening and closing a kernel port takes tens of milliseconds, so a
//! worker has it done on another thread: a [`Port`] is `Send`. A device that disappears shows as
//! [`PortError::Gone`]; a [`LinkMonitor`] reports one that goes down and up.
//!
//! # Frames of a wire
//!
//! The kernel hands over frames that no wire has ever carried: with a partial checksum, longer than
//! the MTU (GSO), or with their VLAN tag taken out. On a veth the setting that decides this belongs
//! to the device at the other end, mostly in another network namespace. So `af_packet` and `tap`
//! complete the work themselves: they fill in checksums, segment GSO frames of TCP and UDP, and put
//! tags back. LRO cannot be undone; it is switched off on the device, and noted in
//! [`PortInfo::notes`]. Before Linux 6.2 the kernel itself drops UDP GSO frames on their way here.
//!
//! # Modules
//!
//! [`kinds`] has a file for each kind; [`sys`] has everything that asks the kernel directly, with
//! all unsafe code: namespaces, child processes that die with their parent, devices and their
//! queues, offload features, CPU time. This crate must never look into frames further than it takes
//! to complete them.

mod counters;
mod device;
pub mod error;
mod kernel_tx;
pub mod kinds;
mod offload;
mod patch_end;
pub mod pcap;
pub mod port;
mod port_info;
pub mod ring;
mod ring_rx;
mod soft_offload;
pub mod spec;
mod spec_error;
pub mod sys;
mod tier;
mod tier_port;

pub use counters::{HandoverLosses, PortCounters};
pub use error::PortError;
pub use kinds::af_packet::keep_spare_ring;
pub use kinds::dummy::DummyPort;
pub use kinds::{KINDS, open, open_claimed, open_for_tier, open_queues, open_text};
pub use patch_end::{PATCH_HOPS_MAX, PatchEnd, PatchPlace};
pub use port::{Port, PortDevice, PortQueue, RxQueue, TxQueue};
pub use port_info::{LinkNotification, PortInfo};
pub use spec::{COMMON, FileUse, KindRow, PoliceRate, Policing, PortRight, PortSpec, QUEUES_MAX};
pub use spec_error::SpecError;
pub use sys::monitor::{LinkChange, LinkMonitor};
pub use sys::veth_peer::FarEndSockets;
pub use tier::{
    EarlierCounts, Entering, HandoverPlace, KEPT_FOR, KEPT_TIERS, KernelTier, TIER_BYTES,
    TIER_OUTPUTS_MAX, TIER_OWNERS_MAX, TierCounts, TierFrames, TierKeeper, TierKey, TierPrograms,
    TierQueues, TierQueuesBeside,
};
pub use tier_port::TierPort;
