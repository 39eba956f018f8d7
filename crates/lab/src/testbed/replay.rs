//! No hosts: the switch replays a trace by itself, from port 1 to port 2, and its own counters say
//! how much it forwarded.
//!
//! So nothing but the switch takes time. It must never be measured before its rate is what it will
//! stay, nor while the lab is on the core that forwards.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::sys::netns::Namespace;
use openflow::PortNo;
use openflow::port::PortStats;
use programs::cancel::Cancel;

use super::PortName;
use super::cores::Cores;
use crate::settings::{Replay, ReplayDevices, Settings};
use crate::workload::Workload;

/// Packets of a trace that fit into the buffers of a DPDK port, which holds all of them.
const DPDK_FRAMES_MAX: usize = 120_000;

/// A note for the reader of a report.
pub(super) const NOTE: &str = "No hosts: the switch replays the trace by itself and its own \
    counters say what it forwarded.";

/// The testbed; a trace that is made lies in the folder that it was given.
#[derive(Debug)]
pub struct ReplayTestbed {
    pub(crate) workload: Workload,
    /// The switch's ports, in the order of their numbers.
    pub(crate) ports: Vec<PortName>,
    /// The cores that forward, one for each pair of ports, and all others.
    pub(crate) cores: Cores,
    /// For programs that make devices of the kernel beside those of DPDK.
    pub(crate) namespace: Option<Namespace>,
    /// Seconds that it took until the rate was steady, once that is known.
    warm_up_s: OnceLock<f64>,
}

impl ReplayTestbed {
    /// Finds or makes the trace: a pair of ports for each forwarding thread.
    pub fn new(settings: &Settings, replay: &Replay, dir: &Path) -> Result<Self> {
        let workload = Workload::of(replay, dir)?;
        let cores = Cores::of(settings, "to forward on")?;
        let ports = ports(replay, &workload, cores.subject.len())?;
        let namespace = (replay.devices == ReplayDevices::Dpdk).then(Namespace::new).transpose();
        let namespace =
            namespace.context("DPDK devices need root, for huge pages and a namespace")?;
        Ok(Self { workload, ports, cores, namespace, warm_up_s: OnceLock::new() })
    }

    /// Pairs of ports.
    pub fn pairs(&self) -> usize {
        self.cores.subject.len()
    }

    /// Does `work`, which waits until the rate is steady, once; the seconds that it took.
    pub(crate) fn warm_up(&self, work: impl FnOnce() -> Result<f64>) -> Result<f64> {
        if let Some(known) = self.warm_up_s.get() {
            return Ok(*known);
        }
        let seconds = work()?;
        Ok(*self.warm_up_s.get_or_init(|| seconds))
    }
}

/// A source and a sink for each pair.
fn ports(replay: &Replay, workload: &Workload, pairs: usize) -> Result<Vec<PortName>> {
    let frames = workload.frames * pairs;
    ensure!(
        replay.devices != ReplayDevices::Dpdk || frames <= DPDK_FRAMES_MAX,
        "{}: DPDK ports replay at most {DPDK_FRAMES_MAX} packets together, these have {frames}: \
         use ports in memory",
        workload.name
    );
    let trace = workload.trace.display();
    let number = replay.number_at.map_or_else(String::new, |at| format!("&number={at}"));
    let pair = |n| match replay.devices {
        ReplayDevices::Dpdk => [
            PortName::Dpdk(format!("net_pcap{n},rx_pcap={trace},infinite_rx=1")),
            PortName::Dpdk(format!("net_null{n},no-rx=1")),
        ],
        ReplayDevices::Memory => {
            [format!("pcap:{trace}?loop=true{number}"), format!("null:sink{n}")]
                .map(PortName::Memory)
        }
    };
    Ok((0..pairs).flat_map(pair).collect())
}

/// Counts of a forwarder at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) at: Instant,
    /// Packets received by port 1, and by the first port of every further pair.
    pub(crate) received: u64,
    /// Packets sent by port 2, and by the second port of every further pair.
    pub(crate) sent: u64,
}

impl Counts {
    /// Packets in and out of all pairs of ports, each of which has counters.
    pub(crate) fn of_ports(stats: &[PortStats], pairs: usize, at: Instant) -> Result<Self> {
        let port = |number: usize| {
            let found = stats.iter().find(|port| port.port_no == PortNo(number as u32));
            found.with_context(|| format!("the switch reports no counters of port {number}"))
        };
        let mut counts = Self { at, received: 0, sent: 0 };
        for pair in 0..pairs {
            counts.received += port(2 * pair + 1)?.rx_packets;
            counts.sent += port(2 * pair + 2)?.tx_packets;
        }
        Ok(counts)
    }

