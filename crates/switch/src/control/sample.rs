//! A frame that matches a text, for a trace that is asked for in words: `tcp,tp_dst=80`.
//!
//! Fields outside of the match get plain values; bits outside of a mask are zero. Layers are built
//! by what the match says of types, every other field is then written by set-field's own rows.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::field::{Format, VID_PRESENT};
use openflow::{Field, MacAddr, Match};
use packet::PacketBuf;
use packet::build::{Arp, FrameBuilder, Ipv4, Ipv6, Tcp};
use packet::header::ethernet::FRAME_MIN_LEN;
use packet::rewrite::set_field;

/// Addresses where the match names none.
const DST: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// Ports where the match names none.
const TRANSPORT_SRC: u16 = 49_152;
const TRANSPORT_DST: u16 = 9;

/// A frame that matches `matching`.
pub(super) fn frame_of(matching: &Match) -> Result<Vec<u8>, String> {
    let mut frame = PacketBuf::from_slice(&layers(matching).fill_to(FRAME_MIN_LEN).build());
    for held in matching.fields() {
        let row = held.field.row();
        if held.field == Field::InPort {
            continue;
        }
        if row.place.is_beside_packet() {
            return Err(format!("{} is no field of a packet", row.text));
        }
        // The types decided which layers there are, and flags are TCP's; the packet is whole.
        let is_laid = match held.field.row().format {
            Format::TcpFlags => held.value <= u8::MAX.into(),
            Format::Fragment => held.value == 0,
            Format::Dec
            | Format::Hex
            | Format::Port
            | Format::Mac
            | Format::Ipv4
            | Format::Ipv6 => {
                matches!(held.field, Field::EthType | Field::VlanVid | Field::IpProto)
            }
        };
        if !is_laid && !set_field(&mut frame, held.field, held.value) {
            return Err(format!("no frame is made for {}; give it in hex", row.text));
        }
    }
    Ok(frame.bytes().to_vec())
}

fn value(matching: &Match, field: Field) -> Option<u128> {
    matching.get(field).map(|held| held.value)
}

fn layers(matching: &Match) -> FrameBuilder {
    let mut frame = FrameBuilder::ethernet(DST, SRC);
    if let Some(vid) = value(matching, Field::VlanVid).filter(|vid| vid & VID_PRESENT != 0) {
        frame = frame.vlan(0, (vid & !VID_PRESENT) as u16);
    }
    let proto = value(matching, Field::IpProto).map(|proto| proto as u8);
    match value(matching, Field::EthType).map(|ether_type| ether_type as u16) {
        Some(0x0800) => {
            let mut header = Ipv4::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
            header.proto = proto;
            transport(frame.ipv4(header), proto, matching)
        }
        Some(0x86dd) => {
            let mut header = Ipv6::new(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
            header.proto = proto;
            transport(frame.ipv6(header), proto, matching)
        }
        Some(0x0806) => frame.arp(Arp {
            op: 1,
            sha: SRC,
            spa: Ipv4Addr::UNSPECIFIED,
            tha: MacAddr::default(),
            tpa: Ipv4Addr::UNSPECIFIED,
        }),
        Some(0x8847 | 0x8848) => frame.mpls(0, 0, 64),
        Some(0x88e7) => frame.pbb(0, 0, DST, SRC),
        Some(other) => frame.ether_type(other),
        None => frame,
    }
}

fn transport(frame: FrameBuilder, proto: Option<u8>, matching: &Match) -> FrameBuilder {
    match proto {
        Some(6) => {
            let mut header = Tcp::new(TRANSPORT_SRC, TRANSPORT_DST);
            header.flags = value(matching, Field::TcpFlags).map_or(header.flags, |it| it as u8);
            frame.tcp(header)
        }
        Some(17) => frame.udp(TRANSPORT_SRC, TRANSPORT_DST),
        Some(132) => frame.sctp(TRANSPORT_SRC, TRANSPORT_DST, 0),
        Some(1) => frame.icmpv4(8, 0, 0),
        Some(58) => match value(matching, Field::Icmpv6Type) {
            Some(135) => frame.neighbour_solicit(Ipv6Addr::UNSPECIFIED, Some(SRC)),
            Some(136) => frame.neighbour_advert(Ipv6Addr::UNSPECIFIED, Some(SRC)),
            Some(_) | None => frame.icmpv6(128, 0, &[0; 4]),
        },
        Some(_) | None => frame,
    }
}

#[cfg(test)]
mod tests {
    use openflow::text::parse_match;
    use openflow::{Field, PortNo};
    use packet::{FlowKey, Meta, extract};

    use super::frame_of;

    #[test]
    fn the_frame_meets_the_match() {
        for text in [
            "",
            "dl_dst=02:00:00:00:00:07,dl_vlan=5,dl_vlan_pcp=3",
            "arp,arp_op=2,arp_tpa=10.0.0.9",
            "tcp,nw_src=10.0.0.0/8,nw_dst=10.0.0.1,tp_dst=80",
            "udp6,ipv6_dst=fe80::1,udp_src=53",
            "icmp,icmp_type=0",
            "icmp6,icmpv6_type=135,nd_target=fe80::2,nd_sll=02:00:00:00:00:09",
            "sctp,sctp_dst=7",
            "ip,nw_proto=89",
            "ip,nw_ttl=7,ip_frag=no",
            "udp6,ip_frag=not_later,udp_src=0x400/0xfc00",
            "tcp,tcp_flags=+syn-ack",
            "tcp6,tcp_flags=syn|ack",
            "mpls,mpls_label=77",
            "dl_type=0x88cc",
        ] {
            let matching = parse_match(text).unwrap();
            let frame = frame_of(&matching).unwrap();
            let key: FlowKey = extract(&frame, &Meta { in_port: PortNo(1), ..Meta::default() });
            assert!(key.matches(&matching), "{text}: {key:?}");
        }
    }

    #[test]
    fn what_no_packet_has_is_refused() {
        let matching = openflow::Match::any().with(Field::Metadata, 1);
        assert!(frame_of(&matching).unwrap_err().contains("metadata"));
    }
}
