//! Members, switches and a store in virtual time, with seeded faults: nodes die and come back,
//! switches restart, answers are lost, the store is away, watches break. Whatever happens, two
//! masters never have one generation id, and when the faults are over every switch has one master
//! that the switch agrees with.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{ClusterOrder, Held, Member, Request};
use crate::etcd::{Change, Compare, KeyValue, Op, OpAnswer, Snapshot, Txn, TxnAnswer, WatchBatch};
use crate::keys::MemberKey;
use crate::view::MEMBER;
use openflow::DatapathId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

const P: &str = "/p/";
const TTL: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);
const FIRST_BASE: u64 = 1_700_000_000 << 24;

/// The part of etcd that members need, in memory.
#[derive(Default)]
struct Store {
    revision: i64,
    keys: BTreeMap<String, KeyValue>,
    history: Vec<Change>,
    leases: BTreeMap<i64, Instant>,
    next_lease: i64,
}

impl Store {
    fn holds(&self, compare: &Compare) -> bool {
        let of = |key: &str| self.keys.get(key).cloned().unwrap_or_default();
        match compare {
            Compare::Created(key, revision) => of(key).create_revision == *revision,
            Compare::Written(key, revision) => of(key).mod_revision == *revision,
        }
    }

    fn txn(&mut self, txn: &Txn) -> TxnAnswer {
        let revision = self.revision + 1;
        let answer = self.apply(txn, revision);
        if self.history.last().is_some_and(|change| change.revision() == revision) {
            self.revision = revision;
        }
        TxnAnswer { revision: self.revision, ..answer }
    }

    fn apply(&mut self, txn: &Txn, revision: i64) -> TxnAnswer {
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        let mut ops = Vec::new();
        for op in if succeeded { &txn.success } else { &txn.failure } {
            ops.push(match op {
                Op::Put { key, value, lease } => {
                    assert!(*lease == 0 || self.leases.contains_key(lease), "a lease that is over");
                    let before = self.keys.get(key).map(|kv| kv.create_revision);
                    let kv = KeyValue {
                        key: key.clone(),
                        value: value.clone(),
                        create_revision: before.unwrap_or(revision),
                        mod_revision: revision,
                        lease: *lease,
                    };
                    self.history.push(Change::Put(kv.clone()));
                    self.keys.insert(key.clone(), kv);
                    OpAnswer::Done
                }
                Op::Delete(key) => {
                    if self.keys.remove(key).is_some() {
                        self.history.push(Change::Delete(key.clone(), revision));
                    }
                    OpAnswer::Done
                }
                Op::Get(key) => OpAnswer::Got(self.keys.get(key).cloned()),
                Op::Txn(inner) => OpAnswer::Txn(self.apply(inner, revision)),
            });
        }
        TxnAnswer { revision: 0, succeeded, ops }
    }

    fn expire(&mut self, now: Instant) {
        let over: Vec<i64> =
            self.leases.iter().filter(|(_, ends)| **ends <= now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|lease| self.end(lease));
    }

    fn end(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let bound: Vec<String> =
            self.keys.values().filter(|kv| kv.lease == lease).map(|kv| kv.key.clone()).collect();
        if !bound.is_empty() {
            self.revision += 1;
            for key in bound {
                self.keys.remove(&key);
                self.history.push(Change::Delete(key, self.revision));
            }
        }
    }
}

struct Node {
    member: Member,
    name: String,
    lease: Option<i64>,
    renew_at: Instant,
    /// The part of the history that has been delivered.
    delivered: Option<usize>,
    watch_lag: usize,
    asked: Option<(Instant, Request, Option<TxnAnswer>)>,
    roles: VecDeque<(Instant, ClusterOrder)>,
    is_away: bool,
}

#[derive(Default)]
struct SwitchModel {
    starts: u64,
    generation: Option<u64>,
    /// Node and its connection.
    master: Option<(String, u64)>,
    has_flows: bool,
    links: BTreeMap<String, u64>,
}

