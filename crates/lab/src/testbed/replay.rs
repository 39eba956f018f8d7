//! No hosts: the switch replays a trace by itself, from port 1 to port 2, and its own counters say
//! how much it forwarded.
//!
//! So nothing but the switch takes time. It must never be measured before its rate is what it will
//! stay, nor while the lab is on the core that forwards.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use netdev::sys::affinity;
use netdev::sys::netns::Namespace;
use openflow::PortNo;
use openflow::flow::FlowMod;
use openflow::port::PortStats;
use programs::cancel::Cancel;

use crate::service::ServiceError;
use crate::settings::{BesidePackets, Replay, ReplayDevices, Settings};
use crate::stall::Stall;
use crate::testbed::PortName;
use crate::testbed::memory::MemoryTestbed;
use crate::workload::{Workload, spread};

/// Packets for which a port has room whose packets come by the clock: as large network cards have.
const RING_SLOTS: u32 = 4_096;

/// Packets of a trace that fit into the buffers of a DPDK port, which holds all of them.
const DPDK_FRAMES_MAX: usize = 120_000;

/// The testbed; a trace that is made lies in the folder that it was given.
#[derive(Debug)]
pub struct ReplayTestbed {
    workload: Workload,
    /// Another workload whose flow entries are loaded too.
    beside: Option<Workload>,
    ports: Vec<PortName>,
    /// Wires for single frames.
    wires: Option<MemoryTestbed>,
    is_down: bool,
    pairs: usize,
    core: usize,
    /// The cores that this process may use.
    allowed: Vec<usize>,
    /// For programs that make devices of the kernel beside those of DPDK.
    namespace: Option<Namespace>,
    /// Seconds that it took until the rate was steady, once that is known.
    warm_up_s: OnceLock<f64>,
    /// A stall that is a trial's though it was before it.
    stall: Mutex<Stall>,
}

impl ReplayTestbed {
    /// Finds or makes the trace: a pair of ports for each forwarding thread.
    ///
    /// # Errors
    /// Files, rights or cores that are missing.
    pub fn new(settings: &Settings, replay: &Replay, dir: &Path) -> Result<Self> {
        let workload = Workload::of(replay, dir)?;
        let other = replay.beside.as_ref().and_then(|beside| beside.name.as_ref());
        let other = other.zip(replay.folder.as_ref());
        let beside = other.map(|(name, folder)| Workload::find(folder, name)).transpose()?;
        let pairs = usize::from(settings.workers.unwrap_or(1));
        let allowed = affinity::allowed_cpus().context("asking for the cores")?;
        let last_ones = allowed.len().checked_sub(pairs).and_then(|at| allowed.get(at)).copied();
        let core = settings.core.or(last_ones).unwrap_or(0);
        ensure_cores(&allowed, core, pairs)?;
        ensure_devices(replay, &workload, beside.as_ref(), pairs)?;
        ensure!(
            pairs == 1 || (replay.beside.is_none() && replay.devices != ReplayDevices::Wires),
            "a trace beside another and single frames have one forwarding thread"
        );
        let wires = match replay.devices {
            ReplayDevices::Wires => Some(MemoryTestbed::new(dir).context("making the wires")?),
            ReplayDevices::Memory | ReplayDevices::Dpdk => None,
        };
        let namespace = match replay.devices {
            ReplayDevices::Memory | ReplayDevices::Wires => None,
            ReplayDevices::Dpdk => {
                let made = Namespace::new();
                Some(made.context("DPDK devices need root, for huge pages and a namespace")?)
            }
        };
        let ports = match &wires {
            Some(wires) => wires.port_texts().iter().cloned().map(PortName::Memory).collect(),
            None => ports(replay, &workload, beside.as_ref(), pairs),
        };
        let (is_down, warm_up_s, stall) = (replay.is_down, OnceLock::new(), Mutex::default());
        Ok(Self {
            workload,
            beside,
            ports,
            wires,
            is_down,
            pairs,
            core,
            allowed,
            namespace,
            warm_up_s,
            stall,
        })
    }

