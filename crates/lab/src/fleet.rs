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
use emulator::{
    AnswerLayout, Buffering, EmulationPlan, Pace, PacketIns, Phase, Progress, THREAD_NAME, Tally,
    ThreadPlan,
};
use openflow::Version;
use programs::cancel::Cancel;
use tokio::sync::watch;

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
    /// The part that all threads share.
    fn common(&self) -> Result<EmulationPlan> {
        let switches = self.switches.max(1);
        let room = match self.pace {
            Pace::Window(window) => window.saturating_mul(4).max(64),
            Pace::Rate(_) => (RATE_ROOM / switches).max(256),
        };
        let learn_window = (LEARN_OUTSTANDING / switches).clamp(1, 512);
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
    pub(crate) fn await_served(&mut self, cancel: &Cancel) -> Result<f64> {
        let (all, read, progress) = (self.plan.switches, Progress::read, &self.progress);
        let is_done = cancel.poll(self.plan.ready_limit, || {
            let is_absent = read(&progress.connected) == 0
                && read(&progress.refused) > 0
                && self.zero.elapsed() > ABSENT_AFTER;
            self.have_all(&progress.served)
                || is_absent
                || self.threads.iter().all(JoinHandle::is_finished)
        })?;
        let seconds = self.zero.elapsed().as_secs_f64();
        let served = read(&progress.served);
        if is_done && served >= all && read(&progress.down) == 0 {
            return Ok(seconds);
        }
        let what = format!(
            "{} of {all} switches connected, {} told their features, {served} had an answer to a \
             packet-in, within {seconds:.1} s",
            read(&progress.connected).min(all),
            read(&progress.described).min(all),
        );
        Err(self.fail(&what))
    }

    /// Lets every switch announce its hosts; an error where the controller stops to answer.
    pub(crate) fn learn(&mut self, cancel: &Cancel) -> Result<()> {
        self.enter(Phase::Learn);
        if !self.await_all(&self.progress.learned, STALL_LIMIT, Duration::MAX, cancel)? {
            let what = format!(
                "the controller has answered nothing for {} s while hosts were announced ({} of \
                 {} switches were done)",
                STALL_LIMIT.as_secs(),
                Progress::read(&self.progress.learned),
                self.plan.switches
            );
            return Err(self.fail(&what));
        }
        self.check("while hosts were announced")
    }

    /// Loads the controller for the warm-up and then for the window that is measured.
    pub(crate) fn load(&mut self, cancel: &Cancel) -> Result<()> {
        let from = self.zero.elapsed() + self.plan.warm_up;
        let until = from + self.plan.window;
        let ns = |time: Duration| time.as_nanos() as u64;
        self.enter(Phase::Load { from_ns: ns(from), until_ns: ns(until) });
        cancel.sleep(until.saturating_sub(self.zero.elapsed()))?;
        self.enter(Phase::Drain);
        self.await_all(&self.progress.drained, DRAIN_STALL, DRAIN_LIMIT, cancel)?;
        self.check("under load")
    }

    /// Waits until all switches that are there have done a thing; false where nothing was answered
    /// for the time `stall`, or within `limit`.
    fn await_all(
        &self,
        done: &AtomicU32,
        stall: Duration,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<bool> {
        let (mut seen, mut at) = (0, Instant::now());
        cancel.poll(limit, || {
            let answers = self.progress.answers.load(Ordering::Relaxed);
            if answers != seen {
                (seen, at) = (answers, Instant::now());
            }
            self.have_all(done) || at.elapsed() > stall
        })?;
        Ok(self.have_all(done))
    }

    fn enter(&self, phase: Phase) {
        // Nobody listens when every thread has ended, which the next wait finds out.
        let _ = self.phase.send(phase);
    }

    fn have_all(&self, done: &AtomicU32) -> bool {
        Progress::read(done) + Progress::read(&self.progress.down) >= self.plan.switches
    }

    /// Fails if connections have ended, with why.
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
        match self.stop() {
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

    /// Ends all connections; what was counted.
    pub(crate) fn stop(&mut self) -> Result<Tally> {
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
