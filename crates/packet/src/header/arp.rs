//! ARP for IPv4 over Ethernet (RFC 826).

use std::ops::Range;

/// Operation.
pub const OP: Range<usize> = 6..8;
/// Sender hardware address.
pub const SHA: Range<usize> = 8..14;
/// Sender protocol address.
pub const SPA: Range<usize> = 14..18;
/// Target hardware address.
pub const THA: Range<usize> = 18..24;
/// Target protocol address.
pub const TPA: Range<usize> = 24..28;
/// Bytes of the packet.
pub const PACKET_LEN: usize = 28;
/// First bytes of every ARP packet for IPv4 over Ethernet: types and lengths of both addresses.
pub const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
