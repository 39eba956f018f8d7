//! Nodes of a cluster against a real etcd: claims, a dead node, hand-over, an etcd that is gone,
//! frozen, restarted or has lost its data. The switches are of paper: they grant every role that
//! is not stale.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cluster::{Cluster, ClusterLink, ClusterOrder, ClusterSettings, StateEvent};
use openflow::DatapathId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testkit::EtcdProcess;

const WITHIN: Duration = Duration::from_secs(60);

/// A switch as its masters see it.
#[derive(Clone, Debug, Default)]
struct Paper {
    generation: u64,
    master: Option<&'static str>,
    /// How often a master began without being told that the switch is set up.
    set_ups: u32,
    stale: u32,
}

type Switches = Arc<Mutex<BTreeMap<DatapathId, Paper>>>;

struct Node {
    name: &'static str,
    cluster: Cluster,
    switches: Switches,
}

impl Node {
    fn start(etcd: &EtcdProcess, name: &'static str, switches: &Switches, connection: u64) -> Self {
        let address = format!("etcd:http://{}", etcd.server()).parse().unwrap();
        let mut settings =
            ClusterSettings::new(address, "test".parse().unwrap(), name.parse().unwrap());
        settings.ttl = Duration::from_secs(1);
        settings.rebalance_after = Duration::from_millis(500);
        let (orders, received) = std::sync::mpsc::channel();
        let order = move |order| {
            // The thread that takes them ends with the test.
            orders.send(order).ok();
        };
        let cluster = Cluster::start(settings, order).unwrap();
        let dpids: Vec<DatapathId> = switches.lock().unwrap().keys().copied().collect();
        for dpid in dpids {
            cluster.link().connected(dpid, connection, true);
        }
        let (papers, link) = (Arc::clone(switches), cluster.link().clone());
        std::thread::spawn(move || {
            while let Ok(order) = received.recv() {
                carry_out(&link, name, &papers, order);
            }
        });
        Self { name, cluster, switches: Arc::clone(switches) }
    }

    fn leave(self) {
        self.cluster.leave();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime
            .block_on(async { tokio::time::timeout(WITHIN, self.cluster.left()).await })
            .expect("the node does not leave");
        assert!(papers(&self.switches).values().all(|paper| paper.master != Some(self.name)));
    }
}

fn papers(switches: &Switches) -> MutexGuard<'_, BTreeMap<DatapathId, Paper>> {
    switches.lock().unwrap()
}

fn carry_out(cluster: &ClusterLink, name: &'static str, switches: &Switches, order: ClusterOrder) {
    let mut papers = papers(switches);
    match order {
        ClusterOrder::Serve { dpid, connection, generation, is_set_up } => {
            let paper = papers.get_mut(&dpid).unwrap();
            if generation < paper.generation {
                paper.stale += 1;
                return cluster.refused(dpid, connection, generation);
            }
            (paper.generation, paper.master) = (generation, Some(name));
            paper.set_ups += u32::from(!is_set_up);
            cluster.confirmed(dpid, connection, generation);
        }
        ClusterOrder::Stand { dpid, .. } => {
            let paper = papers.get_mut(&dpid).unwrap();
            if paper.master == Some(name) {
                paper.master = None;
            }
        }
    }
}

fn switches(count: u64) -> Switches {
    let papers = (1..=count).map(|dpid| (DatapathId(dpid), Paper::default()));
    Arc::new(Mutex::new(papers.collect()))
}

fn shares(switches: &Switches) -> BTreeMap<&'static str, usize> {
    let mut shares = BTreeMap::new();
    for master in papers(switches).values().filter_map(|paper| paper.master) {
        *shares.entry(master).or_default() += 1;
    }
    shares
}

