//! TCP (RFC 9293).

use std::ops::Range;

/// Source port.
pub const SRC: Range<usize> = 0..2;
/// Destination port.
pub const DST: Range<usize> = 2..4;
/// Checksum, with a pseudo-header.
pub const CHECKSUM: Range<usize> = 16..18;
/// Bytes of the header without options.
pub const HEADER_LEN: usize = 20;
/// Flags, behind four bits of the header's length.
pub const FLAGS: Range<usize> = 12..14;
/// Offset of the byte whose upper half is the length of the header, in words of 32 bits.
pub const DATA_OFFSET: usize = 12;
