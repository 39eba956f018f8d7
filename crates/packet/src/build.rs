//! Building frames for tests and generators: layers from the outside in, with lengths, types and
//! checksums filled in.
//!
//! ```
//! use packet::build::{FrameBuilder, Ipv4};
//! use openflow::MacAddr;
//! use std::net::Ipv4Addr;
//!
//! let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
//! let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
//!     .vlan(3, 100)
//!     .ipv4(Ipv4::new(here, there))
//!     .udp(1234, 53)
//!     .fill_to(64)
//!     .build();
//! assert_eq!(frame.len(), 64);
//! packet::verify(&frame).unwrap();
//! ```
//!
//! Not for the hot path: a generator builds a frame once and rewrites it.

mod network;
mod transport;
mod tunnel;

use crate::frame_checksums::{fill_checksums, fill_ip_checksums};
use crate::header::{ethernet, icmpv4, icmpv6, ipv4, mpls, pbb, vlan};
pub use network::{Arp, Extension, Ipv4, Ipv6};
use openflow::MacAddr;
use std::net::Ipv6Addr;
pub use transport::Tcp;
use transport::TransportHeader;
use tunnel::TunnelHeader;

/// EtherType for local experiments (IEEE 802), of payload that has no other.
const EXPERIMENT: u16 = 0x88b5;

/// A frame in the making.
#[derive(Clone, Debug)]
pub struct FrameBuilder {
    dst: MacAddr,
    src: MacAddr,
    layers: Vec<Layer>,
    payload: Vec<u8>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Layer {
    Vlan { ether_type: u16, pcp: u8, vid: u16 },
    Snap,
    EtherType(u16),
    Mpls { label: u32, tc: u8, ttl: u8 },
    Pbb { pcp: u8, isid: u32, c_dst: MacAddr, c_src: MacAddr },
    Arp(Arp),
    Ipv4(Ipv4),
    Ipv6(Ipv6),
    Transport(TransportHeader),
    Tunnel(TunnelHeader),
    Ethernet { dst: MacAddr, src: MacAddr },
}

impl FrameBuilder {
    /// An Ethernet II frame. Payload without a header of its own gets EtherType `0x88b5`.
    #[must_use]
    pub fn ethernet(dst: MacAddr, src: MacAddr) -> Self {
        Self { dst, src, layers: Vec::new(), payload: Vec::new(), len: 0 }
    }

