//! Places of the fields of each header: one file per header, in the words of its RFC or IEEE
//! standard.
//!
//! Extraction, rewriting, building and verifying all take their offsets from here, so that none of
//! them can disagree with another. Offsets are in bytes from the first byte of the header. Nothing
//! here looks beyond its own header.

pub mod arp;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod pbb;
pub mod sctp;
pub mod tcp;
pub mod udp;
pub mod vlan;

/// The `N` bytes at `offset`; none where the frame ends before them.
#[inline]
#[must_use]
pub fn chunk<const N: usize>(frame: &[u8], offset: usize) -> Option<&[u8; N]> {
    frame.get(offset..)?.first_chunk()
}

/// The big-endian 16-bit number at `offset`; none where the frame ends before it.
#[inline]
#[must_use]
pub fn be16(frame: &[u8], offset: usize) -> Option<u16> {
    chunk(frame, offset).map(|bytes| u16::from_be_bytes(*bytes))
}

/// The big-endian number of up to 16 bytes; longer input keeps its last 16.
#[inline]
#[must_use]
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}
