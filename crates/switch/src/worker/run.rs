//! The worker's loop.
//!
//! A round serves what there is to do and nothing else: branches that somebody has called, ports
//! that had frames lately, queues that hold frames. When there is nothing to do the worker sleeps
//! on one watch over all its ports, whatever their number.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::Nanos;
use netdev::LinkMonitor;
use netdev::sys::watch::Watch;
use packet::Batch;
use tokio::sync::Notify;

use super::awake::{Awake, Roster};
use super::branch::COMMAND_BATCH;
use super::figures::Seat;
use super::rest::{Rest, Sleep};
use super::upkeep::Upkeep;
use super::{Bell, Branch, BranchParts, Clock};

/// How often a worker that is busy asks which of the sleeping ports have frames. Asking costs a
/// system call, some two hundred nanoseconds; a frame that wakes a port waits no longer than this.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// How often it does so when no port sleeps: only the kernel's news of devices are missed then.
const LOOK_SELDOM: Duration = Duration::from_millis(100);

/// The names of what is watched beside ports, whose names are made of their places.
const BELL: u64 = u64::MAX;
const MONITOR: u64 = u64::MAX - 1;

/// The name of a port on the watch.
pub(super) fn name_of(place: usize, index: usize) -> u64 {
    (place as u64) << 32 | index as u64
}

/// What a worker is made of.
pub(crate) struct Parts {
    /// Who it is.
    pub(crate) seat: Seat,
    /// The time of the whole switch.
    pub(crate) clock: Clock,
    /// By which it is called.
    pub(crate) bell: Arc<Bell>,
    /// What it does for each bridge, in the order of the places that their inboxes name.
    pub(crate) branches: Vec<BranchParts>,
    /// Tells of the devices of the namespace in which the ports were opened.
    pub(crate) monitor: Option<LinkMonitor>,
    /// Rung when it has ended, however it ended.
    pub(crate) ended: Arc<Notify>,
}

/// A forwarding thread: see the module.
pub(crate) struct Worker {
    seat: Arc<Seat>,
    clock: Clock,
    bell: Arc<Bell>,
    pub(super) branches: Vec<Branch>,
    pub(super) watch: Watch,
    pub(super) roster: Roster,
    pub(super) upkeep: Upkeep,
    /// Branches with commands to carry out or a flush to go on with.
    attended: VecDeque<usize>,
    /// Branches of which queues hold frames.
    held: Vec<usize>,
    /// Branches with a port that needs more than to be asked for frames.
    pub(super) troubled: Vec<usize>,
    /// Those who have called, while they are looked at.
    called: Vec<usize>,
    /// What is ready, while it is looked at.
    ready: Vec<u64>,
    /// When it was last asked what is ready.
    looked_at: Instant,
    rest: Rest,
    /// Buffers, lent to the branches in turns.
    buffers: Batch,
    /// A branch was told to end.
    stops: bool,
    ended: Arc<Notify>,
}

