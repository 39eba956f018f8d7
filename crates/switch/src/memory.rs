//! The memory limit of the switch: entries, groups and meters are refused before an allocation
//! fails, since a failed allocation ends the process.
//!
//! Memory is measured, not estimated, so that replicas, caches, queues and buffers count at their
//! real size. It is measured anew after some thousand additions, or sooner when they are large, and
//! each limit keeps a reserve larger than what can be added in between. While additions are refused
//! it is measured anew at a refusal, so that they end with their cause. Freed memory stays with the
//! process, so additions up to an earlier count are accepted until half of the reserve is used.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use datapath::{MemoryBudget, MemoryNeed};
use files::proc::{self, ProcFolder};

/// Additions for which memory is measured once. What each takes beside its lists is less than a
/// kilobyte per worker.
const ADDITIONS: u32 = 2_048;

/// Bytes of lists for which memory is measured once.
const BYTES: usize = 4 << 20;

/// While additions are refused, memory is measured no oftener than this.
const MEASURE_EVERY: Duration = Duration::from_millis(10);

/// The least reserve, for connections, packets in flight and the growth of a table in one step.
const RESERVE_LEAST: u64 = 32 << 20;

/// A limit above this is none: where there is no limit, the kernel shows a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// The measure that is limited: the name of its line in `/proc/self/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Resident,
    AddressSpace,
    Data,
}

impl Measure {
    fn line(self) -> &'static str {
        match self {
            Self::Resident => "VmRSS",
            Self::AddressSpace => "VmSize",
            Self::Data => "VmData",
        }
    }
}

/// One limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemoryLimit {
    measure: Measure,
    bytes: u64,
}

impl MemoryLimit {
    /// The part of it that is kept free.
    fn reserve(self) -> u64 {
        (self.bytes / 4).max(RESERVE_LEAST).min(self.bytes / 2)
    }
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// All is accepted.
    #[default]
    Room,
    /// Only what there was before is accepted.
    NothingNew,
    /// Nothing is accepted.
    Nothing,
}

impl Verdict {
    fn allows(self, need: MemoryNeed) -> bool {
        match need {
            MemoryNeed::New => self == Self::Room,
            MemoryNeed::Reused => self != Self::Nothing,
        }
    }
}

/// The last measurement, and what was asked for since.
#[derive(Debug, Default)]
struct Measured {
    at: Option<Instant>,
    verdict: Verdict,
    additions: u32,
    bytes: usize,
    is_logged: bool,
}

/// The limits of this process, and how far it is from them.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    limits: Vec<MemoryLimit>,
    measured: Mutex<Measured>,
}

impl ProcessMemory {
    /// The given limit, else the one of the control group, and those of the process; none when
    /// there are no limits.
    pub(crate) fn of(given: Option<u64>) -> Option<Self> {
        let read = |path: &Path| fs::read_to_string(path).ok();
        let own = |file: &str| ProcFolder::own().read(file).unwrap_or_default();
        let resident = given.or_else(|| cgroup_limit(&own("cgroup"), &read));
        let limits = own("limits");
        let limits: Vec<MemoryLimit> = [
            (Measure::Resident, resident),
            (Measure::AddressSpace, rlimit(&limits, "Max address space")),
            (Measure::Data, rlimit(&limits, "Max data size")),
        ]
        .into_iter()
        .filter_map(|(measure, bytes)| Some(MemoryLimit { measure, bytes: bytes? }))
        .filter(|limit| limit.bytes < NO_LIMIT)
        .collect();
        (!limits.is_empty()).then(|| Self::with(limits))
    }

    fn with(limits: Vec<MemoryLimit>) -> Self {
        Self { limits, measured: Mutex::default() }
    }

    /// Compares what is taken with the limits; the nearest one, with what is taken of it. `None`
    /// when what is taken is not known.
    fn compare(&self, status: &str) -> Option<(Verdict, u64, MemoryLimit)> {
        let found = self.limits.iter().filter_map(|limit| {
            let taken = proc::bytes(status, limit.measure.line())?;
            let verdict = match taken {
                taken if taken >= limit.bytes - limit.reserve() / 2 => Verdict::Nothing,
                taken if taken >= limit.bytes - limit.reserve() => Verdict::NothingNew,
                _ => Verdict::Room,
            };
            Some((verdict, taken, *limit))
        });
        found.max_by_key(|(verdict, ..)| *verdict)
    }

    /// Measures, if the status can be read: otherwise the last verdict stays.
    fn measure(&self, measured: &mut Measured, status: Option<String>, now: Instant) {
        (measured.at, measured.additions, measured.bytes) = (Some(now), 0, 0);
        let Some((verdict, taken, limit)) = status.and_then(|text| self.compare(&text)) else {
            return;
        };
        measured.verdict = verdict;
        if verdict != Verdict::Room && !std::mem::replace(&mut measured.is_logged, true) {
            let (taken, limit) = (taken >> 20, limit.bytes >> 20);
            tracing::warn!(
                taken_mib = taken,
                limit_mib = limit,
                "memory is nearly used up: new entries, groups and meters are refused as by a full \
                 table"
            );
        }
    }

