//! From a frame to its flow key.
//!
//! One line per match field; the row-driven test `extract_rows` fails, naming the field, when a
//! line is missing or reads other bits than the row says. Any bytes give a key: what is cut off or
//! malformed is absent from it.

use crate::header::{arp, chunk, ethernet, icmpv4, icmpv6, ipv4, ipv6, mpls, number, pbb};
use crate::header::{sctp, tcp, udp, vlan};
use crate::key::{FlowKey, Registers};
use crate::layout::{Layout, Network, Transport};
use openflow::field::{Place, VID_PRESENT};
use openflow::{Field, PortNo};

/// Pipeline fields: the match fields that are not in the packet's bytes (clause 7.2.3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Port that the packet came in by.
    pub in_port: PortNo,
    /// Physical port below it; the same port unless that is a logical one.
    pub in_phy_port: PortNo,
    /// Metadata passed between tables.
    pub metadata: u64,
    /// Metadata of a logical port's tunnel; zero without one.
    pub tunnel_id: u64,
    /// Mark for the host.
    pub pkt_mark: u32,
    /// The registers.
    pub registers: Registers,
}

impl Meta {
    /// Of a packet that came in by a physical port.
    #[must_use]
    pub const fn port(in_port: PortNo) -> Self {
        let registers = Registers::ZERO;
        let in_phy_port = in_port;
        Self { in_port, in_phy_port, metadata: 0, tunnel_id: 0, pkt_mark: 0, registers }
    }

    /// Writes a field that is no part of the packet; whether the pipeline may write it.
    pub fn write(&mut self, field: Field, value: u128) -> bool {
        let value = value & field.full_mask();
        match field.row().place {
            Place::Register(number) => self.registers.set(number, value as u32),
            Place::Registers(first, count) => {
                for (place, number) in (first..first + count).rev().enumerate() {
                    self.registers.set(number, (value >> (32 * place)) as u32);
                }
            }
            Place::Meta if matches!(field, Field::Metadata) => self.metadata = value as u64,
            Place::Meta if matches!(field, Field::TunnelId) => self.tunnel_id = value as u64,
            Place::Meta if matches!(field, Field::PktMark) => self.pkt_mark = value as u32,
            Place::Meta | Place::At(_) | Place::Parsed => return false,
        }
        true
    }
}

/// The flow key of a frame.
///
/// The VLAN fields are those of the outermost tag and `ETH_TYPE` is the one behind all tags; MPLS
/// fields are those of the outermost entry. Behind MPLS and PBB nothing is read. A later fragment
/// has the fields of IP, with `IP_PROTO` from IPv4 or from the IPv6 fragment header, and none of
/// the transport header. A frame shorter than an Ethernet header has only the fields of `meta`.
#[must_use]
pub fn extract(frame: &[u8], meta: &Meta) -> FlowKey {
    let mut key = FlowKey::default();
    fill(&mut key, frame, meta);
    key
}

/// The same, written over a key: one that is returned is copied to its place, which takes as long
/// as to read the frame.
pub fn extract_into(key: &mut FlowKey, frame: &[u8], meta: &Meta) {
    *key = FlowKey::default();
    fill(key, frame, meta);
}

#[inline]
fn fill(key: &mut FlowKey, frame: &[u8], meta: &Meta) {
    set_meta(key, meta);
    if let Some(layout) = Layout::of_inlined(frame) {
        ethernet(key, frame, &layout);
        network(key, frame, &layout);
        transport(key, frame, &layout);
    }
}

/// Writes the fields that are not in the packet's bytes, those of the key of the same bytes with
/// another `meta`.
#[inline]
pub fn set_meta(key: &mut FlowKey, meta: &Meta) {
    key.set(Field::InPort, meta.in_port.0.into());
    key.set(Field::InPhyPort, meta.in_phy_port.0.into());
    key.set(Field::Metadata, meta.metadata.into());
    key.set(Field::TunnelId, meta.tunnel_id.into());
    key.set(Field::PktMark, meta.pkt_mark.into());
    key.set_registers(&meta.registers);
}

fn ethernet(key: &mut FlowKey, frame: &[u8], layout: &Layout) {
    let Some(fixed) = chunk::<{ ethernet::HEADER_LEN }>(frame, 0) else { return };
    key.set(Field::EthDst, number(&fixed[ethernet::DST]));
    key.set(Field::EthSrc, number(&fixed[ethernet::SRC]));
    key.set(Field::EthType, layout.eth_type.into());
    if layout.tags > 0
        && let Some(tci) = chunk(frame, vlan::OUTERMOST_TCI)
    {
        let tci = u16::from_be_bytes(*tci);
        key.set(Field::VlanVid, VID_PRESENT | u128::from(vlan::vid(tci)));
        key.set(Field::VlanPcp, vlan::pcp(tci).into());
    }
}

