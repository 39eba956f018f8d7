//! The form of a command: what a line may say, word by word, in one text for parser, help and
//! completion.
//!
//! In `set PORTS rate RATE`, a word in small letters stands for itself (`on|off` for one of two),
//! and a word in capitals for a value of that kind. Where a line fits no form, the error names the
//! column and all that could stand there. Nothing here changes any state.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use generator::profile::{FRAME_SIZES, Rate};
use openflow::text::{decimal_where, parse_number};

use crate::port_list;

/// A word of a line, and its column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) column: usize,
    pub(crate) text: &'a str,
    /// The line from this word to its end.
    pub(crate) rest: &'a str,
}

/// The words of a line up to a `#` that begins one.
pub(crate) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(skip) = line[at..].find(|c: char| !c.is_whitespace()) {
        let start = at + skip;
        let end = line[start..].find(char::is_whitespace).map_or(line.len(), |len| start + len);
        if line[start..].starts_with('#') {
            break;
        }
        let column = line[..start].chars().count() + 1;
        found.push(Token { column, text: &line[start..end], rest: line[start..].trim_end() });
        at = end;
    }
    found
}

/// A value of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormValue {
    /// One of the words that stand for themselves, where a form has a choice.
    Word(String),
    /// Ports, ascending.
    Ports(Vec<usize>),
    /// A whole number.
    Number(u64),
    /// A rate.
    Rate(Rate),
    /// An Ethernet address.
    Mac(u64),
    /// An IP address and the length of its prefix, where it has one.
    Address(IpAddr, Option<u8>),
    /// Text: a file, or the rest of the line.
    Text(String),
}

