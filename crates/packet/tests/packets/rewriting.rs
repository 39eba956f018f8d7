//! Promises of every rewrite: the field is set and nothing else, checksums equal a full
//! recomputation, push and pop cancel out.

use crate::frames::{self, base, ip4, ip6, mac};
use openflow::Field;
use openflow::field::FIELDS;
use packet::build::{Extension, Ipv4, Ipv6, Tcp};
use packet::header::ipv6;
use packet::rewrite::{self, TtlInvalid};
use packet::{FlowKey, Layout, Meta, PacketBuf, Transport, extract, verify};
use proptest::prelude::{any, proptest};

fn key(frame: &[u8]) -> FlowKey {
    extract(frame, &Meta::default())
}

/// Fields whose value decides which other fields there are.
const DECIDING: &[Field] = &[Field::EthType, Field::IpProto, Field::Icmpv6Type];
/// Fields whose value decides what is taken for a header with a checksum.
const HIDING: &[Field] = &[Field::EthType, Field::IpProto, Field::MplsBos];

/// Writes one field and checks everything about it that needs no row.
fn set_one(frame: &[u8], field: Field, value: u128) {
    let before = key(frame);
    let mut buf = PacketBuf::from_slice(frame);
    let done = rewrite::set_field(&mut buf, field, value);
    let in_packet = field.row().settable && !field.row().place.is_beside_packet();
    // An 802.2 frame without SNAP has an EtherType of OpenFlow's making only.
    let has_place = field != Field::EthType || Layout::of(frame).unwrap().eth_type_at.is_some();
    assert_eq!(done, in_packet && before.has(field) && has_place, "{field:?}");
    if !done {
        assert_eq!(buf.bytes(), frame, "{field:?} was not set, but the frame changed");
        return;
    }
    if !HIDING.contains(&field) {
        verify(buf.bytes()).unwrap_or_else(|wrong| panic!("{field:?} = {value:#x}: {wrong}"));
    }
    if DECIDING.contains(&field) {
        return;
    }
    let mut wanted = before;
    let tag = if field == Field::VlanVid { 0x1000 | value & 0xfff } else { value };
    wanted.set(field, tag);
    assert_eq!(key(buf.bytes()), wanted, "{field:?} = {value:#x}");
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn setting_a_field_sets_it_and_no_other(frame in frames::all(), value in any::<u128>()) {
        for row in FIELDS {
            set_one(&frame, row.field, value);
        }
    }

    #[test]
    fn edge_values_keep_checksums_right(frame in frames::all(), ones in any::<bool>()) {
        for row in FIELDS {
            set_one(&frame, row.field, if ones { u128::MAX } else { 0 });
        }
    }

    #[test]
    fn push_then_pop_is_nothing(frame in frames::all()) {
        let layout = Layout::of(&frame).unwrap();
        let mut buf = PacketBuf::from_slice(&frame);
        assert!(rewrite::push_vlan(&mut buf, 0x88a8) && rewrite::pop_vlan(&mut buf));
        assert_eq!(buf.bytes(), frame);
        assert!(rewrite::push_pbb(&mut buf, 0x88e7) && rewrite::pop_pbb(&mut buf));
        assert_eq!(buf.bytes(), frame);
        assert!(rewrite::push_mpls(&mut buf, 0x8847));
        assert!(rewrite::pop_mpls(&mut buf, layout.eth_type));
        assert_eq!(buf.bytes(), frame);
    }

    #[test]
    fn ttl_actions_keep_checksums_right(frame in frames::all(), ttl in any::<u8>()) {
        type Act = fn(&mut PacketBuf, u8) -> bool;
        let all: [Act; 6] = [
            rewrite::set_nw_ttl,
            rewrite::set_mpls_ttl,
            |buf, _| rewrite::dec_nw_ttl(buf).unwrap_or(false),
            |buf, _| rewrite::dec_mpls_ttl(buf).unwrap_or(false),
            |buf, _| rewrite::copy_ttl_in(buf),
            |buf, _| rewrite::copy_ttl_out(buf),
        ];
        for act in all {
            let mut buf = PacketBuf::from_slice(&frame);
            act(&mut buf, ttl);
            verify(buf.bytes()).unwrap();
            let [mut before, mut after] = [key(&frame), key(buf.bytes())];
            for row in FIELDS.iter().filter(|row| row.name.ends_with("_ttl")) {
                before.unset(row.field);
                after.unset(row.field);
            }
            assert_eq!(after, before);
        }
    }
}

