//! The controller's sessions against scripted switches, in virtual time and over faulty links.

use channel::memory::{Cut, Direction, Faults, Pair, Peer};
use channel::{Connection, ConnectionSettings, Event, Side};
use controller::apps::Hub;
use controller::{App, Options, Outcome, PacketIn, Session, Shard, Switch};
use openflow::message::{Features, MultipartReply, MultipartReplyBody, PacketInReason, PacketOut};
use openflow::port::PortDesc;
use openflow::{
    Cookie, DatapathId, Field, Match, Message, MessageKind, PortNo, TableId, Version, Xid,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The controller's side of one link.
struct ControllerSide {
    shard: Rc<RefCell<Shard>>,
    session: Session,
    connection: Connection,
    outcomes: Vec<Outcome>,
}

impl ControllerSide {
    fn new(shard: &Rc<RefCell<Shard>>, now: Instant) -> Self {
        let session = shard.borrow().session("simulated", now);
        let connection = Connection::new(ConnectionSettings::new(Side::Controller), now);
        Self { shard: shard.clone(), session, connection, outcomes: Vec::new() }
    }
}

impl Peer for ControllerSide {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn take_event(&mut self, event: Event, now: Instant) {
        let mut shard = self.shard.borrow_mut();
        shard.take_event(&mut self.session, &mut self.connection, event, now);
        shard.finish_turn(&mut self.session, &mut self.connection, now);
        self.outcomes.extend(self.session.take_outcomes());
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let of_shard = self.shard.borrow().next_timeout(&self.session);
        [self.connection.next_timeout(), of_shard].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        let mut shard = self.shard.borrow_mut();
        shard.handle_timeout(&mut self.session, &mut self.connection, now);
        shard.finish_turn(&mut self.session, &mut self.connection, now);
        self.outcomes.extend(self.session.take_outcomes());
    }
}

/// A switch that answers what a controller must ask, and sends packet-ins when it is asked for a
/// barrier.
struct ScriptedSwitch {
    connection: Connection,
    dpid: DatapathId,
    packet_ins: usize,
    answers_features: bool,
    seen: Vec<MessageKind>,
    packet_outs: Vec<PacketOut>,
}

impl ScriptedSwitch {
    fn new(versions: &[Version], packet_ins: usize, now: Instant) -> Self {
        let settings = ConnectionSettings::new(Side::Switch).with_versions(versions);
        Self {
            connection: Connection::new(settings, now),
            dpid: DatapathId(42),
            packet_ins,
            answers_features: true,
            seen: Vec::new(),
            packet_outs: Vec::new(),
        }
    }

    fn ports() -> Vec<PortDesc> {
        (1..=3).map(|n| PortDesc { port_no: PortNo(n), ..PortDesc::default() }).collect()
    }

    fn answer(&mut self, xid: Xid, message: Message) {
        let version = self.connection.version().expect("it is up");
        self.seen.push(message.kind());
        match message {
            Message::FeaturesRequest if self.answers_features => {
                let ports = if version == Version::V1_0 { Self::ports() } else { vec![] };
                let features = Features { datapath_id: self.dpid, ports, ..Features::default() };
                self.send(xid, Message::FeaturesReply(features));
            }
            Message::MultipartRequest(_) => {
                for (more, ports) in [(true, Self::ports()), (false, vec![])] {
                    let body = MultipartReplyBody::PortDesc(ports);
                    self.send(xid, Message::MultipartReply(MultipartReply { more, body }));
                }
            }
            Message::FlowMod(_) => {
                for number in 0..std::mem::take(&mut self.packet_ins) {
                    self.send(Xid(0), packet_in(number));
                }
            }
            Message::PacketOut(packet_out) => self.packet_outs.push(packet_out),
            _ => {}
        }
    }

    fn send(&mut self, xid: Xid, message: Message) {
        self.connection.send_as(xid, &message).expect("it is up");
    }
}

impl Peer for ScriptedSwitch {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn take_event(&mut self, event: Event, _: Instant) {
        if let Event::Message { xid, message } = event {
            self.answer(xid, message);
        }
    }
}

fn packet_in(number: usize) -> Message {
    let data = number.to_be_bytes().repeat(10);
    Message::PacketIn(PacketIn {
        buffer_id: None,
        total_len: 80,
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        matching: Match::any().with(Field::InPort, 2),
        data,
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    })
}

fn hub(now: Instant) -> Rc<RefCell<Shard>> {
    Rc::new(RefCell::new(Shard::new(vec![Box::new(Hub)], &Options::default(), now)))
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn hub_answers_every_packet_in_both_versions_however_fragmented() {
    for seed in 0..20 {
        for (versions, version) in [
            (&[Version::V1_0][..], Version::V1_0),
            (&[Version::V1_3], Version::V1_3),
            (Version::ALL, Version::V1_3),
        ] {
            let now = Instant::now();
            let shard = hub(now);
            let switch = ScriptedSwitch::new(versions, 300, now);
            let side = ControllerSide::new(&shard, now);
            let mut pair = Pair::new(side, switch, Faults::fragments(seed), now);
            pair.run(s(300));
            let dpid = DatapathId(42);
            assert_eq!(pair.a.outcomes, [Outcome::Ready { dpid, version, ports: 3 }]);
            let outs = &pair.b.packet_outs;
            assert_eq!(outs.len(), 300);
            for (number, out) in outs.iter().enumerate() {
                assert_eq!(
                    Message::PacketIn(PacketIn { data: out.data.clone(), ..the(0) }),
                    packet_in(number)
                );
                assert_eq!(out.in_port, PortNo(2));
            }
            let set_config = pair.b.seen.iter().filter(|kind| **kind == MessageKind::SetConfig);
            assert_eq!(set_config.count(), 1);
            let stats = *shard.borrow().stats();
            assert_eq!((stats.switches, stats.packet_ins, stats.packet_outs), (1, 300, 300));
        }
    }
}

fn the(number: usize) -> PacketIn {
    match packet_in(number) {
        Message::PacketIn(packet_in) => packet_in,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whatever_the_link_does_the_controller_goes_on() {
    let now = Instant::now();
    let shard = hub(now);
    for seed in 0..600 {
        let direction = if seed % 2 == 0 { Direction::AToB } else { Direction::BToA };
        let cut = [Cut::Silence, Cut::Close, Cut::Invert][seed as usize / 2 % 3];
        let faults = Faults { cut: Some((direction, seed * 7, cut)), ..Faults::fragments(seed) };
        let switch = ScriptedSwitch::new(Version::ALL, 20, now);
        let mut pair = Pair::new(ControllerSide::new(&shard, now), switch, faults, now);
        pair.run(s(120));
        pair.b.connection.close();
        pair.run(s(60));
        assert!(pair.a.connection.is_over(), "seed {seed} {cut:?}");
    }
    assert_eq!(shard.borrow().stats().switches, 0, "none is left behind");
}

#[test]
fn a_switch_that_does_not_send_its_features_is_dropped() {
    let now = Instant::now();
    let shard = hub(now);
    let mut switch = ScriptedSwitch::new(Version::ALL, 0, now);
    switch.answers_features = false;
    let side = ControllerSide::new(&shard, now);
    let mut pair = Pair::new(side, switch, Faults::fragments(1), now);
    pair.run(s(14));
    assert!(pair.a.outcomes.is_empty());
    pair.run(s(2));
    assert!(matches!(&pair.a.outcomes[..], [Outcome::Refused(why)] if why.contains("in time")));
    assert!(pair.b.connection.is_over());
}

/// Notes what happens to it.
#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl App for Log {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.0.lock().unwrap().push(format!("ready {}", sw.dpid()));
        sw.barrier();
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.0.lock().unwrap().push(format!("down {dpid}"));
    }

    fn tick(&mut self, sw: &mut Switch) {
        self.0.lock().unwrap().push(format!("tick {:?}", sw.now().as_secs()));
    }
}

#[test]
fn a_switch_that_comes_again_replaces_its_old_connection() {
    let now = Instant::now();
    let log = Arc::new(Mutex::new(Vec::new()));
    let shard = Shard::new(vec![Box::new(Log(log.clone()))], &Options::default(), now);
    let shard = Rc::new(RefCell::new(shard));
    let join = |seed| {
        let switch = ScriptedSwitch::new(Version::ALL, 0, now);
        let side = ControllerSide::new(&shard, now);
        Pair::new(side, switch, Faults::fragments(seed), now)
    };
    let mut first = join(1);
    first.run(Duration::from_millis(900));
    let mut second = join(2);
    second.run(Duration::from_millis(900));
    let dpid = DatapathId(42);
    let expected = [format!("ready {dpid}"), format!("down {dpid}"), format!("ready {dpid}")];
    assert_eq!(*log.lock().unwrap(), expected);
    first.run(s(5));
    assert!(first.a.connection.is_over(), "the old one is given up");
    assert_eq!(*log.lock().unwrap(), expected, "and the app does not hear of it twice");
    assert_eq!(shard.borrow().stats().switches, 1);
    second.run(s(3));
    assert!(log.lock().unwrap().iter().skip(3).all(|line| line.starts_with("tick")));
    second.b.connection.close();
    second.run(s(1));
    assert_eq!(log.lock().unwrap().last(), Some(&format!("down {dpid}")));
    assert_eq!(shard.borrow().stats().switches, 0);
}
