//! The rate of a line, as an argument: `10G`, `2.5G`, `100M`.

use std::str::FromStr;

use openflow::text::{parse_decimal, zero_advice};

/// The rate of a line at layer 1, in bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineRate(f64);

/// A text that is no rate of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no rate of a line; write 100M, 2.5G or 10G, from 1M to 1000G{advice}",
    advice = zero_advice(.0)
)]
pub(crate) struct LineRateError(String);

impl LineRate {
    /// In bit/s.
    pub(crate) fn bps(self) -> f64 {
        self.0
    }
}

impl FromStr for LineRate {
    type Err = LineRateError;

    fn from_str(text: &str) -> Result<Self, LineRateError> {
        let wrong = || LineRateError(text.to_owned());
        let (digits, factor) = match text.strip_suffix(['G', 'g']) {
            Some(digits) => (digits, 1e9),
            None => (text.strip_suffix(['M', 'm']).ok_or_else(wrong)?, 1e6),
        };
        let number: f64 = parse_decimal(digits).ok_or_else(wrong)?;
        let bps = number * factor;
        if (1e6..=1e12).contains(&bps) { Ok(Self(bps)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::LineRate;

    #[test]
    fn rates_of_lines_are_read() {
        assert_eq!("10G".parse(), Ok(LineRate(1e10)));
        assert_eq!("2.5g".parse(), Ok(LineRate(2.5e9)));
        assert_eq!("100M".parse(), Ok(LineRate(1e8)));
        for text in ["", "G", "10", "0G", "-1G", "inf G", "infG", "NaNG", "2000G", "10k"] {
            assert!(text.parse::<LineRate>().is_err(), "{text}");
        }
    }
}