#[test]
fn a_pushed_tag_copies_the_outermost_without_its_drop_bit() {
    let mut frame = base().vlan(5, 0x123).ipv4(ip4()).udp(1, 2).build();
    frame[14] |= 0x10;
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::push_vlan(&mut buf, 0x88a8));
    assert_eq!(buf.bytes()[12..20], [0x88, 0xa8, 0xa1, 0x23, 0x81, 0, 0xb1, 0x23]);
}

#[test]
fn a_pushed_label_is_after_the_tags_with_the_ttl_of_ip() {
    let frame = base().vlan(5, 0x123).ipv4(Ipv4 { ttl: 33, ..ip4() }).udp(1, 2).build();
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::push_mpls(&mut buf, 0x8848));
    assert_eq!(buf.bytes()[12..22], [0x81, 0, 0xa1, 0x23, 0x88, 0x48, 0, 0, 0x01, 33]);
    assert!(rewrite::set_field(&mut buf, Field::MplsLabel, 0xf_fff1));
    assert!(rewrite::push_mpls(&mut buf, 0x8847));
    assert_eq!(buf.bytes()[18..26], [0xff, 0xff, 0x10, 33, 0xff, 0xff, 0x11, 33]);
    let arp = frames::samples().into_iter().find(|(name, _)| *name == "arp").unwrap().1;
    let mut buf = PacketBuf::from_slice(&arp);
    assert!(rewrite::push_mpls(&mut buf, 0x8847));
    assert_eq!(buf.bytes()[12..18], [0x88, 0x47, 0, 0, 0x01, 0]);
}

#[test]
fn a_pushed_pbb_header_copies_isid_priority_and_addresses() {
    let frame = base().vlan(5, 0x123).ipv4(ip4()).udp(1, 2).build();
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::push_pbb(&mut buf, 0x88e7));
    assert_eq!(buf.bytes()[..12], frame[..12]);
    assert_eq!(buf.bytes()[12..18], [0x88, 0xe7, 0xa0, 0, 0, 0]);
    assert_eq!(buf.bytes()[18..], frame);
    assert!(rewrite::set_field(&mut buf, Field::PbbIsid, 0x01_0203));
    assert!(rewrite::set_field(&mut buf, Field::PbbUca, 1));
    assert!(rewrite::push_pbb(&mut buf, 0x88e7));
    assert_eq!(buf.bytes()[12..18], [0x88, 0xe7, 0, 1, 2, 3]);
}

#[test]
fn a_popped_pbb_header_leaves_the_backbone_tag() {
    let inner = base().ipv4(ip4()).udp(1, 2).build();
    let mut buf = PacketBuf::from_slice(&inner);
    assert!(rewrite::push_pbb(&mut buf, 0x88e7) && rewrite::push_vlan(&mut buf, 0x88a8));
    assert!(rewrite::set_field(&mut buf, Field::EthDst, 1) && rewrite::pop_pbb(&mut buf));
    assert_eq!(buf.bytes()[..18], [&inner[..12], &[0x88, 0xa8, 0, 0, 8, 0]].concat());
    assert_eq!(buf.bytes()[18..], inner[14..]);
}

#[test]
fn ttls_below_two_are_invalid_and_stay() {
    for ttl in [0, 1] {
        let frames = [
            base().ipv4(Ipv4 { ttl, ..ip4() }).udp(1, 2).build(),
            base().ipv6(Ipv6 { hop_limit: ttl, ..ip6() }).udp(1, 2).build(),
        ];
        for frame in frames {
            let mut buf = PacketBuf::from_slice(&frame);
            assert_eq!(rewrite::dec_nw_ttl(&mut buf), Err(TtlInvalid));
            assert_eq!(buf.bytes(), frame);
            assert_eq!(rewrite::dec_mpls_ttl(&mut buf), Ok(false));
        }
        let mut buf = PacketBuf::from_slice(&base().mpls(1, 2, ttl).ipv4(ip4()).build());
        assert_eq!(rewrite::dec_mpls_ttl(&mut buf), Err(TtlInvalid));
        assert_eq!(rewrite::dec_nw_ttl(&mut buf), Ok(false));
    }
}

