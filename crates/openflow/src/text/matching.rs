//! A match in text: protocol words, fields with values, and the VLAN words of `ovs-ofctl`.

use super::lex::{Pair, Piece, pairs};
use super::value::{field_text, number, value};
use super::words::unknown;
use super::{PortNames, TextError};
use crate::field::{ALL_FIELDS, FIELDS, Field, FieldRow, Prereq, VID_PRESENT};
use crate::matching::Match;
use std::fmt::Write;

/// A protocol word: what it stands for.
struct Protocol {
    word: &'static str,
    eth_type: u128,
    ip_proto: Option<u128>,
}

const fn protocol(word: &'static str, eth_type: u128, ip_proto: Option<u128>) -> Protocol {
    Protocol { word, eth_type, ip_proto }
}

impl Protocol {
    /// The protocol that a match asks for.
    fn of(matching: &Match) -> Option<&'static Self> {
        let eth_type = matching.exact(Field::EthType);
        let ip_proto = matching.exact(Field::IpProto);
        PROTOCOLS.iter().find(|protocol| {
            Some(protocol.eth_type) == eth_type
                && (protocol.ip_proto.is_none() || protocol.ip_proto == ip_proto)
        })
    }

    /// Whether the packets have the field, and would not have it if a part of the word were left
    /// out.
    fn has(&self, field: Field) -> bool {
        let link = Match::any().with(Field::EthType, self.eth_type);
        let whole = self.ip_proto.map(|number| link.clone().with(Field::IpProto, number));
        let needs = field.row().prereq;
        // `ip6` is `ipv6` once more.
        self.word != "ip6"
            && match whole {
                Some(whole) => !link.matches(needs) && whole.matches(needs),
                None => needs != Prereq::None && link.matches(needs),
            }
    }
}

/// Words with an IP protocol first: the printer takes the first that fits.
const PROTOCOLS: &[Protocol] = &[
    protocol("icmp", 0x0800, Some(1)),
    protocol("igmp", 0x0800, Some(2)),
    protocol("tcp", 0x0800, Some(6)),
    protocol("udp", 0x0800, Some(17)),
    protocol("sctp", 0x0800, Some(132)),
    protocol("tcp6", 0x86dd, Some(6)),
    protocol("udp6", 0x86dd, Some(17)),
    protocol("sctp6", 0x86dd, Some(132)),
    protocol("icmp6", 0x86dd, Some(58)),
    protocol("ip", 0x0800, None),
    protocol("ipv6", 0x86dd, None),
    protocol("ip6", 0x86dd, None),
    protocol("arp", 0x0806, None),
    protocol("rarp", 0x8035, None),
    protocol("mpls", 0x8847, None),
    protocol("mplsm", 0x8848, None),
];

/// The order in which `ovs-ofctl` prints fields; a field that is not listed comes last.
const ORDER: &[Field] = &[
    Field::PktMark,
    Field::ConjId,
    Field::Reg0,
    Field::Reg1,
    Field::Reg2,
    Field::Reg3,
    Field::Reg4,
    Field::Reg5,
    Field::Reg6,
    Field::Reg7,
    Field::Reg8,
    Field::Reg9,
    Field::Reg10,
    Field::Reg11,
    Field::Reg12,
    Field::Reg13,
    Field::Reg14,
    Field::Reg15,
    Field::TunnelId,
    Field::Metadata,
    Field::InPort,
    Field::InPhyPort,
    Field::VlanVid,
    Field::VlanPcp,
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::PbbIsid,
    Field::PbbUca,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::Ipv6Flabel,
    Field::Ipv6Exthdr,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::IpProto,
    Field::ArpOp,
    Field::ArpSha,
    Field::ArpTha,
    Field::IpDscp,
    Field::IpEcn,
    Field::NwTtl,
    Field::MplsLabel,
    Field::MplsTc,
    Field::MplsBos,
    Field::IpFrag,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::Icmpv6Type,
    Field::Icmpv6Code,
    Field::Ipv6NdTarget,
    Field::Ipv6NdSll,
    Field::Ipv6NdTll,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::TcpFlags,
];

/// Reads a match such as `tcp,nw_dst=10.0.0.0/8,tp_dst=80`.
///
/// # Errors
/// On an unknown word, a bad value, a field given twice, or a field whose prerequisite is missing.
pub fn parse_match(text: &str) -> Result<Match, TextError> {
    matching(Piece::whole(text))
}

