//! Two things beside each other, from pairs of starts: the one comparison that Weir has.
//!
//! The logarithms of the pairs' ratios are held against 0 by Student's t. Switches take turns, so
//! that what the machine did to both starts of a pair cancels; the difference of two logarithms
//! that vary alike is symmetric, however skewed each of them is, which is what t asks for. Where a
//! value is not above 0 it is the differences instead of the logarithms. The tests in
//! `simulated.rs` hold the interval against the truth.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::CONFIDENCE;
use crate::figure::Observed;
use crate::order::mean_and_squares;

/// The part of two values that subtracting may leave though they are equal.
const RESIDUE: f64 = 1e-12;

/// Meaning of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The first divided by the second.
    Ratio,
    /// The first less the second: a value is not above 0.
    Difference,
}

/// The first of two things beside the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of pairs.
    pub pairs: usize,
    /// Whether it is a ratio.
    pub scale: Scale,
    /// The geometric mean of the pairs' ratios, or the mean of their differences.
    pub estimate: f64,
    /// The lower end of its interval, of [`CONFIDENCE`].
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The p-value of the two-sided test that there is no difference.
    pub p_value: f64,
}

impl Comparison {
    /// Of pairs of starts. What starts leave open may have gone one way in all of them, so the
    /// interval runs from the lowest end to the highest; where even the direction is open there is
    /// no evidence for a difference.
    ///
    /// None of less than two pairs, or of a value that is not finite.
    pub fn of(pairs: &[(Observed, Observed)]) -> Option<Self> {
        let is_positive = |(a, b): &(Observed, Observed)| {
            [a.value, a.low, a.high, b.value, b.low, b.high].iter().all(|value| *value > 0.0)
        };
        let scale = if pairs.iter().all(is_positive) { Scale::Ratio } else { Scale::Difference };
        // Beyond a thousand degrees of freedom it is near enough a normal distribution.
        let freedom = pairs.len().saturating_sub(1).clamp(1, 1_000);
        let chance = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
        // Half of what the confidence leaves exceeds it.
        let t = chance.inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
        let test = |of: fn(&(Observed, Observed)) -> (f64, f64)| {
            let differences = pairs.iter().map(of).map(|(first, second)| match scale {
                _ if (first - second).abs() <= first.abs().max(second.abs()) * RESIDUE => 0.0,
                Scale::Ratio => first.ln() - second.ln(),
                Scale::Difference => first - second,
            });
            student(&differences.collect::<Vec<f64>>(), &chance, t)
        };
        let tests = [
            test(|(a, b)| (a.value, b.value))?,
            test(|(a, b)| (a.low, b.high))?,
            test(|(a, b)| (a.high, b.low))?,
        ];
        let [(middle, ..), (low, ..), (high, ..)] = tests;
        let is_either = low < 0.0 && high > 0.0;
        let least = tests.map(|(mean, reach, _)| mean - reach).into_iter().reduce(f64::min)?;
        let most = tests.map(|(mean, reach, _)| mean + reach).into_iter().reduce(f64::max)?;
        let p_value = tests.map(|(.., p_value)| p_value).into_iter().reduce(f64::max)?;
        let value = |of: f64| if scale == Scale::Ratio { of.exp() } else { of };
        Some(Self {
            pairs: pairs.len(),
            scale,
            estimate: value(middle),
            low: value(least),
            high: value(most),
            p_value: if is_either { 1.0 } else { p_value },
        })
    }

    /// The estimate of two equal things.
    pub fn none(&self) -> f64 {
        match self.scale {
            Scale::Ratio => 1.0,
            Scale::Difference => 0.0,
        }
    }

    /// Whether the interval leaves out that there is no difference.
    pub fn is_different(&self) -> bool {
        !(self.low..=self.high).contains(&self.none())
    }
}

/// Student's test that the mean of differences is 0: the mean, the way from it to either end of
/// its interval, and the p-value.
fn student(differences: &[f64], chance: &StudentsT, t: f64) -> Option<(f64, f64, f64)> {
    if differences.len() < 2 || differences.iter().any(|one| !one.is_finite()) {
        return None;
    }
    let n = differences.len() as f64;
    let (mean, squares) = mean_and_squares(differences);
    let largest = differences.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
    let mean = if mean.abs() <= largest * RESIDUE { 0.0 } else { mean };
    let error = (squares / (n - 1.0) / n).sqrt();
    if error <= mean.abs() * 1e-12 {
        // Pairs that do not vary leave nothing to chance.
        return Some((mean, 0.0, f64::from(u8::from(mean == 0.0))));
    }
    let p_value = (2.0 * chance.sf((mean / error).abs())).min(1.0);
    Some((mean, t * error, p_value))
}

