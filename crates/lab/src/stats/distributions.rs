//! Known distributions for the tests of the statistics: seeded samples, true means and quantiles,
//! and the judgement whether intervals hold the truth as often as they say.

use std::f64::consts::TAU;

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};
use testkit::Random;

use super::Interval;

/// Intervals that are compared with the truth.
pub(super) const TRIALS: u64 = 2_000;

/// Source of samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    /// Mean 10, deviation 2.
    Normal,
    /// The exponential of a standard normal.
    Lognormal,
    /// Mean 1.
    Exponential,
    /// Seven of ten around 10, the others around 20, both with deviation 0.5: a cache that hits
    /// or misses.
    Bimodal,
}

pub(super) const ALL: [Known; 4] =
    [Known::Normal, Known::Lognormal, Known::Exponential, Known::Bimodal];

/// Between 0 and 1, neither of them.
fn uniform(random: &mut Random) -> f64 {
    ((random.u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (TAU * uniform(random)).cos()
}

impl Known {
    pub(super) fn sample(self, random: &mut Random) -> f64 {
        match self {
            Self::Normal => 10.0 + 2.0 * normal(random),
            Self::Lognormal => normal(random).exp(),
            Self::Exponential => -uniform(random).ln(),
            Self::Bimodal => {
                let middle = if uniform(random) < 0.7 { 10.0 } else { 20.0 };
                middle + 0.5 * normal(random)
            }
        }
    }

    pub(super) fn samples(self, random: &mut Random, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.sample(random)).collect()
    }

    pub(super) fn mean(self) -> f64 {
        match self {
            Self::Normal => 10.0,
            Self::Lognormal => 0.5_f64.exp(),
            Self::Exponential => 1.0,
            Self::Bimodal => 13.0,
        }
    }

    pub(super) fn cdf(self, at: f64) -> f64 {
        let normal = Normal::standard();
        match self {
            Self::Normal => normal.cdf((at - 10.0) / 2.0),
            Self::Lognormal => normal.cdf(at.max(f64::MIN_POSITIVE).ln()),
            Self::Exponential => 1.0 - (-at.max(0.0)).exp(),
            Self::Bimodal => {
                0.7 * normal.cdf((at - 10.0) / 0.5) + 0.3 * normal.cdf((at - 20.0) / 0.5)
            }
        }
    }

    /// By halving an interval that holds all of them.
    pub(super) fn quantile(self, q: f64) -> f64 {
        let (mut low, mut high) = (-100.0, 1_000.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.cdf(middle) < q { low = middle } else { high = middle }
        }
        high
    }
}

/// Number of [`TRIALS`] intervals that hold `truth`, and the confidence that they all state.
pub(super) fn covered(truth: f64, mut interval: impl FnMut(&mut Random) -> Interval) -> (u64, f64) {
    let mut random = Random::new(0x5eed);
    let found: Vec<Interval> = (0..TRIALS).map(|_| interval(&mut random)).collect();
    let confidence = found[0].confidence;
    assert!(found.iter().all(|one| one.low <= one.high && one.confidence == confidence));
    (found.iter().filter(|one| one.contains(truth)).count() as u64, confidence)
}

/// Fails when intervals hold `truth` less or more often than they say, by more than chance brings
/// about in one of a thousand.
pub(super) fn assert_covers(what: &str, truth: f64, interval: impl FnMut(&mut Random) -> Interval) {
    let (held, confidence) = covered(truth, interval);
    let binomial = Binomial::new(confidence, TRIALS).unwrap();
    assert!(binomial.cdf(held) > 0.001, "{what}: {held} of {TRIALS}, {confidence} is said");
    let as_many = held.checked_sub(1).map_or(1.0, |fewer| binomial.sf(fewer));
    assert!(as_many > 0.001, "{what}: {held} of {TRIALS}, only {confidence} is said");
}
