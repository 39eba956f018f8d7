//! The state that all threads of a controller share: ready switches, the shards' inboxes, counts.
//!
//! Nothing here is touched for a packet; a shard writes its counts once a turn. It must never be
//! locked while something else is waited for.

use crate::commands::SwitchEntry;
use crate::error::HandleError;
use crate::events::ControllerEvent;
use crate::handler_progress::HandlerProgress;
use crate::info::SwitchInfo;
use crate::mastership::Mastership;
use crate::options::Options;
use crate::stats::Stats;
use crate::watchers::Watchers;
use channel::ConnectionLog;
use openflow::DatapathId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Events, and connections, that may wait for one shard.
pub(crate) const INBOX_MAX: usize = 65_536;

/// A shard's end of its mailbox: events that every one of its apps gets.
pub(crate) type Inbox = mpsc::Receiver<ControllerEvent>;

/// The bounds of one switch, and how long it may take to answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchBounds {
    pub(crate) queue_max_bytes: usize,
    pub(crate) answer_entries_max: usize,
    pub(crate) answer_bytes_max: usize,
    pub(crate) answer_deadline: Duration,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bounds: SwitchBounds,
    /// See [`Options::busy_poll`].
    pub(crate) busy_poll: Duration,
    pub(crate) watchers: Watchers,
    /// The limits of the lines that peers can cause.
    pub(crate) log: ConnectionLog,
    switches: RwLock<BTreeMap<DatapathId, Arc<SwitchEntry>>>,
    shards: Vec<ShardMailbox>,
    /// Of the thread that greets and serves no switch.
    front_stats: Mutex<Stats>,
    /// Refused by a full queue.
    commands_full: AtomicU64,
    is_over: AtomicBool,
    /// Of a controller in a cluster, once it runs.
    mastership: OnceLock<Mastership>,
}

#[derive(Debug)]
struct ShardMailbox {
    inbox: mpsc::Sender<ControllerEvent>,
    stats: Mutex<Stats>,
    progress: Arc<HandlerProgress>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole after every statement, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a shard's inbox that takes nothing.
pub(crate) fn not_sent<T>(shard: usize, error: &TrySendError<T>) -> HandleError {
    match error {
        TrySendError::Full(_) => HandleError::EventsFull(shard),
        TrySendError::Closed(_) => HandleError::Gone,
    }
}

impl Shared {
    /// With the inboxes of the shards.
    pub(crate) fn new(options: &Options) -> (Arc<Self>, Vec<Inbox>) {
        let (mailboxes, inboxes) = (0..options.shards.max(1))
            .map(|_| {
                let (inbox, receiver) = mpsc::channel(INBOX_MAX);
                (
                    ShardMailbox { inbox, stats: Mutex::default(), progress: Arc::default() },
                    receiver,
                )
            })
            .unzip();
        let shared = Self {
            bounds: SwitchBounds {
                queue_max_bytes: options.queue_max_bytes,
                answer_entries_max: options.answer_entries_max,
                answer_bytes_max: options.answer_bytes_max,
                answer_deadline: options.answer_deadline,
            },
            busy_poll: options.busy_poll,
            watchers: Watchers::new(),
            log: ConnectionLog::default(),
            switches: RwLock::default(),
            shards: mailboxes,
            front_stats: Mutex::default(),
            commands_full: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            mastership: OnceLock::new(),
        };
        (Arc::new(shared), inboxes)
    }

    /// The shard at which a switch is at home. Multiples of the golden ratio spread neighbouring
    /// numbers as evenly as can be, and others well.
    pub(crate) fn shard_of(&self, dpid: DatapathId) -> usize {
        let spread = u128::from(dpid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        ((spread * self.shards.len() as u128) >> 64) as usize
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The progress of a shard's thread; a new one for the thread that serves no switch.
    pub(crate) fn progress(&self, shard: usize) -> Arc<HandlerProgress> {
        self.shards.get(shard).map(|mailbox| Arc::clone(&mailbox.progress)).unwrap_or_default()
    }

    /// The progress of the threads of all shards.
    pub(crate) fn progresses(&self) -> impl Iterator<Item = &HandlerProgress> {
        self.shards.iter().map(|mailbox| mailbox.progress.as_ref())
    }

    /// Sends an event to all apps of all shards and to all watchers, also after a shard that has no
    /// room for it.
    pub(crate) fn send_to_all(&self, event: &ControllerEvent) -> Result<(), HandleError> {
        self.watchers.broadcast(event);
        let sent = self.shards.iter().enumerate().map(|(shard, mailbox)| {
            mailbox.inbox.try_send(event.clone()).map_err(|error| not_sent(shard, &error))
        });
        sent.fold(Ok(()), Result::and)
    }

    /// A switch is ready; the entry of its earlier connection comes back.
    pub(crate) fn insert(&self, entry: Arc<SwitchEntry>) -> Option<Arc<SwitchEntry>> {
        let info = entry.info();
        let mut switches = self.switches.write().unwrap_or_else(PoisonError::into_inner);
        let before = switches.insert(entry.dpid, entry);
        drop(switches);
        if before.is_some() {
            self.watchers.broadcast(&ControllerEvent::SwitchDown(info.dpid));
        }
        self.watchers.broadcast(&ControllerEvent::SwitchReady(info));
        before
    }

    /// The connection of a switch is over; whether no other one speaks for the switch.
    pub(crate) fn remove(&self, entry: &Arc<SwitchEntry>) -> bool {
        let mut switches = self.switches.write().unwrap_or_else(PoisonError::into_inner);
        let is_current =
            switches.get(&entry.dpid).is_some_and(|current| Arc::ptr_eq(current, entry));
        if is_current {
            switches.remove(&entry.dpid);
            drop(switches);
            self.watchers.broadcast(&ControllerEvent::SwitchDown(entry.dpid));
        }
        is_current
    }

    pub(crate) fn entry(&self, dpid: DatapathId) -> Option<Arc<SwitchEntry>> {
        let switches = self.switches.read().unwrap_or_else(PoisonError::into_inner);
        switches.get(&dpid).map(Arc::clone)
    }

    pub(crate) fn infos(&self) -> Vec<SwitchInfo> {
        let switches = self.switches.read().unwrap_or_else(PoisonError::into_inner);
        switches.values().map(|entry| entry.info()).collect()
    }

    /// A shard's counts as they are now.
    pub(crate) fn publish(&self, shard: usize, stats: &Stats) {
        let of_shard = self.shards.get(shard).map(|mailbox| &mailbox.stats);
        *lock(of_shard.unwrap_or(&self.front_stats)) = *stats;
    }

    /// Counts messages that have found a switch's queue full.
    pub(crate) fn count_full(&self, messages: u64) {
        self.commands_full.fetch_add(messages, Ordering::Relaxed);
    }

    /// The counts of all shards and of all handles.
    pub(crate) fn stats(&self) -> Stats {
        let mut sum = *lock(&self.front_stats);
        for mailbox in &self.shards {
            sum += *lock(&mailbox.stats);
        }
        sum.commands_full = self.commands_full.load(Ordering::Relaxed);
        sum.events_lagged = self.watchers.lagged();
        sum
    }

    /// The masters of switches; `None` when this controller is alone.
    pub(crate) fn mastership(&self) -> Option<&Mastership> {
        self.mastership.get()
    }

    /// The controller is a node of a cluster from now on.
    pub(crate) fn set_mastership(&self, mastership: Mastership) {
        let set = self.mastership.set(mastership);
        debug_assert!(set.is_ok(), "a controller runs once");
    }

    /// The controller has ended.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.watchers.end();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}
