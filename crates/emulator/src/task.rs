//! The threads of the emulator: each has some of the switches, and a socket for each.
//!
//! A turn of a switch reads what has come, counts it, and sends what is due with one call, so that
//! the cost of the system calls is shared by many packets when there are many. Where single
//! packet-ins are timed, the thread never sleeps: it asks the kernel again and again, so that no
//! time of waking it is in a figure. It must never make a second attempt for a switch that the
//! controller has served.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use channel::{ConnectionSettings, DownReason, Endpoint, Event, Link, Side, Stream, Tls};
use netdev::sys::affinity;
use rustix::process::{Pid, setpriority_process};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::task::{JoinSet, LocalSet, yield_now};

use crate::switch::{EmulatedSwitch, EmulationPlan, Pace, Phase};
use crate::tally::{Progress, Tally};

/// Wait of a switch before it connects again.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);

/// The beginning of the names of these threads, by which their CPU time is found.
pub const THREAD_NAME: &str = "emulator";

/// The niceness of what is measured and of what measures.
const NICENESS: i32 = -20;

/// Plan of a thread.
#[derive(Debug)]
pub struct ThreadPlan {
    /// Address of the controller.
    pub target: Endpoint,
    /// Our side of TLS.
    pub tls: Option<Tls>,
    /// The numbers of its switches.
    pub switches: std::ops::Range<u32>,
    /// Switches of all threads.
    pub total: u32,
    /// Connections of this thread that may be in the making at the same time.
    pub at_once: u32,
    /// Longest time for a controller's hello.
    pub hello_limit: Duration,
    /// The cores that it may use; empty for all.
    pub cores: Vec<usize>,
    /// The beginning of all times.
    pub zero: Instant,
    /// Common phase of all switches.
    pub phase: watch::Receiver<Phase>,
    /// Their progress.
    pub progress: Arc<Progress>,
}

/// Common state of the tasks of a thread.
struct Shared {
    plan: ThreadPlan,
    common: Rc<EmulationPlan>,
    tally: RefCell<Tally>,
    at_once: Semaphore,
    /// One of each switch.
    slots: Vec<Slot>,
}

/// Packet-ins that are due and not sent yet, and the bell that is rung for them.
#[derive(Default)]
struct Slot {
    due: RefCell<VecDeque<u64>>,
    bell: Notify,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.plan.zero.elapsed().as_nanos() as u64
    }

    fn instant(&self, at_ns: u64) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.plan.zero + Duration::from_nanos(at_ns))
    }

    fn progress(&self) -> &Progress {
        &self.plan.progress
    }
}

/// Gives a thread, the calling one for `None`, its core before other programs, where that is
/// allowed: who may not ask for it measures with what there is.
pub fn prefer(tid: Option<u32>) {
    let thread = tid.and_then(|tid| Pid::from_raw(i32::try_from(tid).ok()?));
    if tid.is_some() == thread.is_some()
        && let Err(error) = setpriority_process(thread, NICENESS)
    {
        tracing::debug!(%error, "no niceness below zero");
    }
}

