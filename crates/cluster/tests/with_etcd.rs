//! Nodes of a cluster against a real etcd: claims, a dead node, hand-over, an etcd that is gone,
//! frozen, slow, restarted or has lost its data, and one that speaks TLS. The switches are of
//! paper: they grant every role that is not stale.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cluster::{
    Cluster, ClusterError, ClusterLink, ClusterOrder, ClusterSettings, EtcdPairFiles, EtcdTlsFiles,
    StateEvent,
};
use openflow::DatapathId;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testkit::{EtcdCertificates, EtcdProcess};

const WITHIN: Duration = Duration::from_secs(60);

/// A switch as its masters see it.
#[derive(Clone, Debug, Default)]
struct Paper {
    generation: u64,
    master: Option<&'static str>,
    /// The number of times that a master began without an order that the switch is set up.
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
        let settings = settings(&format!("etcd:http://{}", etcd.server()), name);
        Self::start_as(settings, name, switches, connection)
    }

    fn start_as(
        settings: ClusterSettings,
        name: &'static str,
        switches: &Switches,
        connection: u64,
    ) -> Self {
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

fn settings(address: &str, name: &str) -> ClusterSettings {
    let (address, cluster) = (address.parse().unwrap(), "test".parse().unwrap());
    let settings = ClusterSettings::new(address, cluster, name.parse().unwrap());
    let rebalance_after = Duration::from_millis(500);
    ClusterSettings { ttl: Duration::from_secs(1), rebalance_after, ..settings }
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

/// Waits until each of these nodes is master of the given number of switches, and no other of any.
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
fn with_etcd_nodes_share_switches_and_take_over_from_gone_ones() {
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
fn with_etcd_gone_nodes_stand_back_until_it_comes_back() {
    let mut etcd = EtcdProcess::start();
    let switches = switches(4);
    let _a = Node::start(&etcd, "a", &switches, 1);
    let _b = Node::start(&etcd, "b", &switches, 2);
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    // Until both know that a switch is set up (the lease's time and a second) it counts as new.
    std::thread::sleep(Duration::from_secs(4));
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
fn with_etcd_that_is_late_nodes_wait_as_does_a_second_of_a_name() {
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

/// A way to etcd on which every answer takes `delay_ms` longer.
struct SlowWay {
    port: u16,
    delay_ms: Arc<AtomicU64>,
}

impl SlowWay {
    fn to(etcd: &EtcdProcess) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (delay_ms, server) = (Arc::new(AtomicU64::new(0)), etcd.server());
        let delay = Arc::clone(&delay_ms);
        // Its threads end with the test's process, or with their connections.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else {
                    return;
                };
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let delay = Arc::clone(&delay);
                std::thread::spawn(move || carry(up, server, || {}));
                std::thread::spawn(move || {
                    carry(down, client, || {
                        std::thread::sleep(Duration::from_millis(delay.load(Ordering::Relaxed)));
                    });
                });
            }
        });
        Self { port, delay_ms }
    }

    fn set_delay_ms(&self, delay_ms: u64) {
        self.delay_ms.store(delay_ms, Ordering::Relaxed);
    }
}

/// Carries bytes one way until it ends.
fn carry(mut from: TcpStream, mut to: TcpStream, wait: impl Fn()) {
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        wait();
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other end may have gone already.
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_too_slow_for_the_lease_masters_stand_back() {
    let etcd = EtcdProcess::start();
    let way = SlowWay::to(&etcd);
    let switches = switches(4);
    let node = |name| {
        let settings = settings(&format!("etcd:http://127.0.0.1:{}", way.port), name);
        // A lease that a loaded machine does not miss by itself.
        let settings = ClusterSettings { ttl: Duration::from_secs(5), ..settings };
        Node::start_as(settings, name, &switches, 1)
    };
    let (_a, _b) = (node("a"), node("b"));
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    let before: Vec<u64> = papers(&switches).values().map(|paper| paper.generation).collect();
    way.set_delay_ms(300);
    std::thread::sleep(Duration::from_secs(8));
    let now: Vec<u64> = papers(&switches).values().map(|paper| paper.generation).collect();
    assert_eq!(before, now, "no switch changes hands while etcd answers in time");
    way.set_delay_ms(20_000);
    until_shares(&switches, &[]);
    way.set_delay_ms(0);
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    assert_eq!(set_ups(&switches), 4, "no switch is set up twice");
}

/// A certificate authority with certificates for 127.0.0.1, in the files `ca.pem`, `NAME.pem` and
/// `NAME.key`.
fn certify(folder: &Path, names: &[&str]) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    std::fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    for name in names {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_over_tls_nodes_share_switches_strangers_stay_out() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    for side in [&ours, &theirs] {
        std::fs::create_dir(side).unwrap();
        certify(side, &["etcd", "node"]);
    }
    let etcd = EtcdProcess::start_tls(EtcdCertificates {
        certificate: ours.join("etcd.pem"),
        private_key: ours.join("etcd.key"),
        ca: ours.join("ca.pem"),
    });
    let switches = switches(4);
    let files = |ca: &Path, pair: Option<&Path>| EtcdTlsFiles {
        ca: ca.join("ca.pem"),
        pair: pair.map(|side| EtcdPairFiles {
            certificate: side.join("node.pem"),
            private_key: side.join("node.key"),
        }),
    };
    let node = |name, files| {
        let settings = settings(&format!("etcd:https://{}", etcd.server()), name);
        let settings = ClusterSettings { tls: Some(files), ..settings };
        Node::start_as(settings, name, &switches, 1)
    };
    let (_a, _b) = (node("a", files(&ours, Some(&ours))), node("b", files(&ours, Some(&ours))));
    until_shares(&switches, &[("a", 2), ("b", 2)]);
    // One that believes somebody else, one that shows nothing, one with a stranger's certificate.
    let _others = [
        node("c", files(&theirs, Some(&ours))),
        node("d", files(&ours, None)),
        node("e", files(&ours, Some(&theirs))),
    ];
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(shares(&switches), BTreeMap::from([("a", 2), ("b", 2)]));
}

#[test]
fn tls_to_etcd_needs_the_files_and_the_scheme_to_agree() {
    let start = |address: &str, tls| {
        Cluster::start(ClusterSettings { tls, ..settings(address, "a") }, |_| {}).map(drop)
    };
    let files = || EtcdTlsFiles { ca: "/nowhere/ca.pem".into(), pair: None };
    let no_ca = start("etcd:https://127.0.0.1:1", None);
    assert!(matches!(no_ca, Err(ClusterError::NoCa(_))), "{no_ca:?}");
    let no_tls = start("etcd:http://127.0.0.1:1", Some(files()));
    assert!(matches!(no_tls, Err(ClusterError::NoTls(_))), "{no_tls:?}");
    let missing = start("etcd:https://127.0.0.1:1", Some(files())).unwrap_err().to_string();
    assert!(missing.starts_with("--cluster-ca /nowhere/ca.pem: "), "{missing}");
}
