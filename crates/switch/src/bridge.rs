//! The bridge: the state of one datapath on the agent's side, and the links to its shards.
//!
//! Every command is carried out here, on the agent's thread, by [`Control`]; its changes go as ops
//! to every shard, in the same order. So no request delays a packet, however long it takes, and a
//! worker never waits. Long commands are done in pieces, between which the agent serves others.

mod apply;
mod barriers;
mod bundle;
mod command;
mod journal;
mod lists;
mod port_changes;
mod ports;
mod queues;

use std::cell::{Cell, Ref, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::Removed;
use datapath::fast::{Control, Op};
use openflow::message::SwitchDesc;
use openflow::{DatapathId, Error};
use tokio::sync::{Mutex, Notify, oneshot};

pub(crate) use self::apply::{Applied, Task};
pub(crate) use self::barriers::BarrierWaiter;
use self::barriers::{BarrierProgress, Barriers};
pub(crate) use self::bundle::{BundleCommit, RefusedMessage, is_bundled};
pub(crate) use self::command::BridgeCommand;
pub(crate) use self::lists::{FlowDump, StatisticsReply};
pub(crate) use self::port_changes::{PortView, WorkerGone};
pub(crate) use self::ports::BridgePort;
pub(crate) use self::queues::BridgeQueues;
use crate::counters::Counters;
use crate::journal::Journal;
use crate::request::RequestContext;
use crate::worker::{
    BarrierId, Clock, CommandQueue, GivenPacket, PortMap, Shard, ShardCommand, ShardSample,
    WorkerState,
};

/// Shortest time between two flushes that are asked for only to let removed entries go: a flush
/// looks at every cached count.
const REAP_EVERY: Duration = Duration::from_millis(20);

/// Entries that expire before something else has its turn.
const EXPIRY_PIECE: usize = 256;

/// The identity of a datapath.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its datapath id.
    pub(crate) dpid: DatapathId,
    /// Its description.
    pub(crate) desc: SwitchDesc,
}

/// One datapath.
pub(crate) struct Bridge {
    identity: RefCell<Identity>,
    pub(crate) clock: Clock,
    counters: Arc<Counters>,
    /// The tables; `None` on a wire, which has none, and none in it when the bridge is gone.
    control: Option<RefCell<Option<Control>>>,
    links: Vec<ShardLink>,
    barriers: RefCell<Barriers>,
    packet_outs: Cell<PacketOuts>,
    ports: RefCell<Vec<BridgePort>>,
    /// The places of the ports.
    map: RefCell<Arc<PortMap>>,
    queues: RefCell<Vec<BridgeQueues>>,
    ops: RefCell<Vec<Op>>,
    /// The file that the state is kept in, if it is.
    journal: RefCell<Option<Journal>>,
    /// Progress of the flush for removed entries.
    reaping: Cell<Reaping>,
    reaped_at: Cell<Option<Instant>>,
    /// [`Bridge::close`] was called.
    is_closed: Cell<bool>,
    /// Ports forward that are to enter the kernel tier.
    has_outside: Cell<bool>,
    /// Held while ports enter it, which none of them may leave then.
    entering: Mutex<()>,
    /// Notified when an entry with a timeout may have been added, or a removed entry waits to be
    /// reaped.
    pub(crate) expiry: Notify,
}

/// Progress of the counter flush that lets removed entries go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaping {
    /// None is needed, or it is too early for another one.
    No,
    /// Its op is made.
    Asked,
    /// The workers answer when it is done.
    Awaited,
}

/// Progress of the frames of the packet-outs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketOuts {
    /// All have left by the workers of their ports.
    Sent,
    /// One was staged after the last barrier.
    Staged,
    /// All have left when this barrier is reached.
    SentBy(BarrierId),
}

/// The link to one shard.
struct ShardLink {
    queue: Arc<CommandQueue>,
    staged: RefCell<Vec<ShardCommand>>,
}

impl ShardLink {
    /// Sends the staged commands.
    fn send(&self) {
        self.queue.send(&mut self.staged.borrow_mut());
    }
}

