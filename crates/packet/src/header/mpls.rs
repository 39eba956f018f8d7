//! An MPLS label stack entry (RFC 3032 section 2.1, RFC 5462): label, traffic class,
//! bottom of stack, TTL.

/// Bytes of an entry.
pub const ENTRY_LEN: usize = 4;
/// Offset of the TTL in an entry.
pub const TTL: usize = 3;
/// Bit of the bottom of stack in the 32 bits of an entry.
pub const BOS: u32 = 1 << 8;

/// Label of an entry.
#[inline]
#[must_use]
pub const fn label(entry: u32) -> u32 {
    entry >> 12
}

/// Traffic class of an entry.
#[inline]
#[must_use]
pub const fn tc(entry: u32) -> u8 {
    (entry >> 9 & 7) as u8
}

/// Whether the entry is the last of its stack.
#[inline]
#[must_use]
pub const fn bos(entry: u32) -> bool {
    entry & BOS != 0
}

/// An entry of its parts; each is cut to its width.
#[inline]
#[must_use]
pub const fn entry(label: u32, tc: u8, bos: bool, ttl: u8) -> u32 {
    label << 12 | (tc as u32 & 7) << 9 | (bos as u32) << 8 | ttl as u32
}
