//! Ports: memory, null, pcap, AF_PACKET and TAP behind one trait, and the Linux facts around them.

mod checksum;
mod device;
pub mod error;
mod intake;
pub mod kind;
pub mod kinds;
mod offload;
pub mod pcap;
pub mod port;
pub mod ring;
pub mod spec;
pub mod sys;

pub use error::PortError;
pub use kind::{KINDS, PortKind, open, open_text};
pub use port::{Port, PortCounters, PortInfo};
pub use spec::{PortSpec, SpecError};
pub use sys::monitor::{LinkChange, LinkMonitor};
