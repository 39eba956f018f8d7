//! The watchdog: a thread that reports which app blocks which switch.
//!
//! It looks at the shards now and then, and counts looks instead of time, so that a process that
//! was stopped for a while accuses nobody. It ends with the controller, and never waits for it.

use super::StatusWriter;
use crate::handler_progress::{HandlerProgress, RunningHandler};
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks after which a handler that still runs is reported.
const SLOW_LOOKS: u32 = 4;

/// The watchdog's life.
pub(super) struct Watchdog {
    _ends: Sender<()>,
}

/// A handler that has been seen before.
#[derive(Default)]
struct Seen {
    running: Option<RunningHandler>,
    looks: u32,
}

impl Watchdog {
    /// Starts it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(shared: &Arc<Shared>, report: &StatusWriter) -> std::io::Result<Self> {
        let (ends, end) = channel();
        let (shared, report) = (Arc::clone(shared), Arc::clone(report));
        let look = move || watch(&shared, &report, &end);
        std::thread::Builder::new().name("watchdog".into()).spawn(look)?;
        Ok(Self { _ends: ends })
    }
}

fn watch(shared: &Shared, report: &StatusWriter, end: &Receiver<()>) {
    let mut seen: Vec<Seen> = Vec::new();
    seen.resize_with(shared.shard_count(), Seen::default);
    // As long as a switch may take to answer, so may the app in its way.
    let deadline = shared.bounds.answer_deadline;
    while end.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        for (shard, (seen, progress)) in seen.iter_mut().zip(shared.progresses()).enumerate() {
            if let Some(line) = seen.look(progress, deadline) {
                report(&format!("shard {shard}: {line}"));
            }
        }
    }
}

impl Seen {
    /// Looks once; the line to report, if there is one.
    fn look(&mut self, progress: &HandlerProgress, deadline: Duration) -> Option<String> {
        let now = progress.running();
        let is_same = matches!(
            (&self.running, &now), (Some(before), Some(now)) if before.turn == now.turn
        );
        if !is_same {
            let is_reported = self.looks >= SLOW_LOOKS;
            let (before, after) = (self.running.take(), self.time());
            *self = Self { running: now, looks: 0 };
            if !is_reported {
                return None;
            }
            progress.set_slow(false);
            progress.set_blocked(false);
            let app = before.map(|before| before.app).unwrap_or_default();
            return Some(format!("the handler of {app} has returned after {} s", after.as_secs()));
        }
        // The app is the one that is in the way now; those before it have returned.
        self.running = now;
        self.looks += 1;
        if self.time() >= deadline {
            progress.set_blocked(true);
        }
        if self.looks != SLOW_LOOKS {
            return None;
        }
        progress.set_slow(true);
        let RunningHandler { app, dpid, .. } = self.running.as_ref()?;
        let whose = dpid.map_or_else(String::new, |dpid| format!(" for switch {dpid}"));
        Some(format!(
            "a handler of {app}{whose} has not returned for {} s: all switches of this shard wait",
            self.time().as_secs()
        ))
    }

    fn time(&self) -> Duration {
        LOOK_EVERY * self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::{HandlerProgress, SLOW_LOOKS, Seen};
    use openflow::DatapathId;
    use std::time::Duration;

    #[test]
    fn slow_handler_is_reported_once_and_when_it_returns() {
        let progress = HandlerProgress::default();
        let (mut seen, deadline) = (Seen::default(), Duration::from_secs(3));
        progress.set_names(vec!["Slow".into()]);
        assert_eq!(seen.look(&progress, deadline), None);
        let entered = progress.enter(Some(DatapathId(0xa)));
        progress.at(0);
        let mut lines = Vec::new();
        for _ in 0..10 {
            lines.extend(seen.look(&progress, deadline));
        }
        let expected = "a handler of Slow for switch 000000000000000a has not returned for 2 s";
        assert!(lines.len() == 1 && lines[0].starts_with(expected), "{lines:?}");
        assert!(progress.is_slow());
        drop(entered);
        let after = seen.look(&progress, deadline).unwrap();
        assert!(after.starts_with("the handler of Slow has returned after"), "{after}");
        assert!(!progress.is_slow());
        // Many short handlers are no long one.
        for _ in 0..3 * SLOW_LOOKS {
            let _entered = progress.enter(None);
            assert_eq!(seen.look(&progress, deadline), None);
        }
    }
}
