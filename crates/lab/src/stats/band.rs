//! A cumulative distribution with a band that holds the whole true curve.
//!
//! The band is that of Dvoretzky, Kiefer and Wolfowitz with Massart's constant ("The tight constant
//! in the Dvoretzky-Kiefer-Wolfowitz inequality", 1990): for n independent samples of any
//! distribution the curve of the samples is nowhere farther from the true one than
//! sqrt(ln(2 / a) / 2n), with confidence 1 - a. Delays of packets that follow each other are not
//! independent: count trials, or packets far apart.

use super::interval::{Interval, StatsError, check, sorted, tail};

/// From this value up to the next the curve of the samples lies between two shares.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    value: f64,
    at_least: f64,
    at_most: f64,
}

/// A cumulative distribution with its band.
#[derive(Clone, Debug, PartialEq)]
pub struct CdfBand {
    /// Ascending values. Before the first one the share is at most `before`.
    steps: Vec<Step>,
    before: f64,
    reach: f64,
    confidence: f64,
}

impl CdfBand {
    /// That of independent samples.
    ///
    /// # Errors
    /// There are none, or one is not finite.
    ///
    /// # Panics
    /// When `confidence` is not between 0 and 1: the caller's mistake.
    pub fn of_samples(samples: &[f64], confidence: f64) -> Result<Self, StatsError> {
        check(samples, 1)?;
        let ordered = sorted(samples);
        let n = ordered.len();
        let mut up_to = 0;
        let step = |tied: &[f64]| {
            up_to += tied.len();
            let share = up_to as f64 / n as f64;
            Step { value: tied[0], at_least: share, at_most: share }
        };
        let steps = ordered.chunk_by(|a, b| a == b).map(step).collect();
        Ok(Self { steps, before: 0.0, reach: dkw_reach(n as u64, confidence), confidence })
    }

    /// That of a sketch of `count` independent values: pairs of a share, 0 to 1, and the least
    /// value that so many are at most, both ascending. Between two of them the band allows for all
    /// that the sketch leaves open. It does not allow for the sketch's own rounding of values.
    ///
    /// # Errors
    /// The sketch is empty or counts nothing, a share or value is not finite, a share is not from 0
    /// to 1, or the pairs do not ascend.
    ///
    /// # Panics
    /// When `confidence` is not between 0 and 1: the caller's mistake.
    pub fn of_quantiles(
        quantiles: &[(f64, f64)],
        count: u64,
        confidence: f64,
    ) -> Result<Self, StatsError> {
        let values: Vec<f64> = quantiles.iter().map(|(_, value)| *value).collect();
        check(&values, 1)?;
        let mut before = (0.0, f64::NEG_INFINITY);
        for (index, &(share, value)) in quantiles.iter().enumerate() {
            let ascends = before.0 <= share && before.1 <= value;
            if count == 0 || !ascends || !(0.0..=1.0).contains(&share) {
                return Err(StatsError::NoSketch { index, count });
            }
            before = (share, value);
        }
        let mut steps: Vec<Step> = Vec::with_capacity(quantiles.len());
        for (index, (share, value)) in quantiles.iter().enumerate() {
            let at_most = quantiles.get(index + 1).map_or(1.0, |(next, _)| *next);
            match steps.last_mut() {
                Some(last) if last.value == *value => {
                    (last.at_least, last.at_most) = (*share, at_most);
                }
                Some(_) | None => steps.push(Step { value: *value, at_least: *share, at_most }),
            }
        }
        let before = quantiles[0].0;
        Ok(Self { steps, before, reach: dkw_reach(count, confidence), confidence })
    }

    /// Distance of the band's edges from the curve, as a share.
    #[must_use]
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// The share of all values that are at most `value`. The intervals of all values hold together
    /// with the band's confidence.
    #[must_use]
    pub fn share(&self, value: f64) -> Interval {
        let after = self.steps.partition_point(|step| step.value <= value);
        let (at_least, at_most) = after
            .checked_sub(1)
            .map_or((0.0, self.before), |at| (self.steps[at].at_least, self.steps[at].at_most));
        Interval {
            low: (at_least - self.reach).max(0.0),
            high: (at_most + self.reach).min(1.0),
            confidence: self.confidence,
        }
    }

    /// Earliest and latest place at which the true curve reaches `share`. `None` for an end beyond
    /// which the samples have no evidence, such as that of the longest tenth of a delay of nine
    /// packets.
    #[must_use]
    pub fn quantile(&self, share: f64) -> (Option<f64>, Option<f64>) {
        let earliest = if self.before + self.reach >= share {
            None
        } else {
            let first = self.steps.iter().find(|step| step.at_most + self.reach >= share);
            first.map(|step| step.value)
        };
        let latest = self.steps.iter().find(|step| step.at_least - self.reach >= share);
        (earliest, latest.map(|step| step.value))
    }

    /// Value, lower and upper share at each step, for a plot.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        self.steps.iter().map(|step| {
            let Interval { low, high, .. } = self.share(step.value);
            (step.value, low, high)
        })
    }
}

