//! Messages of handles for one switch: a bounded queue, from any thread to that of its shard.
//!
//! Messages are encoded by their senders, so that one without an encoding is an error at once and
//! the bound is in bytes. The queue must never hold back its shard: it is locked for a push or a
//! pop, and a flag says that it is empty.

use crate::error::HandleError;
use crate::events::ControllerEvent;
use crate::info::SwitchInfo;
use crate::stats::Stats;
use crate::xid::{self, COUNTER_MAX};
use openflow::message::ControllerRole;
use openflow::{DatapathId, Message, MessageKind, Version, Xid};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The way of the answer to a request.
pub(crate) type AnswerSender = oneshot::Sender<Result<Message, HandleError>>;

/// The way of the outcome of a batch.
pub(crate) type OutcomeSender = oneshot::Sender<Result<(), HandleError>>;

/// Encoded messages for a switch.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) bytes: Vec<u8>,
    /// The numbers of those that are counted.
    pub(crate) sent: Stats,
    pub(crate) asks: Asks,
}

/// An item of a switch's queue.
#[derive(Debug)]
pub(crate) enum Queued {
    /// To be sent.
    Command(Command),
    /// To be delivered to the apps.
    Raised(RaisedEvent),
}

/// An event that a handle raises, as if it had come from the switch.
#[derive(Debug)]
pub(crate) enum RaisedEvent {
    /// A message of the switch, encoded.
    Message(Vec<u8>),
    /// An event that comes with no message.
    Other(Box<ControllerEvent>),
}

impl Queued {
    /// Its bytes of the queue's bound.
    fn bytes(&self) -> usize {
        match self {
            Self::Command(command) => command.bytes.len(),
            Self::Raised(RaisedEvent::Message(frame)) => size_of::<Self>() + frame.len(),
            Self::Raised(RaisedEvent::Other(_)) => size_of::<(Self, ControllerEvent)>(),
        }
    }
}

/// The answer that a caller waits for.
#[derive(Debug)]
pub(crate) enum Asks {
    /// Nobody.
    Nothing,
    /// A request whose answer is waited for.
    Reply { xid: Xid, request: MessageKind, answer: AnswerSender },
    /// Messages with a barrier request behind them.
    Batch(BatchAsked),
}

/// The messages of a batch have the xids from `first` on, one each; the barrier request's is next.
#[derive(Debug)]
pub(crate) struct BatchAsked {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The place of the first message in the caller's list.
    pub(crate) first_index: usize,
    pub(crate) outcome: OutcomeSender,
}

impl BatchAsked {
    pub(crate) fn barrier(&self) -> Xid {
        Xid(self.first + self.count)
    }
}

/// Why a command was not queued.
#[derive(Debug)]
pub(crate) enum NotQueued {
    /// The queue is full; what was to be queued comes back.
    Full(Box<Queued>),
    /// The connection is over.
    Over,
}

/// A switch that is ready, as all threads see it.
#[derive(Debug)]
pub(crate) struct SwitchEntry {
    pub(crate) dpid: DatapathId,
    pub(crate) version: Version,
    pub(crate) shard: usize,
    info: Mutex<SwitchInfo>,
    /// The role of this controller there, as far as it knows.
    role: Mutex<ControllerRole>,
    queue: Mutex<Queue>,
    has_commands: AtomicBool,
    is_over: AtomicBool,
    /// Wakes the task of the connection.
    wake: Notify,
    /// Wakes callers that wait for room in the queue.
    room: Notify,
    queue_max_bytes: usize,
}

