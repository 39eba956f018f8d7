//! Packets: where headers lie, extraction to a flow key, rewriting with incremental checksums,
//! building and buffers.
//!
//! Everything takes any bytes: a header that is not whole is not there. This crate knows no
//! controller and no port.

mod buf;
pub mod build;
pub mod checksum;
mod extract;
mod frame_checksums;
pub mod header;
mod key;
mod layout;
pub mod rewrite;
mod shape;

pub use buf::{
    Batch, Block, ExternalBuf, ExternalOwner, FRAME_CAPACITY, HEADROOM, PacketBuf, Pool,
};
pub use extract::{Meta, extract};
pub use frame_checksums::{ChecksumKind, WrongChecksum, fill_checksums, verify};
pub use key::{FlowKey, KeySlot, WORDS};
pub use layout::{Layout, Network, Transport};
pub use shape::Shape;
