//! The bridge: the state of one datapath on the agent's side, and the ways to the workers that
//! forward by it.
//!
//! Every command is carried out here, on the agent's thread, by [`Control`]; what it changes goes
//! as ops to every worker, in the same order. So nothing that a controller asks, however long it
//! takes, holds up a packet, and a worker never waits. What takes long is done in pieces, with the
//! rest of the agent running in between.

mod apply;
mod lists;
mod marks;
mod ports;
mod queues;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::Removed;
use datapath::fast::{Control, Op};
use openflow::message::{PacketOut, SwitchDesc};
use openflow::{DatapathId, Error};
use tokio::sync::{Notify, oneshot};

pub(crate) use self::apply::Answer;
pub(crate) use self::lists::{FlowList, Listed};
pub(crate) use self::marks::Awaited;
use self::marks::Marks;
pub(crate) use self::ports::PortFacts;
pub(crate) use self::queues::QueueFacts;
use crate::counters::Counters;
use crate::worker::{Branch, Clock, Command, Inbox, Mark, Request, WorkerState};

/// Shortest time between two flushes that are asked for only to let removed entries go: a flush
/// looks at every cached count.
const REAP_EVERY: Duration = Duration::from_millis(20);

/// Entries that expire before something else has its turn.
const EXPIRY_PIECE: usize = 256;

/// Who the switch is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its datapath id.
    pub(crate) dpid: DatapathId,
    /// Its description.
    pub(crate) desc: SwitchDesc,
}

/// One datapath.
pub(crate) struct Bridge {
    pub(crate) identity: Identity,
    pub(crate) clock: Clock,
    counters: Arc<Counters>,
    /// The tables; `None` on a wire, which has none.
    control: Option<RefCell<Control>>,
    links: Vec<Link>,
    marks: RefCell<Marks>,
    ports: RefCell<Vec<PortFacts>>,
    queues: Vec<QueueFacts>,
    ops: RefCell<Vec<Op>>,
    /// How far the flush for removed entries is.
    reaping: Cell<Reaping>,
    reaped_at: Cell<Option<Instant>>,
    /// Rung when an entry with a timeout may have come, or an entry waits to be let go.
    pub(crate) upkeep: Notify,
}

/// Progress of the counter flush that lets removed entries go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaping {
    /// None is needed, or it is too early for another one.
    No,
    /// Its op is made.
    Asked,
    /// The workers were told to tell when it is done.
    Awaited,
}

/// The way to one worker.
struct Link {
    inbox: Arc<Inbox>,
    staged: RefCell<Vec<Command>>,
}

impl Bridge {
    /// A bridge over these workers and ports. The ports are told to the workers at once.
    pub(crate) fn new(
        identity: Identity,
        clock: Clock,
        control: Option<Control>,
        inboxes: Vec<Arc<Inbox>>,
        ports: Vec<PortFacts>,
        counters: Arc<Counters>,
    ) -> Self {
        let link = |inbox| Link { inbox, staged: RefCell::default() };
        let bridge = Self {
            identity,
            clock,
            counters,
            control: control.map(RefCell::new),
            links: inboxes.into_iter().map(link).collect(),
            marks: RefCell::default(),
            ports: RefCell::new(ports),
            queues: Vec::new(),
            ops: RefCell::default(),
            reaping: Cell::new(Reaping::No),
            reaped_at: Cell::new(None),
            upkeep: Notify::new(),
        };
        bridge.announce_ports();
        let removed = bridge.flush();
        debug_assert!(removed.is_empty(), "nothing was there to be removed");
        bridge
    }

    /// Runs `inner` on the tables; `None` on a wire. Short, as nothing else of the agent runs
    /// meanwhile.
    pub(crate) fn with_control<T>(&self, inner: impl FnOnce(&mut Control) -> T) -> Option<T> {
        self.control.as_ref().map(|control| inner(&mut control.borrow_mut()))
    }

    /// How many commands the slowest worker has before it.
    pub(crate) fn pending(&self) -> usize {
        self.links.iter().map(|link| link.inbox.pending()).max().unwrap_or(0)
    }

    /// Sends what commands have changed to the workers. Returns entries that are gone for good,
    /// with their last counts.
    #[must_use]
    pub(crate) fn flush(&self) -> Vec<Removed> {
        let removed = self.reap();
        self.stage_ops();
        if self.reaping.get() == Reaping::Asked {
            self.reaping.set(Reaping::Awaited);
            let mark = self.marks.borrow_mut().add(self.links.len(), Awaited::Reaped);
            self.stage_for_all(|| Command::FlushCounters(mark));
        }
        for link in &self.links {
            link.inbox.send(&mut link.staged.borrow_mut());
        }
        removed
    }

    /// Moves removed entries on: those whose last counts are there are returned; for others a flush
    /// is asked for, but not too often.
    fn reap(&self) -> Vec<Removed> {
        if self.reaping.get() != Reaping::No
            || self.with_control(|control| control.is_reaped()) != Some(false)
        {
            return Vec::new();
        }
        if self.reaps_in() > Duration::ZERO {
            self.upkeep.notify_one();
            return Vec::new();
        }
        let reap = |control: &mut Control| (control.reap(), control.is_reaped());
        let (removed, is_reaped) = self.with_control(reap).unwrap_or_default();
        if !is_reaped {
            self.reaping.set(Reaping::Asked);
        }
        removed
    }

