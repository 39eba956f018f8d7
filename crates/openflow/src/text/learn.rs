//! `learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])`: the entry that a
//! packet makes, as `ovs-ofctl` prints and takes it.
//!
//! Two fields of Nicira's match are parts of others here: `NXM_OF_IN_PORT` has the low 16 bits of
//! the port's number, and `NXM_OF_VLAN_TCI` the id (bits 0 to 12) and priority (13 to 15) of the
//! tag.

use super::lex::{Pair, Piece, pairs};
use super::matching::check_vlan_vid;
use super::subfield::{self, bits_of, settable, subfield};
use super::value::{format_value, hex, number, unsigned, value};
use super::words::unknown;
use super::{PortNames, TextError};
use crate::action::Action;
use crate::field::{Field, Format};
use crate::id::{Cookie, PortNo, TableId};
use crate::learn::{Learn, LearnFlags, LearnSource, LearnSpec, LearnTarget};
use crate::subfield::BitRange;

/// Bits of Nicira's numbers of ports, and of the field with the whole VLAN tag.
const WIDTH: u16 = 16;

/// The lowest bit of the priority in a VLAN tag.
const PCP_OFFSET: u16 = 13;

/// Words that are no part of the entry.
const WORDS: [&str; 11] = [
    "table",
    "idle_timeout",
    "hard_timeout",
    "fin_idle_timeout",
    "fin_hard_timeout",
    "priority",
    "cookie",
    "send_flow_rem",
    "delete_learned",
    "load",
    "output",
];

/// All in the parentheses.
pub(crate) fn parse(piece: Piece<'_>) -> Result<Action, TextError> {
    let mut learn = Learn::new();
    for pair in pairs(piece) {
        take(&mut learn, pair?)?;
    }
    Ok(Action::Learn(Box::new(learn)))
}

fn take(learn: &mut Learn, pair: Pair<'_>) -> Result<(), TextError> {
    match pair.key.text {
        "table" => {
            let table = pair.needed()?;
            learn.table = TableId(unsigned(table)?);
            if learn.table == TableId::ALL {
                return Err(table.error("no entry is learnt in table 255"));
            }
        }
        "idle_timeout" => learn.idle_timeout_s = unsigned(pair.needed()?)?,
        "hard_timeout" => learn.hard_timeout_s = unsigned(pair.needed()?)?,
        "priority" => learn.priority = unsigned(pair.needed()?)?,
        "cookie" => learn.cookie = Cookie(unsigned(pair.needed()?)?),
        "send_flow_rem" => pair.flag(&mut learn.flags, LearnFlags::SEND_FLOW_REM)?,
        "delete_learned" => pair.flag(&mut learn.flags, LearnFlags::DELETE_LEARNED)?,
        "fin_idle_timeout" => learn.fin_timeouts_s[0] = unsigned(pair.needed()?)?,
        "fin_hard_timeout" => learn.fin_timeouts_s[1] = unsigned(pair.needed()?)?,
        word @ ("limit" | "result_dst") => {
            return Err(pair.key.error(format!("`{word}` of learn is Open vSwitch's own")));
        }
        "load" => learn.specs.push(load(pair.needed()?)?),
        "output" => {
            let (field, bits) = part(pair.needed()?)?;
            learn.specs.push(read(field, bits, LearnTarget::Output));
        }
        _ => learn.specs.push(matched(pair)?),
    }
    Ok(())
}

fn read(field: Field, bits: BitRange, target: LearnTarget) -> LearnSpec {
    LearnSpec { n_bits: bits.n_bits, source: LearnSource::Field(field, bits.offset), target }
}

/// A field or a part of it, by any of its names: `NXM_OF_IN_PORT[]`, `NXM_NX_REG0[0..15]`, `reg0`.
///
/// # Errors
/// With the place of what is no field, or not among its bits.
pub fn parse_subfield(text: &str) -> Result<(Field, BitRange), TextError> {
    part(Piece::whole(text))
}

/// A part of a field that a packet has or an entry matches or writes.
fn part(piece: Piece<'_>) -> Result<(Field, BitRange), TextError> {
    let piece = piece.trimmed();
    let (name, range) = match piece.split_once("[") {
        Some((name, range)) => (name.trimmed(), Some(range)),
        None => (piece, None),
    };
    match name.text {
        "in_port" | "NXM_OF_IN_PORT" => {
            Ok((Field::InPort, bits_of(range, "NXM_OF_IN_PORT", WIDTH)?))
        }
        "in_port_oxm" => {
            let width = Field::InPort.row().bits;
            Ok((Field::InPort, bits_of(range, "OXM_OF_IN_PORT", width)?))
        }
        "vlan_tci" | "NXM_OF_VLAN_TCI" => {
            let bits = bits_of(range, "NXM_OF_VLAN_TCI", WIDTH)?;
            of_tag(bits).ok_or_else(|| {
                piece.error("the tag's id and priority are parts: name bits 0..11 or 13..15")
            })
        }
        _ => subfield(piece),
    }
}

