//! Places of the headers of one frame.
//!
//! One walk over the frame for everyone: extraction reads at these offsets, rewriting writes at
//! them, so both always mean the same header. A header that the frame or the length of an outer
//! header cuts off is not there. The walk reads each byte at most once, never panics and never
//! looks behind MPLS labels or a PBB tag, where the match fields of OpenFlow 1.3 stop too.

mod ipv6;

use crate::header::{
    arp, be16, chunk, ethernet, icmpv4, icmpv6, ipv4, mpls, number, pbb, sctp, tcp, udp, vlan,
};
use openflow::field::Header;

/// The header behind the EtherType.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// None that is known, or a truncated or malformed one.
    #[default]
    Other,
    /// A stack of MPLS entries.
    Mpls,
    /// A PBB I-TAG.
    Pbb,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The header behind IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// None that is known, a truncated one, or the packet is a later fragment.
    #[default]
    Other,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP, over IPv4 only.
    Icmpv4,
    /// ICMPv6, over IPv6 only.
    Icmpv6,
}

/// Offsets of a frame's headers, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// VLAN tags; the first stands at offset 12, each has four bytes.
    pub tags: usize,
    /// EtherType behind all tags, or [`ethernet::NOT_ETHER_TYPE`].
    pub eth_type: u16,
    /// Place of that EtherType; none in an 802.2 frame without SNAP.
    pub eth_type_at: Option<usize>,
    /// Place of the length of an 802.3 frame.
    pub length_at: Option<usize>,
    /// Behind the EtherType: the first MPLS entry, the I-TAG, ARP or IP.
    pub l3: usize,
    /// Kind of the header at `l3`.
    pub network: Network,
    /// The protocol number of IPv4 or behind IPv6's extension headers; none without IP, or when the
    /// chain of extension headers is cut off.
    pub ip_proto: Option<u8>,
    /// Place of that number.
    pub ip_proto_at: usize,
    /// Extension headers of an IPv6 packet (`OFPIEH_*`).
    pub exthdr: u16,
    /// Whether the packet is a fragment, the first one included.
    pub fragment: bool,
    /// Whether it is a fragment other than the first.
    pub later_fragment: bool,
    /// Whether the frame ends before the length that IP states.
    pub truncated: bool,
    /// Place of an IPv6 routing header with segments left: checksums are then made over another
    /// destination than the one in the fixed header.
    pub routing_at: Option<usize>,
    /// Behind IP and its options or extension headers.
    pub l4: usize,
    /// Kind of the header at `l4`.
    pub transport: Transport,
    /// Behind the last byte that the lengths of the headers cover; padding follows.
    pub end: usize,
}