    fn ask(
        &self,
        need: MemoryNeed,
        bytes: usize,
        now: Instant,
        status: impl FnOnce() -> Option<String>,
    ) -> bool {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.additions += 1;
        measured.bytes = measured.bytes.saturating_add(bytes);
        let is_due = measured.additions > ADDITIONS
            || measured.bytes >= BYTES
            || (!measured.verdict.allows(need)
                && measured.at.is_none_or(|at| now.duration_since(at) >= MEASURE_EVERY));
        if measured.at.is_none() || is_due {
            self.measure(&mut measured, status(), now);
        }
        measured.verdict.allows(need)
    }
}

impl MemoryBudget for ProcessMemory {
    fn allows(&self, need: MemoryNeed, bytes: usize) -> bool {
        let status = || ProcFolder::own().read("status").ok();
        self.ask(need, bytes, Instant::now(), status)
    }
}

/// The soft limit of a line of `/proc/self/limits`; none where it is unlimited.
fn rlimit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The least limit of the control group of memory and those above it, in either version.
fn cgroup_limit(cgroups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let files = cgroups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = PathBuf::from(path.trim_start_matches('/'));
        if controllers.is_empty() {
            Some((Path::new("/sys/fs/cgroup"), path, "memory.max"))
        } else if controllers.split(',').any(|name| name == "memory") {
            Some((Path::new("/sys/fs/cgroup/memory"), path, "memory.limit_in_bytes"))
        } else {
            None
        }
    });
    let limits = files.flat_map(|(root, path, file)| {
        let above: Vec<PathBuf> = path.ancestors().map(|path| root.join(path).join(file)).collect();
        above.into_iter().filter_map(|file| read(&file)?.trim().parse::<u64>().ok())
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::{
        ADDITIONS, BYTES, MEASURE_EVERY, Measure, MemoryLimit, ProcessMemory, Verdict,
        cgroup_limit, rlimit,
    };
    use datapath::MemoryNeed;
    use std::path::Path;
    use std::time::Instant;

    /// The memory of the process, as the kernel writes it.
    fn resident(mebibytes: u64) -> String {
        format!("VmRSS:\t  {} kB\n", mebibytes << 10)
    }

    fn limited() -> ProcessMemory {
        ProcessMemory::with(vec![MemoryLimit { measure: Measure::Resident, bytes: 400 << 20 }])
    }

    #[test]
    fn a_limit_keeps_a_reserve() {
        let memory = limited();
        let verdict = |mebibytes| memory.compare(&resident(mebibytes)).unwrap().0;
        assert_eq!(verdict(299), Verdict::Room);
        assert_eq!(verdict(300), Verdict::NothingNew);
        assert_eq!(verdict(349), Verdict::NothingNew);
        assert_eq!(verdict(350), Verdict::Nothing);
        assert_eq!(verdict(10), Verdict::Room);
        let small = MemoryLimit { measure: Measure::Data, bytes: 40 << 20 };
        assert_eq!(small.reserve(), 20 << 20);
    }

    #[test]
    fn a_refusal_ends_with_its_cause() {
        let (memory, now) = (limited(), Instant::now());
        let ask =
            |mebibytes, now| memory.ask(MemoryNeed::New, 0, now, || Some(resident(mebibytes)));
        assert!(!ask(390, now));
        let asked_twice = |at| memory.ask(MemoryNeed::New, 0, at, || panic!("measured too often"));
        assert!(!asked_twice(now + MEASURE_EVERY / 2));
        assert!(!ask(390, now + MEASURE_EVERY));
        assert!(!asked_twice(now + MEASURE_EVERY));
        assert!(ask(10, now + 2 * MEASURE_EVERY));
    }

    #[test]
    fn memory_is_measured_after_many_additions_and_after_large_ones() {
        let now = Instant::now();
        for (bytes, asks) in [(0, ADDITIONS), (BYTES / 4, 3), (BYTES, 0)] {
            let memory = limited();
            let ask = |mebibytes: u64, bytes| {
                memory.ask(MemoryNeed::New, bytes, now, || Some(resident(mebibytes)))
            };
            assert!(ask(10, 0));
            assert!((0..asks).all(|_| ask(390, bytes)), "not measured yet");
            assert!(!ask(390, bytes), "{asks} of {bytes} bytes");
        }
    }

    #[test]
    fn what_cannot_be_read_changes_no_verdict() {
        let (memory, now) = (limited(), Instant::now());
        assert!(memory.ask(MemoryNeed::New, 0, now, || None));
        assert!(memory.ask(MemoryNeed::New, BYTES, now, || Some(String::from("VmRSS: ?"))));
        assert!(!memory.ask(MemoryNeed::New, BYTES, now, || Some(resident(390))));
        assert!(!memory.ask(MemoryNeed::New, BYTES, now, || None));
        assert!(!memory.ask(MemoryNeed::Reused, 0, now + MEASURE_EVERY, || None));
        assert!(memory.ask(MemoryNeed::New, 0, now + 2 * MEASURE_EVERY, || Some(resident(10))));
    }

    #[test]
    fn limits_of_the_process_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         536870912            unlimited            bytes\n";
        assert_eq!(rlimit(limits, "Max address space"), Some(512 << 20));
        assert_eq!(rlimit(limits, "Max data size"), None);
    }

    #[test]
    fn the_least_limit_of_the_groups_above_holds() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => "500\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "9223372036854771712\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(cgroup_limit("0::/a/b\n", &read), Some(1000));
        assert_eq!(cgroup_limit("4:memory:/c\n0::/\n", &read), Some(500));
        assert_eq!(cgroup_limit("2:cpu:/c\n", &read), None);
    }
}
