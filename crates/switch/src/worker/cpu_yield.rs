//! Niceness of a worker: it yields the processor while the kernel tier decides many frames.
//!
//! Frames that the kernel decides cost their sender, and those that it hands over cost the worker.
//! A sender whose frames begin a flow each would so have two threads on the processors, its own and
//! the worker, beside one of a sender whose frames the kernel forwards: with two processors, the
//! latter kept two thirds of its rate. So a worker that is never idle with what the tier hands
//! over, while the kernel decides half as many frames as the worker, asks for a third of the time
//! of others (niceness 5 above its own). Where processors are free it has as much as before. What
//! is handed over and finds no room is in no sum: it costs nobody much. Everything here but
//! [`CpuYield::decide`] and what it calls is arithmetic.

use std::time::{Duration, Instant};

use netdev::TierFrames;
use netdev::sys::niceness::{niceness, set_niceness};

/// The time between two decisions.
const DECIDE_EVERY: Duration = Duration::from_millis(50);

/// Above its own niceness; each step is worth a tenth to a fifth of the time.
const NICENESS_ADDED: i32 = 5;

/// The highest there is.
const NICENESS_MAX: i32 = 19;

/// A worker that was idle for no more than this part of the time is never idle.
const IDLE_PART: u32 = 10;

/// The figures of a worker since it began, or of some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerFigures {
    pub(super) lived: Duration,
    /// Asleep, or in rounds without work.
    pub(super) idle: Duration,
    /// Frames that it took, from all ports.
    pub(super) taken: u64,
    /// Frames at the ports of its kernel tiers.
    pub(super) tier: TierFrames,
}

impl WorkerFigures {
    /// Its figures since then. A shard that has gone took its figures along.
    fn since(&self, earlier: &Self) -> Self {
        let TierFrames { seen, handed_over } = earlier.tier;
        Self {
            lived: self.lived.saturating_sub(earlier.lived),
            idle: self.idle.saturating_sub(earlier.idle),
            taken: self.taken.saturating_sub(earlier.taken),
            tier: TierFrames {
                seen: self.tier.seen.saturating_sub(seen),
                handed_over: self.tier.handed_over.saturating_sub(handed_over),
            },
        }
    }

