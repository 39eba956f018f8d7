//! The headers of a stream as text: `eth(src=02:00:00:00:00:01)/vlan(vid=5)/ipv4/udp(dst=53)`.
//!
//! Headers stand from the outside in, each with the fields that are not as usual. Lengths, types
//! and checksums are filled in. A field of the second header of one word is `ipv4#2.src`.
//!
//! | header | fields |
//! |---|---|
//! | `eth` | `dst`, `src`, `type` |
//! | `vlan` (0x8100), `svlan` (0x88a8) | `pcp`, `dei`, `vid`, `tpid` |
//! | `mpls` | `label`, `tc`, `ttl` |
//! | `arp` | `op`, `sha`, `spa`, `tha`, `tpa` |
//! | `ipv4` | `src`, `dst`, `proto`, `ttl`, `tos` (both of the next), `dscp`, `ecn`, `id`, `df` |
//! | `ipv6` | `src`, `dst`, `proto`, `ttl`, `tos` (both of the next), `dscp`, `ecn`, `label` |
//! | `hop`, `dest`, `router`, `frag` (behind `ipv6`) | `id` of `frag` |
//! | `tcp` | `src`, `dst`, `seq`, `ack`, `flags`, `window` |
//! | `udp` | `src`, `dst` |
//! | `sctp` | `src`, `dst`, `tag` |
//! | `icmp`, `icmpv6` | `type`, `code`, `id`, `seq` |
//! | `gre` | `key` |
//! | `vxlan` (behind `udp`) | `vni` |
//! | `gtpu` (behind `udp`) | `teid` |
//!
//! Bits of no header's field, or of the bytes after the headers, are `bits.216+4`: four bits from
//! bit 216 of the frame on, all in one byte, for fields that differ from frame to frame.
//!
//! Addresses that are not given are those of RFC 2544 (appendix C.2.2) and RFC 5180 (section 8).
//! UDP around a tunnel has no checksum, as RFC 7348 (section 5) and RFC 6935 have it.

mod checksum;
mod rows;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;
use openflow::text::parse_decimal;
use packet::FRAME_CAPACITY;
use packet::build::{Arp, Extension, FrameBuilder, Ipv4, Ipv6, Tcp};

use crate::profile::{FieldValue, Payload};
pub(crate) use checksum::{ChecksumPlan, PlanKind, internet_checksum, udp_checksum};
use rows::{HeaderKind, ROWS, ValueFormat, words};

const VXLAN_PORT: u16 = 4789;
const GTPU_PORT: u16 = 2152;
/// Source port where none is given.
const SOURCE_PORT: u16 = 1024;
/// The discard protocol (RFC 863): nobody answers.
const DISCARD_PORT: u16 = 9;
const SERVICE_TAG: u16 = 0x88a8;
const CUSTOMER_TAG: u16 = 0x8100;
/// Addresses set aside for measurements.
const IPV4_SRC: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const IPV4_DST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const IPV6_SRC: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);
const IPV6_DST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 1);
/// PadN of four bytes (RFC 8200, section 4.2): the content of an options header.
const PADDING_OPTION: [u8; 6] = [1, 4, 0, 0, 0, 0];
/// An empty segment routing header (RFC 8754).
const NO_SEGMENTS: [u8; 6] = [4, 0, 0, 0, 0, 0];

/// A stack of headers, with the values of some fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderStack {
    headers: Vec<PlacedHeader>,
    values: Vec<(FieldPlace, u128)>,
    len: usize,
}

/// A header and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedHeader {
    kind: HeaderKind,
    at: usize,
}

/// Place of a field in every frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its first byte.
    pub(crate) at: usize,
    /// Bytes that it has a part of.
    pub(crate) len: usize,
    /// Bits after it in the last of these bytes.
    pub(crate) shift: u32,
    /// Its width in bits.
    pub(crate) bits: u32,
    format: ValueFormat,
}

/// The mistake in the text of a stack, or in the name or value of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StackError(String);

fn wrong(text: impl fmt::Display) -> StackError {
    StackError(text.to_string())
}

/// The place of `FIRST+COUNT` bits of a frame, which lie in one byte.
fn bits_place(text: &str) -> Option<FieldPlace> {
    let (first, count) = text.split_once('+')?;
    let (first, bits): (usize, u32) = (parse_decimal(first)?, parse_decimal(count)?);
    let (at, before) = (first / 8, (first % 8) as u32);
    let shift = 8_u32.checked_sub(before.checked_add(bits)?)?;
    let is_some = bits > 0 && at < FRAME_CAPACITY;
    is_some.then_some(FieldPlace { at, len: 1, shift, bits, format: ValueFormat::Number })
}

