//! The headers that a stack can have: one row each, with its word, its length and its fields.
//!
//! Parsing, places of fields, messages about wrong words and the reference are derived from these
//! rows. The names are OpenFlow's where it has the field.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;
use openflow::text::{parse_decimal, zero_advice};

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    Ethernet,
    Vlan,
    ServiceVlan,
    Mpls,
    Arp,
    Ipv4,
    Ipv6,
    HopByHop,
    Destination,
    Routing,
    Fragment,
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
    Gre,
    KeyedGre,
    Vxlan,
    Gtpu,
}

/// The row of a header.
#[derive(Debug)]
pub(crate) struct HeaderRow {
    pub(crate) kind: HeaderKind,
    /// Its word in the text of a stack.
    pub(crate) word: &'static str,
    /// Its length in bytes, without options.
    pub(crate) len: usize,
    /// Its fields that a stream may set and modify.
    pub(crate) fields: &'static [StackField],
    /// The headers that may follow it.
    pub(crate) next: &'static [HeaderKind],
}

/// A field of a header.
#[derive(Debug)]
pub(crate) struct StackField {
    pub(crate) name: &'static str,
    /// Its first bit, counted from the start of the header; a VLAN tag's EtherType stands before
    /// it.
    pub(crate) bit: i16,
    /// Its width in bits.
    pub(crate) bits: u32,
    pub(crate) format: ValueFormat,
}

/// The text form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueFormat {
    /// A decimal number, or a hexadecimal one with `0x`.
    Number,
    Mac,
    Ipv4,
    Ipv6,
}

impl ValueFormat {
    /// Reads a value; addresses may be numbers too.
    pub(crate) fn read(self, text: &str) -> Option<u128> {
        let address = match self {
            Self::Number => None,
            Self::Mac => text.parse::<MacAddr>().ok().map(|mac| mac.to_u64().into()),
            Self::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|ip| ip.to_bits().into()),
            Self::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
        };
        address.or_else(|| match text.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16).ok(),
            None => parse_decimal(text),
        })
    }

    /// The end of the refusal of a value.
    pub(crate) fn advice(self, text: &str) -> String {
        if self == Self::Number { zero_advice(text) } else { String::new() }
    }

    /// An example of a value.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Mac => "an Ethernet address such as 02:00:00:00:00:01",
            Self::Ipv4 => "an IPv4 address such as 198.18.0.1",
            Self::Ipv6 => "an IPv6 address such as 2001:2::1",
        }
    }
}

const fn field(name: &'static str, bit: i16, bits: u32, format: ValueFormat) -> StackField {
    StackField { name, bit, bits, format }
}

const fn number(name: &'static str, bit: i16, bits: u32) -> StackField {
    field(name, bit, bits, ValueFormat::Number)
}

const fn row(
    kind: HeaderKind,
    word: &'static str,
    len: usize,
    fields: &'static [StackField],
    next: &'static [HeaderKind],
) -> HeaderRow {
    HeaderRow { kind, word, len, fields, next }
}

use HeaderKind as H;

/// Headers that may follow an EtherType.
const TYPED: &[HeaderKind] = &[H::Vlan, H::ServiceVlan, H::Mpls, H::Arp, H::Ipv4, H::Ipv6];
const OVER_IPV4: &[HeaderKind] =
    &[H::Udp, H::Tcp, H::Sctp, H::Icmpv4, H::Gre, H::KeyedGre, H::Ipv4, H::Ipv6];
const OVER_IPV6: &[HeaderKind] = &[
    H::Udp,
    H::Tcp,
    H::Sctp,
    H::Icmpv6,
    H::Gre,
    H::KeyedGre,
    H::Ipv4,
    H::Ipv6,
    H::HopByHop,
    H::Destination,
    H::Routing,
    H::Fragment,
];
const OVER_GRE: &[HeaderKind] = &[H::Ethernet, H::Ipv4, H::Ipv6];
const TAG: &[StackField] =
    &[number("pcp", 0, 3), number("dei", 3, 1), number("vid", 4, 12), number("tpid", -16, 16)];
const ICMP: &[StackField] =
    &[number("type", 0, 8), number("code", 8, 8), number("id", 32, 16), number("seq", 48, 16)];
const PORTS: &[StackField] = &[number("src", 0, 16), number("dst", 16, 16)];

