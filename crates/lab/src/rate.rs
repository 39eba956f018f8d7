//! Link rates as people write them, `100M`, `1G`, `none`, and the line time of frames; and the
//! releases of OpenFlow.
//!
//! Decimal prefixes, bit/s. Must never guess: a number without a unit is bit/s, anything else is
//! an error that says what is allowed.

use std::fmt;
use std::str::FromStr;

use openflow::Version;
use openflow::text::{parse_decimal, zero_advice};
use serde::{Deserialize, Serialize};

/// The rate of a link in bit/s, or no shaping at all; written `100M` or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkRate(pub Option<u64>);

impl TryFrom<String> for LinkRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<LinkRate> for String {
    fn from(rate: LinkRate) -> Self {
        rate.to_string()
    }
}

/// FCS, preamble and gap: what the line carries beside the bytes that Linux counts.
pub const LINE_OVERHEAD: u64 = 24;

/// The shortest line time of a frame in bytes: 64, preamble and gap.
pub const LINE_MINIMUM: u64 = 84;

/// Bytes of line time that `packets` frames with `bytes` bytes (without FCS) take at least.
pub fn line_bytes(bytes: u64, packets: u64) -> u64 {
    (bytes + LINE_OVERHEAD * packets).max(LINE_MINIMUM * packets)
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let error = || {
            let advice = zero_advice(text);
            format!(
                "{text:?} is no rate: write `none`, or a number with K, M or G, from 1M to \
                 100G{advice}"
            )
        };
        let (digits, factor) = match text.char_indices().last().ok_or_else(error)? {
            (at, 'k' | 'K') => (&text[..at], 1e3),
            (at, 'm' | 'M') => (&text[..at], 1e6),
            (at, 'g' | 'G') => (&text[..at], 1e9),
            _ => (text, 1.0),
        };
        let number: f64 = parse_decimal(digits).ok_or_else(error)?;
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

/// The OpenFlow version of a cell by its release, `1.3`; the error names the known ones.
pub fn release(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| {
        let known: Vec<&str> = Version::ALL.iter().map(|known| known.row().release).collect();
        format!("{text:?} is no OpenFlow version of the lab: {}", known.join(" or "))
    })
}

#[cfg(test)]
mod tests {
    use super::{LinkRate, release};
    use openflow::Version;

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
        for text in ["1.3", "OpenFlow13"] {
            assert_eq!(release(text), Ok(Version::V1_3), "{text}");
        }
        assert!(release("1.9").unwrap_err().ends_with("1.0 or 1.1 or 1.2 or 1.3 or 1.4 or 1.5"));
    }
}
