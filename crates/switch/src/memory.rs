//! The memory limit of the switch: entries, groups and meters are refused before an allocation
//! fails, since a failed allocation ends the process.
//!
//! Memory is measured, not estimated, so that replicas, caches, queues and buffers count at their
//! real size: entries differ by a factor of ten. It is measured once for many additions, and each
//! limit keeps a reserve larger than what can be added in between. Freed memory
//! stays with the process, so additions up to an earlier count are accepted until half of the
//! reserve is used.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use datapath::{MemoryBudget, MemoryNeed};

/// Additions for which memory is measured once: some megabytes at most.
const ADDITIONS: u32 = 2_048;

/// The least reserve, for connections, packets in flight and the growth of a table in one step.
const RESERVE_LEAST: u64 = 32 << 20;

/// A limit above this is none: where there is no limit, the kernel shows a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// What is limited: the name of its line in `/proc/self/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Resident,
    AddressSpace,
    Data,
}

impl Measure {
    fn line(self) -> &'static str {
        match self {
            Self::Resident => "VmRSS:",
            Self::AddressSpace => "VmSize:",
            Self::Data => "VmData:",
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
    /// What is kept free of it.
    fn reserve(self) -> u64 {
        (self.bytes / 4).max(RESERVE_LEAST).min(self.bytes / 2)
    }
}

/// What was found at the last measurement.
const ROOM: u8 = 0;
const NOTHING_NEW: u8 = 1;
const NOTHING: u8 = 2;

/// The limits of this process, and how far it is from them.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    limits: Vec<MemoryLimit>,
    additions: AtomicU32,
    found: AtomicU8,
    is_logged: AtomicBool,
}

impl ProcessMemory {
    /// The given limit, else the one of the control group, and those of the process; none when
    /// there are no limits.
    pub(crate) fn of(given: Option<u64>) -> Option<Self> {
        let read = |path: &Path| fs::read_to_string(path).ok();
        let text = |path: &str| read(Path::new(path)).unwrap_or_default();
        let resident = given.or_else(|| cgroup_limit(&text("/proc/self/cgroup"), &read));
        let limits = text("/proc/self/limits");
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
        Self {
            limits,
            additions: AtomicU32::new(0),
            found: AtomicU8::new(ROOM),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Compares what is taken with the limits.
    fn look(&self, status: &str) -> u8 {
        let found = self.limits.iter().map(|limit| {
            let taken = status_bytes(status, limit.measure.line()).unwrap_or(0);
            let found = match taken {
                taken if taken >= limit.bytes - limit.reserve() / 2 => NOTHING,
                taken if taken >= limit.bytes - limit.reserve() => NOTHING_NEW,
                _ => ROOM,
            };
            (found, taken, *limit)
        });
        let Some((found, taken, limit)) = found.max_by_key(|(found, ..)| *found) else {
            return ROOM;
        };
        if found != ROOM && !self.is_logged.swap(true, Ordering::Relaxed) {
            let (taken, limit) = (taken >> 20, limit.bytes >> 20);
            tracing::warn!(
                taken_mib = taken,
                limit_mib = limit,
                "memory is nearly used up: new entries, groups and meters are refused as by a full \
                 table"
            );
        }
        found
    }
}

impl MemoryBudget for ProcessMemory {
    fn allows(&self, need: MemoryNeed) -> bool {
        if self.additions.fetch_add(1, Ordering::Relaxed).is_multiple_of(ADDITIONS) {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            self.found.store(self.look(&status), Ordering::Relaxed);
        }
        let found = self.found.load(Ordering::Relaxed);
        match need {
            MemoryNeed::New => found == ROOM,
            MemoryNeed::Reused => found != NOTHING,
        }
    }
}

/// The bytes that a line of `/proc/self/status` says in kilobytes.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
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
        Measure, MemoryLimit, NOTHING, NOTHING_NEW, ProcessMemory, ROOM, cgroup_limit, rlimit,
    };
    use std::path::Path;

    #[test]
    fn a_limit_keeps_a_reserve() {
        let limit = MemoryLimit { measure: Measure::Resident, bytes: 400 << 20 };
        let memory = ProcessMemory::with(vec![limit]);
        let look = |mebibytes: u64| memory.look(&format!("VmRSS:\t  {} kB\n", mebibytes << 10));
        assert_eq!(look(299), ROOM);
        assert_eq!(look(300), NOTHING_NEW);
        assert_eq!(look(349), NOTHING_NEW);
        assert_eq!(look(350), NOTHING);
        assert_eq!(look(10), ROOM);
        let small = MemoryLimit { measure: Measure::Data, bytes: 40 << 20 };
        assert_eq!(small.reserve(), 20 << 20);
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
