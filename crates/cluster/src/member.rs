//! A node of the cluster, without input and output: its view and the sessions' messages come
//! in with the time, orders to the sessions and transactions for etcd come out.
//!
//! It compares what should be in etcd with what is there, and asks for the difference, one
//! transaction at a time; so whatever is lost or refused is asked for again. It serves a switch
//! only while etcd says that it owns it and while its lease has not ended by its own clock. Two
//! nodes may disagree for a moment about who is master; the switch does not, because generation ids
//! grow in etcd's order. It must never serve a switch on a guess.

mod request;
#[cfg(test)]
mod simulation;

use crate::Sharing;
use crate::address::KeyName;
use crate::etcd::{Snapshot, TxnAnswer, WatchBatch};
use crate::view::View;
use openflow::DatapathId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) use request::Request;

/// Time that a switch that not all nodes are connected with waits for the others before it is
/// claimed: switches connect with all controllers at about the same time.
const CLAIM_DELAY: Duration = Duration::from_millis(250);
/// A switch answers a role request within this time, or another node tries.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// A node that a switch is handed over to takes it within this time.
const YIELD_WITHIN: Duration = Duration::from_secs(5);
/// A switch that refused us is not claimed again for this time.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// After a transaction that failed or changed nothing.
const RETRY: Duration = Duration::from_millis(100);
/// A node that leaves goes after this time, whatever it still has.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);

/// Bits of a base below its seconds.
const BASE_SHIFT: u32 = 24;
/// A base that is older is none of a cluster that lives.
const BASE_AGE_MAX_S: u64 = 20 * 366 * 24 * 3600;

/// An order to a session of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrder {
    /// Become the switch's master.
    Serve {
        /// The switch.
        dpid: DatapathId,
        /// The connection with it, by the number that the session gave.
        connection: u64,
        /// The generation id of the role request.
        generation: u64,
        /// Another master has set the switch up: its flow entries stand.
        is_set_up: bool,
    },
    /// Be master no longer.
    Stand {
        /// The switch.
        dpid: DatapathId,
        /// The connection with it.
        connection: u64,
    },
}

/// A lease of this node, and the key that says that the node is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its id.
    pub(crate) lease: i64,
    /// The revision that made the node's key.
    pub(crate) created: i64,
    /// When it ends, by our clock, unless it is kept alive.
    pub(crate) ends: Instant,
}

/// A switch that is connected with this node.
#[derive(Debug)]
struct Local {
    connection: u64,
    has_roles: bool,
    connected_at: Instant,
    /// The revision that told the others of this connection: what etcd has after it has happened
    /// while the switch was connected.
    reach_revision: Option<i64>,
    /// The others have been told that this node knows of a master that has set the switch up.
    says_knows: bool,
    /// A master has set it up since it connected.
    is_set_up: bool,
    /// An ownership that must end: of an earlier connection, or one that the switch refused.
    stale_owner: Option<i64>,
    unowned_since: Option<Instant>,
    claim_after: Option<Instant>,
    /// It is being handed over and must not be served any more.
    giving_until: Option<Instant>,
    mastership: Mastership,
}

/// The order that the session has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mastership {
    /// Nothing, or to stand.
    Slave,
    /// To be master; the switch has not confirmed it.
    Asked { generation: u64, since: Instant },
    /// To be master; it is.
    Serving { generation: u64 },
    /// As before: until the node that the switch is handed over to is master.
    Yielding { next: u64, until: Instant },
}

/// A node of the cluster.
pub(crate) struct Member {
    me: KeyName,
    prefix: String,
    rebalance_after: Duration,
    sharing: Sharing,
    patience: Duration,
    view: View,
    is_synced: bool,
    held: Option<Held>,
    local: BTreeMap<DatapathId, Local>,
    is_asking: bool,
    retry_at: Option<Instant>,
    leaving_since: Option<Instant>,
    /// When nodes, connections or owners changed last.
    changed_at: Instant,
    /// The base of a cluster that begins at this time.
    first_base: (u64, Instant),
    must_rejoin: bool,
    orders: Vec<ClusterOrder>,
}

impl Member {
    /// A node that knows nothing yet. `ttl` is that of its lease, `first_base` the base of a
    /// cluster that begins at `now`.
    pub(crate) fn new(
        me: KeyName,
        prefix: &str,
        ttl: Duration,
        rebalance_after: Duration,
        first_base: u64,
        now: Instant,
    ) -> Self {
        let mut view = View::new(prefix);
        view.base_min = first_base.saturating_sub(BASE_AGE_MAX_S << BASE_SHIFT);
        Self {
            me,
            prefix: prefix.into(),
            rebalance_after,
            sharing: Sharing::Even,
            // Within it a master that has lost the switch says so or loses its lease.
            patience: ttl + Duration::from_secs(1),
            view,
            is_synced: false,
            held: None,
            local: BTreeMap::new(),
            is_asking: false,
            retry_at: None,
            leaving_since: None,
            changed_at: now,
            first_base: (first_base, now),
            must_rejoin: false,
            orders: Vec::new(),
        }
    }

