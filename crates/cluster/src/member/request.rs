//! The transactions of a node: what should be in etcd and is not, as parts of one transaction.
//!
//! The whole holds only while the node's own key is there, so a node that etcd has given up changes
//! nothing. Each part has conditions of its own and tells what is there when they do not hold. What
//! an answer says goes into the view at once; the watch will say the same.

use super::{CLAIM_DELAY, Held, Local, Mastership, Member, YIELD_WITHIN};
use crate::address::KeyName;
use crate::etcd::{Compare, KeyValue, Op, OpAnswer, Txn, TxnAnswer};
use crate::keys::MemberKey;
use crate::plan::Plan;
use crate::view::{KNOWS, LEAVING, owner_value};
use openflow::DatapathId;
use std::time::Instant;

/// Parts of one transaction; etcd takes 128 steps.
const PARTS_MAX: usize = 64;
/// Switches that are handed over together for the sake of balance.
const MOVES_MAX: usize = 16;

/// A transaction, and what its answer means.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) txn: Txn,
    parts: Vec<Part>,
}

/// A part of a transaction.
#[derive(Debug, Default)]
struct Part {
    compare: Vec<Compare>,
    /// Keys that are written, or deleted.
    writes: Vec<(MemberKey, Option<KeyValue>)>,
    /// Keys that are read when the conditions do not hold.
    reads: Vec<MemberKey>,
    /// A switch whose hand-over this is.
    gives: Option<DatapathId>,
    /// A switch, and the connection of it that this shows to the others.
    presents: Option<(DatapathId, u64)>,
    /// The same, where this says that the switch is known.
    knows: Option<(DatapathId, u64)>,
}

impl Part {
    fn to_op(&self, prefix: &str) -> Op {
        let write = |(key, kv): &(MemberKey, Option<KeyValue>)| match kv {
            Some(kv) => Op::Put { key: kv.key.clone(), value: kv.value.clone(), lease: kv.lease },
            None => Op::Delete(key.to_text(prefix)),
        };
        Op::Txn(Txn {
            compare: self.compare.clone(),
            success: self.writes.iter().map(write).collect(),
            failure: self.reads.iter().map(|key| Op::Get(key.to_text(prefix))).collect(),
        })
    }
}

impl Member {
    /// The next transaction, if etcd does not have what it should.
    pub(super) fn wanted(&mut self, now: Instant) -> Option<Request> {
        let held = self.held_now(now)?;
        let mut parts = Vec::new();
        self.want_base(&mut parts, now);
        self.want_presence(held, &mut parts);
        self.want_releases(held, &mut parts);
        self.want_served(held, &mut parts);
        if parts.len() < PARTS_MAX {
            let plan = Plan::of(&self.view, self.sharing);
            if self.leaving_since.is_none() {
                self.want_claims(held, &plan, &mut parts, now);
            }
            self.want_hand_overs(&plan, &mut parts, now);
        }
        parts.truncate(PARTS_MAX);
        if parts.is_empty() {
            return None;
        }
        self.begin_giving(&parts, now);
        let own = MemberKey::Node(self.me.clone()).to_text(&self.prefix);
        let txn = Txn {
            compare: vec![Compare::Created(own, held.created)],
            success: parts.iter().map(|part| part.to_op(&self.prefix)).collect(),
            failure: Vec::new(),
        };
        Some(Request { txn, parts })
    }

    fn put(&self, key: MemberKey, value: String, lease: i64) -> (MemberKey, Option<KeyValue>) {
        let text = key.to_text(&self.prefix);
        (key, Some(KeyValue { key: text, value, lease, ..KeyValue::default() }))
    }

    /// A base where there is none, or one that would take every switch from its master.
    fn want_base(&self, parts: &mut Vec<Part>, now: Instant) {
        let Some(revision) = self.view.wrong_base else { return };
        let (key, base) = (MemberKey::Base, self.new_base(now));
        let text = key.to_text(&self.prefix);
        tracing::warn!(key = text, base, "the key was deleted or changed by hand; written anew");
        parts.push(Part {
            compare: vec![Compare::Written(text, revision)],
            writes: vec![self.put(key.clone(), base.to_string(), 0)],
            reads: vec![key],
            ..Part::default()
        });
    }

