//! The kinds of port, one file each; `kind.rs` holds their table.

pub mod af_packet;
pub(crate) mod dpdk;
pub mod memory;
pub mod null;
pub mod pcap;
pub mod tap;
