//! Utilisation of each part during a measurement: links, programs, the machine.
//!
//! A sampler takes cumulative counters ten times a second while the measurement runs; the load is
//! then that of the busiest whole second (half the run, for shorter runs), all parts in the same
//! window, so that the start and the end of a tool do not dilute a saturated link. Nothing here is
//! estimated: bytes are the kernel's, CPU time is the kernel's.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use files::proc;
use netdev::sys::cpu::{self, ThreadTime};
use programs::process;
use serde::{Deserialize, Serialize};

use crate::facts;
use crate::rate::line_bytes;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(100);

/// The length of the window that the load is taken from, seconds.
const WINDOW_S: f64 = 1.0;

/// A direction of a link of the testbed, named from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkId {
    /// Host 1 to switch.
    Port1In,
    /// Switch to host 1.
    Port1Out,
    /// Host 2 to switch.
    Port2In,
    /// Switch to host 2.
    Port2Out,
    /// Switch to controller.
    ControlUp,
    /// Controller to switch.
    ControlDown,
}

impl LinkId {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Port1In => "host 1 to port 1",
            Self::Port1Out => "port 1 to host 1",
            Self::Port2In => "host 2 to port 2",
            Self::Port2Out => "port 2 to host 2",
            Self::ControlUp => "switch to controller",
            Self::ControlDown => "controller to switch",
        }
    }
}

/// The counters of a link since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// The link.
    pub id: LinkId,
    /// Its rate, bit/s, if it is shaped.
    pub rate_bps: Option<u64>,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Frames.
    pub packets: u64,
    /// Frames that its queue dropped.
    pub drops: u64,
}

/// The part that a program plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// The switch under test.
    Switch,
    /// The controller.
    Controller,
    /// The lab itself, which sends and receives its own traffic at the hosts.
    Host,
}

/// A program to be watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Its part.
    pub role: ProcessRole,
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Number of cores that it can use at once, where there is a limit: one for Python's lock, a
    /// part of one where it has a CPU share.
    pub cores_max: Option<f64>,
}

/// All counters at one time.
#[derive(Debug)]
struct Sample {
    at_s: f64,
    /// The same links in every sample.
    links: Vec<LinkSample>,
    /// CPU time of each program that is watched, seconds: of all, and of each thread.
    processes: Vec<(f64, Vec<ThreadTime>)>,
    /// CPU time of the programs that the lab runs and that are not watched, seconds.
    tools: BTreeMap<u32, f64>,
    /// CPU time of the whole machine, in ticks: busy, and all.
    machine: (u64, u64),
}

impl Sample {
    fn take(zero: Instant, links: Vec<LinkSample>, watched: &[Watched]) -> Self {
        let total_s = |pid| cpu::process(pid).map(cpu::CpuTime::total_s);
        // A process that has ended has used nothing since.
        let process = |of: &Watched| {
            (total_s(of.pid).unwrap_or_default(), cpu::threads(of.pid).unwrap_or_default())
        };
        let is_tool = |pid: &u32| watched.iter().all(|watched| watched.pid != *pid);
        let tools = process::live().into_iter().filter(is_tool);
        Self {
            at_s: zero.elapsed().as_secs_f64(),
            links,
            processes: watched.iter().map(process).collect(),
            tools: tools.filter_map(|pid| Some((pid, total_s(pid).ok()?))).collect(),
            machine: parse_stat(&proc::machine("stat").unwrap_or_default()).unwrap_or_default(),
        }
    }
}

/// One direction of a link in the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// The link.
    pub id: LinkId,
    /// Its rate, bit/s; `None` when it is not shaped.
    pub rate_bps: Option<u64>,
    /// Line time used, as bit/s: frames with FCS, preamble and gap.
    pub used_bps: f64,
    /// Share of the rate, 0 to 1; `None` when it is not shaped.
    pub utilisation: Option<f64>,
    /// Frames a second.
    pub packets_ps: f64,
    /// Frames dropped by its queue during the whole measurement.
    pub drops: u64,
}

