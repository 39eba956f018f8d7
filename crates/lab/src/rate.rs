//! Link rates as people write them: `100M`, `1G`, `none`; and the two OpenFlow versions.
//!
//! Decimal prefixes, bit/s. Must never guess: a number without a unit is bit/s, anything else is
//! an error that says what is allowed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rate of a link in bit/s, or no shaping at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRate(pub Option<u64>);

/// A rate that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no rate: write `none`, or a number with K, M or G, from 1M to 100G")]
pub struct RateError(String);

impl FromStr for LinkRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let error = || RateError(text.to_owned());
        let (digits, factor) = match text.char_indices().last().ok_or_else(error)? {
            (at, 'k' | 'K') => (&text[..at], 1e3),
            (at, 'm' | 'M') => (&text[..at], 1e6),
            (at, 'g' | 'G') => (&text[..at], 1e9),
            _ => (text, 1.0),
        };
        let number: f64 = digits.parse().map_err(|_| error())?;
        let bps = number * factor;
        if !(1e6..=1e11).contains(&bps) {
            return Err(error());
        }
        Ok(Self(Some(bps.round() as u64)))
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.pad("none"),
            Some(bps) if bps % 1_000_000_000 == 0 => f.pad(&format!("{}G", bps / 1_000_000_000)),
            Some(bps) if bps % 1_000_000 == 0 => f.pad(&format!("{}M", bps / 1_000_000)),
            Some(bps) => f.pad(&format!("{}K", bps as f64 / 1e3)),
        }
    }
}

/// The OpenFlow version that switch and controller speak in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OfVersion {
    /// OpenFlow 1.0, wire version 0x01.
    #[serde(rename = "1.0")]
    V10,
    /// OpenFlow 1.3, wire version 0x04.
    #[serde(rename = "1.3")]
    V13,
}

impl OfVersion {
    /// As Open vSwitch's tools write it.
    #[must_use]
    pub fn ovs_name(self) -> &'static str {
        match self {
            Self::V10 => "OpenFlow10",
            Self::V13 => "OpenFlow13",
        }
    }
}

impl fmt::Display for OfVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V10 => "1.0",
            Self::V13 => "1.3",
        })
    }
}

impl FromStr for OfVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.0" | "OpenFlow10" => Ok(Self::V10),
            "1.3" | "OpenFlow13" => Ok(Self::V13),
            other => Err(format!("{other:?} is no OpenFlow version of the lab: 1.0 or 1.3")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkRate, OfVersion};

    #[test]
    fn rates_are_read_and_printed() {
        for (text, bps) in [
            ("100M", Some(100_000_000)),
            ("1G", Some(1_000_000_000)),
            ("2.5g", Some(2_500_000_000)),
            ("none", None),
            ("1500K", Some(1_500_000)),
            ("10000000", Some(10_000_000)),
        ] {
            assert_eq!(text.parse::<LinkRate>().unwrap().0, bps, "{text}");
        }
        for text in ["100M", "1G", "none", "1500K", "2500M"] {
            assert_eq!(text.parse::<LinkRate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "M", "fast", "-1M", "1T", "12", "1e30G", "NaN", "infG", "1µ"] {
            assert!(text.parse::<LinkRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_have_both_spellings() {
        for version in [OfVersion::V10, OfVersion::V13] {
            assert_eq!(version.to_string().parse(), Ok(version));
            assert_eq!(version.ovs_name().parse(), Ok(version));
        }
        assert!("1.4".parse::<OfVersion>().is_err());
    }
}
