//! Parts of fields in text, `NXM_NX_REG0[0..15]`, and the actions with them.
//!
//! A field is printed by its name of Nicira's match, as `ovs-ofctl` prints it; its other names are
//! taken too.

use super::TextError;
use super::lex::Piece;
use super::value::{number, unsigned};
use super::words::unknown;
use crate::action::{Action, MAX_LEN_NO_BUFFER};
use crate::field::{ALL_FIELDS, Field};
use crate::subfield::BitRange;

/// `reg0[0..15]`, `reg0[3]`, `reg0[]` or `reg0`, by any name of the field.
pub(super) fn subfield(piece: Piece<'_>) -> Result<(Field, BitRange), TextError> {
    let piece = piece.trimmed();
    let (name, range) = match piece.split_once("[") {
        Some((name, range)) => (name.trimmed(), Some(range)),
        None => (piece, None),
    };
    let field = named(name)?;
    let row = field.row();
    Ok((field, bits_of(range, row.name, row.bits)?))
}

/// The bits behind the `[` after the name of a field of so many; all of them where there is none.
pub(super) fn bits_of(
    range: Option<Piece<'_>>,
    name: &str,
    width: u16,
) -> Result<BitRange, TextError> {
    let all = BitRange { offset: 0, n_bits: width };
    let Some(range) = range else { return Ok(all) };
    let inner = range.text.strip_suffix(']').map(|inner| range.part(inner, range.at));
    let inner = inner.ok_or_else(|| range.error("`]` is missing after the bits"))?.trimmed();
    if inner.text.is_empty() {
        return Ok(all);
    }
    let bit = |piece: Piece<'_>| number(piece.trimmed(), 16).map(|bit| bit as u16);
    let (first, last) = match inner.split_once("..") {
        Some((first, last)) => (bit(first)?, bit(last)?),
        None => (bit(inner)?, bit(inner)?),
    };
    let bits = BitRange { offset: first, n_bits: last.saturating_sub(first).saturating_add(1) };
    if first > last || last >= width {
        let last = width - 1;
        return Err(inner.error(format!("{name} has the bits 0 to {last}, written FIRST..LAST")));
    }
    Ok(bits)
}

/// The field of one of its names, or of that of Nicira's match or of OXM in capitals.
fn named(name: Piece<'_>) -> Result<Field, TextError> {
    let own = Field::from_name(name.text);
    let oxm = |field: Field| format!("OXM_OF_{}", field.row().name.to_uppercase());
    let mut fields = ALL_FIELDS.iter().map(|row| row.field);
    let found = own
        .or_else(|| fields.find(|field| field.nxm_name() == name.text || oxm(*field) == name.text));
    let names = || ALL_FIELDS.iter().flat_map(|row| [row.name, row.set_text]);
    found.ok_or_else(|| unknown("field", name, names()))
}

/// A part of a field, by the name that [`Field::nxm_name`] gives; of words that are no field and no
/// bits, their form.
fn text(field: &str, bits: Option<BitRange>) -> String {
    let known = Field::from_name(field);
    let name = known.map_or_else(|| field.to_owned(), Field::nxm_name);
    let Some(range) = bits else { return format!("{name}[FIRST..LAST]") };
    if known.is_some_and(|field| BitRange::all(field) == range) {
        format!("{name}[]")
    } else {
        range_text(&name, range)
    }
}

/// A part of a field.
pub(super) fn part_text(field: Field, bits: BitRange) -> String {
    text(field.row().name, Some(bits))
}

/// A part of the field of a name.
pub(super) fn range_text(name: &str, BitRange { offset, n_bits }: BitRange) -> String {
    match n_bits {
        1 => format!("{name}[{offset}]"),
        _ => format!("{name}[{offset}..{}]", u32::from(offset) + u32::from(n_bits) - 1),
    }
}

/// `load:VALUE->FIELD[FIRST..LAST]`.
pub(crate) fn load(piece: Piece<'_>) -> Result<Action, TextError> {
    let (left, right) = piece
        .split_once("->")
        .ok_or_else(|| piece.error("load takes VALUE->FIELD[FIRST..LAST]"))?;
    let (dst, bits) = subfield(right)?;
    if bits.n_bits > 64 {
        return Err(right.error("load writes 64 bits at most"));
    }
    settable(right, dst)?;
    let value = number(left.trimmed(), bits.n_bits)? as u64;
    Ok(Action::Load { bits, dst, value })
}

