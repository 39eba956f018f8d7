//! Statistics of repeated measurements: the one place where Weir has them.
//!
//! The unit of repetition is the start of a switch. A [`Figure`] is the median of the values of its
//! starts with their range; a [`Comparison`] is the ratio of two figures from pairs of starts, by
//! Student's t of the logarithms. Trials of one start share what the start was like: they make its
//! value more exact, and never count as repetitions. All functions are pure. No sample is dropped
//! here, and no interval claims more confidence than it has; `simulated.rs` holds them against
//! switches whose truth is known.
#![forbid(unsafe_code)]

mod comparison;
mod figure;
mod order;
#[cfg(test)]
mod simulated;

pub use comparison::{Comparison, Scale, holm};
pub use figure::{Figure, Observed, range_confidence};
pub use order::{mean_and_squares, median, quantile, samples_needed};

/// The confidence of the intervals that the lab reports.
pub const CONFIDENCE: f64 = 0.95;
