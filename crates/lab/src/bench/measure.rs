//! Measuring one forwarder, and two in turns.
//!
//! Other programs keep this machine busy at times, so two forwarders are compared only by pairs of
//! measurements that follow each other on the same core, in the order A B B A; the interval is that
//! of the logarithms of the pairs' ratios. A pair in which a forwarder did not have its core is
//! measured again, and the report says how often. Where that does not help, rates can be found by
//! the time in which a forwarder had its core.

use std::time::Duration;

use anyhow::Result;
use files::proc::ProcFolder;

use super::outcome::rounded;
use super::subject::{Held, Subject, rate};
use crate::cancel::Cancel;
use crate::stats::{CONFIDENCE, Interval, paired_ratio, summarise};

/// How long a forwarder that was held still runs before it is measured.
pub(super) const RUN_IN: Duration = Duration::from_millis(300);

/// The part of a measurement that a forwarder may be kept from its core, and still count.
const KEPT_OFF_MAX: f64 = 0.03;

/// Measurements that are made again at most, as a multiple of those that are wanted.
pub(super) const AGAIN_MAX: usize = 2;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForwardingSample {
    /// Packets a second out of port 2, in millions.
    pub(super) mpps: f64,
    /// Whether the forwarder was kept from its core.
    pub(super) stalled: bool,
}

/// Measurements of one forwarder.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Millions of packets a second, in order.
    pub(super) mpps: Vec<f64>,
    /// How many were measured again.
    pub(super) again: usize,
}

impl Series {
    /// How many of all were measured again.
    pub(super) fn again_of(all: &[Self]) -> usize {
        all.iter().map(|series| series.again).sum()
    }

    /// The measurements with as many digits as they have.
    pub(super) fn rounded(&self) -> Vec<f64> {
        self.mpps.iter().copied().map(rounded).collect()
    }
}

/// Measurements of two forwarders in turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// The first one's, in millions of packets a second.
    pub(super) ours: Vec<f64>,
    /// The other one's.
    pub(super) theirs: Vec<f64>,
    /// How many pairs were measured again.
    pub(super) again: usize,
}

/// How much more the first forwarder does than the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// The median of the pairs' ratios.
    pub(super) median: f64,
    /// The lower end of the 99 % interval, by Student's t from the logarithms of the pairs' ratios,
    /// which takes two pairs where one by ranks takes eight.
    pub(super) low: f64,
    /// The upper end.
    pub(super) high: f64,
}

/// The middle of some measurements; 0 for none.
pub(super) fn median(samples: &[f64]) -> f64 {
    summarise(samples).map_or(0.0, |summary| summary.median)
}

impl Pairs {
    /// The ratio; `None` for less than two pairs, for a value without its pair, or where one of
    /// both forwards nothing.
    pub(super) fn ratio(&self) -> Option<Ratio> {
        let found = paired_ratio(&self.ours, &self.theirs, CONFIDENCE).ok()?;
        let Interval { low, high, .. } = found.t_interval;
        Some(Ratio { median: found.median, low, high })
    }
}

/// How each measurement is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Its seconds.
    pub(super) seconds: f64,
    /// Whether a second is one in which the forwarder had its core, instead of one of the clock.
    pub(super) core_time: bool,
}

/// Measures a forwarder that runs `repeats` times.
///
/// # Errors
/// Its counters cannot be read, or the run was interrupted.
pub(super) fn measure(
    subject: &mut dyn Subject,
    window: Window,
    repeats: usize,
    cancel: &Cancel,
) -> Result<Series> {
    let mut series = Series::default();
    while series.mpps.len() < repeats {
        let sample = once(subject, window, cancel)?;
        if sample.stalled && series.again < repeats * AGAIN_MAX {
            series.again += 1;
        } else {
            series.mpps.push(sample.mpps);
        }
    }
    Ok(series)
}

/// Measures two forwarders in turns. Both run when this begins and when it ends.
///
/// # Errors
/// Counters cannot be read, or the run was interrupted.
pub(super) fn measure_pairs(
    ours: &mut dyn Subject,
    theirs: &mut dyn Subject,
    window: Window,
    count: usize,
    cancel: &Cancel,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let mut round = 0;
    while pairs.ours.len() < count {
        let (our_sample, their_sample) = if round % 2 == 0 {
            let first = alone(ours, theirs.pid(), window, cancel)?;
            (first, alone(theirs, ours.pid(), window, cancel)?)
        } else {
            let first = alone(theirs, ours.pid(), window, cancel)?;
            (alone(ours, theirs.pid(), window, cancel)?, first)
        };
        round += 1;
        let stalled = our_sample.stalled || their_sample.stalled;
        if stalled && pairs.again < count * AGAIN_MAX {
            pairs.again += 1;
        } else {
            pairs.ours.push(our_sample.mpps);
            pairs.theirs.push(their_sample.mpps);
        }
    }
    Ok(pairs)
}

/// Measures `subject` while the other process is held still.
fn alone(
    subject: &mut dyn Subject,
    other: u32,
    window: Window,
    cancel: &Cancel,
) -> Result<ForwardingSample> {
    let _held = Held::hold(other)?;
    cancel.sleep(RUN_IN)?;
    once(subject, window, cancel)
}