    /// The switch's ports, in the order of their numbers.
    #[must_use]
    pub fn ports(&self) -> &[PortName] {
        &self.ports
    }

    /// The namespace for the switch, where it needs one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Pairs of ports.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.ports.len() / 2
    }

    /// Whether another trace may enter by port 3.
    #[must_use]
    pub fn has_beside(&self) -> bool {
        self.pairs() > self.pairs
    }

    /// The lab's ends of both ports, where single frames are sent.
    #[must_use]
    pub fn wires(&self) -> Option<&MemoryTestbed> {
        self.wires.as_ref()
    }

    /// Whether port 1 is down before the flow entries are loaded.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// The cores that forward.
    #[must_use]
    pub fn forwarding_cores(&self) -> std::ops::Range<usize> {
        self.core..self.core + self.pairs
    }

    /// A core that forwards nothing, for everything that is not forwarding: the first that this
    /// process may use.
    ///
    /// # Errors
    /// None is left.
    pub(crate) fn control_core(&self) -> Result<usize, ServiceError> {
        self.others(&self.allowed).first().copied().ok_or_else(|| {
            let forwards = self.forwarding_cores().map(|core| core.to_string());
            let forwards = forwards.collect::<Vec<_>>().join(", ");
            ServiceError::Unfit(format!(
                "DPDK's own thread needs a core that forwards nothing, and this process may use \
                 only {forwards}: give it one more, or fewer workers"
            ))
        })
    }

    /// The flow entries of all that is replayed behind those that are given, all of them once for
    /// each forwarding thread.
    ///
    /// # Errors
    /// As [`Workload::flow_mods`].
    pub(crate) fn flow_mods(
        &self,
        given: Vec<Result<FlowMod>>,
    ) -> Result<impl Iterator<Item = Result<FlowMod>> + use<>> {
        let beside = self.beside.as_ref().map(|beside| beside.flow_mods(self.pairs)).transpose()?;
        let given = spread(Box::new(given.into_iter()), self.pairs);
        Ok(given.chain(beside.into_iter().flatten()).chain(self.workload.flow_mods(self.pairs)?))
    }

    /// Does `work`, which waits until the rate is steady, once; the seconds that it took.
    ///
    /// # Errors
    /// Of `work`.
    pub(crate) fn warm_up(&self, work: impl FnOnce() -> Result<f64>) -> Result<f64> {
        if let Some(known) = self.warm_up_s.get() {
            return Ok(*known);
        }
        let seconds = work()?;
        Ok(*self.warm_up_s.get_or_init(|| seconds))
    }

    /// Says for how many milliseconds the machine stalled in what the trial is about, where that
    /// was before the trial.
    pub(crate) fn report_stall(&self, ms: f64) {
        let mut stall = self.stall.lock().unwrap_or_else(PoisonError::into_inner);
        *stall = Stall { ms, at: None };
    }

    /// The stall reported since the last call.
    pub(crate) fn take_stall(&self) -> Stall {
        std::mem::take(&mut self.stall.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the calling thread, and those that it will start, off the cores that forward; where
    /// there are no others it stays where it is.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn keep_off(&self) -> std::io::Result<OffCores> {
        OffCores::leave(&self.others(&affinity::allowed_cpus()?))
    }

    /// Keeps all threads of a process but the forwarding ones off the cores that forward.
    ///
    /// # Errors
    /// There is no such process, or the system refuses.
    pub(crate) fn keep_process_off(&self, pid: u32) -> std::io::Result<()> {
        let others = self.others(&affinity::allowed_cpus()?);
        for thread in netdev::sys::cpu::threads(pid)? {
            if !thread.name.starts_with("worker") {
                affinity::allow(Some(thread.tid), &others)?;
            }
        }
        Ok(())
    }

    fn others(&self, all: &[usize]) -> Vec<usize> {
        let forwards = self.forwarding_cores();
        all.iter().copied().filter(|core| !forwards.contains(core)).collect()
    }

    /// Notes on the testbed for the reader of a report.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        vec![
            "No hosts: the switch replays the trace by itself and its own counters say what it \
             forwarded."
                .to_owned(),
        ]
    }
}

