//! The rate of a stream and its text: `80%`, `1.5Mpps`, `500Mbps`, `1Gbps_l1`, `max`.
//!
//! Prefixes are decimal. A rate in bits is one of whole frames, so it holds over any mix of sizes.
//! It must never be turned into frames a second by the length of a single frame.

use std::fmt;
use std::str::FromStr;

use openflow::text::{parse_decimal, zero_advice};
use serde::{Deserialize, Serialize};

use super::LAYER_1_OVERHEAD;

/// The rate of a stream, in one of several units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rate {
    /// Per cent of what the line carries at layer 1.
    PercentOfLine(f64),
    /// Frames a second.
    PacketsPerSecond(f64),
    /// Bits a second at layer 1: frame, FCS, preamble and gap.
    BitsPerSecondL1(f64),
    /// Bits a second at layer 2: frame and FCS.
    BitsPerSecondL2(f64),
    /// As fast as the port takes frames.
    Max,
}

/// A text that is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no rate: write 80% (of the line, layer 1), 1.5Mpps, 500Mbps (layer 2), 1Gbps_l1 \
     (layer 1) or max; prefixes are k, M and G{advice}", advice = zero_advice(.0)
)]
pub struct RateTextError(String);

/// Decimal prefixes, the largest first.
const PREFIXES: [(&str, f64); 4] = [("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];

/// A unit's word, and the rate of a number of it.
type UnitWord = (&'static str, fn(f64) -> Rate);

/// A rate as frames count for it: a frame costs units, and a number of units pass in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitRate {
    /// Units that pass in a second; `None` without a limit.
    pub(crate) per_second: Option<f64>,
    /// Units that a frame costs besides its bytes.
    pub(crate) per_frame: u32,
    /// Units that each of its bytes costs, FCS included.
    pub(crate) per_byte: u32,
}

impl Rate {
    /// The same rate times `factor`; `Max` stays.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        match self {
            Self::PercentOfLine(rate) => Self::PercentOfLine(rate * factor),
            Self::PacketsPerSecond(rate) => Self::PacketsPerSecond(rate * factor),
            Self::BitsPerSecondL1(rate) => Self::BitsPerSecondL1(rate * factor),
            Self::BitsPerSecondL2(rate) => Self::BitsPerSecondL2(rate * factor),
            Self::Max => Self::Max,
        }
    }

    /// Frames a second that frames of `mean_size` bytes, FCS included, have on a line of
    /// `line_rate_bps` at layer 1; `None` for `Max`.
    #[must_use]
    pub fn packets_per_second(self, mean_size: f64, line_rate_bps: f64) -> Option<f64> {
        let unit = self.unit_rate(line_rate_bps);
        let cost = f64::from(unit.per_frame) + f64::from(unit.per_byte) * mean_size;
        unit.per_second.map(|per_second| per_second / cost)
    }

    /// Bits a second at layer 1 that it takes of the line.
    #[must_use]
    pub fn bits_per_second_l1(self, mean_size: f64, line_rate_bps: f64) -> Option<f64> {
        let frame_bits = 8.0 * (mean_size + f64::from(LAYER_1_OVERHEAD));
        self.packets_per_second(mean_size, line_rate_bps).map(|pps| pps * frame_bits)
    }

    /// The cost of frames.
    pub(crate) fn unit_rate(self, line_rate_bps: f64) -> UnitRate {
        let layer_1 = |per_second| UnitRate {
            per_second: Some(per_second),
            per_frame: 8 * LAYER_1_OVERHEAD,
            per_byte: 8,
        };
        match self {
            Self::PercentOfLine(percent) => layer_1(line_rate_bps * percent / 100.0),
            Self::BitsPerSecondL1(bits) => layer_1(bits),
            Self::BitsPerSecondL2(bits) => {
                UnitRate { per_second: Some(bits), per_frame: 0, per_byte: 8 }
            }
            Self::PacketsPerSecond(packets) => {
                UnitRate { per_second: Some(packets), per_frame: 1, per_byte: 0 }
            }
            Self::Max => UnitRate { per_second: None, per_frame: 1, per_byte: 0 },
        }
    }
}

