//! Frame shapes: the header layouts of most frames, found from a few bytes. A shape says what
//! [`crate::Layout`] finds where nothing is unusual.
//!
//! A frame of a shape other than [`Shape::RARE`] has exactly the headers that the shape names, each
//! at the one place that the shape gives it, so that work which depends on places only (masking,
//! rewriting) can be prepared once for each shape. Whatever is unusual (three tags, IP options,
//! extension headers, fragments, cut off headers, neighbour discovery, PBB, 802.2) is rare and left
//! to the layout, and so is a frame with ports behind its first 64 bytes, which a cache looks at;
//! flags of TCP may lie behind them. Nothing here may name a shape that the layout contradicts.

use openflow::Field;
use openflow::field::{Header, Place};

use crate::header::{arp, be16, chunk, ethernet, icmpv4, icmpv6, ipv4, ipv6, mpls, sctp, tcp, udp};
use crate::header::{number, vlan};
use crate::layout::{Network, Transport};

/// Network and transport header of each kind of shapes, in the order of [`Shape::index`].
const HEADERS: [(Network, Transport); 14] = [
    // `Shape::RARE`, of which nothing is known.
    (Network::Other, Transport::Other),
    // An EtherType that no match field looks behind.
    (Network::Other, Transport::Other),
    (Network::Arp, Transport::Other),
    (Network::Mpls, Transport::Other),
    (Network::Ipv4, Transport::Other),
    (Network::Ipv4, Transport::Tcp),
    (Network::Ipv4, Transport::Udp),
    (Network::Ipv4, Transport::Sctp),
    (Network::Ipv4, Transport::Icmpv4),
    (Network::Ipv6, Transport::Other),
    (Network::Ipv6, Transport::Tcp),
    (Network::Ipv6, Transport::Udp),
    (Network::Ipv6, Transport::Sctp),
    (Network::Ipv6, Transport::Icmpv6),
];

const OTHER: u8 = 1;
const ARP: u8 = 2;
const MPLS: u8 = 3;
const IPV4: u8 = 4;
const IPV6: u8 = 9;

/// Most VLAN tags of a shape.
const TAGS_MAX: u8 = 2;

/// Bits of a shape's number that are its VLAN tags; the kind of headers is in the higher ones.
const TAG_BITS: u8 = 2;

/// A frame's shape: what it holds behind the EtherType, and how many VLAN tags, at most two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(u8);

impl Shape {
    /// Every frame that has no other shape.
    pub const RARE: Self = Self(0);
    /// All numbers of shapes, of which some are none; [`Shape::index`] is below.
    pub const COUNT: usize = HEADERS.len() << TAG_BITS;

    const fn new(kind: u8, tags: u8) -> Self {
        Self(kind << TAG_BITS | tags)
    }

