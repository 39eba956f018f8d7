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

/// A part of the text.
#[derive(Clone, Debug)]
enum Piece<'a> {
    Text(&'a str),
    /// From its start on by a step, and below a modulus.
    Place(Start, u64, Option<u64>),
}

/// Start of a place.
#[derive(Clone, Copy, Debug)]
enum Start {
    Number(u64),
    Ipv4(u32),
    Mac(u64),
}

impl FlowSeries {
    /// Each entry.
    pub fn flow_mods(&self) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + '_ {
        self.flow_mods_from(0)
    }

    /// The entries from a number on, counted from 0; those before are not made. The text is read
    /// once: a switch's time may bound how fast entries are loaded, the lab's may not.
    pub fn flow_mods_from(
        &self,
        from: u64,
    ) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + '_ {
        self.each(from..self.count)
    }

    /// The first entry and the last, for a check of the text.
    pub(super) fn ends(&self) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + '_ {
        self.each([0, self.count.saturating_sub(1)].into_iter())
    }

    fn each<'a>(
        &'a self,
        numbers: impl Iterator<Item = u64> + 'a,
    ) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + 'a {
        let pieces = self.pieces();
        numbers.map(move |n| {
            let pieces = pieces.as_ref().map_err(Clone::clone)?;
            super::flow_mod("series", &text(pieces, n))
        })
    }

    fn pieces(&self) -> Result<Vec<Piece<'_>>, SettingsError> {
        let wrong = |place: &str| {
            let why = "a place is {START+n}, {START+n%COUNT} or {START+n*STEP%COUNT}, with a \
                       number, an IPv4 address or an Ethernet address as START";
            SettingsError::new("series", place, why)
        };
        let (mut pieces, mut rest) = (Vec::new(), self.flow.as_str());
        while let Some((before, behind)) = rest.split_once('{') {
            let (place, after) = behind.split_once('}').ok_or_else(|| wrong(behind))?;
            pieces.extend([Piece::Text(before), read(place).ok_or_else(|| wrong(place))?]);
            rest = after;
        }
        pieces.push(Piece::Text(rest));
        Ok(pieces)
    }
}

/// A place; none where it is no place.
fn read(place: &str) -> Option<Piece<'_>> {
    let above_zero = |text: &str| parse_decimal(text).filter(|number: &u64| *number > 0);
    let (start, count) = place.split_once("+n")?;
    let (step, modulus) = match count.split_once('%') {
        Some((step, modulus)) => (step, Some(above_zero(modulus)?)),
        None => (count, None),
    };
    let step = match step.strip_prefix('*') {
        Some(step) => above_zero(step)?,
        None if step.is_empty() => 1,
        None => return None,
    };
    let start = if let Some(number) = parse_decimal(start) {
        Start::Number(number)
    } else if let Ok(address) = start.parse::<Ipv4Addr>() {
        Start::Ipv4(address.to_bits())
    } else {
        let MacAddr(bytes) = start.parse().ok()?;
        Start::Mac(bytes.into_iter().fold(0, |bits, byte| bits << 8 | u64::from(byte)))
    };
    Some(Piece::Place(start, step, modulus))
}

/// The text of the entry `n`.
fn text(pieces: &[Piece<'_>], n: u64) -> String {
    let mut text = String::new();
    for piece in pieces {
        let (start, step, modulus) = match *piece {
            Piece::Text(piece) => {
                text += piece;
                continue;
            }
            Piece::Place(start, step, modulus) => (start, step, modulus),
        };
        let n = n.wrapping_mul(step);
        let n = modulus.map_or(n, |modulus| n % modulus);
        text += &match start {
            Start::Number(number) => number.wrapping_add(n).to_string(),
            Start::Ipv4(bits) => Ipv4Addr::from_bits(bits.wrapping_add(n as u32)).to_string(),
            Start::Mac(bits) => {
                let [_, _, bytes @ ..] = bits.wrapping_add(n).to_be_bytes();
                MacAddr(bytes).to_string()
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{FlowSeries, text};

    fn texts(flow: &str, count: u64) -> Result<Vec<String>, String> {
        let series = FlowSeries { count, flow: flow.to_owned() };
        let pieces = series.pieces().map_err(|error| error.to_string())?;
        Ok((0..count).map(|n| text(&pieces, n)).collect())
    }

    #[test]
    fn addresses_and_numbers_are_counted_up_in_steps() {
        for (flow, expected) in [
            (
                "{02:00:00:00:00:ff+n}",
                ["02:00:00:00:00:ff", "02:00:00:00:01:00", "02:00:00:00:01:01"],
            ),
            ("ip={10.0.0.255+n},", ["ip=10.0.0.255,", "ip=10.0.1.0,", "ip=10.0.1.1,"]),
            ("{9+n%2}/{1+n*10}", ["9/1", "10/11", "9/21"]),
            ("table={3+n*4%8}", ["table=3", "table=7", "table=3"]),
        ] {
            assert_eq!(texts(flow, 3).unwrap(), expected);
        }
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
    fn both_ends_are_read_for_a_check() {
        let series =
            FlowSeries { count: 1 << 40, flow: "tcp,tp_dst={1+n%9},actions=drop".to_owned() };
        assert_eq!(series.ends().filter(Result::is_ok).count(), 2);
        assert_eq!(series.flow_mods_from((1 << 40) - 2).count(), 2, "those before are not made");
    }
}