#[test]
fn ttls_are_copied_between_two_ip_headers() {
    let outer = Ipv4 { ttl: 9, ..ip4() };
    let frame = base().ipv4(outer.clone()).ipv4(Ipv4 { ttl: 77, ..ip4() }).udp(1, 2).build();
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::copy_ttl_out(&mut buf));
    verify(buf.bytes()).unwrap();
    assert_eq!((buf.bytes()[22], buf.bytes()[42]), (77, 77));
    let six = Ipv6 { hop_limit: 5, ..ip6() };
    let mut buf = PacketBuf::from_slice(&base().ipv4(outer).ipv6(six).udp(1, 2).build());
    assert!(rewrite::copy_ttl_in(&mut buf));
    assert_eq!((buf.bytes()[22], buf.bytes()[41]), (9, 9));
    verify(buf.bytes()).unwrap();
}

#[test]
fn udp_without_a_checksum_stays_without() {
    let mut frame = base().ipv4(ip4()).udp(1, 2).payload(b"weir").build();
    frame[40..42].fill(0);
    let mut buf = PacketBuf::from_slice(&frame);
    for field in [Field::UdpSrc, Field::UdpDst, Field::Ipv4Src, Field::Ipv4Dst] {
        assert!(rewrite::set_field(&mut buf, field, 0x0a0b));
    }
    assert_eq!(buf.bytes()[40..42], [0, 0]);
    verify(buf.bytes()).unwrap();
}

#[test]
fn a_udp_checksum_that_becomes_zero_is_sent_as_ones() {
    let frame = base().ipv4(ip4()).udp(0, 2).payload(b"weir").build();
    let held = u16::from_be_bytes([frame[40], frame[41]]);
    let mut buf = PacketBuf::from_slice(&frame);
    // Adding the checksum itself to the data makes the sum all ones.
    assert!(rewrite::set_field(&mut buf, Field::UdpSrc, held.into()));
    assert_eq!(buf.bytes()[40..42], [0xff, 0xff]);
    verify(buf.bytes()).unwrap();
    assert!(rewrite::set_field(&mut buf, Field::UdpSrc, 0));
    assert_eq!(buf.bytes(), frame);
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    for frame in [
        base().ipv4(ip4()).tcp(Tcp::new(1, 2)).payload(b"weir").build(),
        base().ipv4(ip4()).sctp(1, 2, 3).payload(b"weir").build(),
    ] {
        let mut damaged = frame.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let mut buf = PacketBuf::from_slice(&damaged);
        assert!(rewrite::set_tp_src(&mut buf, 99));
        verify(buf.bytes()).unwrap_err();
    }
}

#[test]
fn fragments_are_rewritten_in_what_they_have() {
    let whole = base().ipv4(ip4()).udp(1, 2).payload(&[7; 64]).build();
    let mut first = whole[..14 + 20 + 8 + 32].to_vec();
    first[16..18].copy_from_slice(&60_u16.to_be_bytes());
    first[20] = 0x20;
    packet::fill_checksums(&mut first);
    assert_eq!(first[40..42], whole[40..42], "a fragment's checksum is left alone");
    let mut later = [&whole[..34], &whole[74..]].concat();
    later[16..18].copy_from_slice(&52_u16.to_be_bytes());
    later[20..22].copy_from_slice(&[0, 5]);
    packet::fill_checksums(&mut later);
    assert!(!key(&later).has(Field::UdpSrc) && key(&later).has(Field::IpProto));
    let mut parts = [PacketBuf::from_slice(&first), PacketBuf::from_slice(&later)];
    let mut expected = PacketBuf::from_slice(&whole);
    for buf in parts.iter_mut().chain([&mut expected]) {
        assert!(rewrite::set_field(buf, Field::Ipv4Dst, 0x0102_0304));
        verify(buf.bytes()).unwrap();
        rewrite::set_tp_dst(buf, 4711);
    }
    let joined = [&parts[0].bytes()[34..], &parts[1].bytes()[34..]].concat();
    assert_eq!(joined, expected.bytes()[34..], "the parts make a right whole");
}

