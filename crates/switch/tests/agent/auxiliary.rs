//! Auxiliary connections (clause 6.3.6), and what becomes of packets when no controller is there
//! (clause 6.3.3).

use std::os::unix::net::{UnixListener, UnixStream};

use openflow::message::{ControllerRole, MultipartRequestBody, Role};
use openflow::{Action, Error, Field, Match, Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, add_flow, frame, packet_out, until};

/// A controller that waits for the switch, and the switch's lines for it.
struct Waiting {
    listener: UnixListener,
    toml: String,
    _dir: tempfile::TempDir,
}

impl Waiting {
    fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("controller");
        let listener = UnixListener::bind(&path).unwrap();
        let path = path.display();
        let toml = format!("controller = [\"unix:{path}\"]\nmax-backoff = 1\n{more}");
        Self { listener, toml, _dir: dir }
    }

    fn accept(&self) -> UnixStream {
        self.listener.accept().unwrap().0
    }

    fn greet(&self, version: Version) -> Controller {
        Controller::greet(self.accept(), version)
    }
}

fn auxiliary_id(controller: &mut Controller) -> u8 {
    match controller.request(&Message::FeaturesRequest) {
        Message::FeaturesReply(features) => features.auxiliary_id,
        other => panic!("{other:?}"),
    }
}

/// A frame of another flow for each number.
fn flow(number: u8) -> Vec<u8> {
    let mut frame = frame(1);
    frame[11] = number;
    frame
}

#[test]
fn they_follow_the_main_connection_and_carry_packet_ins() {
    let waiting = Waiting::new("auxiliary = 2");
    let switch = Switch::start(1, &waiting.toml);
    let mut host = switch.host(1);
    let mut main = waiting.greet(Version::V1_3);
    let mut beside = [waiting.greet(Version::V1_3), waiting.greet(Version::V1_3)];
    assert_eq!(auxiliary_id(&mut main), 0);
    let mut ids = beside.each_mut().map(auxiliary_id);
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    // A request is answered where it came from, and a barrier is of its connection.
    beside[0].send(&add_flow(1, Match::any(), vec![Action::output(PortNo::CONTROLLER)]));
    beside[0].barrier();
    let body = beside[1].multipart(MultipartRequestBody::PortDesc);
    assert!(format!("{body:?}").starts_with("PortDesc"));
    // Every packet of a flow comes by one connection, and both are used.
    for number in 0..64 {
        host.send(&flow(number / 2));
    }
    until("all packet-ins are sent", || (switch.counter("packet_in") == 64).then_some(()));
    let flows = beside.each_mut().map(packets_so_far);
    let [mut a, mut b] = flows.clone();
    a.dedup();
    b.dedup();
    assert_eq!(flows.map(|flows| flows.len()).iter().sum::<usize>(), 64);
    assert_eq!(a.len() + b.len(), 32, "no flow goes both ways: {a:?} {b:?}");
    assert!(!a.is_empty() && !b.is_empty());
    assert!(packets_so_far(&mut main).is_empty());
}

