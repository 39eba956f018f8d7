//! SCTP, the common header (RFC 9260 section 3.1).

use std::ops::Range;

/// Source port.
pub const SRC: Range<usize> = 0..2;
/// Destination port.
pub const DST: Range<usize> = 2..4;
/// CRC32c over the whole packet, without a pseudo-header, least significant byte first.
pub const CHECKSUM: Range<usize> = 8..12;
/// Bytes of the common header.
pub const HEADER_LEN: usize = 12;
