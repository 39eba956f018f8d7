//! IPv6, its extension headers (RFC 8200, RFC 4302, RFC 4303) and the bits by which OpenFlow names
//! them (`OFPIEH_*`).

use std::ops::Range;

/// Length of everything behind the fixed header.
pub const PAYLOAD_LEN: Range<usize> = 4..6;
/// Number of the header that follows.
pub const NEXT_HEADER: usize = 6;
/// Hop limit.
pub const HOP_LIMIT: usize = 7;
/// Source address.
pub const SRC: Range<usize> = 8..24;
/// Destination address.
pub const DST: Range<usize> = 24..40;
/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;

/// Protocol number of ICMPv6.
pub const PROTO_ICMPV6: u8 = 58;

/// Number of the hop-by-hop options header.
pub const HOP: u8 = 0;
/// Number of the routing header.
pub const ROUTING: u8 = 43;
/// Number of the fragment header.
pub const FRAGMENT: u8 = 44;
/// Number of the encapsulating security payload.
pub const ESP: u8 = 50;
/// Number of the authentication header.
pub const AUTH: u8 = 51;
/// Number that says that nothing follows.
pub const NO_NEXT: u8 = 59;
/// Number of the destination options header.
pub const DEST: u8 = 60;

/// Length byte of an extension header, in units of eight bytes behind the first eight.
pub const EXT_LEN: usize = 1;
/// Routing type of a routing header.
pub const ROUTING_TYPE: usize = 2;
/// Segments left of a routing header.
pub const SEGMENTS_LEFT: usize = 3;
/// Offset and flag of a fragment header.
pub const FRAGMENT_OFFSET: Range<usize> = 2..4;
/// The offset in [`FRAGMENT_OFFSET`].
pub const OFFSET_MASK: u16 = 0xfff8;
/// "More fragments" in [`FRAGMENT_OFFSET`].
pub const MORE_FRAGMENTS: u16 = 1;
/// Bytes of a fragment header, and the least of every other extension header.
pub const EXT_LEN_MIN: usize = 8;

/// `OFPIEH_NONEXT`: "no next header" was met.
pub const IEH_NONEXT: u16 = 1 << 0;
/// `OFPIEH_ESP`: encrypted payload.
pub const IEH_ESP: u16 = 1 << 1;
/// `OFPIEH_AUTH`: authentication header.
pub const IEH_AUTH: u16 = 1 << 2;
/// `OFPIEH_DEST`: one or two destination options headers.
pub const IEH_DEST: u16 = 1 << 3;
/// `OFPIEH_FRAG`: fragment header.
pub const IEH_FRAG: u16 = 1 << 4;
/// `OFPIEH_ROUTER`: routing header.
pub const IEH_ROUTER: u16 = 1 << 5;
/// `OFPIEH_HOP`: hop-by-hop options header in the first place.
pub const IEH_HOP: u16 = 1 << 6;
/// `OFPIEH_UNREP`: a header was repeated that should stand once.
pub const IEH_UNREP: u16 = 1 << 7;
/// `OFPIEH_UNSEQ`: the headers are not in the order that RFC 8200 section 4.1 prefers.
pub const IEH_UNSEQ: u16 = 1 << 8;