fn network(key: &mut FlowKey, frame: &[u8], layout: &Layout) {
    match layout.network {
        Network::Other => {}
        Network::Mpls => read(frame, layout.l3, |entry: &[u8; mpls::ENTRY_LEN]| {
            let entry = u32::from_be_bytes(*entry);
            key.set(Field::MplsLabel, mpls::label(entry).into());
            key.set(Field::MplsTc, mpls::tc(entry).into());
            key.set(Field::MplsBos, mpls::bos(entry).into());
        }),
        Network::Pbb => read(frame, layout.l3, |tag: &[u8; pbb::TAG_LEN]| {
            key.set(Field::PbbIsid, number(&tag[pbb::ISID]));
            key.set(Field::PbbUca, (tag[0] >> pbb::UCA_SHIFT).into());
        }),
        Network::Arp => read(frame, layout.l3, |packet: &[u8; arp::PACKET_LEN]| {
            key.set(Field::ArpOp, number(&packet[arp::OP]));
            key.set(Field::ArpSpa, number(&packet[arp::SPA]));
            key.set(Field::ArpTpa, number(&packet[arp::TPA]));
            key.set(Field::ArpSha, number(&packet[arp::SHA]));
            key.set(Field::ArpTha, number(&packet[arp::THA]));
        }),
        Network::Ipv4 => read(frame, layout.l3, |header: &[u8; ipv4::HEADER_LEN]| {
            key.set(Field::IpDscp, (header[ipv4::TOS] >> 2).into());
            key.set(Field::IpEcn, (header[ipv4::TOS] & 3).into());
            key.set(Field::NwTtl, header[ipv4::TTL].into());
            key.set(Field::Ipv4Src, number(&header[ipv4::SRC]));
            key.set(Field::Ipv4Dst, number(&header[ipv4::DST]));
        }),
        Network::Ipv6 => read(frame, layout.l3, |header: &[u8; ipv6::HEADER_LEN]| {
            let word = number(&header[..4]);
            key.set(Field::IpDscp, word >> 22);
            key.set(Field::IpEcn, word >> 20);
            key.set(Field::Ipv6Flabel, word);
            key.set(Field::NwTtl, header[ipv6::HOP_LIMIT].into());
            key.set(Field::Ipv6Src, number(&header[ipv6::SRC]));
            key.set(Field::Ipv6Dst, number(&header[ipv6::DST]));
            key.set(Field::Ipv6Exthdr, layout.exthdr.into());
        }),
    }
    if matches!(layout.network, Network::Ipv4 | Network::Ipv6) {
        let later = u128::from(layout.later_fragment);
        key.set(Field::IpFrag, later << 1 | u128::from(layout.fragment));
    }
    if let Some(proto) = layout.ip_proto {
        key.set(Field::IpProto, proto.into());
    }
}

fn transport(key: &mut FlowKey, frame: &[u8], layout: &Layout) {
    match layout.transport {
        Transport::Other => {}
        Transport::Tcp => read(frame, layout.l4, |header: &[u8; tcp::HEADER_LEN]| {
            key.set(Field::TcpSrc, number(&header[tcp::SRC]));
            key.set(Field::TcpDst, number(&header[tcp::DST]));
            key.set(Field::TcpFlags, number(&header[tcp::FLAGS]));
        }),
        Transport::Udp => read(frame, layout.l4, |header: &[u8; udp::HEADER_LEN]| {
            key.set(Field::UdpSrc, number(&header[udp::SRC]));
            key.set(Field::UdpDst, number(&header[udp::DST]));
        }),
        Transport::Sctp => read(frame, layout.l4, |header: &[u8; sctp::HEADER_LEN]| {
            key.set(Field::SctpSrc, number(&header[sctp::SRC]));
            key.set(Field::SctpDst, number(&header[sctp::DST]));
        }),
        Transport::Icmpv4 => read(frame, layout.l4, |header: &[u8; icmpv4::HEADER_LEN]| {
            key.set(Field::Icmpv4Type, header[icmpv4::TYPE].into());
            key.set(Field::Icmpv4Code, header[icmpv4::CODE].into());
        }),
        Transport::Icmpv6 => {
            read(frame, layout.l4, |header: &[u8; icmpv6::HEADER_LEN]| {
                key.set(Field::Icmpv6Type, header[icmpv6::TYPE].into());
                key.set(Field::Icmpv6Code, header[icmpv6::CODE].into());
            });
            neighbour(key, frame, layout);
        }
    }
}

fn neighbour(key: &mut FlowKey, frame: &[u8], layout: &Layout) {
    let Some(at) = layout.nd_target_at(frame) else { return };
    read(frame, at, |addr: &[u8; 16]| key.set(Field::Ipv6NdTarget, number(addr)));
    if let Some(at) = layout.nd_sll_at(frame) {
        read(frame, at, |addr: &[u8; 6]| key.set(Field::Ipv6NdSll, number(addr)));
    }
    if let Some(at) = layout.nd_tll_at(frame) {
        read(frame, at, |addr: &[u8; 6]| key.set(Field::Ipv6NdTll, number(addr)));
    }
}

/// Hands out a header of fixed length, so that offsets within it need no checks.
#[inline]
fn read<const N: usize>(frame: &[u8], at: usize, fields: impl FnOnce(&[u8; N])) {
    if let Some(header) = chunk(frame, at) {
        fields(header);
    }
}
