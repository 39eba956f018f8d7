//! Matches in the keys of Ryu, both ways: the old names (`dl_src`, `nw_dst`) and the new ones.
//!
//! Ryu sends a key that needs another one all the same, and in 1.0 the switch overlooks it then:
//! the entry is broader than asked. Here 1.0's keys are refused without what they need; in 1.3 the
//! switch refuses them, and its error is the answer.

use crate::problem::Problem;
use crate::shape::{self, Fields, Key, Of, Shape, key};
use crate::words;
use openflow::field::{FIELDS, FieldRow, Format, RyuName, VID_PRESENT};
use openflow::text::{format_value, parse_value};
use openflow::{Field, Match, MatchField, PortNo, Version};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The keys of a match, by the rows of the fields; [`field_of`] and [`fn@tuple`] know those of a
/// version.
pub(crate) static MATCH: LazyLock<Shape> = LazyLock::new(|| {
    let mut keys: Vec<Key> = Vec::new();
    for row in FIELDS {
        for name in std::iter::once(row.name).chain(old_name(row.field)) {
            if keys.iter().all(|key| key.name != name) {
                keys.push(key(name, Of::Scalar, what(name, row)));
            }
        }
    }
    Shape { name: "match", what: "a match", keys: keys.leak() }
});

/// Keys whose values are more, or in another form, than those of a field.
const NOTES: &[(&str, &str)] = &[
    ("in_port", "the port that the packet came in by: number or name"),
    ("dl_vlan", "VLAN id; in 1.3 digits with 0x are the value with OFPVID_PRESENT"),
    ("vlan_vid", "VLAN id; digits with 0x are the value with OFPVID_PRESENT"),
    ("nw_tos", "1.0: the TOS byte, whose upper six bits are matched"),
    ("nw_proto", "IP protocol; in 1.0 the opcode of ARP too"),
    ("nw_src", "IPv4 source, or ARP's: address/prefix or address/mask"),
    ("nw_dst", "IPv4 destination, or ARP's: address/prefix or address/mask"),
    ("tp_src", "source port of the protocol in nw_proto; in 1.0 ICMP's type too"),
    ("tp_dst", "destination port of the protocol in nw_proto; in 1.0 ICMP's code too"),
];

/// The description of a key of this field.
fn what(name: &str, row: &FieldRow) -> &'static str {
    if let Some((_, note)) = NOTES.iter().find(|(key, _)| *key == name) {
        return note;
    }
    let doc = row.doc.trim().trim_end_matches('.');
    let mask = if row.maskable { ", with a mask as value/mask" } else { "" };
    format!("{doc}{mask}").leak()
}

/// The older name of a field, in 1.0 at least.
pub(super) fn old_name(field: Field) -> Option<&'static str> {
    match field.row().ryu {
        RyuName::Spec => None,
        RyuName::Old(name) | RyuName::OldIn1_0(name) => Some(name),
    }
}

const ARP: u64 = 0x0806;
const IPV4: u64 = 0x0800;
/// 1.0's VLAN id of a packet without a tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u64 = 0xffff;

/// The match of a body.
///
/// # Errors
/// When a key is unknown, has no such value, is not of the version, or lacks what it needs in 1.0.
pub(crate) fn parse(version: Version, value: &Value, place: &str) -> Result<Match, Problem> {
    let fields = Fields::of(value, &MATCH, place)?;
    if version.has_masked_addresses() { oxm(&fields, version) } else { tuple(&fields, version) }
}

/// The match of the key `match`; every packet where it is missing.
///
/// # Errors
/// As [`parse`].
pub(crate) fn of(fields: &Fields<'_>, version: Version) -> Result<Match, Problem> {
    let Some(value) = fields.get("match") else { return Ok(Match::any()) };
    parse(version, value, &fields.path("match"))
}

fn oxm(fields: &Fields<'_>, version: Version) -> Result<Match, Problem> {
    let number_of = |names: [&str; 2]| {
        let value = names.into_iter().find_map(|name| fields.get(name));
        value.and_then(|value| shape::number(value).ok())
    };
    let eth_type = number_of(["eth_type", "dl_type"]);
    let ip_proto = number_of(["ip_proto", "nw_proto"]);
    let mut matching = Match::any();
    for (name, value) in fields.iter() {
        let field = field_of(fields, name, eth_type, ip_proto, version)?;
        if matching.get(field).is_some() {
            let words = format!("{} is given by two keys", field.row().name);
            return Err(fields.problem(name, words));
        }
        let read =
            if field == Field::VlanVid { vlan(value) } else { field_value(version, field, value) };
        let (bits, mask) = read.map_err(|problem| problem.at(fields.path(name)))?;
        matching.set(field, bits, mask);
    }
    Ok(matching)
}