pub(super) fn matching(text: Piece<'_>) -> Result<Match, TextError> {
    let mut builder = MatchBuilder::default();
    for pair in pairs(text) {
        let pair = pair?;
        if !builder.take(pair)? {
            return Err(unknown("word", pair.key, words()));
        }
    }
    builder.finish()
}

/// Words of a match that name a field only beside others, or another value than the field's own.
pub fn match_words() -> impl Iterator<Item = &'static str> {
    shared_words().map(|(word, _)| word).chain(COMPAT.iter().copied())
}

/// Words that name one of several fields, by the protocol beside them.
pub fn shared_words() -> impl Iterator<Item = (&'static str, &'static [Field])> {
    SHARED.iter().flat_map(|shared| shared.words.iter().map(|word| (*word, shared.choices)))
}

/// Words of a match that stand alone.
pub fn protocol_words() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.word)
}

/// All words of a match.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let names = |row: &'static FieldRow| [row.name, row.text, row.set_text];
    ALL_FIELDS.iter().flat_map(names).chain(match_words()).chain(protocol_words())
}

/// Collects the words of a match; those that need context wait for the end.
#[derive(Default)]
pub(super) struct MatchBuilder<'a> {
    matching: Match,
    /// The words that gave the fields.
    given: Vec<(Field, Piece<'a>)>,
    waiting: Vec<(&'static Shared, Pair<'a>)>,
}

/// Words that name a field only together with the protocol.
struct Shared {
    words: &'static [&'static str],
    choices: &'static [Field],
}

const SHARED: &[Shared] = &[
    Shared { words: &["nw_proto", "ip_proto"], choices: &[Field::IpProto, Field::ArpOp] },
    Shared { words: &["nw_src", "ip_src"], choices: &[Field::Ipv4Src, Field::ArpSpa] },
    Shared { words: &["nw_dst", "ip_dst"], choices: &[Field::Ipv4Dst, Field::ArpTpa] },
    Shared { words: &["icmp_type"], choices: &[Field::Icmpv4Type, Field::Icmpv6Type] },
    Shared { words: &["icmp_code"], choices: &[Field::Icmpv4Code, Field::Icmpv6Code] },
    Shared {
        words: &["tp_src"],
        choices: &[
            Field::TcpSrc,
            Field::UdpSrc,
            Field::SctpSrc,
            Field::Icmpv4Type,
            Field::Icmpv6Type,
        ],
    },
    Shared {
        words: &["tp_dst"],
        choices: &[
            Field::TcpDst,
            Field::UdpDst,
            Field::SctpDst,
            Field::Icmpv4Code,
            Field::Icmpv6Code,
        ],
    },
];

/// Words whose value is not the field's own.
const COMPAT: &[&str] = &["dl_vlan", "vlan_tci", "nw_tos"];

