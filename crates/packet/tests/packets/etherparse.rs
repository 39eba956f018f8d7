//! Extraction and checksums against the crate `etherparse`, which parses the same frames.

use crate::frames;
use etherparse::err::ipv6_exts::HeaderError;
use etherparse::err::packet::SliceError;
use etherparse::{IpNumber, LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use openflow::Field;
use packet::{FlowKey, Meta, extract};
use proptest::prelude::proptest;

fn expect(key: &FlowKey, field: Field, wanted: impl Into<u128>) {
    assert!(key.has(field), "{field:?} is absent");
    assert_eq!(key.get(field), wanted.into(), "{field:?}");
}

fn address(bytes: impl AsRef<[u8]>) -> u128 {
    bytes.as_ref().iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

fn network(key: &FlowKey, parsed: &SlicedPacket<'_>) {
    match &parsed.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header();
            expect(key, Field::Ipv4Src, address(header.source()));
            expect(key, Field::Ipv4Dst, address(header.destination()));
            expect(key, Field::IpDscp, header.dcp().value());
            expect(key, Field::IpEcn, header.ecn().value());
            expect(key, Field::IpProto, header.protocol().0);
            let right = header.to_header().calc_header_checksum();
            assert_eq!(header.header_checksum(), right, "IPv4 checksum");
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header();
            expect(key, Field::Ipv6Src, address(header.source()));
            expect(key, Field::Ipv6Dst, address(header.destination()));
            expect(key, Field::IpDscp, header.dscp().value());
            expect(key, Field::IpEcn, header.ecn().value());
            expect(key, Field::Ipv6Flabel, header.flow_label().value());
            expect(key, Field::IpProto, ip.payload().ip_number.0);
        }
        Some(NetSlice::Arp(arp)) => {
            expect(key, Field::ArpOp, arp.operation().0);
            expect(key, Field::ArpSha, address(arp.sender_hw_addr()));
            expect(key, Field::ArpSpa, address(arp.sender_protocol_addr()));
            expect(key, Field::ArpTha, address(arp.target_hw_addr()));
            expect(key, Field::ArpTpa, address(arp.target_protocol_addr()));
        }
        None => assert!(!key.has(Field::IpProto) && !key.has(Field::ArpOp)),
    }
}

fn transport(key: &FlowKey, parsed: &SlicedPacket<'_>) {
    if parsed.is_ip_payload_fragmented() {
        return; // etherparse leaves the first fragment's header to its caller
    }
    match &parsed.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            expect(key, Field::TcpSrc, tcp.source_port());
            expect(key, Field::TcpDst, tcp.destination_port());
        }
        Some(TransportSlice::Udp(udp)) => {
            expect(key, Field::UdpSrc, udp.source_port());
            expect(key, Field::UdpDst, udp.destination_port());
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            expect(key, Field::Icmpv4Type, icmp.type_u8());
            expect(key, Field::Icmpv4Code, icmp.code_u8());
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            expect(key, Field::Icmpv6Type, icmp.type_u8());
            expect(key, Field::Icmpv6Code, icmp.code_u8());
        }
        Some(TransportSlice::Igmp(_)) | None => {
            let fields = [Field::TcpSrc, Field::UdpSrc, Field::Icmpv4Type, Field::Icmpv6Type];
            let known = fields.iter().find(|field| key.has(**field));
            assert_eq!(known, None, "of a packet without one");
        }
    }
}

/// Whether the transport checksum is right, as etherparse computes it; none where it cannot say.
fn checksum(parsed: &SlicedPacket<'_>) -> Option<bool> {
    let (ip, routed) = match parsed.net.as_ref()? {
        NetSlice::Ipv4(ip) => ((Some(ip.header().to_header()), None), false),
        NetSlice::Ipv6(ip) => {
            let routed = ip
                .extensions()
                .clone()
                .into_iter()
                .any(|ext| matches!(ext, etherparse::Ipv6ExtensionSlice::Routing(_)));
            ((None, Some(ip.header().to_header())), routed)
        }
        NetSlice::Arp(_) => return None,
    };
    if routed {
        return None;
    }
    let right = match (parsed.transport.as_ref()?, ip) {
        (TransportSlice::Tcp(tcp), (Some(v4), _)) => {
            let made = tcp.calc_checksum_ipv4(v4.source, v4.destination).unwrap();
            made == tcp.checksum()
        }
        (TransportSlice::Tcp(tcp), (_, Some(v6))) => {
            tcp.calc_checksum_ipv6(v6.source, v6.destination).unwrap() == tcp.checksum()
        }
        (TransportSlice::Udp(udp), (Some(v4), _)) => {
            let header = udp.to_header();
            header.calc_checksum_ipv4(&v4, udp.payload()).unwrap() == udp.checksum()
        }
        (TransportSlice::Udp(udp), (_, Some(v6))) => {
            let header = udp.to_header();
            header.calc_checksum_ipv6(&v6, udp.payload()).unwrap() == udp.checksum()
        }
        (TransportSlice::Icmpv4(icmp), _) => {
            let made = icmp.header().icmp_type.calc_checksum(icmp.payload());
            made == icmp.header().checksum
        }
        (TransportSlice::Icmpv6(icmp), (_, Some(v6))) => {
            icmp.is_checksum_valid(v6.source, v6.destination)
        }
        _ => return None,
    };
    Some(right)
}

/// etherparse insists on hop-by-hop options in the first place only.
fn parse(frame: &[u8]) -> Option<SlicedPacket<'_>> {
    match SlicedPacket::from_ethernet(frame) {
        Ok(parsed) => Some(parsed),
        Err(SliceError::Ipv6Exts(HeaderError::HopByHopNotAtStart)) => None,
        Err(other) => panic!("{other}: {frame:02x?}"),
    }
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn both_read_the_same(frame in frames::plain()) {
        let Some(parsed) = parse(&frame) else { return Ok(()) };
        let key = extract(&frame, &Meta::default());
        if let Some(LinkExtSlice::Vlan(tag)) = parsed.link_exts.first() {
            expect(&key, Field::VlanVid, 0x1000 | tag.vlan_identifier().value());
            expect(&key, Field::VlanPcp, tag.priority_code_point().value());
        } else {
            assert!(!key.has(Field::VlanPcp) && key.get(Field::VlanVid) == 0);
        }
        if let Some(ether_type) = parsed.payload_ether_type() {
            expect(&key, Field::EthType, ether_type.0);
        }
        network(&key, &parsed);
        transport(&key, &parsed);
        assert_ne!(checksum(&parsed), Some(false), "checksum of {parsed:?}");
    }
}

#[test]
fn the_numbers_of_protocols_are_the_same() {
    use packet::header::{ipv4, ipv6};
    assert_eq!(ipv4::PROTO_TCP, IpNumber::TCP.0);
    assert_eq!(ipv4::PROTO_UDP, IpNumber::UDP.0);
    assert_eq!(ipv4::PROTO_SCTP, IpNumber::SCTP.0);
    assert_eq!(ipv6::PROTO_ICMPV6, IpNumber::IPV6_ICMP.0);
    assert_eq!(ipv6::AUTH, IpNumber::AUTHENTICATION_HEADER.0);
    assert_eq!(ipv6::DEST, IpNumber::IPV6_DESTINATION_OPTIONS.0);
}
