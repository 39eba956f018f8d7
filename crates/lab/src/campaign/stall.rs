//! Stalls of the machine: times in which it ran none of the lab's threads.
//!
//! A thread sleeps a millisecond at a time and sees how late it wakes up. A virtual machine that
//! its host leaves standing for a tenth of a second shows here, whatever was measured meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the watcher sleeps at a time.
const NAP: Duration = Duration::from_millis(1);

/// A trial in which the watcher woke up so much too late is repeated.
pub(super) const STALL_MS: f64 = 50.0;

/// Does `work`, and says by how many milliseconds the watcher woke up too late at most.
pub(super) fn watch<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(NAP);
                longest = longest.max(begun.elapsed().saturating_sub(NAP));
            }
            longest
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        let longest = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (outcome, longest.as_secs_f64() * 1e3)
    })
}

#[cfg(test)]
mod tests {
    use super::watch;
    use std::time::Duration;

    #[test]
    fn the_work_is_done_and_the_lateness_is_a_time() {
        let (value, late_ms) = watch(|| {
            std::thread::sleep(Duration::from_millis(20));
            7
        });
        assert_eq!(value, 7);
        assert!(late_ms >= 0.0 && late_ms.is_finite());
    }
}