struct World {
    now: Instant,
    random: fastrand::Rng,
    store: Store,
    nodes: BTreeMap<String, Node>,
    switches: BTreeMap<DatapathId, SwitchModel>,
    connections: u64,
    /// The node that was asked to serve under a generation.
    generations: BTreeMap<(DatapathId, u64), String>,
    wiped: u64,
    has_roles: bool,
    faults: bool,
}

impl World {
    fn new(seed: u64, nodes: &[&str], switches: u64) -> Self {
        let mut world = Self {
            now: Instant::now(),
            random: fastrand::Rng::with_seed(seed),
            store: Store::default(),
            nodes: BTreeMap::new(),
            switches: BTreeMap::new(),
            connections: 0,
            generations: BTreeMap::new(),
            wiped: 0,
            has_roles: true,
            faults: false,
        };
        let base = Op::Put { key: format!("{P}base"), value: FIRST_BASE.to_string(), lease: 0 };
        world.store.txn(&Txn { success: vec![base], ..Txn::default() });
        nodes.iter().for_each(|name| world.start(name));
        for dpid in 1..=switches {
            world.switches.insert(DatapathId(dpid), SwitchModel::default());
        }
        world
    }

    fn start(&mut self, name: &str) {
        let rebalance = Duration::from_secs(1);
        let member = Member::new(name.parse().unwrap(), P, TTL, rebalance, FIRST_BASE, self.now);
        let node = Node {
            member,
            name: name.into(),
            lease: None,
            renew_at: self.now,
            delivered: None,
            watch_lag: 0,
            asked: None,
            roles: VecDeque::new(),
            is_away: false,
        };
        self.nodes.insert(name.into(), node);
    }

    fn kill(&mut self, name: &str) {
        self.nodes.remove(name);
        for switch in self.switches.values_mut() {
            switch.links.remove(name);
            if switch.master.as_ref().is_some_and(|(master, _)| master == name) {
                switch.master = None;
            }
        }
    }

    fn restart_switch(&mut self, dpid: DatapathId) {
        let switch = self.switches.get_mut(&dpid).unwrap();
        let links = std::mem::take(&mut switch.links);
        *switch = SwitchModel { starts: switch.starts + 1, ..SwitchModel::default() };
        for (name, connection) in links {
            if let Some(node) = self.nodes.get_mut(&name) {
                node.member.disconnected(dpid, connection);
            }
        }
    }

    /// Switches connect with the nodes that they are not connected with.
    fn connect(&mut self) {
        for (dpid, switch) in &mut self.switches {
            for (name, node) in &mut self.nodes {
                if !switch.links.contains_key(name) && self.random.u8(0..20) == 0 {
                    self.connections += 1;
                    switch.links.insert(name.clone(), self.connections);
                    node.member.connected(*dpid, self.connections, self.has_roles, self.now);
                }
            }
        }
    }

    fn renew(&mut self) {
        for node in self.nodes.values_mut() {
            if node.is_away || node.renew_at > self.now {
                continue;
            }
            node.renew_at = self.now + TTL / 4;
            let ends = self.now + TTL;
            if let Some(lease) = node.lease {
                match self.store.leases.get_mut(&lease) {
                    Some(until) => {
                        *until = ends;
                        node.member.renewed(lease, ends);
                    }
                    None => {
                        node.lease = None;
                        node.member.lost_lease();
                    }
                }
                continue;
            }
            let key = MemberKey::Node(node.name.parse().unwrap()).to_text(P);
            if self.store.keys.contains_key(&key) {
                continue;
            }
            self.store.next_lease += 1;
            let lease = self.store.next_lease;
            self.store.leases.insert(lease, ends);
            let put = Op::Put { key, value: MEMBER.into(), lease };
            let created = self.store.txn(&Txn { success: vec![put], ..Txn::default() }).revision;
            node.lease = Some(lease);
            node.member.joined(Held { lease, created, ends });
        }
    }