/// One program in the window. CPU is in cores: 1.0 is one core busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessLoad {
    /// Its part.
    pub role: ProcessRole,
    /// Its name.
    pub name: String,
    /// All its threads together.
    pub cpu_cores: f64,
    /// Its busiest thread.
    pub thread_cores: f64,
    /// The name of that thread.
    pub thread: String,
    /// Measure of the limit rule: the busiest thread, or all threads over the cores that the
    /// program can use at once, whichever is more.
    pub saturation: f64,
}

/// The load of every part in the busiest window of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Length of the window, seconds.
    pub window_s: f64,
    /// The links.
    pub links: Vec<LinkLoad>,
    /// The programs under test.
    pub processes: Vec<ProcessLoad>,
    /// The programs that measure at the hosts, such as iperf3, together.
    pub tools_cores: f64,
    /// Share of all cores that was busy with anything, 0 to 1.
    pub machine: f64,
    /// Cores of the machine.
    pub cores: usize,
}

impl Load {
    /// Cores taken by what is no part of the run: other programs of the machine, and the
    /// kernel's own threads.
    pub fn others_cores(&self) -> f64 {
        let watched: f64 = self.processes.iter().map(|process| process.cpu_cores).sum();
        (self.machine * self.cores as f64 - watched - self.tools_cores).max(0.0)
    }
}

/// Runs `work` with the sampler beside it. `links` reads the counters of all links, of which there
/// may be none. The load is `None` only when `work` was so short that no time passed.
pub fn observe<T>(
    links: &(dyn Fn() -> Vec<LinkSample> + Sync),
    watched: &[Watched],
    work: impl FnOnce() -> T,
) -> (T, Option<Load>) {
    let zero = Instant::now();
    let sample = || Sample::take(zero, links(), watched);
    let mut samples = vec![sample()];
    let (done, finished) = channel::<()>();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let finished = finished;
            while finished.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                samples.push(sample());
            }
        });
        let result = work();
        drop(done);
        result
    });
    samples.push(sample());
    (result, load_of(&samples, watched))
}

/// CPU time of the tools between two samples; a tool's work after the last sample before its end is
/// not seen.
fn tools_s(samples: &[Sample], start: &Sample, end: &Sample) -> f64 {
    let mut last: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.at_s >= start.at_s && s.at_s <= end.at_s) {
        last.extend(&sample.tools);
    }
    let used = |(pid, total_s): (&u32, &f64)| total_s - start.tools.get(pid).unwrap_or(&0.0);
    // Not `sum`: that of nothing is minus zero.
    last.iter().map(used).fold(0.0, |sum, used_s| sum + used_s.max(0.0))
}

/// First line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. Stolen time
/// counts as busy: it was not there to be used.
fn parse_stat(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let total: u64 = ticks.iter().sum();
    Some((total - idle, total))
}

/// The load in the busiest window of `samples`.
fn load_of(samples: &[Sample], watched: &[Watched]) -> Option<Load> {
    let (first, last) = (samples.first()?, samples.last()?);
    let least_s = WINDOW_S.min((last.at_s - first.at_s) / 2.0);
    let (start, end) = windows(samples, least_s)
        .max_by(|a, b| activity(a.0, a.1).total_cmp(&activity(b.0, b.1)))?;
    let window_s = end.at_s - start.at_s;
    if window_s <= 0.0 {
        return None;
    }
    let ticks = end.machine.1.saturating_sub(start.machine.1);
    let busy = end.machine.0.saturating_sub(start.machine.0);
    let drops = first.links.iter().zip(&last.links).map(|(a, b)| b.drops.saturating_sub(a.drops));
    let links = start.links.iter().zip(&end.links).zip(drops);
    let processes = watched.iter().zip(start.processes.iter().zip(&end.processes));
    Some(Load {
        window_s: six_digits(window_s),
        links: links
            .map(|((before, after), drops)| link_load(before, after, drops, window_s))
            .collect(),
        processes: processes
            .map(|(watched, (before, after))| process_load(watched, before, after, window_s))
            .collect(),
        tools_cores: six_digits(tools_s(samples, start, end) / window_s),
        machine: six_digits(busy as f64 / ticks.max(1) as f64),
        cores: facts::cores(),
    })
}

