//! Open vSwitch with DPDK: forwarding threads that never sleep, on the kernel's devices by
//! `net_af_packet` or on devices that replay a trace, with a private database and daemon.
//!
//! It takes huge pages that are free, and gives them back with its end (`--in-memory`: it leaves no
//! file). It must never reserve any: where there are none, the remedy is said.

use std::path::Path;

use super::ovs::{self, PortWords, add_bridges, cache_settings, start_program};
use super::{Dut, DutCounters, DutPlan, PortName, StartedDut};
use crate::huge_pages::{self, HUGE_MB};
use crate::service::{ProgramPaths, ServiceError};
use crate::settings::{Replay, ReplayDevices, Settings};
use crate::testbed::Testbed;
use crate::tools::{Missing, Program, Tool};

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// `ovs-vswitchd-dpdk`.
pub(super) struct DpdkOvs;

/// The CPUs of the daemon's own thread and of the forwarding threads, as masks.
fn masks(plan: &DutPlan<'_>) -> (u64, u64) {
    match plan.bed {
        Testbed::Replay(bed) => {
            let forwarding = bed.forwarding_cores().fold(0, |mask, core| mask | 1_u64 << core);
            (1 << bed.control_core(), forwarding)
        }
        Testbed::Kernel(_) | Testbed::Memory(_) | Testbed::Wired(_) | Testbed::Agents(_) => {
            let workers = usize::from(plan.settings.workers.unwrap_or(1));
            (1, pmd_mask(workers, cores()))
        }
    }
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

    fn replays(&self, replay: &Replay) -> Result<(), String> {
        match replay.devices {
            ReplayDevices::Dpdk => Ok(()),
            ReplayDevices::Memory => Err("replays by DPDK's devices only".to_owned()),
        }
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
        huge_pages::check(1)?;
        Ok(vec![Program::ask("ovs-vswitchd-dpdk", path, &["--version"])])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let (control, forwarding) = masks(plan);
        let control = format!("other_config:dpdk-lcore-mask={control:#x}");
        let mask = format!("other_config:pmd-cpu-mask={forwarding:#x}");
        let (memory, limit) = (
            format!("other_config:dpdk-socket-mem={HUGE_MB}"),
            format!("other_config:dpdk-socket-limit={HUGE_MB}"),
        );
        let mut settings = cache_settings(plan.settings.caches()).to_vec();
        settings.extend([
            "other_config:dpdk-init=true",
            "other_config:dpdk-extra=\"--no-pci --in-memory\"",
            &control,
            &mask,
            &memory,
            &limit,
        ]);
        // Below zero, so that other programs keep off the cores that are measured.
        let niceness = plan.settings.replay.as_ref().map(|_| -20);
        let mut service = start_program(&plan.context, Path::new(DAEMON), &settings, niceness)?;
        let queues = plan.settings.queues.unwrap_or(1);
        let port = |port: &PortName, index: usize| {
            let device = match port {
                PortName::Device(device) => {
                    format!("net_af_packet{index},iface={device},qpairs={queues}")
                }
                PortName::Dpdk(device) => device.clone(),
                PortName::Memory(_) => return None,
            };
            let settings =
                format!("type=dpdk options:n_rxq={queues} options:dpdk-devargs={device}");
            Some(PortWords { name: format!("dpdk{}", index + 1), settings })
        };
        add_bridges(plan, port, &mut service)?;
        service.check()?;
        let counters = DutCounters::OvsControl(plan.context.dir.join(ovs::DAEMON_CONTROL));
        Ok(StartedDut { counters: Some(counters), ..StartedDut::listening(service, plan) })
    }
}

#[cfg(test)]
mod tests {
    use super::pmd_mask;

    #[test]
    fn threads_are_on_the_last_cpus() {
        assert_eq!((pmd_mask(1, 2), pmd_mask(2, 2), pmd_mask(2, 8)), (0b10, 0b11, 0b1100_0000));
    }
}
