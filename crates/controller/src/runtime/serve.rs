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
use crate::error::HandleError;
use crate::mastership::OrderBox;
use crate::session::{Outcome, Session};
use crate::shard::Shard;
use crate::shared::{Shared, not_sent};
use channel::{AcceptedConnection, DetachedLink, DownReason, Event, Link, LogLine, Pass, driver};
use std::cell::{RefCell, RefMut};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

/// Sleep of a timer that nothing has set.
const FOR_LONG: Duration = Duration::from_secs(3600);

/// Messages of one connection after which the others have their turn, however many it sends: those
/// of one read are taken whole.
const MESSAGES_AT_ONCE: u64 = 256;

/// The part that all tasks of one shard share.
#[derive(Clone)]
pub(super) struct Context {
    shard: Rc<RefCell<Shard>>,
    shared: Arc<Shared>,
    report: StatusWriter,
    busy_poll: Rc<BusyPoll>,
    migration_inboxes: MigrationInboxes,
}

/// The inboxes of all shards for connections whose switch is at home there.
pub(super) type MigrationInboxes = Arc<[mpsc::Sender<Box<MigratingConnection>>]>;

/// A connection on its way to its switch's shard.
#[derive(Debug)]
pub(super) struct MigratingConnection {
    link: DetachedLink,
    session: Session,
    peer_context: PeerContext,
}

/// Facts about a connection beside its session.
#[derive(Debug)]
pub(super) struct PeerContext {
    /// The other end, for people.
    pub(super) peer: Arc<str>,
    /// Its place at the listener, or among the switches that are connected to.
    pub(super) admitted: AcceptedConnection,
    /// When the hello exchange was done.
    pub(super) up_since: Option<Instant>,
    /// Whether it belongs to a switch that is ready.
    pub(super) is_used: bool,
    /// Gets at the end the time at which the hello exchange was done, if ever.
    pub(super) ended: Option<oneshot::Sender<Option<Instant>>>,
}

/// The session of a task; it ends with the task, also when a handler panics.
struct ServedSession {
    context: Context,
    session: Session,
}