impl<'a> MatchBuilder<'a> {
    /// Takes one word; `false` when it is not a match's.
    pub(super) fn take(&mut self, pair: Pair<'a>) -> Result<bool, TextError> {
        let word = pair.key.text;
        if let Some(found) = PROTOCOLS.iter().find(|protocol| protocol.word == word) {
            pair.alone()?;
            self.protocol(pair.key, found)?;
        } else if let Some(shared) = SHARED.iter().find(|shared| shared.words.contains(&word)) {
            pair.needed()?;
            self.waiting.push((shared, pair));
        } else if COMPAT.contains(&word) {
            self.compat(pair)?;
        } else if let Some(field) = Field::from_name(word) {
            let piece = pair.needed()?;
            let (value, mask) = value(field, piece)?;
            check_vlan_vid(piece, field, value, mask)?;
            self.add(pair.key, field, value, mask)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn protocol(&mut self, key: Piece<'a>, found: &Protocol) -> Result<(), TextError> {
        self.add(key, Field::EthType, found.eth_type, 0xffff)?;
        match found.ip_proto {
            Some(proto) => self.add(key, Field::IpProto, proto, 0xff),
            None => Ok(()),
        }
    }

    fn add(&mut self, key: Piece<'a>, f: Field, value: u128, mask: u128) -> Result<(), TextError> {
        if let Some(registers) = f.registers() {
            for (place, register) in registers.rev().enumerate() {
                let part = |bits: u128| bits >> (32 * place) & register.full_mask();
                if part(mask) != 0 {
                    self.add(key, register, part(value), part(mask))?;
                }
            }
            return Ok(());
        }
        if let Some(held) = self.matching.get(f) {
            if held.value == value && held.mask == mask {
                return Ok(());
            }
            return Err(key.error(format!("{} is given twice", named(key, f))));
        }
        self.given.push((f, key));
        self.matching.set(f, value, mask);
        Ok(())
    }

    /// The words whose value is not the field's own.
    fn compat(&mut self, pair: Pair<'a>) -> Result<(), TextError> {
        let piece = pair.needed()?;
        match pair.key.text {
            "nw_tos" => {
                let tos = number(piece, 8)?;
                if tos & 3 != 0 {
                    return Err(piece.error("nw_tos takes no ECN bits: a multiple of 4"));
                }
                self.add(pair.key, Field::IpDscp, tos >> 2, 0x3f)
            }
            "dl_vlan" if number(piece, 16)? == 0xffff => {
                self.add(pair.key, Field::VlanVid, 0, 0x1fff)
            }
            "dl_vlan" => {
                let vid = number(piece, 12)?;
                self.add(pair.key, Field::VlanVid, vid | VID_PRESENT, 0x1fff)
            }
            _ => self.vlan_tci(pair.key, piece),
        }
    }

    /// `vlan_tci`: id, priority and presence in one word, as the tag carries them.
    fn vlan_tci(&mut self, key: Piece<'a>, piece: Piece<'_>) -> Result<(), TextError> {
        let (tci, mask) = match piece.split_once("/") {
            Some((left, right)) => (number(left, 16)?, number(right, 16)?),
            None => (number(piece, 16)?, 0xffff),
        };
        let vid_mask = mask & 0x1fff;
        if vid_mask != 0 {
            self.add(key, Field::VlanVid, tci & vid_mask, vid_mask)?;
        }
        match (mask >> 13, tci & VID_PRESENT) {
            (0, _) => Ok(()),
            (7, 0) => Ok(()),
            (7, _) => self.add(key, Field::VlanPcp, tci >> 13, 7),
            (_, _) => Err(piece.error("the priority bits of vlan_tci are all or nothing")),
        }
    }

    /// Resolves what waited and checks the prerequisites.
    pub(super) fn finish(mut self) -> Result<Match, TextError> {
        if self.matching.get(Field::VlanPcp).is_some()
            && self.matching.get(Field::VlanVid).is_none()
        {
            self.matching.set(Field::VlanVid, VID_PRESENT, VID_PRESENT);
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        // The IP protocol decides about the ports, so it goes first.
        waiting.sort_by_key(|(shared, _)| !shared.choices.contains(&Field::IpProto));
        for (shared, pair) in waiting {
            let fits = |field: &&Field| self.matching.matches(field.row().prereq);
            let field = shared.choices.iter().find(fits).copied();
            let field = field.ok_or_else(|| self.unfit(pair.key, shared.choices))?;
            let (value, mask) = value(field, pair.needed()?)?;
            self.add(pair.key, field, value, mask)?;
        }
        for (field, key) in &self.given {
            if !self.matching.matches(field.row().prereq) {
                return Err(self.unfit(*key, &[*field]));
            }
        }
        Ok(self.matching)
    }

    /// The error of a word that means none of these fields in this match.
    fn unfit(&self, key: Piece<'_>, fields: &[Field]) -> TextError {
        let of = |&field| PROTOCOLS.iter().filter(move |protocol| protocol.has(field));
        let all: Vec<&Protocol> = fields.iter().flat_map(of).collect();
        let is_possible = |protocol: &&Protocol| {
            let may_be = |field, value| self.matching.exact(field).is_none_or(|held| held == value);
            may_be(Field::EthType, protocol.eth_type)
                && protocol.ip_proto.is_none_or(|number| may_be(Field::IpProto, number))
        };
        let possible: Vec<&Protocol> = all.iter().copied().filter(is_possible).collect();
        let name = match fields {
            [only] => named(key, *only),
            _ => key.text.to_owned(),
        };
        let what = match (fields, possible.is_empty(), self.protocol_text()) {
            (_, true, Some(protocol)) if !all.is_empty() => {
                format!("{name} is no field of {protocol}: it goes with {}", words_of(&all))
            }
            ([only], true, _) => missing(&name, only.row().prereq),
            ([only], false, _) => {
                let missing = missing(&name, only.row().prereq);
                format!("{missing}: add {}", words_of(&possible))
            }
            (_, _, _) => {
                let add = words_of(&possible);
                format!("{name} says nothing without its protocol: add {add}")
            }
        };
        key.error(what)
    }

    /// The protocol that the match asks for.
    fn protocol_text(&self) -> Option<String> {
        let eth_type = self.matching.exact(Field::EthType)?;
        let number = format!("eth_type={}", super::format_value(Field::EthType, eth_type));
        let Some(protocol) = Protocol::of(&self.matching) else { return Some(number) };
        let word = protocol.word;
        match self.matching.exact(Field::IpProto).filter(|_| protocol.ip_proto.is_none()) {
            Some(other) => Some(format!("{word} with nw_proto={other}")),
            None => Some(word.to_owned()),
        }
    }
}

/// A field as an error calls it: by the word that is written, with its name where that is another.
fn named(key: Piece<'_>, field: Field) -> String {
    let name = field.row().name;
    if key.text == name { name.to_owned() } else { format!("{} ({name})", key.text) }
}

/// Refuses an id that no packet has: without the bit that says that there is a tag.
pub(super) fn check_vlan_vid(
    piece: Piece<'_>,
    field: Field,
    value: u128,
    mask: u128,
) -> Result<(), TextError> {
    match unpresent_vid(field, value, mask) {
        Some(why) => Err(piece.error(why)),
        None => Ok(()),
    }
}

/// Why no packet has this VLAN id, if it has none: the bit that says that there is a tag is
/// missing (clause 7.2.3.8).
#[must_use]
pub fn unpresent_vid(field: Field, value: u128, mask: u128) -> Option<String> {
    let is_whole = mask == field.full_mask() && value != 0;
    (field == Field::VlanVid && is_whole && value & VID_PRESENT == 0).then(|| {
        format!(
            "no packet has the VLAN id {value} without OFPVID_PRESENT (0x1000), which says that \
             there is a tag: write {} ({:#x})",
            value | VID_PRESENT,
            value | VID_PRESENT
        )
    })
}

fn words_of(protocols: &[&Protocol]) -> String {
    let words: Vec<&str> = protocols.iter().map(|protocol| protocol.word).collect();
    match words.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        words => words.concat(),
    }
}

fn missing(name: &str, prereq: Prereq) -> String {
    match prereq {
        Prereq::None => name.to_owned(),
        Prereq::Present(field) => format!("{name} needs {} beside it", field.row().name),
        Prereq::VlanTag => format!("{name} needs a VLAN tag: vlan_vid=0x1000/0x1000"),
        Prereq::OneOf(field, values) => {
            let values: Vec<String> =
                values.iter().map(|value| super::format_value(field, *value)).collect();
            format!("{name} needs {}={} beside it", field.row().name, values.join(" or "))
        }
    }
}

/// A match as `ovs-ofctl` prints it; empty when every packet meets it.
#[must_use]
pub fn format_match(matching: &Match) -> String {
    match_text(matching, &PortNames::default())
}

/// The same with these names for ports.
pub(super) fn match_text(matching: &Match, names: &PortNames) -> String {
    let mut out = String::new();
    let word = Protocol::of(matching);
    let listed = ORDER.iter().copied();
    let others = FIELDS.iter().map(|row| row.field).filter(|field| !ORDER.contains(field));
    for field in listed.chain(others) {
        // After the fields that stand before the protocol.
        if field == Field::Reg0
            && let Some(found) = word
        {
            push(&mut out, found.word);
        }
        let by_word = match word {
            Some(_) if field == Field::EthType => true,
            Some(found) => field == Field::IpProto && found.ip_proto.is_some(),
            None => false,
        };
        let Some(held) = matching.get(field).filter(|_| !by_word) else { continue };
        if field == Field::VlanVid {
            push_vlan(&mut out, matching);
        } else if field == Field::IpDscp {
            push(&mut out, &format!("nw_tos={}", held.value << 2));
        } else {
            let value = field_text(held, names);
            push(&mut out, &format!("{}={value}", field.row().text));
        }
    }
    out
}

/// The VLAN id: a number for a tag with this id, else the bits of the tag control information.
fn push_vlan(out: &mut String, matching: &Match) {
    let Some(held) = matching.get(Field::VlanVid) else { return };
    if held.is_exact() && held.value & VID_PRESENT != 0 {
        push(out, &format!("dl_vlan={}", held.value & 0xfff));
    } else if held.mask != VID_PRESENT || matching.get(Field::VlanPcp).is_none() {
        push(out, &format!("vlan_tci=0x{:04x}/0x{:04x}", held.value, held.mask));
    }
}

fn push(out: &mut String, word: &str) {
    let comma = if out.is_empty() { "" } else { "," };
    // Writing to a string cannot fail.
    let _ = write!(out, "{comma}{word}");
}