    fn deliver(&mut self) {
        for node in self.nodes.values_mut().filter(|node| !node.is_away) {
            let Some(delivered) = node.delivered else {
                let keys = self.store.keys.values().cloned().collect();
                let snapshot = Snapshot { revision: self.store.revision, keys };
                node.member.synced(snapshot, self.now);
                node.delivered = Some(self.store.history.len());
                continue;
            };
            node.watch_lag = self.random.usize(0..3);
            let changes: Vec<Change> = self.store.history[delivered..].to_vec();
            let until = changes.len().saturating_sub(node.watch_lag);
            // A revision is told whole.
            let cut = changes.get(until).map(Change::revision);
            let changes: Vec<Change> =
                changes.into_iter().take_while(|change| Some(change.revision()) != cut).collect();
            if let Some(last) = changes.last() {
                node.delivered = Some(delivered + changes.len());
                let batch = WatchBatch { revision: last.revision(), changes };
                node.member.changed(batch, self.now);
            }
        }
    }

    fn work(&mut self) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            let node = self.nodes.get_mut(&name).unwrap();
            if node.asked.as_ref().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, request, answer) = node.asked.take().unwrap();
                if !node.member.answered(request, answer, self.now) {
                    self.store.end(node.lease.take().unwrap_or_default());
                }
            }
            if let Some(request) = node.member.poll(self.now) {
                let mut answer = None;
                if !node.is_away {
                    let is_live = node.lease.is_some_and(|it| self.store.leases.contains_key(&it));
                    if is_live {
                        answer = Some(self.store.txn(&request.txn));
                    }
                    if self.faults && self.random.u8(0..20) == 0 {
                        answer = None;
                    }
                }
                let delay = STEP * self.random.u32(1..10);
                node.asked = Some((self.now + delay, request, answer));
            }
            if node.member.take_must_rejoin() {
                self.store.end(node.lease.take().unwrap_or_default());
            }
            for order in node.member.take_orders() {
                let delay = STEP * self.random.u32(0..5);
                let after = node.roles.back().map_or(self.now, |(at, _)| *at);
                node.roles.push_back((after.max(self.now + delay), order));
            }
            while self.nodes[&name].roles.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, order) = self.nodes.get_mut(&name).unwrap().roles.pop_front().unwrap();
                self.carry_out(&name, order);
            }
        }
    }

    /// A session carries an order out: what the switch says comes back.
    fn carry_out(&mut self, name: &str, order: ClusterOrder) {
        let ClusterOrder::Serve { dpid, connection, generation, is_set_up } = order else { return };
        let before = self.generations.insert((dpid, generation), name.into());
        assert!(before.is_none_or(|before| before == name), "two masters, one generation");
        let switch = self.switches.get_mut(&dpid).unwrap();
        if switch.links.get(name) != Some(&connection) {
            return;
        }
        let node = self.nodes.get_mut(name).unwrap();
        let is_stale = |known: u64| (generation.wrapping_sub(known) as i64) < 0;
        if switch.generation.is_some_and(is_stale) {
            return node.member.refused(dpid, connection, generation, self.now);
        }
        switch.generation = Some(generation);
        switch.master = Some((name.into(), connection));
        assert!(!is_set_up || switch.has_flows, "{dpid} would never be set up");
        if !is_set_up {
            self.wiped += u64::from(switch.has_flows);
            switch.has_flows = true;
        }
        node.member.confirmed(dpid, connection, generation);
    }

    fn disturb(&mut self, all: &[&str]) {
        let name = all[self.random.usize(0..all.len())];
        match self.random.u32(0..700) {
            0 => self.kill(name),
            1 | 2 if !self.nodes.contains_key(name) => self.start(name),
            3 => {
                let dpid = DatapathId(self.random.u64(1..=self.switches.len() as u64));
                self.restart_switch(dpid);
            }
            4 | 5 => {
                if let Some(node) = self.nodes.get_mut(name) {
                    node.is_away = !node.is_away;
                }
            }
            6 | 7 => {
                if let Some(node) = self.nodes.get_mut(name) {
                    node.delivered = None;
                    node.member.watch_broke();
                }
            }
            8 => {
                let dpid = DatapathId(self.random.u64(1..=self.switches.len() as u64));
                let switch = self.switches.get_mut(&dpid).unwrap();
                if let Some(connection) = switch.links.remove(name) {
                    if switch.master.as_ref().is_some_and(|(master, _)| master == name) {
                        switch.master = None;
                    }
                    if let Some(node) = self.nodes.get_mut(name) {
                        node.member.disconnected(dpid, connection);
                    }
                }
            }
            _ => {}
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        self.store.expire(self.now);
        self.connect();
        self.renew();
        self.deliver();
        self.work();
    }

    /// Every switch has a master that it agrees with, and the nodes have equal shares.
    fn check(&self) {
        let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
        for (dpid, switch) in &self.switches {
            let (master, connection) = switch.master.as_ref().expect("a master");
            assert!(switch.has_flows, "{dpid} is not set up");
            assert_eq!(switch.links.get(master), Some(connection), "{dpid}");
            for (name, node) in &self.nodes {
                let is_serving = matches!(
                    node.member.local[dpid].mastership,
                    super::Mastership::Serving { generation }
                        if Some(generation) == switch.generation
                );
                assert_eq!(is_serving, name == master, "{dpid} on {name}");
            }
            *shares.entry(master).or_default() += 1;
        }
        let most = shares.values().max().copied().unwrap_or(0);
        let least = self.nodes.keys().map(|name| shares.get(name.as_str()).copied().unwrap_or(0));
        assert!(most - least.min().unwrap() <= 1, "{shares:?}");
    }

    fn masters(&self) -> BTreeSet<&str> {
        let masters = self.switches.values().filter_map(|switch| switch.master.as_ref());
        masters.map(|(name, _)| name.as_str()).collect()
    }
}

