//! Values of fields in text: numbers, ports and addresses, with their masks.

use super::lex::Piece;
use super::{PortNames, TextError};
use crate::field::{Field, Format};
use crate::id::{MacAddr, PortNo};
use crate::matching::MatchField;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A decimal number, or a hexadecimal one with `0x`, that the type can hold.
///
/// # Errors
/// When it is no number, begins with a zero as those of other notations do, or is too large.
pub fn parse_number<T: TryFrom<u128>>(text: &str) -> Result<T, TextError> {
    unsigned(Piece::whole(text))
}

/// A number in decimal digits only, whole or with a fraction, of a command line or a configuration.
/// One that begins with a zero before further digits is none; [`zero_advice`] explains it.
#[must_use]
pub fn parse_decimal<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.trim_start_matches(['+', '-']);
    if zero_readings(digits).is_some() { None } else { text.parse().ok() }
}

/// The same where only some numbers are allowed, as the sentence says.
///
/// # Errors
/// The sentence, when it is no such number.
pub fn decimal_where<T: FromStr>(
    text: &str,
    is_allowed: impl FnOnce(&T) -> bool,
    sentence: impl fmt::Display,
) -> Result<T, String> {
    let number = parse_decimal(text).filter(is_allowed);
    number.ok_or_else(|| format!("{sentence}{}", zero_advice(text)))
}

/// The end of the refusal of a text with decimal numbers: both readings of one that begins with a
/// zero before further digits; nothing where there is none.
#[must_use]
pub fn zero_advice(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
    words.into_iter().find_map(zero_readings).map_or(String::new(), |why| format!("; {why}"))
}

/// Both readings of the digits that a word begins with, where the first is a zero before others.
fn zero_readings(word: &str) -> Option<String> {
    let digits = &word[..word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len())];
    if digits.len() < 2 || !digits.starts_with('0') {
        return None;
    }
    let plain = digits.trim_start_matches('0');
    let decimal = if plain.is_empty() { "0" } else { plain };
    let octal = u64::from_str_radix(digits, 8).map(|octal| octal.to_string()).ok();
    let octal = octal.filter(|octal| octal != decimal);
    let or = octal.map_or(String::new(), |octal| format!(", or {octal} if it is octal"));
    Some(format!("`{digits}` begins with a zero: write {decimal}{or}"))
}

pub(super) fn number(piece: Piece<'_>, bits: u16) -> Result<u128, TextError> {
    no_leading_zero(piece)?;
    let hex = piece.text.strip_prefix("0x").or_else(|| piece.text.strip_prefix("0X"));
    let parsed = match hex {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if piece.text.starts_with('+') => None,
        None => piece.text.parse::<u128>().ok(),
    };
    let value = parsed.ok_or_else(|| piece.error(format!("`{}` is not a number", piece.text)))?;
    let max = u128::MAX >> (128 - bits);
    if value > max {
        return Err(piece.error(format!("{} is too large: at most {max} ({max:#x})", piece.text)));
    }
    Ok(value)
}

/// Refuses a zero before further digits: some read the rest as octal, and some forgot the `x`.
fn no_leading_zero(piece: Piece<'_>) -> Result<(), TextError> {
    let digits = piece.text.trim_start_matches('0');
    let is_plain = piece.text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if piece.text.len() < 2 || digits.len() == piece.text.len() || !is_plain {
        return Ok(());
    }
    let digits = if digits.is_empty() { "0" } else { digits };
    let or = if digits.parse::<u128>().is_ok() { format!(" or {digits}") } else { String::new() };
    Err(piece.error(format!("`{0}` begins with a zero: write 0x{0}{or}", piece.text)))
}

/// A number that the type can hold.
pub(super) fn unsigned<T: TryFrom<u128>>(piece: Piece<'_>) -> Result<T, TextError> {
    let bits = u16::try_from(size_of::<T>() * 8).unwrap_or(128);
    let value = number(piece, bits)?;
    T::try_from(value).map_err(|_| piece.error(format!("`{}` is too large", piece.text)))
}

/// A port: a number, or a reserved port's name. 16-bit numbers of 1.0's reserved ports lead to
/// their names, as in `ovs-ofctl`.
///
/// # Errors
/// When it is neither.
pub fn parse_port(text: &str) -> Result<PortNo, TextError> {
    port(Piece::whole(text))
}

