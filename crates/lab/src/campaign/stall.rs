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
pub(super) fn watch(work: &mut dyn FnMut()) -> f64 {
    watch_napping(work, &std::thread::sleep)
}

/// The same with a watcher that sleeps by `nap`.
fn watch_napping(work: &mut dyn FnMut(), nap: &(dyn Fn(Duration) + Sync)) -> f64 {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                nap(NAP);
                longest = longest.max(begun.elapsed().saturating_sub(NAP));
            }
            longest
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        let longest = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
        longest.as_secs_f64() * 1e3
    })
}

#[cfg(test)]
mod tests {
    use super::watch_napping;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn the_longest_delay_of_the_watcher_is_told() {
        let late = Duration::from_millis(40);
        let naps = AtomicUsize::new(0);
        // The second nap ends late, as on a machine that stood still meanwhile.
        let nap = |usual: Duration| {
            let is_late = naps.load(Ordering::SeqCst) == 1;
            std::thread::sleep(if is_late { usual + late } else { usual });
            naps.fetch_add(1, Ordering::SeqCst);
        };
        let (mut is_done, begun) = (false, Instant::now());
        let mut work = || {
            while naps.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
            is_done = true;
        };
        let late_ms = watch_napping(&mut work, &nap);
        assert!(is_done);
        let most_ms = begun.elapsed().as_secs_f64() * 1e3;
        assert!(late_ms >= 40.0 && late_ms < most_ms, "{late_ms} of {most_ms}");
    }

    #[test]
    fn a_panic_of_the_work_goes_on_in_the_caller() {
        let mut work = || panic!("the method is broken");
        let watched = || watch_napping(&mut work, &std::thread::sleep);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(watched));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"the method is broken"));
    }
}
