//! Peers of every bad kind, and apps that misbehave: others are served meanwhile.

use super::scripted::{Scripted, run, start, until};
use channel::Endpoint;
use controller::apps::Hub;
use controller::{
    App, AppList, Error, Handle, HandleError, MessageBatch, Options, PacketIn, Running, Switch,
};
use openflow::message::PacketOut;
use openflow::{Action, DatapathId, Message, PortNo};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn hub() -> AppList {
    AppList::one(|| Hub)
}

async fn raw(endpoint: &Endpoint) -> TcpStream {
    let Endpoint::Tcp { host, port } = endpoint else { panic!("{endpoint}") };
    TcpStream::connect((host.as_str(), *port)).await.unwrap()
}

/// A switch that says who it is and then reads nothing any more.
async fn deaf(running: &Running, dpid: u64) -> Scripted {
    let mut switch = Scripted::connect(&running.endpoints()[0], None, dpid, 0).await;
    switch.ready().await;
    switch
}

fn big_packet_out() -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo::FLOOD)],
        data: vec![0; 60_000],
    })
}

#[test]
fn a_switch_that_does_not_read_costs_its_bound_and_nothing_else() {
    let options = || Options {
        shards: 2,
        answer_deadline: Duration::from_secs(3),
        probe_after: None,
        ..Options::default()
    };
    let (running, _) = start(hub(), options());
    let handle = running.handle().clone();
    run(async {
        let unread = deaf(&running, 1).await;
        let mut other = deaf(&running, 2).await;
        let dpid = DatapathId(1);
        let mut sent = 0_usize;
        let refused = loop {
            match handle.send(dpid, big_packet_out()) {
                Ok(()) => sent += 60_000,
                Err(error) => break error,
            }
            // What the system and the controller hold for one peer, with room to spare.
            assert!(sent < 64 << 20, "no bound");
            tokio::task::yield_now().await;
        };
        assert_eq!(refused, HandleError::Full(dpid));
        for round in 0..20_u8 {
            assert!(other.round_trip(&[round; 100]).await);
        }
        assert!(handle.stats().commands_full >= 1);
        // What waits is given up after the deadline, so that a caller that waits for room learns
        // it.
        let outcome = handle.apply(dpid, vec![big_packet_out()]).await;
        let is_given_up = matches!(outcome, Err(HandleError::Silent(_) | HandleError::NoSwitch(_)));
        assert!(is_given_up, "{outcome:?}");
        drop(unread);
    });
    running.stop().unwrap();
}

#[test]
fn each_message_of_a_batch_that_finds_the_queue_full_counts() {
    let options = Options {
        answer_deadline: Duration::from_secs(600),
        probe_after: None,
        ..Options::default()
    };
    let (running, _) = start(hub(), options);
    let handle = running.handle().clone();
    run(async {
        let unread = deaf(&running, 1).await;
        let dpid = DatapathId(1);
        let mut batch = MessageBatch::new(handle.switch(dpid).unwrap().version);
        for _ in 0..3 {
            batch.push(&big_packet_out()).unwrap();
        }
        let mut sent = 0_usize;
        let refused = loop {
            match handle.send_batch(dpid, batch.clone()) {
                Ok(()) => sent += batch.bytes(),
                Err(error) => break error,
            }
            assert!(sent < 64 << 20, "no bound");
            tokio::task::yield_now().await;
        };
        assert_eq!(refused, HandleError::Full(dpid));
        assert_eq!(handle.stats().commands_full, 3);
        drop(unread);
    });
    running.stop().unwrap();
}

