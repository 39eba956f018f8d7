//! A packet for the controller, as an app sees it.
//!
//! Its headers are looked at when they are asked for, so an app pays for what it reads.

use std::sync::OnceLock;

use openflow::field::Header;
use openflow::{Field, PortNo};
use packet::header::{be16, chunk, ethernet};
use packet::{Layout, Meta, extract};
use pyo3::prelude::{Bound, Python, pyclass, pymethods};
use pyo3::types::PyBytes;

use crate::headers::{Arp, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Mac, Sctp, Tcp, Udp, Vlan};
use crate::matching::Match;

/// EtherType of LLDP.
const LLDP: u16 = 0x88cc;

/// A packet-in.
#[pyclass(frozen, module = "weir")]
pub(crate) struct PacketIn {
    pub(crate) inner: openflow::message::PacketIn,
    layout: OnceLock<Option<Layout>>,
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

#[pymethods]
impl PacketIn {
    /// The port that the packet came in by; `None` where the switch does not say.
    #[getter]
    pub(crate) fn in_port(&self) -> Option<u32> {
        self.inner.in_port().map(|port| port.0)
    }

    /// The packet, or its beginning.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.data)
    }

    /// Bytes of the whole packet.
    #[getter]
    fn total_len(&self) -> u16 {
        self.inner.total_len
    }

    /// Whether all of the packet is there.
    #[getter]
    fn is_whole(&self) -> bool {
        self.inner.data.len() >= usize::from(self.inner.total_len)
    }

    /// Where the switch keeps the packet, if it does.
    #[getter]
    fn buffer_id(&self) -> Option<u32> {
        self.inner.buffer_id.map(|id| id.0)
    }

    /// Why it came: `"no_match"`, `"action"` or `"invalid_ttl"`.
    #[getter]
    fn reason(&self) -> &'static str {
        self.inner.reason.text()
    }

    /// The table of the flow entry that sent it.
    #[getter]
    fn table_id(&self) -> u8 {
        self.inner.table_id.0
    }

    /// The cookie of that entry; all ones where there is none.
    #[getter]
    fn cookie(&self) -> u64 {
        self.inner.cookie.0
    }

    /// What the switch says of the packet: its port, and fields that the packet does not show.
    #[getter]
    fn metadata(&self) -> Match {
        Match { inner: self.inner.matching.clone() }
    }

    /// The match that only packets with all these fields meet.
    #[getter]
    fn exact_match(&self) -> Match {
        let port = self.inner.in_port().unwrap_or(PortNo::ANY);
        let key = extract(&self.inner.data, &Meta::port(port));
        let mut matching = openflow::Match::any();
        for row in openflow::field::FIELDS {
            let field = row.field;
            let is_there = key.matches(&openflow::Match::any()) && matching.matches(row.prereq);
            if is_there && !matches!(field, Field::InPhyPort | Field::Metadata | Field::TunnelId) {
                matching.set(field, key.get(field), field.full_mask());
            }
        }
        Match { inner: matching }
    }

    /// Ethernet source address.
    #[getter]
    fn eth_src(&self) -> Option<Mac> {
        chunk(&self.inner.data, ethernet::SRC.start).map(|bytes| Mac(*bytes))
    }

    /// Ethernet destination address.
    #[getter]
    fn eth_dst(&self) -> Option<Mac> {
        chunk(&self.inner.data, ethernet::DST.start).map(|bytes| Mac(*bytes))
    }

    /// EtherType behind VLAN tags.
    #[getter]
    fn eth_type(&self) -> Option<u16> {
        self.layout().map(|layout| layout.eth_type)
    }

    /// Whether the destination is a group: broadcast or multicast.
    #[getter]
    fn is_group(&self) -> bool {
        self.inner.data.first().is_some_and(|first| first & 1 != 0)
    }

    /// Whether no switch forwards it: LLDP, and the addresses that IEEE 802.1D keeps to a link.
    #[getter]
    fn is_link_local(&self) -> bool {
        let data = &self.inner.data;
        let is_kept = matches!(chunk::<6>(data, 0), Some([0x01, 0x80, 0xc2, 0, 0, 0..=15]));
        is_kept || be16(data, ethernet::ETHER_TYPE) == Some(LLDP)
    }

    /// Whether it is LLDP.
    #[getter]
    fn is_lldp(&self) -> bool {
        self.layout().is_some_and(|layout| layout.eth_type == LLDP)
    }

    /// Whether it has a VLAN tag.
    #[getter]
    fn is_vlan(&self) -> bool {
        self.has(Header::Vlan)
    }

    /// Whether it is ARP for IPv4 over Ethernet.
    #[getter]
    fn is_arp(&self) -> bool {
        self.has(Header::Arp)
    }

    /// Whether it is IPv4.
    #[getter]
    fn is_ipv4(&self) -> bool {
        self.has(Header::Ipv4)
    }

    /// Whether it is IPv6.
    #[getter]
    fn is_ipv6(&self) -> bool {
        self.has(Header::Ipv6)
    }

    /// Whether it is TCP.
    #[getter]
    fn is_tcp(&self) -> bool {
        self.has(Header::Tcp)
    }

    /// Whether it is UDP.
    #[getter]
    fn is_udp(&self) -> bool {
        self.has(Header::Udp)
    }

    /// Whether it is SCTP.
    #[getter]
    fn is_sctp(&self) -> bool {
        self.has(Header::Sctp)
    }

    /// Whether it is ICMP.
    #[getter]
    fn is_icmpv4(&self) -> bool {
        self.has(Header::Icmpv4)
    }

    /// Whether it is ICMPv6.
    #[getter]
    fn is_icmpv6(&self) -> bool {
        self.has(Header::Icmpv6)
    }

    /// The Ethernet header.
    #[getter]
    fn eth(&self) -> Option<Ethernet> {
        self.header(Ethernet::read)
    }

    /// The outermost VLAN tag.
    #[getter]
    fn vlan(&self) -> Option<Vlan> {
        self.header(Vlan::read)
    }

    /// The ARP packet.
    #[getter]
    fn arp(&self) -> Option<Arp> {
        self.header(Arp::read)
    }

    /// The IPv4 header.
    #[getter]
    fn ipv4(&self) -> Option<Ipv4> {
        self.header(Ipv4::read)
    }

    /// The IPv6 header.
    #[getter]
    fn ipv6(&self) -> Option<Ipv6> {
        self.header(Ipv6::read)
    }

    /// The TCP header.
    #[getter]
    fn tcp(&self) -> Option<Tcp> {
        self.header(Tcp::read)
    }

    /// The UDP header.
    #[getter]
    fn udp(&self) -> Option<Udp> {
        self.header(Udp::read)
    }

    /// The SCTP common header.
    #[getter]
    fn sctp(&self) -> Option<Sctp> {
        self.header(Sctp::read)
    }

    /// The ICMP header.
    #[getter]
    fn icmpv4(&self) -> Option<Icmpv4> {
        self.header(Icmpv4::read)
    }

    /// The ICMPv6 header.
    #[getter]
    fn icmpv6(&self) -> Option<Icmpv6> {
        self.header(Icmpv6::read)
    }

    fn __repr__(&self) -> String {
        let port = self.in_port().map_or("?".to_owned(), |port| PortNo(port).to_string());
        let (len, reason) = (self.inner.data.len(), self.reason());
        format!("PacketIn(in_port={port}, {len} bytes, reason={reason:?})")
    }
}
