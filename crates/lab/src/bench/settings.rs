//! The settings of a bench run, and the check that this machine can do it.
//!
//! Whatever is missing (cores, rights, huge pages) is reported before anything is started, with
//! what helps. Nothing here may change the machine.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use files::proc;

use super::measure::Window;
use super::workload::Workload;

/// Megabytes of huge pages that one forwarder with DPDK ports takes.
pub(super) const HUGE_MB: u64 = 512;

/// Packets of a trace that fit into the buffers of a DPDK port, which holds all of them.
const DPDK_FRAMES_MAX: usize = 120_000;

/// What the ports are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PortsKind {
    /// The trace replayed from memory, and a counter.
    Memory,
    /// DPDK's net_pcap and net_null: the same devices for every switch; needs root, huge pages and
    /// a build with the cargo feature dpdk.
    Dpdk,
}

impl PortsKind {
    /// The name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Dpdk => "dpdk",
        }
    }

    /// Whether these ports can replay the trace of `workload`.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn check(self, workload: &Workload, pairs: usize) -> Result<()> {
        ensure!(
            self == Self::Memory || workload.frames * pairs <= DPDK_FRAMES_MAX,
            "{}: DPDK ports replay at most {DPDK_FRAMES_MAX} packets together, the trace has {}: \
             use --ports memory",
            workload.name,
            workload.frames
        );
        Ok(())
    }

    /// The ports in the text that `weir switch --port` takes, in the order of their numbers: a
    /// source and a sink for each pair.
    pub(super) fn specs(self, workload: &Workload, pairs: usize) -> Vec<String> {
        let trace = workload.trace.display();
        let pair = |n| match self {
            Self::Memory => [format!("pcap:{trace}?loop=true"), format!("null:sink{n}")],
            Self::Dpdk => [
                format!("dpdk:net_pcap{n},rx_pcap={trace},infinite_rx=1"),
                format!("dpdk:net_null{n},no-rx=1"),
            ],
        };
        (0..pairs).flat_map(pair).collect()
    }
}

/// Whether the datapath's caches work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cache {
    /// As the switch comes.
    On,
    /// Every packet goes through the flow tables.
    Off,
}

impl Cache {
    /// The name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// What Weir is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// Open vSwitch with DPDK, as Debian packages it, with the same flow entries.
    OvsDpdk,
    /// DPDK's testpmd in the mode of --wire; Weir forwards without tables too.
    Testpmd,
    /// Another build of Weir, with the same flow entries.
    Weir(PathBuf),
}

impl std::str::FromStr for Rival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("weir=")) {
            ("ovs-dpdk", _) => Ok(Self::OvsDpdk),
            ("testpmd", _) => Ok(Self::Testpmd),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Weir(path.into())),
            _ => Err("expected ovs-dpdk, testpmd or weir=PATH".to_owned()),
        }
    }
}

/// A forwarding mode without tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Wire {
    /// Packets stay as they are.
    Io,
    /// Both Ethernet addresses are set.
    Mac,
    /// The Ethernet addresses are exchanged.
    Macswap,
}

impl Wire {
    /// The mode's name, testpmd's and `weir switch`'s.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Mac => "mac",
            Self::Macswap => "macswap",
        }
    }
}

/// What a run is set to.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The `weir` that is measured.
    pub(super) weir: PathBuf,
    /// What the ports are.
    pub(super) ports: PortsKind,
    /// Whether the caches work.
    pub(super) cache: Cache,
    /// Forwarding threads of Weir.
    pub(super) workers: usize,
    /// The core of the first forwarding thread; the others follow.
    pub(super) core: usize,
    /// How each measurement is made.
    pub(super) window: Window,
    /// How often each forwarder is measured.
    pub(super) repeats: usize,
    /// What Weir is compared with.
    pub(super) rival: Option<Rival>,
    /// The mode of the upper bound.
    pub(super) wire: Wire,
    /// Whether the upper bound is measured.
    pub(super) limit: bool,
}

impl Settings {
    /// A core that forwards nothing, for everything that is not forwarding.
    pub(super) fn control_core(&self) -> usize {
        let forwards = self.core..self.core + self.workers;
        (0..).find(|core| !forwards.contains(core)).unwrap_or(0)
    }

