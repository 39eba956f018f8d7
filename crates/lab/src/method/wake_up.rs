//! Cost of an idle switch, and the time from port to port of a frame that finds it asleep.
//!
//! The CPU time of all threads is read while nothing comes. Then single frames come after a
//! silence. The lab polls at the other port, so that only the switch's waking is in a time; a
//! session of the generator would poll at both ports while the switch sleeps. What the kernel
//! takes at least to wake a thread on that core, a bare one that does nothing else, stands
//! beside it; the switch is held still meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::sys::{affinity, event};
use netdev::{Port, PortError};
use packet::{Batch, PacketBuf};
use programs::cancel::Cancel;
use programs::held::Held;
use serde_json::json;

use super::replay::{Replaying, bed_of, run, trial};
use super::{Method, Metric, Trial, idle_cpu, leave_out_quantile};
use crate::settings::Settings;
use crate::workload::made;
use stats::quantile;

/// A frame that has not come after so long is lost.
const LOST: Duration = Duration::from_secs(2);

/// Frames, and milliseconds before each, where the cell says nothing else.
const FRAMES: u64 = 400;
const SILENCE_MS: u16 = 5;

fn frames(settings: &Settings) -> u64 {
    settings.count.unwrap_or(FRAMES)
}

fn silence(settings: &Settings) -> Duration {
    Duration::from_millis(settings.silence_ms.unwrap_or(SILENCE_MS).into())
}

pub(super) const WAKE_UP: Method = Method {
    id: "wake-up",
    label: "A frame after a silence",
    about: "CPU time of all threads of the switch while nothing comes; then `count` single frames \
            (300), each after `silence_ms` (5) without any: the time from port to port, and how \
            long the kernel takes to wake a bare thread on the same core",
    metrics: &[
        Metric::lower("wake_idle_cores", "CPU without traffic", "cores", 4),
        Metric::lower("wake_us", "port to port after a silence, median", "µs", 1),
        Metric::lower("wake_p99_us", "the same, 99 %", "µs", 1),
        Metric::lower("wake_lost", "frames that did not come", "frames", 0),
        Metric::lower("wake_kernel_us", "the kernel alone wakes a thread, median", "µs", 1),
    ],
    cost: |settings| {
        let count = u32::try_from(frames(settings)).unwrap_or(u32::MAX);
        let idle = Duration::from_secs_f64(settings.duration_s());
        silence(settings).saturating_mul(count).saturating_mul(2).saturating_add(idle)
    },
    fits: |bed| {
        bed_of(bed).and_then(|bed| match bed.wires() {
            Some(_) => Ok(()),
            None => Err("no single frames: settings.replay needs devices = \"wires\""),
        })
    },
    run: |context| run(context, measure),
    ..Method::USUAL
};

fn measure(replaying: &Replaying<'_>) -> Result<Trial> {
    let wires = replaying.bed.wires().context("no single frames")?;
    let [from, to] = wires.take_ports()?;
    let mut single = SingleFrame::new(from, to, &made::frame(0));
    let trial = with_wires(replaying, &mut single);
    wires.give_back(vec![single.from, single.to]);
    trial
}

fn with_wires(replaying: &Replaying<'_>, single: &mut SingleFrame) -> Result<Trial> {
    let (settings, cancel) = (replaying.settings, replaying.cancel);
    ensure!(single.one_way(LOST)?.is_some(), "no frame comes through the switch");
    let pids = replaying.setup.switch_pids();
    let idle = Duration::from_secs_f64(settings.duration_s());
    let (cores, _) = idle_cpu::cores(&pids, idle, cancel)?;
    let (mut times, mut lost) = (Vec::new(), 0_u32);
    for _ in 0..frames(settings) {
        cancel.sleep(silence(settings))?;
        match single.one_way(LOST)? {
            Some(time) => times.push(time),
            None => lost += 1,
        }
    }
    let core = replaying.bed.forwarding_cores().start;
    let held: Result<Vec<Held>> = pids.into_iter().map(Held::hold).collect();
    let kernel = woken(core, frames(settings), silence(settings), cancel)?;
    drop(held?);
    let us = |times: &[Duration]| {
        let mut us: Vec<f64> = times.iter().map(|time| 1e6 * time.as_secs_f64()).collect();
        us.sort_by(f64::total_cmp);
        us
    };
    let (times, kernel) = (us(&times), us(&kernel));
    let mut values = vec![("wake_idle_cores", cores), ("wake_lost", lost.into())];
    for (id, times, q) in
        [("wake_us", &times, 0.5), ("wake_p99_us", &times, 0.99), ("wake_kernel_us", &kernel, 0.5)]
    {
        let some = (!times.is_empty()).then(|| (id, quantile(times, q)));
        values.extend(some);
        leave_out_quantile(&mut values, id, (q, times.len() as u64));
    }
    Ok(Trial {
        tool: "the lab's ends of two wires in memory".into(),
        ..trial(values, json!({ "times_us": times, "kernel_us": kernel }))
    })
}

/// Two ports, and the single frame that goes from one to the other through the switch.
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
        // A frame that was given up for lost and came later is not the one that is sent now.
        while self.to.rx(&mut self.came, 1)? > 0 {
            self.came.clear();
        }
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

/// Time in which the kernel wakes a thread on `core` that sleeps in `poll(2)`, from before the call
/// that wakes it until it has looked at the clock.
fn woken(core: usize, count: u64, silence: Duration, cancel: &Cancel) -> Result<Vec<Duration>> {
    let bell = event::WakeEvent::new().context("making a descriptor")?;
    let (zero, stop, at_ns) = (Instant::now(), AtomicBool::new(false), AtomicU64::new(0));
    let sleep = || -> Result<()> {
        affinity::allow(None, &[core]).context("choosing a core")?;
        while !stop.load(Ordering::Acquire) {
            event::wait(&[bell.fd()], None).context("sleeping")?;
            bell.drain();
            at_ns.store(zero.elapsed().as_nanos() as u64, Ordering::Release);
        }
        Ok(())
    };
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
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(sleep);
        let times: Result<Vec<_>> = (0..count).map(|_| ring()).collect();
        stop.store(true, Ordering::Release);
        bell.ring();
        sleeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(times?.into_iter().flatten().collect())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netdev::open_text;
    use packet::Batch;

    use super::{SingleFrame, woken};
    use programs::cancel::Cancel;

    #[test]
    fn a_frame_comes_back_by_a_wire_and_not_from_nowhere() {
        let open = |text: &str| open_text(text).unwrap();
        let (from, to) = (open("memory:bench-idle?end=a"), open("memory:bench-idle?end=b"));
        let mut single = SingleFrame::new(from, to, &[1; 60]);
        assert!(single.one_way(Duration::from_secs(30)).unwrap().is_some());
        assert_eq!(single.from.tx(&single.frame).unwrap(), 1);
        assert!(single.one_way(Duration::from_secs(30)).unwrap().is_some());
        let left = single.to.rx(&mut Batch::default(), 1).unwrap();
        assert_eq!(left, 0, "one that came too late answers nothing");
        let mut nowhere = SingleFrame::new(open("null:a"), open("null:b"), &[1; 60]);
        assert!(nowhere.one_way(Duration::from_millis(1)).unwrap().is_none());
    }

    #[test]
    fn a_sleeper_is_woken_and_its_time_is_counted() {
        let core = netdev::sys::affinity::allowed_cpus().unwrap()[0];
        let silence = Duration::from_millis(1);
        assert_eq!(woken(core, 3, silence, &Cancel::default()).unwrap().len(), 3);
    }
}