/// The field that a key means in a version with OXM fields.
fn field_of(
    fields: &Fields<'_>,
    name: &str,
    eth_type: Option<u64>,
    ip_proto: Option<u64>,
    version: Version,
) -> Result<Field, Problem> {
    match (name, eth_type, ip_proto) {
        ("nw_src", Some(ARP), _) => return Ok(Field::ArpSpa),
        ("nw_dst", Some(ARP), _) => return Ok(Field::ArpTpa),
        ("tp_src", _, Some(6)) => return Ok(Field::TcpSrc),
        ("tp_dst", _, Some(6)) => return Ok(Field::TcpDst),
        ("tp_src", _, Some(17)) => return Ok(Field::UdpSrc),
        ("tp_dst", _, Some(17)) => return Ok(Field::UdpDst),
        ("tp_src", _, Some(132)) => return Ok(Field::SctpSrc),
        ("tp_dst", _, Some(132)) => return Ok(Field::SctpDst),
        ("tp_src" | "tp_dst", _, proto) => {
            let part = if name == "tp_src" { "type" } else { "code" };
            let words = match proto {
                Some(1) => format!("with ip_proto 1 the key is icmpv4_{part}, not {name}"),
                Some(58) => format!("with ip_proto 58 the key is icmpv6_{part}, not {name}"),
                Some(_) | None => format!("{name} needs the key ip_proto with 6, 17 or 132"),
            };
            return Err(fields.problem(name, words));
        }
        ("dl_vlan_pcp", _, _) => return Ok(Field::VlanPcp),
        _ => {}
    }
    let is_named =
        |row: &&FieldRow| row.name == name || matches!(row.ryu, RyuName::Old(old) if old == name);
    let row = FIELDS.iter().find(is_named);
    row.map(|row| row.field).ok_or_else(|| {
        fields.problem(name, format!("{version} has no key {name}; ip_dscp is the nearest"))
    })
}