/// Waits until each of these nodes is master of so many switches, and no other of any.
fn until_shares(switches: &Switches, expected: &[(&'static str, usize)]) {
    let expected: BTreeMap<_, _> = expected.iter().copied().collect();
    let deadline = Instant::now() + WITHIN;
    while shares(switches) != expected {
        assert!(Instant::now() < deadline, "{:?}, not {expected:?}", shares(switches));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn set_ups(switches: &Switches) -> u32 {
    papers(switches).values().map(|paper| paper.set_ups).sum()
}

const EACH_THREE: &[(&str, usize)] = &[("a", 3), ("b", 3), ("c", 3)];

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_nodes_share_the_switches_and_take_over_those_of_one_that_dies_or_leaves() {
    let etcd = EtcdProcess::start();
    let switches = switches(9);
    let start = |name| Node::start(&etcd, name, &switches, 1);
    let (a, b, c) = (start("a"), start("b"), start("c"));
    until_shares(&switches, EACH_THREE);
    assert_eq!(set_ups(&switches), 9, "each is set up once");
    let generations: Vec<u64> = papers(&switches).values().map(|it| it.generation).collect();
    a.leave();
    until_shares(&switches, &[("b", 5), ("c", 4)]);
    assert_eq!(set_ups(&switches), 9, "what is handed over is set up");
    let a = start("a");
    until_shares(&switches, EACH_THREE);
    for (paper, before) in papers(&switches).values().zip(generations) {
        assert!(paper.generation >= before);
    }
    // Without a hand-over: their keys go with their leases.
    drop((a, b));
    until_shares(&switches, &[("c", 9)]);
    drop(c);
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_gone_nodes_stand_back_when_their_lease_ends_and_come_back_with_it() {
    let mut etcd = EtcdProcess::start();
    let switches = switches(4);
    let _a = Node::start(&etcd, "a", &switches, 1);
    let _b = Node::start(&etcd, "b", &switches, 2);
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    etcd.freeze(true);
    until_shares(&switches, &[]);
    etcd.freeze(false);
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    etcd.stop();
    until_shares(&switches, &[]);
    etcd.restart();
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    assert_eq!(set_ups(&switches), 4, "no switch is set up twice");
    // A new etcd counts from one again, and the switches still know the last generation.
    etcd.stop();
    etcd.forget();
    until_shares(&switches, &[]);
    etcd.restart();
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    assert_eq!(papers(&switches).values().map(|paper| paper.stale).sum::<u32>(), 0);
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_that_comes_late_is_waited_for_and_a_second_node_of_a_name_waits_too() {
    let mut etcd = EtcdProcess::start();
    let switches = switches(2);
    etcd.stop();
    let first = Node::start(&etcd, "a", &switches, 1);
    etcd.restart();
    until_shares(&switches, &[("a", 2)]);
    let before: Vec<u64> = papers(&switches).values().map(|paper| paper.generation).collect();
    let second = Node::start(&etcd, "a", &switches, 2);
    std::thread::sleep(Duration::from_secs(2));
    let now: Vec<u64> = papers(&switches).values().map(|paper| paper.generation).collect();
    assert_eq!(before, now, "the second has no part in the cluster");
    drop(first);
    let deadline = Instant::now() + WITHIN;
    while papers(&switches).values().zip(&before).any(|(paper, old)| paper.generation == *old) {
        assert!(Instant::now() < deadline, "the second node does not take its place");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(second);
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_apps_share_state_and_see_each_others_changes() {
    let mut etcd = EtcdProcess::start();
    let none = switches(0);
    let (a, b) = (Node::start(&etcd, "a", &none, 1), Node::start(&etcd, "b", &none, 1));
    let app = "learning".parse().unwrap();
    let (mine, theirs) = (a.cluster.link().state(&app), b.cluster.link().state(&app));
    let other = a.cluster.link().state(&"other".parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let test = async {
        mine.put("host/1", "port 4").await.unwrap();
        let mut watch = theirs.watch("host/").await.unwrap();
        let first = watch.next().await.unwrap();
        let StateEvent::Put(first) = first else { panic!("{first:?}") };
        assert_eq!((first.key.as_str(), first.value.as_str()), ("host/1", "port 4"));
        assert!(!theirs.put_if("host/1", "port 5", 0).await.unwrap(), "it exists");
        assert!(theirs.put_if("host/1", "port 5", first.revision).await.unwrap());
        assert_eq!(mine.get("host/1").await.unwrap().unwrap().value, "port 5");
        assert_eq!(other.get("host/1").await.unwrap(), None, "another app's");
        let next = watch.next().await.unwrap();
        assert!(matches!(&next, StateEvent::Put(entry) if entry.value == "port 5"), "{next:?}");
        mine.put_soon("host/2", "x").unwrap();
        let next = watch.next().await.unwrap();
        assert!(matches!(&next, StateEvent::Put(entry) if entry.key == "host/2"), "{next:?}");
        assert_eq!(mine.list("").await.unwrap().len(), 2);
        assert!(mine.put("", "").await.is_err() && mine.put("a\nb", "").await.is_err());
        assert!(mine.put("k", &"x".repeat(70_000)).await.is_err());
        etcd.stop();
        assert!(mine.put("host/3", "y").await.is_err(), "there is no etcd");
        etcd.restart();
        mine.delete("host/2").await.unwrap();
        assert_eq!(watch.next().await.unwrap(), StateEvent::Delete("host/2".into()));
        drop(a);
        assert!(mine.get("host/1").await.is_err(), "its node has left");
        assert!(theirs.get("host/1").await.unwrap().is_some(), "state outlives nodes");
    };
    runtime.block_on(async { tokio::time::timeout(WITHIN, test).await }).unwrap();
}
