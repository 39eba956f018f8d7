//! IPv4 (RFC 791, RFC 2474, RFC 3168).

use std::ops::Range;

/// Version and header length.
pub const VERSION_IHL: usize = 0;
/// DSCP and ECN.
pub const TOS: usize = 1;
/// Length of header and payload.
pub const TOTAL_LEN: Range<usize> = 2..4;
/// Flags and fragment offset.
pub const FRAGMENT: Range<usize> = 6..8;
/// Time to live.
pub const TTL: usize = 8;
/// Protocol.
pub const PROTO: usize = 9;
/// Header checksum.
pub const CHECKSUM: Range<usize> = 10..12;
/// Source address.
pub const SRC: Range<usize> = 12..16;
/// Destination address.
pub const DST: Range<usize> = 16..20;
/// Bytes of the header without options.
pub const HEADER_LEN: usize = 20;

/// "More fragments" in [`FRAGMENT`].
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The fragment offset in [`FRAGMENT`], in units of eight bytes.
pub const OFFSET_MASK: u16 = 0x1fff;

/// Protocol number of ICMP.
pub const PROTO_ICMP: u8 = 1;
/// Protocol number of IPv4 in IP.
pub const PROTO_IPV4: u8 = 4;
/// Protocol number of TCP.
pub const PROTO_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTO_UDP: u8 = 17;
/// Protocol number of IPv6 in IP.
pub const PROTO_IPV6: u8 = 41;
/// Protocol number of SCTP.
pub const PROTO_SCTP: u8 = 132;

/// Bytes of a header that starts with `first`; none when the version or the length is wrong.
#[inline]
#[must_use]
pub const fn header_len(first: u8) -> Option<usize> {
    let len = (first & 0x0f) as usize * 4;
    if first >> 4 == 4 && len >= HEADER_LEN { Some(len) } else { None }
}