const ALL: &[&str] = &["a", "b", "c"];
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(8);

#[test]
fn switches_are_shared_and_change_hands_when_a_lease_has_ended() {
    let mut world = World::new(1, ALL, 9);
    world.run(LONG);
    world.check();
    assert_eq!(world.wiped, 0);
    world.kill("a");
    let died = world.now;
    while world.switches.values().any(|switch| switch.master.is_none()) {
        world.step();
        assert!(world.now < died + LONG, "no new master");
    }
    assert!(world.now - died <= TTL + Duration::from_millis(500), "{:?}", world.now - died);
    world.run(LONG);
    world.check();
    assert_eq!(world.wiped, 0, "flow entries stand when a master dies");
    world.start("a");
    world.run(LONG);
    world.check();
    assert_eq!(world.masters(), BTreeSet::from(["a", "b", "c"]), "the load is balanced again");
    assert_eq!(world.wiped, 0);
}

#[test]
fn leaving_node_hands_over_first_and_no_switch_lacks_a_master() {
    let mut world = World::new(2, ALL, 9);
    world.run(LONG);
    for name in ["a", "b", "c"] {
        let now = world.now;
        world.nodes.get_mut(name).unwrap().member.leave(now);
        while !world.nodes[name].member.has_left(world.now) {
            world.step();
            assert!(world.switches.values().all(|switch| switch.master.is_some()));
            assert!(world.now < now + Duration::from_secs(5), "{name} does not come to an end");
        }
        assert!(!world.masters().contains(name));
        world.kill(name);
        world.start(name);
        world.run(LONG);
        world.check();
    }
    assert_eq!(world.wiped, 0, "flow entries stand");
}