#[test]
fn packet_ins_of_a_switch_that_never_reads_are_dropped_counted() {
    let (running, _) = start(hub(), Options { probe_after: None, ..Options::default() });
    run(async {
        let mut unread = raw(&running.endpoints()[0]).await;
        unread.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
        // Hello and features request come first; the answer takes the request's xid.
        let mut seen = vec![0; 1024];
        let mut length = 0;
        let request = loop {
            length += unread.read(&mut seen[length..]).await.unwrap();
            let mut rest = &seen[..length];
            let mut found = None;
            while let [_, kind, high, low, at @ ..] = rest
                && at.len() >= 4
            {
                if *kind == 5 {
                    found = Some([at[0], at[1], at[2], at[3]]);
                }
                let length = usize::from(*high) << 8 | usize::from(*low);
                rest = rest.get(length..).unwrap_or_default();
            }
            if let Some(xid) = found {
                break xid;
            }
        };
        let mut features = vec![4, 6, 0, 32];
        features.extend(request);
        features.extend([0, 0, 0, 0, 0, 0, 0, 9]);
        features.resize(32, 0);
        unread.write_all(&features).await.unwrap();
        // The question for the ports is refused, with whatever xid; it is ready all the same.
        let mut length = 0;
        let request = loop {
            length += unread.read(&mut seen[length..]).await.unwrap();
            let at = seen[..length].windows(2).position(|pair| pair == [4, 18]);
            if let Some(xid) = at.and_then(|at| seen.get(at + 4..at + 8)) {
                break [xid[0], xid[1], xid[2], xid[3]];
            }
        };
        let mut ports = vec![4, 19, 0, 16];
        ports.extend(request);
        ports.extend([0, 13, 0, 0, 0, 0, 0, 0]);
        unread.write_all(&ports).await.unwrap();
        let handle = running.handle().clone();
        until("it is ready", || handle.switch(DatapathId(9)).is_some()).await;
        let xid = openflow::Xid(0);
        let packet_in = super::scripted::packet_in(&[0; 1400]);
        let frames = wire::encode(openflow::Version::V1_3, xid, &packet_in).unwrap().repeat(64);
        while handle.stats().packet_ins_dropped == 0 {
            unread.write_all(&frames).await.unwrap();
        }
        assert_eq!(handle.switches().len(), 1, "it stays connected");
    });
    running.stop().unwrap();
}

#[test]
fn garbage_and_half_open_connections_keep_no_switch_out() {
    let (running, lines) = start(hub(), Options { shards: 2, ..Options::default() });
    let endpoint = running.endpoints()[0].clone();
    run(async {
        let mut kept = Vec::new();
        for number in 0..600_u32 {
            let mut peer = raw(&endpoint).await;
            // Each in its own way: silence, half a hello, another protocol, a hello and rubbish.
            let bytes: &[u8] = match number % 4 {
                0 => &[],
                1 => &[4, 0, 0, 16, 0],
                2 => b"GET / HTTP/1.1\r\n\r\n",
                _ => &[4, 0, 0, 8, 0, 0, 0, 1, 4, 10, 0, 3, 0xff, 0xff],
            };
            // The controller may have ended it already.
            drop(peer.write_all(bytes).await);
            kept.push(peer);
        }
        let mut switch = deaf(&running, 5).await;
        assert!(switch.round_trip(b"served").await);
        assert!(lines.lock().unwrap().len() < 100, "the log is not theirs");
    });
    running.stop().unwrap();
}

#[test]
fn peers_that_come_and_fail_are_a_few_lines_of_log() {
    let (running, lines) = start(hub(), Options { shards: 2, ..Options::default() });
    let endpoint = running.endpoints()[0].clone();
    run(async {
        // A hello, and a length that is none; the controller ends it.
        let failing: &[u8] = &[4, 0, 0, 8, 0, 0, 0, 1, 4, 10, 0, 3, 0, 0, 0, 2];
        for round in 0..200 {
            let mut peer = raw(&endpoint).await;
            drop(peer.write_all(failing).await);
            drop(peer.read_to_end(&mut Vec::new()).await);
            if round < 30 {
                drop(deaf(&running, 1 + round % 2).await);
            }
        }
        until("all have gone", || running.handle().switches().is_empty()).await;
    });
    running.stop().unwrap();
    let lines = lines.lock().unwrap();
    for kind in ["is ready", "is down", "dropped: "] {
        let of_kind: Vec<_> = lines.iter().filter(|line| line.contains(kind)).collect();
        // A few at once, and then one in ten seconds.
        assert!((1..30).contains(&of_kind.len()), "{kind}: {of_kind:#?}");
    }
}