/// Runs the switches of a thread until they are told to go; what was counted.
///
/// # Errors
/// No runtime, or no such cores.
pub fn run(plan: ThreadPlan, common: EmulationPlan) -> Result<Tally> {
    affinity::allow(None, &plan.cores).context("choosing cores for the emulator")?;
    prefer(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the emulator")?;
    let slots = plan.switches.clone().map(|_| Slot::default()).collect();
    let at_once = Semaphore::new(plan.at_once.max(1) as usize);
    let shared =
        Shared { common: Rc::new(common), tally: RefCell::default(), at_once, slots, plan };
    let shared = Rc::new(shared);
    LocalSet::new().block_on(&runtime, async {
        let mut tasks = JoinSet::new();
        for index in 0..shared.slots.len() {
            tasks.spawn_local(run_switch(Rc::clone(&shared), index));
        }
        tasks.spawn_local(keep_pace(Rc::clone(&shared)));
        while let Some(ended) = tasks.join_next().await {
            ended.context("a switch of the emulator")?;
        }
        anyhow::Ok(())
    })?;
    let tally = shared.tally.take();
    Ok(tally)
}

/// Whether the phase is this one; a fleet that is gone stops all.
fn is_stopped(phase: &mut watch::Receiver<Phase>) -> bool {
    *phase.borrow_and_update() == Phase::Stop || phase.has_changed().is_err()
}

/// Rings the bells of switches whose packet-ins are due, and keeps the thread from sleeping.
async fn keep_pace(shared: Rc<Shared>) {
    let mut phase = shared.plan.phase.clone();
    let spins = match shared.common.pace {
        Pace::Window(window) => window == 1,
        Pace::Rate(_) => true,
    };
    loop {
        if is_stopped(&mut phase) {
            return;
        }
        let now = *phase.borrow_and_update();
        match now {
            Phase::Load { until_ns, .. } if spins => {
                let mut schedule = Schedule::new(&shared);
                while *phase.borrow() == now && shared.now_ns() < until_ns {
                    schedule.ring(&shared, until_ns);
                    yield_now().await;
                }
                if *phase.borrow() != now {
                    continue;
                }
            }
            Phase::Greet | Phase::Learn | Phase::Load { .. } | Phase::Drain | Phase::Stop => {}
        }
        if phase.changed().await.is_err() {
            return;
        }
    }
}

/// When the next packet-in of a thread is due, and at which switch.
struct Schedule {
    begun_ns: u64,
    /// Nanoseconds between two; `None` where answers decide.
    gap_ns: Option<f64>,
    sent: u64,
}

impl Schedule {
    fn new(shared: &Shared) -> Self {
        let share = shared.slots.len() as f64 / f64::from(shared.plan.total.max(1));
        let gap_ns = match shared.common.pace {
            Pace::Window(_) => None,
            Pace::Rate(rate) => Some(1e9 / (rate * share).max(1e-9)),
        };
        Self { begun_ns: shared.now_ns(), gap_ns, sent: 0 }
    }

    fn ring(&mut self, shared: &Shared, until_ns: u64) {
        let Some(gap_ns) = self.gap_ns else { return };
        let now_ns = shared.now_ns();
        loop {
            let due_ns = self.begun_ns + (self.sent as f64 * gap_ns) as u64;
            if due_ns > now_ns || due_ns >= until_ns {
                return;
            }
            let slot = &shared.slots[(self.sent % shared.slots.len() as u64) as usize];
            slot.due.borrow_mut().push_back(due_ns);
            slot.bell.notify_one();
            self.sent += 1;
        }
    }
}

/// Connects a switch, again if need be, and runs it.
async fn run_switch(shared: Rc<Shared>, index: usize) {
    let mut phase = shared.plan.phase.clone();
    let began_ns = shared.now_ns();
    for attempt in 0_u64.. {
        if *phase.borrow_and_update() != Phase::Greet {
            break;
        }
        if attempt > 0 {
            shared.tally.borrow_mut().oddities.reconnected += 1;
        }
        let was_served = tokio::select! {
            biased;
            () = stopped(phase.clone()) => break,
            served = attempt_once(&shared, index, began_ns) => served,
        };
        if was_served {
            break;
        }
        // A switch that goes meanwhile is reported at the next look.
        let _ = tokio::time::timeout(RECONNECT_AFTER, phase.changed()).await;
    }
    Progress::count(&shared.progress().down);
}

/// Done when all switches are told to go before this one is connected.
async fn stopped(mut phase: watch::Receiver<Phase>) {
    while !is_stopped(&mut phase) {
        if phase.changed().await.is_err() {
            return;
        }
    }
    // A switch that is connected ends by itself, in order.
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// One connection from its beginning to its end; whether the controller served it.
async fn attempt_once(shared: &Rc<Shared>, index: usize, began_ns: u64) -> bool {
    // Nobody closes the semaphore.
    let permit = shared.at_once.acquire().await.ok();
    match Stream::connect(&shared.plan.target, shared.plan.tls.as_ref()).await {
        Ok(stream) => {
            Progress::count(&shared.progress().connected);
            let mut task = SwitchTask::new(shared, index, began_ns, stream);
            let reason = task.run(permit).await;
            let was_stopped = is_stopped(&mut shared.plan.phase.clone());
            if let Some(reason) = reason.filter(|_| !was_stopped) {
                shared.tally.borrow_mut().note_end(reason.to_string());
            }
            task.finish().await
        }
        Err(error) => {
            Progress::count(&shared.progress().refused);
            shared.tally.borrow_mut().note_end(error.to_string());
            false
        }
    }
}

/// A switch with its connection.
struct SwitchTask<'a> {
    shared: &'a Shared,
    slot: &'a Slot,
    link: Link,
    switch: EmulatedSwitch,
    phase: watch::Receiver<Phase>,
}

impl<'a> SwitchTask<'a> {
    fn new(shared: &'a Shared, index: usize, began_ns: u64, stream: Stream) -> Self {
        let mut settings =
            ConnectionSettings::new(Side::Switch).with_versions(&[shared.common.version]);
        // The controller decides how often it is asked whether it lives: a load of ours would be
        // in its figures.
        settings.probe_after = None;
        settings.hello_deadline = shared.plan.hello_limit;
        let number = shared.plan.switches.start + index as u32;
        let switch = EmulatedSwitch::new(Rc::clone(&shared.common), number, began_ns);
        Self {
            shared,
            slot: &shared.slots[index],
            link: Link::new(stream, settings),
            switch,
            phase: shared.plan.phase.clone(),
        }
    }

    /// Runs until the connection is over or all are told to go; why it is over. The permit of a
    /// connection in the making goes when the hello exchange is done.
    async fn run(&mut self, mut permit: Option<SemaphorePermit<'_>>) -> Option<DownReason> {
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        let mut armed_ns: Option<u64> = None;
        self.phase.mark_changed();
        loop {
            // A timer that is early asks again when it fires, which is cheaper than to move it
            // with every answer.
            if let Some(wakes_ns) = self.switch.wakes_at_ns()
                && armed_ns.is_none_or(|armed_ns| wakes_ns < armed_ns)
            {
                armed_ns = Some(wakes_ns);
                timer.as_mut().reset(self.shared.instant(wakes_ns));
            }
            tokio::select! {
                biased;
                changed = self.phase.changed() => {
                    let phase = *self.phase.borrow_and_update();
                    if changed.is_err() || phase == Phase::Stop {
                        return None;
                    }
                    self.switch.enter(phase, self.shared.now_ns());
                }
                () = self.slot.bell.notified() => {}
                () = self.link.turn() => {}
                () = &mut timer, if armed_ns.is_some() => armed_ns = None,
            }
            if let Some(reason) = self.turn() {
                return Some(reason);
            }
            if permit.is_some() && self.link.connection().version().is_some() {
                permit = None;
            }
        }
    }

    /// Takes what has come and sends what is due; why the connection is over, if it is.
    fn turn(&mut self) -> Option<DownReason> {
        let now_ns = self.shared.now_ns();
        let mut tally = self.shared.tally.borrow_mut();
        let (tally, progress) = (&mut *tally, self.shared.progress());
        let connection = self.link.connection();
        let switch = &mut self.switch;
        let mut answers = 0;
        let ended = loop {
            let mut is_taken = false;
            let event = connection.poll_event_or_take(|header, bytes| {
                is_taken = switch.take(header, bytes, now_ns, tally, progress);
                answers += u64::from(is_taken);
                is_taken
            });
            match event {
                Some(Event::Down(reason)) => break Some(reason),
                Some(event) => {
                    answers += 1;
                    switch.handle(event, connection, now_ns, tally, progress);
                }
                None if is_taken => {}
                None => break None,
            }
        };
        if answers > 0 {
            progress.answers.fetch_add(answers, Ordering::Relaxed);
        }
        if ended.is_none() {
            let mut due = self.slot.due.borrow_mut();
            switch.fill(connection, &mut due, now_ns, tally, progress);
        }
        ended
    }

    /// Closes the connection; whether the controller served the switch.
    async fn finish(mut self) -> bool {
        let now_ns = self.shared.now_ns();
        self.switch.finish(now_ns, &mut self.shared.tally.borrow_mut());
        self.link.finish().await;
        self.switch.is_served()
    }
}