/// A VLAN id as Ryu takes it: decimal digits are the id of a tag; `0x` and value/mask are as they
/// stand on the wire.
fn vlan(value: &Value) -> Result<(u128, u128), Problem> {
    let text = value.as_str();
    let is_decimal = text.is_none_or(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let tag = if is_decimal { VID_PRESENT } else { 0 };
    let (bits, mask) = numbers(Field::VlanVid, value)?;
    if is_decimal && bits > 0xfff {
        return Err(Problem::bad("a VLAN id has 12 bits"));
    }
    Ok((bits | tag, mask))
}

/// The value and mask of a field.
///
/// # Errors
/// When it has not the field's form, or the field takes no mask.
pub(crate) fn field_value(
    version: Version,
    field: Field,
    value: &Value,
) -> Result<(u128, u128), Problem> {
    match field.row().format {
        Format::Port => {
            let port = words::port(version, value)?;
            Ok((port.0.into(), field.full_mask()))
        }
        Format::Dec | Format::Hex | Format::TcpFlags | Format::Fragment => numbers(field, value),
        Format::Mac | Format::Ipv4 | Format::Ipv6 => {
            let text = value.as_str().ok_or_else(|| {
                Problem::bad(format!("an address must stand here, not {}", shape::kind(value)))
            })?;
            parse_value(field, text).map_err(|error| Problem::bad(error.what))
        }
    }
}

/// `value` or `value/mask`.
fn numbers(field: Field, value: &Value) -> Result<(u128, u128), Problem> {
    let fits = |number: u64| {
        let number = u128::from(number);
        if number > field.full_mask() {
            let words = format!("{} has {} bits", field.row().name, field.row().bits);
            return Err(Problem::bad(words));
        }
        Ok(number)
    };
    let one = |text: &str| shape::digits(text).map_err(Problem::bad).and_then(fits);
    match value.as_str().and_then(|text| text.split_once('/')) {
        Some(_) if !field.row().maskable => {
            Err(Problem::bad(format!("{} takes no mask", field.row().name)))
        }
        Some((bits, mask)) => Ok((one(bits)?, one(mask)?)),
        None => {
            let number = shape::number(value).map_err(Problem::bad)?;
            Ok((fits(number)?, field.full_mask()))
        }
    }
}

/// The match of 1.0's keys, whose meaning depends on `dl_type` and `nw_proto`.
fn tuple(fields: &Fields<'_>, version: Version) -> Result<Match, Problem> {
    let dl_type = fields.number::<u16>("dl_type")?.map(u64::from);
    let nw_proto = fields.number::<u8>("nw_proto")?.map(u64::from);
    let mut matching = Match::any();
    for (name, value) in fields.iter() {
        let field = tuple_field(fields, name, dl_type, nw_proto, version)?;
        let read = if field == Field::VlanVid {
            tuple_vlan(value)
        } else if field == Field::IpDscp {
            tuple_tos(value)
        } else {
            field_value(version, field, value)
        };
        let (bits, mask) = read.map_err(|problem| problem.at(fields.path(name)))?;
        matching.set(field, bits, mask);
    }
    if matching.get(Field::VlanPcp).is_some() {
        match matching.exact(Field::VlanVid) {
            Some(0) => return Err(fields.problem("dl_vlan_pcp", "a packet without a tag has none")),
            Some(_) => {}
            None => matching.set(Field::VlanVid, VID_PRESENT, VID_PRESENT),
        }
    }
    Ok(matching)
}

fn tuple_field(
    fields: &Fields<'_>,
    name: &str,
    dl_type: Option<u64>,
    nw_proto: Option<u64>,
    version: Version,
) -> Result<Field, Problem> {
    let needs = |what: &str| fields.problem(name, format!("{name} needs {what}"));
    let ip_or_arp = "dl_type 2048 (IPv4) or 2054 (ARP): without it a switch overlooks the key";
    let transport = "dl_type 2048 and nw_proto 1, 6, 17 or 132: without them a switch overlooks it";
    match (name, dl_type) {
        ("in_port", _) => Ok(Field::InPort),
        ("dl_src", _) => Ok(Field::EthSrc),
        ("dl_dst", _) => Ok(Field::EthDst),
        ("dl_vlan", _) => Ok(Field::VlanVid),
        ("dl_vlan_pcp", _) => Ok(Field::VlanPcp),
        ("dl_type", _) => Ok(Field::EthType),
        ("nw_tos", Some(IPV4)) => Ok(Field::IpDscp),
        ("nw_tos", _) => Err(needs("dl_type 2048 (IPv4)")),
        ("nw_proto", Some(IPV4)) => Ok(Field::IpProto),
        ("nw_proto", Some(ARP)) => Ok(Field::ArpOp),
        ("nw_src", Some(IPV4)) => Ok(Field::Ipv4Src),
        ("nw_src", Some(ARP)) => Ok(Field::ArpSpa),
        ("nw_dst", Some(IPV4)) => Ok(Field::Ipv4Dst),
        ("nw_dst", Some(ARP)) => Ok(Field::ArpTpa),
        ("nw_proto" | "nw_src" | "nw_dst", _) => Err(needs(ip_or_arp)),
        ("tp_src" | "tp_dst", Some(IPV4)) => match (name, nw_proto) {
            ("tp_src", Some(1)) => Ok(Field::Icmpv4Type),
            ("tp_src", Some(6)) => Ok(Field::TcpSrc),
            ("tp_src", Some(17)) => Ok(Field::UdpSrc),
            ("tp_src", Some(132)) => Ok(Field::SctpSrc),
            (_, Some(1)) => Ok(Field::Icmpv4Code),
            (_, Some(6)) => Ok(Field::TcpDst),
            (_, Some(17)) => Ok(Field::UdpDst),
            (_, Some(132)) => Ok(Field::SctpDst),
            _ => Err(needs(transport)),
        },
        ("tp_src" | "tp_dst", _) => Err(needs(transport)),
        _ => {
            let words = format!("{version} has no key {name}");
            Err(fields.problem(name, words).allowing(TUPLE_KEYS))
        }
    }
}

/// The keys of 1.0.
const TUPLE_KEYS: [&str; 12] = [
    "in_port",
    "dl_src",
    "dl_dst",
    "dl_vlan",
    "dl_vlan_pcp",
    "dl_type",
    "nw_tos",
    "nw_proto",
    "nw_src",
    "nw_dst",
    "tp_src",
    "tp_dst",
];

fn tuple_vlan(value: &Value) -> Result<(u128, u128), Problem> {
    let full = Field::VlanVid.full_mask();
    match shape::number(value).map_err(Problem::bad)? {
        VLAN_NONE => Ok((0, full)),
        id @ 0..=0xfff => Ok((u128::from(id) | VID_PRESENT, full)),
        _ => Err(Problem::bad("a VLAN id has 12 bits; 65535 is no tag")),
    }
}

fn tuple_tos(value: &Value) -> Result<(u128, u128), Problem> {
    let tos = shape::number(value).map_err(Problem::bad)?;
    if tos > 0xff || tos & 3 != 0 {
        return Err(Problem::bad(
            "the TOS byte has 8 bits, of which the lowest two are not matched",
        ));
    }
    Ok((u128::from(tos >> 2), Field::IpDscp.full_mask()))
}

/// A match as Ryu prints it.
pub(crate) fn to_value(version: Version, matching: &Match) -> Value {
    let mut object = Map::new();
    for held in matching.fields() {
        if version.has_masked_addresses() {
            let name = printed_name(held.field);
            // Two fields never share a name in one match: their protocols differ.
            object.entry(name).or_insert_with(|| oxm_value(version, held));
        } else if let Some((name, value)) = tuple_value(version, held) {
            object.insert(name.into(), value);
        }
    }
    Value::Object(object)
}

fn printed_name(field: Field) -> &'static str {
    match field.row().ryu {
        RyuName::Old(name) => name,
        RyuName::Spec | RyuName::OldIn1_0(_) => field.row().name,
    }
}