#[test]
fn a_datapath_id_that_comes_again_and_again_has_one_connection() {
    let (running, _) = start(hub(), Options { shards: 3, ..Options::default() });
    let endpoint = running.endpoints()[0].clone();
    run(async {
        let mut other = deaf(&running, 2).await;
        let mut before: Option<Scripted> = None;
        for round in 0..50_u8 {
            let mut next = Scripted::connect(&endpoint, None, 1, 0).await;
            next.ready().await;
            assert!(next.round_trip(&[round; 64]).await);
            assert_eq!(running.handle().switches().len(), 2);
            if let Some(mut before) = before.replace(next) {
                before.until_end().await;
            }
        }
        assert!(other.round_trip(b"undisturbed").await);
        drop(before);
        until("one is left", || running.handle().switches().len() == 1).await;
        // Flapping: up and away at once.
        for _ in 0..50 {
            drop(deaf(&running, 1).await);
        }
        until("one is left", || running.handle().switches().len() == 1).await;
        assert!(other.round_trip(b"undisturbed").await);
    });
    assert_eq!(running.stop().unwrap().switches, 0);
}

/// Panics when a switch says so.
struct Fragile;

impl App for Fragile {
    fn packet_in(&mut self, _: &mut Switch, packet_in: &PacketIn) {
        assert!(packet_in.data != b"panic", "as the switch says");
    }
}

#[test]
fn a_handler_that_panics_ends_the_connection_it_was_about() {
    let apps = AppList::one(|| Fragile).then(hub());
    let (running, _) = start(apps, Options { shards: 2, ..Options::default() });
    run(async {
        let (mut one, mut two) = (deaf(&running, 1).await, deaf(&running, 3).await);
        let mut three = deaf(&running, 2).await;
        assert!(!one.round_trip(b"panic").await, "it is the end");
        until("it is gone", || running.handle().switch(DatapathId(1)).is_none()).await;
        assert!(two.round_trip(b"well").await && three.round_trip(b"well").await);
        let mut again = deaf(&running, 1).await;
        assert!(again.round_trip(b"well").await);
    });
    running.stop().unwrap();
}

/// Waits for a switch in a handler, which must not be.
struct Waiting(Option<Handle>);

impl App for Waiting {
    fn started(&mut self, handle: &Handle) {
        self.0 = Some(handle.clone());
    }
    fn packet_in(&mut self, sw: &mut Switch, _: &PacketIn) {
        let handle = self.0.as_ref().unwrap();
        assert_eq!(handle.barrier_blocking(sw.dpid()), Err(HandleError::WouldBlock));
    }
}

#[test]
fn a_handler_that_would_wait_for_its_own_thread_gets_an_error() {
    let apps = AppList::one(|| Waiting(None)).then(hub());
    let (running, _) = start(apps, Options { shards: 2, ..Options::default() });
    run(async {
        for dpid in 1..5 {
            assert!(deaf(&running, dpid).await.round_trip(b"wait").await);
        }
    });
    running.stop().unwrap();
}

/// Does not return from a handler until it is let go.
#[derive(Clone, Default)]
struct Hanging {
    is_free: Arc<(Mutex<bool>, Condvar)>,
}

impl Hanging {
    fn let_go(&self) {
        *self.is_free.0.lock().unwrap() = true;
        self.is_free.1.notify_all();
    }
}

