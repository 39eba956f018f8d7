//! A packet parsed once and asked in plain words: `is_arp()`, `ipv4_saddr()`, `tcp_dst_port()`.
//!
//! For apps of a controller and for tests; the questions are those of Trema's packet-in. Each
//! answer is an `Option`: `None` when the packet does not have the header, or it is cut off.
//! Numbers are in the byte order of the machine. Not for the hot path of a switch, which uses
//! [`fn@crate::extract`]. It must never trust a length that the packet states.

mod network;
mod transport;

use openflow::MacAddr;

use crate::header::{be16, chunk, ethernet, vlan};
use crate::layout::{Layout, Network, Transport};

/// EtherType of LLDP (IEEE 802.1AB).
const LLDP: u16 = 0x88cc;

/// A parsed packet.
///
/// ```
/// use openflow::MacAddr;
/// use packet::PacketView;
/// use packet::build::{FrameBuilder, Ipv4};
/// use std::net::Ipv4Addr;
///
/// let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
/// let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
///     .vlan(3, 100)
///     .ipv4(Ipv4::new(here, there))
///     .udp(1234, 53)
///     .fill_to(64)
///     .build();
///
/// let packet = PacketView::of(&frame);
/// assert_eq!(packet.eth_src(), Some(MacAddr::from_u64(1)));
/// assert!(packet.is_vlan() && packet.is_ipv4() && packet.is_udp() && !packet.is_arp());
/// assert_eq!((packet.vlan_vid(), packet.vlan_pcp()), (Some(100), Some(3)));
/// assert_eq!(packet.ipv4_daddr(), Some(there));
/// assert_eq!(packet.udp_dst_port(), Some(53));
/// assert_eq!(packet.arp_spa(), None, "it has no such header");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    frame: &'a [u8],
    /// `None` for a frame without an Ethernet header.
    layout: Option<Layout>,
}

impl<'a> PacketView<'a> {
    /// A frame from its Ethernet header on: any bytes will do.
    #[must_use]
    pub fn of(frame: &'a [u8]) -> Self {
        Self { frame, layout: Layout::of(frame) }
    }

    /// The whole frame.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.frame
    }

    /// Places of the headers; `None` for a frame without an Ethernet header.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    fn has_network(&self, network: Network) -> bool {
        self.layout.is_some_and(|layout| layout.network == network)
    }

    fn has_transport(&self, transport: Transport) -> bool {
        self.layout.is_some_and(|layout| layout.transport == transport)
    }

    /// The bytes from the network header on, when the packet has this one.
    fn network(&self, network: Network) -> Option<&'a [u8]> {
        let layout = self.layout.filter(|layout| layout.network == network)?;
        self.frame.get(layout.l3..layout.end)
    }

    /// The bytes from the transport header on, when the packet has this one.
    fn transport(&self, transport: Transport) -> Option<&'a [u8]> {
        let layout = self.layout.filter(|layout| layout.transport == transport)?;
        self.frame.get(layout.l4..layout.end)
    }

    /// Destination address of Ethernet (Trema's `macda`).
    #[must_use]
    pub fn eth_dst(&self) -> Option<MacAddr> {
        chunk(self.frame, ethernet::DST.start).map(|bytes| MacAddr(*bytes))
    }

    /// Source address of Ethernet (Trema's `macsa`).
    #[must_use]
    pub fn eth_src(&self) -> Option<MacAddr> {
        chunk(self.frame, ethernet::SRC.start).map(|bytes| MacAddr(*bytes))
    }

    /// The EtherType behind all VLAN tags; [`ethernet::NOT_ETHER_TYPE`] for 802.3 without SNAP.
    #[must_use]
    pub fn eth_type(&self) -> Option<u16> {
        self.layout.map(|layout| layout.eth_type)
    }

    /// Whether more than one station may have the destination address: a group or all.
    #[must_use]
    pub fn is_to_group(&self) -> bool {
        self.frame.first().is_some_and(|first| first & 1 != 0)
    }

    /// Whether a bridge keeps the frame to its link (`01:80:c2:00:00:00` to `0f`, IEEE 802.1D).
    #[must_use]
    pub fn is_kept_to_link(&self) -> bool {
        matches!(self.frame, [0x01, 0x80, 0xc2, 0, 0, 0..=15, ..])
    }

    /// Whether it is an LLDP frame.
    #[must_use]
    pub fn is_lldp(&self) -> bool {
        self.eth_type() == Some(LLDP)
    }

    /// Whether it has a VLAN tag (Trema's `vtag?`).
    #[must_use]
    pub fn is_vlan(&self) -> bool {
        self.layout.is_some_and(|layout| layout.tags > 0)
    }

    /// EtherType of the outermost VLAN tag.
    #[must_use]
    pub fn vlan_tpid(&self) -> Option<u16> {
        self.is_vlan().then(|| be16(self.frame, ethernet::ETHER_TYPE))?
    }

    /// Control information of the outermost VLAN tag, whole.
    #[must_use]
    pub fn vlan_tci(&self) -> Option<u16> {
        self.is_vlan().then(|| be16(self.frame, vlan::OUTERMOST_TCI))?
    }

    /// VLAN id of the outermost tag.
    #[must_use]
    pub fn vlan_vid(&self) -> Option<u16> {
        self.vlan_tci().map(vlan::vid)
    }

    /// Priority of the outermost tag (Trema's `vlan_prio`).
    #[must_use]
    pub fn vlan_pcp(&self) -> Option<u8> {
        self.vlan_tci().map(vlan::pcp)
    }

    /// Drop eligible indicator of the outermost tag (Trema's `vlan_cfi`).
    #[must_use]
    pub fn vlan_dei(&self) -> Option<bool> {
        self.vlan_tci().map(|tci| tci >> 12 & 1 != 0)
    }

    /// Whether MPLS labels follow.
    #[must_use]
    pub fn is_mpls(&self) -> bool {
        self.has_network(Network::Mpls)
    }

    /// The bytes behind the last header that is known, without padding.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let Some(layout) = self.layout else { return self.frame };
        let start = match (layout.transport, layout.network) {
            (Transport::Tcp, _) => layout.l4 + self.tcp_header_len().unwrap_or(0),
            (Transport::Udp, _) => layout.l4 + crate::header::udp::HEADER_LEN,
            (Transport::Sctp, _) => layout.l4 + crate::header::sctp::HEADER_LEN,
            (Transport::Icmpv4, _) => layout.l4 + crate::header::icmpv4::HEADER_LEN,
            (Transport::Icmpv6, _) => layout.l4 + crate::header::icmpv6::HEADER_LEN,
            (Transport::Other, Network::Ipv4 | Network::Ipv6) => layout.l4,
            (Transport::Other, Network::Arp) => layout.l3 + crate::header::arp::PACKET_LEN,
            (Transport::Other, Network::Other | Network::Mpls | Network::Pbb) => layout.l3,
        };
        self.frame.get(start..layout.end).unwrap_or_default()
    }
}