/// Largest distance of the curve of `count` independent samples from the true one, as a share; more
/// than 1, which is no evidence, for one or two, and infinite for none.
///
/// # Panics
/// When `confidence` is not between 0 and 1: the caller's mistake.
#[must_use]
pub fn dkw_reach(count: u64, confidence: f64) -> f64 {
    let left = 2.0 * tail(confidence);
    ((2.0 / left).ln() / (2.0 * count as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};
    use testkit::Random;

    use super::{CdfBand, dkw_reach};
    use crate::stats::distributions::{ALL, Known, TRIALS};
    use crate::stats::sorted;

    #[test]
    fn the_reach_is_massart_s() {
        // sqrt(ln(200) / 200) and sqrt(ln(40) / 2000).
        assert!((dkw_reach(100, 0.99) - 0.162_762).abs() < 1e-6);
        assert!((dkw_reach(1_000, 0.95) - 0.042_947).abs() < 1e-6);
        assert_eq!(dkw_reach(0, 0.95), f64::INFINITY);
    }

    #[test]
    fn shares_and_quantiles_have_the_ends_of_the_band() {
        let samples: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let band = CdfBand::of_samples(&samples, 0.95).unwrap();
        let at = band.share(500.5);
        assert!((at.low - 0.457_053).abs() < 1e-6 && (at.high - 0.542_947).abs() < 1e-6);
        assert_eq!((band.share(0.0).low, band.share(2_000.0).high), (0.0, 1.0));
        assert_eq!(band.quantile(0.5), (Some(458.0), Some(543.0)));
        assert_eq!(band.quantile(0.99), (Some(948.0), None));
        assert_eq!(band.quantile(0.01), (None, Some(53.0)));
        assert_eq!(band.points().count(), 1_000);
        assert!(CdfBand::of_samples(&[], 0.99).is_err());
    }

    /// Whether the band holds the true curve everywhere: at both sides of each step.
    fn holds(band: &CdfBand, truth: Known) -> bool {
        let before = band.steps.iter().map(|step| step.value.next_down());
        let all = before.chain(band.steps.iter().map(|step| step.value));
        all.into_iter().all(|value| band.share(value).contains(truth.cdf(value)))
    }

    /// The inequality is nearly tight: of true curves, 99 % and little more are inside.
    #[test]
    fn bands_hold_the_whole_true_curve() {
        for truth in ALL {
            let mut random = Random::new(5);
            for n in [20, 100] {
                let band =
                    |random: &mut _| CdfBand::of_samples(&truth.samples(random, n), 0.99).unwrap();
                let held = (0..TRIALS).filter(|_| holds(&band(&mut random), truth)).count();
                let binomial = Binomial::new(0.99, TRIALS).unwrap();
                assert!(binomial.cdf(held as u64) > 0.001, "{truth:?}: {held}");
                assert!(held < 1_999, "{truth:?}: a band that never fails is too wide");
            }
        }
    }

    #[test]
    fn what_is_no_sketch_is_refused_with_its_place() {
        let refused = |pairs: &[(f64, f64)], count| {
            CdfBand::of_quantiles(pairs, count, 0.99).unwrap_err().to_string()
        };
        for (pairs, place) in [
            ([(0.5, 1.0), (0.4, 2.0)], "pair 1 (from 0)"),
            ([(0.5, 3.0), (0.6, 2.0)], "pair 1 (from 0)"),
            ([(-0.1, 1.0), (0.6, 2.0)], "pair 0 (from 0)"),
            ([(0.1, 1.0), (f64::NAN, 2.0)], "pair 1 (from 0)"),
            ([(0.1, f64::NAN), (0.2, 2.0)], "sample 0 (from 0) is NaN"),
        ] {
            assert!(refused(&pairs, 9).contains(place), "{pairs:?}: {}", refused(&pairs, 9));
        }
        assert!(refused(&[(0.5, 1.0)], 0).contains("of 0 values"));
        assert!(CdfBand::of_quantiles(&[], 9, 0.99).is_err());
    }

    #[test]
    fn a_sketch_leaves_more_open_than_its_samples() {
        let shares = [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];
        for truth in ALL {
            let mut random = Random::new(9);
            let mut held = 0;
            for _ in 0..TRIALS / 4 {
                let samples = sorted(&truth.samples(&mut random, 200));
                let at = |share: f64| {
                    let rank = (share * 200.0_f64).ceil().max(1.0) as usize;
                    (share, samples[rank - 1])
                };
                let band = CdfBand::of_quantiles(&shares.map(at), 200, 0.99).unwrap();
                let exact = CdfBand::of_samples(&samples, 0.99).unwrap();
                for value in samples.iter().step_by(7) {
                    let (open, known) = (band.share(*value), exact.share(*value));
                    assert!(open.low <= known.low + 1e-12 && open.high >= known.high - 1e-12);
                }
                held += usize::from(holds(&band, truth));
            }
            assert!(held >= 485, "{truth:?}: {held} of 500");
        }
    }
}
