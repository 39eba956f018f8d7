//! Events that no app has seen yet: a bounded queue from the threads that serve switches
//! to the thread of the apps.
//!
//! Adding an event never waits. Packet-ins have bounds over all switches and for each of
//! them, so that one switch cannot fill the room of the others; what does not fit is dropped and
//! counted. That a switch has come or gone is never dropped: at most one such event a switch waits,
//! and the state at the time of taking decides what it says. The apps' thread sleeps on an eventfd,
//! which an asyncio loop can watch.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::{ControllerEvent, PacketIn};
use openflow::DatapathId;
use rustix::event::{EventfdFlags, eventfd};

use crate::answer::Answered;
use crate::event::Handler;
use crate::transport::Connection;
use crate::web_request::WebRequest;

/// Packet-ins that may wait.
const PACKET_INS_MAX: usize = 65_536;
/// Packet-ins that may wait of one switch.
const PACKET_INS_A_SWITCH_MAX: u64 = 8_192;
/// Bytes of packets that may wait.
const BYTES_MAX: usize = 64 << 20;
/// Other events that may wait, but for answers and switches that come and go.
const OTHERS_MAX: usize = 65_536;
/// Switches that came and went unseen before their events are forgotten.
const UNSEEN_MAX: usize = 4_096;

/// An event that waits.
pub(crate) enum Waiting {
    PacketIn(Arc<Connection>, PacketIn),
    /// The switch has come or gone; [`Inner::lives`] has which of them.
    Life(DatapathId),
    /// Any other event, with the connection of its switch, if it is of one.
    Event(Option<Arc<Connection>>, ControllerEvent),
    Answer(Answered),
    /// A line for the log, and its level in Python's numbers.
    Line(u8, String),
    Request(WebRequest),
}

/// An event as it is taken.
pub(crate) enum Taken {
    Ready(Arc<Connection>),
    Down(Arc<Connection>),
    Event(Waiting),
}

/// A switch as the apps know it, and as it is.
#[derive(Default)]
struct Life {
    known: Option<Arc<Connection>>,
    now: Option<Arc<Connection>>,
    waits: bool,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Waiting>,
    packet_ins: usize,
    bytes: usize,
    others: usize,
    lives: HashMap<DatapathId, Life>,
    /// Events of switches that have come and gone before any app knew of them.
    unseen: usize,
    /// The bell has rung since the queue was empty.
    rung: bool,
}

/// Counts of events that were dropped, by kind.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) packet_ins_dropped: AtomicU64,
    pub(crate) events_dropped: AtomicU64,
}

/// The queue.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    bell: OwnedFd,
    wants: AtomicU32,
    pub(crate) counters: Counters,
}