    /// The shape's number: that of its kind four times, and its VLAN tags.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The shape of a number, if it is that of one.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        let shape = Self(u8::try_from(index).ok().filter(|_| index < Self::COUNT)?);
        let is_one = shape == Self::RARE || !shape.is_rare() && shape.tags() <= TAGS_MAX.into();
        is_one.then_some(shape)
    }

    /// Whether nothing is known of the frame.
    #[inline]
    #[must_use]
    pub const fn is_rare(self) -> bool {
        self.0 >> TAG_BITS == 0
    }

    /// Number of the frame's VLAN tags.
    #[inline]
    #[must_use]
    pub const fn tags(self) -> usize {
        (self.0 & ((1 << TAG_BITS) - 1)) as usize
    }

    /// The shape of such a frame without its outermost VLAN tag, if it has one.
    #[must_use]
    pub const fn popped(self) -> Self {
        if self.tags() == 0 { self } else { Self(self.0 - 1) }
    }

    /// The shape of such a frame with one VLAN tag more; [`Shape::RARE`] with three, or if it was.
    #[must_use]
    pub const fn pushed(self) -> Self {
        if self.is_rare() || self.tags() == TAGS_MAX as usize {
            Self::RARE
        } else {
            Self(self.0 + 1)
        }
    }

    /// The shape of such a frame behind a pushed MPLS entry; [`Shape::RARE`] stays.
    #[must_use]
    pub const fn behind_mpls(self) -> Self {
        if self.is_rare() { Self::RARE } else { Self::new(MPLS, self.tags() as u8) }
    }

    /// The header behind the EtherType.
    #[must_use]
    pub fn network(self) -> Network {
        HEADERS[self.index() >> TAG_BITS].0
    }

    /// The header behind IP.
    #[must_use]
    pub fn transport(self) -> Transport {
        HEADERS[self.index() >> TAG_BITS].1
    }

    /// Start of the network header.
    #[inline]
    #[must_use]
    pub const fn l3(self) -> usize {
        ethernet::HEADER_LEN + self.tags() * vlan::TAG_LEN
    }

    /// Start of the transport header; none without IP.
    #[must_use]
    pub fn l4(self) -> Option<usize> {
        match self.network() {
            Network::Ipv4 => Some(self.l3() + ipv4::HEADER_LEN),
            Network::Ipv6 => Some(self.l3() + ipv6::HEADER_LEN),
            Network::Other | Network::Mpls | Network::Pbb | Network::Arp => None,
        }
    }

    /// The shape of a frame.
    #[inline]
    #[must_use]
    pub fn of(frame: &[u8]) -> Self {
        let Some(head) = frame.first_chunk::<{ ipv4::HEADER_LEN + 18 }>() else {
            return Self::of_short(frame);
        };
        let outer = u16::from_be_bytes([head[12], head[13]]);
        if outer == ethernet::IPV4 && head[14] == IPV4_PLAIN {
            return Self::ipv4::<14, _>(frame, head, 0);
        }
        Self::of_others(frame, head, outer)
    }

    /// The same; quickest for IPv4 behind a VLAN tag, as [`Shape::of`] is for IPv4 without one. For
    /// a burst whose first frame [`Shape::begins_tagged`].
    #[inline]
    #[must_use]
    pub fn of_tagged(frame: &[u8]) -> Self {
        if let Some(head) = frame.first_chunk::<{ ipv4::HEADER_LEN + 18 }>()
            && ethernet::is_vlan(u16::from_be_bytes([head[12], head[13]]))
            && u16::from_be_bytes([head[16], head[17]]) == ethernet::IPV4
            && head[18] == IPV4_PLAIN
        {
            return Self::ipv4::<18, _>(frame, head, 1);
        }
        Self::of_less_usual(frame)
    }

    #[inline(never)]
    fn of_less_usual(frame: &[u8]) -> Self {
        Self::of(frame)
    }

    /// Whether a VLAN tag follows the addresses.
    #[inline]
    #[must_use]
    pub fn begins_tagged(frame: &[u8]) -> bool {
        be16(frame, ethernet::ETHER_TYPE).is_some_and(ethernet::is_vlan)
    }

    // A call for each frame costs a burst of MPLS frames 4 %.
    #[inline(always)]
    fn of_others(frame: &[u8], head: &[u8; 38], outer: u16) -> Self {
        let (eth_type, tags) = if ethernet::is_vlan(outer) {
            (u16::from_be_bytes([head[16], head[17]]), 1)
        } else {
            (outer, 0)
        };
        let l3 = ethernet::HEADER_LEN + usize::from(tags) * vlan::TAG_LEN;
        match eth_type {
            ethernet::IPV4 if head[l3] != IPV4_PLAIN => Self::RARE,
            ethernet::IPV4 if tags != 0 => Self::ipv4::<18, _>(frame, head, tags),
            ethernet::IPV4 => Self::ipv4::<14, _>(frame, head, tags),
            ethernet::IPV6 => Self::ipv6(frame, l3, tags),
            _ if ethernet::is_vlan(eth_type) => Self::of_two_tags(frame),
            _ => Self::no_ip(frame, l3, eth_type, tags),
        }
    }

    /// A frame with two VLAN tags, or more.
    #[inline(never)]
    fn of_two_tags(frame: &[u8]) -> Self {
        const L3: usize = ethernet::HEADER_LEN + 2 * vlan::TAG_LEN;
        let Some(head) = frame.first_chunk::<{ L3 + ipv4::HEADER_LEN }>() else {
            return Self::RARE;
        };
        match u16::from_be_bytes([head[L3 - 2], head[L3 - 1]]) {
            ethernet::IPV4 if head[L3] == IPV4_PLAIN => Self::ipv4::<L3, _>(frame, head, 2),
            ethernet::IPV4 => Self::RARE,
            ethernet::IPV6 => {
                let shape = Self::ipv6(frame, L3, 2);
                // Their ports are not within the first 64 bytes.
                let has_ports =
                    matches!(shape.transport(), Transport::Tcp | Transport::Udp | Transport::Sctp);
                if has_ports { Self::RARE } else { shape }
            }
            eth_type => Self::no_ip(frame, L3, eth_type, 2),
        }
    }

    /// A frame that may be too short for IP.
    #[cold]
    fn of_short(frame: &[u8]) -> Self {
        let Some(outer) = be16(frame, ethernet::ETHER_TYPE) else { return Self::RARE };
        if ethernet::is_vlan(outer) {
            return Self::RARE;
        }
        match outer {
            ethernet::IPV4 | ethernet::IPV6 => Self::RARE,
            _ => Self::no_ip(frame, ethernet::HEADER_LEN, outer, 0),
        }
    }

    fn no_ip(frame: &[u8], l3: usize, eth_type: u16, tags: u8) -> Self {
        let room = frame.len().saturating_sub(l3);
        let kind = match eth_type {
            ethernet::ARP => {
                let known = chunk(frame, l3) == Some(&arp::ETHERNET_IPV4);
                if !known || room < arp::PACKET_LEN {
                    return Self::RARE;
                }
                ARP
            }
            ethernet::MPLS | ethernet::MPLS_UPSTREAM if room >= mpls::ENTRY_LEN => MPLS,
            ethernet::MPLS | ethernet::MPLS_UPSTREAM | ethernet::PBB => return Self::RARE,
            _ if eth_type < ethernet::ETHER_TYPE_MIN || ethernet::is_vlan(eth_type) => {
                return Self::RARE;
            }
            _ => OTHER,
        };
        Self::new(kind, tags)
    }

    #[inline]
    fn ipv4<const L3: usize, const N: usize>(frame: &[u8], head: &[u8; N], tags: u8) -> Self {
        let total_len = usize::from(u16::from_be_bytes([head[L3 + 2], head[L3 + 3]]));
        let fragment = u16::from_be_bytes([head[L3 + 6], head[L3 + 7]]);
        let end = frame.len().min(L3 + total_len);
        let carried = OVER_IPV4[usize::from(head[L3 + ipv4::PROTO])];
        let is_whole = fragment & (ipv4::OFFSET_MASK | ipv4::MORE_FRAGMENTS) == 0;
        carried.shape(is_whole, L3 + ipv4::HEADER_LEN, end, tags)
    }

    #[inline]
    fn ipv6(frame: &[u8], l3: usize, tags: u8) -> Self {
        let Some(fixed) = chunk::<{ ipv6::HEADER_LEN }>(frame, l3) else { return Self::RARE };
        let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let l4 = l3 + ipv6::HEADER_LEN;
        let end = frame.len().min(l4 + payload_len);
        let carried = OVER_IPV6[usize::from(fixed[ipv6::NEXT_HEADER])];
        let shape = carried.shape(fixed[0] >> 4 == 6, l4, end, tags);
        let discovery =
            matches!(frame.get(l4), Some(&(icmpv6::NEIGHBOUR_SOLICIT | icmpv6::NEIGHBOUR_ADVERT)));
        if carried.number == Shape::new(IPV6 + 4, 0).0 && discovery { Self::RARE } else { shape }
    }

    /// Start of a header of the rows of match fields; none when the shape does not have it.
    #[must_use]
    pub fn at(self, header: Header) -> Option<usize> {
        let network = |wanted| (self.network() == wanted).then(|| self.l3());
        let transport = |wanted| if self.transport() == wanted { self.l4() } else { None };
        match header {
            Header::Ethernet => (!self.is_rare()).then_some(0),
            Header::Vlan => (self.tags() > 0).then_some(vlan::OUTERMOST_TCI),
            Header::Mpls => network(Network::Mpls),
            Header::Pbb => network(Network::Pbb),
            Header::Arp => network(Network::Arp),
            Header::Ipv4 => network(Network::Ipv4),
            Header::Ipv6 => network(Network::Ipv6),
            Header::Tcp => transport(Transport::Tcp),
            Header::Udp => transport(Transport::Udp),
            Header::Sctp => transport(Transport::Sctp),
            Header::Icmpv4 => transport(Transport::Icmpv4),
            Header::Icmpv6 => transport(Transport::Icmpv6),
        }
    }

    /// Place of a field in every frame of the shape: its first bit, counted from the start of
    /// the frame, and its width. None when frames of the shape do not have it, or when the shape
    /// alone says its value. `VLAN_VID` is given without `OFPVID_PRESENT`, which the shape says.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other fields stand where their rows say"
    )]
    pub fn bits_of(self, field: Field) -> Option<(usize, usize)> {
        if self.is_rare() {
            return None;
        }
        let is_ip = matches!(self.network(), Network::Ipv4 | Network::Ipv6);
        match field {
            Field::EthType => Some((8 * (self.l3() - 2), 16)),
            Field::VlanVid => (self.tags() > 0).then_some((8 * vlan::OUTERMOST_TCI + 4, 12)),
            Field::IpProto if is_ip => {
                let offset =
                    if self.network() == Network::Ipv4 { ipv4::PROTO } else { ipv6::NEXT_HEADER };
                Some((8 * (self.l3() + offset), 8))
            }
            Field::IpProto | Field::Ipv6NdTarget => None,
            _ => match field.row().place {
                Place::Meta | Place::Register(_) | Place::Registers(..) | Place::Parsed => None,
                Place::At(places) => places.iter().find_map(|(header, offset)| {
                    let start = self.at(*header)?;
                    Some((8 * start + usize::from(*offset), usize::from(field.row().bits)))
                }),
            },
        }
    }

    /// The bits of a frame of the shape that hold `mask` of a field, as (byte, bits of it) pairs
    /// handed to `each`; nothing when [`Shape::bits_of`] knows no place.
    pub fn mask_of(self, field: Field, mask: u128, mut each: impl FnMut(usize, u8)) {
        let Some((first, width)) = self.bits_of(field) else { return };
        for bit in 0..width {
            if mask >> (width - 1 - bit) & 1 != 0 {
                each((first + bit) / 8, 0x80 >> ((first + bit) % 8));
            }
        }
    }

    /// A field's value in a frame of the shape; none where [`Shape::bits_of`] knows no place or the
    /// frame ends before it.
    #[must_use]
    pub fn read(self, field: Field, frame: &[u8]) -> Option<u128> {
        let (first, width) = self.bits_of(field)?;
        let (start, end) = (first / 8, (first + width).div_ceil(8));
        let held = number(frame.get(start..end)?);
        Some(held >> (8 * end - first - width) & u128::MAX >> (128 - width))
    }
}

