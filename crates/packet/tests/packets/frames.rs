//! Frames for the other tests: some of every kind by name, and any number at random.

use openflow::MacAddr;
use packet::build::{Arp, Extension, FrameBuilder, Ipv4, Ipv6, Tcp};
use packet::header::{ethernet, icmpv6, ipv6};
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) fn mac(number: u64) -> MacAddr {
    MacAddr::from_u64(number & 0xffff_ffff_ffff)
}

pub(crate) fn base() -> FrameBuilder {
    FrameBuilder::ethernet(mac(0x0202_0304_0506), mac(0x1213_1415_1617))
}

pub(crate) fn ip4() -> Ipv4 {
    let (src, dst) = (Ipv4Addr::new(192, 168, 10, 10), Ipv4Addr::new(192, 168, 20, 21));
    Ipv4 { dscp: 0x2e, ecn: 1, id: 0x1234, ..Ipv4::new(src, dst) }
}

pub(crate) fn ip6() -> Ipv6 {
    let src = "2001:db8::1".parse().unwrap();
    let dst = "2001:db8:1:2:3:4:5:6".parse().unwrap();
    Ipv6 { dscp: 0x15, ecn: 2, flow_label: 0x9_8765, ..Ipv6::new(src, dst) }
}

/// At least one frame for every field of the rows that a packet can have.
pub(crate) fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let target: Ipv6Addr = "fe80::1:2:3".parse().unwrap();
    let arp = Arp {
        op: 0x0102,
        sha: mac(0x0a0b_0c0d_0e0f),
        spa: Ipv4Addr::new(1, 2, 3, 4),
        tha: mac(0x1a1b_1c1d_1e1f),
        tpa: Ipv4Addr::new(5, 6, 7, 8),
    };
    let chain = vec![
        Extension::new(ipv6::HOP, &[1, 2, 0, 0]),
        Extension::new(ipv6::DEST, &[1, 10]),
        Extension::new(ipv6::AUTH, &[0; 22]),
    ];
    let built = [
        ("tcp", base().vlan(5, 0x123).ipv4(ip4()).tcp(Tcp::new(0x1234, 0x5678))),
        ("udp", base().tag(0x88a8, 2, 7).vlan(1, 9).ipv4(ip4()).udp(1111, 2222)),
        ("sctp", base().ipv6(ip6()).sctp(3333, 4444, 0xdead_beef).payload(&[0; 8])),
        ("icmpv4", base().ipv4(ip4()).icmpv4(8, 3, 0x0001_0002)),
        ("arp", base().arp(arp)),
        ("solicit", base().ipv6(ip6()).neighbour_solicit(target, Some(mac(0x22_3344_5566)))),
        ("advert", base().ipv6(ip6()).neighbour_advert(target, Some(mac(0x32_3344_5566)))),
        ("unreachable", base().ipv6(ip6()).icmpv6(1, 4, &[0; 4])),
        ("mpls", base().mpls(0xa_bcde, 5, 63).ipv4(ip4()).udp(1, 2)),
        ("pbb", base().pbb(3, 0xab_cdef, mac(1), mac(2)).ipv4(ip4()).udp(1, 2)),
        ("chain", base().ipv6(Ipv6 { extensions: chain, ..ip6() }).udp(5, 6)),
        ("snap", base().vlan(1, 2).snap().ipv4(ip4()).udp(7, 8)),
    ];
    let mut built: Vec<_> =
        built.into_iter().map(|(name, frame)| (name, frame.fill_to(80).build())).collect();
    let mut flagged = base().pbb(3, 0xab_cdef, mac(1), mac(2)).ipv4(ip4()).udp(1, 2).build();
    flagged[ethernet::HEADER_LEN] |= 1 << 3;
    built.push(("pbb_uca", flagged));
    let mut later = base().ipv4(ip4()).udp(1, 2).build();
    later[ethernet::HEADER_LEN + 7] = 3;
    built.push(("later fragment", later));
    built
}

fn transport4() -> impl Strategy<Value = fn(FrameBuilder, u16, u16) -> FrameBuilder> {
    let all: Vec<fn(FrameBuilder, u16, u16) -> FrameBuilder> = vec![
        |frame, src, dst| frame.udp(src, dst),
        |frame, src, dst| frame.tcp(Tcp { seq: 7, options: vec![1; 5], ..Tcp::new(src, dst) }),
        |frame, src, dst| frame.sctp(src, dst, 99),
        |frame, src, dst| frame.icmpv4(src as u8, dst as u8, 5),
        |frame, src, dst| frame.echo_request(src, dst),
        |frame, _, _| frame,
    ];
    proptest::sample::select(all)
}

fn transport6() -> impl Strategy<Value = fn(FrameBuilder, u16, u16) -> FrameBuilder> {
    fn target(src: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 1, 2, 3, src)
    }
    let all: Vec<fn(FrameBuilder, u16, u16) -> FrameBuilder> = vec![
        |frame, src, dst| frame.udp(src, dst),
        |frame, src, dst| frame.tcp(Tcp::new(src, dst)),
        |frame, src, dst| frame.sctp(src, dst, 99),
        |frame, src, dst| frame.icmpv6(src as u8, dst as u8, &[0; 4]),
        |frame, src, dst| frame.echo_reply(src, dst),
        |frame, src, dst| frame.neighbour_solicit(target(src), Some(mac(dst.into()))),
        |frame, src, dst| frame.neighbour_advert(target(src), Some(mac(dst.into()))),
        |frame, src, _| frame.icmpv6(icmpv6::NEIGHBOUR_SOLICIT, 0, &target(src).octets()),
        |frame, _, _| frame,
    ];
    proptest::sample::select(all)
}

