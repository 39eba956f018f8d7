//! Serves one connection on its shard's thread, and hands it to another shard.
//!
//! A turn reads what has come, runs the apps on all of it, and writes the answers with one call, so
//! the cost of the system calls is shared by many packets when there are many and paid by one when
//! there is one. A panic of a handler ends the connection it was about and no other.

use super::StatusWriter;
use super::busy_poll::BusyPoll;
use crate::app::App;
use crate::blocking::OnShard;
use crate::commands::SwitchEntry;
use crate::mastership::OrderBox;
use crate::session::{Outcome, Session};
use crate::shard::Shard;
use crate::shared::{ShardEvent, Shared};
use channel::{AcceptedConnection, DetachedLink, DownReason, Event, Link, LogThrottle, driver};
use std::cell::{RefCell, RefMut};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::sleep_until;

/// How long a timer sleeps that nothing has set.
const FOR_LONG: Duration = Duration::from_secs(3600);

/// What the tasks of one shard share.
#[derive(Clone)]
pub(super) struct Context {
    shard: Rc<RefCell<Shard>>,
    shared: Arc<Shared>,
    report: StatusWriter,
    busy_poll: Rc<BusyPoll>,
}

/// A connection on its way to its switch's shard.
#[derive(Debug)]
pub(crate) struct MovedSwitch {
    link: DetachedLink,
    session: Session,
    guest: Guest,
}

/// What the runtime knows of a connection beside its session.
#[derive(Debug)]
pub(super) struct Guest {
    /// The other end, for people.
    pub(super) peer: Arc<str>,
    /// Its place at the listener, if it was accepted.
    pub(super) accepted: Option<AcceptedConnection>,
    /// The limit of lines about peers that never become switches.
    pub(super) failures: Option<Arc<Mutex<LogThrottle>>>,
    /// When the hello exchange was done.
    pub(super) up_since: Option<Instant>,
    /// Whether it belongs to a switch that is ready.
    pub(super) is_used: bool,
    /// Told at the end when the hello exchange was done, if ever.
    pub(super) ended: Option<oneshot::Sender<Option<Instant>>>,
}

/// The session of a task; it ends with the task, also when a handler panics.
struct Served {
    context: Context,
    session: Session,
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(mut shard) = self.context.shard.try_borrow_mut() {
            shard.end(&mut self.session);
        }
    }
}

impl Context {
    pub(super) fn new(
        shared: &Arc<Shared>,
        index: usize,
        apps: Vec<Box<dyn App>>,
        report: &StatusWriter,
        started: Instant,
    ) -> Self {
        let shard = Shard::of(Arc::clone(shared), index, apps, started);
        let shard = Rc::new(RefCell::new(shard));
        let busy_poll = Rc::new(BusyPoll::new(shared.busy_poll));
        Self { shard, shared: Arc::clone(shared), report: Arc::clone(report), busy_poll }
    }

    pub(super) fn shard(&self) -> RefMut<'_, Shard> {
        self.shard.borrow_mut()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Keeps the shard's thread awake after packet-ins, where that is asked for.
    pub(super) async fn poll_busily(&self) {
        self.busy_poll.run().await;
    }

    pub(super) fn report(&self, text: &str) {
        (self.report)(text);
    }

    /// Reports, unless something like it has been reported a moment ago.
    pub(super) fn report_some(&self, failures: &Mutex<LogThrottle>, text: &str) {
        let passed = failures.lock().unwrap_or_else(PoisonError::into_inner).pass(driver::now());
        match passed {
            Some(0) => self.report(text),
            Some(suppressed) => self.report(&format!("{text} ({suppressed} others suppressed)")),
            None => {}
        }
    }

    /// Serves a new connection until it is over or has gone to another shard.
    pub(super) async fn serve(self, link: Link, guest: Guest) {
        let session = self.shard().session(&guest.peer, driver::now());
        self.go_on(link, session, guest).await;
    }

    /// Serves a connection that has come from another shard.
    pub(super) fn adopt(&self, moved: MovedSwitch) {
        let MovedSwitch { link, session, guest } = moved;
        let context = self.clone();
        tokio::task::spawn_local(async move {
            match link.attach() {
                Ok(link) => context.go_on(link, session, guest).await,
                Err(error) => {
                    context.report(&format!("{}: cannot go on: {error}", guest.peer));
                }
            }
        });
    }

