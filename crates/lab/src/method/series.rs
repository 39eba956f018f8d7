//! Packets that a switch forwarded in windows of time that follow each other.
//!
//! Moments are those of the switch's own clock where it tells them, so that the time that a
//! question takes is no part of a window, and a question moves no count of the caches.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use programs::cancel::Cancel;
use serde_json::Value;

use super::replay::Replaying;

/// Count of departures at one moment, in seconds of any clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) at_s: f64,
    pub(super) sent: u64,
}

impl Point {
    /// From what `weir ctl workers` says.
    fn of_workers(workers: &[Value]) -> Result<Self> {
        let of = |worker: &Value, key: &str| -> Result<u64> {
            worker[key].as_u64().with_context(|| format!("weir ctl workers reports no {key}"))
        };
        let mut point = Self { at_s: 0.0, sent: 0 };
        for worker in workers {
            point.at_s = of(worker, "lived_ns")? as f64 / 1e9;
            point.sent += of(worker, "sent")?;
        }
        Ok(point)
    }
}

/// One window of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// When it ended, in seconds from the first point.
    pub(super) to_s: f64,
    /// Millions of packets a second that left.
    pub(super) mpps: f64,
}

/// The windows between points that follow each other. A window of no time is passed over.
pub(super) fn spans(points: &[Point]) -> Vec<Span> {
    let zero_s = points.first().map_or(0.0, |point| point.at_s);
    let pairs = points.windows(2).filter_map(|pair| {
        let &[first, last] = pair else { return None };
        let seconds = last.at_s - first.at_s;
        let mpps = last.sent.saturating_sub(first.sent) as f64 / seconds / 1e6;
        (seconds > 0.0).then_some(Span { to_s: last.at_s - zero_s, mpps })
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
    let begun = Instant::now();
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

impl Replaying<'_> {
    /// Departures up to now, counted from `zero` where the switch has no clock of its own.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn point(&self, zero: Instant) -> Result<Point> {
        if let Some(Value::Array(workers)) = self.workers()? {
            return Point::of_workers(&workers);
        }
        let counts = self.counts()?;
        Ok(Point { at_s: counts.at.duration_since(zero).as_secs_f64(), sent: counts.sent })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{Point, spans, watch};
    use programs::cancel::Cancel;

    fn point(at_s: f64, sent: u64) -> Point {
        Point { at_s, sent }
    }

    #[test]
    fn windows_are_packets_by_the_switch_s_time() {
        let found = spans(&[point(1.0, 0), point(1.5, 1_000_000), point(1.5, 9), point(2.5, 9)]);
        let found: Vec<(f64, f64)> = found.iter().map(|span| (span.to_s, span.mpps)).collect();
        assert_eq!(found, [(0.5, 2.0), (1.5, 0.0)]);
    }

    #[test]
    fn workers_are_summed() {
        let worker = |sent: u64| json!({"lived_ns": 2_000_000_000_u64, "sent": sent});
        assert_eq!(Point::of_workers(&[worker(4), worker(6)]).unwrap(), point(2.0, 10));
        let missing = Point::of_workers(&[json!({})]).unwrap_err().to_string();
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
}