    /// Whether a worker yields after such a time. One that does takes about half as many frames for
    /// it, so that it is held to another bound.
    fn should_yield(&self, is_yielding: bool) -> bool {
        let TierFrames { seen, handed_over } = self.tier;
        let least = if is_yielding { self.taken } else { self.taken / 2 };
        let is_of_tier = handed_over >= self.taken / 2;
        is_of_tier
            && seen.saturating_sub(handed_over) > least
            && self.idle <= self.lived / IDLE_PART
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct CpuYield {
    due: Instant,
    before: WorkerFigures,
    /// Its own niceness while it yields.
    own: Option<i32>,
    /// Whether the kernel lets a thread come back from a higher niceness, once that was tried.
    may_come_back: Option<bool>,
}

impl CpuYield {
    pub(super) fn new(now: Instant) -> Self {
        let before = WorkerFigures::default();
        Self { due: now + DECIDE_EVERY, before, own: None, may_come_back: None }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Decides about the calling thread; its work since the last time, where it yielded.
    pub(super) fn decide(&mut self, now: Instant, figures: WorkerFigures) -> Option<Duration> {
        self.due = now + DECIDE_EVERY;
        let last = figures.since(&self.before);
        self.before = figures;
        let yielded = self.own;
        match (yielded, last.should_yield(yielded.is_some())) {
            (None, true) => self.begin(),
            (Some(own), false) => match set_niceness(own) {
                Ok(()) => self.own = None,
                Err(error) => tracing::warn!(%error, own, "the worker keeps a higher niceness"),
            },
            (None, false) | (Some(_), true) => {}
        }
        yielded.map(|_| last.lived.saturating_sub(last.idle))
    }

    /// Yields, where the kernel lets it come back.
    fn begin(&mut self) {
        if *self.may_come_back.get_or_insert_with(may_come_back)
            && let Ok(own) = niceness()
            && own < NICENESS_MAX
            && set_niceness((own + NICENESS_ADDED).min(NICENESS_MAX)).is_ok()
        {
            self.own = Some(own);
        }
    }
}

/// Whether a thread may have its niceness back, tried by one that ends with it.
fn may_come_back() -> bool {
    let tried = std::thread::Builder::new().name("niceness".to_owned()).spawn(|| {
        let own = niceness()?;
        set_niceness((own + 1).min(NICENESS_MAX))?;
        set_niceness(own)
    });
    let tried = tried.and_then(|thread| thread.join().unwrap_or(Ok(())));
    if let Err(error) = &tried {
        tracing::info!(%error, "workers do not yield: no niceness could be taken back");
    }
    tried.is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use netdev::TierFrames;
    use netdev::sys::niceness::niceness;

    use super::{CpuYield, DECIDE_EVERY, NICENESS_ADDED, NICENESS_MAX, WorkerFigures};

    fn figures(lived_ms: u64, idle_ms: u64, [seen, handed_over, taken]: [u64; 3]) -> WorkerFigures {
        let tier = TierFrames { seen, handed_over };
        let [lived, idle] = [lived_ms, idle_ms].map(Duration::from_millis);
        WorkerFigures { lived, idle, taken, tier }
    }

    #[test]
    fn a_busy_worker_yields_to_what_the_kernel_decides() {
        let asks = |idle_ms, frames| figures(50, idle_ms, frames).should_yield(false);
        assert!(asks(0, [1_000, 600, 600]));
        assert!(asks(0, [1_000, 800, 300]), "half of them found no room");
        assert!(!asks(0, [1_000, 800, 800]), "it is its own business");
        assert!(!asks(0, [1_000, 1_000, 10]));
        assert!(!asks(20, [1_000, 400, 400]), "it has time");
        assert!(!asks(0, [0, 0, 900]), "the tier sees nothing");
        assert!(!asks(0, [9_000, 10, 900]), "it is busy with other ports");
    }

    /// The frames handed over stay the same, and it takes half of them while it yields.
    #[test]
    fn yielding_is_no_reason_to_go_on_with_it() {
        for decided in (0..1_000).step_by(10) {
            let begins = figures(50, 0, [850 + decided, 850, 500]).should_yield(false);
            let goes_on = figures(50, 0, [850 + decided, 850, 250]).should_yield(true);
            assert_eq!(begins, goes_on, "{decided}");
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn its_own_niceness_comes_back() {
        std::thread::spawn(|| {
            let (own, now) = (niceness().unwrap(), Instant::now());
            let higher = (own + NICENESS_ADDED).min(NICENESS_MAX);
            let mut cpu_yield = CpuYield::new(now);
            assert!(!cpu_yield.is_due(now) && cpu_yield.is_due(now + DECIDE_EVERY));
            assert_eq!(cpu_yield.decide(now, figures(50, 0, [1_000, 100, 100])), None);
            assert_eq!(niceness().unwrap(), higher);
            let worked = cpu_yield.decide(now, figures(100, 5, [2_000, 200, 200]));
            assert_eq!(worked, Some(Duration::from_millis(45)));
            assert_eq!(niceness().unwrap(), higher);
            // It has time, and wakes at last.
            let worked = cpu_yield.decide(now, figures(1_150, 1_005, [2_500, 600, 600]));
            assert_eq!(worked, Some(Duration::from_millis(50)), "it was idle for the rest");
            assert_eq!(niceness().unwrap(), own);
            // A shard goes.
            assert_eq!(cpu_yield.decide(now, figures(1_200, 1_005, [100, 100, 700])), None);
            assert_eq!(niceness().unwrap(), own);
        })
        .join()
        .unwrap();
    }
}