impl FieldPlace {
    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }

    /// A value of the field.
    ///
    /// # Errors
    /// A text that is none, or a value beyond the width.
    pub fn value(&self, value: &FieldValue) -> Result<u128, StackError> {
        let number = match value {
            FieldValue::Number(number) => u128::from(*number),
            FieldValue::Text(text) => self.format.read(text.trim()).ok_or_else(|| {
                let example = self.format.example();
                wrong(format_args!("{text:?} is not {example}{}", self.format.advice(text)))
            })?,
        };
        if number > self.max() {
            let (bits, max) = (self.bits, self.max());
            return Err(wrong(format_args!("{value} is beyond {bits} bits, whose most is {max}")));
        }
        Ok(number)
    }

    /// Writes a value, cut to the field's width.
    pub(crate) fn write(&self, frame: &mut [u8], value: u128) {
        let mut value = value & self.max();
        let mut shift = self.shift;
        let mut left = self.bits;
        // From the last byte to the first.
        for byte in frame[self.at..self.at + self.len].iter_mut().rev() {
            let taken = left.min(8 - shift);
            let mask = ((0xff_u32 >> (8 - taken)) << shift) as u8;
            *byte = *byte & !mask | ((value as u8) << shift) & mask;
            value >>= taken;
            left -= taken;
            shift = 0;
        }
    }

    /// Reads the value.
    pub(crate) fn read(&self, frame: &[u8]) -> u128 {
        let bytes = &frame[self.at..self.at + self.len];
        // A field of 128 bits stands at whole bytes.
        let number = bytes.iter().fold(0, |sum: u128, byte| sum << 8 | u128::from(*byte));
        number >> self.shift & self.max()
    }

    /// The part of the field that the last 64 bits are.
    pub(crate) fn low_half(&self) -> Self {
        if self.bits <= 64 {
            return *self;
        }
        Self { at: self.at + self.len - 8, len: 8, bits: 64, ..*self }
    }

    /// The part in front of the last 64 bits.
    pub(crate) fn high_half(&self) -> Option<Self> {
        let bits = self.bits.checked_sub(64).filter(|bits| *bits > 0)?;
        Some(Self { len: self.len - 8, bits, ..*self })
    }
}

impl HeaderStack {
    /// Reads a stack.
    ///
    /// # Errors
    /// An unknown header or field, a header that cannot stand where it does, a value that does not
    /// fit; each with what is allowed.
    pub fn parse(text: &str) -> Result<Self, StackError> {
        let mut stack = Self { headers: Vec::new(), values: Vec::new(), len: 0 };
        for part in text.split('/') {
            let (word, arguments) = split_part(part.trim())?;
            stack.push(word, &arguments)?;
        }
        Ok(stack)
    }

    fn push(&mut self, word: &str, arguments: &[(&str, &str)]) -> Result<(), StackError> {
        let named: Vec<HeaderKind> =
            ROWS.iter().filter(|row| row.word == word).map(|row| row.kind).collect();
        if named.is_empty() {
            let all: Vec<HeaderKind> = ROWS.iter().map(|row| row.kind).collect();
            return Err(wrong(format_args!("unknown header {word:?}; there are {}", words(&all))));
        }
        // GRE is a longer header with a key.
        let has_fields = |kind: &HeaderKind| {
            let names = |name: &str| kind.row().fields.iter().any(|field| field.name == name);
            arguments.iter().all(|(name, _)| names(name))
        };
        let kind = named.iter().copied().find(has_fields).unwrap_or(named[named.len() - 1]);
        let allowed = match self.headers.last() {
            None => &[HeaderKind::Ethernet][..],
            Some(last) => last.kind.row().next,
        };
        if !allowed.contains(&kind) {
            let before = self.headers.last().map_or("", |last| last.kind.row().word);
            let place = if before.is_empty() { "first".into() } else { format!("behind {before}") };
            let allowed = words(allowed);
            return Err(wrong(format_args!("{word} cannot stand {place}: {allowed} can")));
        }
        self.headers.push(PlacedHeader { kind, at: self.len });
        self.len += kind.row().len;
        for (name, value) in arguments {
            let place = self.place_in(self.headers.len() - 1, name)?;
            let value = place.value(&FieldValue::Text((*value).to_owned()));
            let value = value.map_err(|error| wrong(format_args!("{word}.{name}: {error}")))?;
            self.values.push((place, value));
        }
        Ok(())
    }