/// The part of a field that some bits of a whole VLAN tag are.
fn of_tag(bits: BitRange) -> Option<(Field, BitRange)> {
    if bits.offset + bits.n_bits <= PCP_OFFSET {
        return Some((Field::VlanVid, bits));
    }
    let offset = bits.offset.checked_sub(PCP_OFFSET)?;
    Some((Field::VlanPcp, BitRange { offset, ..bits }))
}

/// `VALUE->FIELD[FIRST..LAST]` or `FIELD[..]->FIELD[..]`.
fn load(piece: Piece<'_>) -> Result<LearnSpec, TextError> {
    let (left, right) = piece
        .split_once("->")
        .ok_or_else(|| piece.error("load takes VALUE->FIELD[FIRST..LAST] or FIELD[]->FIELD[]"))?;
    let (dst, bits) = part(right)?;
    settable(right.trimmed(), dst)?;
    let target = LearnTarget::Load(dst, bits.offset);
    if left.text.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        let value = number(left.trimmed(), bits.n_bits)?;
        return Ok(LearnSpec {
            n_bits: bits.n_bits,
            source: LearnSource::Immediate(value),
            target,
        });
    }
    let (src, from) = part(left)?;
    same_width(right, from, bits)?;
    Ok(read(src, from, target))
}

fn same_width(place: Piece<'_>, from: BitRange, to: BitRange) -> Result<(), TextError> {
    if from.n_bits == to.n_bits {
        return Ok(());
    }
    let (from, to) = (from.n_bits, to.n_bits);
    Err(place.error(format!("{from} bits do not go into {to}: name as many of each")))
}

/// `FIELD=VALUE`, `FIELD[..]=FIELD[..]`, `FIELD[..]=VALUE`, or `FIELD[..]` of the same in the
/// packet.
fn matched(pair: Pair<'_>) -> Result<LearnSpec, TextError> {
    let key = pair.key;
    let (dst, bits) = part(key).map_err(|error| match key.text.contains('[') {
        true => error,
        false => unknown("word of learn", key, WORDS),
    })?;
    let target = LearnTarget::Match(dst, bits.offset);
    let Some(right) = pair.value.map(Piece::trimmed).filter(|value| !value.text.is_empty()) else {
        return match key.text.contains('[') {
            true => Ok(read(dst, bits, target)),
            false => Err(key.error(format!("`{0}` needs a value, or `{0}[]`", key.text))),
        };
    };
    if let Ok((src, from)) = part(right) {
        same_width(right, from, bits)?;
        return Ok(read(src, from, target));
    }
    let immediate = if bits == BitRange::all(dst) {
        let (read, mask) = value(dst, right)?;
        if mask != dst.full_mask() {
            return Err(right.error("a learnt entry's value takes no mask"));
        }
        check_vlan_vid(right, dst, read, mask)?;
        read
    } else {
        number(right, bits.n_bits)?
    };
    Ok(LearnSpec { n_bits: bits.n_bits, source: LearnSource::Immediate(immediate), target })
}

/// The whole, of whose arguments these are the words: the one that [`text`] gives, or its key.
pub(crate) fn format(words: &[String]) -> String {
    match words {
        [inner] if inner == "LEARN" => "learn(table=TABLE,FIELD[..]=FIELD[..],..)".to_owned(),
        words => format!("learn({})", words.join(",")),
    }
}

/// All in the parentheses.
pub(crate) fn text(learn: &Learn, names: &PortNames) -> String {
    let mut words = vec![format!("table={}", learn.table.0)];
    let mut timeout = |name: &str, seconds: u16| {
        words.extend((seconds != 0).then(|| format!("{name}={seconds}")));
    };
    timeout("idle_timeout", learn.idle_timeout_s);
    timeout("hard_timeout", learn.hard_timeout_s);
    let [fin_idle_timeout_s, fin_hard_timeout_s] = learn.fin_timeouts_s;
    timeout("fin_idle_timeout", fin_idle_timeout_s);
    timeout("fin_hard_timeout", fin_hard_timeout_s);
    let plain = Learn::new();
    if learn.priority != plain.priority {
        words.push(format!("priority={}", learn.priority));
    }
    let flags = [
        (LearnFlags::SEND_FLOW_REM, "send_flow_rem"),
        (LearnFlags::DELETE_LEARNED, "delete_learned"),
    ];
    let set = flags.iter().filter(|(flag, _)| learn.flags.contains(*flag));
    words.extend(set.map(|(_, word)| (*word).to_owned()));
    if learn.cookie != plain.cookie {
        words.push(format!("cookie={:#x}", learn.cookie.0));
    }
    words.extend(learn.specs.iter().map(|spec| spec_text(spec, names)));
    words.join(",")
}