/// The header after IP, by its protocol number. Looked up instead of compared with one protocol
/// after the other: which one comes next cannot be foreseen, and a wrong guess costs as much as all
/// the rest.
#[derive(Clone, Copy)]
struct Carried {
    /// The shape without a tag; zero for a rare one.
    number: u8,
    /// Bytes that the header has at least.
    least: u8,
}

impl Carried {
    const fn new(kind: u8, least: usize) -> Self {
        Self { number: Shape::new(kind, 0).0, least: least as u8 }
    }

    /// The shape of a frame whose header stands from `l4` on, and whose bytes end at `end`.
    #[inline]
    fn shape(self, is_usual: bool, l4: usize, end: usize, tags: u8) -> Shape {
        let has_room = end >= l4 + usize::from(self.least);
        let is_known = is_usual & has_room & (self.number != 0);
        Shape(if is_known { self.number | tags } else { 0 })
    }
}

/// By the number of the protocol.
static OVER_IPV4: [Carried; 256] = {
    let mut table = [Carried::new(IPV4, 0); 256];
    table[ipv4::PROTO_TCP as usize] = Carried::new(IPV4 + 1, tcp::HEADER_LEN);
    table[ipv4::PROTO_UDP as usize] = Carried::new(IPV4 + 2, udp::HEADER_LEN);
    table[ipv4::PROTO_SCTP as usize] = Carried::new(IPV4 + 3, sctp::HEADER_LEN);
    table[ipv4::PROTO_ICMP as usize] = Carried::new(IPV4 + 4, icmpv4::HEADER_LEN);
    table
};