    /// The node's presence, and the switches that are connected.
    fn want_presence(&self, held: Held, parts: &mut Vec<Part>) {
        let is_marked = self.view.nodes.get(&self.me).is_some_and(|record| record.is_leaving);
        if self.leaving_since.is_some() && !is_marked {
            let mut mark = self.put(MemberKey::Node(self.me.clone()), LEAVING.into(), held.lease);
            if let Some(kv) = &mut mark.1 {
                kv.create_revision = held.created;
            }
            parts.push(Part { writes: vec![mark], ..Part::default() });
        }
        let is_written = |dpid: &DatapathId| {
            self.view.reach.get(dpid).is_some_and(|nodes| nodes.contains(&self.me))
        };
        let reach = |dpid: DatapathId| MemberKey::Reach(dpid, self.me.clone());
        for (dpid, local) in &self.local {
            // Each connection anew: what etcd has after it happened to this one.
            if local.reach_revision.is_none() || !is_written(dpid) {
                let writes = vec![self.put(reach(*dpid), String::new(), held.lease)];
                let presents = Some((*dpid, local.connection));
                parts.push(Part { writes, presents, ..Part::default() });
            } else if local.is_set_up && !local.says_knows {
                let writes = vec![self.put(reach(*dpid), KNOWS.into(), held.lease)];
                let knows = Some((*dpid, local.connection));
                parts.push(Part { writes, knows, ..Part::default() });
            }
        }
        for dpid in self.view.reach.keys().filter(|dpid| is_written(dpid)) {
            if !self.local.contains_key(dpid) {
                parts.push(Part { writes: vec![(reach(*dpid), None)], ..Part::default() });
            }
        }
    }

    /// Ownerships that must end: the switch is not connected any more, or refuses us, or this node
    /// leaves before it has become master.
    fn want_releases(&self, held: Held, parts: &mut Vec<Part>) {
        for (dpid, owner) in &self.view.owners {
            if owner.node != self.me || owner.lease != held.lease {
                continue;
            }
            let ends = match self.local.get(dpid) {
                None => true,
                Some(local) => {
                    let is_slave = local.mastership == Mastership::Slave;
                    local.stale_owner == Some(owner.revision)
                        || is_slave && self.leaving_since.is_some() && local.giving_until.is_none()
                }
            };
            if ends {
                let key = MemberKey::Owner(*dpid);
                parts.push(Part {
                    compare: vec![Compare::Written(key.to_text(&self.prefix), owner.revision)],
                    writes: vec![(key.clone(), None), (MemberKey::Served(*dpid), None)],
                    reads: vec![key],
                    ..Part::default()
                });
            }
        }
    }

    /// That the switches have made us their master.
    fn want_served(&self, held: Held, parts: &mut Vec<Part>) {
        for (dpid, local) in &self.local {
            let Mastership::Serving { generation } = local.mastership else { continue };
            let Some(owner) = self.view.owners.get(dpid) else { continue };
            let is_written =
                self.view.served.get(dpid).is_some_and(|served| served.generation == generation);
            if is_written || self.view.generation(owner) != Some(generation) {
                continue;
            }
            let key = MemberKey::Owner(*dpid);
            let write = self.put(MemberKey::Served(*dpid), generation.to_string(), held.lease);
            parts.push(Part {
                compare: vec![Compare::Written(key.to_text(&self.prefix), owner.revision)],
                writes: vec![write],
                reads: vec![key],
                ..Part::default()
            });
        }
    }

    /// Switches without an owner that the plan gives us.
    fn want_claims(&self, held: Held, plan: &Plan, parts: &mut Vec<Part>, now: Instant) {
        let staying: usize = self.view.nodes.values().filter(|node| !node.is_leaving).count();
        for (dpid, local) in &self.local {
            let is_planned = plan.targets.get(dpid) == Some(&self.me);
            if !is_planned || self.view.owner(*dpid).is_some() || !local.may_claim(now) {
                continue;
            }
            let is_seen_by_all =
                self.view.reach.get(dpid).is_some_and(|nodes| nodes.len() >= staying);
            let has_waited = local.unowned_since.is_some_and(|since| now >= since + CLAIM_DELAY);
            if is_seen_by_all || has_waited {
                let key = MemberKey::Owner(*dpid);
                let value = owner_value(&self.me, None);
                let written = self.view.owners.get(dpid).map_or(0, |owner| owner.revision);
                parts.push(Part {
                    compare: vec![Compare::Written(key.to_text(&self.prefix), written)],
                    // A master that handed over to a node which died may have left its mark.
                    writes: vec![
                        self.put(key.clone(), value, held.lease),
                        (MemberKey::Served(*dpid), None),
                    ],
                    reads: vec![key],
                    ..Part::default()
                });
            }
        }
    }

