//! Flows as Open vSwitch's datapath writes them, `in_port(1),eth(src=..,dst=..),eth_type(0x0800)`,
//! and the packets that they stand for.
//!
//! Masks are left out: a packet has one value of each field. Lengths and payload are those that
//! Open vSwitch gives such packets, so that byte counts are the same.

use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use openflow::MacAddr;
use openflow::text::parse_number;
use packet::build::{Arp, FrameBuilder, Ipv4, Ipv6, Tcp};
use packet::header::{ethernet, ipv4, ipv6};

/// Bytes behind the headers of a packet of which no length is asked for.
const PAYLOAD: usize = 64;

/// Flags and offset of a later IPv4 fragment.
const LATER_FRAGMENT: u16 = ipv4::MORE_FRAGMENTS | 100;

/// SYN, FIN and RST: a segment with one of these has no payload.
const WITHOUT_DATA: u8 = 0x07;

/// The flags of TCP by name.
const TCP_FLAGS: [(&str, u8); 8] = [
    ("fin", 0x01),
    ("syn", 0x02),
    ("rst", 0x04),
    ("psh", 0x08),
    ("ack", 0x10),
    ("urg", 0x20),
    ("ece", 0x40),
    ("cwr", 0x80),
];

/// Deepest nesting of `encap`.
const DEPTH_MAX: usize = 4;

/// Parts that say nothing about the packet itself.
const METADATA: [&str; 12] = [
    "recirc_id",
    "dp_hash",
    "skb_priority",
    "skb_mark",
    "packet_type",
    "tunnel",
    "ct_state",
    "ct_zone",
    "ct_mark",
    "ct_label",
    "ct_tuple4",
    "ct_tuple6",
];

/// A flow: its parts in their order.
#[derive(Debug, PartialEq)]
pub(super) struct FlowKeyText {
    /// The port of the datapath, by number or name.
    pub(super) in_port: Option<String>,
    parts: Vec<Part>,
}

/// A part, `name(key=value,..)` or `name(value)`.
#[derive(Debug, PartialEq)]
struct Part {
    name: String,
    values: Vec<(String, String)>,
}

impl Part {
    /// A value by its key; a part with one value has it under the empty key.
    fn text(&self, key: &str) -> Option<&str> {
        let found = self.values.iter().find(|(held, _)| held == key);
        // Of value and mask the value.
        found.map(|(_, value)| value.split_once('/').map_or(value.as_str(), |(value, _)| value))
    }

    fn read<T: Default>(&self, key: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let Some(text) = self.text(key) else { return Ok(T::default()) };
        read(text).ok_or_else(|| format!("{}({key}={text}): no such value", self.name))
    }

    fn number<T: Default + TryFrom<u128>>(&self, key: &str) -> Result<T, String> {
        self.read(key, |text| parse_number(text).ok())
    }

    fn mac(&self, key: &str) -> Result<MacAddr, String> {
        self.read(key, |text| text.parse().ok())
    }

    fn address<T: FromStr>(&self, key: &str, none: T) -> Result<T, String>
    where
        T::Err: Display,
    {
        let Some(text) = self.text(key) else { return Ok(none) };
        text.parse().map_err(|error| format!("{}({key}={text}): {error}", self.name))
    }
}

