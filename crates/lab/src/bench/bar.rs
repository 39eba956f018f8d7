//! Common parts of the rows of several benches: a peer's figure beside ours, the bar of a figure,
//! and a row with the reason that there is no figure.
//!
//! A ratio that could not be found is none that is asked for: a bar is met only by what was
//! measured.

use serde::Serialize;

use super::common::Row;
use super::measure::{Pairs, median};
use super::outcome::rounded;

/// Another's figure beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Beside {
    /// Name of the peer.
    pub(super) peer: String,
    /// Its median.
    pub(super) peer_value: f64,
    /// Ours divided by its: the median of the pairs; none for less than two.
    pub(super) ratio: Option<f64>,
    /// The lower end of the 95 % interval.
    pub(super) low: Option<f64>,
    /// The upper end.
    pub(super) high: Option<f64>,
}

impl Beside {
    /// The peer's figure, and the ratio of measurements that follow each other.
    pub(super) fn of(peer: &str, pairs: &Pairs) -> Self {
        let ratio = pairs.ratio();
        Self {
            peer: peer.to_owned(),
            peer_value: rounded(median(&pairs.theirs)),
            ratio: ratio.map(|ratio| rounded(ratio.value)),
            low: ratio.map(|ratio| rounded(ratio.low)),
            high: ratio.map(|ratio| rounded(ratio.high)),
        }
    }

    /// The words behind a figure, for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("; {} {}", self.peer, self.peer_value);
        if let (Some(ratio), Some(low), Some(high)) = (self.ratio, self.low, self.high) {
            text += &format!(", ratio {ratio} ({low} to {high})");
        }
        text
    }
}

/// Bar of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Threshold {
    /// The bar's value.
    pub(super) bar: f64,
    /// Of what.
    pub(super) bar_of: ThresholdOf,
    /// Whether it is.
    pub(super) met: bool,
}

/// Subject of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ThresholdOf {
    /// The value is at least this.
    ValueAtLeast,
    /// The value is at most this.
    ValueAtMost,
    /// The largest of all repeats is at most this: what must never happen.
    LargestAtMost,
    /// The ratio to the peer is at least this.
    RatioAtLeast,
    /// The ratio to the peer is at most this.
    RatioAtMost,
}

impl ThresholdOf {
    /// The words before the bar, for people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::ValueAtLeast => "at least",
            Self::ValueAtMost => "at most",
            Self::LargestAtMost => "each at most",
            Self::RatioAtLeast => "ratio at least",
            Self::RatioAtMost => "ratio at most",
        }
    }
}

impl Threshold {
    /// The bar held against the median and the largest of all repeats, and against the ratio to
    /// the peer where there is one.
    pub(super) fn held(
        bar: f64,
        bar_of: ThresholdOf,
        (value, largest): (f64, f64),
        ratio: Option<f64>,
    ) -> Self {
        let met = match bar_of {
            ThresholdOf::ValueAtLeast => value >= bar,
            ThresholdOf::ValueAtMost => value <= bar,
            ThresholdOf::LargestAtMost => largest <= bar,
            ThresholdOf::RatioAtLeast => ratio.is_some_and(|ratio| ratio >= bar),
            ThresholdOf::RatioAtMost => ratio.is_some_and(|ratio| ratio <= bar),
        };
        Self { bar, bar_of, met }
    }

    /// The words behind a figure, for people.
    pub(super) fn text(&self) -> String {
        let of = self.bar_of.text();
        format!("; bar: {of} {}, {}", self.bar, if self.met { "met" } else { "NOT MET" })
    }
}

/// A row that cannot be measured here.
#[derive(Debug, Serialize)]
pub(super) struct AbsentRow {
    /// Its name.
    pub(super) row: &'static str,
    /// The switch that it was to be measured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dut: Option<&'static str>,
    /// The missing program, and the remedy.
    pub(super) absent: String,
}

impl Row for AbsentRow {
    fn text(&self) -> String {
        let dut = self.dut.map(|dut| format!(" {dut}")).unwrap_or_default();
        format!("{:32}{dut} not measured: {}\n", self.row, self.absent)
    }

    fn is_good(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{Beside, Threshold, ThresholdOf};
    use crate::bench::measure::Pairs;

    #[test]
    fn a_bar_is_met_only_by_what_was_measured() {
        let met = |of, ratio| Threshold::held(2.0, of, (2.0, 3.0), ratio).met;
        assert!(met(ThresholdOf::ValueAtLeast, None) && met(ThresholdOf::ValueAtMost, None));
        assert!(!met(ThresholdOf::LargestAtMost, None), "3 is more than 2");
        assert!(met(ThresholdOf::RatioAtLeast, Some(2.5)));
        assert!(!met(ThresholdOf::RatioAtMost, Some(2.5)));
        for of in [ThresholdOf::RatioAtLeast, ThresholdOf::RatioAtMost] {
            assert!(!met(of, None), "{of:?}");
        }
    }

    #[test]
    fn one_pair_has_a_peer_and_no_ratio() {
        let beside = Beside::of("other", &Pairs { ours: vec![2.0], theirs: vec![1.0], again: 0 });
        assert_eq!((beside.peer_value, beside.ratio, beside.low), (1.0, None, None));
        assert_eq!(beside.text(), "; other 1");
    }
}
