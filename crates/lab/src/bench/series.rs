//! Forwarded packets in windows of time, and statistics over a series of windows.
//!
//! Pure arithmetic. Moments are those of the switch's own clock, so that the time that a question
//! takes is no part of a window.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::outcome::rounded;
use crate::cancel::Cancel;
use crate::stats::quantile;

/// What the forwarding threads had counted at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Seconds of the switch's clock.
    pub(super) at_s: f64,
    /// Packets taken from ports.
    pub(super) received: u64,
    /// Packets that ports took.
    pub(super) sent: u64,
}

impl Point {
    /// From what `weir ctl workers` says.
    ///
    /// # Errors
    /// It is not what it should be.
    pub(super) fn of_workers(workers: &[Value]) -> Result<Self> {
        let of = |worker: &Value, key: &str| -> Result<u64> {
            worker[key].as_u64().with_context(|| format!("weir ctl workers reports no {key}"))
        };
        let mut point = Self { at_s: 0.0, received: 0, sent: 0 };
        for worker in workers {
            point.at_s = of(worker, "lived_ns")? as f64 / 1e9;
            point.received += of(worker, "packets")?;
            point.sent += of(worker, "sent")?;
        }
        Ok(point)
    }
}

/// One window of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// When it began, in seconds of the switch's clock.
    pub(super) from_s: f64,
    /// When it ended.
    pub(super) to_s: f64,
    /// Millions of packets a second that left.
    pub(super) mpps: f64,
}

/// The windows between points that follow each other. A window of no time is passed over.
pub(super) fn spans(points: &[Point]) -> Vec<Span> {
    let pairs = points.windows(2).filter_map(|pair| {
        let &[first, last] = pair else { return None };
        let seconds = last.at_s - first.at_s;
        (seconds > 0.0).then(|| Span {
            from_s: first.at_s,
            to_s: last.at_s,
            mpps: last.sent.saturating_sub(first.sent) as f64 / seconds / 1e6,
        })
    });
    pairs.collect()
}

/// Takes points until `done` says so, one each `step`.
///
/// # Errors
/// The switch does not answer, or the run was interrupted.
pub(super) fn watch(
    mut point: impl FnMut() -> Result<Point>,
    step: Duration,
    cancel: &Cancel,
    mut done: impl FnMut() -> bool,
) -> Result<Vec<Point>> {
    let begun = std::time::Instant::now();
    let mut points = Vec::new();
    loop {
        points.push(point()?);
        if points.len() > 1 && done() {
            return Ok(points);
        }
        // By the schedule and not by the last answer, so that windows do not drift.
        let next = step * u32::try_from(points.len()).unwrap_or(u32::MAX);
        cancel.sleep(next.saturating_sub(begun.elapsed()))?;
    }
}

/// How a set of values is spread.
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
    use std::time::Duration;

    use super::{Point, Spread, dip_percent, spans, watch};
    use crate::cancel::Cancel;

    fn point(at_s: f64, sent: u64) -> Point {
        Point { at_s, received: sent, sent }
    }

    #[test]
    fn windows_are_packets_by_the_switch_s_time() {
        let found = spans(&[point(1.0, 0), point(1.5, 1_000_000), point(1.5, 9), point(2.5, 9)]);
        let rates: Vec<f64> = found.iter().map(|span| span.mpps).collect();
        assert_eq!(rates, [2.0, 0.0]);
        assert_eq!((found[0].from_s, found[0].to_s), (1.0, 1.5));
    }

    #[test]
    fn workers_are_summed() {
        let worker = |packets: u64| {
            serde_json::json!({"lived_ns": 2_000_000_000_u64,
            "packets": packets, "sent": packets - 1})
        };
        let point = Point::of_workers(&[worker(5), worker(7)]).unwrap();
        assert_eq!(point, Point { at_s: 2.0, received: 12, sent: 10 });
        let missing = Point::of_workers(&[serde_json::json!({})]).unwrap_err().to_string();
        assert!(missing.contains("lived_ns"), "{missing}");
    }

    #[test]
    fn watching_ends_when_it_is_done() {
        let mut asked = 0;
        let count = || {
            asked += 1;
            Ok(point(f64::from(asked), 0))
        };
        let points = watch(count, Duration::ZERO, &Cancel::default(), || true).unwrap();
        assert_eq!(points.len(), 2);
    }

    #[test]
    fn a_dip_is_what_is_missing() {
        assert_eq!(dip_percent(20.0, 19.0), 5.0);
        assert_eq!(dip_percent(0.0, 1.0), 0.0);
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