    /// How long until removed entries may be moved on again.
    fn reaps_in(&self) -> Duration {
        let since = self.reaped_at.get().map(|at| at.elapsed());
        since.map_or(Duration::ZERO, |since| REAP_EVERY.saturating_sub(since))
    }

    /// The counter flush is done that was asked for because of removed entries.
    #[must_use]
    pub(crate) fn reaped(&self) -> Vec<Removed> {
        self.reaping.set(Reaping::No);
        let removed = self.flush();
        self.reaped_at.set(Some(Instant::now()));
        removed
    }

    /// How long until [`Bridge::expire`] or [`Bridge::flush`] has something to do by itself.
    pub(crate) fn upkeep_in(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.with_control(|control| {
            let expiry = control.next_expiry().map(|at| Duration::from_nanos(at.since(now)));
            let waits = !control.is_reaped() && self.reaping.get() == Reaping::No;
            let reap = waits.then(|| self.reaps_in());
            expiry.into_iter().chain(reap).min()
        })?
    }

    /// Removes the entries whose timeout has passed (clause 5.5).
    pub(crate) async fn expire(&self) {
        let now = self.clock.now();
        let is_due = |control: &mut Control| control.next_expiry().is_some_and(|at| at <= now);
        if self.with_control(is_due) != Some(true) {
            return;
        }
        // An entry that packets have met since is found alive then.
        self.flush_counters().await;
        let expire = || self.with_control(|control| control.expire(now, EXPIRY_PIECE).removed);
        while expire() == Some(EXPIRY_PIECE) {
            tokio::task::yield_now().await;
        }
    }

    fn stage_for_all(&self, command: impl Fn() -> Command) {
        for link in &self.links {
            link.staged.borrow_mut().push(command());
        }
    }

    /// Stages a packet-out. One worker carries out all of them, so that they stay in order.
    fn packet_out(&self, request: Request, packet_out: PacketOut) {
        if let Some(link) = self.links.first() {
            self.stage_ops();
            link.staged.borrow_mut().push(Command::PacketOut(Box::new((request, packet_out))));
        }
    }

    /// Puts the ops of the commands so far in front of what comes next.
    fn stage_ops(&self) {
        let mut ops = self.ops.borrow_mut();
        self.with_control(|control| control.take_ops(&mut ops));
        if let Some((last, others)) = self.links.split_last() {
            for link in others {
                link.staged.borrow_mut().extend(ops.iter().cloned().map(Command::Op));
            }
            last.staged.borrow_mut().extend(ops.drain(..).map(Command::Op));
        }
    }

    /// Has every worker tell when it has done all that came before; what was awaited is returned by
    /// [`Bridge::reached`] then.
    fn reach(&self, awaited: Awaited) {
        self.stage_ops();
        let mark = self.marks.borrow_mut().add(self.links.len(), awaited);
        self.stage_for_all(|| Command::Reach(mark));
    }

    /// A worker has reached a mark: what was awaited, when it is the last one.
    pub(crate) fn reached(&self, mark: Mark) -> Option<Awaited> {
        self.marks.borrow_mut().reached(mark)
    }

    /// Waits until every worker has done all that came before.
    pub(crate) async fn barrier(&self) {
        let (done, is_done) = oneshot::channel();
        self.reach(Awaited::Told(done));
        for link in &self.links {
            link.inbox.send(&mut link.staged.borrow_mut());
        }
        // Where a worker has ended the switch ends.
        let _ = is_done.await;
    }

    /// Waits until all counts of now are in the counters that control reads.
    pub(crate) async fn flush_counters(&self) {
        if self.with_control(Control::flush).is_none() {
            return;
        }
        let (done, is_done) = oneshot::channel();
        self.stage_ops();
        let mark = self.marks.borrow_mut().add(self.links.len(), Awaited::Told(done));
        self.stage_for_all(|| Command::FlushCounters(mark));
        for link in &self.links {
            link.inbox.send(&mut link.staged.borrow_mut());
        }
        // Where a worker has ended the switch ends, and nobody reads these counts.
        let _ = is_done.await;
    }

    /// Asks every worker something. `None` when one has ended.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&mut Branch) -> T + Send + Clone + 'static,
    ) -> Option<Vec<T>> {
        let mut answers = Vec::new();
        for link in &self.links {
            let (answer, answered) = oneshot::channel();
            let question = question.clone();
            let ask = Command::Ask(Box::new(move |worker: &mut Branch| {
                // Nobody waits any more where sending fails, and then nothing is lost.
                let _ = answer.send(question(worker));
            }));
            link.inbox.send(&mut vec![ask]);
            answers.push(answered);
        }
        let mut all = Vec::new();
        for answered in answers {
            all.push(answered.await.ok()?);
        }
        Some(all)
    }

    /// How the workers are doing. `None` when one has ended.
    pub(crate) async fn worker_states(&self) -> Option<Vec<WorkerState>> {
        self.ask(|worker| worker.state()).await
    }

    /// Ends the workers.
    pub(crate) fn stop(&self) {
        for link in &self.links {
            link.inbox.send(&mut vec![Command::Stop]);
        }
    }

    /// The error for what needs tables, on a wire.
    fn no_tables() -> Error {
        Error::BadRequestBadType
    }
}