fn oxm_value(version: Version, held: &MatchField) -> Value {
    let (field, value, mask) = (held.field, held.value, held.mask);
    if field == Field::VlanVid {
        let text = match (held.is_exact(), value & VID_PRESENT != 0) {
            (false, _) => format!("0x{value:04x}/0x{mask:04x}"),
            (true, true) => (value & !VID_PRESENT).to_string(),
            (true, false) => format!("0x{value:04x}"),
        };
        return text.into();
    }
    if field == Field::InPort {
        return words::port_value(version, port_of(value));
    }
    if held.is_exact() {
        return single(field, value);
    }
    let text = |bits| words::plain(&single(field, bits));
    format!("{}/{}", text(value), text(mask)).into()
}

/// A value as Ryu has it: numbers as numbers, addresses as text.
pub(crate) fn single(field: Field, value: u128) -> Value {
    match field.row().format {
        Format::Dec | Format::Hex | Format::Port | Format::TcpFlags | Format::Fragment => {
            u64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
        }
        Format::Mac | Format::Ipv4 | Format::Ipv6 => format_value(field, value).into(),
    }
}

fn port_of(value: u128) -> PortNo {
    PortNo(u32::try_from(value).unwrap_or(u32::MAX))
}

/// A field by its key in 1.0; `None` for one that only asks for a tag.
fn tuple_value(version: Version, held: &MatchField) -> Option<(&'static str, Value)> {
    let (field, value) = (held.field, held.value);
    let Some(name) = old_name(field) else {
        return Some((field.row().name, oxm_value(version, held)));
    };
    let is_address = field.row().format == Format::Ipv4;
    let shown = if field == Field::VlanVid {
        match value {
            _ if !held.is_exact() => return None,
            0 => VLAN_NONE.into(),
            tagged => single(field, tagged & !VID_PRESENT),
        }
    } else if field == Field::IpDscp {
        single(field, value << 2)
    } else if is_address && !held.is_exact() {
        format!("{}/{}", format_value(field, value), held.mask.count_ones()).into()
    } else {
        single(field, value)
    };
    Some((name, shown))
}

#[cfg(test)]
mod tests {
    use super::{MATCH, parse, to_value};
    use openflow::Version;
    use openflow::text::format_match;
    use serde_json::{Value, json};

    fn read(version: Version, value: &Value) -> Result<String, String> {
        let matching = parse(version, value, "match");
        matching.map(|it| format_match(&it)).map_err(|problem| problem.to_value().to_string())
    }

