//! Switches in a ring that carry what a controller sends from one to the next: for questions about
//! topologies and about entries that a controller sets up by itself.
//!
//! Each switch has two ports; port 1 leads to port 2 of the next. Every message is decoded, which
//! these questions leave time for. A link can go down and come up, which both ends tell. It must
//! never carry anything over a link that is down, nor what is not LLDP: there are no hosts.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use channel::{ConnectionSettings, Endpoint, Event, Link, Side, Stream, Tls};
use netdev::sys::affinity;
use openflow::message::{PacketIn, PacketInReason};
use openflow::port::{PortReason, PortState, PortStatus};
use openflow::{Action, Cookie, Field, Match, Message, PortNo, TableId, Version, Xid};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

use super::FleetPlan;
use emulator::THREAD_NAME;
use emulator::is_lldp;
use emulator::{Identity, Reply};

/// Packets that may be on their way to one switch.
const INBOX_MAX: usize = 1_024;

/// One way of a link as REST shows it: a switch and its port, and the same of the other end.
pub(super) type RingLink = (u64, u32, u64, u32);

/// Order to the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Run,
    /// The link from port 1 of the switch with this number is up, or down.
    Link(u32, bool),
    Stop,
}

/// Common view of all.
#[derive(Debug)]
struct Seen {
    begun: Instant,
    /// When the first LLDP came from the controller, in nanoseconds since the beginning.
    first_lldp_ns: AtomicU64,
    described: AtomicU32,
    /// Frames that could not be carried, since too many were on their way.
    lost: AtomicU64,
    /// When entries came, by their cookies.
    entries: Mutex<HashMap<u64, Vec<Instant>>>,
    ended: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ring that runs on a thread of its own, and ends with the value.
#[derive(Debug)]
pub(super) struct RingTopology {
    switches: u32,
    orders: watch::Sender<Order>,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RingTopology {
    /// Begins to connect as many switches as the plan has.
    ///
    /// # Errors
    /// There is no thread.
    pub(super) fn start(plan: &FleetPlan) -> Result<Self> {
        ensure!(plan.switches >= 2, "a ring has two switches at least: fleet.switches=2");
        let (orders, received) = watch::channel(Order::Run);
        let seen = Arc::new(Seen {
            begun: Instant::now(),
            first_lldp_ns: AtomicU64::new(u64::MAX),
            described: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            entries: Mutex::default(),
            ended: Mutex::default(),
        });
        let all = Arc::clone(&seen);
        let plan_of_thread = plan.clone();
        let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-ring"));
        let thread = thread.spawn(move || run(&plan_of_thread, &all, &received));
        let thread = Some(thread.context("starting the thread of the ring")?);
        Ok(Self { switches: plan.switches, orders, seen, thread })
    }

    /// Both ways of all links.
    pub(super) fn links(&self) -> BTreeSet<RingLink> {
        (0..self.switches).flat_map(|number| self.both_ways(number)).collect()
    }

    /// Both ways of the link from port 1 of a switch.
    pub(super) fn both_ways(&self, number: u32) -> [RingLink; 2] {
        let dpid = |number: u32| u64::from(number) + 1;
        let next = (number + 1) % self.switches;
        [(dpid(number), 1, dpid(next), 2), (dpid(next), 2, dpid(number), 1)]
    }

    /// Takes a link down or up; when.
    pub(super) fn set_link(&self, number: u32, is_up: bool) -> Instant {
        let at = Instant::now();
        // A thread that is gone is found out by the next wait.
        let _ = self.orders.send(Order::Link(number, is_up));
        at
    }

    /// When the first switch began to connect.
    pub(super) fn begun(&self) -> Instant {
        self.seen.begun
    }

    /// When the first LLDP came from the controller.
    pub(super) fn first_lldp(&self) -> Option<Instant> {
        let ns = self.seen.first_lldp_ns.load(Ordering::Relaxed);
        (ns != u64::MAX).then(|| self.seen.begun + Duration::from_nanos(ns))
    }

    /// Number of switches that have sent their features.
    pub(super) fn described(&self) -> u32 {
        self.seen.described.load(Ordering::Relaxed)
    }

    /// When the entries with this cookie came, if as many have come.
    pub(super) fn take_entries(&self, cookie: u64, count: usize) -> Option<Vec<Instant>> {
        let mut entries = lock(&self.seen.entries);
        let is_whole = entries.get(&cookie).is_some_and(|came| came.len() >= count);
        if is_whole { entries.remove(&cookie) } else { None }
    }

    /// Number of entries that have come and were not taken.
    pub(super) fn entries(&self) -> usize {
        lock(&self.seen.entries).values().map(Vec::len).sum()
    }

    /// Whether all is well.
    ///
    /// # Errors
    /// A connection has ended, or packets were lost.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(why) = &*lock(&self.seen.ended) {
            anyhow::bail!("a connection of the ring ended: {why}");
        }
        let lost = self.seen.lost.load(Ordering::Relaxed);
        ensure!(lost == 0, "{lost} packets found no room on their way around the ring");
        Ok(())
    }
}