impl FlowKeyText {
    /// Reads a flow.
    ///
    /// # Errors
    /// The first part that is none.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        read_parts(text, &mut parts, 0)?;
        let in_port = parts.iter().find(|part| part.name == "in_port");
        let in_port = in_port.and_then(|part| part.text("")).map(str::to_owned);
        Ok(Self { in_port, parts })
    }

    /// The packet: of this length, or with the usual payload.
    ///
    /// # Errors
    /// A value that its field cannot have, or a part that no packet is made for.
    pub(super) fn frame(&self, len: Option<usize>) -> Result<Vec<u8>, String> {
        let known = ["in_port", "eth", "eth_type", "vlan", "mpls", "arp", "ipv4", "ipv6"];
        let transport = ["tcp", "tcp_flags", "udp", "sctp", "icmp", "icmpv6", "nd"];
        let all = known.iter().chain(&transport).chain(&METADATA);
        let is_known = |part: &Part| all.clone().any(|name| *name == part.name);
        if let Some(part) = self.parts.iter().find(|part| !is_known(part)) {
            return Err(format!("{}: no packet is made for it; give it in hex", part.name));
        }
        let eth = self.part("eth");
        let mut frame = FrameBuilder::ethernet(eth.mac("dst")?, eth.mac("src")?);
        for part in self.parts.iter().filter(|part| part.name == "vlan") {
            frame = frame.vlan(part.number("pcp")?, part.number("vid")?);
        }
        let mut types = self.parts.iter().filter(|part| part.name == "eth_type");
        let ether_type = types.next_back().map(|part| part.number("")).transpose()?;
        frame = match ether_type {
            Some(ethernet::IPV4) => self.ipv4(frame, len)?,
            Some(ethernet::IPV6) => self.ipv6(frame, len)?,
            Some(ethernet::ARP) => {
                let (arp, none) = (self.part("arp"), Ipv4Addr::UNSPECIFIED);
                frame.arp(Arp {
                    op: arp.number("op")?,
                    sha: arp.mac("sha")?,
                    spa: arp.address("sip", none)?,
                    tha: arp.mac("tha")?,
                    tpa: arp.address("tip", none)?,
                })
            }
            Some(ethernet::MPLS | ethernet::MPLS_UPSTREAM) => {
                let entries = self.parts.iter().filter(|part| part.name == "mpls");
                entries.into_iter().try_fold(frame, |frame, part| {
                    let (label, tc) = (part.number("label")?, part.number("tc")?);
                    Ok::<_, String>(frame.mpls(label, tc, part.number("ttl")?))
                })?
            }
            Some(other) => frame.ether_type(other),
            // A length in place of a type: that of what is there.
            None => frame.ether_type(ethernet::HEADER_LEN as u16),
        };
        let Some(len) = len else { return Ok(frame.build()) };
        let missing = len.checked_sub(frame.clone().build().len());
        let missing = missing.ok_or_else(|| format!("the headers are longer than {len} bytes"))?;
        Ok(frame.payload(&vec![0; missing]).build())
    }

    /// The first part of a name; without values where there is none.
    fn part(&self, name: &str) -> &Part {
        const NONE: &Part = &Part { name: String::new(), values: Vec::new() };
        self.parts.iter().find(|part| part.name == name).unwrap_or(NONE)
    }

    fn ipv4(&self, frame: FrameBuilder, len: Option<usize>) -> Result<FrameBuilder, String> {
        let (part, none) = (self.part("ipv4"), Ipv4Addr::UNSPECIFIED);
        let mut header = Ipv4::new(part.address("src", none)?, part.address("dst", none)?);
        let (tos, proto): (u8, u8) = (part.number("tos")?, part.number("proto")?);
        (header.dscp, header.ecn, header.ttl) = (tos >> 2, tos & 3, part.number("ttl")?);
        header.proto = Some(proto);
        header.fragment = match part.text("frag").unwrap_or("no") {
            "no" => 0,
            "first" => ipv4::MORE_FRAGMENTS,
            "later" => LATER_FRAGMENT,
            other => return Err(format!("ipv4(frag={other}): no, first or later")),
        };
        let is_later = header.fragment == LATER_FRAGMENT;
        let frame = frame.ipv4(header);
        if is_later { Ok(frame) } else { self.transport(frame, proto, len) }
    }

    fn ipv6(&self, frame: FrameBuilder, len: Option<usize>) -> Result<FrameBuilder, String> {
        let (part, none) = (self.part("ipv6"), Ipv6Addr::UNSPECIFIED);
        let mut header = Ipv6::new(part.address("src", none)?, part.address("dst", none)?);
        let (class, proto): (u8, u8) = (part.number("tclass")?, part.number("proto")?);
        (header.dscp, header.ecn) = (class >> 2, class & 3);
        (header.hop_limit, header.flow_label) = (part.number("hlimit")?, part.number("label")?);
        header.proto = Some(proto);
        if let Some(frag @ ("first" | "later")) = part.text("frag") {
            return Err(format!("ipv6(frag={frag}): no packet is made for it; give it in hex"));
        }
        self.transport(frame.ipv6(header), proto, len)
    }

    fn transport(
        &self,
        frame: FrameBuilder,
        proto: u8,
        len: Option<usize>,
    ) -> Result<FrameBuilder, String> {
        let ports = |name| -> Result<(u16, u16), String> {
            let part = self.part(name);
            Ok((part.number("src")?, part.number("dst")?))
        };
        let bytes: Vec<u8> = (0..PAYLOAD).map(|index| index as u8).collect();
        let data = if len.is_some() { &[][..] } else { &bytes[..] };
        Ok(match proto {
            ipv4::PROTO_TCP => {
                let (src, dst) = ports("tcp")?;
                let flags = self.tcp_flags()?;
                let header = Tcp { flags, window: 0, ..Tcp::new(src, dst) };
                let data = if flags & WITHOUT_DATA == 0 { data } else { &[][..] };
                frame.tcp(header).payload(data)
            }
            ipv4::PROTO_UDP => {
                let (src, dst) = ports("udp")?;
                frame.udp(src, dst).payload(data)
            }
            ipv4::PROTO_SCTP => {
                let (src, dst) = ports("sctp")?;
                frame.sctp(src, dst, 0).payload(data)
            }
            ipv4::PROTO_ICMP => {
                let part = self.part("icmp");
                frame.icmpv4(part.number("type")?, part.number("code")?, 0).payload(data)
            }
            ipv6::PROTO_ICMPV6 => {
                let (part, nd) = (self.part("icmpv6"), self.part("nd"));
                let (kind, code): (u8, u8) = (part.number("type")?, part.number("code")?);
                let target = nd.address("target", Ipv6Addr::UNSPECIFIED)?;
                let option = |key| nd.text(key).map(|_| nd.mac(key)).transpose();
                match (kind, code) {
                    (135, 0) => frame.neighbour_solicit(target, option("sll")?),
                    (136, 0) => frame.neighbour_advert(target, option("tll")?),
                    (kind, code) => frame.icmpv6(kind, code, &[0; 4]).payload(data),
                }
            }
            _ => frame,
        })
    }

    fn tcp_flags(&self) -> Result<u8, String> {
        let Some(text) = self.part("tcp_flags").text("") else { return Ok(0) };
        if let Ok(flags) = parse_number(text) {
            return Ok(flags);
        }
        let flag = |word: &str| TCP_FLAGS.iter().find(|(name, _)| *name == word);
        text.split(['|', '+']).filter(|word| !word.is_empty()).try_fold(0, |flags, word| {
            let (_, bit) = flag(word).ok_or_else(|| format!("tcp_flags: {word} is no flag"))?;
            Ok(flags | bit)
        })
    }
}

