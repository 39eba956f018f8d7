//! `weir bench idle`: what a switch costs that has nothing to do, and what waking it costs.
//!
//! The CPU time of all threads is read while ports are open and nothing comes. Then single frames
//! come after a silence, once to a switch that sleeps and once to one that never sleeps, in turns.
//! The bench asks for the frame at the other port without sleeping, so that only the switch's
//! waking is in the difference. What the kernel takes at least to wake a thread on that core, a
//! bare one that does nothing else, stands beside it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use files::proc::ProcFolder;
use netdev::sys::{affinity, event};
use netdev::{Port, PortError, open_text};
use openflow::Version;
use packet::{Batch, PacketBuf};
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::scratch;
use super::series::Spread;
use super::weir::{Launch, Weir};
use crate::cancel::Cancel;
use crate::stats::quantile;
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench idle
  weir bench idle --seconds 10 --probes 5000 --silence-ms 20 --json";

/// A frame that has not come after so long is lost.
const LOST: Duration = Duration::from_secs(2);

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct IdleArgs {
    /// Frames in each repeat that find the switch asleep
    #[arg(long, default_value_t = 300, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    probes: u32,
    /// Milliseconds of silence before each frame
    #[arg(long, default_value_t = 5, value_name = "MS",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    silence_ms: u16,
    #[command(flatten)]
    common: Common,
}

/// CPU time of a switch without traffic.
#[derive(Debug, Serialize)]
struct IdleCpu {
    switch: &'static str,
    bench: &'static str,
    ports: usize,
    seconds: f64,
    /// Percent of a core, all threads.
    cpu_percent: Spread,
}

impl Row for IdleCpu {
    fn text(&self) -> String {
        format!(
            "idle             {:.3} % of a core ({:.3} to {:.3}), {} ports open, {} s each\n",
            self.cpu_percent.median,
            self.cpu_percent.min,
            self.cpu_percent.max,
            self.ports,
            self.seconds
        )
    }

    fn is_good(&self) -> bool {
        true
    }
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Times {
    count: usize,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    max_us: f64,
}

impl Times {
    fn of(times: &[Duration]) -> Self {
        let mut sorted: Vec<f64> = times.iter().map(|time| 1e6 * time.as_secs_f64()).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Self::default();
        }
        let at = |q| rounded(quantile(&sorted, q));
        let (p50_us, p90_us) = (at(0.5), at(0.9));
        Self { count: sorted.len(), p50_us, p90_us, p99_us: at(0.99), max_us: at(1.0) }
    }

    fn text(&self, what: &str) -> String {
        format!(
            "  {what:14} p50 {:.1}, p90 {:.1}, p99 {:.1}, longest {:.1} us of {}\n",
            self.p50_us, self.p90_us, self.p99_us, self.max_us, self.count
        )
    }
}

/// What a frame takes from port to port after a silence.
#[derive(Debug, Serialize)]
struct Waking {
    switch: &'static str,
    bench: &'static str,
    silence_ms: u16,
    /// `--poll adaptive`: the switch sleeps.
    asleep: Times,
    /// `--poll busy`: it never does.
    awake: Times,
    /// The difference of the medians.
    wake_up_us: f64,
    /// A bare thread on the same core that is woken through the same kind of descriptor.
    kernel: Times,
    lost: usize,
}

impl Row for Waking {
    fn text(&self) -> String {
        let mut text = format!(
            "first frame      waking costs {:.1} us (medians) after {} ms of silence, {} lost\n",
            self.wake_up_us, self.silence_ms, self.lost
        );
        text += &self.asleep.text("asleep");
        text += &self.awake.text("never asleep");
        text + &self.kernel.text("kernel alone")
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

impl IdleArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let steps = 1 + usize::from(self.common.repeats);
        self.common.run(steps, |run| {
            run.progress.begin("CPU time without traffic");
            let row = idle_cpu(run)?;
            run.row(&row)?;
            run.progress.advance(1);
            let row = self.waking(run)?;
            run.row(&row)
        })
    }