/// A kind of value: its word in forms, what is allowed, and how it is read.
struct ValueKind {
    word: &'static str,
    allowed: &'static str,
    read: fn(&Token<'_>, usize) -> Result<FormValue, String>,
}

const KINDS: &[ValueKind] = &[
    ValueKind { word: "PORTS", allowed: "ports (0,2,4-6 or all)", read: ports },
    ValueKind { word: "PORT", allowed: "one port", read: one_port },
    ValueKind {
        word: "COUNT",
        allowed: "a number of packets (0: for ever)",
        read: |token, _| number(token, 0..=u64::MAX),
    },
    ValueKind {
        word: "SIZE",
        allowed: "a frame size with FCS, 64 to 9220 bytes",
        read: |token, _| number(token, frame_sizes()),
    },
    ValueKind {
        word: "STEP",
        allowed: "a step in bytes, 0 to 9220",
        read: |token, _| number(token, 0..=*frame_sizes().end()),
    },
    ValueKind {
        word: "RATE",
        allowed: "a rate (80 or 80% of the line, 1.5Mpps, 500Mbps, 1Gbps_l1, max)",
        read: rate,
    },
    ValueKind {
        word: "L4PORT",
        allowed: "a TCP or UDP port, 0 to 65535",
        read: |token, _| number(token, 0..=65_535),
    },
    ValueKind {
        word: "VID",
        allowed: "a VLAN ID, 0 to 4095",
        read: |token, _| number(token, 0..=4095),
    },
    ValueKind { word: "BITS3", allowed: "0 to 7", read: |token, _| number(token, 0..=7) },
    ValueKind { word: "BYTE", allowed: "0 to 255", read: |token, _| number(token, 0..=255) },
    ValueKind {
        word: "WORD32",
        allowed: "a number of 32 bits, decimal or 0x..",
        read: |token, _| number(token, 0..=u64::from(u32::MAX)),
    },
    ValueKind {
        word: "WORD24",
        allowed: "a number of 24 bits, decimal or 0x..",
        read: |token, _| number(token, 0..=0xff_ffff),
    },
    ValueKind {
        word: "MICROSECONDS",
        allowed: "a time in us",
        read: |token, _| number(token, 0..=86_400_000_000),
    },
    ValueKind {
        word: "SLOT",
        allowed: "a place in the sequence, 0 to 15",
        read: |token, _| number(token, 0..=15),
    },
    ValueKind {
        word: "SLOTS",
        allowed: "a number of packets, 0 (off) to 16",
        read: |token, _| number(token, 0..=16),
    },
    ValueKind {
        word: "BURST",
        allowed: "a number of packets, 1 to 64",
        read: |token, _| number(token, 1..=64),
    },
    ValueKind {
        word: "INDEX",
        allowed: "the number of a mask, 0 to 31",
        read: |token, _| number(token, 0..=31),
    },
    ValueKind {
        word: "OFFSET",
        allowed: "a byte of the packet, from 0 on",
        read: |token, _| number(token, 0..=*frame_sizes().end()),
    },
    ValueKind {
        word: "MASK",
        allowed: "up to 32 bits, each 0, 1, X or .",
        read: |token, _| Ok(FormValue::Text(token.text.to_owned())),
    },
    ValueKind {
        word: "MILLISECONDS",
        allowed: "a time in ms",
        read: |token, _| number(token, 0..=86_400_000),
    },
    ValueKind {
        word: "SECONDS",
        allowed: "a time in s",
        read: |token, _| number(token, 0..=86_400),
    },
    ValueKind { word: "NUMBER", allowed: "a number", read: |token, _| number(token, 0..=u64::MAX) },
    ValueKind { word: "MAC", allowed: "an Ethernet address (02:00:00:00:00:01)", read: mac },
    ValueKind { word: "IP", allowed: "an IP address, or one with its prefix (/24)", read: address },
    ValueKind {
        word: "FILE",
        allowed: "a file",
        read: |token, _| Ok(FormValue::Text(unquoted(token.text).to_owned())),
    },
    ValueKind {
        word: "WHAT",
        allowed: "a word",
        read: |token, _| Ok(FormValue::Text(token.text.to_owned())),
    },
    ValueKind {
        word: "TEXT",
        allowed: "text up to the end of the line",
        read: |token, _| Ok(FormValue::Text(unquoted(token.rest).to_owned())),
    },
];

/// The sizes that the generator takes, FCS included.
fn frame_sizes() -> RangeInclusive<u64> {
    u64::from(*FRAME_SIZES.start())..=u64::from(*FRAME_SIZES.end())
}

fn ports(token: &Token<'_>, count: usize) -> Result<FormValue, String> {
    let ports = port_list::parse(token.text, count).map_err(|error| error.to_string())?;
    Ok(FormValue::Ports(ports))
}

fn one_port(token: &Token<'_>, count: usize) -> Result<FormValue, String> {
    let ports = port_list::parse(token.text, count).map_err(|error| error.to_string())?;
    match ports.len() {
        1 => Ok(FormValue::Ports(ports)),
        _ => Err("one port is wanted".to_owned()),
    }
}

fn number(token: &Token<'_>, range: RangeInclusive<u64>) -> Result<FormValue, String> {
    let number: u64 = parse_number(token.text).map_err(|error| error.what)?;
    if !range.contains(&number) {
        return Err(format!("{number} is not from {} to {}", range.start(), range.end()));
    }
    Ok(FormValue::Number(number))
}

/// A bare number is percent of the line, as in Pktgen.
fn rate(token: &Token<'_>, _count: usize) -> Result<FormValue, String> {
    let is_bare = token.text.parse::<f64>().is_ok();
    let text = if is_bare { format!("{}%", token.text) } else { token.text.to_owned() };
    text.parse().map(FormValue::Rate).map_err(|error| format!("{error}"))
}

fn mac(token: &Token<'_>, _count: usize) -> Result<FormValue, String> {
    parse_mac(token.text)
        .map(FormValue::Mac)
        .ok_or_else(|| format!("{:?} is no Ethernet address", token.text))
}

fn parse_mac(text: &str) -> Option<u64> {
    let bytes = text.split(':').map(|byte| match byte.len() {
        1 | 2 if byte.bytes().all(|c| c.is_ascii_hexdigit()) => u64::from_str_radix(byte, 16).ok(),
        _ => None,
    });
    let bytes = bytes.collect::<Option<Vec<u64>>>()?;
    (bytes.len() == 6).then(|| bytes.iter().fold(0, |mac, byte| mac << 8 | byte))
}

fn address(token: &Token<'_>, _count: usize) -> Result<FormValue, String> {
    let wrong = || format!("{:?} is no IP address", token.text);
    let (address, bits) = match token.text.split_once('/') {
        Some((address, bits)) => {
            let refused = format_args!("{bits:?} is no length of a prefix");
            (address, Some(decimal_where::<u8>(bits, |_| true, refused)?))
        }
        None => (token.text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    match bits {
        Some(bits) if bits > most => Err(format!("a prefix has at most {most} bits")),
        Some(_) | None => Ok(FormValue::Address(address, bits)),
    }
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// One word of a form.
enum Item {
    /// One of these words.
    Words(&'static str),
    /// A value.
    Value(&'static ValueKind),
}

impl Item {
    fn of(word: &'static str) -> Self {
        match KINDS.iter().find(|kind| kind.word == word) {
            Some(kind) => Self::Value(kind),
            None => Self::Words(word),
        }
    }

    /// The words that fit here, for a message.
    fn allowed(&self) -> Vec<&'static str> {
        match self {
            Self::Words(words) => words.split('|').collect(),
            Self::Value(kind) => vec![kind.allowed],
        }
    }
}

/// Why a line does not fit a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The number of words that fit.
    pub(crate) depth: usize,
    /// The words that could follow them; empty where the line ought to end.
    pub(crate) allowed: Vec<&'static str>,
    /// The mistake in the word after them, where it is of the kind that is wanted.
    pub(crate) why: Option<String>,
}

/// Reads `line` by `form`, in a session of `count` ports: its values in order.
///
/// # Errors
/// The first difference of the line.
pub(crate) fn read(
    form: &'static str,
    line: &[Token<'_>],
    count: usize,
) -> Result<Vec<FormValue>, Mismatch> {
    let mut values = Vec::new();
    let mut items = form.split_whitespace();
    for depth in 0.. {
        let (item, token) = match (items.next(), line.get(depth)) {
            (None, None) => break,
            (None, Some(_)) => return Err(Mismatch { depth, allowed: Vec::new(), why: None }),
            (Some(word), token) => (Item::of(word), token),
        };
        let wrong = |why| Mismatch { depth, allowed: item.allowed(), why };
        let token = token.ok_or_else(|| wrong(None))?;
        match &item {
            Item::Words(words) => match words.split('|').find(|word| *word == token.text) {
                Some(word) if words.contains('|') => values.push(FormValue::Word(word.to_owned())),
                Some(_) => {}
                None => return Err(wrong(None)),
            },
            Item::Value(kind) => {
                values.push((kind.read)(token, count).map_err(|why| wrong(Some(why)))?);
                if kind.word == "TEXT" {
                    return Ok(values);
                }
            }
        }
    }
    Ok(values)
}

/// The words that may follow the complete words `line`, if the form fits them: words that stand for
/// themselves, and for ports `all` and their numbers.
pub(crate) fn candidates(form: &'static str, line: &[Token<'_>], count: usize) -> Vec<String> {
    let fits = match read(form, line, count) {
        Err(mismatch) => mismatch.depth == line.len(),
        Ok(_) => false,
    };
    let next = form.split_whitespace().nth(line.len()).filter(|_| fits);
    match next.map(Item::of) {
        Some(Item::Words(words)) => words.split('|').map(str::to_owned).collect(),
        Some(Item::Value(kind)) if kind.word.starts_with("PORT") => {
            let all = (kind.word == "PORTS").then(|| "all".to_owned());
            all.into_iter().chain((0..count).map(|port| port.to_string())).collect()
        }
        Some(Item::Value(_)) | None => Vec::new(),
    }
}
