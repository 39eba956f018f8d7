//! CPU time of the emulator and of the controller, and the one of them that was the limit.
//!
//! A benchmark that is slower than what it measures reports itself. So the emulator's threads are
//! watched like the controller's process, over the same window, and every rate says who was busy.

use std::time::Instant;

use files::proc::ProcFolder;
use serde::Serialize;

use super::super::measure::rounded;
use emulator::THREAD_NAME;

/// A thread that runs for this part of the time is busy.
const BUSY: f64 = 0.95;

/// A thread that waits for a core for this part of the time shares it with other programs.
const WAITS: f64 = 0.10;

/// A thread's number, and nanoseconds that it has run and waited for a core.
type ThreadReading = (u32, u64, u64);

/// CPU time of threads up to a moment.
#[derive(Clone, Debug)]
pub(super) struct CpuReading {
    at: Instant,
    controller: Vec<ThreadReading>,
    emulator: Vec<ThreadReading>,
    /// Bytes of memory of the controller.
    pub(super) resident: Option<u64>,
}

impl CpuReading {
    /// Now; of no controller when its process is not known.
    pub(super) fn now(controller: Option<u32>) -> Self {
        let folder = controller.map(ProcFolder::of);
        Self {
            at: Instant::now(),
            controller: folder.as_ref().map(|all| threads(all, "")).unwrap_or_default(),
            emulator: threads(&ProcFolder::own(), THREAD_NAME),
            resident: folder.and_then(|folder| folder.memory("VmRSS")),
        }
    }
}

fn threads(process: &ProcFolder, prefix: &str) -> Vec<ThreadReading> {
    let threads = process.threads().unwrap_or_default().into_iter();
    let reading = |(tid, thread): (u32, ProcFolder)| {
        let is_wanted = prefix.is_empty() || thread.read("comm").ok()?.starts_with(prefix);
        let time = thread.sched_time()?;
        is_wanted.then_some((tid, time.ran_ns, time.waited_ns))
    };
    threads.filter_map(reading).collect()
}

/// Cores that some threads used, 1.0 for one that was busy all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Cores {
    /// All threads.
    pub(super) all: f64,
    /// The one that used most.
    pub(super) busiest: f64,
    /// Time in which that one waited for a core, as a part of the whole.
    pub(super) waited: f64,
}

/// CPU time in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuUse {
    /// The controller; `None` when its process is not known.
    pub(super) controller: Option<Cores>,
    /// The emulator.
    pub(super) emulator: Cores,
}

impl CpuUse {
    /// Between two readings.
    pub(super) fn between(before: &CpuReading, after: &CpuReading) -> Self {
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let cores = |before: &[ThreadReading], after: &[ThreadReading]| {
            let mut cores = Cores::default();
            for (tid, ran, waited) in after {
                let start = before.iter().find(|(known, ..)| known == tid);
                let (ran_before, waited_before) = start.map_or((0, 0), |(_, r, w)| (*r, *w));
                let part = |ns: u64| rounded(ns as f64 / 1e9 / seconds);
                let ran = part(ran.saturating_sub(ran_before));
                cores.all += ran;
                if ran > cores.busiest {
                    cores.busiest = ran;
                    cores.waited = part(waited.saturating_sub(waited_before));
                }
            }
            cores
        };
        let is_known = !after.controller.is_empty();
        Self {
            controller: is_known.then(|| cores(&before.controller, &after.controller)),
            emulator: cores(&before.emulator, &after.emulator),
        }
    }

    /// The part that kept a rate from being higher. A thread that never sleeps is busy by
    /// intention, so for an emulator that `spins` its own load is no evidence.
    pub(super) fn limit(&self, spins: bool) -> BenchLimit {
        let is_busy = |cores: &Cores| cores.busiest + cores.waited >= BUSY;
        let shares = |cores: &Cores| is_busy(cores) && cores.waited >= WAITS;
        let emulator = (!spins).then_some(&self.emulator);
        if self.controller.iter().chain(emulator).any(shares) {
            return BenchLimit::OtherPrograms;
        }
        match (&self.controller, emulator) {
            (Some(controller), _) if is_busy(controller) => BenchLimit::Controller,
            (_, Some(emulator)) if is_busy(emulator) => BenchLimit::Emulator,
            (Some(_), _) => BenchLimit::Neither,
            (None, _) => BenchLimit::Unknown,
        }
    }
}

/// The part that kept a rate from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BenchLimit {
    /// One of the controller's threads was busy all the time.
    Controller,
    /// Nobody was busy: each waited for the other, or for what was due.
    Neither,
    /// The controller's process is not known, and the emulator had time left.
    Unknown,
    /// Other programs used the cores: the figure is too low.
    OtherPrograms,
    /// The emulator was busy all the time: the figure is its own.
    Emulator,
}

impl BenchLimit {
    /// The words for people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Controller => "the controller was busy",
            Self::Neither => "neither was busy",
            Self::Unknown => "the emulator had time left",
            Self::OtherPrograms => "OTHER PROGRAMS TOOK THE CORES: the figure is too low",
            Self::Emulator => "THE EMULATOR WAS THE LIMIT: the figure is its own",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BenchLimit, Cores, CpuReading, CpuUse};

    fn of(controller: Option<f64>, emulator: f64) -> CpuUse {
        let cores = |busiest| Cores { all: busiest, busiest, waited: 0.0 };
        CpuUse { controller: controller.map(cores), emulator: cores(emulator) }
    }

    #[test]
    fn the_limit_is_who_was_busy() {
        assert_eq!(of(Some(0.99), 0.4).limit(false), BenchLimit::Controller);
        assert_eq!(of(Some(0.6), 0.99).limit(false), BenchLimit::Emulator);
        assert_eq!(of(Some(0.6), 0.99).limit(true), BenchLimit::Neither, "it is busy by intention");
        assert_eq!(of(Some(0.6), 0.7).limit(false), BenchLimit::Neither);
        assert_eq!(of(None, 0.7).limit(false), BenchLimit::Unknown);
        assert_eq!(of(None, 0.99).limit(false), BenchLimit::Emulator);
        let mut shared = of(Some(0.7), 0.3);
        shared.controller = Some(Cores { all: 0.7, busiest: 0.7, waited: 0.29 });
        assert_eq!(shared.limit(false), BenchLimit::OtherPrograms);
    }

    #[test]
    fn a_thread_that_runs_is_seen() {
        let before = CpuReading::now(Some(std::process::id()));
        let begun = std::time::Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed().as_millis() < 30 {
            sum = std::hint::black_box(sum + 1);
        }
        let after = CpuReading::now(Some(std::process::id()));
        let used = CpuUse::between(&before, &after);
        assert!(used.controller.unwrap().all > 0.0 && after.resident > Some(0), "{sum}: {used:?}");
        assert_eq!(CpuUse::between(&before, &CpuReading::now(None)).controller, None);
    }
}
