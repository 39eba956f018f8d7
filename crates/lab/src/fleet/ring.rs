//! Switches in a ring that carry what a controller sends from one to the next: for questions about
//! topologies and about entries that a controller sets up by itself.
//!
//! Each switch has two ports; port 1 leads to port 2 of the next. Every message is decoded, which
//! these questions leave time for. A link can go down and come up, which both ends tell. It must
//! never carry anything over a link that is down, nor what is not LLDP: there are no hosts.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use channel::{ConnectionSettings, Event, Link, Side, Stream};
use netdev::sys::affinity;
use openflow::message::{PacketIn, PacketInReason};
use openflow::port::{PortReason, PortState, PortStatus};
use openflow::{Action, Cookie, Field, Match, Message, TableId, Xid};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

use super::FleetPlan;
use emulator::{Identity, Reply, THREAD_NAME, is_lldp};

/// Packets that may be on their way to one switch.
const INBOX_MAX: usize = 1_024;

/// One way of a link as REST shows it: a switch and its port, and the same of the other end.
pub(super) type RingLink = (u64, u32, u64, u32);

/// A frame from a neighbour, and the port at which it arrives.
type Arriving = (u32, Vec<u8>);

/// The link from port 1 of the switch with this number is up, or down; none until one changes.
type LinkChange = Option<(u32, bool)>;

/// Common view of all.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// When the first LLDP came from the controller.
    pub(super) first_lldp: OnceLock<Instant>,
    /// Number of switches that have sent their features.
    pub(super) described: AtomicU32,
    /// Frames that could not be carried, since too many were on their way.
    lost: AtomicU64,
    /// Number of entries with a cookie that have come, and when the last one did.
    entries: Mutex<(u64, Option<Instant>)>,
    ended: OnceLock<String>,
}

