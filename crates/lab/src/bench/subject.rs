//! What the bench measures: a running forwarder that takes packets in by one port for ever and
//! sends them out by another, and can be held still while another one is measured.
//!
//! A forwarder that polls uses its core whether or not it is being measured, so the one that is not
//! is stopped by a signal; its caches stay as they are.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::cancel::Cancel;

/// What a forwarder has counted at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// When.
    pub(super) at: Instant,
    /// Packets received by port 1, and by the first port of every further pair.
    pub(super) received: u64,
    /// Packets sent by port 2, and by the second port of every further pair.
    pub(super) sent: u64,
}

impl Counts {
    /// Packets that came in and did not leave, of those between `first` and now. A switch that
    /// reads both counters between two batches has nothing in flight then.
    pub(super) fn lost_since(&self, first: &Self) -> i64 {
        let stayed = |counts: &Self| counts.received as i64 - counts.sent as i64;
        stayed(self) - stayed(first)
    }
}

/// A running forwarder.
pub(super) trait Subject {
    /// Its name in tables and in JSON.
    fn name(&self) -> &'static str;

    /// The process that forwards.
    fn pid(&self) -> u32;

    /// What it has counted.
    ///
    /// # Errors
    /// It has ended, or does not answer.
    fn counts(&mut self) -> Result<Counts>;

    /// Waits until its rate is what it will stay. The seconds that it took.
    ///
    /// # Errors
    /// It has ended, or does not answer.
    fn warm_up(&mut self, cancel: &Cancel) -> Result<f64>;
}

/// Signals a process; the end of one shows when its counters are asked for.
fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no such process id")?;
    kill_process(pid, signal).context("signalling a forwarder")
}

/// Holds a forwarder still until this value goes.
#[derive(Debug)]
pub(super) struct Held(u32);

impl Held {
    /// Stops the process.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn hold(pid: u32) -> Result<Self> {
        signal(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = signal(self.0, Signal::CONT) {
            tracing::debug!(pid = self.0, %error, "cannot go on");
        }
    }
}

/// Waits until two rates in a row, each over a quarter of a second, differ by less than a
/// fiftieth, or until `limit`. The seconds that it took.
///
/// # Errors
/// The counters cannot be read, or the run was interrupted.
pub(super) fn settle(
    mut counts: impl FnMut() -> Result<Counts>,
    limit: Duration,
    cancel: &Cancel,
) -> Result<f64> {
    const STEP: Duration = Duration::from_millis(250);
    let start = Instant::now();
    let mut last = counts()?;
    let mut last_rate = 0.0;
    loop {
        cancel.sleep(STEP)?;
        let now = counts()?;
        let rate = rate(&last, &now);
        let is_steady = rate > 0.0 && (rate - last_rate).abs() < last_rate / 50.0;
        if is_steady || start.elapsed() > limit {
            return Ok(start.elapsed().as_secs_f64());
        }
        (last, last_rate) = (now, rate);
    }
}

/// Packets a second out of port 2 between two readings.
pub(super) fn rate(first: &Counts, last: &Counts) -> f64 {
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    last.sent.saturating_sub(first.sent) as f64 / seconds.max(1e-9)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Counts, rate, settle};
    use crate::cancel::Cancel;

    #[test]
    fn a_rate_is_packets_sent_by_time() {
        let at = Instant::now();
        let first = Counts { at, received: 0, sent: 100 };
        let last = Counts { at: at + Duration::from_millis(500), received: 0, sent: 1_100 };
        assert!((rate(&first, &last) - 2_000.0).abs() < 1e-6);
        assert_eq!(rate(&last, &last), 0.0);
    }

    #[test]
    fn settling_ends_when_the_rate_stays() {
        let start = Instant::now();
        let mut reading = 0_u32;
        let counts = || {
            reading += 1;
            let sent = if reading < 3 { 0 } else { u64::from(reading) * 1_000_000 };
            Ok(Counts { at: start + Duration::from_millis(250) * reading, received: 0, sent })
        };
        let long = Duration::from_secs(60);
        settle(counts, long, &Cancel::default()).unwrap();
        assert_eq!(reading, 5);
    }
}
