//! Emulated switches that load a controller: all of them together, taken from phase to phase.
//!
//! The switches run on threads of their own. This side tells them what to do and waits until they
//! have done it. Every wait has an end and says what it waited for: a controller may be silent,
//! deaf or gone. Dropping a fleet ends it.

mod http;
#[cfg(test)]
pub(crate) mod mock;
pub(crate) mod proactive;
mod ring;
pub(crate) mod topology;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use channel::{Endpoint, Tls};
use openflow::Version;
use programs::cancel::Cancel;
use tokio::sync::watch;

use emulator::{AnswerLayout, Buffering, PacketIns};
use emulator::{EmulationPlan, Pace, Phase};
use emulator::{Progress, Tally};
use emulator::{THREAD_NAME, ThreadPlan};

/// Figures by the keys of their metrics.
type Values = Vec<(&'static str, f64)>;

/// A controller that answers nothing at all for this time while hosts are announced has stopped.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// Silence after which open packet-ins count as unanswered; and the longest wait for answers, which
/// no controller needs for the packet-ins that may wait.
const DRAIN_STALL: Duration = Duration::from_secs(2);
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

/// A controller that nobody could connect to for so long is not there.
const ABSENT_AFTER: Duration = Duration::from_secs(3);

/// Packet-ins of all switches that may wait for an answer while hosts are announced.
const LEARN_OUTSTANDING: u32 = 4_096;

/// Room for all packet-ins that wait for an answer at a given rate.
const RATE_ROOM: u32 = 1 << 20;

/// Plan of the emulation.
#[derive(Clone, Debug)]
pub(crate) struct FleetPlan {
    /// Address of the controller.
    pub(crate) target: Endpoint,
    /// Our side of TLS.
    pub(crate) tls: Option<Tls>,
    /// The version that all switches speak.
    pub(crate) version: Version,
    /// Number of switches.
    pub(crate) switches: u32,
    /// Hosts behind each, an even number.
    pub(crate) hosts: u32,
    /// Ports of each, an even number.
    pub(crate) ports: u32,
    /// Bytes of a packet, without FCS.
    pub(crate) frame_bytes: u16,
    /// Whether packet-ins name a buffer.
    pub(crate) buffering: Buffering,
    /// When packet-ins are sent.
    pub(crate) pace: Pace,
    /// Whether the time to each answer is kept.
    pub(crate) keeps_times: bool,
    /// Threads.
    pub(crate) threads: usize,
    /// Cores that they may use; empty for all.
    pub(crate) cores: Vec<usize>,
    /// Connections that may be in the making at the same time.
    pub(crate) at_once: u32,
    /// Longest time until a controller serves all switches.
    pub(crate) ready_limit: Duration,
    /// Load before the window that is measured.
    pub(crate) warm_up: Duration,
    /// The window that is measured; of a storm, the silence after it.
    pub(crate) window: Duration,
    /// `HOST:PORT` of the controller's REST, for what is asked of it.
    pub(crate) rest: Option<String>,
}

impl FleetPlan {
    fn common(&self) -> Result<EmulationPlan> {
        let room = match self.pace {
            Pace::Window(window) => window.saturating_mul(4).max(64),
            Pace::Rate(_) => (RATE_ROOM / self.switches.max(1)).max(256),
        };
        let learn_window = (LEARN_OUTSTANDING / self.switches.max(1)).clamp(1, 512);
        let (version, ports) = (self.version, self.ports);
        Ok(EmulationPlan {
            version,
            layout: AnswerLayout::of(version)?,
            packet_ins: PacketIns::new(version, ports, self.frame_bytes, self.buffering)?,
            hosts: self.hosts,
            ports,
            pace: self.pace,
            learn_window,
            room: room.max(learn_window * 2),
            keeps_times: self.keeps_times,
        })
    }
}

/// Switches that run.
#[derive(Debug)]
pub(crate) struct Fleet {
    plan: FleetPlan,
    threads: Vec<JoinHandle<Result<Tally>>>,
    phase: watch::Sender<Phase>,
    progress: Arc<Progress>,
    zero: Instant,
}

impl Fleet {
    /// Starts to connect all switches.
    ///
    /// # Errors
    /// No thread, or too few descriptors.
    pub(crate) fn start(plan: FleetPlan) -> Result<Self> {
        let limit = files::raise_open_files();
        let limit = limit.context("raising the limit of open files")?;
        // A few for standard streams, the runtime and what else is open.
        if let Some(limit) = limit.filter(|limit| *limit < u64::from(plan.switches) + 64) {
            bail!(
                "{} switches need as many open files, and this process may have {limit}: raise it \
                 with ulimit -n",
                plan.switches
            );
        }
        let (phase, seen) = watch::channel(Phase::Greet);
        let progress = Arc::new(Progress::default());
        let zero = Instant::now();
        let threads = plan.threads.clamp(1, plan.switches.max(1) as usize);
        let mut fleet = Self { threads: Vec::new(), phase, progress, zero, plan };
        for number in 0..threads {
            let all = u64::from(fleet.plan.switches);
            let share = |n: usize| (all * n as u64 / threads as u64) as u32;
            let plan = ThreadPlan {
                target: fleet.plan.target.clone(),
                tls: fleet.plan.tls.clone(),
                switches: share(number)..share(number + 1),
                total: fleet.plan.switches,
                at_once: fleet.plan.at_once / threads as u32,
                hello_limit: fleet.plan.ready_limit,
                cores: fleet.plan.cores.clone(),
                zero,
                phase: seen.clone(),
                progress: Arc::clone(&fleet.progress),
            };
            let common = fleet.plan.common()?;
            let name = std::thread::Builder::new().name(format!("{THREAD_NAME}-{number}"));
            let thread = name.spawn(move || emulator::run(plan, common));
            fleet.threads.push(thread.context("starting a thread of the emulator")?);
        }
        Ok(fleet)
    }

    /// Waits until every switch had an answer to its first packet-in; the seconds since the start.
    ///
    /// # Errors
    /// Some had none in time, or the run was interrupted.
    pub(crate) fn await_served(&mut self, cancel: &Cancel) -> Result<f64> {
        let (plan, progress, zero) = (&self.plan, Arc::clone(&self.progress), self.zero);
        let read = Progress::read;
        let mut is_absent = false;
        let is_done = cancel.poll(plan.ready_limit, || {
            let (connected, refused) = (read(&progress.connected), read(&progress.refused));
            is_absent = connected == 0 && refused > 0 && zero.elapsed() > ABSENT_AFTER;
            let is_over = read(&progress.served) + read(&progress.down) >= plan.switches;
            is_over || is_absent || self.threads.iter().all(JoinHandle::is_finished)
        })?;
        let seconds = self.zero.elapsed().as_secs_f64();
        let served = read(&self.progress.served);
        if is_done && served >= self.plan.switches && read(&self.progress.down) == 0 {
            return Ok(seconds);
        }
        let (all, progress) = (self.plan.switches, &self.progress);
        let what = format!(
            "{} of {all} switches connected, {} told their features, {served} had an answer to a \
             packet-in, within {seconds:.1} s",
            read(&progress.connected).min(all),
            read(&progress.described).min(all),
        );
        Err(self.fail(&what))
    }

    /// Lets every switch announce its hosts.
    ///
    /// # Errors
    /// Connections ended, the controller answers nothing any more, or the run was interrupted.
    pub(crate) fn learn(&mut self, cancel: &Cancel) -> Result<()> {
        self.enter(Phase::Learn);
        let (mut seen, mut at) = (0, Instant::now());
        loop {
            let progress = &self.progress;
            let learned = Progress::read(&progress.learned);
            let down = Progress::read(&progress.down);
            if learned + down >= self.plan.switches {
                break;
            }
            let answers = progress.answers.load(Ordering::Relaxed);
            if answers != seen {
                (seen, at) = (answers, Instant::now());
            }
            if at.elapsed() > STALL_LIMIT {
                let what = format!(
                    "the controller has answered nothing for {} s while hosts were announced \
                     ({learned} of {} switches were done)",
                    STALL_LIMIT.as_secs(),
                    self.plan.switches
                );
                return Err(self.fail(&what));
            }
            cancel.sleep(Duration::from_millis(2))?;
        }
        self.check("while hosts were announced")
    }

    /// Loads the controller for the warm-up and then for the window that is measured.
    ///
    /// # Errors
    /// Connections ended, or the run was interrupted.
    pub(crate) fn load(&mut self, cancel: &Cancel) -> Result<()> {
        let from = self.zero.elapsed() + self.plan.warm_up;
        let until = from + self.plan.window;
        let ns = |time: Duration| time.as_nanos() as u64;
        self.enter(Phase::Load { from_ns: ns(from), until_ns: ns(until) });
        cancel.sleep(until.saturating_sub(self.zero.elapsed()))?;
        self.enter(Phase::Drain);
        self.drain(cancel)?;
        self.check("under load")
    }

    /// Waits until all is answered, or nothing more is.
    fn drain(&self, cancel: &Cancel) -> Result<()> {
        let begun = Instant::now();
        let (mut seen, mut at) = (0, begun);
        let is_over = || {
            let answers = self.progress.answers.load(Ordering::Relaxed);
            if answers != seen {
                (seen, at) = (answers, Instant::now());
            }
            self.all(&self.progress.drained) || at.elapsed() > DRAIN_STALL
        };
        cancel.poll(DRAIN_LIMIT, is_over)?;
        Ok(())
    }

    /// Ends all connections; what was counted.
    ///
    /// # Errors
    /// Of the emulator itself.
    pub(crate) fn stop(mut self) -> Result<Tally> {
        self.join()
    }

    fn enter(&self, phase: Phase) {
        // Nobody listens when every thread has ended, which the next wait finds out.
        let _ = self.phase.send(phase);
    }

    fn all(&self, counter: &AtomicU32) -> bool {
        Progress::read(counter) + Progress::read(&self.progress.down) >= self.plan.switches
    }

    /// Whether all are connected.
    ///
    /// # Errors
    /// Connections ended, and why.
    pub(crate) fn check(&mut self, when: &str) -> Result<()> {
        let down = Progress::read(&self.progress.down);
        if down == 0 {
            return Ok(());
        }
        let what = format!("{down} of {} connections ended {when}", self.plan.switches);
        Err(self.fail(&what))
    }

    /// Ends the fleet; what went wrong, with the reasons that its connections have.
    fn fail(&mut self, what: &str) -> anyhow::Error {
        match self.join() {
            Ok(tally) => {
                let odd = tally.oddities;
                let mut text = what.to_owned();
                if !tally.ended.is_empty() {
                    text += &format!(": {}", tally.reasons());
                }
                if odd.malformed > 0 {
                    text += &format!("; {} messages did not parse", odd.malformed);
                }
                if odd.errors > 0 {
                    text += &format!("; the controller sent {} errors", odd.errors);
                }
                anyhow!("{}: {text}", self.plan.target)
            }
            Err(error) => error.context(what.to_owned()),
        }
    }

    fn join(&mut self) -> Result<Tally> {
        self.enter(Phase::Stop);
        let mut all = Tally::default();
        for thread in self.threads.drain(..) {
            let tally = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.add(&tally);
        }
        Ok(all)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.enter(Phase::Stop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::warn!("a thread of the emulator has panicked");
            }
        }
    }
}
