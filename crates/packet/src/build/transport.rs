//! Headers of the transport layer, ICMP and neighbour discovery. Checksums are filled in later.

use crate::header::{icmpv6, ipv4, ipv6, tcp, udp};
use openflow::MacAddr;
use std::net::Ipv6Addr;

/// A TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The flags' byte: FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Options; padded with zeros to four bytes.
    pub options: Vec<u8>,
}

impl Tcp {
    /// A SYN from port to port.
    #[must_use]
    pub fn new(src: u16, dst: u16) -> Self {
        Self { src, dst, seq: 0, ack: 0, flags: 2, window: 0xffff, options: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let options_len = self.options.len().next_multiple_of(4).min(40);
        let header_len = tcp::HEADER_LEN + options_len;
        let mut bytes = ports(self.src, self.dst);
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([(header_len as u8 / 4) << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.options);
        bytes.resize(header_len, 0);
        bytes
    }
}

#[derive(Clone, Debug)]
pub(super) enum TransportHeader {
    Udp { src: u16, dst: u16 },
    Tcp(Tcp),
    Sctp { src: u16, dst: u16, verification_tag: u32 },
    Icmpv4 { kind: u8, code: u8, rest: u32 },
    Icmpv6 { kind: u8, code: u8, body: Vec<u8> },
}

impl TransportHeader {
    pub(super) fn solicit(target: Ipv6Addr, sll: Option<MacAddr>) -> Self {
        let body = neighbour([0; 4], target, icmpv6::OPTION_SLL, sll);
        Self::Icmpv6 { kind: icmpv6::NEIGHBOUR_SOLICIT, code: 0, body }
    }

    pub(super) fn advert(target: Ipv6Addr, tll: Option<MacAddr>) -> Self {
        let solicited = [0x40, 0, 0, 0];
        let body = neighbour(solicited, target, icmpv6::OPTION_TLL, tll);
        Self::Icmpv6 { kind: icmpv6::NEIGHBOUR_ADVERT, code: 0, body }
    }

    pub(super) const fn proto(&self) -> u8 {
        match self {
            Self::Udp { .. } => ipv4::PROTO_UDP,
            Self::Tcp(_) => ipv4::PROTO_TCP,
            Self::Sctp { .. } => ipv4::PROTO_SCTP,
            Self::Icmpv4 { .. } => ipv4::PROTO_ICMP,
            Self::Icmpv6 { .. } => ipv6::PROTO_ICMPV6,
        }
    }

    pub(super) fn bytes(&self, payload_len: usize) -> Vec<u8> {
        match self {
            Self::Udp { src, dst } => {
                let mut bytes = ports(*src, *dst);
                bytes.extend(((udp::HEADER_LEN + payload_len) as u16).to_be_bytes());
                bytes.extend([0; 2]);
                bytes
            }
            Self::Tcp(header) => header.bytes(),
            Self::Sctp { src, dst, verification_tag } => {
                let mut bytes = ports(*src, *dst);
                bytes.extend(verification_tag.to_be_bytes());
                bytes.extend([0; 4]);
                bytes
            }
            Self::Icmpv4 { kind, code, rest } => {
                let mut bytes = vec![*kind, *code, 0, 0];
                bytes.extend(rest.to_be_bytes());
                bytes
            }
            Self::Icmpv6 { kind, code, body } => {
                let mut bytes = vec![*kind, *code, 0, 0];
                bytes.extend(body);
                bytes
            }
        }
    }
}

fn ports(src: u16, dst: u16) -> Vec<u8> {
    [src.to_be_bytes(), dst.to_be_bytes()].concat()
}

fn neighbour(flags: [u8; 4], target: Ipv6Addr, kind: u8, addr: Option<MacAddr>) -> Vec<u8> {
    let mut body = flags.to_vec();
    body.extend(target.octets());
    if let Some(addr) = addr {
        body.extend([kind, 1]);
        body.extend(addr.0);
    }
    body
}
