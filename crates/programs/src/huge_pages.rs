//! Huge pages: whether enough are free for programs with DPDK. It must never reserve any:
//! where there are none, the remedy is said.

use files::proc;

use crate::tools::Missing;

/// Megabytes that one forwarder takes.
pub const HUGE_MB: u64 = 512;

/// Whether there are enough for one, or the remedy.
pub fn check() -> Result<(), Missing> {
    let meminfo = proc::machine("meminfo")
        .map_err(|error| Missing(format!("cannot read /proc/meminfo: {error}")))?;
    enough(&meminfo)
}

fn enough(meminfo: &str) -> Result<(), Missing> {
    let number = |name: &str| proc::value(meminfo, name)?.parse::<u64>().ok();
    let size_kb = proc::bytes(meminfo, "Hugepagesize").map(|bytes| bytes / 1024);
    let (Some(free), Some(size_kb)) = (number("HugePages_Free"), size_kb) else {
        return Err(Missing("this kernel has no huge pages".to_owned()));
    };
    let has_mb = free * size_kb / 1024;
    if has_mb >= HUGE_MB {
        return Ok(());
    }
    let total = number("HugePages_Total").unwrap_or(0);
    let wish = total + (HUGE_MB - has_mb).div_ceil((size_kb / 1024).max(1));
    Err(Missing(format!(
        "{has_mb} MB of huge pages are free and {HUGE_MB} MB are needed: \
         echo {wish} > /proc/sys/vm/nr_hugepages (and back to {total} afterwards)"
    )))
}

#[cfg(test)]
mod tests {
    use super::enough;

    #[test]
    fn huge_pages_that_are_missing_are_counted() {
        let text = |free: u64| {
            format!("HugePages_Total:       7\nHugePages_Free: {free}\nHugepagesize:    2048 kB\n")
        };
        assert!(enough(&text(256)).is_ok());
        let error = enough(&text(6)).unwrap_err().to_string();
        assert!(error.contains("echo 257 >") && error.contains("back to 7"), "{error}");
        assert!(enough("MemTotal: 1 kB\n").is_err());
    }
}