    /// Whether this machine can do it.
    ///
    /// # Errors
    /// What is missing, and what helps.
    pub(super) fn check(&self) -> Result<()> {
        let cores = netdev::sys::affinity::allowed_cpus().context("asking for the cores")?;
        let last = self.core + self.workers - 1;
        if let Some(missing) = (self.core..=last).find(|core| !cores.contains(core)) {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            bail!(
                "no core {missing} to forward on, there is {}: choose with --core and --workers",
                cores.join(", ")
            );
        }
        if let Some(rival) = &self.rival {
            ensure!(
                self.ports == PortsKind::Dpdk || matches!(rival, Rival::Weir(_)),
                "--vs compares on the same devices: add --ports dpdk"
            );
            ensure!(self.workers == 1, "--vs compares one core with one core: leave --workers out");
        }
        if self.ports == PortsKind::Memory {
            return Ok(());
        }
        ensure!(rustix::process::geteuid().is_root(), "--ports dpdk needs root for huge pages");
        check_huge_pages(1 + u64::from(self.rival.is_some()))
    }
}

/// Whether there are huge pages for that many forwarders.
fn check_huge_pages(forwarders: u64) -> Result<()> {
    let text = proc::machine("meminfo").context("reading /proc/meminfo")?;
    let number = |name: &str| proc::value(&text, name)?.parse::<u64>().ok();
    let size_kb = proc::bytes(&text, "Hugepagesize").map(|bytes| bytes / 1024);
    let (Some(free), Some(size_kb)) = (number("HugePages_Free"), size_kb) else {
        bail!("this kernel has no huge pages; --ports memory needs none");
    };
    let (has_mb, needs_mb) = (free * size_kb / 1024, forwarders * HUGE_MB);
    if has_mb < needs_mb {
        let total = number("HugePages_Total").unwrap_or(0);
        let wish = total + (needs_mb - has_mb).div_ceil(size_kb / 1024);
        bail!(
            "{has_mb} MB of huge pages are free and {needs_mb} MB are needed: \
             echo {wish} > /proc/sys/vm/nr_hugepages (or --ports memory, which needs none)"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Cache, PortsKind, Rival, Settings, Window, Wire, check_huge_pages};
    use crate::bench::workload::Workload;

    fn settings() -> Settings {
        Settings {
            weir: PathBuf::from("/nonexistent"),
            ports: PortsKind::Memory,
            cache: Cache::On,
            workers: 1,
            core: 0,
            window: Window { seconds: 1.0, core_time: false },
            repeats: 1,
            rival: None,
            wire: Wire::Io,
            limit: false,
        }
    }

    #[test]
    fn what_is_missing_is_reported_with_what_helps() {
        settings().check().unwrap();
        let far = Settings { core: 4_000, ..settings() };
        let error = far.check().unwrap_err().to_string();
        assert!(error.contains("no core 4000") && error.contains("--core"), "{error}");
        let error = Settings { rival: Some(Rival::OvsDpdk), ..settings() }.check().unwrap_err();
        assert!(error.to_string().contains("--ports dpdk"), "{error}");
        let other = Rival::Weir("/other/weir".into());
        Settings { rival: Some(other), ..settings() }.check().unwrap();
        let error = check_huge_pages(1 << 40).unwrap_err().to_string();
        assert!(error.contains("--ports memory"), "{error}");
    }

    #[test]
    fn what_weir_is_compared_with_is_read_by_name() {
        assert_eq!("ovs-dpdk".parse(), Ok(Rival::OvsDpdk));
        assert_eq!("weir=/old/weir".parse(), Ok(Rival::Weir("/old/weir".into())));
        for text in ["", "weir", "weir=", "ovs"] {
            assert!(text.parse::<Rival>().unwrap_err().contains("weir=PATH"), "{text}");
        }
    }

    #[test]
    fn a_core_that_forwards_nothing_is_found() {
        assert_eq!(settings().control_core(), 1);
        assert_eq!(Settings { core: 1, workers: 3, ..settings() }.control_core(), 0);
    }

    #[test]
    fn every_worker_has_a_source_and_a_sink() {
        let workload = Workload {
            name: "w".to_owned(),
            trace: PathBuf::from("/t/w.pcap"),
            flows: PathBuf::from("/t/w.flows"),
            frames: 100_000,
        };
        let specs = PortsKind::Memory.specs(&workload, 2);
        assert_eq!(specs.len(), 4);
        assert_eq!(specs[2], "pcap:/t/w.pcap?loop=true");
        let specs = PortsKind::Dpdk.specs(&workload, 2);
        assert_eq!(specs[3], "dpdk:net_null1,no-rx=1");
        PortsKind::Memory.check(&workload, 2).unwrap();
        PortsKind::Dpdk.check(&workload, 1).unwrap();
        let error = PortsKind::Dpdk.check(&workload, 2).unwrap_err().to_string();
        assert!(error.contains("--ports memory"), "{error}");
    }
}
