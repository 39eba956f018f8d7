//! Ethernet II and IEEE 802.3 with LLC and SNAP (IEEE 802.3 clause 3, IEEE 802.2, RFC 1042).

use std::ops::Range;

/// Destination address.
pub const DST: Range<usize> = 0..6;
/// Source address.
pub const SRC: Range<usize> = 6..12;
/// Bytes of both addresses.
pub const ADDRESSES_LEN: usize = 12;
/// Offset of the EtherType or of the 802.3 length, when there is no tag.
pub const ETHER_TYPE: usize = 12;
/// Bytes of the header without tags.
pub const HEADER_LEN: usize = 14;
/// Bytes of the shortest frame, without FCS (IEEE 802.3, clause 3.2.8). Hardware fills up what is
/// shorter; virtual devices hand on what they are given.
pub const FRAME_MIN_LEN: usize = 60;
/// Numbers below this one are an 802.3 length, not an EtherType.
pub const ETHER_TYPE_MIN: u16 = 0x0600;
/// OpenFlow's number for the EtherType of a frame that has none (`OFP_DL_TYPE_NOT_ETH_TYPE`).
pub const NOT_ETHER_TYPE: u16 = 0x05ff;
/// Bytes of LLC and SNAP with an EtherType behind them: `aa aa 03 00 00 00`.
pub const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of MPLS.
pub const MPLS: u16 = 0x8847;
/// EtherType of MPLS with an upstream-assigned label.
pub const MPLS_UPSTREAM: u16 = 0x8848;
/// EtherType of a PBB I-TAG.
pub const PBB: u16 = 0x88e7;
/// EtherType of transparent Ethernet bridging: an Ethernet frame in GRE (RFC 1701).
pub const BRIDGED: u16 = 0x6558;
/// EtherType of a customer VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag.
pub const SERVICE_VLAN: u16 = 0x88a8;
/// EtherType that some vendors used for outer VLAN tags.
pub const OLD_QINQ: u16 = 0x9100;

/// Whether a VLAN tag follows this EtherType.
#[inline]
#[must_use]
pub const fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, VLAN | SERVICE_VLAN | OLD_QINQ)
}

/// Whether an MPLS label stack follows this EtherType.
#[inline]
#[must_use]
pub const fn is_mpls(ether_type: u16) -> bool {
    matches!(ether_type, MPLS | MPLS_UPSTREAM)
}