/// P-values adjusted by Holm ("A simple sequentially rejective multiple test procedure", 1979), in
/// the order of `p_values`: of a hundred rows without any difference, five have a p-value below
/// 0.05. Those that are at most 0.05 then hold together, however they depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut most = 0.0_f64;
    for (before, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - before) as f64;
        most = most.max((left * p_values[index]).min(1.0));
        adjusted[index] = most;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Scale, holm};
    use crate::figure::Observed;

    /// Of values that are known as they are.
    fn of_values(first: &[f64], second: &[f64]) -> Option<Comparison> {
        let pairs = first.iter().zip(second).map(|(a, b)| ((*a).into(), (*b).into()));
        Comparison::of(&pairs.collect::<Vec<_>>())
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4 * b.abs().max(1.0)
    }

    /// Printed tables. Of n differences, one of them 1 and the others 0, the error is 1 / n.
    #[test]
    fn quantiles_of_t_are_those_of_tables() {
        for (n, t) in [(2, 12.7062), (3, 4.3027), (6, 2.5706), (12, 2.2010), (101, 1.9840)] {
            let mut first = vec![0.0; n];
            first[0] = 1.0;
            let found = of_values(&first, &vec![0.0; n]).unwrap();
            let quantile = (found.high - found.estimate) * n as f64;
            assert!(close(quantile, t), "{n}: {quantile}");
        }
    }

    /// Ratios 2, 4, 8: logarithms of mean ln 4, deviation ln 2, error ln 2 / sqrt(3); a printed
    /// table has 4.3027 for t.
    #[test]
    fn a_ratio_has_the_interval_of_its_logarithms() {
        let found = of_values(&[2.0, 8.0, 24.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((found.scale, found.pairs), (Scale::Ratio, 3));
        let reach = (4.302_65 * 2.0_f64.ln() / 3.0_f64.sqrt()).exp();
        assert!(close(found.estimate, 4.0) && close(found.low, 4.0 / reach), "{found:?}");
        assert!(close(found.high, 4.0 * reach) && !found.is_different(), "{found:?}");
        // t = ln 4 / error = 2 sqrt(3); with two degrees of freedom P = 1 - t / sqrt(2 + t²).
        let t = 12.0_f64.sqrt();
        assert!(close(found.p_value, 1.0 - t / (2.0 + t * t).sqrt()), "{found:?}");
    }

    #[test]
    fn without_positive_values_it_is_the_difference() {
        let found = of_values(&[0.0, 1.0, 2.0], &[1.0, 2.5, 3.0]).unwrap();
        assert_eq!(found.scale, Scale::Difference);
        assert!(close(found.estimate, -7.0 / 6.0) && found.none() == 0.0, "{found:?}");
        let equal = of_values(&[5.0; 3], &[5.0; 3]).unwrap();
        assert_eq!((equal.low, equal.high, equal.p_value), (1.0, 1.0, 1.0));
        let other = of_values(&[5.0; 3], &[4.0; 3]).unwrap();
        assert!(other.is_different() && other.p_value == 0.0, "{other:?}");
        for (first, second) in [([0.1 + 0.2, 0.0], [0.3, 0.0]), ([0.1 + 0.2; 2], [0.3; 2])] {
            let residue = of_values(&first, &second).unwrap();
            assert!(!residue.is_different() && residue.p_value == 1.0, "{residue:?}");
            assert!(residue.estimate == residue.none(), "{residue:?}");
        }
        let cancelled = of_values(&[0.1, 0.2, -0.3], &[0.0; 3]).unwrap();
        assert_eq!(cancelled.estimate, 0.0);
        assert!(of_values(&[1.0], &[1.0]).is_none());
        assert!(of_values(&[1.0, f64::NAN], &[1.0; 2]).is_none());
    }

    /// Both searches end between 95 and 105: equal values say nothing about which is more.
    #[test]
    fn what_a_search_leaves_open_may_go_either_way() {
        let searched = |value| Observed { value, low: value - 5.0, high: value + 5.0 };
        let pairs = [(searched(101.0), searched(100.0)); 4];
        let found = Comparison::of(&pairs).unwrap();
        assert!(close(found.low, 96.0 / 105.0) && close(found.high, 106.0 / 95.0), "{found:?}");
        assert!(!found.is_different() && found.p_value == 1.0);
        assert!(Comparison::of(&[(searched(120.0), searched(100.0)); 4]).unwrap().is_different());
    }

    /// A search that left much open in one pair: the highest ends vary, so they carry no ratio.
    #[test]
    fn an_interval_agrees_with_its_p_value() {
        let pair = |high| (Observed { value: 2.0, low: 2.0, high }, Observed::from(1.0));
        let found = Comparison::of(&[pair(2.0), pair(2.0), pair(1_024.0)]).unwrap();
        assert!(found.p_value > 0.05 && !found.is_different() && found.low < 1.0, "{found:?}");
    }

    #[test]
    fn holm_s_p_values_hold_together() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
