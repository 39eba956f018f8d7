//! Facts of the machine that a report is from. Nothing that names its owner.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor, as the kernel names it.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel and release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Whether it is a virtual machine, as far as the processor says.
    pub virtual_machine: bool,
    /// Load average over the last minute at the start.
    pub load_average: String,
}

impl Machine {
    /// Reads the facts; what cannot be read is "unknown".
    #[must_use]
    pub fn read() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let uname = rustix::system::uname();
        let kernel =
            format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        let flags = value(&cpuinfo, "flags", ':').unwrap_or_default();
        let os = value(&read("/etc/os-release"), "PRETTY_NAME", '=');
        let load = read("/proc/loadavg");
        Self {
            cpu: value(&cpuinfo, "model name", ':').unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: memory_mib(&read("/proc/meminfo")),
            kernel,
            os: os.unwrap_or_else(unknown),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
            load_average: load.split(' ').next().map_or_else(unknown, str::to_owned),
        }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn value(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib = value(meminfo, "MemTotal", ':').unwrap_or_default();
    kib.trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
}

/// Now, UTC, as `2026-11-20T12:00:00Z`.
#[must_use]
pub fn now_utc() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Seconds since 1970 as a date and a time of day.
fn utc(seconds: u64) -> String {
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::{Machine, memory_mib, utc, value};

    #[test]
    fn known_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_763_642_096), "2025-11-20T12:34:56Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn values_are_found_by_their_whole_name() {
        let text = "model name\t: A CPU\nPRETTY_NAME=\"An OS\"\n";
        assert_eq!(value(text, "model name", ':').as_deref(), Some("A CPU"));
        assert_eq!(value(text, "PRETTY_NAME", '=').as_deref(), Some("An OS"));
        assert_eq!(value(text, "model", ':'), None);
        assert_eq!(memory_mib("MemTotal:       2048 kB\n"), 2);
        assert_eq!(memory_mib(""), 0);
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cores > 0 && machine.kernel.starts_with("Linux"));
    }
}