    /// Switches that the plan gives to another node.
    fn want_hand_overs(&self, plan: &Plan, parts: &mut Vec<Part>, now: Instant) {
        let is_settled = now >= self.changed_at + self.rebalance_after;
        let most = match (self.leaving_since, is_settled) {
            (Some(_), _) => PARTS_MAX,
            (None, true) => MOVES_MAX,
            (None, false) => return,
        };
        let serving = self.local.iter().filter(|(_, local)| {
            matches!(local.mastership, Mastership::Serving { .. }) && local.giving_until.is_none()
        });
        let gives = serving.filter_map(|(dpid, _)| self.hand_over(*dpid, plan.targets.get(dpid)?));
        parts.extend(gives.take(most));
    }

    fn hand_over(&self, dpid: DatapathId, to: &KeyName) -> Option<Part> {
        let revision = self.own_revision(dpid)?;
        if *to == self.me {
            return None;
        }
        let record = self.view.nodes.get(to)?;
        let (owner, node) = (MemberKey::Owner(dpid), MemberKey::Node(to.clone()));
        let value = owner_value(to, Some(&self.me));
        Some(Part {
            compare: vec![
                Compare::Written(owner.to_text(&self.prefix), revision),
                Compare::Created(node.to_text(&self.prefix), record.created),
            ],
            // Bound to the other node's lease: from now on it is as if that node had claimed it.
            writes: vec![self.put(owner.clone(), value, record.lease)],
            reads: vec![owner, node],
            gives: Some(dpid),
            ..Part::default()
        })
    }

    /// Switches without roles cannot learn of their master: they are not served from the moment
    /// when they are given away.
    fn begin_giving(&mut self, parts: &[Part], now: Instant) {
        for dpid in parts.iter().filter_map(|part| part.gives) {
            if let Some(local) = self.local.get_mut(&dpid)
                && !local.has_roles
            {
                local.giving_until = Some(now + YIELD_WITHIN);
            }
        }
        self.decide(now);
    }

    /// Takes the answers to all parts; whether any of them has changed something.
    pub(super) fn take_answer(&mut self, request: Request, answer: TxnAnswer) -> bool {
        let mut has_changed = false;
        let revision = answer.revision;
        for (part, op) in request.parts.into_iter().zip(answer.ops) {
            let OpAnswer::Txn(inner) = op else { continue };
            let gives = part.gives;
            if inner.succeeded {
                has_changed = true;
                if let Some((dpid, connection)) = part.presents
                    && let Some(local) = self.local.get_mut(&dpid)
                    && local.connection == connection
                {
                    local.reach_revision = Some(revision);
                    local.says_knows = false;
                }
                if let Some((dpid, connection)) = part.knows
                    && let Some(local) = self.local.get_mut(&dpid)
                    && local.connection == connection
                {
                    local.says_knows = true;
                }
                for (key, kv) in part.writes {
                    let kv = kv.map(|kv| written(kv, revision));
                    self.view.take_answer(key, kv, revision);
                }
            } else {
                for (key, op) in part.reads.into_iter().zip(inner.ops) {
                    if let OpAnswer::Got(kv) = op {
                        self.view.take_answer(key, kv, revision);
                    }
                }
            }
            if let Some(local) = gives.and_then(|dpid| self.local.get_mut(&dpid)) {
                local.giving_until = None;
            }
        }
        has_changed
    }
}

impl Local {
    fn may_claim(&self, now: Instant) -> bool {
        self.claim_after.is_none_or(|after| after <= now) && self.stale_owner.is_none()
    }
}

/// A key as a transaction at `revision` has left it.
fn written(kv: KeyValue, revision: i64) -> KeyValue {
    let create_revision = if kv.create_revision == 0 { revision } else { kv.create_revision };
    KeyValue { create_revision, mod_revision: revision, ..kv }
}
