//! Why there is no such figure.

/// Why there is none.
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
}

/// Refuses samples that are not finite, and less than `needed` of them.
pub(crate) fn check(samples: &[f64], needed: usize) -> Result<(), StatsError> {
    if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(StatsError::NotFinite { index, value: samples[index] });
    }
    let n = samples.len();
    if n < needed { Err(StatsError::TooFew { n, needed }) } else { Ok(()) }
}