/// `move:FIELD[FIRST..LAST]->FIELD[FIRST..LAST]`.
pub(crate) fn copy(piece: Piece<'_>) -> Result<Action, TextError> {
    let (left, right) = piece
        .split_once("->")
        .ok_or_else(|| piece.error("move takes FIELD[FIRST..LAST]->FIELD[FIRST..LAST]"))?;
    let ((src, from), (dst, to)) = (subfield(left)?, subfield(right)?);
    if from.n_bits != to.n_bits {
        let (from, to) = (from.n_bits, to.n_bits);
        return Err(right.error(format!("{from} bits do not go into {to}: name as many of each")));
    }
    settable(right, dst)?;
    let (src_offset, dst_offset) = (from.offset, to.offset);
    Ok(Action::Move { n_bits: from.n_bits, src_offset, dst_offset, src, dst })
}

pub(crate) fn format_copy(words: &[String]) -> String {
    let [n_bits, from, to, src, dst] = words else { return String::new() };
    let number = |word: &String| word.parse::<u16>().ok();
    let part = |field: &str, offset: &String| match (number(offset), number(n_bits)) {
        (Some(offset), Some(n_bits)) => text(field, Some(BitRange { offset, n_bits })),
        (_, _) => text(field, None),
    };
    format!("move:{}->{}", part(src, from), part(dst, to))
}

/// `push:FIELD[FIRST..LAST]`, without the word.
pub(crate) fn push(piece: Piece<'_>) -> Result<Action, TextError> {
    let (src, BitRange { offset, n_bits }) = subfield(piece)?;
    Ok(Action::Push { offset, src, n_bits })
}

pub(crate) fn format_push(words: &[String]) -> String {
    format_part("push", words)
}

/// `pop:FIELD[FIRST..LAST]`, without the word.
pub(crate) fn pop(piece: Piece<'_>) -> Result<Action, TextError> {
    let (dst, BitRange { offset, n_bits }) = subfield(piece)?;
    settable(piece, dst)?;
    Ok(Action::Pop { offset, dst, n_bits })
}

pub(crate) fn format_pop(words: &[String]) -> String {
    format_part("pop", words)
}

/// An action on a part of a field, which is given by its lowest bit, the field, its number of bits.
fn format_part(name: &str, words: &[String]) -> String {
    let [offset, field, n_bits] = words else { return String::new() };
    let bits = match (offset.parse(), n_bits.parse()) {
        (Ok(offset), Ok(n_bits)) => Some(BitRange { offset, n_bits }),
        (_, _) => None,
    };
    format!("{name}:{}", text(field, bits))
}

/// `check_pkt_larger(BYTES)->FIELD[BIT]`, without the word.
pub(crate) fn check_pkt_larger(piece: Piece<'_>) -> Result<Action, TextError> {
    let parts = piece.split_once("->").and_then(|(bytes, place)| {
        let inner = bytes.text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some((bytes.part(inner, bytes.at + 1), place.trimmed()))
    });
    let Some((bytes, place)) = parts else {
        return Err(piece.error("check_pkt_larger takes (BYTES)->FIELD[BIT]"));
    };
    let (dst, BitRange { offset, n_bits }) = subfield(place)?;
    if n_bits != 1 {
        return Err(place.error("check_pkt_larger writes one bit: FIELD[BIT]"));
    }
    settable(place, dst)?;
    Ok(Action::CheckPktLarger { pkt_len: unsigned(bytes.trimmed())?, offset, dst })
}

pub(crate) fn format_check_pkt_larger(words: &[String]) -> String {
    let [pkt_len, offset, dst] = words else { return String::new() };
    let bit = offset.parse().ok().map(|offset| BitRange { offset, n_bits: 1 });
    match bit {
        Some(_) => format!("check_pkt_larger({pkt_len})->{}", text(dst, bit)),
        None => "check_pkt_larger(BYTES)->FIELD[BIT]".to_owned(),
    }
}

/// `output:FIELD[FIRST..LAST]`, without the word.
pub(super) fn output(piece: Piece<'_>) -> Result<Action, TextError> {
    let (src, bits) = subfield(piece)?;
    if bits.n_bits > 64 {
        return Err(piece.error("a port's number has 64 bits at most"));
    }
    Ok(Action::OutputReg { bits, src, max_len: MAX_LEN_NO_BUFFER })
}

pub(crate) fn format_output(words: &[String]) -> String {
    let [bits, src, _] = words else { return String::new() };
    format!("output:{}", text(src, encoded(bits)))
}

/// Refuses a field that no action writes.
pub(super) fn settable(piece: Piece<'_>, field: Field) -> Result<(), TextError> {
    if field.row().settable {
        return Ok(());
    }
    Err(piece.error(format!("no action sets {}", piece.text)))
}

pub(crate) fn format_load(words: &[String]) -> String {
    let [bits, dst, value] = words else { return String::new() };
    format!("load:{value}->{}", text(dst, encoded(bits)))
}

/// The bits of a word that is their encoding.
fn encoded(word: &str) -> Option<BitRange> {
    word.parse().ok().map(BitRange::from_ofs_nbits)
}
