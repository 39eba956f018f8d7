//! The end of a warm-up: from which sample of a series on it is steady.
//!
//! MSER-5 (White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
//! simulation", 2000): of all places where a series of batch means might be cut, the one after
//! which its mean has the smallest standard error. Nothing is dropped here; what is cut is the
//! caller's to say.

use super::interval::{StatsError, check};
use super::mean::squares;

/// The batch of MSER-5.
pub const MSER_BATCH: usize = 5;

/// Batches that it needs.
const BATCHES_MIN: usize = 10;

/// The index of the first sample that counts, a multiple of `batch`; `None` for a series that was
/// not steady in its second half, so that it has to be longer.
///
/// # Errors
/// There are less than ten batches, or a sample is not finite.
///
/// # Panics
/// When `batch` is 0: the caller's mistake.
pub fn warm_up(series: &[f64], batch: usize) -> Result<Option<usize>, StatsError> {
    assert!(batch > 0, "a batch of no samples");
    check(series, BATCHES_MIN * batch)?;
    // A last batch that is not full is left out.
    let means: Vec<f64> =
        series.chunks_exact(batch).map(|chunk| chunk.iter().sum::<f64>() / batch as f64).collect();
    let error = |cut: usize| {
        let rest = &means[cut..];
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        squares(rest, mean) / (rest.len() as f64).powi(2)
    };
    // Beyond the middle it is a few samples that happen to be close to each other.
    let last = means.len() / 2;
    let best = (0..=last).min_by(|a, b| error(*a).total_cmp(&error(*b)));
    Ok(best.filter(|cut| *cut < last).map(|cut| cut * batch))
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::{MSER_BATCH, warm_up};
    use crate::stats::StatsError;
    use crate::stats::distributions::{ALL, normal};

    /// Two hundred samples, of which the first forty rise from a half to the whole.
    fn rising(random: &mut Random) -> Vec<f64> {
        let level = |at: usize| if at < 40 { 10.0 + at as f64 / 4.0 } else { 20.0 };
        (0..200).map(|at| level(at) + 0.3 * normal(random)).collect()
    }

    #[test]
    fn a_warm_up_is_found_where_it_ends() {
        let mut random = Random::new(1);
        let cut = |_| warm_up(&rising(&mut random), MSER_BATCH).unwrap().unwrap_or(100);
        let mut found: Vec<usize> = (0..200).map(cut).collect();
        found.sort_unstable();
        assert!(found[0] >= 35 && found[100] <= 45 && found[180] <= 70, "{found:?}");
    }

    #[test]
    fn a_steady_series_keeps_nearly_all() {
        let mut random = Random::new(2);
        for distribution in ALL {
            let cut: usize = (0..200)
                .filter_map(|_| warm_up(&distribution.samples(&mut random, 200), 5).unwrap())
                .sum();
            assert!(cut < 200 * 30, "{distribution:?}: {cut} of 40000 samples");
        }
    }

    #[test]
    fn a_series_that_rises_to_its_end_is_not_steady() {
        let slope: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(warm_up(&slope, 5), Ok(None));
        assert_eq!(warm_up(&[7.0; 50], 5), Ok(Some(0)));
        assert_eq!(warm_up(&slope[..49], 5), Err(StatsError::TooFew { n: 49, needed: 50 }));
    }
}
