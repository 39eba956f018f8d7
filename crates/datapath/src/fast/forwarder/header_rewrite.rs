//! Several changes of one header, made in one pass: masked words and the differences of checksums.
//!
//! In frames of one shape every field has one place, so a list of set-fields and TTL changes is a
//! few masked 64-bit words, and the checksums that cover them change by the difference of the old
//! and the new 16-bit words (RFC 1624), summed once for all changes. What is written stands apart
//! from where it is written, so that lists with the same fields and other values are one rewrite.
//! The result must be, byte for byte, what the actions one after the other would give.

use openflow::action::{HeaderEffect, TtlLayer};
use openflow::{Action, Field};
use packet::header::{icmpv4, icmpv6, ipv4, ipv6, tcp, udp};
use packet::{Network, Shape, Transport};

/// Most 16-bit words of a checksum that one rewrite changes, and most 64-bit words. Longer lists of
/// actions become several rewrites.
const WORDS: usize = 12;
const WIDE: usize = 6;

/// The 16-bit words that changed under one checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Covered {
    /// Place of the checksum.
    at: u8,
    /// Whether zero means that there is none.
    is_udp: bool,
    len: u8,
    /// Places of the words.
    words: [u8; WORDS],
}

impl Covered {
    fn new(at: usize, is_udp: bool) -> Option<Self> {
        Some(Self { at: u8::try_from(at).ok()?, is_udp, len: 0, words: [0; WORDS] })
    }

