//! A node's view of the cluster: etcd's keys as values.
//!
//! It is filled from a snapshot, from a watch, and from the answers to our own transactions, which
//! may run ahead of the watch. Each key therefore knows the revision of its last change, and an
//! older one is passed over. It decides nothing.

use crate::address::KeyName;
use crate::etcd::{Change, KeyValue, Snapshot, WatchBatch};
use crate::keys::MemberKey;
use openflow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};

/// A node that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRecord {
    /// Its lease: what others bind keys to that they hand over to it.
    pub(crate) lease: i64,
    /// The revision that made its key: another one is another start of the node.
    pub(crate) created: i64,
    /// It hands its switches over and takes no new ones.
    pub(crate) is_leaving: bool,
}

/// The node that is to be a switch's master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The node.
    pub(crate) node: KeyName,
    /// The lease that the ownership ends with.
    pub(crate) lease: i64,
    /// The revision that made it the owner.
    pub(crate) revision: i64,
    /// The master that has handed it over; it had set the switch up.
    pub(crate) from: Option<KeyName>,
}

/// The node that is a switch's master, as the switch has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The generation id that the switch has taken.
    pub(crate) generation: u64,
    /// The revision that says so.
    pub(crate) revision: i64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    prefix: String,
    /// Changes up to this revision have been told by snapshot and watch.
    pub(crate) revision: i64,
    /// Nodes by id.
    pub(crate) nodes: BTreeMap<KeyName, NodeRecord>,
    /// The nodes that are connected with a switch.
    pub(crate) reach: BTreeMap<DatapathId, BTreeSet<KeyName>>,
    /// Those of them that know that a master has set the switch up.
    pub(crate) knows: BTreeSet<(DatapathId, KeyName)>,
    /// The nodes that are to be master, as their keys say; see [`View::owner`].
    pub(crate) owners: BTreeMap<DatapathId, Owner>,
    /// The nodes that are master.
    pub(crate) served: BTreeMap<DatapathId, Served>,
    /// The number that is added to a revision to make a generation id. It never gets less, and it
    /// stays when its key goes.
    pub(crate) base: Option<u64>,
    /// The least base that is believed.
    pub(crate) base_min: u64,
    /// The last change of the base's key, zero when there is none, where it must be written anew.
    pub(crate) wrong_base: Option<i64>,
    /// Keys whose last change our own transactions told, before the watch does.
    ahead: BTreeMap<MemberKey, i64>,
}

impl View {
    /// A view of the keys below `prefix`, empty.
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Takes all keys as they are now. What our own transactions have told since is kept.
    pub(crate) fn take_snapshot(&mut self, snapshot: Snapshot) {
        let (base, base_min) = (self.base, self.base_min);
        let mut fresh = Self { base, base_min, wrong_base: Some(0), ..Self::new(&self.prefix) };
        for kv in snapshot.keys {
            fresh.put(kv);
        }
        fresh.revision = snapshot.revision;
        // A snapshot that an answer has overtaken is of no use for the keys of that answer; it is
        // taken again by the watch behind it, which tells their changes.
        for (key, revision) in std::mem::take(&mut self.ahead) {
            if revision > snapshot.revision {
                fresh.forget(&key);
                self.copy(&key, &mut fresh);
                fresh.ahead.insert(key, revision);
            }
        }
        *self = fresh;
    }

    /// Changes are not told any more; the next snapshot is newer than all answers so far. Without
    /// this an etcd that has lost its data, and counts from one again, would not be believed.
    pub(crate) fn watch_broke(&mut self) {
        self.ahead.clear();
    }

    /// Takes the changes of a watch.
    pub(crate) fn take_batch(&mut self, batch: WatchBatch) {
        for change in batch.changes {
            let (text, revision) = match &change {
                Change::Put(kv) => (kv.key.as_str(), kv.mod_revision),
                Change::Delete(key, revision) => (key.as_str(), *revision),
            };
            let Some(key) = MemberKey::from_text(&self.prefix, text) else { continue };
            if self.ahead.get(&key).is_some_and(|known| *known > revision) {
                continue;
            }
            match change {
                Change::Put(kv) => self.put(kv),
                Change::Delete(..) => self.forget(&key),
            }
        }
        self.revision = self.revision.max(batch.revision);
        let current = self.revision;
        self.ahead.retain(|_, revision| *revision > current);
    }