/// One byte of a header.
fn byte(header: Option<&[u8]>, at: usize) -> Option<u8> {
    header?.get(at).copied()
}

/// A number of 16 bits of a header.
fn half(header: Option<&[u8]>, at: usize) -> Option<u16> {
    be16(header?, at)
}

/// A number of 32 bits of a header.
fn word(header: Option<&[u8]>, at: usize) -> Option<u32> {
    chunk(header?, at).map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::PacketView;
    use crate::build::{Arp, FrameBuilder, Ipv4, Ipv6, Tcp};
    use openflow::MacAddr;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn ethernet() -> FrameBuilder {
        FrameBuilder::ethernet(MacAddr::from_u64(0xb), MacAddr::from_u64(0xa))
    }

    #[test]
    fn every_question_has_no_answer_where_the_packet_ends() {
        let frames = [
            ethernet().vlan(5, 7).ipv4(Ipv4::new(HERE, THERE)).udp(1, 2).fill_to(100).build(),
            ethernet().ipv4(Ipv4::new(HERE, THERE)).echo_request(1, 2).fill_to(100).build(),
            ethernet().ipv6(Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)).udp(1, 2).build(),
            ethernet().ipv4(Ipv4::new(HERE, THERE)).tcp(Tcp::new(80, 8080)).fill_to(100).build(),
        ];
        for frame in &frames {
            for end in 0..frame.len() {
                let view = PacketView::of(&frame[..end]);
                assert!(view.payload().len() <= end);
                assert_eq!(view.is_tcp(), view.tcp_flags().is_some());
                assert_eq!(view.is_vlan(), view.vlan_tci().is_some());
                assert_eq!(view.is_ipv4(), view.ipv4_saddr().is_some());
                assert_eq!(view.is_udp(), view.udp_checksum().is_some());
                assert_eq!(view.is_icmpv4(), view.icmpv4_code().is_some());
            }
        }
    }

    #[test]
    fn what_a_bridge_keeps_to_its_link_is_known() {
        let frame =
            FrameBuilder::ethernet(MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]), MacAddr::from_u64(1))
                .ether_type(0x88cc)
                .fill_to(60)
                .build();
        let view = PacketView::of(&frame);
        assert!(view.is_lldp() && view.is_kept_to_link() && view.is_to_group() && !view.is_vlan());
    }

    #[test]
    fn the_fields_of_arp_are_shown() {
        let (sha, tha) = (MacAddr::from_u64(0xa), MacAddr::default());
        let arp = Arp { op: 1, sha, spa: HERE, tha, tpa: THERE };
        let frame = ethernet().arp(arp).fill_to(60).build();
        let view = PacketView::of(&frame);
        assert!(view.is_arp() && view.is_arp_request() && !view.is_arp_reply());
        assert_eq!((view.arp_spa(), view.arp_tpa()), (Some(HERE), Some(THERE)));
        assert_eq!(view.arp_sha(), Some(MacAddr::from_u64(0xa)));
        assert_eq!(view.ipv4_saddr(), None);
    }

    #[test]
    fn the_fields_of_tcp_over_ipv4_are_shown() {
        let frame = ethernet()
            .ipv4(Ipv4::new(HERE, THERE))
            .tcp(Tcp::new(80, 8080))
            .payload(b"hello")
            .fill_to(60)
            .build();
        let view = PacketView::of(&frame);
        assert_eq!((view.ipv4_version(), view.ipv4_ihl()), (Some(4), Some(5)));
        assert_eq!(view.ipv4_protocol(), Some(6));
        assert_eq!((view.tcp_src_port(), view.tcp_dst_port()), (Some(80), Some(8080)));
        assert_eq!(view.tcp_offset(), Some(5));
        assert!(view.payload().starts_with(b"hello"), "{:?}", view.payload());
        assert!(!view.is_igmp() && view.igmp_type().is_none());
    }
}
