//! Spread of a series of figures, and the distance of one from another.

use serde::Serialize;

use super::outcome::rounded;
use stats::quantile;

/// Spread of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// That of `values`; all 0 for none.
    pub(super) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let median = rounded(quantile(&sorted, 0.5));
        Self { median, min: rounded(min), max: rounded(max) }
    }
}

/// The part that `now` lacks to `usual`, in percent; negative for more.
pub(super) fn dip_percent(usual: f64, now: f64) -> f64 {
    if usual > 0.0 { rounded(100.0 * (1.0 - now / usual)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{Spread, dip_percent};

    #[test]
    fn a_dip_is_what_is_missing() {
        assert_eq!(dip_percent(20.0, 19.0), 5.0);
        assert_eq!(dip_percent(0.0, 1.0), 0.0);
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