    /// Takes an answer at `revision` about a key: its value, or that it does not exist.
    pub(crate) fn take_answer(&mut self, key: MemberKey, kv: Option<KeyValue>, revision: i64) {
        if revision <= self.revision || self.ahead.get(&key).is_some_and(|it| *it > revision) {
            return;
        }
        self.forget(&key);
        if let Some(kv) = kv {
            self.put(kv);
        }
        self.ahead.insert(key, revision);
    }

    /// The generation id of an owner: greater the later the switch changed hands, in etcd's order.
    pub(crate) fn generation(&self, owner: &Owner) -> Option<u64> {
        let revision = u64::try_from(owner.revision).ok()?;
        self.base?.checked_add(revision)
    }

    /// The node that is to be a switch's master. A key that is bound to no node's lease, because
    /// somebody has written it by hand, makes nobody master.
    pub(crate) fn owner(&self, dpid: DatapathId) -> Option<&Owner> {
        let is_there = |owner: &&Owner| {
            self.nodes.get(&owner.node).is_some_and(|record| record.lease == owner.lease)
        };
        self.owners.get(&dpid).filter(is_there)
    }

    /// Whether generation ids with this base are none that switches refuse: they compare ids by
    /// their signed distance.
    fn is_base(&self, base: u64) -> bool {
        i64::try_from(base).is_ok() && base >= self.base_min && self.base <= Some(base)
    }

    fn put(&mut self, kv: KeyValue) {
        match MemberKey::from_text(&self.prefix, &kv.key) {
            None => tracing::debug!(key = kv.key, "a foreign key among the cluster's"),
            Some(MemberKey::Base) => match kv.value.parse() {
                Ok(base) if self.is_base(base) => {
                    (self.base, self.wrong_base) = (Some(base), None);
                }
                Ok(_) | Err(_) => self.wrong_base = Some(kv.mod_revision),
            },
            Some(MemberKey::Node(node)) => {
                let record = NodeRecord {
                    lease: kv.lease,
                    created: kv.create_revision,
                    is_leaving: kv.value == LEAVING,
                };
                self.nodes.insert(node, record);
            }
            Some(MemberKey::Reach(dpid, node)) => {
                match kv.value == KNOWS {
                    true => self.knows.insert((dpid, node.clone())),
                    false => self.knows.remove(&(dpid, node.clone())),
                };
                self.reach.entry(dpid).or_default().insert(node);
            }
            Some(MemberKey::Owner(dpid)) => {
                let (node, from) = match kv.value.split_once(FROM) {
                    Some((node, from)) => (node, from.parse().ok()),
                    None => (kv.value.as_str(), None),
                };
                let (node, lease) = match node.parse() {
                    Ok(node) => (node, kv.lease),
                    // No node has this lease.
                    Err(_) => (KeyName::of_fine("nobody".into()), 0),
                };
                let revision = kv.mod_revision;
                self.owners.insert(dpid, Owner { node, lease, revision, from });
            }
            Some(MemberKey::Served(dpid)) => {
                self.served.remove(&dpid);
                if let Ok(generation) = kv.value.parse() {
                    self.served.insert(dpid, Served { generation, revision: kv.mod_revision });
                }
            }
        }
    }

    fn forget(&mut self, key: &MemberKey) {
        match key {
            MemberKey::Base => self.wrong_base = Some(0),
            MemberKey::Node(node) => {
                self.nodes.remove(node);
            }
            MemberKey::Reach(dpid, node) => {
                self.knows.remove(&(*dpid, node.clone()));
                if let Some(nodes) = self.reach.get_mut(dpid) {
                    nodes.remove(node);
                    if nodes.is_empty() {
                        self.reach.remove(dpid);
                    }
                }
            }
            MemberKey::Owner(dpid) => {
                self.owners.remove(dpid);
            }
            MemberKey::Served(dpid) => {
                self.served.remove(dpid);
            }
        }
    }

    /// Copies what is known of a key.
    fn copy(&self, key: &MemberKey, to: &mut Self) {
        match key {
            MemberKey::Base => (to.base, to.wrong_base) = (self.base, self.wrong_base),
            MemberKey::Node(node) => {
                to.nodes
                    .extend(self.nodes.get_key_value(node).map(|(k, v)| (k.clone(), v.clone())));
            }
            MemberKey::Reach(dpid, node) => {
                if self.reach.get(dpid).is_some_and(|nodes| nodes.contains(node)) {
                    to.reach.entry(*dpid).or_default().insert(node.clone());
                    to.knows.extend(self.knows.get(&(*dpid, node.clone())).cloned());
                }
            }
            MemberKey::Owner(dpid) => {
                to.owners.extend(self.owners.get(dpid).map(|owner| (*dpid, owner.clone())));
            }
            MemberKey::Served(dpid) => {
                to.served.extend(self.served.get(dpid).map(|served| (*dpid, *served)));
            }
        }
    }
}