/// A ring that runs on a thread of its own, and ends with the value.
#[derive(Debug)]
pub(super) struct RingTopology {
    pub(super) switches: u32,
    /// When the first switch began to connect.
    pub(super) begun: Instant,
    /// All switches go when it does.
    links: Option<watch::Sender<LinkChange>>,
    pub(super) seen: Arc<Seen>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RingTopology {
    /// Begins to connect as many switches as the plan has.
    pub(super) fn start(plan: &FleetPlan) -> Result<Self> {
        ensure!(plan.switches >= 2, "a ring has two switches at least: fleet.switches=2");
        let (links, changes) = watch::channel(None);
        let (begun, seen) = (Instant::now(), Arc::<Seen>::default());
        let (plan_of_thread, all) = (plan.clone(), Arc::clone(&seen));
        let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-ring"));
        let thread = thread.spawn(move || run(plan_of_thread, &all, &changes));
        let thread = Some(thread.context("starting the thread of the ring")?);
        Ok(Self { switches: plan.switches, begun, links: Some(links), seen, thread })
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
        let _ = self.links.as_ref().map(|links| links.send(Some((number, is_up))));
        at
    }

    /// Number of entries with a cookie that have come, and when the last one did.
    pub(super) fn entries(&self) -> (u64, Option<Instant>) {
        *self.seen.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if a connection has ended or packets were lost.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(why) = self.seen.ended.get() {
            bail!("a connection of the ring ended: {why}");
        }
        let lost = self.seen.lost.load(Ordering::Relaxed);
        ensure!(lost == 0, "{lost} packets found no room on their way around the ring");
        Ok(())
    }
}

impl Drop for RingTopology {
    fn drop(&mut self) {
        self.links = None;
        let ended = self.thread.take().map(JoinHandle::join);
        if !matches!(ended, Some(Ok(Ok(()))) | None) {
            tracing::warn!(?ended, "the thread of the ring has ended early");
        }
    }
}

/// A switch of the ring.
struct RingSwitch {
    number: u32,
    plan: Rc<FleetPlan>,
    identity: Identity,
    neighbours: Rc<Vec<mpsc::Sender<Arriving>>>,
    inbox: mpsc::Receiver<Arriving>,
    seen: Arc<Seen>,
    /// Whether the links at port 1 and at port 2 are up.
    is_up: [bool; 2],
}

fn run(plan: FleetPlan, seen: &Arc<Seen>, links: &watch::Receiver<LinkChange>) -> Result<()> {
    affinity::allow(None, &plan.cores).context("choosing cores for the emulator")?;
    emulator::prefer(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the emulator")?;
    let (senders, inboxes): (Vec<_>, Vec<_>) =
        (0..plan.switches).map(|_| mpsc::channel(INBOX_MAX)).unzip();
    let (plan, senders) = (Rc::new(plan), Rc::new(senders));
    let at_once = Rc::new(Semaphore::new(plan.at_once.max(1) as usize));
    LocalSet::new().block_on(&runtime, async {
        let mut tasks = JoinSet::new();
        for (number, inbox) in (0..plan.switches).zip(inboxes) {
            let switch = RingSwitch {
                number,
                plan: Rc::clone(&plan),
                identity: Identity::new(plan.version, number, 2),
                neighbours: Rc::clone(&senders),
                inbox,
                seen: Arc::clone(seen),
                is_up: [true; 2],
            };
            tasks.spawn_local(switch.serve(links.clone(), Rc::clone(&at_once)));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Ok(Err(why)) = ended {
                // The first to end is the one that is reported.
                let _ = seen.ended.set(files::with_sources(why.as_ref()));
            }
        }
    });
    Ok(())
}

impl RingSwitch {
    /// One connection, until all are to go.
    async fn serve(
        mut self,
        mut links: watch::Receiver<LinkChange>,
        at_once: Rc<Semaphore>,
    ) -> Result<()> {
        let opening = async {
            // Nobody closes the semaphore.
            let permit = at_once.acquire().await.ok();
            // It may come before the word of the stop that has set it free.
            if links.has_changed().is_err() {
                return None;
            }
            Some((permit, Stream::connect(&self.plan.target, self.plan.tls.as_ref()).await))
        };
        let mut stop = links.clone();
        let opened = tokio::select! {
            biased;
            _ = stop.wait_for(|_| false) => return Ok(()),
            opened = opening => opened,
        };
        let Some((mut permit, stream)) = opened else { return Ok(()) };
        let version = self.plan.version;
        let mut settings = ConnectionSettings::new(Side::Switch).with_versions(&[version]);
        settings.probe_after = None;
        settings.hello_deadline = self.plan.ready_limit;
        let mut link = Link::new(stream?, settings);
        loop {
            tokio::select! {
                biased;
                changed = links.changed() => {
                    if changed.is_err() {
                        link.finish().await;
                        return Ok(());
                    }
                    let change = *links.borrow_and_update();
                    self.obey(change, &mut link)?;
                }
                Some(arriving) = self.inbox.recv() => self.take_in(arriving, &mut link)?,
                () = link.turn() => {}
            }
            while let Some(event) = link.connection().poll_event() {
                match event {
                    Event::Message { xid, message } => self.answer(xid, &message, &mut link)?,
                    Event::Up { .. } => drop(permit.take()),
                    Event::Refused { .. } => {}
                    Event::Down(why) => bail!("switch {}: {why}", self.number + 1),
                }
            }
        }
    }

    /// A link has gone down or come up; both its ends say so.
    fn obey(&mut self, change: LinkChange, link: &mut Link) -> Result<()> {
        let Some((number, is_up)) = change else { return Ok(()) };
        let index = match self.number {
            own if own == number => 0,
            own if own == (number + 1) % self.plan.switches => 1,
            _ => return Ok(()),
        };
        self.is_up[index] = is_up;
        let mut desc = self.identity.ports().swap_remove(index);
        desc.state.set(PortState::LINK_DOWN, !is_up);
        let status = PortStatus { reason: PortReason::Modify, desc };
        Ok(link.connection().send_as(Xid(0), &Message::PortStatus(status))?)
    }

    /// Turns the neighbour's frame into a packet-in.
    fn take_in(&self, (port, frame): Arriving, link: &mut Link) -> Result<()> {
        if !self.is_up[port as usize - 1] || link.connection().version().is_none() {
            return Ok(());
        }
        let packet_in = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
            reason: PacketInReason::NoMatch,
            table_id: TableId(0),
            cookie: Cookie(u64::MAX),
            matching: Match::any().with(Field::InPort, port.into()),
            data: frame,
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
                self.seen.first_lldp.get_or_init(Instant::now);
                for action in &out.actions {
                    if let Action::Output { port, .. } = action {
                        self.carry(port.0, &out.data);
                    }
                }
            }
            Message::FlowMod(entry) if entry.cookie.0 != 0 => {
                let mut came = self.seen.entries.lock().unwrap_or_else(PoisonError::into_inner);
                *came = (came.0 + 1, Some(Instant::now()));
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
        let all = self.plan.switches;
        let (neighbour, far_port) = match port {
            1 => ((self.number + 1) % all, 2),
            2 => ((self.number + all - 1) % all, 1),
            _ => return,
        };
        if !self.is_up[port as usize - 1] {
            return;
        }
        let arriving = (far_port, frame.to_vec());
        let sent = self.neighbours.get(neighbour as usize).map(|to| to.try_send(arriving));
        // A neighbour that is gone is found out by itself.
        if let Some(Err(mpsc::error::TrySendError::Full(_))) = sent {
            self.seen.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
