//! A VLAN tag (IEEE 802.1Q clause 9): the EtherType in front of it, then priority, DEI and VLAN id.

/// Offset of the outermost tag's control information in a frame.
pub const OUTERMOST_TCI: usize = 14;
/// Bytes that a tag adds to a frame.
pub const TAG_LEN: usize = 4;
/// Bits of the VLAN id in the control information.
pub const VID_MASK: u16 = 0x0fff;
/// Bits of the priority in the control information.
pub const PCP_SHIFT: u32 = 13;

/// VLAN id of control information.
#[inline]
#[must_use]
pub const fn vid(tci: u16) -> u16 {
    tci & VID_MASK
}

/// Priority of control information.
#[inline]
#[must_use]
pub const fn pcp(tci: u16) -> u8 {
    (tci >> PCP_SHIFT) as u8
}
