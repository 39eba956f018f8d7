//! Utilisation of each part during a measurement: links, programs, the machine.
//!
//! A sampler takes cumulative counters ten times a second while the measurement runs; the load is
//! then that of the busiest whole second (half the run, for shorter runs), all parts in the same
//! window, so that the start and the end of a tool do not dilute a saturated link. Nothing here is
//! estimated: bytes are the kernel's, CPU time is the kernel's.

use std::time::{Duration, Instant};

use files::proc;
use netdev::sys::cpu;
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
    /// Every direction, in the order in which testbeds report them.
    pub const ALL: [Self; 6] = [
        Self::Port1In,
        Self::Port1Out,
        Self::Port2In,
        Self::Port2Out,
        Self::ControlUp,
        Self::ControlDown,
    ];

    /// Whether it belongs to the control link and not to a port.
    #[must_use]
    pub fn is_control(self) -> bool {
        match self {
            Self::ControlUp | Self::ControlDown => true,
            Self::Port1In | Self::Port1Out | Self::Port2In | Self::Port2Out => false,
        }
    }

    /// In words.
    #[must_use]
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

/// Load of a link since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCount {
    /// Bytes without FCS.
    pub bytes: u64,
    /// Frames.
    pub packets: u64,
    /// Frames that its queue dropped.
    pub drops: u64,
}

/// The counters of a link in the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// The link.
    pub id: LinkId,
    /// Its rate, bit/s, if it is shaped.
    pub rate_bps: Option<u64>,
    /// Its load so far.
    pub count: LinkCount,
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

/// CPU time of one program so far, seconds: of all, and of each thread by its number and name.
type ProcessSample = (f64, Vec<(u32, String, f64)>);

/// CPU time of the whole machine so far, in ticks: busy, and all.
type MachineSample = (u64, u64);

/// All counters at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    at_s: f64,
    links: Vec<LinkSample>,
    processes: Vec<ProcessSample>,
    tools: Vec<(u32, f64)>,
    machine: MachineSample,
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
    /// The program that plays `role`: of several, the busiest.
    #[must_use]
    pub fn process(&self, role: ProcessRole) -> Option<&ProcessLoad> {
        self.processes
            .iter()
            .filter(|process| process.role == role)
            .max_by(|a, b| a.cpu_cores.total_cmp(&b.cpu_cores))
    }

    /// Cores taken by what is no part of the run: other programs of the machine, and the
    /// kernel's own threads.
    #[must_use]
    pub fn others_cores(&self) -> f64 {
        let watched: f64 = self.processes.iter().map(|process| process.cpu_cores).sum();
        (self.machine * self.cores as f64 - watched - self.tools_cores).max(0.0)
    }
}

/// Reads the links' counters, and watches programs.
pub struct Observer<'a> {
    /// Reads the counters of all links; empty where the testbed has none.
    pub links: &'a (dyn Fn() -> Vec<LinkSample> + Sync),
    /// The programs.
    pub watched: Vec<Watched>,
}

impl Observer<'_> {
    fn sample(&self, zero: Instant) -> Sample {
        let processes = self.watched.iter().map(|watched| process_sample(watched.pid)).collect();
        Sample {
            at_s: zero.elapsed().as_secs_f64(),
            links: (self.links)(),
            processes,
            tools: tool_samples(&self.watched),
            machine: machine_sample(),
        }
    }

    /// Runs `work` with the sampler beside it. The load is `None` only when `work` was so short
    /// that no time passed.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Load>) {
        let zero = Instant::now();
        let mut samples = vec![self.sample(zero)];
        let (done, finished) = std::sync::mpsc::channel::<()>();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                let finished = finished;
                while finished
                    .recv_timeout(PERIOD)
                    .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    samples.push(self.sample(zero));
                }
            });
            let result = work();
            drop(done);
            result
        });
        samples.push(self.sample(zero));
        (result, load_of(&samples, &self.watched))
    }
}

/// A process that has ended has used nothing since.
fn process_sample(pid: u32) -> ProcessSample {
    let threads: Vec<(u32, String, f64)> = cpu::threads(pid)
        .unwrap_or_default()
        .into_iter()
        .map(|thread| (thread.tid, thread.name, thread.time.total_s()))
        .collect();
    let total_s = cpu::process(pid).map(cpu::CpuTime::total_s).unwrap_or_default();
    (total_s, threads)
}

