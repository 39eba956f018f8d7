//! A packet for the controller, as an app sees it.
//!
//! Its headers are looked at when they are asked for, so an app pays for what it reads.

use std::sync::OnceLock;

use openflow::field::Header;
use openflow::{Field, PortNo, Version, Xid};
use packet::header::{be16, chunk, ethernet};
use packet::{Layout, Meta, extract};
use pyo3::prelude::{Bound, PyResult, Python};
use pyo3::types::PyBytes;

use crate::class::class;
use crate::headers::{Arp, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Mac, Sctp, Tcp, Udp, Vlan};
use crate::matching::Match;

/// Bytes of a packet-in of OpenFlow 1.3 before its match.
const PACKET_IN_FIXED: usize = 24;

/// EtherType of LLDP.
const LLDP: u16 = 0x88cc;

class! {
    /// A packet for the controller. Headers that it does not have are ``None``.
    PacketIn {
        pub(crate) inner: openflow::message::PacketIn,
        layout: OnceLock<Option<Layout>>,
    } |it| {
        /// The port that the packet came in by; `None` where the switch gives none.
        in_port: Option<u32> = it.inner.in_port().map(|port| port.0);
        /// The packet, or its beginning.
        data: &[u8] = &it.inner.data;
        /// Bytes of the whole packet.
        total_len: u16 = it.inner.total_len;
        /// Whether all of the packet is there.
        is_whole: bool = it.inner.data.len() >= usize::from(it.inner.total_len);
        /// The number under which the switch keeps the packet, if it does.
        buffer_id: Option<u32> = it.inner.buffer_id.map(|id| id.0);
        /// The reason: `"no_match"`, `"action"` or `"invalid_ttl"`.
        reason: &'static str = it.inner.reason.text();
        /// The table of the flow entry that sent it.
        table_id: u8 = it.inner.table_id.0;
        /// The cookie of that entry; all ones where there is none.
        cookie: u64 = it.inner.cookie.0;
        /// Fields that the switch gives beside the packet: its port, and those that the packet
        /// does not show.
        metadata: Match = Match { inner: it.inner.matching.clone() };
        /// The match that only packets with all these fields meet.
        exact_match: Match = {
            let port = it.inner.in_port().unwrap_or(PortNo::ANY);
            let key = extract(&it.inner.data, &Meta::port(port));
            let mut matching = openflow::Match::any();
            for row in openflow::field::FIELDS {
                let field = row.field;
                let is_there = key.matches(&openflow::Match::any()) && matching.matches(row.prereq);
                let is_meta = row.place.is_beside_packet() && field != Field::InPort;
                if is_there && !is_meta {
                    matching.set(field, key.get(field), field.full_mask());
                }
            }
            Match { inner: matching }
        };
        /// Ethernet source address.
        eth_src: Option<Mac> = chunk(&it.inner.data, ethernet::SRC.start).map(|bytes| Mac(*bytes));
        /// Ethernet destination address.
        eth_dst: Option<Mac> = chunk(&it.inner.data, ethernet::DST.start).map(|bytes| Mac(*bytes));
        /// EtherType after VLAN tags.
        eth_type: Option<u16> = it.layout().map(|layout| layout.eth_type);
        /// Whether the destination is a group: broadcast or multicast.
        is_group: bool = it.inner.data.first().is_some_and(|first| first & 1 != 0);
        /// Whether no switch forwards it: LLDP, and the addresses that IEEE 802.1D keeps to a link.
        is_link_local: bool = {
            let data = &it.inner.data;
            let is_kept = matches!(chunk::<6>(data, 0), Some([0x01, 0x80, 0xc2, 0, 0, 0..=15]));
            is_kept || be16(data, ethernet::ETHER_TYPE) == Some(LLDP)
        };
        /// Whether it is LLDP.
        is_lldp: bool = it.layout().is_some_and(|layout| layout.eth_type == LLDP);
        /// Whether it has a VLAN tag.
        is_vlan: bool = it.has(Header::Vlan);
        /// Whether it is ARP for IPv4 over Ethernet.
        is_arp: bool = it.has(Header::Arp);
        /// Whether it is IPv4.
        is_ipv4: bool = it.has(Header::Ipv4);
        /// Whether it is IPv6.
        is_ipv6: bool = it.has(Header::Ipv6);
        /// Whether it is TCP.
        is_tcp: bool = it.has(Header::Tcp);
        /// Whether it is UDP.
        is_udp: bool = it.has(Header::Udp);
        /// Whether it is SCTP.
        is_sctp: bool = it.has(Header::Sctp);
        /// Whether it is ICMP.
        is_icmpv4: bool = it.has(Header::Icmpv4);
        /// Whether it is ICMPv6.
        is_icmpv6: bool = it.has(Header::Icmpv6);
        /// The Ethernet header.
        eth: Option<Ethernet> = it.header(Ethernet::read);
        /// The outermost VLAN tag.
        vlan: Option<Vlan> = it.header(Vlan::read);
        /// The ARP packet.
        arp: Option<Arp> = it.header(Arp::read);
        /// The IPv4 header.
        ipv4: Option<Ipv4> = it.header(Ipv4::read);
        /// The IPv6 header.
        ipv6: Option<Ipv6> = it.header(Ipv6::read);
        /// The TCP header.
        tcp: Option<Tcp> = it.header(Tcp::read);
        /// The UDP header.
        udp: Option<Udp> = it.header(Udp::read);
        /// The SCTP common header.
        sctp: Option<Sctp> = it.header(Sctp::read);
        /// The ICMP header.
        icmpv4: Option<Icmpv4> = it.header(Icmpv4::read);
        /// The ICMPv6 header.
        icmpv6: Option<Icmpv6> = it.header(Icmpv6::read);
    }
    repr |it| {
        let port = it.in_port().map_or("?".to_owned(), |port| PortNo(port).to_string());
        let (len, reason) = (it.inner.data.len(), it.reason());
        format!("PacketIn(in_port={port}, {len} bytes, reason={reason:?})")
    };
    methods "    def _match(self) -> bytes: ...\n" {
        /// The fields that the switch gives beside the packet, as OpenFlow 1.3 has them, padded.
        fn _match<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
            let head = openflow::message::PacketIn {
                data: Vec::new(),
                userdata: Vec::new(),
                continuation: Vec::new(),
                matching: self.inner.matching.clone(),
                ..self.inner
            };
            let bytes = wire::encode(Version::V1_3, Xid(0), &openflow::Message::PacketIn(head));
            let bytes = bytes.map_err(|error| crate::errors::word(error.to_string()))?;
            // The match stands between the fixed fields and two bytes of padding.
            let end = bytes.len().saturating_sub(2);
            Ok(PyBytes::new(py, bytes.get(PACKET_IN_FIXED..end).unwrap_or_default()))
        }
    }
}

impl PacketIn {
    pub(crate) fn new(inner: openflow::message::PacketIn) -> Self {
        Self { inner, layout: OnceLock::new() }
    }

    fn layout(&self) -> Option<&Layout> {
        self.layout.get_or_init(|| Layout::of(&self.inner.data)).as_ref()
    }

    fn has(&self, header: Header) -> bool {
        self.layout().is_some_and(|layout| layout.at(header).is_some())
    }

    /// Reads one header, if the packet has it.
    fn header<T>(&self, read: fn(&[u8], &Layout) -> Option<T>) -> Option<T> {
        read(&self.inner.data, self.layout()?)
    }
}