    fn words(&self) -> &[u8] {
        self.words.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Adds the words that hold these bytes; none when one is there already, or too many are.
    fn add(&mut self, start: usize, end: usize) -> Option<()> {
        for at in ((start & !1)..end.next_multiple_of(2)).step_by(2) {
            let at = u8::try_from(at).ok()?;
            if self.words().contains(&at) {
                return None;
            }
            *self.words.get_mut(usize::from(self.len))? = at;
            self.len += 1;
        }
        Some(())
    }

    /// The sum so far: the complement of the checksum and of the old words; none where the frame
    /// has no checksum.
    #[inline]
    fn before(&self, frame: &[u8]) -> Option<u32> {
        let held = be16(frame, self.at);
        if self.is_udp && held == 0 {
            return None;
        }
        let words = self.words().iter();
        Some(words.fold(u32::from(!held), |sum, at| sum + u32::from(!be16(frame, *at))))
    }

    /// Adds the new words and writes the checksum.
    #[inline]
    fn after(&self, frame: &mut [u8], before: u32) {
        let words = self.words().iter();
        let mut sum = words.fold(before, |sum, at| sum + u32::from(be16(frame, *at)));
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let checksum = !(sum as u16);
        let checksum = if self.is_udp && checksum == 0 { u16::MAX } else { checksum };
        let at = usize::from(self.at);
        if let Some(place) = frame.get_mut(at..at + 2) {
            place.copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

#[inline]
fn be16(frame: &[u8], at: u8) -> u16 {
    let at = usize::from(at);
    match frame.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

/// Eight bytes of the header, in the order of the frame: which bits are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Word {
    at: u8,
    keep: u64,
}

/// Changes of one header in one pass, without the values that are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeaderRewrite {
    shape: Shape,
    /// Bytes that every frame of the shape has.
    least: usize,
    words: [Word; WIDE],
    words_len: u8,
    /// Place of the TTL that goes down, and by how much.
    ttl: Option<(u8, u8)>,
    ip: Option<Covered>,
    l4: Option<Covered>,
}

impl HeaderRewrite {
    #[inline]
    fn words(&self) -> &[Word] {
        self.words.get(..usize::from(self.words_len)).unwrap_or_default()
    }

    /// The shape of the frames.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of values that it writes.
    #[inline]
    pub(super) fn values_len(&self) -> usize {
        self.words_len.into()
    }

    /// The masked words: where each stands, which bits stay, and what the others become.
    pub(super) fn masked_words(&self, values: &[u64]) -> impl Iterator<Item = (u8, u64, u64)> {
        self.words().iter().zip(values).map(|(word, value)| (word.at, word.keep, *value))
    }

    /// Place of the TTL that goes down, and by how much.
    pub(super) fn lowered_ttl(&self) -> Option<(u8, u8)> {
        self.ttl
    }

    /// Place of the checksum of IPv4, if it changes.
    pub(super) fn ip_checksum(&self) -> Option<u8> {
        self.ip.map(|covered| covered.at)
    }

    /// Place of that of the transport, if it changes, and whether zero stands for none there.
    pub(super) fn l4_checksum(&self) -> Option<(u8, bool)> {
        self.l4.map(|covered| (covered.at, covered.is_udp))
    }

    /// Writes these values into a frame of the shape, whose TTL is high enough.
    ///
    /// Masked words of eight bytes instead of bytes: a few loads and stores for any number of
    /// fields. Sums of at most 26 words of 16 bits each fit 32 bits.
    #[inline]
    pub(super) fn run(&self, values: &[u64], frame: &mut [u8]) {
        let ip = self.ip.as_ref().and_then(|covered| covered.before(frame));
        let l4 = self.l4.as_ref().and_then(|covered| covered.before(frame));
        for (word, value) in self.words().iter().zip(values) {
            let at = usize::from(word.at);
            if let Some(place) = frame.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>) {
                *place = (u64::from_ne_bytes(*place) & word.keep | value).to_ne_bytes();
            }
        }
        // The TTL goes down within its 16-bit word: the checksum reads the word in a moment, and
        // the processor hands a store on only to a load that it covers.
        if let Some((at, by)) = self.ttl {
            let word = usize::from(at & !1);
            let by = u16::from(by) << if at & 1 == 0 { 8 } else { 0 };
            if let Some(place) = frame.get_mut(word..).and_then(<[u8]>::first_chunk_mut::<2>) {
                *place = u16::from_be_bytes(*place).wrapping_sub(by).to_be_bytes();
            }
        }
        if let (Some(covered), Some(before)) = (&self.ip, ip) {
            covered.after(frame, before);
        }
        if let (Some(covered), Some(before)) = (&self.l4, l4) {
            covered.after(frame, before);
        }
    }
}

/// A rewrite while it is made, with its values.
#[derive(Clone, Debug)]
pub(super) struct HeaderChanges {
    rewrite: HeaderRewrite,
    /// One for each word; zero where nothing is written.
    values: [u64; WIDE],
}

impl HeaderChanges {
    /// No change, for frames of this shape; none for a shape that has no places.
    pub(super) fn of(shape: Shape) -> Option<Self> {
        if shape.is_rare() {
            return None;
        }
        let least = match (shape.transport(), shape.l4()) {
            (_, None) => match shape.network() {
                Network::Mpls => shape.l3() + 4,
                Network::Arp => shape.l3() + 28,
                Network::Other | Network::Pbb | Network::Ipv4 | Network::Ipv6 => shape.l3(),
            },
            (Transport::Other, Some(l4)) => l4,
            (Transport::Tcp, Some(l4)) => l4 + tcp::HEADER_LEN,
            (Transport::Udp | Transport::Icmpv4, Some(l4)) => l4 + udp::HEADER_LEN,
            (Transport::Sctp, Some(l4)) => l4 + 12,
            (Transport::Icmpv6, Some(l4)) => l4 + icmpv6::HEADER_LEN,
        };
        let words = [Word { at: 0, keep: u64::MAX }; WIDE];
        let rewrite =
            HeaderRewrite { shape, least, words, words_len: 0, ttl: None, ip: None, l4: None };
        Some(Self { rewrite, values: [0; WIDE] })
    }

    /// Whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        self.rewrite.words_len == 0 && self.rewrite.ttl.is_none()
    }

    /// Adds an action; false, with nothing added, for one that is no change of a field at its
    /// place, or that does not go together with the others.
    pub(super) fn add(&mut self, action: &Action) -> bool {
        let mut next = self.clone();
        let added = next.try_add(action).is_some();
        if added {
            *self = next;
        }
        added
    }

    /// Adds what the action's row says that it writes.
    fn try_add(&mut self, action: &Action) -> Option<()> {
        match action.kind().row().effect {
            HeaderEffect::Write | HeaderEffect::WriteTag => {
                let is_there = |field: &&Field| self.rewrite.shape.bits_of(**field).is_some();
                let field = action.writes().iter().find(is_there)?;
                self.field(*field, action.written()?)
            }
            HeaderEffect::DecTtl(layer) => self.dec_ttl(self.ttl_at(layer)?),
            HeaderEffect::SetTtl(layer) => {
                let at = self.ttl_at(layer)?;
                self.cover(at, at + 1)?;
                self.write(8 * at, 8, action.number()?.into())
            }
            HeaderEffect::None
            | HeaderEffect::Push(_)
            | HeaderEffect::Pop(_)
            | HeaderEffect::CopyTtl => None,
        }
    }

    fn ttl_at(&self, layer: TtlLayer) -> Option<usize> {
        match (layer, self.rewrite.shape.network()) {
            (TtlLayer::Ip, Network::Ipv4) => Some(self.rewrite.shape.l3() + ipv4::TTL),
            (TtlLayer::Ip, Network::Ipv6) => Some(self.rewrite.shape.l3() + ipv6::HOP_LIMIT),
            (TtlLayer::Mpls, Network::Mpls) => Some(self.rewrite.shape.l3() + 3),
            (
                TtlLayer::Ip | TtlLayer::Mpls,
                Network::Other
                | Network::Mpls
                | Network::Pbb
                | Network::Arp
                | Network::Ipv4
                | Network::Ipv6,
            ) => None,
        }
    }

    fn dec_ttl(&mut self, at: usize) -> Option<()> {
        let place = u8::try_from(at).ok()?;
        // A TTL that is also written would depend on the order.
        let written = self.rewrite.words().iter().any(|word| {
            let offset = at.wrapping_sub(usize::from(word.at));
            offset < 8 && word.keep.to_ne_bytes()[offset] != u8::MAX
        });
        match &mut self.rewrite.ttl {
            Some(_) => return None,
            None if written => return None,
            None => self.rewrite.ttl = Some((place, 1)),
        }
        self.cover(at, at + 1)
    }

    fn field(&mut self, field: Field, value: u128) -> Option<()> {
        // These decide what else the packet has.
        if matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type) {
            return None;
        }
        let (first, width) = self.rewrite.shape.bits_of(field)?;
        self.cover(first / 8, (first + width).div_ceil(8))?;
        self.write(first, width, value)
    }