fn extension() -> impl Strategy<Value = Extension> {
    let data = vec(any::<u8>(), 0..20);
    const KINDS: &[u8] = &[ipv6::HOP, ipv6::DEST];
    prop_oneof![
        // Padding options only, so that other parsers take the header too.
        (proptest::sample::select(KINDS), Just(vec![1, 4, 0, 0, 0, 0]))
            .prop_map(|(kind, data)| Extension::new(kind, &data)),
        data.prop_map(|data| Extension::new(ipv6::AUTH, &[vec![0; 10], data].concat())),
        any::<[u8; 16]>().prop_map(|last| {
            Extension::new(ipv6::ROUTING, &[vec![0, last[0] & 1, 0, 0, 0, 0], last.into()].concat())
        }),
    ]
}

fn over_ipv4(frame: FrameBuilder) -> BoxedStrategy<FrameBuilder> {
    let header = (any::<[u32; 2]>(), any::<[u8; 3]>(), vec(1..2_u8, 0..9));
    let fragment =
        prop_oneof![8 => Just(0), 1 => Just(0x4000), 1 => Just(0x2000), 1 => 1..0x1fff_u16];
    (header, fragment, transport4(), any::<[u16; 2]>())
        .prop_map(move |(([src, dst], [dscp, ttl, ecn], options), fragment, transport, ports)| {
            let header = Ipv4 {
                dscp: dscp & 0x3f,
                ecn: ecn & 3,
                ttl,
                fragment,
                options,
                ..Ipv4::new(src.into(), dst.into())
            };
            transport(frame.clone().ipv4(header), ports[0], ports[1])
        })
        .boxed()
}

fn over_ipv6(frame: FrameBuilder) -> BoxedStrategy<FrameBuilder> {
    let header = (any::<[u128; 2]>(), any::<[u8; 3]>(), 0..0x10_0000_u32, vec(extension(), 0..4));
    let fragment = prop_oneof![8 => Just(None), 1 => (0..4_u16, any::<bool>()).prop_map(Some)];
    (header, fragment, transport6(), any::<[u16; 2]>())
        .prop_map(move |(header, fragment, transport, ports)| {
            let ([src, dst], [dscp, hop_limit, ecn], flow_label, mut extensions) = header;
            if let Some((offset, more)) = fragment {
                extensions.push(Extension::fragment(offset, more, 77));
            }
            let header = Ipv6 {
                dscp: dscp & 0x3f,
                ecn: ecn & 3,
                hop_limit,
                flow_label,
                extensions,
                ..Ipv6::new(src.into(), dst.into())
            };
            transport(frame.clone().ipv6(header), ports[0], ports[1])
        })
        .boxed()
}

fn over_link(frame: FrameBuilder) -> BoxedStrategy<FrameBuilder> {
    let arp = (any::<u16>(), any::<[u64; 2]>(), any::<[u32; 2]>());
    let (four, six, other) = (frame.clone(), frame.clone(), frame.clone());
    prop_oneof![
        4 => over_ipv4(four),
        4 => over_ipv6(six),
        1 => arp.prop_map(move |(op, [sha, tha], [spa, tpa])| {
            let (sha, tha) = (mac(sha), mac(tha));
            frame.clone().arp(Arp { op, sha, spa: spa.into(), tha, tpa: tpa.into() })
        }),
        1 => (0x9000..0xffff_u16).prop_map(move |number| other.clone().ether_type(number)),
    ]
    .boxed()
}

/// Ethernet with up to three tags, and any network header behind them.
pub(crate) fn plain() -> impl Strategy<Value = Vec<u8>> {
    let tags = vec((any::<bool>(), 0..8_u8, 0..4096_u16), 0..4);
    (any::<[u64; 2]>(), tags)
        .prop_flat_map(|([dst, src], tags)| {
            let tag = |frame: FrameBuilder, (service, pcp, vid): (bool, u8, u16)| {
                frame.tag(if service { 0x88a8 } else { 0x8100 }, pcp, vid)
            };
            over_link(tags.into_iter().fold(FrameBuilder::ethernet(mac(dst), mac(src)), tag))
        })
        .prop_flat_map(|frame| (Just(frame), vec(any::<u8>(), 0..60)))
        .prop_map(|(frame, payload)| frame.payload(&payload).build())
}

/// Frames of [`plain`], and frames with SNAP, MPLS and PBB.
pub(crate) fn all() -> impl Strategy<Value = Vec<u8>> {
    let encapsulated = (any::<[u8; 3]>(), any::<[u32; 2]>(), 0..3_u8).prop_flat_map(
        |([tc, ttl, pcp], [label, isid], kind)| match kind {
            0 => over_ipv4(base().mpls(label >> 12, tc & 7, ttl).mpls(3, 1, 9)),
            1 => over_ipv6(base().vlan(pcp & 7, 9).mpls(label >> 12, tc & 7, ttl)),
            _ => over_link(base().vlan(pcp & 7, 8).pbb(pcp & 7, isid, mac(3), mac(4))),
        },
    );
    let built = prop_oneof![
        encapsulated,
        (0..4096_u16).prop_flat_map(|vid| over_link(base().vlan(1, vid).snap())),
    ]
    .prop_flat_map(|frame| (Just(frame), vec(any::<u8>(), 0..40)))
    .prop_map(|(frame, payload)| frame.payload(&payload).build());
    prop_oneof![2 => plain().boxed(), 1 => built.boxed()]
}