pub(super) fn port(piece: Piece<'_>) -> Result<PortNo, TextError> {
    if let Some(port) = PortNo::from_reserved_name(piece.text) {
        return Ok(port);
    }
    no_leading_zero(piece)?;
    let Ok(value) = unsigned::<u32>(piece) else {
        let no_port = || {
            let what = format!(
                "`{}` is not a port: a name, a number or one of IN_PORT, TABLE, NORMAL, FLOOD, \
                 ALL, CONTROLLER, LOCAL, ANY",
                piece.text
            );
            piece.error(what).at_port()
        };
        return piece.named_port().ok_or_else(no_port);
    };
    Ok(PortNo(if (0xfff8..=0xffff).contains(&value) { value | 0xffff_0000 } else { value }))
}

/// A field's value and mask: `10.0.0.0/8`, `0x10/0xff`, `00:11:22:33:44:55`.
///
/// # Errors
/// When the value does not have the field's form or width, or the field takes no mask.
pub fn parse_value(field: Field, text: &str) -> Result<(u128, u128), TextError> {
    value(field, Piece::whole(text))
}

pub(super) fn value(field: Field, piece: Piece<'_>) -> Result<(u128, u128), TextError> {
    let is_named = !piece.text.starts_with(|first: char| first.is_ascii_digit());
    if is_named && let Some(words) = words_of(field.row().format) {
        return words(piece);
    }
    let Some((left, right)) = piece.split_once("/") else {
        return Ok((single(field, piece)?, field.full_mask()));
    };
    if !field.row().maskable {
        return Err(right.error("the field takes no mask"));
    }
    no_leading_zero(right)?;
    let mask = match field.row().format {
        Format::Ipv4 | Format::Ipv6 => match right.text.parse::<u16>() {
            Ok(prefix) if prefix <= field.row().bits => prefix_mask(field, prefix),
            Ok(prefix) => return Err(right.error(format!("a prefix of {prefix} is too long"))),
            Err(_) => single(field, right)?,
        },
        Format::Dec
        | Format::Hex
        | Format::Mac
        | Format::Port
        | Format::TcpFlags
        | Format::Fragment => single(field, right)?,
    };
    Ok((single(field, left)? & mask, mask))
}

fn single(field: Field, piece: Piece<'_>) -> Result<u128, TextError> {
    match field.row().format {
        Format::Dec | Format::Hex | Format::TcpFlags | Format::Fragment => {
            number(piece, field.row().bits)
        }
        Format::Port => Ok(u128::from(port(piece)?.0)),
        Format::Mac => {
            let mac: MacAddr = piece
                .text
                .parse()
                .map_err(|error| piece.error(format!("`{}` is {error}", piece.text)))?;
            Ok(u128::from(mac.to_u64()))
        }
        Format::Ipv4 => {
            let address: Ipv4Addr = piece
                .text
                .parse()
                .map_err(|_| piece.error(format!("`{}` is not an IPv4 address", piece.text)))?;
            Ok(u128::from(u32::from(address)))
        }
        Format::Ipv6 => {
            let address: Ipv6Addr = piece
                .text
                .parse()
                .map_err(|_| piece.error(format!("`{}` is not an IPv6 address", piece.text)))?;
            Ok(u128::from(address))
        }
    }
}

fn prefix_mask(field: Field, prefix: u16) -> u128 {
    let host_bits = u32::from(field.row().bits - prefix);
    field.full_mask() & u128::MAX.checked_shl(host_bits).unwrap_or(0)
}

/// A value as `ovs-ofctl` prints it.
#[must_use]
pub fn format_value(field: Field, value: u128) -> String {
    match field.row().format {
        Format::Dec => value.to_string(),
        Format::Hex if field == Field::EthType => format!("0x{value:04x}"),
        Format::Hex if field == Field::Ipv6Flabel => format!("0x{value:05x}"),
        Format::Hex => hex(value),
        Format::TcpFlags => tcp_flags_text(value, field.full_mask()),
        Format::Fragment => fragment_text(value, field.full_mask()),
        Format::Port => PortNo(low(value)).to_string(),
        Format::Mac => {
            MacAddr::from_u64(u64::try_from(value & field.full_mask()).unwrap_or(0)).to_string()
        }
        Format::Ipv4 => Ipv4Addr::from(low(value)).to_string(),
        Format::Ipv6 => Ipv6Addr::from(value).to_string(),
    }
}

/// Zero has no `0x`.
pub(super) fn hex(number: u128) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

