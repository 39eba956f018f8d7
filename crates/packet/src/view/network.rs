//! Questions about ARP, IPv4 and IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;

use super::{PacketView, byte, half};
use crate::header::{arp, chunk, ipv4, ipv6};
use crate::layout::Network;

/// ARP operation: a request.
const ARP_REQUEST: u16 = 1;
/// ARP operation: a reply.
const ARP_REPLY: u16 = 2;

impl<'a> PacketView<'a> {
    fn arp(&self) -> Option<&'a [u8]> {
        self.network(Network::Arp)
    }

    fn ipv4(&self) -> Option<&'a [u8]> {
        self.network(Network::Ipv4)
    }

    fn ipv6(&self) -> Option<&'a [u8]> {
        self.network(Network::Ipv6)
    }

    /// Whether it is ARP for IPv4 over Ethernet.
    #[must_use]
    pub fn is_arp(&self) -> bool {
        self.has_network(Network::Arp)
    }

    /// Whether it is an ARP request.
    #[must_use]
    pub fn is_arp_request(&self) -> bool {
        self.arp_oper() == Some(ARP_REQUEST)
    }

    /// Whether it is an ARP reply.
    #[must_use]
    pub fn is_arp_reply(&self) -> bool {
        self.arp_oper() == Some(ARP_REPLY)
    }

    /// Operation of ARP.
    #[must_use]
    pub fn arp_oper(&self) -> Option<u16> {
        half(self.arp(), arp::OP.start)
    }

    /// Sender's hardware address of ARP.
    #[must_use]
    pub fn arp_sha(&self) -> Option<MacAddr> {
        chunk(self.arp()?, arp::SHA.start).map(|bytes| MacAddr(*bytes))
    }

    /// Sender's protocol address of ARP.
    #[must_use]
    pub fn arp_spa(&self) -> Option<Ipv4Addr> {
        chunk::<4>(self.arp()?, arp::SPA.start).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Target's hardware address of ARP.
    #[must_use]
    pub fn arp_tha(&self) -> Option<MacAddr> {
        chunk(self.arp()?, arp::THA.start).map(|bytes| MacAddr(*bytes))
    }

    /// Target's protocol address of ARP.
    #[must_use]
    pub fn arp_tpa(&self) -> Option<Ipv4Addr> {
        chunk::<4>(self.arp()?, arp::TPA.start).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Whether it is IPv4.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.has_network(Network::Ipv4)
    }

    /// Version in the header of IPv4, which is 4.
    #[must_use]
    pub fn ipv4_version(&self) -> Option<u8> {
        byte(self.ipv4(), ipv4::VERSION_IHL).map(|first| first >> 4)
    }

    /// Length of the header of IPv4 in units of four bytes.
    #[must_use]
    pub fn ipv4_ihl(&self) -> Option<u8> {
        byte(self.ipv4(), ipv4::VERSION_IHL).map(|first| first & 0x0f)
    }

    /// Type of service of IPv4: DSCP and ECN.
    #[must_use]
    pub fn ipv4_tos(&self) -> Option<u8> {
        byte(self.ipv4(), ipv4::TOS)
    }

    /// Length of the IPv4 packet in bytes, as it states.
    #[must_use]
    pub fn ipv4_tot_len(&self) -> Option<u16> {
        half(self.ipv4(), ipv4::TOTAL_LEN.start)
    }

    /// Identification of IPv4.
    #[must_use]
    pub fn ipv4_id(&self) -> Option<u16> {
        half(self.ipv4(), ipv4::TOTAL_LEN.end)
    }

    /// Fragment offset of IPv4 in units of eight bytes.
    #[must_use]
    pub fn ipv4_frag_off(&self) -> Option<u16> {
        half(self.ipv4(), ipv4::FRAGMENT.start).map(|bits| bits & ipv4::OFFSET_MASK)
    }

    /// Time to live of IPv4.
    #[must_use]
    pub fn ipv4_ttl(&self) -> Option<u8> {
        byte(self.ipv4(), ipv4::TTL)
    }

    /// Protocol number of IPv4.
    #[must_use]
    pub fn ipv4_protocol(&self) -> Option<u8> {
        byte(self.ipv4(), ipv4::PROTO)
    }

    /// Header checksum of IPv4.
    #[must_use]
    pub fn ipv4_checksum(&self) -> Option<u16> {
        half(self.ipv4(), ipv4::CHECKSUM.start)
    }

    /// Source address of IPv4.
    #[must_use]
    pub fn ipv4_saddr(&self) -> Option<Ipv4Addr> {
        chunk::<4>(self.ipv4()?, ipv4::SRC.start).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Destination address of IPv4.
    #[must_use]
    pub fn ipv4_daddr(&self) -> Option<Ipv4Addr> {
        chunk::<4>(self.ipv4()?, ipv4::DST.start).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Whether it is IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.has_network(Network::Ipv6)
    }

    /// Hop limit of IPv6.
    #[must_use]
    pub fn ipv6_hop_limit(&self) -> Option<u8> {
        byte(self.ipv6(), ipv6::HOP_LIMIT)
    }

    /// The protocol behind IPv6's extension headers; `None` when their chain is cut off.
    #[must_use]
    pub fn ipv6_protocol(&self) -> Option<u8> {
        self.ipv6().and(self.layout?.ip_proto)
    }

    /// Source address of IPv6.
    #[must_use]
    pub fn ipv6_saddr(&self) -> Option<Ipv6Addr> {
        chunk::<16>(self.ipv6()?, ipv6::SRC.start).map(|bytes| Ipv6Addr::from(*bytes))
    }

    /// Destination address of IPv6, as its fixed header has it.
    #[must_use]
    pub fn ipv6_daddr(&self) -> Option<Ipv6Addr> {
        chunk::<16>(self.ipv6()?, ipv6::DST.start).map(|bytes| Ipv6Addr::from(*bytes))
    }
}