impl Queue {
    pub(crate) fn new() -> std::io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let (inner, wants) = (Mutex::default(), AtomicU32::new(0));
        Ok(Self { inner, bell, wants, counters: Counters::default() })
    }

    /// The descriptor for an asyncio loop: readable while events wait.
    pub(crate) fn fileno(&self) -> i32 {
        self.bell.as_raw_fd()
    }

    /// The kinds of events that any app has a handler for, as bits.
    pub(crate) fn set_wants(&self, bits: u32) {
        self.wants.store(bits, Ordering::Relaxed);
    }

    fn wants(&self, handler: Handler) -> bool {
        self.wants.load(Ordering::Relaxed) & (1 << handler as u8) != 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, inner: &mut Inner, event: Waiting) {
        inner.events.push_back(event);
        if !inner.rung {
            inner.rung = true;
            // The counter of the eventfd cannot be full: it is read before it is written again.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Adds a packet-in, if there is room for it.
    fn packet_in(&self, from: &Arc<Connection>, packet_in: &PacketIn) {
        let of_switch = from.waiting.load(Ordering::Relaxed);
        let mut inner = self.lock();
        let is_full = inner.packet_ins >= PACKET_INS_MAX
            || inner.bytes >= BYTES_MAX
            || of_switch >= PACKET_INS_A_SWITCH_MAX;
        if is_full {
            drop(inner);
            self.counters.packet_ins_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        inner.packet_ins += 1;
        inner.bytes += packet_in.data.len();
        from.waiting.fetch_add(1, Ordering::Relaxed);
        self.push(&mut inner, Waiting::PacketIn(Arc::clone(from), packet_in.clone()));
    }

    /// Adds an event, if an app has a handler for it and there is room.
    pub(crate) fn event(&self, from: Option<&Arc<Connection>>, event: &ControllerEvent) {
        let is_wanted = self.wants(Handler::of(event));
        if let (ControllerEvent::PacketIn { packet_in, .. }, Some(from)) = (event, from) {
            if is_wanted {
                self.packet_in(from, packet_in);
            }
            return;
        }
        let waits = is_wanted && self.add(|| Waiting::Event(from.cloned(), event.clone()));
        if let (false, ControllerEvent::PortStatus { status, .. }, Some(from)) =
            (waits, event, from)
        {
            // The event would have brought the ports up to date when it is taken.
            from.take_port_status(status);
        }
    }

    pub(crate) fn line(&self, level: u8, line: String) {
        self.add(|| Waiting::Line(level, line));
    }

    /// Adds an event that no bound of packet-ins counts; whether it waits now.
    fn add(&self, event: impl FnOnce() -> Waiting) -> bool {
        let mut inner = self.lock();
        if inner.others >= OTHERS_MAX {
            drop(inner);
            self.counters.events_dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        inner.others += 1;
        self.push(&mut inner, event());
        true
    }

    /// Adds an answer. Somebody waits for it, so it is never dropped; how many may be asked for at
    /// a time bounds them.
    pub(crate) fn answer(&self, answered: Answered) {
        let mut inner = self.lock();
        self.push(&mut inner, Waiting::Answer(answered));
    }

    /// Adds a request for a route of an app. How many are served at a time bounds them.
    pub(crate) fn request(&self, request: WebRequest) {
        let mut inner = self.lock();
        self.push(&mut inner, Waiting::Request(request));
    }

    /// A switch has come.
    pub(crate) fn ready(&self, connection: &Arc<Connection>) {
        let mut inner = self.lock();
        let life = inner.lives.entry(connection.dpid).or_default();
        life.now = Some(Arc::clone(connection));
        if !std::mem::replace(&mut life.waits, true) {
            self.push(&mut inner, Waiting::Life(connection.dpid));
        }
    }

    /// A switch has gone.
    pub(crate) fn down(&self, dpid: DatapathId) {
        let mut inner = self.lock();
        let Some(life) = inner.lives.get_mut(&dpid) else { return };
        life.now = None;
        let is_unseen = life.known.is_none();
        if !std::mem::replace(&mut life.waits, true) {
            self.push(&mut inner, Waiting::Life(dpid));
        } else if is_unseen {
            inner.unseen += 1;
            inner.forget_unseen();
        }
    }

    /// Takes up to `limit` events out, in order. What is of a connection that the apps do not know,
    /// or know to be over, is left out.
    pub(crate) fn take(&self, limit: usize) -> Vec<Taken> {
        let mut inner = self.lock();
        let count = limit.min(inner.events.len());
        let mut taken = Vec::with_capacity(count);
        let mut known: Option<(DatapathId, *const Connection)> = None;
        for _ in 0..count {
            let Some(event) = inner.events.pop_front() else { break };
            let from = match &event {
                Waiting::PacketIn(from, packet_in) => {
                    inner.packet_ins -= 1;
                    inner.bytes -= packet_in.data.len();
                    from.waiting.fetch_sub(1, Ordering::Relaxed);
                    from
                }
                Waiting::Event(Some(from), _) => {
                    inner.others -= 1;
                    from
                }
                Waiting::Life(dpid) => {
                    known = None;
                    inner.take_life(*dpid, &mut taken);
                    continue;
                }
                Waiting::Line(..) | Waiting::Event(None, _) => {
                    inner.others -= 1;
                    taken.push(Taken::Event(event));
                    continue;
                }
                Waiting::Answer(_) | Waiting::Request(_) => {
                    taken.push(Taken::Event(event));
                    continue;
                }
            };
            let this = (from.dpid, Arc::as_ptr(from));
            if known == Some(this) || inner.is_known(from) {
                known = Some(this);
                taken.push(Taken::Event(event));
            }
        }
        if inner.events.is_empty() && inner.rung {
            inner.rung = false;
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.bell, &mut count);
        }
        taken
    }
}

impl Inner {
    /// Forgets the switches that no app has heard of and that are gone, once they are many: ever
    /// new datapath ids must not fill the memory while an app blocks.
    fn forget_unseen(&mut self) {
        if self.unseen < UNSEEN_MAX {
            return;
        }
        self.unseen = 0;
        self.lives.retain(|_, life| life.known.is_some() || life.now.is_some());
        let lives = &self.lives;
        self.events.retain(|event| match event {
            Waiting::Life(dpid) => lives.contains_key(dpid),
            Waiting::PacketIn(..)
            | Waiting::Event(..)
            | Waiting::Answer(_)
            | Waiting::Line(..)
            | Waiting::Request(_) => true,
        });
    }

    fn is_known(&self, from: &Arc<Connection>) -> bool {
        let known = self.lives.get(&from.dpid).and_then(|life| life.known.as_ref());
        known.is_some_and(|known| Arc::ptr_eq(known, from))
    }

    /// Takes the change of a switch since the apps heard of it last.
    fn take_life(&mut self, dpid: DatapathId, taken: &mut Vec<Taken>) {
        let Some(life) = self.lives.get_mut(&dpid) else { return };
        life.waits = false;
        let is_same = match (&life.known, &life.now) {
            (Some(known), Some(now)) => Arc::ptr_eq(known, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            if let Some(known) = life.known.take() {
                taken.push(Taken::Down(known));
            }
            life.known.clone_from(&life.now);
            taken.extend(life.now.clone().map(Taken::Ready));
        }
        if life.now.is_none() {
            self.lives.remove(&dpid);
        }
    }
}