impl Layout {
    /// The headers of `frame`; none when it is too short for an Ethernet header.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        Self::of_inlined(frame)
    }

    /// [`Layout::of`] for extraction. As a call it gives bytes and words back through memory, where
    /// the processor waits for the bytes to become a word: 5 of the 110 ns of a lookup.
    #[inline(always)]
    pub(crate) fn of_inlined(frame: &[u8]) -> Option<Self> {
        let mut at = ethernet::ETHER_TYPE;
        let mut tags = 0;
        let mut eth_type = be16(frame, at)?;
        while ethernet::is_vlan(eth_type) {
            let Some(next) = be16(frame, at + vlan::TAG_LEN) else { break };
            eth_type = next;
            at += vlan::TAG_LEN;
            tags += 1;
        }
        let mut layout = Self {
            tags,
            eth_type,
            eth_type_at: Some(at),
            l3: at + 2,
            end: frame.len(),
            ..Self::default()
        };
        if eth_type < ethernet::ETHER_TYPE_MIN {
            layout.llc(frame, at);
        }
        layout.network(frame);
        Some(layout)
    }

    /// The headers of an IP packet of either version that stands at `l3` of `frame`, as behind
    /// MPLS; none when no version is there.
    pub(crate) fn of_ip(frame: &[u8], l3: usize) -> Option<Self> {
        let eth_type = match frame.get(l3)? >> 4 {
            4 => ethernet::IPV4,
            6 => ethernet::IPV6,
            _ => return None,
        };
        let mut layout = Self { eth_type, l3, end: frame.len(), ..Self::default() };
        layout.network(frame);
        Some(layout)
    }

    /// 802.3: the EtherType is behind SNAP, or there is none.
    fn llc(&mut self, frame: &[u8], length_at: usize) {
        self.length_at = Some(length_at);
        self.end = self.end.min(self.l3 + usize::from(self.eth_type));
        self.eth_type = ethernet::NOT_ETHER_TYPE;
        self.eth_type_at = None;
        let body = frame.get(..self.end).unwrap_or_default();
        if chunk(body, self.l3) != Some(&ethernet::SNAP) {
            return;
        }
        let at = self.l3 + ethernet::SNAP.len();
        if let Some(snap) = be16(body, at).filter(|snap| *snap >= ethernet::ETHER_TYPE_MIN) {
            self.eth_type = snap;
            self.eth_type_at = Some(at);
            self.l3 = at + 2;
        }
    }

    #[inline]
    fn network(&mut self, frame: &[u8]) {
        let room = self.end.saturating_sub(self.l3);
        self.network = match self.eth_type {
            ethernet::IPV4 => return self.ipv4(frame),
            ethernet::IPV6 => return self.ipv6(frame),
            ethernet::ARP => {
                let known = chunk(frame, self.l3) == Some(&arp::ETHERNET_IPV4);
                if known && room >= arp::PACKET_LEN { Network::Arp } else { Network::Other }
            }
            other if ethernet::is_mpls(other) && room >= mpls::ENTRY_LEN => Network::Mpls,
            ethernet::PBB if room >= pbb::TAG_LEN => Network::Pbb,
            _ => Network::Other,
        };
    }

    #[inline]
    fn ipv4(&mut self, frame: &[u8]) {
        let Some(fixed) = chunk::<{ ipv4::HEADER_LEN }>(frame, self.l3) else { return };
        let Some(header_len) = ipv4::header_len(fixed[ipv4::VERSION_IHL]) else { return };
        let total_len = number(&fixed[ipv4::TOTAL_LEN]) as usize;
        let stated = self.l3 + total_len;
        let end = self.end.min(stated);
        if total_len < header_len || end < self.l3 + header_len {
            return;
        }
        let fragment = number(&fixed[ipv4::FRAGMENT]) as u16;
        self.truncated = end < stated;
        self.end = end;
        self.network = Network::Ipv4;
        self.ip_proto = Some(fixed[ipv4::PROTO]);
        self.ip_proto_at = self.l3 + ipv4::PROTO;
        self.fragment = fragment & (ipv4::OFFSET_MASK | ipv4::MORE_FRAGMENTS) != 0;
        self.later_fragment = fragment & ipv4::OFFSET_MASK != 0;
        self.l4 = self.l3 + header_len;
        if !self.later_fragment {
            self.transport(fixed[ipv4::PROTO], ipv4::PROTO_ICMP, Transport::Icmpv4);
        }
    }

    /// The transport header at `l4`; `icmp` is the number that ICMP has over this IP version.
    #[inline]
    fn transport(&mut self, proto: u8, icmp: u8, icmp_kind: Transport) {
        let (kind, least) = match proto {
            ipv4::PROTO_TCP => (Transport::Tcp, tcp::HEADER_LEN),
            ipv4::PROTO_UDP => (Transport::Udp, udp::HEADER_LEN),
            ipv4::PROTO_SCTP => (Transport::Sctp, sctp::HEADER_LEN),
            other if other == icmp && icmp == ipv4::PROTO_ICMP => (icmp_kind, icmpv4::HEADER_LEN),
            other if other == icmp => (icmp_kind, icmpv6::HEADER_LEN),
            _ => return,
        };
        if self.end.saturating_sub(self.l4) >= least {
            self.transport = kind;
        }
    }

    /// Start of a header of the rows of match fields; none when the frame does not have it.
    #[must_use]
    pub fn at(&self, header: Header) -> Option<usize> {
        let network = |wanted| (self.network == wanted).then_some(self.l3);
        let transport = |wanted| (self.transport == wanted).then_some(self.l4);
        match header {
            Header::Ethernet => Some(0),
            Header::Vlan => (self.tags > 0).then_some(vlan::OUTERMOST_TCI),
            Header::Mpls => network(Network::Mpls),
            Header::Pbb => network(Network::Pbb),
            Header::Arp => network(Network::Arp),
            Header::Ipv4 => network(Network::Ipv4),
            Header::Ipv6 => network(Network::Ipv6),
            Header::Tcp => transport(Transport::Tcp),
            Header::Udp => transport(Transport::Udp),
            Header::Sctp => transport(Transport::Sctp),
            Header::Icmpv4 => transport(Transport::Icmpv4),
            Header::Icmpv6 => transport(Transport::Icmpv6),
        }
    }

    /// Place of the target address of a neighbour solicitation or advertisement.
    #[must_use]
    pub fn nd_target_at(&self, frame: &[u8]) -> Option<usize> {
        let start = self.at(Header::Icmpv6)?;
        let kind = *frame.get(start + icmpv6::TYPE)?;
        let asked = matches!(kind, icmpv6::NEIGHBOUR_SOLICIT | icmpv6::NEIGHBOUR_ADVERT);
        (asked && start + icmpv6::ND_TARGET.end <= self.end)
            .then_some(start + icmpv6::ND_TARGET.start)
    }

    /// Place of the address in the source link-layer option of a neighbour solicitation.
    #[must_use]
    pub fn nd_sll_at(&self, frame: &[u8]) -> Option<usize> {
        self.nd_option_at(frame, icmpv6::NEIGHBOUR_SOLICIT, icmpv6::OPTION_SLL)
    }

    /// Place of the address in the target link-layer option of a neighbour advertisement.
    #[must_use]
    pub fn nd_tll_at(&self, frame: &[u8]) -> Option<usize> {
        self.nd_option_at(frame, icmpv6::NEIGHBOUR_ADVERT, icmpv6::OPTION_TLL)
    }

    /// The first option of that type which is long enough for an Ethernet address.
    fn nd_option_at(&self, frame: &[u8], message: u8, option: u8) -> Option<usize> {
        self.nd_target_at(frame)?;
        if *frame.get(self.l4 + icmpv6::TYPE)? != message {
            return None;
        }
        let body = frame.get(..self.end)?;
        let mut at = self.l4 + icmpv6::ND_OPTIONS;
        loop {
            let [kind, units, ..] = *chunk::<{ icmpv6::OPTION_UNIT }>(body, at)?;
            if kind == option && units > 0 {
                return Some(at + icmpv6::OPTION_ADDR.start);
            }
            if units == 0 {
                return None;
            }
            at += usize::from(units) * icmpv6::OPTION_UNIT;
        }
    }
}