/// By the number of the next header. Extension headers are rare.
static OVER_IPV6: [Carried; 256] = {
    let mut table = [Carried::new(IPV6, 0); 256];
    table[ipv4::PROTO_TCP as usize] = Carried::new(IPV6 + 1, tcp::HEADER_LEN);
    table[ipv4::PROTO_UDP as usize] = Carried::new(IPV6 + 2, udp::HEADER_LEN);
    table[ipv4::PROTO_SCTP as usize] = Carried::new(IPV6 + 3, sctp::HEADER_LEN);
    table[ipv6::PROTO_ICMPV6 as usize] = Carried::new(IPV6 + 4, icmpv6::HEADER_LEN);
    let rare = Carried { number: 0, least: 0 };
    table[ipv6::HOP as usize] = rare;
    table[ipv6::ROUTING as usize] = rare;
    table[ipv6::FRAGMENT as usize] = rare;
    table[ipv6::ESP as usize] = rare;
    table[ipv6::AUTH as usize] = rare;
    table[ipv6::NO_NEXT as usize] = rare;
    table[ipv6::DEST as usize] = rare;
    table
};

/// Version 4 and a header of 20 bytes.
const IPV4_PLAIN: u8 = 0x45;

#[cfg(test)]
mod tests {
    use super::{HEADERS, Shape};
    use openflow::Field;
    use openflow::PortNo;
    use openflow::field::{FIELDS, VID_PRESENT};