impl App for Hanging {
    fn packet_in(&mut self, _: &mut Switch, packet_in: &PacketIn) {
        if packet_in.data == b"hang" {
            let is_free = self.is_free.0.lock().unwrap();
            drop(self.is_free.1.wait_while(is_free, |is_free| !*is_free).unwrap());
        }
    }
}

/// A controller with that app before a hub.
fn with_hanging(shards: usize) -> (Running, super::scripted::Lines, Hanging) {
    let hanging = Hanging::default();
    let made = hanging.clone();
    let apps = AppList::one(move || made.clone()).then(hub());
    let answer_deadline = Duration::from_secs(3);
    let options = Options { shards, answer_deadline, probe_after: None, ..Options::default() };
    let (running, lines) = start(apps, options);
    (running, lines, hanging)
}

/// A switch at home at each of the shards.
async fn one_of_each_shard(running: &Running, shards: usize) -> BTreeMap<usize, (u64, Scripted)> {
    let mut found = BTreeMap::new();
    for dpid in 1..100 {
        let switch = deaf(running, dpid).await;
        let handle = running.handle();
        until("it is ready", || handle.switch(DatapathId(dpid)).is_some()).await;
        found.insert(handle.switch(DatapathId(dpid)).unwrap().shard, (dpid, switch));
        if found.len() == shards {
            return found;
        }
    }
    panic!("99 switches are at home at {} shards", found.len());
}

/// Has the app hang, until the log says so.
async fn hang(switch: &mut Scripted, is_reported: impl FnMut() -> bool) {
    let packet_in = super::scripted::packet_in(b"hang");
    switch.connection().send_as(openflow::Xid(0), &packet_in).unwrap();
    tokio::select! {
        () = switch.until_end() => panic!("its connection stays"),
        () = until("the log names the app", is_reported) => {}
    }
}

#[test]
fn a_handler_that_hangs_blocks_its_shard_alone_and_is_named() {
    let (running, lines, hanging) = with_hanging(3);
    let handle = running.handle().clone();
    run(async {
        let mut switches = one_of_each_shard(&running, 3).await;
        let (blocked, mut switch) = switches.remove(&0).unwrap();
        let has_line = |what: &str| lines.lock().unwrap().iter().any(|line| line.contains(what));
        let line = format!("a handler of Hanging for switch {:016x} has not ret", blocked);
        hang(&mut switch, || has_line(&line)).await;
        // Who waits for one of its switches is told so.
        let asked = handle.barrier(DatapathId(blocked)).await;
        assert_eq!(asked, Err(HandleError::Blocked(DatapathId(blocked))));
        let applied = handle.apply(DatapathId(blocked), vec![big_packet_out()]).await;
        assert_eq!(applied, Err(HandleError::Blocked(DatapathId(blocked))));
        // The others are served, and so are new ones, which somebody has to greet.
        for (dpid, other) in switches.values_mut() {
            assert!(other.round_trip(b"well").await, "{dpid}");
            let mut again = deaf(&running, *dpid).await;
            assert!(again.round_trip(b"well").await, "{dpid}");
        }
        hanging.let_go();
        until("the log says that it goes on", || has_line("the handler of Hanging has ret")).await;
        assert!(switch.round_trip(b"well").await);
    });
    running.stop().unwrap();
}

#[test]
fn a_controller_whose_handler_hangs_can_be_ended() {
    for shards in [1, 2] {
        let (running, lines, hanging) = with_hanging(shards);
        run(async {
            let (_, (_, switch)) = &mut one_of_each_shard(&running, 1).await.pop_first().unwrap();
            let is_reported = || lines.lock().unwrap().iter().any(|line| line.contains("Hanging"));
            hang(switch, is_reported).await;
        });
        let (ended, has_ended) = mpsc::channel();
        std::thread::spawn(move || ended.send(running.stop()));
        let ended = has_ended.recv_timeout(super::scripted::DEADLINE).expect("it never ends");
        assert!(matches!(ended, Err(Error::Blocked)), "{ended:?}");
        hanging.let_go();
    }
}