/// The flows of the packet-ins that have come.
fn packets_so_far(controller: &mut Controller) -> Vec<u8> {
    controller.send(&Message::EchoRequest(b"end".to_vec()));
    let mut flows = Vec::new();
    loop {
        match controller.next() {
            (_, Message::PacketIn(packet)) => flows.push(packet.data[11]),
            (_, Message::EchoReply(_)) => return flows,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn they_have_their_controller_s_role_and_end_with_it() {
    let waiting = Waiting::new("auxiliary = 1");
    let switch = Switch::start(1, &waiting.toml);
    let mut main = waiting.greet(Version::V1_3);
    let mut beside = waiting.greet(Version::V1_3);
    let slave = Role { role: ControllerRole::Slave, generation_id: 1 };
    assert_eq!(main.request(&Message::RoleRequest(slave)), Message::RoleReply(slave));
    beside.refused(&add_flow(1, Match::any(), Vec::new()), Error::BadRequestIsSlave);
    // One that is lost comes again beside the same main connection.
    drop(beside);
    let mut beside = waiting.greet(Version::V1_3);
    assert_eq!(auxiliary_id(&mut beside), 1);
    drop(main);
    beside.closed();
    let mut main = waiting.greet(Version::V1_3);
    assert_eq!(auxiliary_id(&mut main), 0, "the main connection comes first");
    assert_eq!(auxiliary_id(&mut waiting.greet(Version::V1_3)), 1);
    switch.stop();
}

#[test]
fn a_controller_of_1_0_gets_none() {
    let waiting = Waiting::new("auxiliary = 2");
    let switch = Switch::start(1, &waiting.toml);
    let mut main = waiting.greet(Version::V1_0);
    main.barrier();
    waiting.listener.set_nonblocking(true).unwrap();
    main.send(&Message::EchoRequest(Vec::new()));
    main.next();
    assert!(waiting.listener.accept().is_err());
    switch.stop();
}

/// Whether a frame from one host reaches the other.
fn forwards(from: &mut Host, to: &mut Host, number: u8) -> bool {
    to.received();
    from.send(&frame(number));
    let end = std::time::Instant::now() + std::time::Duration::from_millis(100);
    while std::time::Instant::now() < end {
        if to.received() > 0 {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}

#[test]
fn a_standalone_switch_forwards_without_its_controller() {
    let waiting = Waiting::new("fail-mode = \"standalone\"\ninactivity-probe = 1");
    let listener = &waiting.listener;
    let switch = Switch::start(2, &waiting.toml);
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    // Nobody says hello yet.
    until("it forwards by itself", || forwards(&mut a, &mut b, 1).then_some(()));
    let silent = listener.accept().unwrap().0;
    let mut controller = Controller::greet(silent, Version::V1_3);
    controller.barrier();
    until("the controller's tables are empty", || {
        let out = switch.ctl(&["dump-flows", "--json"]);
        out.is_empty().then_some(())
    });
    controller.send(&add_flow(0, Match::any(), vec![Action::output(PortNo::IN_PORT)]));
    controller.send(&packet_out(PortNo(2), frame(7)));
    controller.barrier();
    // What it had forwarded by itself came before.
    while b.receive() != frame(7) {}
    a.send(&frame(2));
    assert_eq!(a.receive(), frame(2), "the controller's entry holds");
    // So many that they are deleted in pieces.
    for number in 0..5_000 {
        let matching = Match::any().with(Field::EthDst, (0xfe_0000_0000_u64 + number).into());
        controller.send(&add_flow(3, matching, Vec::new()));
    }
    controller.barrier();
    drop(controller);
    drop(waiting);
    until("it forwards by itself again", || forwards(&mut a, &mut b, 3).then_some(()));
    let out = switch.ctl(&["dump-flows", "--json"]);
    assert!(out.lines().count() == 1 && out.contains("NORMAL"), "{out}");
    // A controller that comes by itself may look and does not end it.
    switch.assert_serves();
    assert!(switch.ctl(&["dump-flows", "--json"]).contains("NORMAL"));
    switch.stop();
}

#[test]
fn a_secure_switch_keeps_its_entries_and_forwards_nothing_else() {
    let waiting = Waiting::new("inactivity-probe = 1");
    let switch = Switch::start(2, &waiting.toml);
    let mut controller = waiting.greet(Version::V1_3);
    controller.send(&add_flow(5, Match::any(), vec![Action::output(PortNo(2))]));
    controller.barrier();
    drop(controller);
    drop(waiting);
    until("it has failed to come back", || (switch.counter("channel_failed") >= 3).then_some(()));
    let out = switch.ctl(&["dump-flows", "--json"]);
    assert!(out.lines().count() == 1 && out.contains("\"priority\":5"), "{out}");
}