    async fn go_on(self, mut link: Link, session: Session, mut guest: Guest) {
        let mut served = Served { context: self.clone(), session };
        let mut timer = pin!(sleep_until((driver::now() + FOR_LONG).into()));
        self.shard().adopt(&mut served.session, link.connection(), driver::now());
        loop {
            let is_over = self.handle(&mut served.session, &mut link, &mut guest);
            if is_over {
                break;
            }
            if served.session.elsewhere().is_some() {
                return self.hand_on(link, served, guest);
            }
            let due = self.shard().next_timeout(&served.session);
            let due = due.unwrap_or_else(|| driver::now() + FOR_LONG).into();
            // Early is well enough: it is set anew then.
            if timer.deadline() > due || timer.is_elapsed() {
                timer.as_mut().reset(due);
            }
            // Of a busy connection only the first is polled; `handle` looks at the flags of the
            // others.
            tokio::select! {
                biased;
                () = link.turn() => {}
                () = woken(served.session.wakes()) => {}
                () = ordered(served.session.orders()) => {}
                () = evicted(guest.accepted.as_ref()) => {}
                () = timer.as_mut() => {}
            }
        }
        drop(served);
        link.finish().await;
        if let Some(ended) = guest.ended {
            ended.send(guest.up_since).ok();
        }
    }

    /// Hands all events of a turn to the shard; whether the connection is over.
    fn handle(&self, session: &mut Session, link: &mut Link, guest: &mut Guest) -> bool {
        let now = driver::now();
        let mut shard = self.shard();
        let packet_ins = shard.stats().packet_ins;
        let connection = link.connection();
        if guest.accepted.as_ref().is_some_and(AcceptedConnection::is_evicted) {
            connection.close();
        }
        if shard.next_timeout(session).is_some_and(|due| due <= now) {
            shard.handle_timeout(session, connection, now);
        }
        let mut is_over = false;
        while session.elsewhere().is_none()
            && let Some(event) = connection.poll_event()
        {
            match &event {
                Event::Up { .. } => {
                    if let Some(accepted) = &guest.accepted
                        && let Err(refused) = accepted.mark_up()
                    {
                        let text = format!("{}: turned away: {refused}", guest.peer);
                        self.report_about(guest, &text);
                        connection.close();
                        continue;
                    }
                    guest.up_since = Some(now);
                }
                Event::Down(_) => is_over = true,
                Event::Message { .. } | Event::Refused { .. } => {}
            }
            shard.take_event(session, connection, event, now);
        }
        shard.settle(session, connection, now);
        if shard.stats().packet_ins > packet_ins {
            self.busy_poll.packet_in(now);
        }
        // Whoever takes the lines may ask a handle.
        drop(shard);
        for outcome in session.take_outcomes() {
            guest.is_used |= matches!(
                outcome,
                Outcome::Ready { .. } | Outcome::Standby { .. } | Outcome::Auxiliary { .. }
            );
            self.report_outcome(guest, &outcome);
        }
        if let Some(accepted) = &guest.accepted {
            accepted.report(link.connection(), guest.is_used);
        }
        is_over
    }

    fn report_outcome(&self, guest: &Guest, outcome: &Outcome) {
        let is_silent = matches!(
            outcome,
            Outcome::Down { reason: DownReason::PeerClosed | DownReason::NoHello, .. }
        );
        let was_up = guest.accepted.as_ref().is_none_or(AcceptedConnection::was_up);
        let text = format!("{}: {outcome}", guest.peer);
        if was_up {
            self.report(&text);
        } else if !is_silent {
            // A peer that was silent and went is not worth a line.
            self.report_about(guest, &text);
        }
    }

    /// A line about a peer that has not become a switch.
    fn report_about(&self, guest: &Guest, text: &str) {
        match &guest.failures {
            Some(failures) => self.report_some(failures, text),
            None => self.report(text),
        }
    }

    /// Hands the connection to the shard at which its switch is at home.
    fn hand_on(&self, link: Link, mut served: Served, guest: Guest) {
        let Some(dpid) = served.session.elsewhere() else { return };
        let peer = Arc::clone(&guest.peer);
        let spare = self.shard().session("", driver::now());
        let session = std::mem::replace(&mut served.session, spare);
        let handed = match link.detach() {
            Ok(link) => {
                let moved = Box::new(MovedSwitch { link, session, guest });
                let shard = self.shared.shard_of(dpid);
                let told = self.shared.tell_shard(shard, ShardEvent::Adopt(moved));
                told.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = handed {
            self.report(&format!("{peer}: dropped: switch {dpid} cannot be handed on: {why}"));
        }
    }
}

/// Done when there is something to do that has not come from the peer.
async fn woken(entry: Option<&SwitchEntry>) {
    match entry {
        Some(entry) => entry.woken().await,
        None => std::future::pending().await,
    }
}

/// Done when the cluster may have an order.
async fn ordered(orders: Option<&OrderBox>) {
    match orders {
        Some(orders) => orders.woken().await,
        None => std::future::pending().await,
    }
}

/// Done when the connection has been evicted for another.
async fn evicted(accepted: Option<&AcceptedConnection>) {
    match accepted {
        Some(accepted) => accepted.evicted().await,
        None => std::future::pending().await,
    }
}

/// Runs a future that serves switches: whenever it is polled, the thread is marked as one that must
/// not wait for them.
pub(super) async fn run_marked<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _on_shard = OnShard::mark();
        future.as_mut().poll(cx)
    })
    .await
}
