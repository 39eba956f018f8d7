//! Number of repeats for a wanted interval, by the samples so far.
//!
//! A plan and no promise: the spread of the samples so far is itself only known so well. The plan
//! is made anew after each repeat.

use super::interval::{StatsError, check, sorted, tail};
use super::mean::{mean_and_error, student};
use super::order::{quantile, quantile_interval, samples_needed};
use super::signed_rank::log_ratios;

/// Number of repeats in all until the t-interval of the mean reaches no farther than `relative`
/// times the mean to both sides (0.01: one percent).
///
/// # Errors
/// There are less than two samples, one is not finite, or the mean is 0.
///
/// # Panics
/// When `relative` is not above 0, or `confidence` not between 0 and 1: the caller's mistake.
pub fn repeats_for_mean(
    samples: &[f64],
    relative: f64,
    confidence: f64,
) -> Result<usize, StatsError> {
    assert!(relative > 0.0, "relative half width {relative}");
    check(samples, 2)?;
    let (mean, _) = mean_and_error(samples);
    of_deviation(deviation(samples), relative * mean.abs(), confidence)
}

/// Number of pairs in all until the t-interval of their ratio reaches no farther than `relative`
/// times the ratio upwards, and as many times downwards.
///
/// # Errors
/// There are less than two pairs, the lists are not of one length, or a sample is not above 0.
///
/// # Panics
/// When `relative` is not above 0, or `confidence` not between 0 and 1: the caller's mistake.
pub fn pairs_for_ratio(
    ours: &[f64],
    theirs: &[f64],
    relative: f64,
    confidence: f64,
) -> Result<usize, StatsError> {
    assert!(relative > 0.0, "relative half width {relative}");
    let logs = log_ratios(ours, theirs)?;
    check(&logs, 2)?;
    of_deviation(deviation(&logs), relative.ln_1p(), confidence)
}

/// Number of repeats in all until the distribution-free interval of the median is no wider than
/// twice `relative` times the median: its width falls by the root of their number.
///
/// # Errors
/// There are less than such an interval needs at all, one is not finite, or the median is 0.
///
/// # Panics
/// When `relative` is not above 0, or `confidence` not between 0 and 1: the caller's mistake.
pub fn repeats_for_median(
    samples: &[f64],
    relative: f64,
    confidence: f64,
) -> Result<usize, StatsError> {
    assert!(relative > 0.0, "relative half width {relative}");
    let ordered = sorted(samples);
    let width = quantile_interval(&ordered, 0.5, confidence)?.width();
    let wanted = 2.0 * relative * quantile(&ordered, 0.5).abs();
    Ok(of_width(samples.len(), width, wanted)?.max(samples_needed(0.5, confidence)))
}

/// Number of samples for an interval by ranks of width `wanted`, when `n` make it `width` wide.
pub(super) fn of_width(n: usize, width: f64, wanted: f64) -> Result<usize, StatsError> {
    if width == 0.0 {
        return Ok(1);
    }
    if wanted == 0.0 {
        return Err(StatsError::ZeroFigure);
    }
    Ok((n as f64 * (width / wanted).powi(2)).ceil() as usize)
}

/// The deviation of samples.
fn deviation(samples: &[f64]) -> f64 {
    mean_and_error(samples).1 * (samples.len() as f64).sqrt()
}

/// The least n for which t s / sqrt(n) is at most `half_width`.
pub(super) fn of_deviation(
    deviation: f64,
    half_width: f64,
    confidence: f64,
) -> Result<usize, StatsError> {
    if deviation == 0.0 {
        return Ok(2);
    }
    if half_width == 0.0 {
        return Err(StatsError::ZeroFigure);
    }
    let tail = tail(confidence);
    let suffice = |n: f64| student(n - 1.0, tail) * deviation / n.sqrt() <= half_width;
    let mut high = 2.0;
    while !suffice(high) {
        high *= 2.0;
    }
    let mut low = high / 2.0;
    // From 2^53 on there are no single numbers left between them, but still an end.
    while high - low > 1.0_f64.max(low * f64::EPSILON) {
        let middle = f64::midpoint(low, high).floor();
        if suffice(middle) { high = middle } else { low = middle }
    }
    Ok(high as usize)
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::{pairs_for_ratio, repeats_for_mean, repeats_for_median};
    use crate::stats::distributions::Known;
    use crate::stats::{StatsError, mean_interval, paired_ratio, quantile_interval, sorted};

    /// By trying one n after the other with `scipy.stats.t.ppf` of scipy 1.17.
    #[test]
    fn the_least_number_that_suffices() {
        // Mean 10, deviation 1.
        let samples = [9.0, 10.0, 11.0];
        for (relative, n) in [(0.103, 10), (0.1027, 11), (0.05, 31), (0.01, 668)] {
            let found = repeats_for_mean(&samples, relative, 0.99).unwrap();
            assert_eq!(found, n, "{relative}");
        }
        assert_eq!(repeats_for_mean(&[3.0; 4], 0.01, 0.99), Ok(2));
        assert_eq!(repeats_for_mean(&[1.0, -1.0], 0.5, 0.99), Err(StatsError::ZeroFigure));
        assert_eq!(
            repeats_for_mean(&[1.0], 0.5, 0.99),
            Err(StatsError::TooFew { n: 1, needed: 2 })
        );
        assert!(repeats_for_mean(&[1.0, -0.999_999_999_999], 1e-9, 0.99).unwrap() > 1 << 60);
    }

    /// As many repeats as are planned give the wanted interval, nearly.
    #[test]
    fn what_is_planned_suffices() {
        let mut random = Random::new(3);
        for distribution in [Known::Normal, Known::Exponential, Known::Bimodal] {
            let first = distribution.samples(&mut random, 200);
            let mean = distribution.mean();
            let n = repeats_for_mean(&first, 0.02, 0.99).unwrap();
            let interval = mean_interval(&distribution.samples(&mut random, n), 0.99).unwrap();
            let reached = interval.width() / 2.0 / mean;
            assert!((0.016..0.024).contains(&reached), "{distribution:?}: {n} {reached}");

            // Between the two modes there is no density, so the width does not fall by a root.
            if matches!(distribution, Known::Bimodal) {
                continue;
            }
            let n = repeats_for_median(&first, 0.02, 0.99).unwrap();
            let second = sorted(&distribution.samples(&mut random, n));
            let interval = quantile_interval(&second, 0.5, 0.99).unwrap();
            let reached = interval.width() / 2.0 / distribution.quantile(0.5);
            assert!((0.01..0.04).contains(&reached), "{distribution:?}: {n} {reached}");
        }
        let pair = |random: &mut Random, n| {
            [Known::Lognormal.samples(random, n), Known::Lognormal.samples(random, n)]
        };
        let [ours, theirs] = pair(&mut random, 200);
        let n = pairs_for_ratio(&ours, &theirs, 0.1, 0.99).unwrap();
        let [ours, theirs] = pair(&mut random, n);
        let found = paired_ratio(&ours, &theirs, 0.99).unwrap();
        let reached = found.t_interval.high / found.geometric_mean;
        assert!((1.08..1.12).contains(&reached), "{n} {reached}");
    }

    #[test]
    fn the_median_needs_as_many_as_have_an_interval() {
        assert_eq!(repeats_for_median(&[4.0; 9], 0.1, 0.99), Ok(8));
        let few = repeats_for_median(&[4.0; 3], 0.1, 0.99);
        assert_eq!(few, Err(StatsError::TooFew { n: 3, needed: 8 }));
    }
}