    /// Notes the checksums that cover these bytes.
    fn cover(&mut self, start: usize, end: usize) -> Option<()> {
        let (l3, Some(l4)) = (self.rewrite.shape.l3(), self.rewrite.shape.l4()) else {
            return Some(());
        };
        let is_v4 = self.rewrite.shape.network() == Network::Ipv4;
        if is_v4 && (l3..l4).contains(&start) {
            let fresh = Covered::new(l3 + ipv4::CHECKSUM.start, false)?;
            self.rewrite.ip.get_or_insert(fresh).add(start, end)?;
        }
        let in_l4 = start >= l4;
        let is_address = if is_v4 {
            (l3 + ipv4::SRC.start..l3 + ipv4::DST.end).contains(&start)
        } else {
            (l3 + ipv6::SRC.start..l3 + ipv6::DST.end).contains(&start)
        };
        if !in_l4 && !is_address {
            return Some(());
        }
        let (offset, pseudo) = match self.rewrite.shape.transport() {
            Transport::Other => return Some(()),
            // The CRC is not a sum.
            Transport::Sctp if in_l4 => return None,
            Transport::Sctp => return Some(()),
            Transport::Tcp => (tcp::CHECKSUM.start, true),
            Transport::Udp => (udp::CHECKSUM.start, true),
            Transport::Icmpv4 => (icmpv4::CHECKSUM.start, false),
            Transport::Icmpv6 => (icmpv6::CHECKSUM.start, true),
        };
        if in_l4 || pseudo {
            let is_udp = self.rewrite.shape.transport() == Transport::Udp;
            let fresh = Covered::new(l4 + offset, is_udp)?;
            self.rewrite.l4.get_or_insert(fresh).add(start, end)?;
        }
        Some(())
    }

    /// Writes `width` bits from the bit `first` on.
    fn write(&mut self, first: usize, width: usize, value: u128) -> Option<()> {
        // A TTL goes down when all is written.
        let written = first / 8..(first + width).div_ceil(8);
        if self.rewrite.ttl.is_some_and(|(at, _)| written.contains(&usize::from(at))) {
            return None;
        }
        for bit in 0..width {
            let set = value >> (width - 1 - bit) & 1 != 0;
            self.write_bit(first + bit, set)?;
        }
        Some(())
    }

    fn write_bit(&mut self, bit: usize, set: bool) -> Option<()> {
        let at = bit / 8;
        // Words lie where every frame of the shape has bytes; the last ones may overlap.
        let start = (at & !7).min(self.rewrite.least.checked_sub(8)?);
        let start = u8::try_from(start).ok()?;
        let offset = at - usize::from(start);
        let mask = u64::from_ne_bytes(std::array::from_fn(|index| {
            if index == offset { 0x80 >> (bit % 8) } else { 0 }
        }));
        let index = match self.rewrite.words().iter().position(|word| word.at == start) {
            Some(index) => index,
            None => {
                let index = usize::from(self.rewrite.words_len);
                self.rewrite.words.get_mut(index)?.at = start;
                self.rewrite.words_len += 1;
                index
            }
        };
        self.rewrite.words.get_mut(index)?.keep &= !mask;
        let value = self.values.get_mut(index)?;
        *value = if set { *value | mask } else { *value & !mask };
        Some(())
    }

    /// The rewrite, and the values that it writes.
    pub(super) fn into_parts(self) -> (HeaderRewrite, impl Iterator<Item = u64>) {
        let len = self.rewrite.values_len();
        (self.rewrite, self.values.into_iter().take(len))
    }
}