/// The value of a node's key while it is there.
pub(crate) const MEMBER: &str = "member";

/// The value of a node's key while it hands its switches over.
pub(crate) const LEAVING: &str = "leaving";

/// The value of the key of a connection, once the node knows that a master has set the switch up.
pub(crate) const KNOWS: &str = "knows";

/// Between a node and the one that handed over to it.
const FROM: &str = " from ";

/// The value of an owner's key: the node, and from whom it got the switch, if it did.
pub(crate) fn owner_value(node: &KeyName, from: Option<&KeyName>) -> String {
    match from {
        Some(from) => format!("{node}{FROM}{from}"),
        None => node.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{View, owner_value};
    use crate::etcd::{Change, KeyValue, Snapshot, WatchBatch};
    use crate::keys::MemberKey;
    use openflow::DatapathId;

    const P: &str = "/p/";
    const DPID: DatapathId = DatapathId(1);

    fn kv(key: &MemberKey, value: &str, revision: i64) -> KeyValue {
        let key = key.to_text(P);
        let (create_revision, mod_revision) = (revision, revision);
        KeyValue { key, value: value.into(), create_revision, mod_revision, lease: 9 }
    }

    fn batch(revision: i64, changes: Vec<Change>) -> WatchBatch {
        WatchBatch { revision, changes }
    }

    #[test]
    fn an_answer_ahead_of_the_watch_is_not_undone_by_it() {
        let mut view = View::new(P);
        let owner = MemberKey::Owner(DPID);
        view.take_snapshot(Snapshot { revision: 10, keys: vec![kv(&owner, "a", 4)] });
        view.take_answer(owner.clone(), None, 13);
        assert!(view.owners.is_empty());
        view.take_batch(batch(12, vec![Change::Put(kv(&owner, "b", 12))]));
        assert!(view.owners.is_empty(), "the watch tells what was before");
        view.take_batch(batch(14, vec![Change::Put(kv(&owner, "c", 14))]));
        assert_eq!(view.owners[&DPID].node.as_str(), "c");
        view.take_answer(owner.clone(), None, 13);
        assert_eq!(view.owners[&DPID].node.as_str(), "c", "a late answer");
        view.take_answer(owner.clone(), Some(kv(&owner, "d from c", 15)), 15);
        assert_eq!(view.owners[&DPID].from, Some("c".parse().unwrap()));
        view.take_snapshot(Snapshot { revision: 14, keys: vec![kv(&owner, "c", 14)] });
        assert_eq!(view.owners[&DPID].node.as_str(), "d", "a late snapshot");
        view.take_snapshot(Snapshot { revision: 16, keys: vec![] });
        assert!(view.owners.is_empty());
    }

    #[test]
    fn values_that_are_none_of_ours_are_passed_over() {
        let mut view = View::new(P);
        let keys = vec![
            kv(&MemberKey::Owner(DPID), "no/node", 1),
            kv(&MemberKey::Served(DPID), "x", 1),
            kv(&MemberKey::Base, "-1", 1),
            KeyValue { key: "/p/who/knows".into(), ..KeyValue::default() },
            KeyValue { key: "/q".into(), ..KeyValue::default() },
        ];
        view.take_snapshot(Snapshot { revision: 1, keys });
        assert!(view.owner(DPID).is_none() && view.served.is_empty() && view.base.is_none());
        assert_eq!(view.wrong_base, Some(1));
    }

    #[test]
    fn generations_grow_with_the_revision_and_never_wrap() {
        let mut view = View::new(P);
        let owner = MemberKey::Owner(DPID);
        view.take_snapshot(Snapshot { revision: 9, keys: vec![kv(&owner, "a", 7)] });
        let known = view.owners[&DPID].clone();
        assert_eq!(view.generation(&known), None, "no base is known");
        view.take_answer(MemberKey::Base, Some(kv(&MemberKey::Base, "100", 10)), 10);
        assert_eq!(view.generation(&known), Some(107));
        view.base = Some(u64::MAX);
        assert_eq!(view.generation(&known), None);
    }

    #[test]
    fn an_owner_says_from_whom_it_got_the_switch() {
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        assert_eq!(owner_value(&a, None), "a");
        assert_eq!(owner_value(&b, Some(&a)), "b from a");
    }
}
