//! Echo requests beside a measurement: how long the switch takes to answer somebody else.
//!
//! They go by a connection of their own, one after the other with a millisecond between, so that
//! each shows how long a controller would have waited just then. The thread that asks shares its
//! core with the rest of the bench and the switch's agent; what that costs is in the times, and in
//! those that were taken while nothing else happened too.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::outcome::rounded;
use crate::cancel::Cancel;
use crate::stats::quantile;
use crate::switch_client::SwitchClient;

/// Between an answer and the next question.
const PAUSE: Duration = Duration::from_millis(1);

/// Times of answers, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Echoed {
    pub(super) count: usize,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
}

impl Echoed {
    /// Of the times in seconds; all 0 for none.
    pub(super) fn of(times_s: &[f64]) -> Self {
        let mut sorted: Vec<f64> = times_s.iter().map(|time_s| 1e3 * time_s).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Self::default();
        }
        let at = |q| rounded(quantile(&sorted, q));
        Self { count: sorted.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        format!(
            "p50 {:.3}, p99 {:.3}, longest {:.3} ms of {}",
            self.p50_ms, self.p99_ms, self.max_ms, self.count
        )
    }
}

/// A thread that asks.
#[derive(Debug)]
pub(super) struct Echoes {
    /// Ends the thread when this value goes.
    stop: Cancel,
    times: Receiver<(Instant, f64)>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Echoes {
    /// Asks over `client` from now on.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(client: SwitchClient) -> Result<Self> {
        let (sender, times) = channel();
        let stop = Cancel::default();
        let until = stop.clone();
        let thread = std::thread::Builder::new().name("echoes".into());
        let thread = thread.spawn(move || ask(client, &until, &sender));
        Ok(Self { stop, times, thread: Some(thread.context("starting a thread")?) })
    }

    /// Seconds that the answers took which were asked for after `from`, up to now. An answer that
    /// is still out is waited for, since the late ones are what is looked for.
    ///
    /// # Errors
    /// The switch does not answer any more.
    pub(super) fn since(&mut self, from: Instant, limit: Duration) -> Result<Vec<f64>> {
        let now = Instant::now();
        let mut times = Vec::new();
        loop {
            match self.times.recv_timeout(limit) {
                Ok((asked, _)) if asked < from => {}
                Ok((asked, time_s)) => {
                    times.push(time_s);
                    if asked >= now {
                        return Ok(times);
                    }
                }
                Err(_) => self.ended()?,
            }
        }
    }

    fn ended(&mut self) -> Result<()> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            return thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        anyhow::bail!("the switch does not answer an echo request")
    }
}

impl Drop for Echoes {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // What it has to report has been asked for before.
            let _ = thread.join();
        }
    }
}

fn ask(mut client: SwitchClient, stop: &Cancel, times: &Sender<(Instant, f64)>) -> Result<()> {
    while stop.check().is_ok() {
        let asked = Instant::now();
        client.echo()?;
        if times.send((asked, asked.elapsed().as_secs_f64())).is_err() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Echoed;

    #[test]
    fn late_answers_are_seen() {
        let mut times = vec![0.001; 99];
        times.push(0.5);
        let echoed = Echoed::of(&times);
        assert_eq!((echoed.count, echoed.p50_ms, echoed.max_ms), (100, 1.0, 500.0));
        assert!(echoed.p99_ms > 1.0 && echoed.text().contains("longest 500.000 ms of 100"));
        assert_eq!(Echoed::of(&[]), Echoed::default());
    }
}