    /// Bytes of all headers.
    #[must_use]
    pub fn headers_len(&self) -> usize {
        self.len
    }

    /// Place of a field: `udp.dst`, or `ipv4#2.src` of the second IPv4 header.
    ///
    /// # Errors
    /// No such header or field, with those that there are.
    pub fn place(&self, field: &str) -> Result<FieldPlace, StackError> {
        let unknown = || {
            wrong(format_args!("unknown field {field:?}; there are {}", self.fields().join(", ")))
        };
        let (header, name) = field.split_once('.').ok_or_else(unknown)?;
        if header == "bits" {
            return bits_place(name).ok_or_else(|| {
                wrong(format_args!("{field:?}: write bits.FIRST+COUNT, 1 to 8 bits of one byte"))
            });
        }
        let (word, number) = header.split_once('#').unwrap_or((header, "1"));
        let number: usize = parse_decimal(number).ok_or_else(unknown)?;
        let mut same =
            (0..self.headers.len()).filter(|index| self.headers[*index].kind.row().word == word);
        let index = number.checked_sub(1).and_then(|skipped| same.nth(skipped));
        self.place_in(index.ok_or_else(unknown)?, name).map_err(|_| unknown())
    }

    /// The names of all fields, from the outside in.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (index, header) in self.headers.iter().enumerate() {
            let row = header.kind.row();
            let before = self.headers[..index].iter();
            let number = before.filter(|other| other.kind.row().word == row.word).count() + 1;
            let word =
                if number == 1 { row.word.to_owned() } else { format!("{}#{number}", row.word) };
            names.extend(row.fields.iter().map(|field| format!("{word}.{}", field.name)));
        }
        names
    }

    fn place_in(&self, index: usize, name: &str) -> Result<FieldPlace, StackError> {
        let PlacedHeader { kind, at } = self.headers[index];
        let row = kind.row();
        let Some(field) = row.fields.iter().find(|field| field.name == name) else {
            let names: Vec<&str> = row.fields.iter().map(|field| field.name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(wrong(format_args!("{} has no field {name:?}; it has {names}", row.word)));
        };
        // A tag's EtherType stands two bytes before it, and an Ethernet header before every tag.
        let first = (8 * at as isize + isize::from(field.bit)) as usize;
        let end = first + field.bits as usize;
        Ok(FieldPlace {
            at: first / 8,
            len: end.div_ceil(8) - first / 8,
            shift: (8 * end.div_ceil(8) - end) as u32,
            bits: field.bits,
            format: field.format,
        })
    }

    /// Sets a field, whether the text has a value for it or not.
    pub(crate) fn set(&mut self, place: FieldPlace, value: u128) {
        self.values.push((place, value));
    }

    /// Sets a field where the text says nothing about it.
    pub(crate) fn set_default(&mut self, field: &str, value: u128) {
        let Ok(place) = self.place(field) else { return };
        if self.values.iter().all(|(given, _)| given.at != place.at) {
            self.values.insert(0, (place, value));
        }
    }

    /// The value that a field has in a frame that is not modified.
    pub(crate) fn value(&self, place: FieldPlace) -> u128 {
        place.read(&self.frame(self.len.max(place.at + place.len), &Payload::Zero))
    }

    /// A frame of `len` bytes without FCS, with `payload` after the headers and checksums zero
    /// where this module fills them in.
    pub(crate) fn frame(&self, len: usize, payload: &Payload) -> Vec<u8> {
        let bytes = payload.bytes(len.saturating_sub(self.len));
        let mut frame = self.builder().payload(&bytes).build();
        for (place, value) in &self.values {
            place.write(&mut frame, *value);
        }
        frame
    }

    /// The checksums, from the inside out: in this order they are to be filled in.
    pub(crate) fn checksums(&self) -> Vec<ChecksumPlan> {
        checksum::plans(&self.headers)
    }

    fn builder(&self) -> FrameBuilder {
        let (src, dst) = (MacAddr::from_u64(0x0200_0000_0001), MacAddr::from_u64(0x0200_0000_0002));
        let mut builder = FrameBuilder::ethernet(dst, src);
        let mut headers = self.headers.iter().skip(1).map(|header| header.kind).peekable();
        while let Some(kind) = headers.next() {
            builder = match kind {
                HeaderKind::Ethernet => builder.inner_ethernet(dst, src),
                HeaderKind::Vlan => builder.tag(CUSTOMER_TAG, 0, 1),
                HeaderKind::ServiceVlan => builder.tag(SERVICE_TAG, 0, 1),
                HeaderKind::Mpls => builder.mpls(16, 0, 64),
                HeaderKind::Arp => builder.arp(Arp {
                    op: 1,
                    sha: src,
                    spa: IPV4_SRC,
                    tha: MacAddr::from_u64(0),
                    tpa: IPV4_DST,
                }),
                HeaderKind::Ipv4 => builder.ipv4(Ipv4::new(IPV4_SRC, IPV4_DST)),
                HeaderKind::Ipv6 => {
                    let mut header = Ipv6::new(IPV6_SRC, IPV6_DST);
                    while let Some(extension) = headers.peek().and_then(|kind| extension(*kind)) {
                        header.extensions.push(extension);
                        headers.next();
                    }
                    builder.ipv6(header)
                }
                // Taken with the IPv6 header in front of them.
                HeaderKind::HopByHop
                | HeaderKind::Destination
                | HeaderKind::Routing
                | HeaderKind::Fragment => builder,
                HeaderKind::Tcp => builder.tcp(Tcp::new(SOURCE_PORT, DISCARD_PORT)),
                HeaderKind::Udp => {
                    let dst = match headers.peek() {
                        Some(HeaderKind::Vxlan) => VXLAN_PORT,
                        Some(HeaderKind::Gtpu) => GTPU_PORT,
                        Some(_) | None => DISCARD_PORT,
                    };
                    builder.udp(SOURCE_PORT, dst)
                }
                HeaderKind::Sctp => builder.sctp(SOURCE_PORT, DISCARD_PORT, 1),
                HeaderKind::Icmpv4 => builder.icmpv4(8, 0, 0),
                HeaderKind::Icmpv6 => builder.icmpv6(128, 0, &[0; 4]),
                HeaderKind::Gre => builder.gre(None),
                HeaderKind::KeyedGre => builder.gre(Some(0)),
                HeaderKind::Vxlan => builder.vxlan(1),
                HeaderKind::Gtpu => builder.gtpu(1),
            };
        }
        builder
    }
}