#[test]
fn a_destination_under_a_routing_header_is_not_in_the_checksum() {
    let routing = Extension::new(ipv6::ROUTING, &[&[2, 1, 0, 0, 0, 0][..], &[9; 16]].concat());
    let frame = base().ipv6(Ipv6 { extensions: vec![routing], ..ip6() }).udp(1, 2).build();
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::set_field(&mut buf, Field::Ipv6Dst, 0x1234_5678));
    verify(buf.bytes()).unwrap();
    assert_eq!(buf.bytes()[78..], frame[78..]);
    assert!(rewrite::set_field(&mut buf, Field::Ipv6Src, 0x1234_5678));
    verify(buf.bytes()).unwrap();
}

#[test]
fn a_changed_protocol_moves_the_checksum_of_the_old_one() {
    for frame in
        [base().ipv4(ip4()).udp(1, 2).build(), base().vlan(1, 2).ipv6(ip6()).udp(1, 2).build()]
    {
        let mut buf = PacketBuf::from_slice(&frame);
        assert!(rewrite::set_field(&mut buf, Field::IpProto, 6));
        assert_eq!(key(buf.bytes()).get(Field::IpProto), 6);
        assert_eq!(Layout::of(buf.bytes()).unwrap().transport, Transport::Other);
        assert!(rewrite::set_field(&mut buf, Field::IpProto, 17));
        // With a UDP header cut short as TCP there was no checksum to go back.
        let at = Layout::of(&frame).unwrap().l4;
        assert_eq!(buf.bytes()[..at + 6], frame[..at + 6]);
    }
}

#[test]
fn the_actions_of_1_0() {
    let frame = base().ipv4(ip4()).tcp(Tcp::new(1, 2)).build();
    let mut buf = PacketBuf::from_slice(&frame);
    assert!(rewrite::set_vlan_pcp(&mut buf, 3));
    assert_eq!(buf.bytes()[12..16], [0x81, 0, 0x60, 0]);
    assert!(rewrite::set_vlan_vid(&mut buf, 0x0abc));
    assert_eq!(buf.bytes()[12..16], [0x81, 0, 0x6a, 0xbc]);
    assert!(rewrite::pop_vlan(&mut buf));
    assert!(rewrite::set_vlan_vid(&mut buf, 7));
    assert_eq!(buf.bytes()[12..16], [0x81, 0, 0, 7]);
    assert!(rewrite::set_tp_src(&mut buf, 80) && rewrite::set_tp_dst(&mut buf, 81));
    assert!(rewrite::set_nw_tos(&mut buf, 0xff));
    let now = key(buf.bytes());
    let fields = [Field::TcpSrc, Field::TcpDst, Field::IpDscp, Field::IpEcn];
    assert_eq!(fields.map(|field| now.get(field)), [80, 81, 0x3f, 1]);
    verify(buf.bytes()).unwrap();
    let mut icmp = PacketBuf::from_slice(&base().ipv4(ip4()).icmpv4(8, 0, 0).build());
    assert!(!rewrite::set_tp_src(&mut icmp, 80));
    assert_eq!(buf.len(), frame.len() + 4);
    assert!(!rewrite::set_vlan_vid(&mut PacketBuf::from_slice(&frame[..13]), 7));
    assert!(!rewrite::set_field(&mut buf, Field::TunnelId, 7));
    let solicit = base().ipv6(ip6()).neighbour_solicit(ip6().src, Some(mac(1))).build();
    assert!(!rewrite::set_field(&mut PacketBuf::from_slice(&solicit), Field::Ipv6NdTll, 7));
}
