//! One packet as Pktgen's words set it, and its text as a stack of headers.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use generator::profile::Payload;

use super::word_enum::word_enum;

word_enum! {
    /// The header after the Ethernet header, as in `type ipv4 all`.
    EtherKind {
        Ipv4 "ipv4",
        Ipv6 "ipv6",
        Arp "arp",
    }
}

word_enum! {
    /// The header after the IP header, as in `proto udp all`.
    IpProtocol {
        Udp "udp",
        Tcp "tcp",
        Icmp "icmp",
    }
}

/// Tags and tunnels between the Ethernet header and the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TagSettings {
    pub(crate) has_vlan: bool,
    /// Priority code point of the VLAN tag.
    pub(crate) cos: u64,
    pub(crate) has_qinq: bool,
    /// VLAN IDs of the outer and the inner tag.
    pub(crate) qinq_ids: (u64, u64),
    pub(crate) has_mpls: bool,
    /// The whole label stack entry (RFC 3032): label, traffic class, bottom of stack, TTL.
    pub(crate) mpls_entry: u64,
    pub(crate) has_gre: bool,
    pub(crate) has_gre_eth: bool,
    pub(crate) gre_key: u64,
    pub(crate) has_vxlan: bool,
    /// VXLAN network identifier (RFC 7348).
    pub(crate) vni: u64,
}

impl TagSettings {
    /// Whether the packet stands in another one.
    pub(crate) fn has_tunnel(&self) -> bool {
        self.has_gre || self.has_gre_eth || self.has_vxlan
    }
}

/// Fields of a TCP header beside its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpSettings {
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
    pub(crate) flags: u64,
}

impl TcpSettings {
    /// A SYN, as the generator sends it where nothing is set.
    const USUAL: Self = Self { seq: 0, ack: 0, flags: 2 };
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PacketSettings {
    pub(crate) dst_mac: u64,
    pub(crate) src_mac: u64,
    pub(crate) dst_ip: IpAddr,
    pub(crate) src_ip: IpAddr,
    /// Prefix of the source address; shown, and kept by `save`.
    pub(crate) src_prefix: u8,
    pub(crate) src_port: u64,
    pub(crate) dst_port: u64,
    pub(crate) tcp: TcpSettings,
    pub(crate) kind: EtherKind,
    pub(crate) protocol: IpProtocol,
    pub(crate) vlan_id: u64,
    /// Type of service, or traffic class of IPv6.
    pub(crate) tos: u64,
    /// Time to live, or hop limit of IPv6.
    pub(crate) ttl: u64,
    /// Frame size with FCS, in bytes.
    pub(crate) size: u64,
    /// Tunnel endpoint identifier of the GTP-U header, which follows UDP port 2152.
    pub(crate) teid: u64,
    pub(crate) tags: TagSettings,
    /// The bytes after the headers.
    pub(crate) payload: Payload,
}

/// UDP port of GTP-U (3GPP TS 29.281, clause 4.4.2).
const GTPU_PORT: u64 = 2152;

impl PacketSettings {
    /// Pktgen's packet of port `port`.
    pub(crate) fn new(port: usize, mac: u64, peer: u64) -> Self {
        let here = u8::try_from(port % 255).unwrap_or(0);
        let there = if port.is_multiple_of(2) { here + 1 } else { here - 1 };
        let tags = TagSettings {
            has_vlan: false,
            cos: 0,
            has_qinq: false,
            qinq_ids: (1, 1),
            has_mpls: false,
            mpls_entry: 0,
            has_gre: false,
            has_gre_eth: false,
            gre_key: 0,
            has_vxlan: false,
            vni: 0,
        };
        Self {
            dst_mac: peer,
            src_mac: mac,
            dst_ip: IpAddr::V4(Ipv4Addr::new(192, 168, there, 1)),
            src_ip: IpAddr::V4(Ipv4Addr::new(192, 168, here, 1)),
            src_prefix: 24,
            src_port: 1234,
            dst_port: 5678,
            tcp: TcpSettings::USUAL,
            kind: EtherKind::Ipv4,
            protocol: IpProtocol::Tcp,
            vlan_id: 1,
            tos: 0,
            ttl: 64,
            size: 64,
            teid: 0,
            tags,
            payload: Payload::Abc,
        }
    }

    /// Whether a GTP-U header follows that of UDP.
    pub(crate) fn has_gtpu(&self) -> bool {
        let is_udp = self.kind != EtherKind::Arp && self.protocol == IpProtocol::Udp;
        is_udp && self.dst_port == GTPU_PORT
    }