    /// The same with another division of the switches.
    pub(crate) fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// A switch has connected. A connection that it had before is over.
    pub(crate) fn connected(
        &mut self,
        dpid: DatapathId,
        connection: u64,
        has_roles: bool,
        now: Instant,
    ) {
        let before = self.local.get(&dpid);
        if before.is_some_and(|before| before.connection > connection) {
            return;
        }
        let stale_owner = self.own_revision(dpid);
        let local = Local {
            connection,
            has_roles,
            connected_at: now,
            reach_revision: None,
            says_knows: false,
            is_set_up: false,
            // What was owned by the old connection is claimed anew: the switch may have restarted.
            stale_owner,
            unowned_since: None,
            claim_after: None,
            giving_until: None,
            mastership: Mastership::Slave,
        };
        self.local.insert(dpid, local);
    }

    /// A connection is over.
    pub(crate) fn disconnected(&mut self, dpid: DatapathId, connection: u64) {
        if self.local.get(&dpid).is_some_and(|local| local.connection == connection) {
            self.local.remove(&dpid);
        }
    }

    /// The switch has made us its master.
    pub(crate) fn confirmed(&mut self, dpid: DatapathId, connection: u64, confirmed: u64) {
        if let Some(local) = self.local.get_mut(&dpid)
            && local.connection == connection
            && local.is_asked(confirmed)
        {
            local.mastership = Mastership::Serving { generation: confirmed };
            local.is_set_up = true;
        }
    }

    /// The switch refuses to make us its master: it knows a later one, or has another cluster.
    pub(crate) fn refused(
        &mut self,
        dpid: DatapathId,
        connection: u64,
        refused: u64,
        now: Instant,
    ) {
        let owned = self.own_revision(dpid);
        if let Some(local) = self.local.get_mut(&dpid)
            && local.connection == connection
            && local.is_asked(refused)
        {
            local.mastership = Mastership::Slave;
            local.stale_owner = owned;
            local.claim_after = Some(now + REFUSED_FOR);
        }
    }

    /// The node is in etcd, under this lease.
    pub(crate) fn joined(&mut self, held: Held) {
        self.held = Some(held);
    }

    /// The lease lives until then.
    pub(crate) fn renewed(&mut self, lease: i64, ends: Instant) {
        if let Some(held) = self.held.as_mut().filter(|held| held.lease == lease) {
            held.ends = held.ends.max(ends);
        }
    }

    /// The lease is over, and with it all that was bound to it.
    pub(crate) fn lost_lease(&mut self) {
        self.held = None;
    }

    /// All keys as they are; a watch delivers changes from now on.
    pub(crate) fn synced(&mut self, snapshot: Snapshot, now: Instant) {
        self.view.take_snapshot(snapshot);
        self.is_synced = true;
        self.changed_at = now;
    }

    /// Takes changes of the keys.
    pub(crate) fn changed(&mut self, batch: WatchBatch, now: Instant) {
        self.view.take_batch(batch);
        self.changed_at = now;
    }

    /// Changes are not told any more, until the next snapshot.
    pub(crate) fn watch_broke(&mut self) {
        self.is_synced = false;
        self.view.watch_broke();
    }