    fn with(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// A VLAN tag with EtherType `0x8100`.
    #[must_use]
    pub fn vlan(self, pcp: u8, vid: u16) -> Self {
        self.tag(ethernet::VLAN, pcp, vid)
    }

    /// A VLAN tag with the EtherType given.
    #[must_use]
    pub fn tag(self, ether_type: u16, pcp: u8, vid: u16) -> Self {
        self.with(Layer::Vlan { ether_type, pcp, vid })
    }

    /// 802.3 with LLC and SNAP in place of Ethernet II.
    #[must_use]
    pub fn snap(self) -> Self {
        self.with(Layer::Snap)
    }

    /// The EtherType of the payload, when no other header follows.
    #[must_use]
    pub fn ether_type(self, ether_type: u16) -> Self {
        self.with(Layer::EtherType(ether_type))
    }

    /// An MPLS entry; the last one of a row is the bottom of stack.
    #[must_use]
    pub fn mpls(self, label: u32, tc: u8, ttl: u8) -> Self {
        self.with(Layer::Mpls { label, tc, ttl })
    }

    /// A PBB I-TAG with the customer's addresses.
    #[must_use]
    pub fn pbb(self, pcp: u8, isid: u32, c_dst: MacAddr, c_src: MacAddr) -> Self {
        self.with(Layer::Pbb { pcp, isid, c_dst, c_src })
    }

    /// An ARP packet.
    #[must_use]
    pub fn arp(self, arp: Arp) -> Self {
        self.with(Layer::Arp(arp))
    }

    /// An IPv4 header.
    #[must_use]
    pub fn ipv4(self, header: Ipv4) -> Self {
        self.with(Layer::Ipv4(header))
    }

    /// An IPv6 header with its extension headers.
    #[must_use]
    pub fn ipv6(self, header: Ipv6) -> Self {
        self.with(Layer::Ipv6(header))
    }

    /// A UDP header.
    #[must_use]
    pub fn udp(self, src: u16, dst: u16) -> Self {
        self.with(Layer::Transport(TransportHeader::Udp { src, dst }))
    }

    /// A TCP header.
    #[must_use]
    pub fn tcp(self, header: Tcp) -> Self {
        self.with(Layer::Transport(TransportHeader::Tcp(header)))
    }

    /// An SCTP common header; the payload is its chunks.
    #[must_use]
    pub fn sctp(self, src: u16, dst: u16, verification_tag: u32) -> Self {
        self.with(Layer::Transport(TransportHeader::Sctp { src, dst, verification_tag }))
    }

    /// A GRE header, with a key if there is one (RFC 2784, RFC 2890).
    #[must_use]
    pub fn gre(self, key: Option<u32>) -> Self {
        self.with(Layer::Tunnel(TunnelHeader::Gre { key }))
    }

    /// A VXLAN header behind UDP; an Ethernet frame follows (RFC 7348).
    #[must_use]
    pub fn vxlan(self, vni: u32) -> Self {
        self.with(Layer::Tunnel(TunnelHeader::Vxlan { vni }))
    }

    /// A GTP-U header of a G-PDU behind UDP; an IP packet follows (3GPP TS 29.281).
    #[must_use]
    pub fn gtpu(self, teid: u32) -> Self {
        self.with(Layer::Tunnel(TunnelHeader::Gtpu { teid }))
    }

    /// An Ethernet header inside of a tunnel.
    #[must_use]
    pub fn inner_ethernet(self, dst: MacAddr, src: MacAddr) -> Self {
        self.with(Layer::Ethernet { dst, src })
    }

    /// An ICMP message; `rest` is the second word of its header.
    #[must_use]
    pub fn icmpv4(self, kind: u8, code: u8, rest: u32) -> Self {
        self.with(Layer::Transport(TransportHeader::Icmpv4 { kind, code, rest }))
    }

    /// An echo request of the ICMP that belongs to the last IP header.
    #[must_use]
    pub fn echo_request(self, id: u16, seq: u16) -> Self {
        self.echo(icmpv4::ECHO_REQUEST, icmpv6::ECHO_REQUEST, id, seq)
    }

    /// An echo reply of the ICMP that belongs to the last IP header.
    #[must_use]
    pub fn echo_reply(self, id: u16, seq: u16) -> Self {
        self.echo(icmpv4::ECHO_REPLY, icmpv6::ECHO_REPLY, id, seq)
    }

    fn echo(self, v4: u8, v6: u8, id: u16, seq: u16) -> Self {
        let rest = u32::from(id) << 16 | u32::from(seq);
        if matches!(self.layers.last(), Some(Layer::Ipv6(_))) {
            self.icmpv6(v6, 0, &rest.to_be_bytes())
        } else {
            self.icmpv4(v4, 0, rest)
        }
    }

    /// An ICMPv6 message; `body` stands between checksum and payload.
    #[must_use]
    pub fn icmpv6(self, kind: u8, code: u8, body: &[u8]) -> Self {
        self.with(Layer::Transport(TransportHeader::Icmpv6 { kind, code, body: body.to_vec() }))
    }

    /// A neighbour solicitation for `target`, with the source link-layer option if there is one.
    #[must_use]
    pub fn neighbour_solicit(self, target: Ipv6Addr, sll: Option<MacAddr>) -> Self {
        self.with(Layer::Transport(TransportHeader::solicit(target, sll)))
    }

    /// A solicited neighbour advertisement of `target`, with the target link-layer option if there
    /// is one.
    #[must_use]
    pub fn neighbour_advert(self, target: Ipv6Addr, tll: Option<MacAddr>) -> Self {
        self.with(Layer::Transport(TransportHeader::advert(target, tll)))
    }

    /// The bytes behind all headers.
    #[must_use]
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = bytes.to_vec();
        self
    }

    /// Lengthens the payload with the bytes 0, 1, 2, ... until the frame has `len` bytes without
    /// FCS; the lengths in the headers cover them. A longer frame stays as it is.
    #[must_use]
    pub fn fill_to(mut self, len: usize) -> Self {
        self.len = len;
        self
    }

    /// The frame, without FCS. Values are cut to their widths; lengths that do not fit their fields
    /// are cut too, as a jumbogram's are.
    #[must_use]
    pub fn build(self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        let missing = self.len.saturating_sub(self.emit(&payload).len());
        payload.extend((0..missing).map(|index| index as u8));
        let mut frame = self.emit(&payload);
        fill_checksums(&mut frame);
        frame
    }