impl Drop for RingTopology {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        if !matches!(ended, Some(Ok(Ok(()))) | None) {
            tracing::warn!(?ended, "the thread of the ring has ended early");
        }
    }
}

/// Frame that arrives at a switch from its neighbour.
struct Arriving {
    port: u32,
    frame: Vec<u8>,
}

/// A switch of the ring.
struct RingSwitch {
    number: u32,
    count: u32,
    version: Version,
    /// Longest time to the controller's hello.
    hello_limit: Duration,
    identity: Identity,
    neighbours: Rc<Vec<mpsc::Sender<Arriving>>>,
    inbox: mpsc::Receiver<Arriving>,
    seen: Arc<Seen>,
    /// Whether the links at port 1 and at port 2 are up.
    is_up: [Cell<bool>; 2],
}

fn run(plan: &FleetPlan, seen: &Arc<Seen>, orders: &watch::Receiver<Order>) -> Result<()> {
    affinity::allow(None, &plan.cores).context("choosing cores for the emulator")?;
    emulator::prefer(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the emulator")?;
    let (senders, inboxes): (Vec<_>, Vec<_>) =
        (0..plan.switches).map(|_| mpsc::channel(INBOX_MAX)).unzip();
    let senders = Rc::new(senders);
    let at_once = Rc::new(Semaphore::new(plan.at_once.max(1) as usize));
    LocalSet::new().block_on(&runtime, async {
        let mut tasks = JoinSet::new();
        for (number, inbox) in (0..plan.switches).zip(inboxes) {
            let switch = RingSwitch {
                number,
                count: plan.switches,
                version: plan.version,
                hello_limit: plan.ready_limit,
                identity: Identity::new(plan.version, number, 2),
                neighbours: Rc::clone(&senders),
                inbox,
                seen: Arc::clone(seen),
                is_up: [Cell::new(true), Cell::new(true)],
            };
            let (target, tls) = (plan.target.clone(), plan.tls.clone());
            let (orders, at_once, seen) = (orders.clone(), Rc::clone(&at_once), Arc::clone(seen));
            tasks.spawn_local(async move {
                let ended = switch.serve(&target, tls.as_ref(), orders, &at_once).await;
                if let Err(why) = ended {
                    lock(&seen.ended).get_or_insert(files::with_sources(why.as_ref()));
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    });
    Ok(())
}

impl RingSwitch {
    /// One connection, until all are told to go.
    async fn serve(
        mut self,
        target: &Endpoint,
        tls: Option<&Tls>,
        mut orders: watch::Receiver<Order>,
        at_once: &Semaphore,
    ) -> Result<()> {
        let opening = async {
            // Nobody closes the semaphore.
            let permit = at_once.acquire().await.ok();
            // It may come before the word of the stop that has set it free.
            if *orders.borrow() == Order::Stop {
                return None;
            }
            Some((permit, Stream::connect(target, tls).await))
        };
        let mut stop = orders.clone();
        let opened = tokio::select! {
            biased;
            _ = stop.wait_for(|order| *order == Order::Stop) => return Ok(()),
            opened = opening => opened,
        };
        let Some((mut permit, stream)) = opened else { return Ok(()) };
        let stream = stream?;
        let mut settings = ConnectionSettings::new(Side::Switch).with_versions(&[self.version]);
        settings.probe_after = None;
        settings.hello_deadline = self.hello_limit;
        let mut link = Link::new(stream, settings);
        loop {
            tokio::select! {
                biased;
                changed = orders.changed() => {
                    let now = *orders.borrow_and_update();
                    if changed.is_err() || now == Order::Stop {
                        link.finish().await;
                        return Ok(());
                    }
                    self.obey(now, &mut link)?;
                }
                Some(arriving) = self.inbox.recv() => self.take_in(arriving, &mut link)?,
                () = link.turn() => {}
            }
            while let Some(event) = link.connection().poll_event() {
                match event {
                    Event::Message { xid, message } => self.answer(xid, &message, &mut link)?,
                    Event::Up { .. } => permit = None,
                    Event::Refused { .. } => {}
                    Event::Down(why) => anyhow::bail!("switch {}: {why}", self.number + 1),
                }
            }
            drop(permit.take_if(|_| link.connection().version().is_some()));
        }
    }

    /// A link has gone down or come up; both its ends say so.
    fn obey(&self, order: Order, link: &mut Link) -> Result<()> {
        let Order::Link(number, is_up) = order else { return Ok(()) };
        let port = match self.number {
            own if own == number => 1,
            own if own == (number + 1) % self.count => 2,
            _ => return Ok(()),
        };
        self.is_up[port as usize - 1].set(is_up);
        let ports = self.identity.ports();
        let desc = ports.into_iter().find(|desc| desc.port_no == PortNo(port));
        let mut desc = desc.context("a switch of the ring has two ports")?;
        desc.state.set(PortState::LINK_DOWN, !is_up);
        let status = PortStatus { reason: PortReason::Modify, desc };
        link.connection().send_as(Xid(0), &Message::PortStatus(status))?;
        Ok(())
    }

    fn is_up(&self, port: u32) -> bool {
        self.is_up.get(port as usize - 1).is_some_and(Cell::get)
    }

    /// Turns the neighbour's frame into a packet-in.
    fn take_in(&self, arriving: Arriving, link: &mut Link) -> Result<()> {
        if !self.is_up(arriving.port) || link.connection().version().is_none() {
            return Ok(());
        }
        let packet_in = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(arriving.frame.len()).unwrap_or(u16::MAX),
            reason: PacketInReason::NoMatch,
            table_id: TableId(0),
            cookie: Cookie(u64::MAX),
            matching: Match::any().with(Field::InPort, arriving.port.into()),
            data: arriving.frame,
            userdata: Vec::new(),
            continuation: Vec::new(),
            controller_id: 0,
        };
        Ok(link.connection().send_as(Xid(0), &Message::PacketIn(packet_in))?)
    }

    /// Answers the controller, and carries its LLDP to the neighbour.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others only have an answer")]
    fn answer(&mut self, xid: Xid, message: &Message, link: &mut Link) -> Result<()> {
        match message {
            Message::PacketOut(out) if is_lldp(&out.data) => {
                let at_ns = self.seen.begun.elapsed().as_nanos() as u64;
                self.seen.first_lldp_ns.fetch_min(at_ns, Ordering::Relaxed);
                for action in &out.actions {
                    if let Action::Output { port, .. } = action {
                        self.carry(port.0, &out.data);
                    }
                }
            }
            Message::FlowMod(entry) if entry.cookie.0 != 0 => {
                let at = Instant::now();
                lock(&self.seen.entries).entry(entry.cookie.0).or_default().push(at);
            }
            Message::FeaturesRequest => {
                self.seen.described.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        match self.identity.reply(message) {
            Reply::None => {}
            Reply::Message(reply) => link.connection().send_as(xid, &reply)?,
            Reply::Refusal(error) => link.connection().refuse(xid, error)?,
        }
        Ok(())
    }

    fn carry(&self, port: u32, frame: &[u8]) {
        let (neighbour, far_port) = match port {
            1 => ((self.number + 1) % self.count, 2),
            2 => ((self.number + self.count - 1) % self.count, 1),
            _ => return,
        };
        if !self.is_up(port) {
            return;
        }
        let arriving = Arriving { port: far_port, frame: frame.to_vec() };
        let sent = self.neighbours.get(neighbour as usize).map(|to| to.try_send(arriving));
        // A neighbour that is gone is found out by itself.
        if let Some(Err(mpsc::error::TrySendError::Full(_))) = sent {
            self.seen.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