/// The extension header of IPv6 that `kind` is.
fn extension(kind: HeaderKind) -> Option<Extension> {
    match kind {
        HeaderKind::HopByHop => Some(Extension::new(0, &PADDING_OPTION)),
        HeaderKind::Destination => Some(Extension::new(60, &PADDING_OPTION)),
        HeaderKind::Routing => Some(Extension::new(43, &NO_SEGMENTS)),
        HeaderKind::Fragment => Some(Extension::fragment(0, false, 0)),
        HeaderKind::Ethernet
        | HeaderKind::Vlan
        | HeaderKind::ServiceVlan
        | HeaderKind::Mpls
        | HeaderKind::Arp
        | HeaderKind::Ipv4
        | HeaderKind::Ipv6
        | HeaderKind::Tcp
        | HeaderKind::Udp
        | HeaderKind::Sctp
        | HeaderKind::Icmpv4
        | HeaderKind::Icmpv6
        | HeaderKind::Gre
        | HeaderKind::KeyedGre
        | HeaderKind::Vxlan
        | HeaderKind::Gtpu => None,
    }
}

/// Fields and values as text.
type Arguments<'a> = Vec<(&'a str, &'a str)>;

/// The word and the arguments of `word(name=value,name=value)`.
fn split_part(part: &str) -> Result<(&str, Arguments<'_>), StackError> {
    let Some((word, rest)) = part.split_once('(') else { return Ok((part, Vec::new())) };
    let Some(inside) = rest.strip_suffix(')') else {
        return Err(wrong(format_args!("{part:?} has no closing parenthesis")));
    };
    let mut arguments = Vec::new();
    for argument in inside.split(',').filter(|argument| !argument.trim().is_empty()) {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(wrong(format_args!("{argument:?} in {word} is no field=value")));
        };
        arguments.push((name.trim(), value.trim()));
    }
    Ok((word.trim(), arguments))
}

impl std::str::FromStr for HeaderStack {
    type Err = StackError;

    fn from_str(text: &str) -> Result<Self, StackError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::HeaderStack;
    use crate::profile::Payload;

    fn frame(text: &str, len: usize) -> Vec<u8> {
        let stack = HeaderStack::parse(text).unwrap();
        let mut frame = stack.frame(len, &Payload::Abc);
        stack.checksums().iter().for_each(|plan| plan.fill(&mut frame));
        assert_eq!(frame.len(), len, "{text}");
        frame
    }

