//! Two series of measurements in turns, and what their ratio is.
//!
//! Other programs keep this machine busy at times, so two forwarders are compared only by pairs of
//! measurements that follow each other on the same core; the interval is that of the logarithms of
//! the pairs' ratios.

use stats::{Comparison, Scale};

/// Measurements of two forwarders in turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// The first one's, in millions of packets a second.
    pub(super) ours: Vec<f64>,
    /// The other one's.
    pub(super) theirs: Vec<f64>,
}

/// Ratio of the first forwarder's rate to the second's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub(super) value: f64,
    /// The lower end of the 95 % interval.
    pub(super) low: f64,
    /// The upper end.
    pub(super) high: f64,
}

/// The middle of some measurements; 0 for none.
pub(super) fn median(samples: &[f64]) -> f64 {
    stats::median(samples).unwrap_or(0.0)
}

/// Four digits behind the point are more than a measurement has.
pub(super) fn rounded(value: f64) -> f64 {
    if value.is_finite() { (value * 1e4).round() / 1e4 } else { 0.0 }
}

impl Pairs {
    /// The ratio; `None` for less than two pairs, for a value without its pair, or where one of
    /// both forwards nothing.
    pub(super) fn ratio(&self) -> Option<Ratio> {
        if self.ours.len() != self.theirs.len() {
            return None;
        }
        let found = Comparison::of_values(&self.ours, &self.theirs).ok()?;
        let ratio = Ratio { value: found.estimate, low: found.low, high: found.high };
        (found.scale == Scale::Ratio).then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    #[test]
    fn a_ratio_is_the_mean_of_the_pairs() {
        let pairs = Pairs { ours: vec![20.0, 21.0, 19.0], theirs: vec![10.0, 10.0, 10.0] };
        let ratio = pairs.ratio().unwrap();
        assert!((ratio.value - 2.0).abs() < 0.01, "{ratio:?}");
        assert!(ratio.low < 2.0 && ratio.high > 2.0, "{ratio:?}");
        assert_eq!(Pairs { ours: vec![1.0], theirs: vec![1.0] }.ratio(), None);
        let nothing = Pairs { ours: vec![1.0, 1.0], theirs: vec![0.0, 0.0] };
        assert_eq!(nothing.ratio(), None);
    }
}