    /// Changes what follows the Ethernet header; addresses of another version become those of the
    /// documentation (RFC 3849) or Pktgen's first ones, because a packet has one version.
    pub(crate) fn set_kind(&mut self, kind: EtherKind) {
        self.kind = kind;
        let is_ipv6 = kind == EtherKind::Ipv6;
        let fit = |address: &mut IpAddr, last: u8| {
            if address.is_ipv6() != is_ipv6 {
                *address = if is_ipv6 {
                    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()))
                } else {
                    IpAddr::V4(Ipv4Addr::new(192, 168, last - 1, 1))
                };
            }
        };
        fit(&mut self.src_ip, 1);
        fit(&mut self.dst_ip, 2);
        if is_ipv6 && self.src_prefix <= 32 {
            self.src_prefix = 64;
        }
        if !is_ipv6 && self.src_prefix > 32 {
            self.src_prefix = 24;
        }
    }

    /// The packet as a stack of headers, outside in, as a profile writes it.
    pub(crate) fn headers(&self) -> String {
        let tags = &self.tags;
        let mut stack = self.ethernet();
        // Writing to a String cannot fail.
        if tags.has_qinq {
            let (outer, inner) = tags.qinq_ids;
            let _ = write!(stack, "/svlan(vid={outer})/vlan(vid={inner})");
        } else if tags.has_vlan {
            let _ = write!(stack, "/vlan(vid={},pcp={})", self.vlan_id, tags.cos);
        }
        if tags.has_mpls {
            let (label, tc) = (tags.mpls_entry >> 12, tags.mpls_entry >> 9 & 7);
            let _ = write!(stack, "/mpls(label={label},tc={tc},ttl={})", tags.mpls_entry & 255);
        }
        if tags.has_tunnel() && self.kind != EtherKind::Arp {
            let outer = if self.kind == EtherKind::Ipv6 { "ipv6" } else { "ipv4" };
            let _ = write!(stack, "/{outer}(src={},dst={})", self.src_ip, self.dst_ip);
            let _ = match tags.has_vxlan {
                true => write!(stack, "/udp/vxlan(vni={})", tags.vni),
                false => write!(stack, "/gre(key={})", tags.gre_key),
            };
            if tags.has_gre_eth || tags.has_vxlan {
                let _ = write!(stack, "/{}", self.ethernet());
            }
        }
        self.network(&mut stack);
        stack
    }

    fn ethernet(&self) -> String {
        format!("eth(src={},dst={})", mac_text(self.src_mac), mac_text(self.dst_mac))
    }

    fn network(&self, stack: &mut String) {
        let Self { src_ip, dst_ip, ttl, .. } = self;
        let (dscp, ecn) = (self.tos >> 2, self.tos & 3);
        let word = match self.kind {
            EtherKind::Arp => {
                let _ = write!(stack, "/arp(spa={src_ip},tpa={dst_ip})");
                return;
            }
            EtherKind::Ipv4 => "ipv4",
            EtherKind::Ipv6 => "ipv6",
        };
        let _ = write!(stack, "/{word}(src={src_ip},dst={dst_ip},dscp={dscp},ecn={ecn},ttl={ttl})");
        let _ = match (self.protocol, self.kind) {
            (IpProtocol::Udp, _) => {
                write!(stack, "/udp(src={},dst={})", self.src_port, self.dst_port)
            }
            (IpProtocol::Tcp, _) => {
                let (ports, tcp) = ((self.src_port, self.dst_port), self.tcp);
                let _ = write!(stack, "/tcp(src={},dst={}", ports.0, ports.1);
                match tcp == TcpSettings::USUAL {
                    true => write!(stack, ")"),
                    false => {
                        let TcpSettings { seq, ack, flags } = tcp;
                        write!(stack, ",seq={seq},ack={ack},flags={flags})")
                    }
                }
            }
            (IpProtocol::Icmp, EtherKind::Ipv6) => write!(stack, "/icmpv6(type=128)"),
            (IpProtocol::Icmp, EtherKind::Ipv4 | EtherKind::Arp) => {
                write!(stack, "/icmp(type=8)")
            }
        };
        if self.has_gtpu() {
            let _ = write!(stack, "/gtpu(teid={})", self.teid);
        }
    }
}

/// An Ethernet address as text.
pub(crate) fn mac_text(mac: u64) -> String {
    let bytes = mac.to_be_bytes();
    let text: Vec<String> = bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    text.join(":")
}