impl Worker {
    /// # Errors
    /// When no descriptor is left to sleep on.
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let seat = Arc::new(parts.seat);
        let branch = |parts| Branch::new(parts, Arc::clone(&seat));
        let branches: Vec<Branch> = parts.branches.into_iter().map(branch).collect();
        let watch = Watch::new()?;
        watch.add(parts.bell.fd(), BELL)?;
        if let Some(monitor) = &parts.monitor {
            watch.add(monitor.fd(), MONITOR)?;
        }
        let ports = branches.iter().map(|branch| branch.ports.slots().len()).sum();
        let now = Instant::now();
        let mut worker = Self {
            rest: Rest::new(seat.poll),
            seat,
            clock: parts.clock,
            bell: parts.bell,
            upkeep: Upkeep::new(&branches, parts.monitor, now),
            branches,
            watch,
            roster: Roster::new(ports),
            attended: VecDeque::new(),
            held: Vec::new(),
            troubled: Vec::new(),
            called: Vec::new(),
            ready: Vec::new(),
            looked_at: now,
            buffers: Batch::default(),
            stops: false,
            ended: parts.ended,
        };
        for place in 0..worker.branches.len() {
            for index in 0..worker.branches.get(place).map_or(0, |b| b.ports.slots().len()) {
                worker.wake(place, index);
            }
        }
        Ok(worker)
    }

    /// A port is asked for frames from now on, and watched.
    pub(super) fn wake(&mut self, place: usize, index: usize) {
        let Some(branch) = self.branches.get_mut(place) else { return };
        let Some(slot) = branch.ports.slots_mut().get_mut(index) else { return };
        slot.watch(&self.watch, name_of(place, index));
        if !slot.is_awake {
            slot.is_awake = true;
            self.roster.add(place, index);
        }
    }

    /// Forwards until it is told to stop, then closes the ports.
    pub(crate) fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.ended));
        let begun = Instant::now();
        let mut before = begun;
        while !self.stops {
            let now = Instant::now();
            let time = self.clock.at(now);
            let mut worked = self.answer(time);
            worked |= self.attend(time);
            worked |= self.forward(now, time);
            worked |= self.tend(now);
            self.seat.figures.rounds.add(1);
            if worked {
                self.rest.worked();
                let often = if self.roster.lets_sleep() { LOOK_EVERY } else { LOOK_SELDOM };
                if now.duration_since(self.looked_at) >= often {
                    self.look(now, Some(Duration::ZERO));
                }
            } else {
                self.seat.figures.idle_ns.add(nanos(now.duration_since(before)));
                let all_wake = self.all_wake();
                match self.rest.idle(all_wake) {
                    Sleep::No => self.look_while_idle(now),
                    Sleep::UntilWoken => self.sleep(now, None),
                    Sleep::Nap(nap) => self.sleep(now, Some(nap)),
                }
            }
            before = now;
            self.seat.figures.lived_ns.set(nanos(now.duration_since(begun)));
        }
    }

    /// Looks who has called; whether another worker has handed over frames.
    fn answer(&mut self, time: Nanos) -> bool {
        self.bell.take(&mut self.called);
        let mut called = std::mem::take(&mut self.called);
        let mut worked = false;
        for place in called.drain(..) {
            let Some(branch) = self.branches.get_mut(place) else { continue };
            worked |= branch.called(&mut self.buffers, time);
            if !branch.is_attended {
                branch.is_attended = true;
                self.attended.push_back(place);
            }
            self.note(place);
        }
        self.called = called;
        worked
    }

    /// Has branches carry out commands, up to a batch in all, and queues let frames go; whether
    /// there were any.
    fn attend(&mut self, time: Nanos) -> bool {
        let mut worked = false;
        let mut held = std::mem::take(&mut self.held);
        for place in held.drain(..) {
            let Some(branch) = self.branches.get_mut(place) else { continue };
            branch.is_held = false;
            worked |= branch.release(&mut self.buffers, time);
            self.note(place);
        }
        if self.held.is_empty() {
            // Keeps the memory.
            self.held = held;
        }
        let mut done = 0;
        for _ in 0..self.attended.len() {
            if done >= COMMAND_BATCH {
                break;
            }
            let Some(place) = self.attended.pop_front() else { break };
            let Some(branch) = self.branches.get_mut(place) else { continue };
            done += branch.attend(&mut self.buffers, time);
            branch.hand_up();
            branch.is_attended = branch.waits();
            self.stops |= branch.stops;
            if branch.is_attended {
                self.attended.push_back(place);
            }
            self.note(place);
        }
        worked || done > 0
    }

    /// Takes a batch from every port that is asked, and forwards it; whether there was any frame.
    fn forward(&mut self, now: Instant, time: Nanos) -> bool {
        let mut frames = 0;
        for at in 0..self.roster.ports().len() {
            let Some(&Awake { place, index, .. }) = self.roster.ports().get(at) else { break };
            let Some(branch) = self.branches.get_mut(place) else { continue };
            let count = branch.forward(index, &mut self.buffers, (now, time));
            self.roster.gave(at, count);
            frames += count;
            self.note(place);
        }
        // Packet-ins of all ports of a bridge go up together.
        for Awake { place, .. } in self.roster.ports() {
            if let Some(branch) = self.branches.get_mut(*place) {
                branch.hand_up();
            }
        }
        self.lay_down(false);
        frames > 0
    }

    /// Puts a branch that was served on the lists that it belongs to now.
    pub(super) fn note(&mut self, place: usize) {
        let Some(branch) = self.branches.get_mut(place) else { return };
        if branch.ports.is_holding() && !branch.is_held {
            branch.is_held = true;
            self.held.push(place);
        }
        if branch.ports.is_alarmed() {
            self.upkeep.is_alarmed = true;
            if !branch.is_troubled {
                branch.is_troubled = true;
                self.troubled.push(place);
            }
        }
    }

    /// Lets ports sleep that have been silent for long; or all of them, before the worker does.
    fn lay_down(&mut self, all: bool) {
        let (branches, watch) = (&mut self.branches, &self.watch);
        self.roster.lay_down(all, |place, index| {
            let slots = branches.get_mut(place).map(|branch| branch.ports.slots_mut());
            let Some(slot) = slots.and_then(|slots| slots.get_mut(index)) else { return true };
            let may = slot.watch(watch, name_of(place, index));
            slot.is_awake = !may;
            may
        });
    }

    /// Whether no port needs to be asked again and again.
    fn all_wake(&mut self) -> bool {
        let (branches, watch) = (&mut self.branches, &self.watch);
        self.roster.ports().iter().all(|port| {
            let slots = branches.get_mut(port.place).map(|branch| branch.ports.slots_mut());
            let slot = slots.and_then(|slots| slots.get_mut(port.index));
            slot.is_none_or(|slot| {
                slot.is_watched || slot.watch(watch, name_of(port.place, port.index))
            })
        })
    }

    /// A worker that never sleeps looks at what is ready all the same.
    fn look_while_idle(&mut self, now: Instant) {
        if now.duration_since(self.looked_at) >= LOOK_SELDOM
            || (self.roster.lets_sleep() && now.duration_since(self.looked_at) >= LOOK_EVERY)
        {
            self.look(now, Some(Duration::ZERO));
        }
    }

    /// Sleeps until a port has something, somebody calls, or something is due, and no longer than
    /// `most`.
    fn sleep(&mut self, now: Instant, most: Option<Duration>) {
        if !self.attended.is_empty() {
            return;
        }
        let held = self.held.iter().filter_map(|place| self.branches.get(*place));
        let release = held.filter_map(|branch| branch.ports.next_release()).min();
        let release = release.map(|at| self.clock.moment(at));
        let due = self.upkeep.next_due().into_iter().chain(release).min();
        let due = due.map(|due| due.saturating_duration_since(now));
        let timeout = due.into_iter().chain(most).min();
        if timeout.is_some_and(|timeout| timeout.is_zero()) || !self.bell.may_sleep() {
            return;
        }
        self.lay_down(true);
        let begun = Instant::now();
        self.look(begun, timeout);
        self.bell.awake();
        self.seat.figures.sleeps.add(1);
        self.seat.figures.asleep_ns.add(nanos(begun.elapsed()));
    }

    /// Waits so long for what is ready, and notes it.
    fn look(&mut self, now: Instant, timeout: Option<Duration>) {
        self.looked_at = now;
        let mut ready = std::mem::take(&mut self.ready);
        if let Err(error) = self.watch.wait(timeout, &mut ready) {
            tracing::warn!(%error, "sleeping on the ports failed");
            std::thread::sleep(Duration::from_millis(10));
        }
        for name in ready.drain(..) {
            match name {
                BELL => self.bell.heard(),
                MONITOR => self.upkeep.has_news = true,
                // Both halves were places.
                port => self.wake((port >> 32) as usize, port as u32 as usize),
            }
        }
        self.ready = ready;
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the agent that the worker has ended, however it ended.
struct Ended(Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