    /// Packets that came in and did not leave, of those between `first` and now. A switch that
    /// reads both counters between two batches has nothing in flight then.
    pub(crate) fn lost_since(&self, first: &Self) -> i64 {
        let stayed = |counts: &Self| counts.received as i64 - counts.sent as i64;
        stayed(self) - stayed(first)
    }

    /// Packets a second that left since `first`.
    pub(crate) fn rate_since(&self, first: &Self) -> f64 {
        let seconds = self.at.duration_since(first.at).as_secs_f64();
        self.sent.saturating_sub(first.sent) as f64 / seconds.max(1e-9)
    }
}

/// Waits until two rates in a row, each over a quarter of a second, differ by less than a
/// fiftieth, or until `limit`. The seconds that it took.
pub(crate) fn await_steady_rate(
    mut counts: impl FnMut() -> Result<Counts>,
    limit: Duration,
    cancel: &Cancel,
) -> Result<f64> {
    const STEP: Duration = Duration::from_millis(250);
    let start = Instant::now();
    let (mut last, mut last_rate) = (counts()?, 0.0);
    loop {
        cancel.sleep(STEP)?;
        let now = counts()?;
        let rate = now.rate_since(&last);
        let is_steady = rate > 0.0 && (rate - last_rate).abs() < last_rate / 50.0;
        if is_steady || start.elapsed() > limit {
            return Ok(start.elapsed().as_secs_f64());
        }
        (last, last_rate) = (now, rate);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use openflow::PortNo;
    use openflow::port::PortStats;

    use super::{Counts, ReplayTestbed, await_steady_rate, ports};
    use crate::settings::{Replay, ReplayDevices, Settings};
    use crate::testbed::PortName;
    use crate::workload::Workload;
    use programs::cancel::Cancel;

    #[test]
    fn every_worker_has_a_source_and_a_sink() {
        let workload = |frames| Workload {
            name: "w".to_owned(),
            trace: PathBuf::from("/t/w.pcap"),
            entries: Some(1),
            frames,
        };
        let with = |devices, number_at| Replay { devices, number_at, ..Replay::default() };
        let memory = with(ReplayDevices::Memory, Some(34));
        let memory = ports(&memory, &workload(100_000), 2).unwrap();
        assert_eq!(memory.len(), 4);
        assert_eq!(memory[2], PortName::Memory("pcap:/t/w.pcap?loop=true&number=34".to_owned()));
        let dpdk = with(ReplayDevices::Dpdk, None);
        let found = ports(&dpdk, &workload(60_000), 2).unwrap();
        assert_eq!(found[3], PortName::Dpdk("net_null1,no-rx=1".to_owned()));
        let error = ports(&dpdk, &workload(100_000), 2).unwrap_err().to_string();
        assert!(error.contains("200000") && error.contains("ports in memory"), "{error}");
    }

    #[test]
    fn a_rate_is_waited_for_once() {
        let folder = tempfile::tempdir().unwrap();
        let made = Replay { flows: Some(2), entries: Some(1), ..Replay::default() };
        let bed = ReplayTestbed::new(&Settings::default(), &made, folder.path()).unwrap();
        assert_eq!(bed.warm_up(|| Ok(2.0)).unwrap(), 2.0);
        assert_eq!(bed.warm_up(|| panic!("it is warm")).unwrap(), 2.0);
    }

    #[test]
    fn every_pair_of_ports_is_counted_and_its_rate_is_what_it_sent() {
        let stats = |number: u32| PortStats {
            port_no: PortNo(number),
            rx_packets: 10_u64.pow(number),
            tx_packets: 3 * 10_u64.pow(number),
            ..PortStats::default()
        };
        let all: Vec<PortStats> = (1..=4).map(stats).collect();
        let at = Instant::now();
        let counts = Counts::of_ports(&all, 2, at).unwrap();
        assert_eq!((counts.received, counts.sent), (1_010, 30_300));
        let error = Counts::of_ports(&all, 3, at).unwrap_err().to_string();
        assert!(error.contains("port 5"), "{error}");
        let last = Counts { at: at + Duration::from_millis(500), sent: 31_300, ..counts };
        assert!((last.rate_since(&counts) - 2_000.0).abs() < 1e-6);
        assert_eq!((last.rate_since(&last), last.lost_since(&counts)), (0.0, -1_000));
    }

    #[test]
    fn settling_ends_when_the_rate_stays() {
        let start = Instant::now();
        let mut reading = 0_u32;
        let counts = || {
            reading += 1;
            let sent = if reading < 3 { 0 } else { u64::from(reading) * 1_000_000 };
            let at = start + Duration::from_millis(250) * reading;
            Ok(Counts { at, received: 0, sent })
        };
        let long = Duration::from_secs(60);
        await_steady_rate(counts, long, &Cancel::default()).unwrap();
        assert_eq!(reading, 5);
    }
}