    /// Every header in some stack, with what `packet` says of the outermost packet.
    const STACKS: &[&str] = &[
        "eth",
        "eth(src=02:00:00:00:00:09,type=0x88b5)",
        "eth/arp(op=2,spa=10.0.0.1)",
        "eth/ipv4/udp",
        "eth/ipv4(src=10.0.0.1,ttl=3,dscp=46,ecn=1,id=7,df=1)/udp(src=1,dst=2)",
        "eth/vlan(vid=5,pcp=3)/ipv4/tcp(flags=16,seq=0x12345678,window=5)",
        "eth/svlan(vid=1)/vlan(vid=2)/ipv6(label=0xabcde,dscp=10)/udp(dst=53)",
        "eth/vlan(tpid=0x88a8)/vlan/vlan/ipv4/udp",
        "eth/mpls(label=100)/mpls(label=200,ttl=1)/ipv4/udp",
        "eth/ipv4/sctp(tag=5)",
        "eth/ipv4/icmp(id=3,seq=4)",
        "eth/ipv6/icmpv6(id=3)",
        "eth/ipv6/hop/dest/router/udp",
        "eth/ipv6/frag(id=9)/tcp",
        "eth/ipv4/ipv4/udp",
        "eth/ipv4/ipv6/tcp",
        "eth/ipv4/gre/ipv4/udp",
        "eth/ipv4/gre(key=7)/eth/ipv4/udp",
        "eth/ipv4/udp/vxlan(vni=0x123456)/eth/vlan(vid=9)/ipv4/udp",
        "eth/ipv6/udp/gtpu(teid=0xdeadbeef)/ipv6/udp",
        "eth/ipv4",
        "eth/ipv6(proto=59)",
    ];

    #[test]
    fn every_stack_has_right_checksums_and_its_values() {
        for text in STACKS {
            for len in [160, 161] {
                let frame = frame(text, len);
                packet::verify(&frame).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
            }
        }
    }

    #[test]
    fn values_stand_in_their_fields_and_nowhere_else() {
        for text in STACKS {
            let stack = HeaderStack::parse(text).unwrap();
            for name in stack.fields() {
                let place = stack.place(&name).unwrap();
                let mut frame = stack.frame(160, &Payload::Zero);
                let before = frame.clone();
                for value in [0, place.max(), place.max() / 3] {
                    place.write(&mut frame, value);
                    assert_eq!(place.read(&frame), value, "{text} {name}");
                }
                place.write(&mut frame, place.read(&before));
                assert_eq!(frame, before, "{text} {name}");
            }
        }
    }

    #[test]
    fn headers_are_where_the_rows_say() {
        let frame = frame("eth/vlan(vid=5)/ipv4(src=1.2.3.4)/udp(dst=80)", 100);
        assert_eq!(frame[12..18], [0x81, 0, 0, 5, 8, 0]);
        assert_eq!(frame[30..34], [1, 2, 3, 4]);
        assert_eq!(frame[40..42], [0, 80]);
        assert_eq!(frame[46..50], *b"abcd");
        let stack = HeaderStack::parse("eth/ipv4/ipv4(src=1.2.3.4)/udp").unwrap();
        assert_eq!(stack.headers_len(), 14 + 20 + 20 + 8);
        assert_eq!(stack.value(stack.place("ipv4#2.src").unwrap()), 0x0102_0304);
    }

    #[test]
    fn impossible_stacks_are_refused_with_what_can_be() {
        let error = |text: &str| HeaderStack::parse(text).unwrap_err().to_string();
        assert!(error("ipv4/udp").contains("cannot stand first: eth can"));
        assert!(error("eth/ip").contains("unknown header \"ip\"; there are eth, vlan"));
        assert!(error("eth/udp").contains("behind eth: vlan, svlan, mpls, arp, ipv4, ipv6 can"));
        assert!(error("eth/ipv4/tcp/vxlan").contains("behind tcp: nothing can"));
        assert!(error("eth/ipv4(sorce=1)").contains("it has src, dst, proto"));
        assert!(error("eth/ipv4(src=1.2.3)").contains("an IPv4 address"));
        assert!(error("eth/vlan(vid=4096)").contains("12 bits, whose most is 4095"));
        assert!(error("eth/vlan(vid=5").contains("parenthesis"));
        assert!(error("eth/vlan(vid)").contains("field=value"));
        assert!(error("").contains("unknown header"));
        let stack = HeaderStack::parse("eth/ipv4/udp").unwrap();
        for field in ["udp.port", "tcp.src", "udp", "ipv4#2.src", "ipv4#0.src", "udp#x.src"] {
            let error = stack.place(field).unwrap_err().to_string();
            assert!(error.contains("ipv4.dst") && error.contains("udp.src"), "{error}");
        }
    }
}
