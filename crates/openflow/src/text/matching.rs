//! A match in text: protocol words, fields with values, and the VLAN words of `ovs-ofctl`.

use super::lex::{Pair, Piece, pairs};
use super::value::{field_text, number, value};
use super::{PortNames, TextError};
use crate::field::{FIELDS, Field, Prereq, VID_PRESENT};
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
    Field::MplsLabel,
    Field::MplsTc,
    Field::MplsBos,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::Icmpv6Type,
    Field::Icmpv6Code,
    Field::Ipv6NdTarget,
    Field::Ipv6NdSll,
    Field::Ipv6NdTll,
];

/// Reads a match such as `tcp,nw_dst=10.0.0.0/8,tp_dst=80`.
///
/// # Errors
/// On an unknown word, a bad value, a field given twice, or a field whose prerequisite is missing.
pub fn parse_match(text: &str) -> Result<Match, TextError> {
    let mut builder = MatchBuilder::default();
    for pair in pairs(Piece::whole(text)) {
        let pair = pair?;
        if !builder.take(pair)? {
            return Err(unknown(pair.key));
        }
    }
    builder.finish()
}

pub(super) fn unknown(key: Piece<'_>) -> TextError {
    let nearest = FIELDS
        .iter()
        .flat_map(|row| [row.name, row.text, row.set_text])
        .min_by_key(|name| distance(name, key.text))
        .filter(|name| distance(name, key.text) <= 2);
    match nearest {
        Some(name) => key.error(format!("unknown word `{}`; did you mean `{name}`?", key.text)),
        None => key.error(format!("unknown word `{}`", key.text)),
    }
}

/// Edits between two words, for the hint of a mistyped one.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Collects the words of a match; those that need context wait for the end.
#[derive(Default)]
pub(super) struct MatchBuilder<'a> {
    matching: Match,
    waiting: Vec<(Waiting, Pair<'a>)>,
}

/// A word that names a field only together with the protocol.
#[derive(Clone, Copy)]
struct Waiting {
    word: &'static str,
    choices: &'static [Field],
}

const WAITING: &[Waiting] = &[
    Waiting { word: "tp_src", choices: &[Field::TcpSrc, Field::UdpSrc, Field::SctpSrc] },
    Waiting { word: "tp_dst", choices: &[Field::TcpDst, Field::UdpDst, Field::SctpDst] },
    Waiting { word: "nw_src", choices: &[Field::Ipv4Src, Field::ArpSpa] },
    Waiting { word: "nw_dst", choices: &[Field::Ipv4Dst, Field::ArpTpa] },
    Waiting { word: "nw_proto", choices: &[Field::IpProto, Field::ArpOp] },
    Waiting { word: "icmp_type", choices: &[Field::Icmpv4Type, Field::Icmpv6Type] },
    Waiting { word: "icmp_code", choices: &[Field::Icmpv4Code, Field::Icmpv6Code] },
];

impl<'a> MatchBuilder<'a> {
    /// Takes one word; `false` when it is not a match's.
    pub(super) fn take(&mut self, pair: Pair<'a>) -> Result<bool, TextError> {
        let word = pair.key.text;
        if pair.value.is_none() {
            return match PROTOCOLS.iter().find(|protocol| protocol.word == word) {
                Some(found) => self.protocol(pair.key, found).map(|()| true),
                None => Ok(false),
            };
        }
        if let Some(waiting) = WAITING.iter().find(|waiting| waiting.word == word) {
            self.waiting.push((*waiting, pair));
            return Ok(true);
        }
        match word {
            "dl_vlan" | "vlan_tci" | "nw_tos" | "vlan_vid" => self.compat(pair).map(|()| true),
            other => match Field::from_name(other) {
                Some(field) => {
                    let (value, mask) = value(field, pair.needed()?)?;
                    self.add(pair.key, field, value, mask).map(|()| true)
                }
                None => Ok(false),
            },
        }
    }

    fn protocol(&mut self, key: Piece<'_>, found: &Protocol) -> Result<(), TextError> {
        self.add(key, Field::EthType, found.eth_type, 0xffff)?;
        match found.ip_proto {
            Some(proto) => self.add(key, Field::IpProto, proto, 0xff),
            None => Ok(()),
        }
    }

    fn add(&mut self, key: Piece<'_>, f: Field, value: u128, mask: u128) -> Result<(), TextError> {
        if let Some(held) = self.matching.get(f) {
            if held.value == value && held.mask == mask {
                return Ok(());
            }
            return Err(key.error(format!("{} is given twice", f.row().name)));
        }
        self.matching.set(f, value, mask);
        Ok(())
    }

    /// The words whose value is not the field's own.
    fn compat(&mut self, pair: Pair<'_>) -> Result<(), TextError> {
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
            "vlan_vid" => {
                let (vid, mask) = value(Field::VlanVid, piece)?;
                self.add(pair.key, Field::VlanVid, vid, mask)
            }
            _ => self.vlan_tci(pair.key, piece),
        }
    }

    /// `vlan_tci`: id, priority and presence in one word, as the tag carries them.
    fn vlan_tci(&mut self, key: Piece<'_>, piece: Piece<'_>) -> Result<(), TextError> {
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
        // `nw_proto` decides about the ports, so it goes first.
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|(waiting, _)| waiting.word != "nw_proto");
        for (Waiting { word, choices }, pair) in waiting {
            let fits = |field: &&Field| self.matching.matches(field.row().prereq);
            let field = choices.iter().find(fits).copied().ok_or_else(|| needs(pair.key, word))?;
            let (value, mask) = value(field, pair.needed()?)?;
            self.add(pair.key, field, value, mask)?;
        }
        for held in self.matching.fields() {
            if !self.matching.matches(held.field.row().prereq) {
                let name = held.field.row().name;
                return Err(TextError::new(0, missing(name, held.field.row().prereq)));
            }
        }
        Ok(self.matching)
    }
}

fn needs(key: Piece<'_>, word: &str) -> TextError {
    let allowed = match word {
        "tp_src" | "tp_dst" => "tcp, udp, sctp, tcp6, udp6 or sctp6",
        "icmp_type" | "icmp_code" => "icmp or icmp6",
        "nw_proto" => "ip, ipv6 or arp",
        _ => "ip or arp",
    };
    key.error(format!("{word} says nothing without its protocol: add {allowed}"))
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
    let eth_type = matching.exact(Field::EthType);
    let ip_proto = matching.exact(Field::IpProto);
    let word = PROTOCOLS.iter().find(|protocol| {
        Some(protocol.eth_type) == eth_type
            && (protocol.ip_proto.is_none() || protocol.ip_proto == ip_proto)
    });
    if let Some(found) = word {
        push(&mut out, found.word);
    }
    let listed = ORDER.iter().copied();
    let others = FIELDS.iter().map(|row| row.field).filter(|field| !ORDER.contains(field));
    for field in listed.chain(others) {
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