impl Bridge {
    /// A bridge over these shards and ports. The shards learn the ports at once.
    pub(crate) fn new(
        identity: Identity,
        clock: Clock,
        control: Option<Control>,
        queues: Vec<Arc<CommandQueue>>,
        map: Arc<PortMap>,
        ports: Vec<BridgePort>,
        counters: Arc<Counters>,
    ) -> Self {
        let link = |queue| ShardLink { queue, staged: RefCell::default() };
        let bridge = Self {
            identity: RefCell::new(identity),
            clock,
            counters,
            control: control.map(|control| RefCell::new(Some(control))),
            links: queues.into_iter().map(link).collect(),
            barriers: RefCell::default(),
            packet_outs: Cell::new(PacketOuts::Sent),
            ports: RefCell::new(ports),
            map: RefCell::new(map),
            queues: RefCell::default(),
            ops: RefCell::default(),
            journal: RefCell::default(),
            reaping: Cell::new(Reaping::No),
            reaped_at: Cell::new(None),
            is_closed: Cell::new(false),
            has_outside: Cell::new(false),
            entering: Mutex::new(()),
            expiry: Notify::new(),
        };
        bridge.announce_ports();
        let removed = bridge.send_ops();
        debug_assert!(removed.is_empty(), "nothing was there to be removed");
        bridge
    }

    /// Its datapath id.
    pub(crate) fn dpid(&self) -> DatapathId {
        self.identity.borrow().dpid
    }

