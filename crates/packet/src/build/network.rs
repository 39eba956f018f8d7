//! Headers of the network layer: ARP, IPv4 and IPv6 with extension headers.

use crate::header::{arp, ipv4, ipv6};
use openflow::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocol number for experiments (RFC 3692), of payload that has no other.
const EXPERIMENT: u8 = 253;

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// 1 for a request, 2 for a reply.
    pub op: u16,
    /// Sender's Ethernet address.
    pub sha: MacAddr,
    /// Sender's IPv4 address.
    pub spa: Ipv4Addr,
    /// Target's Ethernet address.
    pub tha: MacAddr,
    /// Target's IPv4 address.
    pub tpa: Ipv4Addr,
}

impl Arp {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = arp::ETHERNET_IPV4.to_vec();
        bytes.extend(self.op.to_be_bytes());
        bytes.extend(self.sha.0);
        bytes.extend(self.spa.octets());
        bytes.extend(self.tha.0);
        bytes.extend(self.tpa.octets());
        bytes
    }
}

/// An IPv4 header. Protocol, lengths and checksum are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// Congestion notification, two bits.
    pub ecn: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub id: u16,
    /// Flags and fragment offset as they stand in the header; the offset is in eight bytes.
    pub fragment: u16,
    /// Options; padded with zeros to four bytes.
    pub options: Vec<u8>,
    /// Protocol; otherwise that of the next layer, or 253.
    pub proto: Option<u8>,
}

impl Ipv4 {
    /// A header with TTL 64 and everything else zero.
    #[must_use]
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self {
            src,
            dst,
            dscp: 0,
            ecn: 0,
            ttl: 64,
            id: 0,
            fragment: 0,
            options: Vec::new(),
            proto: None,
        }
    }

    pub(super) fn bytes(&self, next: Option<u8>, payload_len: usize) -> Vec<u8> {
        let options_len = self.options.len().next_multiple_of(4).min(40);
        let header_len = ipv4::HEADER_LEN + options_len;
        let mut bytes = vec![0x40 | (header_len / 4) as u8, self.dscp << 2 | self.ecn & 3];
        bytes.extend(((header_len + payload_len) as u16).to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([self.ttl, self.proto.or(next).unwrap_or(EXPERIMENT), 0, 0]);
        bytes.extend(self.src.octets());
        bytes.extend(self.dst.octets());
        bytes.extend(&self.options);
        bytes.resize(header_len, 0);
        bytes
    }
}

/// An IPv6 header with its extension headers. Next headers and lengths are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// Congestion notification, two bits.
    pub ecn: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Extension headers, in order.
    pub extensions: Vec<Extension>,
    /// Number behind the extension headers; otherwise that of the next layer, or 253.
    pub proto: Option<u8>,
}

/// An IPv6 extension header: its number and what follows next header and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Number of the header.
    pub kind: u8,
    /// Content; padded with zeros to the unit of the header.
    pub data: Vec<u8>,
}

impl Extension {
    /// A header with a length byte: hop-by-hop or destination options, routing, authentication.
    #[must_use]
    pub fn new(kind: u8, data: &[u8]) -> Self {
        Self { kind, data: data.to_vec() }
    }

    /// A fragment header; `offset` is in units of eight bytes.
    #[must_use]
    pub fn fragment(offset: u16, more: bool, id: u32) -> Self {
        let mut data = (offset << 3 | u16::from(more)).to_be_bytes().to_vec();
        data.extend(id.to_be_bytes());
        Self { kind: ipv6::FRAGMENT, data }
    }

    fn bytes(&self, next: u8) -> Vec<u8> {
        let len = (self.data.len() + 2).next_multiple_of(8);
        let units = match self.kind {
            ipv6::FRAGMENT => 0,
            ipv6::AUTH => len / 4 - 2,
            _ => len / 8 - 1,
        };
        let mut bytes = vec![next, units as u8];
        bytes.extend(&self.data);
        bytes.resize(len, 0);
        bytes
    }
}

impl Ipv6 {
    /// A header with hop limit 64 and everything else zero.
    #[must_use]
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr) -> Self {
        Self {
            src,
            dst,
            dscp: 0,
            ecn: 0,
            flow_label: 0,
            hop_limit: 64,
            extensions: Vec::new(),
            proto: None,
        }
    }

    pub(super) fn bytes(&self, next: Option<u8>, payload_len: usize) -> Vec<u8> {
        let mut next = self.proto.or(next).unwrap_or(EXPERIMENT);
        let mut chain = Vec::new();
        for extension in self.extensions.iter().rev() {
            chain.splice(0..0, extension.bytes(next));
            next = extension.kind;
        }
        let class = u32::from(self.dscp & 0x3f) << 2 | u32::from(self.ecn & 3);
        let word = 6 << 28 | class << 20 | self.flow_label & 0xf_ffff;
        let mut bytes = word.to_be_bytes().to_vec();
        bytes.extend(((chain.len() + payload_len) as u16).to_be_bytes());
        bytes.extend([next, self.hop_limit]);
        bytes.extend(self.src.octets());
        bytes.extend(self.dst.octets());
        bytes.extend(chain);
        bytes
    }
}