    /// The node is to hand over what it has.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.leaving_since.get_or_insert(now);
    }

    /// Whether the node may go: nothing is left that another node could have.
    pub(crate) fn has_left(&self, now: Instant) -> bool {
        let Some(since) = self.leaving_since else { return false };
        if now >= since + LEAVE_WITHIN || self.held_now(now).is_none() {
            return true;
        }
        let is_marked = self.view.nodes.get(&self.me).is_some_and(|record| record.is_leaving);
        let is_kept = |dpid: &DatapathId, local: &Local| {
            (local.mastership != Mastership::Slave || self.own_revision(*dpid).is_some())
                && self.has_other(*dpid)
        };
        is_marked && !self.local.iter().any(|(dpid, local)| is_kept(dpid, local))
    }

    /// Takes the orders to the sessions, in this order.
    pub(crate) fn take_orders(&mut self) -> Vec<ClusterOrder> {
        std::mem::take(&mut self.orders)
    }

    /// Does what is due, and gives the transaction that etcd is to carry out next, if any. Its
    /// answer comes to [`Member::answered`] before there is another.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Request> {
        let held = self.held_now(now);
        let is_seen = self.is_synced && held.is_some_and(|held| self.view.revision >= held.created);
        if is_seen && !self.is_in_view(now) {
            // Somebody has deleted the node's own key.
            self.lost_lease();
            self.must_rejoin = true;
        }
        self.decide(now);
        let may_ask = !self.is_asking
            && self.is_synced
            && self.retry_at.is_none_or(|at| at <= now)
            && self.is_in_view(now);
        if !may_ask {
            return None;
        }
        let request = self.wanted(now)?;
        self.is_asking = true;
        Some(request)
    }

    /// Whether the node needs a new lease, since etcd has lost its key.
    pub(crate) fn take_must_rejoin(&mut self) -> bool {
        std::mem::take(&mut self.must_rejoin)
    }

    /// A base above all generation ids so far.
    fn new_base(&self, now: Instant) -> u64 {
        let (first, at) = self.first_base;
        let since = now.saturating_duration_since(at).as_secs() << BASE_SHIFT;
        first.saturating_add(since).max(self.view.base.unwrap_or(0))
    }

    /// Takes the outcome of a transaction; nothing when that is not known. Gives whether the node
    /// is still a member; if not, it needs a new lease.
    pub(crate) fn answered(
        &mut self,
        request: Request,
        answer: Option<TxnAnswer>,
        now: Instant,
    ) -> bool {
        self.is_asking = false;
        self.retry_at = None;
        let Some(answer) = answer else {
            self.retry_at = Some(now + RETRY);
            return true;
        };
        if !answer.succeeded {
            self.lost_lease();
            return false;
        }
        if !self.take_answer(request, answer) {
            self.retry_at = Some(now + RETRY);
        }
        true
    }

    /// When [`Member::poll`] is due, if nothing happens before.
    pub(crate) fn next_timeout(&self, now: Instant) -> Instant {
        let is_waiting = |(dpid, local): (&DatapathId, &Local)| match local.mastership {
            Mastership::Serving { .. } => false,
            Mastership::Yielding { .. } => true,
            Mastership::Slave | Mastership::Asked { .. } => {
                self.view.owner(*dpid).is_none_or(|owner| owner.node == self.me)
            }
        };
        let Some(held) = self.held_now(now) else { return now + Duration::from_secs(1) };
        let is_busy = self.leaving_since.is_some() || self.local.iter().any(is_waiting);
        let soon = if is_busy { Duration::from_millis(50) } else { Duration::from_secs(1) };
        held.ends.min(now + soon)
    }

    /// The lease, while it lives.
    fn held_now(&self, now: Instant) -> Option<Held> {
        self.held.filter(|held| now < held.ends)
    }

    /// Whether the view has our own key: it is not older than our start.
    fn is_in_view(&self, now: Instant) -> bool {
        let record = self.view.nodes.get(&self.me);
        let held = self.held_now(now);
        record.zip(held).is_some_and(|(record, held)| record.lease == held.lease)
    }

    /// The revision of our ownership of a switch, if etcd says that it is ours.
    fn own_revision(&self, dpid: DatapathId) -> Option<i64> {
        let owner = self.view.owners.get(&dpid)?;
        let held = self.held?;
        (owner.node == self.me && owner.lease == held.lease).then_some(owner.revision)
    }

    /// Whether another node could be the switch's master.
    fn has_other(&self, dpid: DatapathId) -> bool {
        let is_other = |node: &KeyName| {
            *node != self.me && self.view.nodes.get(node).is_some_and(|record| !record.is_leaving)
        };
        self.view.reach.get(&dpid).is_some_and(|nodes| nodes.iter().any(is_other))
    }

    /// Gives the orders that follow from the view.
    fn decide(&mut self, now: Instant) {
        let held = self.held_now(now);
        let patience = self.patience;
        // The facts of an old view about others may be over for long.
        let is_fresh = self.is_synced && self.is_in_view(now);
        for (dpid, local) in &mut self.local {
            if is_fresh {
                local.notice(&self.view, *dpid, patience, now);
            }
            let owner = self.view.owners.get(dpid);
            let claim = owner.map_or(Claim::Another, |owner| {
                let Some(held) = held else { return Claim::Another };
                let Some(generation) = self.view.generation(owner) else { return Claim::Another };
                let is_own = owner.node == self.me && owner.lease == held.lease;
                if is_own && local.stale_owner != Some(owner.revision) {
                    let is_set_up = local.is_set_up
                        || owner.from.is_some() && local.is_after_connecting(owner.revision);
                    Claim::Own { generation, revision: owner.revision, is_set_up }
                } else if !is_own && owner.from.as_ref() == Some(&self.me) {
                    Claim::Given { to: generation }
                } else {
                    Claim::Another
                }
            });
            let served = self.view.served.get(dpid).map(|served| served.generation);
            self.orders.extend(local.next_order(*dpid, claim, served, now));
        }
    }
}