/// All headers.
pub(crate) const ROWS: &[HeaderRow] = &[
    row(
        H::Ethernet,
        "eth",
        14,
        &[
            field("dst", 0, 48, ValueFormat::Mac),
            field("src", 48, 48, ValueFormat::Mac),
            number("type", 96, 16),
        ],
        TYPED,
    ),
    row(H::Vlan, "vlan", 4, TAG, TYPED),
    row(H::ServiceVlan, "svlan", 4, TAG, TYPED),
    row(
        H::Mpls,
        "mpls",
        4,
        &[number("label", 0, 20), number("tc", 20, 3), number("ttl", 24, 8)],
        &[H::Mpls, H::Ipv4, H::Ipv6],
    ),
    row(
        H::Arp,
        "arp",
        28,
        &[
            number("op", 48, 16),
            field("sha", 64, 48, ValueFormat::Mac),
            field("spa", 112, 32, ValueFormat::Ipv4),
            field("tha", 144, 48, ValueFormat::Mac),
            field("tpa", 192, 32, ValueFormat::Ipv4),
        ],
        &[],
    ),
    row(
        H::Ipv4,
        "ipv4",
        20,
        &[
            field("src", 96, 32, ValueFormat::Ipv4),
            field("dst", 128, 32, ValueFormat::Ipv4),
            number("proto", 72, 8),
            number("ttl", 64, 8),
            number("tos", 8, 8),
            number("dscp", 8, 6),
            number("ecn", 14, 2),
            number("id", 32, 16),
            number("df", 49, 1),
        ],
        OVER_IPV4,
    ),
    row(
        H::Ipv6,
        "ipv6",
        40,
        &[
            field("src", 64, 128, ValueFormat::Ipv6),
            field("dst", 192, 128, ValueFormat::Ipv6),
            number("proto", 48, 8),
            number("ttl", 56, 8),
            number("tos", 4, 8),
            number("dscp", 4, 6),
            number("ecn", 10, 2),
            number("label", 12, 20),
        ],
        OVER_IPV6,
    ),
    row(H::HopByHop, "hop", 8, &[], OVER_IPV6),
    row(H::Destination, "dest", 8, &[], OVER_IPV6),
    row(H::Routing, "router", 8, &[], OVER_IPV6),
    row(H::Fragment, "frag", 8, &[number("id", 32, 32)], OVER_IPV6),
    row(
        H::Tcp,
        "tcp",
        20,
        &[
            number("src", 0, 16),
            number("dst", 16, 16),
            number("seq", 32, 32),
            number("ack", 64, 32),
            number("flags", 104, 8),
            number("window", 112, 16),
        ],
        &[],
    ),
    row(H::Udp, "udp", 8, PORTS, &[H::Vxlan, H::Gtpu]),
    row(
        H::Sctp,
        "sctp",
        12,
        &[number("src", 0, 16), number("dst", 16, 16), number("tag", 32, 32)],
        &[],
    ),
    row(H::Icmpv4, "icmp", 8, ICMP, &[]),
    row(H::Icmpv6, "icmpv6", 8, ICMP, &[]),
    row(H::Gre, "gre", 4, &[], OVER_GRE),
    row(H::KeyedGre, "gre", 8, &[number("key", 32, 32)], OVER_GRE),
    row(H::Vxlan, "vxlan", 8, &[number("vni", 32, 24)], &[H::Ethernet]),
    row(H::Gtpu, "gtpu", 8, &[number("teid", 32, 32)], &[H::Ipv4, H::Ipv6]),
];

impl HeaderKind {
    /// Its row.
    pub(crate) fn row(self) -> &'static HeaderRow {
        match ROWS.iter().find(|row| row.kind == self) {
            Some(row) => row,
            None => unreachable!("the test below sees a row for every header"),
        }
    }
}

/// The words of `kinds`, each once.
pub(crate) fn words(kinds: &[HeaderKind]) -> String {
    let mut words: Vec<&str> = kinds.iter().map(|kind| kind.row().word).collect();
    words.dedup();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::{ROWS, ValueFormat};

    #[test]
    fn every_header_that_may_follow_has_a_row() {
        for row in ROWS {
            for next in row.next {
                assert_eq!(next.row().kind, *next);
            }
            for field in row.fields {
                let end = i32::from(field.bit) + field.bits as i32;
                assert!(end <= 8 * row.len as i32, "{}.{}", row.word, field.name);
            }
        }
    }

    #[test]
    fn values_are_read_in_their_own_form_or_as_numbers() {
        assert_eq!(ValueFormat::Ipv4.read("10.0.0.1"), Some(0x0a00_0001));
        assert_eq!(ValueFormat::Ipv4.read("5"), Some(5));
        assert_eq!(ValueFormat::Mac.read("02:00:00:00:00:01"), Some(0x0200_0000_0001));
        assert_eq!(ValueFormat::Ipv6.read("::1"), Some(1));
        assert_eq!(ValueFormat::Number.read("0x88a8"), Some(0x88a8));
        for text in ["", "x", "10.0.0.1", "0x", "-1"] {
            assert_eq!(ValueFormat::Number.read(text), None, "{text}");
        }
    }
}
