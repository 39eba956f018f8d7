//! Stalls of the machine: times in which it ran none of the lab's threads.
//!
//! A thread sleeps a millisecond at a time and sees how late it wakes up. A virtual machine that
//! its host leaves standing for a tenth of a second shows here, whatever was measured meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sleep of the watcher between two looks.
const NAP: Duration = Duration::from_millis(1);

/// A trial in which the watcher woke up so much too late is repeated.
const STALL_MS: f64 = 50.0;

/// Beginning of a trial's error when a stall leaves it out.
const WORDS: &str = "the machine stalled";

/// The longest stall of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stall {
    /// Its length, milliseconds.
    pub(crate) ms: f64,
    /// The box at which it was seen; none for the lab's own machine.
    pub(crate) at: Option<String>,
}

impl Stall {
    /// On the lab's own machine.
    pub(crate) fn here(ms: f64) -> Self {
        Self { ms, at: None }
    }

    /// The longer of two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.ms > self.ms { other } else { self }
    }

    /// Whether a trial with it is repeated.
    pub(crate) fn is_long(&self) -> bool {
        self.ms >= STALL_MS
    }

    /// The error of a trial that is left out for it.
    pub(crate) fn error(&self) -> String {
        let at = self.at.as_ref().map_or_else(String::new, |at| format!(", seen at {at}"));
        format!("{WORDS} for {:.0} ms{at}", self.ms)
    }
}

/// Whether a trial was left out for a stall and for nothing else.
pub(crate) fn is_error(error: &str) -> bool {
    error.starts_with(WORDS)
}

/// Sleep of a watcher.
pub(crate) type Nap = fn(Duration);

/// State of a watcher while it watches.
struct Watched {
    zero: Instant,
    is_over: AtomicBool,
    /// The longest delay so far, nanoseconds.
    longest_ns: AtomicU64,
    /// When the last nap began, nanoseconds behind `zero`; [`AWAKE`] before the first.
    nap_ns: AtomicU64,
}

const AWAKE: u64 = u64::MAX;

impl Watched {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn late_ns(&self, begun_ns: u64) -> u64 {
        self.now_ns().saturating_sub(begun_ns).saturating_sub(NAP.as_nanos() as u64)
    }

    fn run(&self, nap: impl Fn(Duration)) {
        while !self.is_over.load(Ordering::Relaxed) {
            let begun_ns = self.now_ns();
            self.nap_ns.store(begun_ns, Ordering::Relaxed);
            nap(NAP);
            self.longest_ns.fetch_max(self.late_ns(begun_ns), Ordering::Relaxed);
        }
    }

    /// The longest delay in milliseconds, that of a nap that still lasts too: behind a stall the
    /// thread that asks may run before the watcher does.
    fn longest_ms(&self) -> f64 {
        let lasting_ns = self.late_ns(self.nap_ns.load(Ordering::Relaxed));
        self.longest_ns.load(Ordering::Relaxed).max(lasting_ns) as f64 / 1e6
    }
}

/// A watcher on a thread of its own, until it is dropped.
pub(crate) struct Watcher {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches from now on, asleep by `nap`.
    pub(crate) fn start(nap: impl Fn(Duration) + Send + 'static) -> io::Result<Self> {
        let (zero, is_over) = (Instant::now(), AtomicBool::new(false));
        let [longest_ns, nap_ns] = [0, AWAKE].map(AtomicU64::new);
        let watched = Arc::new(Watched { zero, is_over, longest_ns, nap_ns });
        let own = Arc::clone(&watched);
        let thread = std::thread::Builder::new().name("stalls".to_owned());
        let thread = Some(thread.spawn(move || own.run(nap))?);
        Ok(Self { watched, thread })
    }

    /// By how many milliseconds it woke up too late at most.
    pub(crate) fn longest_ms(&self) -> f64 {
        self.watched.longest_ms()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watched.is_over.store(true, Ordering::Relaxed);
        // A panic there has been printed.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Does `work`, and says by how many milliseconds the watcher woke up too late at most.
pub(crate) fn watch(work: &mut dyn FnMut()) -> f64 {
    let watcher = Watcher::start(std::thread::sleep).expect("a thread for the watcher");
    work();
    watcher.longest_ms()
}

#[cfg(test)]
mod tests {
    use super::{Stall, Watcher};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn the_longest_delay_of_the_watcher_is_reported() {
        let late = Duration::from_millis(40);
        let naps = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&naps);
        // The second nap ends late, as on a machine that stood still meanwhile.
        let nap = move |usual: Duration| {
            let is_late = own.load(Ordering::SeqCst) == 1;
            std::thread::sleep(if is_late { usual + late } else { usual });
            own.fetch_add(1, Ordering::SeqCst);
        };
        let (begun, watcher) = (Instant::now(), Watcher::start(nap).unwrap());
        while naps.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        let late_ms = watcher.longest_ms();
        let most_ms = begun.elapsed().as_secs_f64() * 1e3;
        assert!(late_ms >= 40.0 && late_ms < most_ms, "{late_ms} of {most_ms}");
    }

    #[test]
    fn the_longer_of_two_stalls_counts_and_its_box_is_named() {
        let on_box = Stall { ms: 61.0, at: Some("one (ssl:h:1)".to_owned()) };
        let both = Stall::here(60.0).or(on_box.clone());
        assert_eq!(both, on_box);
        assert_eq!(both.error(), "the machine stalled for 61 ms, seen at one (ssl:h:1)");
        assert!(both.is_long() && super::is_error(&both.error()));
        assert_eq!(on_box.or(Stall::here(70.0)).error(), "the machine stalled for 70 ms");
        assert!(!Stall::here(49.0).is_long());
    }

    #[test]
    fn a_stall_that_still_lasts_is_reported() {
        let may_end = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&may_end);
        let nap = move |_| {
            while !own.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        };
        let (begun, watcher) = (Instant::now(), Watcher::start(nap).unwrap());
        while watcher.longest_ms() < 20.0 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(watcher.longest_ms() >= 20.0, "{}", watcher.longest_ms());
        let watched = Arc::clone(&watcher.watched);
        may_end.store(true, Ordering::SeqCst);
        drop(watcher);
        assert_eq!(Arc::strong_count(&watched), 1, "the thread ends with the watcher");
    }

    #[test]
    fn work_is_watched_and_its_panic_goes_on() {
        // Every nap ends a little late; a machine that is loaded may have none in so short a work.
        let (mut is_done, begun) = (false, Instant::now());
        let mut work = || {
            std::thread::sleep(Duration::from_millis(5));
            is_done = true;
        };
        let mut late_ms = super::watch(&mut work);
        while late_ms == 0.0 && begun.elapsed() < Duration::from_secs(60) {
            late_ms = super::watch(&mut work);
        }
        let most_ms = begun.elapsed().as_secs_f64() * 1e3;
        assert!(is_done && late_ms > 0.0 && late_ms < most_ms, "{late_ms} of {most_ms}");
        let broken = || super::watch(&mut || panic!("the method is broken"));
        let panic = std::panic::catch_unwind(broken).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the method is broken"));
    }
}
