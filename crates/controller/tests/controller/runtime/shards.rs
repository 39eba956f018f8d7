//! Several shards: who serves which switch, and what follows from it.

use super::scripted::{Scripted, run, start, until};
use channel::{Endpoint, Tls, TlsFiles, pki};
use controller::apps::Hub;
use controller::{
    App, AppList, ControllerEvent, HandleError, LinkEvent, Options, PacketIn, Switch, SwitchPort,
};
use controller::{EventError, TopologyLink};
use openflow::{DatapathId, Message, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::SystemTime;

/// The threads that have run handlers for a switch.
type Threads = Arc<Mutex<BTreeMap<DatapathId, BTreeSet<String>>>>;

/// Notes on which thread it runs, and leaves the rest to the apps after it.
struct Where(Threads);

impl Where {
    fn note(&self, dpid: DatapathId) {
        let thread: ThreadId = std::thread::current().id();
        let mut threads = self.0.lock().unwrap();
        threads.entry(dpid).or_default().insert(format!("{thread:?}"));
    }
}

impl App for Where {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.note(sw.dpid());
    }
    fn packet_in(&mut self, sw: &mut Switch, _: &PacketIn) {
        self.note(sw.dpid());
    }
    fn switch_down(&mut self, dpid: DatapathId) {
        self.note(dpid);
    }
}

fn hub_that_notes() -> (AppList, Threads) {
    let threads = Threads::default();
    let noted = threads.clone();
    (AppList::one(move || Where(noted.clone())).then(AppList::one(|| Hub)), threads)
}

fn files(dir: &Path, name: &str) -> TlsFiles {
    TlsFiles {
        private_key: dir.join(format!("{name}-privkey.pem")),
        certificate: dir.join(format!("{name}-cert.pem")),
        ca_cert: dir.join("cacert.pem"),
    }
}

#[test]
fn each_switch_has_one_thread_whatever_it_comes_by() {
    let dir = tempfile::tempdir().unwrap();
    pki::init(dir.path(), SystemTime::now()).unwrap();
    for name in ["sw", "ctl"] {
        let request = pki::CertificateRequest { name: name.into(), hosts: vec![], days: 1 };
        pki::issue(dir.path(), &request, SystemTime::now()).unwrap();
    }
    let unix = Endpoint::PassiveUnix(dir.path().join("controller.sock"));
    let (tcp, ssl) = ("ptcp:0:127.0.0.1".parse().unwrap(), "pssl:0:127.0.0.1".parse().unwrap());
    let listen = vec![tcp, ssl, unix];
    let tls = Some(files(dir.path(), "ctl"));
    let (apps, threads) = hub_that_notes();
    let (running, lines) = start(apps, Options { listen, tls, shards: 4, ..Options::default() });
    let tls = Tls::load(files(dir.path(), "sw"), false).unwrap();
    run(async {
        let mut switches = Vec::new();
        for dpid in 1..=24 {
            let endpoint = &running.endpoints()[dpid as usize % 3];
            let mut main = Scripted::connect(endpoint, Some(&tls), dpid, 0).await;
            main.ready().await;
            let mut beside = Scripted::connect(endpoint, Some(&tls), dpid, 1).await;
            beside.known().await;
            for round in 0..3_u8 {
                assert!(main.round_trip(&[round; 100]).await, "{dpid} main");
                assert!(beside.round_trip(&[round; 200]).await, "{dpid} auxiliary");
            }
            switches.push((main, beside));
        }
        let infos = running.handle().switches();
        assert_eq!(infos.len(), 24, "{:?}", lines.lock().unwrap());
        let mut per_shard = [0; 4];
        infos.iter().for_each(|info| per_shard[info.shard] += 1);
        assert!(per_shard.iter().all(|count| (4..=8).contains(count)), "{per_shard:?}");
        let mut of_shards = BTreeMap::new();
        for info in &infos {
            let threads = threads.lock().unwrap();
            let of_one = threads[&info.dpid].clone();
            assert_eq!(of_one.len(), 1, "{:?}", info.dpid);
            assert_eq!(*of_shards.entry(info.shard).or_insert(of_one.clone()), of_one);
        }
        // The link of a main connection that ends takes the auxiliary one with it.
        for (main, mut beside) in switches {
            drop(main);
            beside.until_end().await;
        }
        until("all are gone", || running.handle().switches().is_empty()).await;
    });
    let stats = running.stop().unwrap();
    assert_eq!((stats.switches, stats.packet_ins, stats.packet_outs), (0, 144, 144));
    assert!(!dir.path().join("controller.sock").exists());
}

#[test]
fn handles_reach_switches_of_every_shard() {
    let (apps, _) = hub_that_notes();
    let (running, _) = start(apps, Options { shards: 3, ..Options::default() });
    let handle = running.handle().clone();
    let endpoint = running.endpoints()[0].clone();
    let serving = std::thread::spawn(move || {
        run(async {
            let mut switches = Vec::new();
            for dpid in 1..=9 {
                let mut one = Scripted::connect(&endpoint, None, dpid, 0).await;
                one.ready().await;
                switches.push(one);
            }
            // Until the controller ends, all at once.
            let local = tokio::task::LocalSet::new();
            for mut one in switches {
                local.spawn_local(async move { one.until_end().await });
            }
            local.await;
        });
    });
    run(until("nine switches", || handle.switches().len() == 9));
    for dpid in 1..=9 {
        handle.barrier_blocking(DatapathId(dpid)).unwrap();
    }
    let nobody = DatapathId(99);
    assert_eq!(handle.barrier_blocking(nobody), Err(HandleError::NoSwitch(nobody)));
    let mut events = handle.events();
    let port = SwitchPort { dpid: DatapathId(1), port: PortNo(1) };
    handle
        .raise(ControllerEvent::Link(LinkEvent::Down(TopologyLink { from: port, to: port })))
        .unwrap();
    assert!(events.recv_blocking().is_ok());
    running.stop().unwrap();
    serving.join().unwrap();
    assert_eq!(handle.send(nobody, Message::BarrierRequest), Err(HandleError::Gone));
    let end = loop {
        if let Err(end) = events.recv_blocking() {
            break end;
        }
    };
    assert_eq!(end, EventError::Ended);
}