/// Appends the parts of a text, and of the `encap` in it.
fn read_parts(text: &str, parts: &mut Vec<Part>, depth: usize) -> Result<(), String> {
    let is_between = |letter: char| letter == ',' || letter.is_whitespace();
    let mut rest = text.trim_start_matches(is_between);
    while !rest.is_empty() {
        // The words of Open vSwitch.
        let wrong = || format!("syntax error at {rest}");
        let (name, behind) = rest.split_once('(').ok_or_else(wrong)?;
        let end = closing(behind).ok_or_else(wrong)?;
        let (inside, behind) = behind.split_at_checked(end).unwrap_or_default();
        if name == "encap" {
            if depth >= DEPTH_MAX {
                return Err("encap is nested too deeply".to_owned());
            }
            read_parts(inside, parts, depth + 1)?;
        } else {
            let values = inside.split(',').map(str::trim).filter(|value| !value.is_empty());
            let pair = |value: &str| {
                let (key, value) = value.split_once('=').unwrap_or(("", value));
                (key.to_owned(), value.to_owned())
            };
            parts.push(Part { name: name.trim().to_owned(), values: values.map(pair).collect() });
        }
        rest = behind.strip_prefix(')').unwrap_or(behind).trim_start_matches(is_between);
    }
    Ok(())
}

/// The place of the parenthesis that closes what has been opened in front of the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use packet::{describe, verify};

    use super::FlowKeyText;

    fn frame(text: &str) -> Vec<u8> {
        FlowKeyText::read(text).unwrap().frame(None).unwrap()
    }

    #[test]
    fn packets_have_what_the_flow_says() {
        let eth = "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a)";
        let ip = "eth_type(0x0800),ipv4(src=10.0.0.1/255.255.255.255,dst=10.0.0.2,tos=0,ttl=128";
        let ip6 = "eth_type(0x86dd),ipv6(src=fe80::1,dst=fe80::2,proto=58,hlimit=255)";
        let nd = "nd(target=fe80::3,sll=50:54:00:00:00:09";
        let cases = [
            ("", 14, "dl_src=50:54:00:00:00:09"),
            ("eth_type(0x1234)", 14, "dl_type=0x1234"),
            (
                "eth_type(0x0806),arp(sip=10.0.0.1,tip=10.0.0.2,op=1,sha=50:54:00:00:00:09)",
                42,
                "arp_op=1",
            ),
            (&format!("{ip},proto=1,frag=no),icmp(type=8,code=0)"), 106, "icmp_type=8"),
            (&format!("{ip},proto=17,frag=no),udp(src=5,dst=6)"), 106, "tp_dst=6"),
            (&format!("{ip},proto=6,frag=no),tcp(src=5,dst=6),tcp_flags(ack)"), 118, "tp_dst=6"),
            (&format!("{ip},proto=6,frag=no),tcp(src=5,dst=6),tcp_flags(syn|ack)"), 54, "tp_dst=6"),
            (&format!("{ip},proto=89,frag=no)"), 34, "nw_proto=89"),
            (
                &format!(
                    "eth_type(0x8100),vlan(vid=7,pcp=3),encap({ip},proto=17),udp(src=1,dst=2))"
                ),
                110,
                "dl_vlan=7",
            ),
            (&format!("{ip6},icmpv6(type=135,code=0),{nd})"), 86, "nd_target=fe80::3"),
        ];
        for (rest, len, expected) in cases {
            let frame = frame(&format!("{eth},{rest}"));
            assert_eq!(frame.len(), len, "{rest}");
            verify(&frame).unwrap();
            let text = describe(&frame);
            assert!(text.contains(expected), "{rest}: {text}");
        }
        let key = FlowKeyText::read(eth).unwrap();
        assert_eq!(key.in_port.as_deref(), Some("1"));
        assert_eq!(key.frame(Some(100)).unwrap().len(), 100);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "eth",
            "eth(src=1",
            "eth(src=1)",
            "hovercraft(1)",
            "eth_type(0x0800),ipv4(src=10.0.0.999)",
            "eth_type(0x0800),ipv4(ttl=256)",
            "eth_type(0x0800),ipv4(proto=6),tcp_flags(odd)",
            "encap(encap(encap(encap(encap(eth_type(1))))))",
            ")(",
        ] {
            let read = FlowKeyText::read(text).and_then(|key| key.frame(None));
            assert!(read.is_err(), "{text}");
        }
    }
}
