//! UDP (RFC 768; RFC 6935 for a zero checksum over IPv6).

use std::ops::Range;

/// Source port.
pub const SRC: Range<usize> = 0..2;
/// Destination port.
pub const DST: Range<usize> = 2..4;
/// Length of header and payload.
pub const LEN: Range<usize> = 4..6;
/// Checksum, with a pseudo-header; zero says that there is none.
pub const CHECKSUM: Range<usize> = 6..8;
/// Bytes of the header.
pub const HEADER_LEN: usize = 8;