    use crate::layout::{Layout, Network, Transport};
    use crate::{Meta, extract};

    /// Every shape against the layout, and every field of it against the extraction.
    fn check(frame: &[u8]) {
        let shape = Shape::of(frame);
        assert_eq!(Shape::of_tagged(frame), shape, "{frame:02x?}");
        if shape.is_rare() {
            return;
        }
        let layout = Layout::of(frame).expect("a shape without a layout");
        assert_eq!(layout.tags, shape.tags(), "{frame:02x?}");
        assert_eq!((layout.network, layout.transport), (shape.network(), shape.transport()));
        assert_eq!((layout.l3, layout.exthdr, layout.fragment), (shape.l3(), 0, false));
        if matches!(layout.network, Network::Ipv4 | Network::Ipv6) {
            assert_eq!(Some(layout.l4), shape.l4());
        }
        let key = extract(frame, &Meta::port(PortNo(1)));
        for row in FIELDS {
            let field = row.field;
            let value = match shape.read(field, frame) {
                Some(vid) if field == Field::VlanVid => Some(vid | VID_PRESENT),
                value => value,
            };
            if let Some(value) = value {
                assert!(key.has(field), "{} of {frame:02x?}", row.name);
                assert_eq!(key.get(field), value, "{} of {frame:02x?}", row.name);
            } else {
                let is_meta = row.place.is_beside_packet();
                assert_eq!(
                    key.get(field) * u128::from(!is_meta),
                    0,
                    "{} of {frame:02x?}",
                    row.name
                );
                assert!(
                    is_meta
                        || !key.has(field)
                        || matches!(field, Field::Ipv6Exthdr | Field::IpFrag),
                    "{} of {frame:02x?}",
                    row.name
                );
            }
        }
    }

