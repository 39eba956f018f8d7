//! Packets: where headers lie, extraction to a flow key, rewriting with incremental checksums,
//! building and buffers.
//!
//! Everything takes any bytes: a header that is not whole is not there. This crate knows no
//! controller and no port.

mod buf;
pub mod build;
pub mod checksum;
mod covered;
mod extract;
pub mod header;
mod key;
mod layout;
pub mod rewrite;
mod shape;

pub use buf::{Batch, Block, FRAME_CAPACITY, Foreign, HEADROOM, Owner, PacketBuf, Pool};
pub use covered::{ChecksumKind, WrongChecksum, fill_checksums, verify};
pub use extract::{Meta, extract};
pub use key::{FlowKey, Slot, WORDS};
pub use layout::{Layout, Network, Transport};
pub use shape::Shape;