/// CPU time of the programs that the lab runs and that are not watched by name.
fn tool_samples(watched: &[Watched]) -> Vec<(u32, f64)> {
    process::live()
        .into_iter()
        .filter(|pid| watched.iter().all(|watched| watched.pid != *pid))
        .filter_map(|pid| Some((pid, cpu::process(pid).ok()?.total_s())))
        .collect()
}

/// CPU time of the tools between two samples; a tool's work after the last sample before its end is
/// not seen.
fn tools_s(samples: &[Sample], start: &Sample, end: &Sample) -> f64 {
    let mut last: Vec<(u32, f64)> = Vec::new();
    for sample in samples.iter().filter(|s| s.at_s >= start.at_s && s.at_s <= end.at_s) {
        for (pid, total_s) in &sample.tools {
            match last.iter_mut().find(|entry| entry.0 == *pid) {
                Some(entry) => entry.1 = *total_s,
                None => last.push((*pid, *total_s)),
            }
        }
    }
    let before = |pid: u32| start.tools.iter().find(|t| t.0 == pid).map_or(0.0, |t| t.1);
    // Not `sum`: that of nothing is minus zero.
    last.iter().map(|(pid, total_s)| (total_s - before(*pid)).max(0.0)).fold(0.0, |a, b| a + b)
}

fn machine_sample() -> MachineSample {
    proc::machine("stat").ok().and_then(|text| parse_stat(&text)).unwrap_or_default()
}

/// First line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. Stolen time
/// counts as busy: it was not there to be used.
fn parse_stat(text: &str) -> Option<MachineSample> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let total: u64 = ticks.iter().sum();
    Some((total - idle, total))
}

