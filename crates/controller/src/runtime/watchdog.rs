//! The watchdog: a thread that says which app blocks which switch.
//!
//! It looks at the shards now and then, and counts looks instead of time, so that a process that
//! was stopped for a while accuses nobody. It ends with the controller, and never waits for it.

use super::StatusWriter;
use crate::beat::{Beat, Inside};
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A handler that runs for so many looks is told of.
const SLOW_LOOKS: u32 = 4;

/// The watchdog's life.
pub(super) struct Watchdog {
    _ends: Sender<()>,
}

/// A handler that has been seen before.
#[derive(Default)]
struct Seen {
    inside: Option<Inside>,
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
        for (shard, (seen, beat)) in seen.iter_mut().zip(shared.beats()).enumerate() {
            if let Some(line) = seen.look(beat, deadline) {
                report(&format!("shard {shard}: {line}"));
            }
        }
    }
}

impl Seen {
    /// Looks once; what is to be said.
    fn look(&mut self, beat: &Beat, deadline: Duration) -> Option<String> {
        let now = beat.inside();
        let is_same = matches!(
            (&self.inside, &now), (Some(before), Some(now)) if before.turn == now.turn
        );
        if !is_same {
            let told = self.looks >= SLOW_LOOKS;
            let (before, after) = (self.inside.take(), self.time());
            *self = Self { inside: now, looks: 0 };
            if !told {
                return None;
            }
            beat.set_slow(false);
            beat.set_blocked(false);
            let app = before.map(|before| before.app).unwrap_or_default();
            return Some(format!("the handler of {app} has returned after {} s", after.as_secs()));
        }
        // The app is the one that is in the way now; those before it have returned.
        self.inside = now;
        self.looks += 1;
        if self.time() >= deadline {
            beat.set_blocked(true);
        }
        if self.looks != SLOW_LOOKS {
            return None;
        }
        beat.set_slow(true);
        let Inside { app, dpid, .. } = self.inside.as_ref()?;
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
    use super::{Beat, SLOW_LOOKS, Seen};
    use openflow::DatapathId;
    use std::time::Duration;

    #[test]
    fn a_handler_is_told_of_once_and_when_it_returns() {
        let (beat, mut seen, deadline) = (Beat::default(), Seen::default(), Duration::from_secs(3));
        beat.set_names(vec!["Slow".into()]);
        assert_eq!(seen.look(&beat, deadline), None);
        let entered = beat.enter(Some(DatapathId(0xa)));
        beat.at(0);
        let mut told = Vec::new();
        for _ in 0..10 {
            told.extend(seen.look(&beat, deadline));
        }
        let expected = "a handler of Slow for switch 000000000000000a has not returned for 2 s";
        assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
        assert!(beat.is_slow());
        drop(entered);
        let after = seen.look(&beat, deadline).unwrap();
        assert!(after.starts_with("the handler of Slow has returned after"), "{after}");
        assert!(!beat.is_slow());
        // Many short handlers are no long one.
        for _ in 0..3 * SLOW_LOOKS {
            let _entered = beat.enter(None);
            assert_eq!(seen.look(&beat, deadline), None);
        }
    }
}
