//! One fragment: which packet it belongs to, which bytes of that it brings, and how the packet
//! looks when all are there (RFC 791, RFC 8200 section 4.5).

use openflow::PortNo;
use packet::checksum::ones_complement;
use packet::header::{be16, chunk, ipv4, ipv6};
use packet::{Layout, Network};

/// Highest length that IP can state.
const LENGTH_MAX: usize = 65_535;

/// Highest length field of an 802.3 frame.
const LLC_LENGTH_MAX: usize = 1_500;

/// Fields that the fragments of one packet have in common. Packets of different ports or VLANs have
/// nothing to do with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    in_port: PortNo,
    /// From the first tag or EtherType up to IP.
    link: Vec<u8>,
    addresses: Vec<u8>,
    /// Zero for IPv6, whose fragments may differ in it.
    proto: u8,
    id: u32,
}

/// Place of the header of a fragment that changes when the packet is put together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ip {
    /// IPv4 at this place.
    V4 { l3: usize },
    /// IPv6 at this place.
    V6 {
        l3: usize,
        /// The byte that says that a fragment header follows, and what is behind that one.
        next_at: usize,
        next: u8,
    },
}

/// The bytes before the data of a packet, from its first fragment.
#[derive(Clone, Debug)]
pub(super) struct FragmentHead {
    bytes: Vec<u8>,
    ip: Ip,
    length_at: Option<usize>,
}

/// A fragment.
#[derive(Clone, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) key: Key,
    /// Place of its data in the packet's.
    pub(super) start: usize,
    pub(super) data: &'a [u8],
    /// Whether others follow.
    pub(super) more: bool,
    /// ECN field: two bits.
    pub(super) ecn: u8,
    ip: Ip,
    head: &'a [u8],
    length_at: Option<usize>,
}

impl<'a> Fragment<'a> {
    /// The fragment in a frame with this layout; `None` when it cannot be part of any packet.
    pub(super) fn of(frame: &'a [u8], layout: &Layout, in_port: PortNo) -> Option<Self> {
        let fragment = match layout.network {
            Network::Ipv4 => Self::ipv4(frame, layout, in_port)?,
            Network::Ipv6 => Self::ipv6(frame, layout, in_port)?,
            Network::Other | Network::Mpls | Network::Pbb | Network::Arp => return None,
        };
        let is_cut = layout.truncated || fragment.data.is_empty();
        let is_uneven = fragment.more && !fragment.data.len().is_multiple_of(8);
        let is_long = fragment.start + fragment.data.len() > LENGTH_MAX;
        (!is_cut && !is_uneven && !is_long).then_some(fragment)
    }

    fn ipv4(frame: &'a [u8], layout: &Layout, in_port: PortNo) -> Option<Self> {
        let l3 = layout.l3;
        let header = frame.get(l3..layout.l4)?;
        let field = be16(header, ipv4::FRAGMENT.start)?;
        Some(Self {
            key: Key {
                in_port,
                link: frame.get(12..l3)?.to_vec(),
                addresses: header.get(ipv4::SRC.start..ipv4::DST.end)?.to_vec(),
                proto: *header.get(ipv4::PROTO)?,
                id: be16(header, ID)?.into(),
            },
            start: usize::from(field & ipv4::OFFSET_MASK) * 8,
            data: frame.get(layout.l4..layout.end)?,
            more: field & ipv4::MORE_FRAGMENTS != 0,
            ecn: header.get(ipv4::TOS)? & 3,
            ip: Ip::V4 { l3 },
            head: frame.get(..layout.l4)?,
            length_at: layout.length_at,
        })
    }

    fn ipv6(frame: &'a [u8], layout: &Layout, in_port: PortNo) -> Option<Self> {
        let l3 = layout.l3;
        let body = frame.get(..layout.end)?;
        let mut next_at = l3 + ipv6::NEXT_HEADER;
        let mut at = l3 + ipv6::HEADER_LEN;
        loop {
            let kind = *body.get(next_at)?;
            if kind == ipv6::FRAGMENT {
                break;
            }
            let units = usize::from(*body.get(at + ipv6::EXT_LEN)?);
            next_at = at;
            at += match kind {
                ipv6::HOP | ipv6::ROUTING | ipv6::DEST => (units + 1) * 8,
                ipv6::AUTH => (units + 2) * 4,
                _ => return None,
            };
        }
        let header = chunk::<{ ipv6::EXT_LEN_MIN }>(body, at)?;
        let [next, _, high, low, id @ ..] = *header;
        let field = u16::from_be_bytes([high, low]);
        Some(Self {
            key: Key {
                in_port,
                link: frame.get(12..l3)?.to_vec(),
                addresses: frame.get(l3 + ipv6::SRC.start..l3 + ipv6::DST.end)?.to_vec(),
                proto: 0,
                id: u32::from_be_bytes(id),
            },
            start: usize::from(field & ipv6::OFFSET_MASK),
            data: body.get(at + ipv6::EXT_LEN_MIN..)?,
            more: field & ipv6::MORE_FRAGMENTS != 0,
            ecn: frame.get(l3 + 1)? >> 4 & 3,
            ip: Ip::V6 { l3, next_at, next },
            head: frame.get(..at)?,
            length_at: layout.length_at,
        })
    }

    /// The bytes before the data.
    pub(super) fn head(&self) -> FragmentHead {
        FragmentHead { bytes: self.head.to_vec(), ip: self.ip, length_at: self.length_at }
    }
}

/// Identification of an IPv4 packet.
const ID: usize = 4;

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

impl FragmentHead {
    /// The whole frame; `None` when it would be longer than IP can state. With `is_congested` it
    /// says so in its ECN field.
    pub(super) fn whole(
        self,
        data: impl Iterator<Item = Vec<u8>>,
        is_congested: bool,
    ) -> Option<Vec<u8>> {
        let Self { bytes: mut frame, ip, length_at } = self;
        let head_len = frame.len();
        data.for_each(|piece| frame.extend_from_slice(&piece));
        let (l3, counted_from) = match ip {
            Ip::V4 { l3 } => (l3, l3),
            Ip::V6 { l3, .. } => (l3, l3 + ipv6::HEADER_LEN),
        };
        let length = u16::try_from(frame.len() - counted_from).ok()?;
        if let Some(at) = length_at {
            let length = frame.len() - (at + 2);
            let length = u16::try_from(length).ok().filter(|_| length <= LLC_LENGTH_MAX)?;
            put(&mut frame, at, length)?;
        }
        match ip {
            Ip::V4 { .. } => {
                let header = frame.get_mut(l3..head_len)?;
                put(header, ipv4::TOTAL_LEN.start, length)?;
                let field = be16(header, ipv4::FRAGMENT.start)?;
                let kept = field & !(ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK);
                put(header, ipv4::FRAGMENT.start, kept)?;
                *header.get_mut(ipv4::TOS)? |= if is_congested { 3 } else { 0 };
                put(header, ipv4::CHECKSUM.start, 0)?;
                let checksum = ones_complement(header);
                put(header, ipv4::CHECKSUM.start, checksum)?;
            }
            Ip::V6 { next_at, next, .. } => {
                put(&mut frame, l3 + ipv6::PAYLOAD_LEN.start, length)?;
                *frame.get_mut(next_at)? = next;
                *frame.get_mut(l3 + 1)? |= if is_congested { 0x30 } else { 0 };
            }
        }
        Some(frame)
    }
}
