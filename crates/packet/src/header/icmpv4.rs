//! ICMP (RFC 792).

use std::ops::Range;

/// Type.
pub const TYPE: usize = 0;
/// Code.
pub const CODE: usize = 1;
/// Checksum, without a pseudo-header.
pub const CHECKSUM: Range<usize> = 2..4;
/// Bytes that every message has.
pub const HEADER_LEN: usize = 8;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type of an echo reply.
pub const ECHO_REPLY: u8 = 0;
