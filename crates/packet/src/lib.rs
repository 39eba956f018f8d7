//! Packets: layout of headers, extraction to a flow key, rewriting with incremental checksums,
//! building and buffers.
//!
//! Match fields and actions are those of the OpenFlow Switch Specification 1.3.4 (and 1.0.2);
//! headers are those of the RFC or IEEE standard that each file names. Every function takes any
//! bytes: an incomplete header counts as absent. This crate knows no controller and no port.
//!
//! A frame is built, looked at as a flow key, and rewritten:
//!
//! ```
//! use openflow::text::parse_match;
//! use openflow::{Field, MacAddr, PortNo};
//! use packet::build::{FrameBuilder, Ipv4};
//! use packet::{Meta, PacketBuf, extract, rewrite, verify};
//! use std::net::Ipv4Addr;
//!
//! let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
//! let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
//!     .ipv4(Ipv4::new(here, there))
//!     .udp(1234, 53)
//!     .fill_to(60)
//!     .build();
//! let key = extract(&frame, &Meta::port(PortNo(1)));
//! assert!(key.matches(&parse_match("in_port=1,udp,tp_dst=53")?));
//!
//! let mut buf = PacketBuf::from_slice(&frame);
//! assert!(rewrite::set_field(&mut buf, Field::UdpDst, 5353));
//! assert!(rewrite::push_vlan(&mut buf, 0x8100));
//! verify(buf.bytes()).expect("checksums are kept right");
//! assert_eq!(extract(buf.bytes(), &Meta::port(PortNo(1))).get(Field::UdpDst), 5353);
//! # Ok::<(), openflow::text::TextError>(())
//! ```

mod buf;
pub mod build;
pub mod checksum;
mod describe;
mod extract;
mod frame_checksums;
pub mod header;
mod key;
mod layout;
mod masked_rewrite;
pub mod offload;
pub mod rewrite;
mod shape;
mod view;

pub use buf::{
    Batch, Block, ExternalBuf, ExternalOwner, FRAME_CAPACITY, HEADROOM, PacketBuf, Pool,
};
pub use describe::describe;
pub use extract::{Meta, extract, extract_into, set_meta};
pub use frame_checksums::{ChecksumKind, WrongChecksum, fill_checksums, verify};
pub use key::{FlowKey, KeySlot, Registers, WORDS};
pub use layout::{Layout, Network, Transport};
pub use masked_rewrite::{LoweredTtl, MaskedRewrite, MaskedWord, TagChange};
pub use offload::Offload;
pub use shape::Shape;
pub use view::PacketView;
