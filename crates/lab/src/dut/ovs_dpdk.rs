//! Open vSwitch with DPDK: forwarding threads that never sleep, on the kernel's devices by
//! `net_af_packet`, with a private database and daemon.
//!
//! It takes huge pages that are free, and gives them back with its end (`--in-memory`: it leaves no
//! file). It must never reserve any: where there are none, the remedy is said.

use std::path::Path;

use files::proc;

use super::ovs::{self, PortWords, add_bridges, cache_settings, start_program};
use super::{Dut, DutPlan, StartedDut};
use crate::service::{ProgramPaths, ServiceError};
use crate::settings::Settings;
use crate::tools::{Missing, Program, Tool};

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Megabytes of huge pages that it takes.
const HUGE_MB: u64 = 512;

/// `ovs-vswitchd-dpdk`.
pub(super) struct DpdkOvs;

/// Whether there are huge pages enough.
fn huge_pages(meminfo: &str) -> Result<(), Missing> {
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

/// The CPUs of so many forwarding threads, as a mask: from the last one down, so that the daemon's
/// own thread, on the first, is disturbed last.
fn pmd_mask(workers: usize, cores: usize) -> u64 {
    (0..workers).fold(0, |mask, worker| mask | 1_u64 << (cores - 1 - worker).min(63))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl Dut for DpdkOvs {
    fn name(&self) -> &'static str {
        "ovs-dpdk"
    }

    fn about(&self) -> &'static str {
        "Open vSwitch with DPDK, forwarding threads that never sleep, ports by net_af_packet; \
         needs huge pages"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        ovs::check(settings)?;
        let (workers, cores) = (usize::from(settings.workers.unwrap_or(1)), cores());
        if workers > cores {
            return Err(format!("each forwarding thread takes a CPU, and there are {cores}"));
        }
        Ok(())
    }

    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        for tool in [Tool::OvsdbServer, Tool::OvsdbTool, Tool::OvsVsctl] {
            tool.find()?;
        }
        let path = Path::new(DAEMON);
        if !path.is_file() {
            let what = format!("{DAEMON} not installed: apt-get install openvswitch-switch-dpdk");
            return Err(Missing(what));
        }
        let meminfo = proc::machine("meminfo")
            .map_err(|error| Missing(format!("cannot read /proc/meminfo: {error}")))?;
        huge_pages(&meminfo)?;
        Ok(vec![Program::ask("ovs-vswitchd-dpdk", path, &["--version"])])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let workers = usize::from(plan.settings.workers.unwrap_or(1));
        let mask = format!("other_config:pmd-cpu-mask={:#x}", pmd_mask(workers, cores()));
        let (memory, limit) = (
            format!("other_config:dpdk-socket-mem={HUGE_MB}"),
            format!("other_config:dpdk-socket-limit={HUGE_MB}"),
        );
        let mut settings = cache_settings(plan.settings.caches()).to_vec();
        settings.extend([
            "other_config:dpdk-init=true",
            "other_config:dpdk-lcore-mask=0x1",
            "other_config:dpdk-extra=\"--no-pci --in-memory\"",
            &mask,
            &memory,
            &limit,
        ]);
        let mut service = start_program(&plan.context, Path::new(DAEMON), &settings)?;
        let queues = plan.settings.queues.unwrap_or(1);
        let port = |device: &str, index: usize| PortWords {
            name: format!("dpdk{}", index + 1),
            settings: format!(
                "type=dpdk options:n_rxq={queues} \
                 options:dpdk-devargs=net_af_packet{index},iface={device},qpairs={queues}"
            ),
        };
        add_bridges(plan, port, &mut service)?;
        service.check()?;
        Ok(StartedDut::listening(service, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::{huge_pages, pmd_mask};

    #[test]
    fn huge_pages_that_are_missing_are_counted() {
        let text = |free: u64| {
            format!("HugePages_Total:       7\nHugePages_Free: {free}\nHugepagesize:    2048 kB\n")
        };
        assert!(huge_pages(&text(256)).is_ok());
        let error = huge_pages(&text(6)).unwrap_err().to_string();
        assert!(error.contains("echo 257 >") && error.contains("back to 7"), "{error}");
        assert!(huge_pages("MemTotal: 1 kB\n").is_err());
    }

    #[test]
    fn threads_are_on_the_last_cpus() {
        assert_eq!((pmd_mask(1, 2), pmd_mask(2, 2), pmd_mask(2, 8)), (0b10, 0b11, 0b1100_0000));
    }
}