    fn waking(&self, run: &mut Run) -> Result<Waking> {
        let folders = [scratch()?, scratch()?];
        let (mut asleep, mut awake, mut kernel) = (Vec::new(), Vec::new(), Vec::new());
        let mut lost = 0;
        let silence = Duration::from_millis(self.silence_ms.into());
        for repeat in 0..run.repeats {
            run.progress.begin(&format!("frames after a silence, {}", repeat + 1));
            let ways = [("adaptive", &mut asleep), ("busy", &mut awake)];
            for (folder, (poll, times)) in folders.iter().zip(ways) {
                let mut bed = IdleTestbed::start(run, poll, folder.path())?;
                for _ in 0..self.probes {
                    run.cancel.sleep(silence)?;
                    match bed.single.one_way(LOST)? {
                        Some(time) => times.push(time),
                        None => lost += 1,
                    }
                }
            }
            kernel.extend(woken(run.core, self.probes, silence, &run.cancel)?);
            run.progress.advance(1);
        }
        let (asleep, awake) = (Times::of(&asleep), Times::of(&awake));
        Ok(Waking {
            switch: "weir",
            bench: "idle",
            silence_ms: self.silence_ms,
            wake_up_us: rounded(asleep.p50_us - awake.p50_us),
            asleep,
            awake,
            kernel: Times::of(&kernel),
            lost,
        })
    }
}

fn wires(folder: &Path, end: char) -> [String; 2] {
    [1, 2].map(|n| format!("memory:{}?end={end}", folder.join(format!("wire-{n}")).display()))
}

/// Two ports, and the single frame that goes from one to the other through the switch. A session
/// of the generator would be polling at both ports while the switch sleeps, and so keep the core
/// busy that the switch is to be woken on.
struct SingleFrame {
    from: Port,
    to: Port,
    frame: [PacketBuf; 1],
    came: Batch,
}

impl SingleFrame {
    /// A frame that enters the switch by `from` and leaves it by `to`.
    fn new(from: Port, to: Port, frame: &[u8]) -> Self {
        Self { from, to, frame: [PacketBuf::from_slice(frame)], came: Batch::default() }
    }