/// Measures a forwarder that runs, once.
///
/// # Errors
/// Its counters cannot be read, or the run was interrupted.
pub(super) fn once(
    subject: &mut dyn Subject,
    window: Window,
    cancel: &Cancel,
) -> Result<ForwardingSample> {
    let busy = busiest_thread_s(subject.pid());
    let first = subject.counts()?;
    cancel.sleep(Duration::from_secs_f64(window.seconds))?;
    let last = subject.counts()?;
    let ran_s = busiest_difference(&busy, &busiest_thread_s(subject.pid()));
    let clock_s = last.at.duration_since(first.at).as_secs_f64();
    let mpps = rate(&first, &last) / 1e6;
    if window.core_time {
        // The kernel counts a running thread's time by ticks of some milliseconds, so that it may
        // seem to have run longer than the clock.
        let part = (ran_s / clock_s.max(1e-9)).clamp(1e-3, 1.0);
        return Ok(ForwardingSample { mpps: mpps / part, stalled: false });
    }
    Ok(ForwardingSample { mpps, stalled: ran_s < clock_s * (1.0 - KEPT_OFF_MAX) })
}

/// Seconds that every thread of a process has run, by its number: what `/proc` says.
fn busiest_thread_s(pid: u32) -> Vec<(u32, f64)> {
    let threads = ProcFolder::of(pid).threads().unwrap_or_default().into_iter();
    let ran =
        |(tid, thread): (u32, ProcFolder)| Some((tid, thread.sched_time()?.ran_ns as f64 / 1e9));
    threads.filter_map(ran).collect()
}

/// Seconds that the threads of a process that forward have waited for a core, since they began:
/// what `/proc` says of those whose name begins with `worker`.
pub(super) fn waited_s(pid: u32) -> f64 {
    let threads = ProcFolder::of(pid).threads().unwrap_or_default().into_iter();
    let waited = threads.filter_map(|(_, thread)| {
        let is_worker = thread.read("comm").ok()?.starts_with("worker");
        let waited_ns = thread.sched_time()?.waited_ns;
        is_worker.then_some(waited_ns as f64 / 1e9)
    });
    waited.sum()
}

/// How long the thread that ran most has run in between.
fn busiest_difference(before: &[(u32, f64)], after: &[(u32, f64)]) -> f64 {
    let ran = after.iter().map(|(thread, seconds)| {
        let start = before.iter().find(|(known, _)| known == thread);
        seconds - start.map_or(0.0, |(_, seconds)| *seconds)
    });
    ran.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Pairs, Window, busiest_difference, busiest_thread_s, measure, median};
    use crate::bench::subject::{Counts, Subject};
    use crate::cancel::Cancel;

    #[test]
    fn a_ratio_is_the_median_of_the_pairs() {
        let pairs =
            Pairs { ours: vec![20.0, 21.0, 19.0], theirs: vec![10.0, 10.0, 10.0], again: 0 };
        let ratio = pairs.ratio().unwrap();
        assert!((ratio.median - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.low < 2.0 && ratio.high > 2.0, "{ratio:?}");
        assert_eq!(Pairs { ours: vec![1.0], theirs: vec![1.0], again: 0 }.ratio(), None);
        let nothing = Pairs { ours: vec![1.0, 1.0], theirs: vec![0.0, 0.0], again: 0 };
        assert_eq!(nothing.ratio(), None);
    }

    #[test]
    fn the_thread_that_ran_most_counts() {
        let before = [(1, 0.5), (2, 3.0)];
        assert_eq!(busiest_difference(&before, &[(1, 1.5), (2, 3.25), (3, 0.1)]), 1.0);
        assert!(!busiest_thread_s(std::process::id()).is_empty());
    }

    /// A forwarder that has sent a thousand packets more whenever it is asked.
    struct Thousand(u64);

    impl Subject for Thousand {
        fn name(&self) -> &'static str {
            "thousand"
        }

        fn pid(&self) -> u32 {
            std::process::id()
        }

        fn counts(&mut self) -> anyhow::Result<Counts> {
            self.0 += 1_000;
            Ok(Counts { at: Instant::now(), received: self.0, sent: self.0 })
        }

        fn warm_up(&mut self, _: &Cancel) -> anyhow::Result<f64> {
            Ok(0.0)
        }
    }

    #[test]
    fn a_forwarder_without_its_core_is_measured_again_and_not_for_ever() {
        let window = Window { seconds: 0.002, core_time: false };
        let series = measure(&mut Thousand(0), window, 3, &Cancel::default()).unwrap();
        assert_eq!(series.mpps.len(), 3);
        assert!(series.again <= 6 && median(&series.mpps) > 0.0, "{series:?}");
        let window = Window { core_time: true, ..window };
        let series = measure(&mut Thousand(0), window, 3, &Cancel::default()).unwrap();
        assert_eq!((series.mpps.len(), series.again), (3, 0), "core time needs no second try");
    }
}
