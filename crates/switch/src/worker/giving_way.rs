//! When a worker leaves the processor to others: while the kernel tier decides most frames.
//!
//! What the kernel decides costs those who send it, and what it hands over costs the worker. A
//! sender whose frames begin a flow each would so have two threads on the processors, its own and
//! the worker, beside one of a sender whose frames the kernel forwards: with two processors, the
//! latter kept two thirds of its rate. So a worker that is never idle, while the kernel decides a
//! third of all frames or more, asks for a third of the time of others (niceness 5 above its own).
//! Where processors are free it has as much as before, and where most frames are its own business
//! it is as any other thread. Everything here but [`GivingWay::tend`] is arithmetic.

use std::time::{Duration, Instant};

use netdev::TierFrames;
use netdev::sys::niceness::{niceness, set_niceness};

/// How often it is decided.
const EVERY: Duration = Duration::from_millis(50);

/// Above its own niceness; each is worth a tenth to a fifth of the time.
const MORE: i32 = 5;

/// A worker that was idle for no more than this part of the time is never idle.
const IDLE_PART: u32 = 10;

/// What has been since the beginning, or since another moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) lived: Duration,
    /// Asleep, or in rounds without work.
    pub(super) idle: Duration,
    /// Frames that the worker took.
    pub(super) taken: u64,
    /// Frames at the ports of the kernel tier.
    pub(super) frames: TierFrames,
}

impl Passed {
    /// What has been since then.
    fn since(&self, earlier: &Self) -> Self {
        let TierFrames { seen, handed_over } = earlier.frames;
        Self {
            lived: self.lived.saturating_sub(earlier.lived),
            idle: self.idle.saturating_sub(earlier.idle),
            taken: self.taken.saturating_sub(earlier.taken),
            frames: TierFrames {
                seen: self.frames.seen.saturating_sub(seen),
                handed_over: self.frames.handed_over.saturating_sub(handed_over),
            },
        }
    }

    /// Whether a worker gives way behind such a time.
    fn asks_for_less(&self) -> bool {
        let decided = self.frames.seen.saturating_sub(self.frames.handed_over);
        // What is handed over and finds no room costs nobody much, and is not among them.
        decided > self.taken / 2 && self.idle <= self.lived / IDLE_PART
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct GivingWay {
    due: Instant,
    before: Passed,
    /// Its own niceness while it gives way.
    own: Option<i32>,
    /// The kernel does not let it take its own niceness again.
    is_refused: bool,
}

impl GivingWay {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now + EVERY, before: Passed::default(), own: None, is_refused: false }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Decides, of the calling thread; for how long it gave way since that was done last.
    pub(super) fn tend(&mut self, now: Instant, passed: Passed) -> Option<Duration> {
        self.due = now + EVERY;
        let last = passed.since(&self.before);
        let asks_for_less = last.asks_for_less();
        self.before = passed;
        let gave_way = self.own.is_some();
        if asks_for_less != gave_way && !self.is_refused {
            let changed = match self.own.take() {
                Some(own) => set_niceness(own),
                None => self.begin(),
            };
            if let Err(error) = changed {
                self.is_refused = true;
                tracing::info!(%error, "the worker's niceness stays as it is");
            }
        }
        gave_way.then_some(last.lived)
    }

    /// Gives way, if the kernel lets it come back: so by one first.
    fn begin(&mut self) -> std::io::Result<()> {
        let own = niceness()?;
        set_niceness(own + 1)?;
        set_niceness(own)?;
        set_niceness(own + MORE)?;
        self.own = Some(own);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use netdev::TierFrames;
    use netdev::sys::niceness::niceness;

    use super::{EVERY, GivingWay, MORE, Passed};

    fn passed(lived_ms: u64, idle_ms: u64, [seen, handed_over, taken]: [u64; 3]) -> Passed {
        let frames = TierFrames { seen, handed_over };
        let [lived, idle] = [lived_ms, idle_ms].map(Duration::from_millis);
        Passed { lived, idle, taken, frames }
    }

    #[test]
    fn a_worker_that_is_never_idle_gives_way_to_what_the_kernel_decides() {
        assert!(passed(50, 0, [1_000, 600, 600]).asks_for_less());
        assert!(passed(50, 0, [1_000, 800, 300]).asks_for_less(), "the others found no room");
        assert!(!passed(50, 0, [1_000, 800, 800]).asks_for_less(), "it is its own business");
        assert!(!passed(50, 0, [1_000, 1_000, 10]).asks_for_less());
        assert!(!passed(50, 20, [1_000, 400, 400]).asks_for_less(), "it has time");
        assert!(!passed(50, 0, [0, 0, 900]).asks_for_less(), "the tier sees nothing");
    }

    #[test]
    #[ignore = "needs root"]
    fn its_own_niceness_comes_back() {
        std::thread::spawn(|| {
            let (own, now) = (niceness().unwrap(), Instant::now());
            let mut giving_way = GivingWay::new(now);
            assert!(!giving_way.is_due(now) && giving_way.is_due(now + EVERY));
            assert_eq!(giving_way.tend(now, passed(50, 0, [1_000, 100, 100])), None);
            assert_eq!(niceness().unwrap(), own + MORE);
            assert_eq!(giving_way.tend(now, passed(100, 0, [2_000, 200, 200])), Some(EVERY));
            assert_eq!(niceness().unwrap(), own + MORE);
            // From then on most is handed over; a shard that goes takes its counts along.
            assert_eq!(giving_way.tend(now, passed(150, 0, [2_500, 600, 600])), Some(EVERY));
            assert_eq!(niceness().unwrap(), own);
            assert_eq!(giving_way.tend(now, passed(200, 0, [100, 100, 700])), None);
            assert_eq!(niceness().unwrap(), own);
        })
        .join()
        .unwrap();
    }
}