    /// Sends the frame and polls for it; its delay, or `None` when it did not come within `limit`.
    fn one_way(&mut self, limit: Duration) -> Result<Option<Duration>, PortError> {
        self.came.clear();
        let begun = Instant::now();
        self.from.tx(&self.frame)?;
        while self.to.rx(&mut self.came, 1)? == 0 {
            if begun.elapsed() > limit {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
        Ok(Some(begun.elapsed()))
    }
}

/// A switch between two wires whose other ends are ours.
struct IdleTestbed {
    single: SingleFrame,
    weir: Weir,
}

impl IdleTestbed {
    fn start(run: &Run, poll: &'static str, folder: &Path) -> Result<Self> {
        let open =
            |text: &String| -> Result<Port> { open_text(text).with_context(|| text.clone()) };
        let [first, second] = wires(folder, 'a');
        let (from, to) = (open(&first)?, open(&second)?);
        let launch = Launch { poll, ..run.launch(wires(folder, 'b').to_vec()) };
        let mut weir = Weir::launch(&launch, folder, &run.cancel)?;
        weir.load(Version::V1_3, made::entries(2))?;
        let mut single = SingleFrame::new(from, to, &made::frame(0));
        ensure!(single.one_way(LOST)?.is_some(), "no frame comes through the switch");
        Ok(Self { single, weir })
    }
}

/// What a switch with open ports uses of a core, in percent.
fn idle_cpu(run: &Run) -> Result<IdleCpu> {
    let folder = scratch()?;
    let mut bed = IdleTestbed::start(run, "adaptive", folder.path())?;
    let mut percents = Vec::new();
    for _ in 0..run.repeats {
        let used = || used_s(bed.weir.pid());
        let (before, begun) = (used()?, Instant::now());
        run.cancel.sleep(Duration::from_secs_f64(run.window.seconds))?;
        percents.push(100.0 * (used()? - before) / begun.elapsed().as_secs_f64());
    }
    ensure!(bed.single.one_way(LOST)?.is_some(), "the switch has stopped forwarding");
    let (ports, seconds) = (2, run.window.seconds);
    let (switch, bench) = ("weir", "idle");
    Ok(IdleCpu { switch, bench, ports, seconds, cpu_percent: Spread::of(&percents) })
}

/// Seconds that all threads of a process have run, by the nanosecond and not by the clock tick.
///
/// # Errors
/// There is no such process.
pub(super) fn used_s(pid: u32) -> Result<f64> {
    let threads = ProcFolder::of(pid).threads().context("listing the switch's threads")?;
    let used = threads.iter().filter_map(|(_, thread)| Some(thread.sched_time()?.ran_ns));
    Ok(used.sum::<u64>() as f64 / 1e9)
}

/// How long the kernel takes to wake a thread on `core` that sleeps in `poll(2)`, from before the
/// call that wakes it until it has looked at the clock.
fn woken(core: usize, probes: u32, silence: Duration, cancel: &Cancel) -> Result<Vec<Duration>> {
    let bell = Arc::new(event::WakeEvent::new().context("making a descriptor")?);
    let (zero, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let at_ns = Arc::new(AtomicU64::new(0));
    let sleeper = {
        let (bell, at_ns, stop) = (Arc::clone(&bell), Arc::clone(&at_ns), Arc::clone(&stop));
        let name = std::thread::Builder::new().name("sleeper".into());
        name.spawn(move || -> Result<()> {
            affinity::allow(None, &[core]).context("choosing a core")?;
            while !stop.load(Ordering::Acquire) {
                event::wait(&[bell.fd()], None).context("sleeping")?;
                bell.drain();
                at_ns.store(zero.elapsed().as_nanos() as u64, Ordering::Release);
            }
            Ok(())
        })
    };
    let sleeper = sleeper.context("starting a thread")?;
    let ring = || -> Result<Option<Duration>> {
        cancel.sleep(silence)?;
        at_ns.store(0, Ordering::Release);
        let begun = zero.elapsed();
        bell.ring();
        while at_ns.load(Ordering::Acquire) == 0 {
            if zero.elapsed() > begun + LOST {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
        let at = Duration::from_nanos(at_ns.load(Ordering::Acquire));
        Ok(Some(at.saturating_sub(begun)))
    };
    let times: Result<Vec<_>> = (0..probes).map(|_| ring()).collect();
    stop.store(true, Ordering::Release);
    bell.ring();
    sleeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(times?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netdev::open_text;

    use super::{SingleFrame, Times, used_s, woken};
    use crate::cancel::Cancel;

    #[test]
    fn a_frame_comes_back_by_a_wire_and_not_from_nowhere() {
        let open = |text: &str| open_text(text).unwrap();
        let (from, to) = (open("memory:bench-idle?end=a"), open("memory:bench-idle?end=b"));
        let mut single = SingleFrame::new(from, to, &[1; 60]);
        assert!(single.one_way(Duration::from_secs(30)).unwrap().is_some());
        let mut nowhere = SingleFrame::new(open("null:a"), open("null:b"), &[1; 60]);
        assert!(nowhere.one_way(Duration::from_millis(1)).unwrap().is_none());
    }

    #[test]
    fn times_are_reported_by_their_quantiles() {
        let times = Times::of(&[1, 2, 3].map(Duration::from_micros));
        assert_eq!((times.count, times.p50_us, times.max_us), (3, 2.0, 3.0));
        assert!(times.text("asleep").contains("p50 2.0"));
        assert_eq!(Times::of(&[]), Times::default());
    }

    #[test]
    fn a_sleeper_is_woken_and_its_time_is_counted() {
        let core = netdev::sys::affinity::allowed_cpus().unwrap()[0];
        let silence = Duration::from_millis(1);
        assert_eq!(woken(core, 3, silence, &Cancel::default()).unwrap().len(), 3);
        assert!(used_s(std::process::id()).unwrap() > 0.0);
    }
}
