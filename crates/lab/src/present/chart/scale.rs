//! A scale: where a value lies along a line of a drawing, and which values are marked there.
//!
//! It must never place a value outside its line, whatever the value.

use crate::present::number::is_extreme;

/// From so many times between the greatest and the least value on, a scale is logarithmic.
const LOG_FROM: f64 = 60.0;

/// A linear scale that holds zero, or a logarithmic one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    pub(crate) is_log: bool,
    begin: f64,
    length: f64,
}

impl Scale {
    /// The scale of these values along a line.
    pub(crate) fn new(values: &[f64], wants_log: bool, (begin, length): (f64, f64)) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let least = finite().reduce(f64::min).unwrap_or(0.0);
        let most = finite().reduce(f64::max).unwrap_or(1.0);
        let is_log = least > 0.0 && most > least && (wants_log || most / least > LOG_FROM);
        let (from, to) = match is_log {
            true => (least / 1.12, most * 1.12),
            false if most > 0.0 => (least.min(0.0), most * 1.04),
            false => (least.min(-1.0), 0.0),
        };
        Self { from, to, is_log, begin, length }
    }

    /// A linear scale between two values.
    pub(crate) fn between(from: f64, to: f64, (begin, length): (f64, f64)) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self { from, to, is_log: false, begin, length }
    }

    /// The place of a value; of one beyond an end, that end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.begin + share * self.length
    }

    /// Whether a value lies on the line.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// The values that are marked.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.is_log {
            let decades = (self.to / self.from).log10();
            let digits: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
            for power in powers.take(64) {
                ticks.extend(digits.iter().map(|digit| digit * 10_f64.powi(power)));
            }
        } else {
            let rough = (self.to - self.from) / 4.0;
            let unit = 10_f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * unit);
            let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
            let first = (self.from / step).ceil();
            ticks.extend((0..8).map(|n| (first + f64::from(n)) * step));
        }
        ticks.retain(|tick| self.holds(*tick));
        ticks
    }
}

/// A marked value: `1.5M`, `250k`, `0.02`.
pub(super) fn tick(value: f64) -> String {
    if is_extreme(value) {
        return format!("{value:.1e}");
    }
    let (unit, sign) = match value.abs() {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let value = value / unit;
    let digits = if value == 0.0 { 0.0 } else { 2.0 - value.abs().log10().floor() };
    let text = format!("{value:.0$}", digits.clamp(0.0, 9.0) as usize);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{sign}")
}

#[cfg(test)]
mod tests {
    use super::{Scale, tick};

    #[test]
    fn every_value_has_a_place_on_the_line() {
        let few = [0.0, -3.0, 1e-9, 1e9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for values in [&[][..], &[0.0], &[5.0, 5.0], &[-2.0, -1.0], &[1.0, 1e6], &few] {
            let scale = Scale::new(values, true, (10.0, 100.0));
            for value in values.iter().chain(&few) {
                assert!((10.0..=110.0).contains(&scale.place(*value)), "{value} of {values:?}");
            }
            assert!(scale.ticks().len() < 30, "{values:?}");
        }
    }

    #[test]
    fn ticks_are_round_and_short() {
        let ticks = |values: &[f64]| {
            let scale = Scale::new(values, false, (0.0, 1.0));
            scale.ticks().into_iter().map(tick).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(&[10.0, 90.0]), "0 25 50 75");
        assert_eq!(ticks(&[250_000.0, 410_000.0]), "0 200k 400k");
        assert_eq!(ticks(&[5.0, 500.0]), "5 10 20 50 100 200 500");
        assert_eq!(ticks(&[0.02, 0.03]), "0 0.01 0.02 0.03");
        assert_eq!([1_500_000.0, 2e9, 9_000.0].map(tick), ["1.5M", "2G", "9000"]);
        assert_eq!([2e300, 5e-12].map(tick), ["2.0e300", "5.0e-12"]);
    }
}