#[test]
fn a_node_that_has_just_come_takes_no_switch_that_others_know() {
    for seed in 0..3 {
        let mut world = World::new(seed, ALL, 9);
        world.run(SHORT);
        world.kill("a");
        world.run(SHORT);
        world.start("a");
        // It is connected with all switches, and cannot know yet that they are set up.
        world.run(Duration::from_secs(2));
        world.kill("b");
        world.run(SHORT);
        world.start("b");
        world.run(SHORT);
        world.check();
        assert_eq!(world.wiped, 0, "seed {seed}: flow entries stand");
    }
}

/// People delete keys, and write what is none of a cluster's.
#[test]
fn keys_that_somebody_spoils_cost_no_switch_its_master() {
    let owner = MemberKey::Owner(DatapathId(1)).to_text(P);
    let served = MemberKey::Served(DatapathId(1)).to_text(P);
    let node = MemberKey::Node("a".parse().unwrap()).to_text(P);
    let base = format!("{P}base");
    let max = u64::MAX.to_string();
    for (key, value, is_served_meanwhile) in [
        (&base, Some("x"), true),
        (&base, Some("5"), true),
        (&base, Some(max.as_str()), true),
        (&base, None, true),
        (&owner, Some("no/node"), false),
        (&owner, Some("z"), false),
        (&owner, Some("a"), false),
        (&owner, None, false),
        (&served, Some("x"), true),
        (&served, None, true),
        (&node, None, false),
    ] {
        let mut world = World::new(5, ALL, 4);
        world.run(SHORT);
        let op = match value {
            Some(value) => Op::Put { key: key.clone(), value: value.into(), lease: 0 },
            None => Op::Delete(key.clone()),
        };
        world.store.txn(&Txn { success: vec![op], ..Txn::default() });
        for _ in 0..300 {
            world.step();
            let masters = world.switches.values().filter(|switch| switch.master.is_some()).count();
            assert!(masters == 4 || !is_served_meanwhile, "{key} {value:?}");
        }
        // A node that starts now knows nothing of what was there.
        world.kill("b");
        world.start("b");
        world.run(SHORT);
        world.check();
        assert_eq!(world.wiped, 0, "{key} {value:?}: flow entries stand");
    }
}

#[test]
fn without_the_store_masters_stay_until_their_lease_ends() {
    let mut world = World::new(3, ALL, 6);
    world.run(LONG);
    let serving = |world: &World| -> usize {
        let of = |node: &Node| {
            let locals = node.member.local.values();
            locals.filter(|local| local.mastership != super::Mastership::Slave).count()
        };
        world.nodes.values().map(of).sum()
    };
    assert_eq!(serving(&world), 6);
    world.nodes.values_mut().for_each(|node| node.is_away = true);
    world.run(TTL / 2 - STEP);
    assert_eq!(serving(&world), 6, "the lease lives");
    world.run(TTL);
    assert_eq!(serving(&world), 0, "the lease has ended");
    world.nodes.values_mut().for_each(|node| node.is_away = false);
    world.run(LONG);
    world.check();
    assert_eq!(world.wiped, 0, "no switch is set up twice");
}

#[test]
fn switches_without_roles_have_one_master_too() {
    let mut world = World::new(4, ALL, 7);
    world.has_roles = false;
    world.run(LONG);
    world.check();
    let now = world.now;
    world.nodes.get_mut("b").unwrap().member.leave(now);
    world.run(Duration::from_secs(5));
    assert!(world.nodes["b"].member.has_left(world.now) && !world.masters().contains("b"));
}

#[test]
fn whatever_goes_wrong_there_is_one_master_when_it_is_over() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut world = World::new(seed, ALL, 8);
        world.faults = true;
        for _ in 0..6_000 {
            world.disturb(ALL);
            world.step();
        }
        world.faults = false;
        world.nodes.values_mut().for_each(|node| node.is_away = false);
        for name in ALL {
            if !world.nodes.contains_key(*name) {
                world.start(name);
            }
        }
        world.run(LONG);
        world.check();
    }
}
