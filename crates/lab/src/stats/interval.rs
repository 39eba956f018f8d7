//! An interval with its confidence, and the reasons why there is none.
//!
//! It must never claim more confidence than the method that made it has.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

/// The confidence of the intervals that the lab reports.
pub const CONFIDENCE: f64 = 0.99;

/// An interval for a number that is not known, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, which belongs to it.
    pub low: f64,
    /// The upper end, which belongs to it.
    pub high: f64,
    /// The share of such intervals that hold the truth, 0 to 1. Ranks are whole numbers, so an
    /// interval by ranks has a little more than was asked for, or, of too few samples, less.
    pub confidence: f64,
}

impl Interval {
    /// Whether it holds `truth`.
    #[must_use]
    pub fn contains(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }

    /// From end to end.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether it has the confidence that was asked for.
    #[must_use]
    pub fn reaches(&self, confidence: f64) -> bool {
        self.confidence >= confidence
    }

    /// Both ends through a function that never falls, such as the exponential.
    pub(super) fn map(self, ascending: impl Fn(f64) -> f64) -> Self {
        Self { low: ascending(self.low), high: ascending(self.high), ..self }
    }
}

/// Why there is no such figure.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// More samples are needed.
    #[error("{n} samples are too few: it needs {needed}")]
    TooFew {
        /// Their number.
        n: usize,
        /// The number needed.
        needed: usize,
    },
    /// A sample is infinite or not a number.
    #[error(
        "sample {index} (from 0) is {value}, which is no finite number: leave it out, and say so"
    )]
    NotFinite {
        /// Its place, from 0.
        index: usize,
        /// The sample.
        value: f64,
    },
    /// A ratio was asked for.
    #[error("sample {index} (from 0) is {value}: a ratio needs samples above 0")]
    NotPositive {
        /// Its place, from 0.
        index: usize,
        /// The sample.
        value: f64,
    },
    /// Pairs were asked for.
    #[error("{first} samples beside {second}: pairs need as many of one as of the other")]
    NotPaired {
        /// Length of the first list.
        first: usize,
        /// Length of the second list.
        second: usize,
    },
    /// A sketch is none: it counts nothing, a share is not from 0 to 1, or a pair of share and
    /// value is less than the one before it.
    #[error(
        "pair {index} (from 0) is no part of a sketch of {count} values: there is one value or \
         more, shares lie between 0 and 1, and shares and values ascend"
    )]
    NoSketch {
        /// The place of the first such pair, from 0.
        index: usize,
        /// Its own count of values.
        count: u64,
    },
    /// The figure is 0, so that no interval is as narrow as a share of it.
    #[error("the figure is 0: a share of it is no width of an interval, give an absolute one")]
    ZeroFigure,
    /// The divisor's own interval holds 0, so that the ratio may be any number.
    #[error("the divisor cannot be told from 0, so the ratio has no bounds: measure it more often")]
    DivisorNearZero,
}

/// Refuses samples that are not finite, and less than `needed` of them.
pub(super) fn check(samples: &[f64], needed: usize) -> Result<(), StatsError> {
    if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(StatsError::NotFinite { index, value: samples[index] });
    }
    let n = samples.len();
    if n < needed { Err(StatsError::TooFew { n, needed }) } else { Ok(()) }
}

/// Logarithms of samples, which must all be above 0.
pub(super) fn logs(samples: &[f64]) -> Result<Vec<f64>, StatsError> {
    check(samples, 0)?;
    if let Some(index) = samples.iter().position(|sample| *sample <= 0.0) {
        return Err(StatsError::NotPositive { index, value: samples[index] });
    }
    Ok(samples.iter().map(|sample| sample.ln()).collect())
}

/// Half of what `confidence` leaves.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
pub(super) fn tail(confidence: f64) -> f64 {
    assert!(confidence > 0.0 && confidence < 1.0, "confidence {confidence}");
    (1.0 - confidence) / 2.0
}

/// The standard normal distribution.
pub(super) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// A copy in ascending order.
pub(super) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