/// The owner of a switch, as the view has it.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// Ours.
    Own { generation: u64, revision: i64, is_set_up: bool },
    /// We have handed it over; the other node's generation id.
    Given { to: u64 },
    /// Another node's, or nobody's.
    Another,
}

impl Local {
    /// Whether the session has an order to serve under this generation id, and has not answered.
    fn is_asked(&self, asked: u64) -> bool {
        matches!(self.mastership, Mastership::Asked { generation, .. } if generation == asked)
    }

    /// Whether a revision is later than this connection.
    fn is_after_connecting(&self, revision: i64) -> bool {
        self.reach_revision.is_some_and(|reach| revision > reach)
    }

    /// Takes the view's facts about the switch.
    fn notice(&mut self, view: &View, dpid: DatapathId, patience: Duration, now: Instant) {
        let owner = view.owners.get(&dpid);
        if self.stale_owner.is_some() && self.stale_owner != owner.map(|owner| owner.revision) {
            self.stale_owner = None;
        }
        if self.stale_owner.is_none()
            && let Some(served) = view.served.get(&dpid)
        {
            let owns = owner.and_then(|owner| view.generation(owner)) == Some(served.generation);
            // A master from before may not have noticed yet that the switch has restarted.
            let is_still_served = owns && now >= self.connected_at + patience;
            self.is_set_up |= is_still_served || self.is_after_connecting(served.revision);
        }
        match view.owner(dpid) {
            None => {
                self.unowned_since.get_or_insert(now);
            }
            Some(_) => self.unowned_since = None,
        }
    }

    /// Takes the step from the session's last order to the next one. `served` is the
    /// generation id under which the switch has a master.
    fn next_order(
        &mut self,
        dpid: DatapathId,
        claim: Claim,
        served: Option<u64>,
        now: Instant,
    ) -> Option<ClusterOrder> {
        let is_giving = self.giving_until.is_some_and(|until| now < until);
        let wait = match (claim, self.mastership) {
            (_, Mastership::Slave) => true,
            (Claim::Own { .. }, _) if is_giving => false,
            (Claim::Own { .. }, _) => true,
            // The switch is served until the other node is its master.
            (Claim::Given { to }, Mastership::Serving { .. }) if served < Some(to) => {
                self.mastership = Mastership::Yielding { next: to, until: now + YIELD_WITHIN };
                true
            }
            (Claim::Given { to }, Mastership::Yielding { next, until }) => {
                to == next && served < Some(to) && now < until
            }
            (Claim::Given { .. } | Claim::Another, _) => false,
        };
        match claim {
            _ if !wait => self.stand(dpid),
            Claim::Own { generation, revision, is_set_up } if !is_giving => {
                self.order_own(dpid, generation, revision, is_set_up, now)
            }
            Claim::Own { .. } | Claim::Given { .. } | Claim::Another => None,
        }
    }

    fn stand(&mut self, dpid: DatapathId) -> Option<ClusterOrder> {
        self.mastership = Mastership::Slave;
        Some(ClusterOrder::Stand { dpid, connection: self.connection })
    }

    fn order_own(
        &mut self,
        dpid: DatapathId,
        generation: u64,
        revision: i64,
        is_set_up: bool,
        now: Instant,
    ) -> Option<ClusterOrder> {
        match self.mastership {
            Mastership::Serving { generation: ordered } if ordered == generation => None,
            Mastership::Asked { generation: ordered, since } if ordered == generation => {
                if now < since + CONFIRM_WITHIN {
                    return None;
                }
                // It is given up as if the switch had refused.
                tracing::debug!(%dpid, "the switch does not answer the role request");
                self.stale_owner = Some(revision);
                self.claim_after = Some(now + REFUSED_FOR);
                self.stand(dpid)
            }
            Mastership::Slave
            | Mastership::Asked { .. }
            | Mastership::Serving { .. }
            | Mastership::Yielding { .. } => {
                self.mastership = Mastership::Asked { generation, since: now };
                let connection = self.connection;
                Some(ClusterOrder::Serve { dpid, connection, generation, is_set_up })
            }
        }
    }
}