    /// Frames near the limits of what a shape is, by damaging the bytes that decide.
    #[test]
    fn no_shape_contradicts_the_layout() {
        let mut random = testkit::Random::new(1);
        let mut draw = |below: u64| random.below(below);
        let types =
            [0x0800, 0x0806, 0x86dd, 0x8847, 0x8848, 0x88e7, 0x8100, 0x88a8, 0x1234, 0x0040];
        let protos = [0, 1, 2, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 132, 255];
        let mut seen = [0_u32; Shape::COUNT];
        for _ in 0..200_000 {
            let mut frame: Vec<u8> = (0..draw(130)).map(|_| draw(256) as u8).collect();
            let mut at = 12;
            while draw(2) == 0 && at < 24 {
                put(&mut frame, at, 0x8100);
                at += 4;
            }
            put(&mut frame, at, types[draw(types.len() as u64) as usize]);
            let l3 = at + 2;
            let len = frame.len();
            let proto = protos[draw(protos.len() as u64) as usize];
            if draw(2) == 0 {
                poke(&mut frame, l3, 0x45);
                put(&mut frame, l3 + 2, draw(90) as u16);
                put(&mut frame, l3 + 6, if draw(4) == 0 { draw(0x1_0000) as u16 } else { 0x4000 });
                poke(&mut frame, l3 + 9, proto);
            } else {
                poke(&mut frame, l3, 0x60);
                put(&mut frame, l3 + 4, if draw(2) == 0 { len as u16 } else { draw(60) as u16 });
                poke(&mut frame, l3 + 6, proto);
                if draw(4) == 0 {
                    poke(&mut frame, l3 + 40, 135 + draw(2) as u8);
                }
            }
            if draw(3) == 0
                && let Some(place) = frame.get_mut(l3..l3 + 6)
            {
                place.copy_from_slice(&[0, 1, 8, 0, 6, 4]);
            }
            seen[Shape::of(&frame).index()] += 1;
            check(&frame);
        }
        // The ports of these stand too far behind.
        let is_too_long = |shape: Shape| shape.tags() == 2 && shape.l4() == Some(62);
        let has_ports =
            |shape: Shape| !matches!(shape.transport(), Transport::Other | Transport::Icmpv6);
        for index in 0..Shape::COUNT {
            let found = Shape::from_index(index).filter(|it| !is_too_long(*it) || !has_ports(*it));
            assert_eq!(seen[index] > 4, found.is_some(), "{found:?}: {seen:?}");
        }
    }

    fn put(frame: &mut [u8], at: usize, value: u16) {
        poke(frame, at, (value >> 8) as u8);
        poke(frame, at + 1, value as u8);
    }

    fn poke(frame: &mut [u8], at: usize, value: u8) {
        if let Some(byte) = frame.get_mut(at) {
            *byte = value;
        }
    }

    #[test]
    fn numbers_lead_back() {
        let shapes = || (0..1_000).filter_map(|index| Some((index, Shape::from_index(index)?)));
        assert!(shapes().all(|(index, shape)| shape.index() == index && index < Shape::COUNT));
        assert_eq!(shapes().filter(|(_, shape)| !shape.is_rare()).count(), 3 * (HEADERS.len() - 1));
    }
}