fn spec_text(spec: &LearnSpec, names: &PortNames) -> String {
    let bits = |offset| BitRange { offset, n_bits: spec.n_bits };
    match (spec.target, spec.source) {
        (LearnTarget::Match(dst, to), LearnSource::Immediate(value)) => {
            if bits(to) != BitRange::all(dst) && !is_short_port(dst, bits(to)) {
                return format!("{}={}", part_text(dst, bits(to)), hex(value));
            }
            let row = dst.row();
            let value = match row.format {
                Format::Port => names.text_of(PortNo::of_short(value).unwrap_or_default()),
                Format::Hex => hex(value),
                Format::Dec
                | Format::Mac
                | Format::Ipv4
                | Format::Ipv6
                | Format::TcpFlags
                | Format::Fragment => format_value(dst, value),
            };
            format!("{}={value}", row.set_text)
        }
        (LearnTarget::Match(dst, to), LearnSource::Field(src, from)) => {
            let dst_text = part_text(dst, bits(to));
            match (src, from) == (dst, to) {
                true => dst_text,
                false => format!("{dst_text}={}", part_text(src, bits(from))),
            }
        }
        (LearnTarget::Load(dst, to), LearnSource::Immediate(value)) => {
            format!("load:{}->{}", hex(value), part_text(dst, bits(to)))
        }
        (LearnTarget::Load(dst, to), LearnSource::Field(src, from)) => {
            format!("load:{}->{}", part_text(src, bits(from)), part_text(dst, bits(to)))
        }
        (LearnTarget::Output, LearnSource::Field(src, from)) => {
            format!("output:{}", part_text(src, bits(from)))
        }
        (LearnTarget::Output, LearnSource::Immediate(value)) => format!("output:{value}"),
    }
}

/// Whether it is the whole of Nicira's number of a port.
fn is_short_port(field: Field, bits: BitRange) -> bool {
    field == Field::InPort && bits == BitRange { offset: 0, n_bits: WIDTH }
}

fn part_text(field: Field, bits: BitRange) -> String {
    let is_whole = bits == BitRange::all(field);
    if is_short_port(field, bits) {
        "NXM_OF_IN_PORT[]".to_owned()
    } else if is_whole {
        format!("{}[]", field.nxm_name())
    } else if field == Field::VlanVid {
        subfield::range_text("NXM_OF_VLAN_TCI", bits)
    } else {
        subfield::range_text(&field.nxm_name(), bits)
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, text};
    use crate::action::Action;
    use crate::text::PortNames;
    use crate::text::lex::Piece;

    fn printed(inner: &str) -> Result<String, String> {
        let Action::Learn(learn) = parse(Piece::whole(inner)).map_err(|e| e.to_string())? else {
            panic!("{inner} is another action")
        };
        Ok(text(&learn, &PortNames::default()))
    }

    /// Texts that `ovs-ofctl` prints so.
    #[test]
    fn learnt_entries_are_printed_as_they_are_written() {
        for same in [
            "table=1",
            "table=1,idle_timeout=5,hard_timeout=9,priority=7,send_flow_rem,delete_learned,\
             cookie=0x12,eth_type=0x800,nw_proto=6,NXM_OF_VLAN_TCI[0..11],\
             NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15],\
             load:0x1->NXM_NX_REG1[3],output:NXM_OF_IN_PORT[]",
            "table=2,in_port=3,OXM_OF_IN_PORT[],NXM_NX_REG0[0..3]=0x7,\
             load:OXM_OF_IN_PORT[]->NXM_NX_REG2[]",
            "table=1,eth_type=0x86dd,ipv6_dst=fe80::1,NXM_NX_IPV6_SRC[0..31]=NXM_NX_REG0[]",
            "table=1,eth_dst=00:11:22:33:44:55,reg3=0x5,output:NXM_NX_REG0[0..7]",
            "table=1,eth_type=0x800,nw_proto=6,tcp_flags=syn|ack,ip_frag=no,xreg1=0x5,\
             NXM_NX_XXREG0[0..63]=OXM_OF_PKT_REG1[],reg2=0,load:0->NXM_NX_REG3[0..3]",
        ] {
            assert_eq!(printed(same).as_deref(), Ok(same));
        }
        assert_eq!(printed(""), Ok("table=1".to_owned()));
        assert_eq!(
            printed("dl_type=0x800,NXM_OF_ETH_DST[]=00:11:22:33:44:55,load:5->reg0[0..3]"),
            Ok("table=1,eth_type=0x800,eth_dst=00:11:22:33:44:55,load:0x5->NXM_NX_REG0[0..3]"
                .to_owned())
        );
    }

    #[test]
    fn a_bad_part_is_refused_at_its_place() {
        for (bad, why) in [
            ("table=255", "column 7: no entry is learnt in table 255"),
            ("load:5->NXM_NX_REG1[3]", "column 6: 5 is too large: at most 1 (0x1)"),
            ("tabel=1", "column 1: unknown word of learn `tabel`; did you mean `table`?"),
            ("eth_dst", "column 1: `eth_dst` needs a value, or `eth_dst[]`"),
            (
                "NXM_NX_IPV6_SRC[0..63]=NXM_NX_REG0[]",
                "column 24: 32 bits do not go into 64: name as many of each",
            ),
            ("limit=5", "column 1: `limit` of learn is Open vSwitch's own"),
        ] {
            assert_eq!(printed(bad), Err(why.to_owned()), "{bad}");
        }
    }
}