/// All windows of at least `least_s`, each as short as the samples allow.
fn windows(samples: &[Sample], least_s: f64) -> impl Iterator<Item = (&Sample, &Sample)> {
    samples.iter().enumerate().filter_map(move |(index, start)| {
        // A hair's breadth of tolerance for sums of periods.
        let end = samples[index + 1..].iter().find(|s| s.at_s - start.at_s >= least_s - 1e-9)?;
        Some((start, end))
    })
}

/// Activity in a window, per second: line bytes of the busiest port, or CPU seconds where there are
/// no links.
fn activity(start: &Sample, end: &Sample) -> f64 {
    let is_port = |link: &LinkSample| !matches!(link.id, LinkId::ControlUp | LinkId::ControlDown);
    let links = start.links.iter().zip(&end.links).filter(|(link, _)| is_port(link));
    let bytes = links.map(|(before, after)| used(before, after)).max();
    let cpu: f64 = start.processes.iter().zip(&end.processes).map(|(a, b)| b.0 - a.0).sum();
    bytes.map_or(cpu, |bytes| bytes as f64) / (end.at_s - start.at_s).max(1e-9)
}

/// Bytes of line time that a link has carried in between.
fn used(before: &LinkSample, after: &LinkSample) -> u64 {
    let bytes = after.bytes.saturating_sub(before.bytes);
    line_bytes(bytes, after.packets.saturating_sub(before.packets))
}

fn link_load(before: &LinkSample, after: &LinkSample, drops: u64, window_s: f64) -> LinkLoad {
    let used_bps = used(before, after) as f64 * 8.0 / window_s;
    let packets = after.packets.saturating_sub(before.packets);
    LinkLoad {
        id: after.id,
        rate_bps: after.rate_bps,
        used_bps: six_digits(used_bps),
        utilisation: after.rate_bps.map(|rate| six_digits(used_bps / rate as f64)),
        packets_ps: six_digits(packets as f64 / window_s),
        drops,
    }
}

fn process_load(
    watched: &Watched,
    (before_s, before): &(f64, Vec<ThreadTime>),
    (after_s, after): &(f64, Vec<ThreadTime>),
    window_s: f64,
) -> ProcessLoad {
    let cpu_cores = (after_s - before_s).max(0.0) / window_s;
    let used = |thread: &ThreadTime| {
        let earlier = before.iter().find(|earlier| earlier.tid == thread.tid);
        let earlier_s = earlier.map_or(0.0, |earlier| earlier.time.total_s());
        (thread.time.total_s() - earlier_s).max(0.0)
    };
    let busiest = after.iter().max_by(|a, b| used(a).total_cmp(&used(b)));
    let thread_cores = busiest.map_or(0.0, |thread| used(thread) / window_s);
    let shared = watched.cores_max.map_or(0.0, |cores| cpu_cores / cores);
    ProcessLoad {
        role: watched.role,
        name: watched.name.clone(),
        cpu_cores: six_digits(cpu_cores),
        thread_cores: six_digits(thread_cores),
        thread: busiest.map(|thread| thread.name.clone()).unwrap_or_default(),
        saturation: six_digits(thread_cores.max(shared)),
    }
}

