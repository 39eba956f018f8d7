//! Memory after a storm of connections: when most have gone, the freed memory goes back to the
//! system.
//!
//! The tasks of a thousand connections take some six megabytes. All is freed with them, but the
//! allocator gives only the upper end of its heap back by itself, and keeps the rest for ever.

use std::cell::Cell;
use std::time::{Duration, Instant};

use channel::driver::now;
use files::release_free_memory;

/// Connections at once that are a storm.
const STORM: usize = 256;

/// A storm is over when only one connection in this number is left.
const LEFT: usize = 8;

/// The last connections have this long to end too.
const QUIET: Duration = Duration::from_secs(1);

/// Memory is released no oftener than this: all connections wait while it is.
const RELEASE_EVERY: Duration = Duration::from_secs(60);

thread_local! {
    /// The watch over the connections of all listeners: the process has one heap, and one thread
    /// that serves connections.
    static WATCH: StormWatch = StormWatch::default();
}

/// A connection begins.
pub(super) fn begin() {
    WATCH.with(StormWatch::begin);
}

/// A connection has ended; whether memory is to be released.
pub(super) fn end() -> bool {
    WATCH.with(|watch| watch.end(now()))
}

/// The connections that are open, the most since memory was released, and when that was.
#[derive(Debug, Default)]
struct StormWatch {
    open: Cell<usize>,
    most: Cell<usize>,
    released_at: Cell<Option<Instant>>,
}

impl StormWatch {
    fn begin(&self) {
        self.open.set(self.open.get() + 1);
        self.most.set(self.most.get().max(self.open.get()));
    }

    /// Whether a storm is over, and the last release is long ago.
    fn end(&self, now: Instant) -> bool {
        self.open.set(self.open.get().saturating_sub(1));
        let is_over = self.most.get() >= STORM && self.open.get() <= self.most.get() / LEFT;
        let released_at = self.released_at.get();
        let is_due = released_at.is_none_or(|at| now.duration_since(at) >= RELEASE_EVERY);
        if is_over && is_due {
            self.most.set(self.open.get());
            self.released_at.set(Some(now));
        }
        is_over && is_due
    }
}

/// Releases free memory when the last connections of a storm have ended too.
pub(super) async fn release_after_storm() {
    tokio::time::sleep(QUIET).await;
    release_free_memory();
}

#[cfg(test)]
mod tests {
    use super::{RELEASE_EVERY, STORM, StormWatch};
    use std::time::Instant;

    #[test]
    fn a_storm_is_over_once_and_a_few_connections_are_none() {
        let (watch, mut now) = (StormWatch::default(), Instant::now());
        for _ in 0..3 {
            (0..STORM - 1).for_each(|_| watch.begin());
            assert!(!(0..STORM - 1).any(|_| watch.end(now)), "a few controllers come and go");
        }
        for _ in 0..2 {
            (0..4 * STORM).for_each(|_| watch.begin());
            let ends = (0..4 * STORM).filter(|_| watch.end(now));
            assert_eq!(ends.count(), 1);
            now += RELEASE_EVERY;
        }
    }

    #[test]
    fn storms_in_a_row_release_memory_once_in_a_minute() {
        let (watch, now) = (StormWatch::default(), Instant::now());
        let storm = |now| {
            (0..STORM).for_each(|_| watch.begin());
            (0..STORM).filter(|_| watch.end(now)).count()
        };
        assert_eq!(storm(now), 1);
        assert_eq!(storm(now), 0);
        assert_eq!(storm(now + RELEASE_EVERY / 2), 0);
        // What was not released for want of time is released by the next connection that ends.
        watch.begin();
        assert!(watch.end(now + RELEASE_EVERY));
        assert_eq!(storm(now + RELEASE_EVERY), 0);
    }
}
