//! Open vSwitch with DPDK: forwarding threads that never sleep, on the kernel's devices by
//! `net_af_packet` or on devices that replay a trace, with a private database and daemon.
//!
//! It takes huge pages that are free, and gives them back with its end (`--in-memory`: it leaves no
//! file). It must never reserve any: where there are none, the remedy is said.

use std::path::Path;

use programs::huge_pages::{self, HUGE_MB};
use programs::tools::{Missing, Program};

use super::ovs::{self, add_bridges, cache_settings, start_daemon};
use super::{Dut, DutCounters, DutPlan, PortName, StartedDut, replays_by_dpdk};
use crate::facts::cores;
use crate::settings::Settings;

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// `ovs-vswitchd-dpdk`.
pub(super) const DPDK_OVS: Dut = Dut {
    replays: replays_by_dpdk,
    check: |_, settings, _| check(settings),
    programs: |_, _| {
        ovs::find_tools()?;
        let path = Path::new(DAEMON);
        if !path.is_file() {
            let what = format!("{DAEMON} not installed: apt-get install openvswitch-switch-dpdk");
            return Err(Missing(what));
        }
        huge_pages::check(1)?;
        Ok(vec![Program::ask("ovs-vswitchd-dpdk", path, &["--version"])])
    },
    start,
    ..Dut::new(
        "ovs-dpdk",
        "Open vSwitch with DPDK, forwarding threads that never sleep, ports by net_af_packet; \
            needs huge pages",
    )
};

/// The CPUs of the daemon's own thread and of the forwarding threads, as masks.
fn masks(plan: &DutPlan<'_>) -> anyhow::Result<(String, String)> {
    if let Some(bed) = plan.bed.replay() {
        let forwarding: Vec<usize> = bed.forwarding_cores().collect();
        return Ok((mask(&[bed.control_core()?]), mask(&forwarding)));
    }
    let workers = usize::from(plan.settings.workers.unwrap_or(1));
    // From the last one down: the daemon's own thread, on the first, is disturbed last.
    let forwarding: Vec<usize> = (0..cores()).rev().take(workers).collect();
    Ok((mask(&[0]), mask(&forwarding)))
}

/// CPUs as a mask in hexadecimal digits, of as many as there are.
fn mask(cpus: &[usize]) -> String {
    let digits = cpus.iter().max().map_or(1, |last| last / 4 + 1);
    let digit = |place: usize| {
        let of_place = cpus.iter().filter(|cpu| *cpu / 4 == place);
        of_place.fold(0_u32, |digit, cpu| digit | 1 << (cpu % 4))
    };
    let digits = (0..digits).rev().map(|place| format!("{:x}", digit(place)));
    format!("0x{}", digits.collect::<String>())
}

fn check(settings: &Settings) -> Result<(), String> {
    ovs::check(settings)?;
    let (workers, cores) = (usize::from(settings.workers.unwrap_or(1)), cores());
    if workers > cores {
        return Err(format!("each forwarding thread takes a CPU, and there are {cores}"));
    }
    Ok(())
}

fn start(plan: &DutPlan<'_>) -> anyhow::Result<StartedDut> {
    // Others may have started since the programs were looked for.
    huge_pages::check(1)?;
    let (control, forwarding) = masks(plan)?;
    let own = [
        "dpdk-init=true".to_owned(),
        "dpdk-extra=\"--no-pci --in-memory\"".to_owned(),
        format!("dpdk-lcore-mask={control}"),
        format!("pmd-cpu-mask={forwarding}"),
        format!("dpdk-socket-mem={HUGE_MB}"),
        format!("dpdk-socket-limit={HUGE_MB}"),
    ];
    let own = own.map(|setting| format!("other_config:{setting}"));
    let settings = cache_settings(plan.settings.caches()).iter().copied();
    let settings: Vec<&str> = settings.chain(own.iter().map(String::as_str)).collect();
    // Below zero, so that other programs keep off the cores that are measured.
    let niceness = plan.settings.replay.as_ref().map(|_| -20);
    let mut service = start_daemon(&plan.context, Path::new(DAEMON), &settings, niceness)?;
    let queues = plan.settings.queues.unwrap_or(1);
    let port = |port: &PortName, index: usize| {
        let device = match port {
            PortName::Device(device) => {
                format!("net_af_packet{index},iface={device},qpairs={queues}")
            }
            PortName::Dpdk(device) => device.clone(),
            PortName::Memory(_) => return None,
        };
        let settings = format!("type=dpdk options:n_rxq={queues} options:dpdk-devargs={device}");
        Some((format!("dpdk{}", index + 1), settings))
    };
    add_bridges(plan, port, &mut service)?;
    service.check()?;
    let counters = DutCounters::OvsControl(plan.context.dir.join(ovs::DAEMON_CONTROL));
    Ok(StartedDut { counters: Some(counters), ..StartedDut::listening(service, plan) })
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_mask_has_a_bit_for_every_cpu_however_many_there_are() {
        for (cpus, expected) in [
            (&[0][..], "0x1"),
            (&[1, 0], "0x3"),
            (&[7, 6], "0xc0"),
            (&[64], "0x10000000000000000"),
            (&[127, 126, 0], "0xc0000000000000000000000000000001"),
        ] {
            assert_eq!(mask(cpus), expected);
        }
    }
}
