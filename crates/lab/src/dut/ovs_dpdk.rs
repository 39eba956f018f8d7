//! Open vSwitch with DPDK: forwarding threads that never sleep, on the kernel's devices by
//! `net_af_packet` or on devices that replay a trace, with a private database and daemon.
//!
//! It takes huge pages that are free, and gives them back with its end (`--in-memory`: it leaves no
//! file). It must never reserve any: where there are none, the remedy is said.

use std::path::Path;

use anyhow::{Result, bail};
use programs::huge_pages::{self, HUGE_MB};
use programs::tools::{Missing, Program};

use super::ovs::{self, add_bridges, cache_settings, start_daemon};
use super::{Dut, DutCounters, DutPlan, PortName, REPLAYS_BY_DPDK, StartedDut, refuse};
use crate::facts::cores;

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// `ovs-vswitchd-dpdk`.
pub(super) const DPDK_OVS: Dut = Dut {
    check: |_, settings, _| {
        refuse(&[REPLAYS_BY_DPDK], settings)?;
        refuse(ovs::LACKS, settings)
    },
    programs: |_, _| {
        ovs::find_tools()?;
        let path = Path::new(DAEMON);
        if !path.is_file() {
            let what = format!("{DAEMON} not installed: apt-get install openvswitch-switch-dpdk");
            return Err(Missing(what));
        }
        huge_pages::check()?;
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
fn masks(plan: &DutPlan<'_>) -> Result<(String, String)> {
    if let Some(bed) = plan.bed.replay() {
        return Ok((mask(&[bed.cores.control_core()?]), mask(&bed.cores.subject)));
    }
    let workers = usize::from(plan.settings.workers.unwrap_or(1));
    // From the last one down: the daemon's own thread, on the first, is disturbed last.
    let forwarding: Vec<usize> = (0..cores()).rev().take(workers).collect();
    Ok((mask(&[0]), mask(&forwarding)))
}

/// CPUs as a mask in hexadecimal digits, of as many as there are.
fn mask(cpus: &[usize]) -> String {
    let mut digits = vec![0; cpus.iter().max().map_or(1, |last| last / 4 + 1)];
    cpus.iter().for_each(|cpu| digits[cpu / 4] |= 1 << (cpu % 4));
    let digits = digits.iter().rev().map(|digit: &u8| format!("{digit:x}"));
    format!("0x{}", digits.collect::<String>())
}

fn start(plan: &DutPlan<'_>) -> Result<StartedDut> {
    // Others may have started since the programs were looked for.
    huge_pages::check()?;
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
    let daemon = plan.command(Path::new(DAEMON));
    let service = start_daemon(&plan.context, daemon, &settings)?;
    let queues = plan.settings.queues.unwrap_or(1);
    let port = |(index, port): (usize, &PortName)| {
        let device = match port {
            PortName::Device(device) => {
                format!("net_af_packet{index},iface={device},qpairs={queues}")
            }
            PortName::Dpdk(device) => device.clone(),
            PortName::Memory(_) => bail!("Open vSwitch has no in-memory ports: run as root"),
        };
        let settings = format!("type=dpdk options:n_rxq={queues} options:dpdk-devargs={device}");
        Ok((format!("dpdk{}", index + 1), settings))
    };
    let ports = plan.ports.iter().enumerate().map(port).collect::<Result<Vec<_>>>()?;
    let counters = Some(DutCounters::OvsControl(plan.context.dir.join(ovs::DAEMON_CONTROL)));
    Ok(StartedDut { counters, ..add_bridges(plan, &ports, service)? })
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