/// The cores that a thread may use again when this goes.
#[derive(Debug)]
pub(crate) struct OffCores(Vec<usize>);

impl OffCores {
    /// Leaves the calling thread, and those that it will start, these cores only.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn leave(cores: &[usize]) -> std::io::Result<Self> {
        let all = affinity::allowed_cpus()?;
        affinity::allow(None, cores)?;
        Ok(Self(all))
    }
}

impl Drop for OffCores {
    fn drop(&mut self) {
        if let Err(error) = affinity::allow(None, &self.0) {
            tracing::warn!(%error, "a thread stays off the forwarding cores");
        }
    }
}

fn ensure_cores(cores: &[usize], core: usize, pairs: usize) -> Result<()> {
    if let Some(missing) = (core..core + pairs).find(|core| !cores.contains(core)) {
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        bail!("no core {missing} to forward on, there is {}", cores.join(", "));
    }
    Ok(())
}

fn ensure_devices(
    replay: &Replay,
    workload: &Workload,
    other: Option<&Workload>,
    pairs: usize,
) -> Result<()> {
    let beside = of_beside(replay, workload, other).map_or(0, |beside| beside.frames);
    let frames = workload.frames * pairs + beside;
    ensure!(
        replay.devices != ReplayDevices::Dpdk || frames <= DPDK_FRAMES_MAX,
        "{}: DPDK ports replay at most {DPDK_FRAMES_MAX} packets together, these have {frames}: \
         use ports in memory",
        workload.name
    );
    Ok(())
}

/// Workload whose packets come by port 3; none where nothing comes there.
fn of_beside<'a>(
    replay: &Replay,
    workload: &'a Workload,
    other: Option<&'a Workload>,
) -> Option<&'a Workload> {
    match replay.beside.as_ref()?.packets {
        BesidePackets::None => None,
        BesidePackets::Same => Some(workload),
        BesidePackets::Other => other,
    }
}

/// A source and a sink for each pair.
fn ports(
    replay: &Replay,
    workload: &Workload,
    other: Option<&Workload>,
    pairs: usize,
) -> Vec<PortName> {
    let pair = |n, source: Option<(&Workload, Option<u16>)>| {
        let trace = source.map(|(workload, _)| workload.trace.display());
        match (replay.devices, trace) {
            (ReplayDevices::Dpdk, Some(trace)) => [
                PortName::Dpdk(format!("net_pcap{n},rx_pcap={trace},infinite_rx=1")),
                PortName::Dpdk(format!("net_null{n},no-rx=1")),
            ],
            (ReplayDevices::Dpdk, None) => [format!("net_null{n}0"), format!("net_null{n}1")]
                .map(|device| PortName::Dpdk(device + ",no-rx=1")),
            (ReplayDevices::Memory | ReplayDevices::Wires, trace) => {
                let number = source.and_then(|(_, at)| at).map(|at| format!("&number={at}"));
                let slots = replay.slots.unwrap_or(RING_SLOTS);
                let rate = replay.rate_pps.map(|rate| format!("&rate={rate}&slots={slots}"));
                let words = number.into_iter().chain(rate).collect::<String>();
                let source = match trace {
                    Some(trace) => format!("pcap:{trace}?loop=true{words}"),
                    None => format!("null:nothing{n}"),
                };
                [source, format!("null:sink{n}")].map(PortName::Memory)
            }
        }
    };
    let mut ports: Vec<PortName> =
        (0..pairs).flat_map(|n| pair(n, Some((workload, replay.number_at)))).collect();
    if let Some(beside) = &replay.beside {
        let packets = of_beside(replay, workload, other);
        ports.extend(pair(pairs, packets.map(|packets| (packets, beside.number_at))));
    }
    ports
}

/// Counts of a forwarder at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// When.
    pub(crate) at: Instant,
    /// Packets received by port 1, and by the first port of every further pair.
    pub(crate) received: u64,
    /// Packets received by port 1 alone.
    pub(crate) first: u64,
    /// Packets sent by port 2, and by the second port of every further pair.
    pub(crate) sent: u64,
    /// Packets for which there was no room where they came in.
    pub(crate) missed: u64,
}

