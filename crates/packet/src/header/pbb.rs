//! The I-TAG of a provider backbone bridge (IEEE 802.1Q clause 9.7): flags, service instance,
//! then the customer's addresses.

use std::ops::Range;

/// Service instance (I-SID).
pub const ISID: Range<usize> = 1..4;
/// Customer addresses, destination first.
pub const C_ADDRESSES: Range<usize> = 4..16;
/// Bytes of the tag without the EtherType in front of it.
pub const TAG_LEN: usize = 16;
/// Bits of the priority in the first byte.
pub const PCP_SHIFT: u32 = 5;
/// Bit in the first byte: use of customer addresses.
pub const UCA_SHIFT: u32 = 3;
