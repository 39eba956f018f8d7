//! Packets: buffers, header views, extraction to a flow key, rewriting with incremental checksums
//! and building. This crate knows no controller and no port.

mod buf;

pub use buf::{Batch, FRAME_CAPACITY, HEADROOM, PacketBuf};