/// The load in the busiest window of `samples`.
#[must_use]
pub fn load_of(samples: &[Sample], watched: &[Watched]) -> Option<Load> {
    let (first, last) = (samples.first()?, samples.last()?);
    let whole_s = last.at_s - first.at_s;
    let least_s = WINDOW_S.min(whole_s / 2.0);
    let (start, end) = windows(samples, least_s)
        .max_by(|a, b| activity(a.0, a.1).total_cmp(&activity(b.0, b.1)))?;
    let window_s = end.at_s - start.at_s;
    if window_s <= 0.0 {
        return None;
    }
    let ticks = end.machine.1.saturating_sub(start.machine.1);
    let busy = end.machine.0.saturating_sub(start.machine.0);
    let cores = facts::cores();
    let processes = watched.iter().zip(start.processes.iter().zip(&end.processes));
    Some(Load {
        window_s: six_digits(window_s),
        links: end.links.iter().map(|link| link_load(first, last, start, link, window_s)).collect(),
        processes: processes
            .map(|(watched, (before, after))| process_load(watched, before, after, window_s))
            .collect(),
        tools_cores: six_digits(tools_s(samples, start, end) / window_s),
        machine: six_digits(busy as f64 / ticks.max(1) as f64),
        cores,
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
    let bytes = start
        .links
        .iter()
        .zip(&end.links)
        .filter(|(before, _)| !before.id.is_control())
        .map(|(before, after)| used(&before.count, &after.count))
        .max();
    let cpu: f64 = start.processes.iter().zip(&end.processes).map(|(a, b)| b.0 - a.0).sum();
    bytes.map_or(cpu, |bytes| bytes as f64) / (end.at_s - start.at_s).max(1e-9)
}

fn used(before: &LinkCount, after: &LinkCount) -> u64 {
    line_bytes(
        after.bytes.saturating_sub(before.bytes),
        after.packets.saturating_sub(before.packets),
    )
}

fn link_load(
    first: &Sample,
    last: &Sample,
    start: &Sample,
    end: &LinkSample,
    window_s: f64,
) -> LinkLoad {
    let count = |sample: &Sample| {
        sample.links.iter().find(|link| link.id == end.id).map_or(end.count, |link| link.count)
    };
    let before = count(start);
    let used_bps = used(&before, &end.count) as f64 * 8.0 / window_s;
    LinkLoad {
        id: end.id,
        rate_bps: end.rate_bps,
        used_bps: six_digits(used_bps),
        utilisation: end.rate_bps.map(|rate| six_digits(used_bps / rate as f64)),
        packets_ps: six_digits(end.count.packets.saturating_sub(before.packets) as f64 / window_s),
        drops: count(last).drops.saturating_sub(count(first).drops),
    }
}

fn process_load(
    watched: &Watched,
    before: &ProcessSample,
    after: &ProcessSample,
    window_s: f64,
) -> ProcessLoad {
    let cpu_cores = (after.0 - before.0).max(0.0) / window_s;
    let used = |(tid, _, after_s): &(u32, String, f64)| {
        let before_s = before.1.iter().find(|t| t.0 == *tid).map_or(0.0, |t| t.2);
        (after_s - before_s).max(0.0)
    };
    let busiest = after.1.iter().max_by(|a, b| used(a).total_cmp(&used(b)));
    let thread_cores = busiest.map_or(0.0, |thread| used(thread) / window_s);
    let shared = watched.cores_max.map_or(0.0, |cores| cpu_cores / cores);
    ProcessLoad {
        role: watched.role,
        name: watched.name.clone(),
        cpu_cores: six_digits(cpu_cores),
        thread_cores: six_digits(thread_cores),
        thread: busiest.map(|thread| thread.1.clone()).unwrap_or_default(),
        saturation: six_digits(thread_cores.max(shared)),
    }
}

/// The number with six digits: no clock of a sampler tells more, and every trial of a report has
/// dozens of them.
pub(crate) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{
        LinkCount, LinkId, LinkSample, Observer, ProcessRole, Sample, Watched, load_of, parse_stat,
        six_digits,
    };

    /// A run of 3 s at 100 ms: the link is idle for the first and the last half second.
    fn run(cores_max: Option<f64>) -> (Vec<Sample>, Vec<Watched>) {
        let watched =
            vec![Watched { role: ProcessRole::Controller, name: "c".into(), pid: 1, cores_max }];
        let samples = (0..=30_u64)
            .map(|step| {
                let active = step.clamp(5, 25) - 5;
                let packets = active * 100;
                let count = LinkCount { bytes: packets * 1512, packets, drops: step };
                let rate_bps = Some(13_000_000);
                let cpu_s = active as f64 * 0.1;
                let threads = vec![(1, "main".into(), cpu_s * 0.6), (2, "io".into(), cpu_s * 0.35)];
                Sample {
                    at_s: step as f64 * 0.1,
                    links: vec![LinkSample { id: LinkId::Port1In, rate_bps, count }],
                    processes: vec![(cpu_s * 0.95, threads)],
                    tools: vec![(7, cpu_s * 0.25)],
                    machine: (active * 15, step * 20),
                }
            })
            .collect();
        (samples, watched)
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
        let (samples, watched) = run(None);
        let load = load_of(&samples, &watched).unwrap();
        let link = &load.links[0];
        // 1,000 frames a second of 1,536 byte times each.
        assert!((link.used_bps - 12_288_000.0).abs() < 1.0, "{}", link.used_bps);
        assert!((link.utilisation.unwrap() - 12.288 / 13.0).abs() < 1e-6);
        assert_eq!(link.drops, 30, "drops are those of the whole measurement");
        assert!((load.machine - 0.75).abs() < 1e-6);
        assert!((load.tools_cores - 0.25).abs() < 1e-6);
        let process = load.process(ProcessRole::Controller).unwrap();
        assert!((process.cpu_cores - 0.95).abs() < 1e-6);
        assert!((process.saturation - 0.6).abs() < 1e-6);
        assert_eq!(process.thread, "main");
    }

    #[test]
    fn a_program_that_can_use_one_core_is_judged_by_all_its_threads() {
        let (samples, watched) = run(Some(1.0));
        let load = load_of(&samples, &watched).unwrap();
        assert!((load.processes[0].saturation - 0.95).abs() < 1e-6);
    }

    #[test]
    fn too_few_samples_make_no_load() {
        let (samples, watched) = run(None);
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
        let watched = vec![Watched {
            role: ProcessRole::Switch,
            name: "me".into(),
            pid: std::process::id(),
            cores_max: None,
        }];
        let observer = Observer { links: &Vec::new, watched };
        let (result, load) = observer.measure(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            7
        });
        assert_eq!(result, 7);
        assert_eq!(load.unwrap().processes.len(), 1);
    }
}
