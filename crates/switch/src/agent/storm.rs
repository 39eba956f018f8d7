//! Memory after a storm of connections: when most have gone, the freed memory goes back to the
//! system.
//!
//! The tasks of a thousand connections take some six megabytes. All is freed with them, but the
//! allocator gives only the upper end of its heap back by itself, and keeps the rest for ever.

use std::cell::Cell;
use std::time::Duration;

use netdev::sys::memory::release_free_memory;

/// Connections at once that are a storm.
const STORM: usize = 256;

/// A storm is over when only one connection in so many is left.
const LEFT: usize = 8;

/// The last connections have this long to end too.
const QUIET: Duration = Duration::from_secs(1);

/// The connections of a listener that are open, and the most since memory was released.
#[derive(Debug, Default)]
pub(super) struct StormWatch {
    open: Cell<usize>,
    most: Cell<usize>,
}

impl StormWatch {
    /// A connection begins.
    pub(super) fn begin(&self) {
        self.open.set(self.open.get() + 1);
        self.most.set(self.most.get().max(self.open.get()));
    }

    /// A connection has ended; whether a storm is over by that.
    pub(super) fn end(&self) -> bool {
        self.open.set(self.open.get().saturating_sub(1));
        let is_over = self.most.get() >= STORM && self.open.get() <= self.most.get() / LEFT;
        if is_over {
            self.most.set(self.open.get());
        }
        is_over
    }
}

/// Releases free memory when the last connections of a storm have ended too.
pub(super) async fn release_after_storm() {
    tokio::time::sleep(QUIET).await;
    release_free_memory();
}

#[cfg(test)]
mod tests {
    use super::{STORM, StormWatch};

    #[test]
    fn a_storm_is_over_once_and_a_few_connections_are_none() {
        let watch = StormWatch::default();
        for _ in 0..3 {
            (0..STORM - 1).for_each(|_| watch.begin());
            assert!(!(0..STORM - 1).any(|_| watch.end()), "a few controllers come and go");
        }
        for _ in 0..2 {
            (0..4 * STORM).for_each(|_| watch.begin());
            let ends = (0..4 * STORM).filter(|_| watch.end());
            assert_eq!(ends.count(), 1);
        }
    }
}
