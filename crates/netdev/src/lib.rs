//! Ports: where frames come in and go out, of several kinds behind one trait, and the Linux facts
//! around them.
//!
//! A port is named by a text, `kind:name?option=value&option=value`, and opened by [`open_text`]:
//!
//! | text | is | options, default first |
//! |---|---|---|
//! | `af_packet:DEVICE` | a Linux network device | `slots=2048`, `qdisc_bypass=false` or `true` |
//! | `tap:DEVICE` | a TAP device of the port's own | `mtu=1500`, `vnet_hdr=false` or `true` |
//! | `memory:NAME` | a wire inside this process | `end=a` or `b`, `slots=1024`, `frame_max=2104` |
//! | `memory:/a/path` | a wire between two processes | the same |
//! | `pcap:FILE` | a capture file | `loop=false` or `true`, `write=false` or `true` |
//! | `pcap:FILE?loop=true` | traffic made of it | `rate`, `slots=4096`, `number` |
//! | `null:` | receives nothing, takes everything | |
//! | `dpdk:DEVARGS` | a device that DPDK drives (cargo feature `dpdk`) | |
//!
//! ```
//! use netdev::{Port, open_text};
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
//! Nothing in [`Port`] blocks. A worker that has found nothing on any of its ports sleeps in
//! [`sys::event::wait`] on their descriptors, and on an [`sys::event::WakeEvent`] of its own by which
//! others wake it. A device that disappears shows as [`PortError::Gone`]; one that goes down and up
//! again is told by a [`LinkMonitor`].
//!
//! # Frames of a wire
//!
//! The kernel hands over frames that no wire has ever carried: with a partial checksum, longer than
//! the MTU (GSO), or with their VLAN tag taken out. On a veth the setting that decides this belongs
//! to the device at the other end, mostly in another network namespace. So `af_packet` and `tap`
//! undo it themselves: checksums are completed, GSO frames of TCP and UDP are cut, tags are put
//! back. What no longer can be told apart (LRO) is switched off on the device, and said in
//! [`PortInfo::notes`]. Before Linux 6.2 the kernel itself drops UDP GSO frames on their way here.
//!
//! # Shape
//!
//! [`kind`] holds the table of kinds; [`kinds`] one file for each; [`sys`] all that asks the kernel
//! directly, with all unsafe code: namespaces, programs that die with us, devices and their queues,
//! offload features, CPU time. This crate must never look into frames further than it takes to make
//! them whole.

mod checksum;
mod device;
pub mod error;
pub mod kind;
pub mod kinds;
mod offload;
pub mod pcap;
pub mod port;
pub mod ring;
mod soft_offload;
pub mod spec;
pub mod sys;

pub use error::PortError;
pub use kind::{KINDS, PortKind, open, open_text};
pub use port::{DriverPort, LinkNotification, Port, PortCounters, PortInfo};
pub use spec::{PortSpec, SpecError};
pub use sys::monitor::{LinkChange, LinkMonitor};
