//! Estimates: a value with the interval in which the truth lies with 99 % confidence.
//!
//! It must never be narrower than the samples allow: a single sample has no spread and so, here, an
//! interval without bounds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use statrs::distribution::{Beta, ContinuousCDF, StudentsT};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.99;

/// A value and its 99 % interval, in the unit of what was asked. An end without a bound is infinite
/// here, and null in JSON, which has no such number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    #[serde(serialize_with = "bound", deserialize_with = "lower")]
    pub low: f64,
    /// The upper end of the interval.
    #[serde(serialize_with = "bound", deserialize_with = "upper")]
    pub high: f64,
}

/// A bound, or none.
fn bound<S: Serializer>(bound: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*bound).filter(|bound| bound.is_finite()).serialize(serializer)
}

fn lower<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}

fn upper<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

impl Estimate {
    /// The mean of independent samples, by Student's t; `None` without samples.
    #[must_use]
    pub fn of_mean(samples: &[f64]) -> Option<Self> {
        Self::of_mean_at(samples, CONFIDENCE)
    }

    /// The same with an interval of another confidence.
    ///
    /// # Panics
    /// When `confidence` is not between 0 and 1: the caller's mistake.
    #[must_use]
    pub fn of_mean_at(samples: &[f64], confidence: f64) -> Option<Self> {
        assert!(confidence > 0.0 && confidence < 1.0, "confidence {confidence}");
        let n = samples.len() as f64;
        if samples.is_empty() {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n;
        let Ok(student) = StudentsT::new(0.0, 1.0, n - 1.0) else {
            return Some(Self { value: mean, low: f64::NEG_INFINITY, high: f64::INFINITY });
        };
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let t = student.inverse_cdf(0.5 + confidence / 2.0);
        let reach = t * (squares / (n - 1.0) / n).sqrt();
        Some(Self { value: mean, low: mean - reach, high: mean + reach })
    }

    /// A share of independent trials, `hits` of `count` (Clopper and Pearson, exact).
    #[must_use]
    pub fn of_share(hits: u64, count: u64) -> Self {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let (hit, other) = (hits as f64, count.saturating_sub(hits) as f64);
        let beta = |a: f64, b: f64, p: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(p));
        // Without hits, or with nothing else, the interval ends at 0 or 1.
        let low = beta(hit, other + 1.0, tail).unwrap_or(0.0);
        let high = beta(hit + 1.0, other, 1.0 - tail).unwrap_or(1.0);
        Self { value: hit / count.max(1) as f64, low, high }
    }

    /// Whether the interval holds `truth`.
    #[must_use]
    pub fn contains(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// The same with more room on both sides, for what is known only so exactly.
    #[must_use]
    pub fn widened(self, below: f64, above: f64) -> Self {
        Self { low: self.low - below, high: self.high + above, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn means_have_the_interval_of_the_printed_tables() {
        // t(0.995, 4) = 4.6041.
        let found = Estimate::of_mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(close(found.value, 3.0) && close(found.high, 3.0 + 4.6041 * 0.5_f64.sqrt()));
        assert!(close(found.low + found.high, 6.0));
        // t(0.975, 4) = 2.7764.
        let narrower = Estimate::of_mean_at(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert!(close(narrower.high, 3.0 + 2.7764 * 0.5_f64.sqrt()), "{narrower:?}");
        let one = Estimate::of_mean(&[7.0]).unwrap();
        assert!(one.contains(1e9) && one.contains(-1e9));
        assert_eq!(Estimate::of_mean(&[]), None);
        assert_eq!(Estimate::of_mean(&[2.0; 3]).map(|e| (e.low, e.high)), Some((2.0, 2.0)));
    }

    #[test]
    fn an_end_without_a_bound_is_no_number() {
        let one = Estimate::of_mean(&[7.0]).unwrap();
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(text, r#"{"value":7.0,"low":null,"high":null}"#);
        assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), one);
    }

    #[test]
    fn shares_have_exact_intervals() {
        // Published for 5 of 20: 0.0583 to 0.5601 at 99 %; the rule of 5.3 for none of 1000.
        let found = Estimate::of_share(5, 20);
        assert!(close(found.low, 0.0583) && close(found.high, 0.5601), "{found:?}");
        let none = Estimate::of_share(0, 1000);
        assert!(none.low == 0.0 && close(none.high, 0.00528), "{none:?}");
        let all = Estimate::of_share(10, 10);
        assert!(all.high == 1.0 && close(all.low, 0.5887), "{all:?}");
        assert_eq!((Estimate::of_share(0, 0).low, Estimate::of_share(0, 0).high), (0.0, 1.0));
    }
}