/// Reads a value in words, with its mask.
type Words = fn(Piece<'_>) -> Result<(u128, u128), TextError>;

/// The reader of values that are words.
fn words_of(format: Format) -> Option<Words> {
    match format {
        Format::TcpFlags => Some(tcp_flags),
        Format::Fragment => Some(fragment),
        Format::Dec | Format::Hex | Format::Port | Format::Mac | Format::Ipv4 | Format::Ipv6 => {
            None
        }
    }
}

/// The flags of TCP by bit, from the lowest; the last three have no names.
const TCP_FLAGS: [&str; 12] =
    ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"];

/// `syn|ack` for exactly these flags, `+syn-ack` for some that are set and some that are not.
fn tcp_flags(piece: Piece<'_>) -> Result<(u128, u128), TextError> {
    let bit = |name: &str| {
        let known = TCP_FLAGS.iter().position(|flag| *flag == name);
        known.map(|bit| 1 << bit).ok_or_else(|| {
            let names = TCP_FLAGS.join(", ");
            piece.error(format!("`{name}` is no flag of TCP: write some of {names}"))
        })
    };
    if !piece.text.starts_with(['+', '-']) {
        let mut flags = piece.text.split('|').map(bit);
        let value = flags.try_fold(0, |value, flag| flag.map(|flag: u128| value | flag))?;
        return Ok((value, Field::TcpFlags.full_mask()));
    }
    let (mut value, mut mask, mut rest) = (0, 0, piece.text);
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |end| end + 1);
        let flag = bit(&rest[1..end])?;
        if mask & flag != 0 {
            return Err(piece.error(format!("{} is given twice", &rest[1..end])));
        }
        mask |= flag;
        value |= if sign == '+' { flag } else { 0 };
        rest = &rest[end..];
    }
    Ok((value, mask))
}

fn tcp_flags_text(value: u128, mask: u128) -> String {
    let flags = TCP_FLAGS.iter().enumerate();
    if mask == Field::TcpFlags.full_mask() {
        let set: Vec<&str> =
            flags.filter(|(bit, _)| value >> bit & 1 != 0).map(|(_, name)| *name).collect();
        return if set.is_empty() { "0".to_owned() } else { set.join("|") };
    }
    let signed = flags.filter(|(bit, _)| mask >> bit & 1 != 0);
    signed
        .map(|(bit, name)| format!("{}{name}", if value >> bit & 1 != 0 { '+' } else { '-' }))
        .collect()
}

/// A word for fragments, with value and mask.
type FragmentWord = (&'static str, u128, u128);

const FRAGMENTS: [FragmentWord; 5] =
    [("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

fn fragment(piece: Piece<'_>) -> Result<(u128, u128), TextError> {
    let found = FRAGMENTS.iter().find(|(word, ..)| *word == piece.text);
    found.map(|(_, value, mask)| (*value, *mask)).ok_or_else(|| {
        let words: Vec<&str> = FRAGMENTS.iter().map(|(word, ..)| *word).collect();
        piece.error(format!("`{}` is none of {}", piece.text, words.join(", ")))
    })
}

fn fragment_text(value: u128, mask: u128) -> String {
    let is_it = |word: &&FragmentWord| (word.1, word.2) == (value, mask);
    match FRAGMENTS.iter().find(is_it) {
        Some((word, ..)) => (*word).to_owned(),
        None => format!("{}/{}", hex(value), hex(mask)),
    }
}

/// The low 32 bits.
fn low(value: u128) -> u32 {
    u32::try_from(value & u128::from(u32::MAX)).unwrap_or(0)
}

/// A flow label's mask has all its digits, as the label has.
fn format_mask(held: &MatchField) -> String {
    if held.field == Field::Ipv6Flabel {
        format!("0x{:05x}", held.mask)
    } else {
        format!("{:#x}", held.mask)
    }
}

/// A match field's value with its mask as `ovs-ofctl` prints it.
#[must_use]
pub fn format_field(held: &MatchField) -> String {
    field_text(held, &PortNames::default())
}

/// The same with these names for ports.
pub(super) fn field_text(held: &MatchField, names: &PortNames) -> String {
    let value = if held.field.row().format == Format::Port {
        names.text_of(PortNo(low(held.value)))
    } else {
        format_value(held.field, held.value)
    };
    if held.is_exact() {
        return value;
    }
    match held.field.row().format {
        Format::Dec => format!("{}/{:#x}", hex(held.value), held.mask),
        Format::TcpFlags => tcp_flags_text(held.value, held.mask),
        Format::Fragment => fragment_text(held.value, held.mask),
        Format::Hex | Format::Port => format!("{value}/{}", format_mask(held)),
        Format::Mac => format!("{value}/{}", format_value(held.field, held.mask)),
        Format::Ipv4 | Format::Ipv6 => {
            let bits = held.field.row().bits;
            let prefix = u16::try_from(held.mask.count_ones()).unwrap_or(bits);
            if prefix_mask(held.field, prefix) == held.mask {
                format!("{value}/{prefix}")
            } else {
                format!("{value}/{}", format_value(held.field, held.mask))
            }
        }
    }
}