impl Drop for ServedSession {
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
        migration_inboxes: &MigrationInboxes,
    ) -> Self {
        let shard = Shard::of(Arc::clone(shared), index, apps, started);
        let shard = Rc::new(RefCell::new(shard));
        let busy_poll = Rc::new(BusyPoll::new(shared.busy_poll));
        Self {
            shard,
            shared: Arc::clone(shared),
            report: Arc::clone(report),
            busy_poll,
            migration_inboxes: Arc::clone(migration_inboxes),
        }
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

    /// Reports about a peer, as far as the limits of such lines allow; whether it did.
    pub(super) fn report_peer(&self, line: LogLine, text: &str) -> bool {
        let pass = self.shared.log.pass(line, None, driver::now());
        match &pass {
            Some(Pass { suppressed: None, .. }) => self.report(text),
            Some(Pass { suppressed: Some(count), .. }) => {
                self.report(&format!("{text} suppressed={count}"));
            }
            None => {}
        }
        pass.is_some()
    }

    /// Serves a new connection until it is over or has gone to another shard.
    pub(super) async fn serve(self, link: Link, peer_context: PeerContext) {
        let session = self.shard().session(&peer_context.peer, driver::now());
        self.go_on(link, session, peer_context).await;
    }

    /// Serves a connection that has come from another shard.
    pub(super) fn adopt(&self, migrating: MigratingConnection) {
        let MigratingConnection { link, session, peer_context } = migrating;
        let context = self.clone();
        tokio::task::spawn_local(async move {
            match link.attach() {
                Ok(link) => context.go_on(link, session, peer_context).await,
                Err(error) => {
                    let text = format!("{}: cannot go on: {error}", peer_context.peer);
                    context.report_peer(LogLine::Failed, &text);
                }
            }
        });
    }

    async fn go_on(self, mut link: Link, session: Session, mut peer_context: PeerContext) {
        let mut served = ServedSession { context: self.clone(), session };
        let mut timer = pin!(sleep_until((driver::now() + FOR_LONG).into()));
        self.shard().adopt(&mut served.session, link.connection(), driver::now());
        let mut yielded_at = 0;
        loop {
            let is_over = self.handle(&mut served.session, &mut link, &mut peer_context);
            if is_over {
                break;
            }
            if served.session.migrating().is_some() {
                return self.migrate(link, served, peer_context);
            }
            let received = link.connection().counters().messages_received;
            if received >= yielded_at + MESSAGES_AT_ONCE {
                yielded_at = received;
                tokio::task::yield_now().await;
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
                () = peer_context.admitted.evicted() => {}
                () = timer.as_mut() => {}
            }
        }
        drop(served);
        link.finish().await;
        if let Some(ended) = peer_context.ended {
            ended.send(peer_context.up_since).ok();
        }
    }

    /// Hands all events of a turn to the shard; whether the connection is over.
    fn handle(
        &self,
        session: &mut Session,
        link: &mut Link,
        peer_context: &mut PeerContext,
    ) -> bool {
        let now = driver::now();
        let mut shard = self.shard();
        let packet_ins = shard.stats().packet_ins;
        let connection = link.connection();
        if peer_context.admitted.is_evicted() {
            if !connection.is_over() {
                self.report_peer(LogLine::Evicted, &evicted_text(&peer_context.peer));
            }
            connection.close();
        }
        if shard.next_timeout(session).is_some_and(|due| due <= now) {
            shard.handle_timeout(session, connection, now);
        }
        let mut is_over = false;
        while session.migrating().is_none()
            && let Some(event) = connection.poll_event()
        {
            match &event {
                Event::Up { .. } => {
                    if let Err(refused) = peer_context.admitted.mark_up() {
                        let text = format!("{}: turned away: {refused}", peer_context.peer);
                        self.report_peer(LogLine::TurnedAway, &text);
                        connection.close();
                        continue;
                    }
                    peer_context.up_since = Some(now);
                }
                Event::Down(_) => is_over = true,
                Event::Message { .. } | Event::Refused { .. } => {}
            }
            shard.take_event(session, connection, event, now);
        }
        shard.finish_turn(session, connection, now);
        if shard.stats().packet_ins > packet_ins {
            self.busy_poll.packet_in(now);
        }
        // The writer of the lines may ask a handle.
        drop(shard);
        for outcome in session.take_outcomes() {
            peer_context.is_used |= matches!(
                outcome,
                Outcome::Ready { .. } | Outcome::Standby { .. } | Outcome::Auxiliary { .. }
            );
            self.report_outcome(peer_context, &outcome);
        }
        let PeerContext { admitted, is_used, .. } = peer_context;
        admitted.report(link.connection(), *is_used, session.bytes());
        is_over
    }

    fn report_outcome(&self, peer_context: &PeerContext, outcome: &Outcome) {
        let is_silent = matches!(
            outcome,
            Outcome::Down { reason: DownReason::PeerClosed | DownReason::NoHello, .. }
        );
        let was_sought = peer_context.ended.is_some();
        if is_silent && !was_sought && !peer_context.admitted.was_up() {
            // It is not worth a line.
            return;
        }
        let text = format!("{}: {outcome}", peer_context.peer);
        let line = match outcome {
            Outcome::Down { dpid: None, .. } | Outcome::Refused(_) => LogLine::Failed,
            // The log of a cluster's node names every change of a switch's master.
            Outcome::Standby { .. } | Outcome::Master { .. } => return self.report(&text),
            Outcome::Ready { .. }
            | Outcome::Auxiliary { .. }
            | Outcome::Down { dpid: Some(_), .. }
                if self.shared.mastership().is_some() =>
            {
                return self.report(&text);
            }
            Outcome::Ready { .. } | Outcome::Auxiliary { .. } => LogLine::Connected,
            Outcome::Down { dpid: Some(_), .. } => LogLine::Disconnected,
        };
        self.report_peer(line, &text);
    }

    /// Hands the connection to the shard at which its switch is at home.
    fn migrate(&self, link: Link, mut served: ServedSession, peer_context: PeerContext) {
        let Some(dpid) = served.session.migrating() else { return };
        let peer = Arc::clone(&peer_context.peer);
        let spare = self.shard().session("", driver::now());
        let session = std::mem::replace(&mut served.session, spare);
        let migrated = match link.detach() {
            Ok(link) => {
                let migrating = Box::new(MigratingConnection { link, session, peer_context });
                let shard = self.shared.shard_of(dpid);
                let inbox = self.migration_inboxes.get(shard).ok_or(HandleError::Gone);
                let sent = inbox.and_then(|inbox| {
                    inbox.try_send(migrating).map_err(|error| not_sent(shard, &error))
                });
                sent.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = migrated {
            let text = format!("{peer}: dropped: switch {dpid} cannot be handed on: {why}");
            self.report_peer(LogLine::Failed, &text);
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

/// The line about a connection that is evicted.
pub(super) fn evicted_text(peer: &str) -> String {
    format!("{peer}: closed: the limit is reached, and it was silent, slow, idle or the largest")
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
