//! Progress of a shard's thread: in a handler of which app it is, for which switch.
//!
//! The thread writes, the watchdog reads. Entering a handler costs the shard's own thread a few
//! plain stores; nothing here is ever waited for by a thread that serves switches.

use openflow::DatapathId;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::watch;

/// In place of a datapath id while a handler has no switch, such as that of a link.
const NO_SWITCH: u64 = u64::MAX;

/// Progress of one shard.
#[derive(Debug)]
pub(crate) struct HandlerProgress {
    /// Odd inside of handlers, even outside; each event has numbers of its own.
    turn: AtomicU64,
    app: AtomicUsize,
    dpid: AtomicU64,
    names: OnceLock<Vec<String>>,
    /// The watchdog has reported that a handler does not return.
    is_slow: AtomicBool,
    /// Callers that wait for a switch of this shard need not wait any more.
    blocked: watch::Sender<bool>,
}

/// A handler that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningHandler {
    pub(crate) turn: u64,
    pub(crate) app: String,
    pub(crate) dpid: Option<DatapathId>,
}

/// Handlers run as long as this lives, also when one panics.
pub(crate) struct HandlerScope<'a>(&'a HandlerProgress);

impl Drop for HandlerScope<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.step();
    }
}

impl Default for HandlerProgress {
    fn default() -> Self {
        Self {
            turn: AtomicU64::new(0),
            app: AtomicUsize::new(0),
            dpid: AtomicU64::new(NO_SWITCH),
            names: OnceLock::new(),
            is_slow: AtomicBool::new(false),
            blocked: watch::Sender::new(false),
        }
    }
}

impl HandlerProgress {
    /// The names of the shard's apps, once they are made.
    pub(crate) fn set_names(&self, names: Vec<String>) {
        let set = self.names.set(names);
        debug_assert!(set.is_ok(), "a shard has its apps once");
    }

    /// Handlers of an event begin.
    #[inline]
    pub(crate) fn enter(&self, dpid: Option<DatapathId>) -> HandlerScope<'_> {
        self.dpid.store(dpid.map_or(NO_SWITCH, |dpid| dpid.0), Ordering::Relaxed);
        self.step();
        HandlerScope(self)
    }

    /// The next handler is that of the app at this place.
    #[inline]
    pub(crate) fn at(&self, app: usize) {
        self.app.store(app, Ordering::Relaxed);
    }

    /// There is one writer, so this needs no exchange.
    #[inline]
    fn step(&self) {
        self.turn.store(self.turn.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// The handler that runs now, if one does.
    pub(crate) fn running(&self) -> Option<RunningHandler> {
        let turn = self.turn.load(Ordering::Acquire);
        if turn.is_multiple_of(2) {
            return None;
        }
        let app = self.app.load(Ordering::Relaxed);
        let app = self.names.get().and_then(|names| names.get(app));
        let app = app.map_or_else(|| "an app".to_owned(), Clone::clone);
        let dpid = self.dpid.load(Ordering::Relaxed);
        let dpid = (dpid != NO_SWITCH).then_some(DatapathId(dpid));
        Some(RunningHandler { turn, app, dpid })
    }

    pub(crate) fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Release);
    }

    /// Whether the watchdog has reported that a handler does not return.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Acquire)
    }

    pub(crate) fn set_blocked(&self, is_blocked: bool) {
        self.blocked.send_replace(is_blocked);
    }

    /// Done when a handler has not returned for the time after which nobody should wait for it.
    pub(crate) async fn blocked(&self) {
        let mut blocked = self.blocked.subscribe();
        if blocked.wait_for(|is_blocked| *is_blocked).await.is_err() {
            // The sender lives as long as this.
            std::future::pending::<()>().await;
        }
    }
}

/// The last word of a type's path: the name of an app that gives itself none.
pub(crate) fn short_name(path: &str) -> &str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{HandlerProgress, short_name};
    use openflow::DatapathId;

    #[test]
    fn handler_is_seen_while_it_runs_and_never_after_a_panic() {
        let progress = HandlerProgress::default();
        progress.set_names(vec!["One".into(), "Two".into()]);
        assert_eq!(progress.running(), None);
        let entered = progress.enter(Some(DatapathId(7)));
        progress.at(1);
        let first = progress.running().unwrap();
        assert_eq!((first.app.as_str(), first.dpid), ("Two", Some(DatapathId(7))));
        drop(entered);
        assert_eq!(progress.running(), None);
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _entered = progress.enter(None);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(unwound.is_err());
        assert_eq!(progress.running(), None);
        let _entered = progress.enter(None);
        assert!(progress.running().is_some_and(|now| now.turn != first.turn && now.dpid.is_none()));
    }

    #[test]
    fn names_are_the_last_words_of_paths() {
        for (path, name) in [("a::b::Hub", "Hub"), ("Hub", "Hub"), ("a::Both<b::C>", "Both")] {
            assert_eq!(short_name(path), name);
        }
    }
}
