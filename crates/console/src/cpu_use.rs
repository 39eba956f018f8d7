//! Share of a core that each thread of this process uses, from the kernel's account of CPU time.

use std::collections::BTreeMap;
use std::time::Instant;

use netdev::sys::cpu;

/// A thread and its share of a core.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThreadUse {
    /// The thread's name.
    pub(crate) name: String,
    /// Its share since the last look, in percent of one core.
    pub(crate) percent: f64,
}

/// Shares of a core since the last look.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    last: Option<(Instant, BTreeMap<u32, f64>)>,
}

impl CpuMeter {
    /// The threads now, by name; empty where the kernel does not say.
    pub(crate) fn read(&mut self) -> Vec<ThreadUse> {
        let Ok(threads) = cpu::threads(std::process::id()) else { return Vec::new() };
        let now = Instant::now();
        let total: BTreeMap<u32, f64> =
            threads.iter().map(|thread| (thread.tid, thread.time.total_s())).collect();
        let last = self.last.replace((now, total));
        let mut uses: Vec<ThreadUse> = threads
            .into_iter()
            .map(|thread| {
                let before = last.as_ref().and_then(|(at, total)| {
                    Some((now.duration_since(*at).as_secs_f64(), *total.get(&thread.tid)?))
                });
                let percent = match before {
                    Some((passed_s, used_s)) if passed_s > 0.0 => {
                        100.0 * (thread.time.total_s() - used_s) / passed_s
                    }
                    Some(_) | None => 0.0,
                };
                ThreadUse { name: thread.name, percent }
            })
            .collect();
        uses.sort_by(|a, b| a.name.cmp(&b.name));
        uses
    }
}
