//! ICMPv6 (RFC 4443) and the neighbour discovery messages that OpenFlow matches (RFC 4861).

use std::ops::Range;

/// Type.
pub const TYPE: usize = 0;
/// Code.
pub const CODE: usize = 1;
/// Checksum, with a pseudo-header.
pub const CHECKSUM: Range<usize> = 2..4;
/// Bytes that every message has.
pub const HEADER_LEN: usize = 4;

/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Type of an echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Type of a neighbour solicitation.
pub const NEIGHBOUR_SOLICIT: u8 = 135;
/// Type of a neighbour advertisement.
pub const NEIGHBOUR_ADVERT: u8 = 136;

/// Target address of a neighbour solicitation or advertisement.
pub const ND_TARGET: Range<usize> = 8..24;
/// Offset of the options of a neighbour solicitation or advertisement.
pub const ND_OPTIONS: usize = 24;
/// Option type "source link-layer address".
pub const OPTION_SLL: u8 = 1;
/// Option type "target link-layer address".
pub const OPTION_TLL: u8 = 2;
/// The link-layer address in such an option.
pub const OPTION_ADDR: Range<usize> = 2..8;
/// Unit of the length of options in bytes.
pub const OPTION_UNIT: usize = 8;