/// The number with six digits: no clock of a sampler tells more, and every trial of a report has
/// dozens of them.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netdev::sys::cpu::{CpuTime, ThreadTime};

    use super::{
        LinkId, LinkSample, Load, ProcessRole, Sample, Watched, load_of, observe, parse_stat,
        six_digits,
    };

    fn watched(cores_max: Option<f64>) -> [Watched; 1] {
        let (role, name) = (ProcessRole::Controller, "c".to_owned());
        [Watched { role, name, pid: std::process::id(), cores_max }]
    }

    /// A run of 3 s at 100 ms: the link is idle for the first and the last half second.
    fn run() -> Vec<Sample> {
        let sample = |step: u64| {
            let active = step.clamp(5, 25) - 5;
            let cpu_s = active as f64 * 0.1;
            let thread = |(tid, name, share): (u32, &str, f64)| {
                let time = CpuTime { user_s: cpu_s * share, system_s: 0.0 };
                ThreadTime { tid, name: name.to_owned(), time }
            };
            let (packets, rate_bps) = (active * 100, Some(13_000_000));
            let (id, bytes) = (LinkId::Port1In, packets * 1512);
            Sample {
                at_s: step as f64 * 0.1,
                links: vec![LinkSample { id, rate_bps, bytes, packets, drops: step }],
                processes: vec![(
                    cpu_s * 0.95,
                    [(1, "main", 0.6), (2, "io", 0.35)].map(thread).into(),
                )],
                tools: BTreeMap::from([(7, cpu_s * 0.25)]),
                machine: (active * 15, step * 20),
            }
        };
        (0..=30).map(sample).collect()
    }

    fn load(cores_max: Option<f64>) -> Load {
        load_of(&run(), &watched(cores_max)).unwrap()
    }

    #[test]
    fn figures_have_six_digits() {
        let pairs = [(0.123_456_789, 0.123_457), (12_345_678.9, 12_345_700.0), (0.0, 0.0)];
        for (value, rounded) in pairs {
            assert_eq!(six_digits(value), rounded);
        }
        assert!(six_digits(f64::INFINITY).is_infinite() && six_digits(f64::NAN).is_nan());
    }

    #[test]
    fn the_load_is_that_of_the_busiest_second() {
        let load = load(None);
        let (link, process) = (&load.links[0], &load.processes[0]);
        for (found, expected) in [
            // 1,000 frames a second of 1,536 byte times each.
            (link.used_bps, 12_288_000.0),
            (link.utilisation.unwrap(), 12.288 / 13.0),
            (load.machine, 0.75),
            (load.tools_cores, 0.25),
            (process.cpu_cores, 0.95),
            (process.saturation, 0.6),
        ] {
            assert!((found / expected - 1.0).abs() < 2e-6, "{found}, not {expected}");
        }
        assert_eq!(link.drops, 30, "drops are those of the whole measurement");
        assert_eq!(process.thread, "main");
    }

    #[test]
    fn a_program_that_can_use_one_core_is_judged_by_all_its_threads() {
        assert!((load(Some(1.0)).processes[0].saturation - 0.95).abs() < 1e-6);
    }

    #[test]
    fn too_few_samples_make_no_load() {
        let (samples, watched) = (run(), watched(None));
        assert_eq!(load_of(&[], &watched), None);
        assert_eq!(load_of(&samples[..1], &watched), None);
        assert!(load_of(&samples[..2], &watched).is_some());
    }

    #[test]
    fn the_kernels_line_is_read() {
        let text = "cpu  100 5 50 800 20 1 4 20 0 0\ncpu0 1 2 3 4\n";
        assert_eq!(parse_stat(text), Some((180, 1000)));
        assert_eq!(parse_stat("intr 1\n"), None);
        assert_eq!(parse_stat("cpu 1 2 x"), None);
    }

    #[test]
    fn measuring_returns_what_the_work_returns() {
        let (result, load) = observe(&Vec::new, &watched(None), || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            7
        });
        assert_eq!(result, 7);
        assert_eq!(load.unwrap().processes.len(), 1);
    }
}