impl FromStr for Rate {
    type Err = RateTextError;

    fn from_str(text: &str) -> Result<Self, RateTextError> {
        let wrong = || RateTextError(text.to_owned());
        let text = text.trim();
        if text == "max" {
            return Ok(Self::Max);
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, unit) = text.split_at(digits);
        let number: f64 = parse_decimal(number).ok_or_else(wrong)?;
        if number <= 0.0 {
            return Err(wrong());
        }
        let unit = unit.trim_start();
        if unit == "%" {
            return Ok(Self::PercentOfLine(number));
        }
        let units: [UnitWord; 4] = [
            ("pps", Self::PacketsPerSecond),
            ("bps_l1", Self::BitsPerSecondL1),
            ("bps_l2", Self::BitsPerSecondL2),
            ("bps", Self::BitsPerSecondL2),
        ];
        for (prefix, factor) in PREFIXES {
            let Some(rest) = unit.strip_prefix(prefix) else { continue };
            if let Some((_, make)) = units.iter().find(|(word, _)| *word == rest) {
                return Ok(make(number * factor));
            }
        }
        Err(wrong())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self {
            Self::Max => return f.write_str("max"),
            Self::PercentOfLine(percent) => return write!(f, "{percent}%"),
            Self::PacketsPerSecond(packets) => (*packets, "pps"),
            Self::BitsPerSecondL1(bits) => (*bits, "bps_l1"),
            Self::BitsPerSecondL2(bits) => (*bits, "bps"),
        };
        // The largest prefix that gives the same number again.
        let fits = |factor: f64| number >= factor && number / factor * factor == number;
        let (prefix, factor) =
            PREFIXES.into_iter().find(|(_, factor)| fits(*factor)).unwrap_or(("", 1.0));
        write!(f, "{}{prefix}{unit}", number / factor)
    }
}

impl TryFrom<String> for Rate {
    type Error = RateTextError;

    fn try_from(text: String) -> Result<Self, RateTextError> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn texts_are_read_and_printed_back() {
        for (text, rate) in [
            ("80%", Rate::PercentOfLine(80.0)),
            ("12.5%", Rate::PercentOfLine(12.5)),
            ("1.5Mpps", Rate::PacketsPerSecond(1.5e6)),
            ("500Mbps", Rate::BitsPerSecondL2(5e8)),
            ("1Gbps_l1", Rate::BitsPerSecondL1(1e9)),
            ("7pps", Rate::PacketsPerSecond(7.0)),
            ("max", Rate::Max),
        ] {
            assert_eq!(text.parse(), Ok(rate));
            assert_eq!(rate.to_string(), text);
        }
        assert_eq!("10 kbps_l2".parse(), Ok(Rate::BitsPerSecondL2(1e4)));
    }

    #[test]
    fn other_texts_are_refused_with_the_units() {
        for text in ["", "80", "-1pps", "0%", "1 Tbps", "pps", "1..2pps", "1.5mpps", "fast", "%"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("Mpps"), "{error}");
        }
    }

    #[test]
    fn the_line_carries_fewer_large_frames() {
        let line = 10e9;
        let pps = |size| Rate::PercentOfLine(100.0).packets_per_second(size, line).unwrap();
        assert!((pps(64.0) - 14_880_952.38).abs() < 0.01);
        assert!((pps(1518.0) - 812_743.82).abs() < 0.01);
        let l2 = Rate::BitsPerSecondL2(512e6).packets_per_second(64.0, line);
        assert_eq!(l2, Some(1e6));
        let l1 = Rate::PacketsPerSecond(1e6).bits_per_second_l1(64.0, line);
        assert_eq!(l1, Some(672e6));
        assert_eq!(Rate::Max.times(2.0).packets_per_second(64.0, line), None);
    }
}