impl Counts {
    /// Packets in and out of all pairs of ports.
    ///
    /// # Errors
    /// A port has no counters.
    pub(crate) fn of_ports(stats: &[PortStats], pairs: usize, at: Instant) -> Result<Self> {
        let port = |number: usize| {
            let found = stats.iter().find(|port| port.port_no == PortNo(number as u32));
            found.with_context(|| format!("the switch reports no counters of port {number}"))
        };
        let first = port(1)?.rx_packets;
        let mut counts = Self { at, received: 0, first, sent: 0, missed: 0 };
        for pair in 0..pairs {
            let from = port(2 * pair + 1)?;
            counts.received += from.rx_packets;
            counts.missed += from.rx_dropped;
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
///
/// # Errors
/// The counters cannot be read, or the run was interrupted.
pub(crate) fn await_steady_rate(
    mut counts: impl FnMut() -> Result<Counts>,
    limit: Duration,
    cancel: &Cancel,
) -> Result<f64> {
    const STEP: Duration = Duration::from_millis(250);
    let start = Instant::now();
    let mut last = counts()?;
    let mut last_rate = 0.0;
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

    use netdev::sys::affinity;
    use openflow::PortNo;
    use openflow::port::PortStats;

    use super::{Counts, ReplayTestbed, await_steady_rate, ensure_cores, ensure_devices, ports};
    use crate::settings::{BesidePackets, Replay, ReplayBeside, ReplayDevices, Settings};
    use crate::testbed::PortName;
    use crate::workload::{Entries, Workload};
    use programs::cancel::Cancel;

    #[test]
    fn every_worker_has_a_source_and_a_sink() {
        let workload = Workload {
            name: "w".to_owned(),
            trace: PathBuf::from("/t/w.pcap"),
            entries: Entries::Made(1),
            frames: 100_000,
        };
        let with = |devices, number_at| Replay { devices, number_at, ..Replay::default() };
        let memory = ports(&with(ReplayDevices::Memory, Some(34)), &workload, None, 2);
        assert_eq!(memory.len(), 4);
        assert_eq!(memory[2], PortName::Memory("pcap:/t/w.pcap?loop=true&number=34".to_owned()));
        let dpdk = ports(&with(ReplayDevices::Dpdk, None), &workload, None, 2);
        assert_eq!(dpdk[3], PortName::Dpdk("net_null1,no-rx=1".to_owned()));
        let beside = |packets| Replay {
            beside: Some(ReplayBeside { packets, number_at: Some(26), name: None }),
            rate_pps: Some(7),
            ..Replay::default()
        };
        let same = ports(&beside(BesidePackets::Same), &workload, None, 1);
        let by_clock = "rate=7&slots=4096";
        let trace = |words: &str| PortName::Memory(format!("pcap:/t/w.pcap?loop=true&{words}"));
        assert_eq!(same[0], trace(by_clock));
        assert_eq!(same[2], trace(&format!("number=26&{by_clock}")));
        let nothing = ports(&beside(BesidePackets::None), &workload, None, 1);
        assert_eq!(nothing[2], PortName::Memory("null:nothing1".to_owned()));
        let error = ensure_cores(&[0, 1], 1, 2).unwrap_err().to_string();
        assert!(error.contains("no core 2 to forward on, there is 0, 1"), "{error}");
    }

    #[test]
    fn all_packets_that_dpdk_holds_are_counted() {
        let of = |frames| Workload {
            name: "w".to_owned(),
            trace: PathBuf::from("/t/w.pcap"),
            entries: Entries::Made(1),
            frames,
        };
        let ensure = |devices, packets, other: &Workload, pairs| {
            let beside = Some(ReplayBeside { packets, ..ReplayBeside::default() });
            let replay = Replay { devices, beside, ..Replay::default() };
            ensure_devices(&replay, &of(100_000), Some(other), pairs)
        };
        let (few, many) = (of(20_000), of(20_001));
        let (none, same, more) = (BesidePackets::None, BesidePackets::Same, BesidePackets::Other);
        ensure(ReplayDevices::Memory, same, &many, 2).unwrap();
        ensure(ReplayDevices::Wires, none, &many, 2).unwrap();
        ensure(ReplayDevices::Dpdk, none, &many, 1).unwrap();
        ensure(ReplayDevices::Dpdk, more, &few, 1).unwrap();
        for (packets, pairs, frames) in
            [(none, 2, "200000"), (same, 1, "200000"), (more, 1, "120001")]
        {
            let error = ensure(ReplayDevices::Dpdk, packets, &many, pairs).unwrap_err().to_string();
            assert!(error.contains(frames) && error.contains("ports in memory"), "{error}");
        }
    }

    #[test]
    fn the_lab_comes_back_to_its_cores() {
        let folder = tempfile::tempdir().unwrap();
        let all = affinity::allowed_cpus().unwrap();
        let settings = Settings { core: all.last().copied(), ..Settings::default() };
        let made = Replay { flows: Some(2), entries: Some(1), ..Replay::default() };
        let bed = ReplayTestbed::new(&settings, &made, folder.path()).unwrap();
        let off = bed.keep_off().unwrap();
        let now = affinity::allowed_cpus().unwrap();
        assert!(all.len() == 1 || !now.contains(all.last().unwrap()), "{now:?}");
        drop(off);
        assert_eq!(affinity::allowed_cpus().unwrap(), all);
        assert_eq!(bed.warm_up(|| Ok(2.0)).unwrap(), 2.0);
        assert_eq!(bed.warm_up(|| panic!("it is warm")).unwrap(), 2.0);
        bed.report_stall(60.0);
        assert_eq!((bed.take_stall().ms, bed.take_stall().ms), (60.0, 0.0), "it is told once");
    }

    #[test]
    fn what_does_not_forward_has_a_core_that_it_may_use() {
        let folder = tempfile::tempdir().unwrap();
        let made = Replay { flows: Some(2), entries: Some(1), ..Replay::default() };
        let mut bed = ReplayTestbed::new(&Settings::default(), &made, folder.path()).unwrap();
        (bed.core, bed.pairs) = (4, 2);
        bed.allowed = vec![4, 5, 70, 71];
        assert_eq!(bed.control_core().unwrap(), 70, "neither 0, nor 4 and 5 that forward");
        bed.allowed = vec![4, 5];
        let error = bed.control_core().unwrap_err().to_string();
        assert!(error.contains("may use only 4, 5"), "{error}");
    }

    #[test]
    fn every_pair_of_ports_is_counted() {
        let stats = |number: u32| PortStats {
            port_no: PortNo(number),
            rx_packets: 10_u64.pow(number),
            tx_packets: 3 * 10_u64.pow(number),
            ..PortStats::default()
        };
        let all: Vec<PortStats> = (1..=4).map(stats).collect();
        let counts = Counts::of_ports(&all, 2, Instant::now()).unwrap();
        assert_eq!((counts.received, counts.sent), (1_010, 30_300));
        let error = Counts::of_ports(&all, 3, Instant::now()).unwrap_err().to_string();
        assert!(error.contains("port 5"), "{error}");
    }

    #[test]
    fn a_rate_is_packets_sent_by_time() {
        let at = Instant::now();
        let none = Counts { at, received: 0, first: 0, sent: 0, missed: 0 };
        let first = Counts { sent: 100, ..none };
        let last = Counts { at: at + Duration::from_millis(500), sent: 1_100, ..none };
        assert!((last.rate_since(&first) - 2_000.0).abs() < 1e-6);
        assert_eq!(last.rate_since(&last), 0.0);
    }

    #[test]
    fn settling_ends_when_the_rate_stays() {
        let start = Instant::now();
        let mut reading = 0_u32;
        let counts = || {
            reading += 1;
            let sent = if reading < 3 { 0 } else { u64::from(reading) * 1_000_000 };
            let at = start + Duration::from_millis(250) * reading;
            Ok(Counts { at, received: 0, first: 0, sent, missed: 0 })
        };
        let long = Duration::from_secs(60);
        await_steady_rate(counts, long, &Cancel::default()).unwrap();
        assert_eq!(reading, 5);
    }
}