    /// Its description.
    pub(crate) fn desc(&self) -> Ref<'_, SwitchDesc> {
        Ref::map(self.identity.borrow(), |identity| &identity.desc)
    }

    /// Another identity, for controllers that ask from now on.
    pub(crate) fn set_identity(&self, identity: Identity) {
        if let Some(journal) = self.journal.borrow_mut().as_mut()
            && identity.dpid != self.dpid()
        {
            journal.set_dpid(identity.dpid);
        }
        self.identity.replace(identity);
    }

    /// Runs `inner` on the tables; `None` on a wire. Short, as nothing else of the agent runs
    /// meanwhile.
    pub(crate) fn with_control<T>(&self, inner: impl FnOnce(&mut Control) -> T) -> Option<T> {
        self.control.as_ref()?.borrow_mut().as_mut().map(inner)
    }

    /// The number of commands that the slowest worker has pending.
    pub(crate) fn pending(&self) -> usize {
        self.links.iter().map(|link| link.queue.pending()).max().unwrap_or(0)
    }

    /// Sends what commands have changed to the workers. Returns entries that are gone for good,
    /// with their last counts.
    #[must_use]
    pub(crate) fn send_ops(&self) -> Vec<Removed> {
        let removed = self.reap();
        self.stage_ops();
        if self.reaping.get() == Reaping::Asked {
            self.reaping.set(Reaping::Awaited);
            let barrier = self.add_barrier(false, BarrierWaiter::Reap);
            self.stage_for_all(|| ShardCommand::FlushCounters(barrier));
        }
        self.links.iter().for_each(ShardLink::send);
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
            self.expiry.notify_one();
            return Vec::new();
        }
        let reap = |control: &mut Control| (control.reap(), control.is_reaped());
        let (removed, is_reaped) = self.with_control(reap).unwrap_or_default();
        if !is_reaped {
            self.reaping.set(Reaping::Asked);
        }
        removed
    }

    /// The time until removed entries may be moved on again.
    fn reaps_in(&self) -> Duration {
        let since = self.reaped_at.get().map(|at| at.elapsed());
        since.map_or(Duration::ZERO, |since| REAP_EVERY.saturating_sub(since))
    }

    /// The counter flush is done that was asked for because of removed entries.
    #[must_use]
    pub(crate) fn reaped(&self) -> Vec<Removed> {
        self.reaping.set(Reaping::No);
        let removed = self.send_ops();
        self.reaped_at.set(Some(Instant::now()));
        removed
    }

    /// The time until [`Bridge::expire`] or [`Bridge::send_ops`] has something to do by itself.
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

    fn add_barrier(&self, twice: bool, waiter: BarrierWaiter) -> BarrierId {
        let barrier = self.barriers.borrow_mut().add(self.links.len(), twice, waiter);
        if self.is_closed.get() {
            // No worker would reach it: the waiters go on.
            self.barriers.take();
        }
        barrier
    }

    fn stage_for_all(&self, command: impl Fn() -> ShardCommand) {
        for link in &self.links {
            link.staged.borrow_mut().push(command());
        }
    }

    /// Stages a packet of a controller's. One worker carries out all of them, so that they stay in
    /// order.
    fn stage_packet(&self, request: RequestContext, packet: GivenPacket) {
        if let Some(link) = self.links.first() {
            self.stage_ops();
            self.packet_outs.set(PacketOuts::Staged);
            link.staged.borrow_mut().push(ShardCommand::PacketOut(Box::new((request, packet))));
        }
    }

    /// Puts the ops of the commands so far in front of what comes next, once they are saved.
    fn stage_ops(&self) {
        let mut ops = self.ops.borrow_mut();
        self.with_control(|control| control.take_ops(&mut ops));
        self.save_ops(&ops);
        if let Some((last, others)) = self.links.split_last() {
            for link in others {
                link.staged.borrow_mut().extend(ops.iter().cloned().map(ShardCommand::Op));
            }
            last.staged.borrow_mut().extend(ops.drain(..).map(ShardCommand::Op));
        }
    }

    /// Stages a barrier after all earlier commands; [`Bridge::reached`] returns the waiter when
    /// every worker has reached it. While packet-outs are under way the workers reach it twice: in
    /// the first round the frames are handed to the workers of their ports, which send them before
    /// they answer in the second.
    fn stage_barrier(&self, waiter: BarrierWaiter) {
        self.stage_ops();
        let twice = self.links.len() > 1 && self.packet_outs.get() != PacketOuts::Sent;
        let barrier = self.add_barrier(twice, waiter);
        if twice {
            self.packet_outs.set(PacketOuts::SentBy(barrier));
        }
        self.stage_for_all(|| ShardCommand::Barrier(barrier));
    }

    /// A worker has reached a barrier: the waiter, when it was the last worker. The commands of a
    /// second round are staged.
    pub(crate) fn reached(&self, barrier: BarrierId) -> Option<BarrierWaiter> {
        let progress = self.barriers.borrow_mut().reached(barrier);
        match progress {
            BarrierProgress::Pending => None,
            BarrierProgress::SecondRound => {
                self.stage_for_all(|| ShardCommand::Barrier(barrier));
                None
            }
            BarrierProgress::Reached(waiter) => {
                if self.packet_outs.get() == PacketOuts::SentBy(barrier) {
                    self.packet_outs.set(PacketOuts::Sent);
                }
                Some(waiter)
            }
        }
    }

    /// Waits until every worker has carried out all earlier commands.
    pub(crate) async fn barrier(&self) {
        let (done, is_done) = oneshot::channel();
        self.stage_barrier(BarrierWaiter::Task(done));
        self.links.iter().for_each(ShardLink::send);
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
        let barrier = self.add_barrier(false, BarrierWaiter::Task(done));
        self.stage_for_all(|| ShardCommand::FlushCounters(barrier));
        self.links.iter().for_each(ShardLink::send);
        // Where a worker has ended the switch ends, and nobody reads these counts.
        let _ = is_done.await;
    }

    /// Has every worker answer a question. `None` when one has ended.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&mut Shard) -> T + Send + Clone + 'static,
    ) -> Option<Vec<T>> {
        let mut answers = Vec::new();
        for link in &self.links {
            let (answer, answered) = oneshot::channel();
            let question = question.clone();
            let ask = ShardCommand::Ask(Box::new(move |shard: &mut Shard| {
                // Nobody waits any more where sending fails, and then nothing is lost.
                let _ = answer.send(question(shard));
            }));
            link.queue.send(&mut vec![ask]);
            answers.push(answered);
        }
        let mut all = Vec::new();
        for answered in answers {
            all.push(answered.await.ok()?);
        }
        Some(all)
    }

    /// The states of the workers, with the counts of now. `None` when one has ended.
    pub(crate) async fn worker_states(&self) -> Option<Vec<WorkerState>> {
        self.flush_counters().await;
        self.ask(|shard| shard.state()).await
    }

    /// The counts of the shards, those of now. `None` when a worker has ended.
    pub(crate) async fn shard_samples(&self) -> Option<Vec<ShardSample>> {
        self.flush_counters().await;
        self.ask(Shard::sample).await
    }

    /// The shards are gone: nobody waits for an answer of theirs any more. Returns the tables, to
    /// be dropped where that may take long.
    pub(crate) fn close(&self) -> Option<Control> {
        self.is_closed.set(true);
        self.links.iter().for_each(|link| link.queue.close());
        self.barriers.take();
        if let Some(journal) = self.journal.take() {
            journal.discard();
        }
        self.control.as_ref()?.borrow_mut().take()
    }

    /// The error for what needs tables, on a wire.
    pub(crate) fn no_tables() -> Error {
        Error::BadRequestBadType
    }
}
