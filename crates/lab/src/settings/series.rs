//! Many flow entries of one shape: a text with places that are counted up.
//!
//! In braces stands a start and how it is counted: `{10.0.0.1+n}`, `{02:00:00:00:00:01+n}`,
//! `{7+n}`, `{1+n%64}`, `{1+n*4%64}` (1, 5, 9 to 61, then 1 again). `n` runs from 0. The start says
//! what it is: an IPv4 address, an Ethernet address, or a number. A place that is none of these is
//! an error and never a text.

use std::net::Ipv4Addr;

use openflow::MacAddr;
use openflow::flow::FlowMod;
use openflow::text::parse_decimal;
use serde::{Deserialize, Serialize};

use super::SettingsError;

/// So many flow entries of one shape. The first two of
/// `table={0+n%2},ip,nw_dst={10.0.0.255+n},actions=output:2` are
/// `table=0,ip,nw_dst=10.0.0.255,actions=output:2` and
/// `table=1,ip,nw_dst=10.0.1.0,actions=output:2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSeries {
    /// Number of entries.
    pub count: u64,
    /// The text, with its places.
    pub flow: String,
}

/// Start of a place.
#[derive(Clone, Copy, Debug)]
enum Start {
    Number(u64),
    Ipv4(u32),
    Mac(u64),
}

/// Step of a place.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// From one entry to the next.
    step: u64,
    /// Below what it stays.
    modulus: Option<u64>,
}

impl Count {
    /// Sum added to the start in the entry `n`.
    fn at(self, n: u64) -> u64 {
        let counted = n.wrapping_mul(self.step);
        self.modulus.map_or(counted, |modulus| counted % modulus)
    }
}

#[derive(Clone, Debug)]
enum Piece<'a> {
    Text(&'a str),
    Place(Start, Count),
}

impl FlowSeries {
    /// The text of each entry.
    pub fn texts(&self) -> impl Iterator<Item = Result<String, SettingsError>> + '_ {
        let pieces = self.pieces();
        (0..self.count).map(move |n| Ok(text(pieces.as_ref().map_err(Clone::clone)?, n)))
    }

    /// Each entry.
    pub fn flow_mods(&self) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + '_ {
        self.texts().map(|text| super::flow_mod("series", &text?))
    }

    /// The texts of the first entry and the last.
    pub(super) fn ends(&self) -> impl Iterator<Item = Result<String, SettingsError>> + '_ {
        let pieces = self.pieces();
        let ends = [0, self.count.saturating_sub(1)];
        ends.into_iter().map(move |n| Ok(text(pieces.as_ref().map_err(Clone::clone)?, n)))
    }

    fn pieces(&self) -> Result<Vec<Piece<'_>>, SettingsError> {
        let wrong = |place: &str| {
            let why = "a place is {START+n}, {START+n%COUNT} or {START+n*STEP%COUNT}, with a \
                       number, an IPv4 address or an Ethernet address as START";
            SettingsError::new("series", place, why)
        };
        let mut pieces = Vec::new();
        let mut rest = self.flow.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let (place, after) = behind.split_once('}').ok_or_else(|| wrong(behind))?;
            pieces.push(Piece::Text(before));
            pieces.push(piece(place).ok_or_else(|| wrong(place))?);
            rest = after;
        }
        pieces.push(Piece::Text(rest));
        Ok(pieces)
    }
}

fn piece(place: &str) -> Option<Piece<'static>> {
    let (start, count) = place.split_once("+n")?;
    let (step, modulus) = match count.split_once('%') {
        Some((step, modulus)) => {
            (step, Some(parse_decimal(modulus).filter(|modulus| *modulus > 0)?))
        }
        None => (count, None),
    };
    let step = match step.strip_prefix('*') {
        Some(step) => parse_decimal(step).filter(|step| *step > 0)?,
        None if step.is_empty() => 1,
        None => return None,
    };
    let start = if let Some(number) = parse_decimal(start) {
        Start::Number(number)
    } else if let Ok(address) = start.parse::<Ipv4Addr>() {
        Start::Ipv4(address.to_bits())
    } else {
        Start::Mac(mac_bits(start.parse().ok()?))
    };
    Some(Piece::Place(start, Count { step, modulus }))
}

fn mac_bits(MacAddr(bytes): MacAddr) -> u64 {
    bytes.into_iter().fold(0, |bits, byte| bits << 8 | u64::from(byte))
}

fn text(pieces: &[Piece<'_>], n: u64) -> String {
    let place = |start: Start, count: Count| {
        let n = count.at(n);
        match start {
            Start::Number(number) => number.wrapping_add(n).to_string(),
            Start::Ipv4(bits) => Ipv4Addr::from_bits(bits.wrapping_add(n as u32)).to_string(),
            Start::Mac(bits) => {
                let [_, _, bytes @ ..] = bits.wrapping_add(n).to_be_bytes();
                MacAddr(bytes).to_string()
            }
        }
    };
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Place(start, count) => place(*start, *count),
    };
    pieces.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::FlowSeries;

    fn texts(flow: &str, count: u64) -> Result<Vec<String>, String> {
        let series = FlowSeries { count, flow: flow.to_owned() };
        series.texts().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_and_numbers_are_counted_up() {
        let flow = "dl_dst={02:00:00:00:00:ff+n},tp_dst={9+n%2},actions=drop";
        let expected = [
            "dl_dst=02:00:00:00:00:ff,tp_dst=9,actions=drop",
            "dl_dst=02:00:00:00:01:00,tp_dst=10,actions=drop",
            "dl_dst=02:00:00:00:01:01,tp_dst=9,actions=drop",
        ];
        assert_eq!(texts(flow, 3).unwrap(), expected);
    }

    #[test]
    fn places_are_counted_in_steps() {
        let flow = "table={3+n*4%8},tp_dst={1+n*10},actions=drop";
        let expected = [
            "table=3,tp_dst=1,actions=drop",
            "table=7,tp_dst=11,actions=drop",
            "table=3,tp_dst=21,actions=drop",
        ];
        assert_eq!(texts(flow, 3).unwrap(), expected);
    }

    #[test]
    fn a_place_that_is_none_is_named() {
        for place in ["x+n", "1", "1+n%0", "1+n%x", "1+m", "", "1+n*", "1+n*0", "1+n4", "1+n%8*2"] {
            let error = texts(&format!("tp_dst={{{place}}},actions=drop"), 1).unwrap_err();
            assert!(error.contains("START"), "{place}: {error}");
        }
        assert!(texts("tp_dst={1+n,actions=drop", 1).is_err(), "no end");
    }

    #[test]
    fn both_ends_are_shown_for_a_check() {
        let series = FlowSeries { count: 1 << 40, flow: "tp_dst={1+n%9},actions=drop".to_owned() };
        assert_eq!(series.ends().count(), 2);
    }
}