#[derive(Debug)]
struct Queue {
    commands: VecDeque<Queued>,
    bytes: usize,
    next_xid: u32,
    is_closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole after every statement, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SwitchEntry {
    pub(crate) fn new(info: SwitchInfo, queue_max_bytes: usize) -> Self {
        let queue = Queue { commands: VecDeque::new(), bytes: 0, next_xid: 1, is_closed: false };
        Self {
            dpid: info.dpid,
            version: info.version,
            shard: info.shard,
            info: Mutex::new(info),
            role: Mutex::new(ControllerRole::Equal),
            queue: Mutex::new(queue),
            has_commands: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            wake: Notify::new(),
            room: Notify::new(),
            queue_max_bytes,
        }
    }

    /// The facts about the switch.
    pub(crate) fn info(&self) -> SwitchInfo {
        lock(&self.info).clone()
    }

    pub(crate) fn update_info(&self, update: impl FnOnce(&mut SwitchInfo)) {
        update(&mut lock(&self.info));
    }

    /// The role of this controller there, as far as it knows; of all connections of the switch.
    pub(crate) fn role(&self) -> ControllerRole {
        *lock(&self.role)
    }

    /// Whether the role is another than before.
    pub(crate) fn set_role(&self, role: ControllerRole) -> bool {
        std::mem::replace(&mut *lock(&self.role), role) != role
    }

    /// The first of `count` xids in a row.
    pub(crate) fn allocate_xids(&self, count: u32) -> u32 {
        let mut queue = lock(&self.queue);
        if count > COUNTER_MAX - queue.next_xid {
            queue.next_xid = 1;
        }
        let first = xid::of_handle(queue.next_xid).0;
        queue.next_xid += count;
        first
    }

    /// Queues a command or an event. One that is larger than the whole queue is taken when the
    /// queue is empty.
    pub(crate) fn push(&self, queued: Queued) -> Result<(), NotQueued> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(NotQueued::Over);
        }
        let bytes = queue.bytes + queued.bytes();
        if bytes > self.queue_max_bytes && !queue.commands.is_empty() {
            return Err(NotQueued::Full(Box::new(queued)));
        }
        queue.bytes = bytes;
        queue.commands.push_back(queued);
        drop(queue);
        self.has_commands.store(true, Ordering::Release);
        self.wake.notify_one();
        Ok(())
    }

    /// Queues a command as soon as there is room.
    pub(crate) async fn push_later(&self, command: Command) -> Result<(), HandleError> {
        let mut command = Queued::Command(command);
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // From here on no notification is missed.
            room.as_mut().enable();
            match self.push(command) {
                Ok(()) => return Ok(()),
                Err(NotQueued::Over) => return Err(HandleError::NoSwitch(self.dpid)),
                Err(NotQueued::Full(back)) => command = *back,
            }
            room.await;
        }
    }

    /// Whether there may be commands.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        self.has_commands.load(Ordering::Acquire)
    }

    /// The oldest command or event.
    pub(crate) fn pop(&self) -> Option<Queued> {
        let mut queue = lock(&self.queue);
        let queued = queue.commands.pop_front();
        if let Some(queued) = &queued {
            queue.bytes -= queued.bytes();
        }
        if queue.commands.is_empty() {
            // The next switch of ten thousand should not keep what one burst needed.
            queue.commands = VecDeque::new();
            self.has_commands.store(false, Ordering::Release);
        }
        drop(queue);
        self.room.notify_waiters();
        queued
    }

    /// Done when there may be commands, or the switch has connected again.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether the connection is over, or another one speaks for the switch.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The connection is over, or another one speaks for the switch: nothing is queued any more.
    /// The items of the queue come back.
    pub(crate) fn close(&self) -> Vec<Queued> {
        self.is_over.store(true, Ordering::Release);
        let mut queue = lock(&self.queue);
        queue.is_closed = true;
        queue.bytes = 0;
        let commands = std::mem::take(&mut queue.commands);
        drop(queue);
        self.has_commands.store(false, Ordering::Release);
        self.wake.notify_one();
        self.room.notify_waiters();
        commands.into()
    }

    /// Takes everything out of the queue, which goes on.
    pub(crate) fn take_all(&self) -> Vec<Queued> {
        let mut queue = lock(&self.queue);
        queue.bytes = 0;
        let commands = std::mem::take(&mut queue.commands);
        self.has_commands.store(false, Ordering::Release);
        drop(queue);
        self.room.notify_waiters();
        commands.into()
    }
}

/// Fails commands that will not be sent. Of events nobody waits to hear.
pub(crate) fn fail(queued: Vec<Queued>, error: &HandleError) {
    for queued in queued {
        let Queued::Command(command) = queued else { continue };
        match command.asks {
            Asks::Nothing => {}
            // A caller that does not wait any more does not miss it.
            Asks::Reply { answer, .. } => drop(answer.send(Err(error.clone()))),
            Asks::Batch(batch) => drop(batch.outcome.send(Err(error.clone()))),
        }
    }
}