    #[test]
    fn old_and_new_names_mean_the_same_in_1_3() {
        for (value, expected) in [
            (json!({}), ""),
            (json!({"in_port": "LOCAL"}), "in_port=LOCAL"),
            (json!({"dl_type": "0x0800", "nw_src": "10.0.0.0/8"}), "ip,nw_src=10.0.0.0/8"),
            (
                json!({"eth_type": 2048, "ipv4_dst": "10.1.2.3/255.255.0.0"}),
                "ip,nw_dst=10.1.0.0/16",
            ),
            (json!({"dl_type": 2054, "nw_src": "10.0.0.1"}), "arp,arp_spa=10.0.0.1"),
            (json!({"dl_vlan": 5}), "dl_vlan=5"),
            (json!({"dl_vlan": "5"}), "dl_vlan=5"),
            (json!({"dl_vlan": "0x1005"}), "dl_vlan=5"),
            (json!({"vlan_vid": "0x0000"}), "vlan_tci=0x0000/0x1fff"),
            (json!({"vlan_vid": "0x1000/0x1000"}), "vlan_tci=0x1000/0x1000"),
            (json!({"eth_type": 2048, "ip_proto": 6, "tp_dst": 80}), "tcp,tp_dst=80"),
            (json!({"eth_type": 2048, "nw_proto": 17, "tp_src": "53"}), "udp,tp_src=53"),
            (json!({"metadata": "0x10/0xf0"}), "metadata=0x10/0xf0"),
            (
                json!({"dl_dst": "01:00:00:00:00:00/01:00:00:00:00:00"}),
                "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
            ),
        ] {
            assert_eq!(read(Version::V1_3, &value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn keys_of_1_0_mean_what_dl_type_and_nw_proto_say() {
        for (value, expected) in [
            (json!({"in_port": 65534}), "in_port=LOCAL"),
            (
                json!({"dl_type": 2054, "nw_proto": 1, "nw_dst": "10.0.0.1"}),
                "arp,arp_tpa=10.0.0.1,arp_op=1",
            ),
            (
                json!({"dl_type": 2048, "nw_proto": 1, "tp_src": 8, "tp_dst": 0}),
                "icmp,icmp_type=8,icmp_code=0",
            ),
            (json!({"dl_type": 2048, "nw_tos": 32}), "ip,nw_tos=32"),
            (json!({"dl_vlan": 65535}), "vlan_tci=0x0000/0x1fff"),
        ] {
            assert_eq!(read(Version::V1_0, &value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn a_match_broader_than_asked_is_refused() {
        for (version, value, place) in [
            (Version::V1_3, json!({"ipv4_srcc": "10.0.0.1"}), "match.ipv4_srcc"),
            (Version::V1_3, json!({"tp_dst": 80}), "match.tp_dst"),
            (Version::V1_3, json!({"ip_proto": 1, "tp_src": 8}), "the key is icmpv4_type"),
            (Version::V1_3, json!({"nw_proto": 58, "tp_dst": 0}), "the key is icmpv6_code"),
            (
                Version::V1_3,
                json!({"dl_src": "02:00:00:00:00:01", "eth_src": "02:00:00:00:00:01"}),
                "match.",
            ),
            (Version::V1_3, json!({"dl_vlan": 4096}), "match.dl_vlan"),
            (Version::V1_3, json!({"nw_tos": 4}), "match.nw_tos"),
            (Version::V1_3, json!({"eth_type": 65536}), "match.eth_type"),
            (Version::V1_3, json!({"eth_type": "0x800/0xf00"}), "match.eth_type"),
            (Version::V1_3, json!({"ipv4_src": 167772161}), "match.ipv4_src"),
            (Version::V1_3, json!({"in_port": true}), "match.in_port"),
            (Version::V1_0, json!({"nw_src": "10.0.0.1"}), "match.nw_src"),
            (Version::V1_0, json!({"tp_dst": 80, "dl_type": 2048}), "match.tp_dst"),
            (Version::V1_0, json!({"nw_tos": 5, "dl_type": 2048}), "match.nw_tos"),
            (Version::V1_0, json!({"ipv6_src": "::1"}), "match.ipv6_src"),
            (Version::V1_0, json!({"dl_vlan": 65535, "dl_vlan_pcp": 1}), "match.dl_vlan_pcp"),
        ] {
            let words = read(version, &value).unwrap_err();
            assert!(words.contains(place), "{value}: {words}");
        }
    }

    #[test]
    fn a_printed_match_is_read_as_the_same() {
        let oxm = json!({"in_port": 1, "dl_src": "02:00:00:00:00:01", "dl_vlan": "5",
            "vlan_pcp": 3, "dl_type": 2048, "nw_src": "10.0.0.0/255.0.0.0", "nw_proto": 6,
            "tp_dst": 80, "metadata": "16/240", "tunnel_id": 7});
        let tuple = json!({"in_port": "LOCAL", "dl_dst": "02:00:00:00:00:01", "dl_vlan": 5,
            "dl_vlan_pcp": 3, "dl_type": 2048, "nw_tos": 8, "nw_src": "10.0.0.0/8",
            "nw_proto": 17, "tp_src": 53});
        for (version, value) in [(Version::V1_3, oxm), (Version::V1_0, tuple)] {
            let matching = parse(version, &value, "").unwrap();
            assert_eq!(to_value(version, &matching), value);
        }
    }

    #[test]
    fn every_key_has_a_meaning_in_one_version() {
        for key in MATCH.keys {
            let known = Version::ALL.iter().any(|&version| {
                // A value of no kind gives away whether the key was refused or its value.
                let words = read(version, &json!({ key.name: {} })).unwrap_err();
                !words.contains("has no key")
            });
            assert!(known, "{}", key.name);
        }
    }
}