    fn emit(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = [self.dst.0, self.src.0].concat();
        frame.extend(emit(&self.layers, true, payload));
        frame
    }
}

/// The bytes of `layers` with `payload` behind them. `typed` says that an EtherType is missing in
/// front of the first one.
fn emit(layers: &[Layer], typed: bool, payload: &[u8]) -> Vec<u8> {
    let Some((first, rest)) = layers.split_first() else {
        let ether_type = EXPERIMENT.to_be_bytes();
        let mut bytes = if typed { ether_type.to_vec() } else { Vec::new() };
        bytes.extend(payload);
        return bytes;
    };
    let (ether_type, rest_typed) = first.link();
    let inner = emit(rest, rest_typed, payload);
    let mut bytes = Vec::new();
    if typed {
        bytes.extend(ether_type.iter().flat_map(|number| number.to_be_bytes()));
    }
    match first {
        Layer::Vlan { pcp, vid, .. } => {
            let tci = u16::from(*pcp) << vlan::PCP_SHIFT | vid & vlan::VID_MASK;
            bytes.extend(tci.to_be_bytes());
        }
        Layer::Snap => {
            bytes.extend(((ethernet::SNAP.len() + inner.len()) as u16).to_be_bytes());
            bytes.extend(ethernet::SNAP);
        }
        Layer::EtherType(_) => {}
        Layer::Mpls { label, tc, ttl } => {
            let bos = !matches!(rest.first(), Some(Layer::Mpls { .. }));
            bytes.extend(mpls::entry(*label, *tc, bos, *ttl).to_be_bytes());
        }
        Layer::Pbb { pcp, isid, c_dst, c_src } => {
            bytes.extend(
                (u32::from(*pcp) << (24 + pbb::PCP_SHIFT) | isid & 0xff_ffff).to_be_bytes(),
            );
            bytes.extend([c_dst.0, c_src.0].concat());
        }
        Layer::Arp(arp) => bytes.extend(arp.bytes()),
        Layer::Ipv4(header) => bytes.extend(header.bytes(proto(rest), inner.len())),
        Layer::Ipv6(header) => bytes.extend(header.bytes(proto(rest), inner.len())),
        Layer::Transport(header) => bytes.extend(header.bytes(inner.len())),
        Layer::Tunnel(header) => {
            bytes.extend(header.around(with_checksums(rest.first(), inner, rest_typed)));
            return bytes;
        }
        Layer::Ethernet { dst, src } => bytes.extend([dst.0, src.0].concat()),
    }
    bytes.extend(inner);
    bytes
}

/// The frame that a tunnel carries, with its checksums: a later walk over the whole frame does not
/// look into tunnels. `typed` says that an EtherType stands in front.
fn with_checksums(first: Option<&Layer>, mut inner: Vec<u8>, typed: bool) -> Vec<u8> {
    let start = if typed { 2 } else { 0 };
    let is_frame = matches!(first, Some(Layer::Ethernet { .. }));
    let is_packet = matches!(first, Some(Layer::Ipv4(_) | Layer::Ipv6(_)));
    if let Some(bytes) = inner.get_mut(start..) {
        if is_frame {
            fill_checksums(bytes);
        } else if is_packet {
            fill_ip_checksums(bytes);
        }
    }
    inner
}

/// The IP protocol number of the first of `layers`, if it has one.
fn proto(layers: &[Layer]) -> Option<u8> {
    match layers.first()? {
        Layer::Ipv4(_) => Some(ipv4::PROTO_IPV4),
        Layer::Ipv6(_) => Some(ipv4::PROTO_IPV6),
        Layer::Transport(header) => Some(header.proto()),
        Layer::Tunnel(header) => header.proto(),
        Layer::Ethernet { .. }
        | Layer::Vlan { .. }
        | Layer::Snap
        | Layer::EtherType(_)
        | Layer::Mpls { .. }
        | Layer::Pbb { .. }
        | Layer::Arp(_) => None,
    }
}

impl Layer {
    /// The EtherType in front of the layer, and whether the next one needs one in front of it.
    fn link(&self) -> (Option<u16>, bool) {
        match self {
            Self::Vlan { ether_type, .. } => (Some(*ether_type), true),
            Self::Snap => (None, true),
            Self::EtherType(ether_type) => (Some(*ether_type), false),
            Self::Mpls { .. } => (Some(ethernet::MPLS), false),
            Self::Pbb { .. } => (Some(ethernet::PBB), true),
            Self::Arp(_) => (Some(ethernet::ARP), false),
            Self::Ipv4(_) => (Some(ethernet::IPV4), false),
            Self::Ipv6(_) => (Some(ethernet::IPV6), false),
            Self::Transport(_) => (Some(EXPERIMENT), false),
            Self::Tunnel(header) => (Some(EXPERIMENT), header.is_typed()),
            Self::Ethernet { .. } => (Some(ethernet::BRIDGED), true),
        }
    }
}
