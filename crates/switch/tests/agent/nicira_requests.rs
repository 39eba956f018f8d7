//! Nicira's forms of packet-ins, and roles and masks of OpenFlow 1.0.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use openflow::message::{ControllerRole, Experimenter, PacketIn, Role};
use openflow::{
    Action, Cookie, Error, Field, Instruction, Match, Message, PortNo, TableId, Version,
};

use crate::harness::{Controller, Switch, add_flow, frame, until};

/// Types of Nicira's messages.
const ROLE_REQUEST: u32 = 10;
const SET_PACKET_IN_FORMAT: u32 = 16;
const SET_ASYNC: u32 = 19;

fn ask(version: Version, exp_type: u32, body: &[u8]) -> Message {
    let head = exp_type.to_be_bytes();
    let is_numbered = version.has_experimenter_types();
    let data = if is_numbered { body.to_vec() } else { [&head[..], body].concat() };
    let exp_type = if is_numbered { exp_type } else { 0 };
    Message::Experimenter(Experimenter { experimenter: 0x2320, exp_type, data })
}

/// The next packet-in, and the type of Nicira's message that it is.
fn packet_in(controller: &mut Controller) -> (Option<u8>, PacketIn) {
    let found = controller.frame().expect("a packet-in");
    let exp_type = (found[1] == 4).then(|| found[15]);
    match wire::decode(&found).unwrap().2 {
        Message::PacketIn(packet) => (exp_type, packet),
        other => panic!("{other:?}"),
    }
}

/// Sends what comes by port 1 to the controller, with a register.
fn to_controller() -> Message {
    let set = Action::set_field(Field::Reg1, 7);
    let list = Instruction::ApplyActions(vec![set, Action::output(PortNo::CONTROLLER)]);
    let Message::FlowMod(flow) = add_flow(1, Match::any().with(Field::InPort, 1), Vec::new())
    else {
        unreachable!("a flow-mod")
    };
    let cookie = Cookie(6);
    Message::FlowMod(openflow::flow::FlowMod { cookie, instructions: vec![list], ..flow })
}

#[test]
fn packet_ins_have_the_form_that_was_chosen() {
    let switch = Switch::start(1, "");
    let mut host = switch.host(1);
    let mut other = switch.controller(Version::V1_3);
    other.send(&to_controller());
    other.barrier();
    for version in [Version::V1_0, Version::V1_3] {
        let mut controller = switch.controller(version);
        let whole = Match::any().with(Field::InPort, 1).with(Field::Reg1, 7);
        for (form, exp_type) in [(1, Some(17)), (2, Some(30)), (0, None)] {
            controller.send(&ask(version, SET_PACKET_IN_FORMAT, &[0, 0, 0, form]));
            controller.barrier();
            host.send(&frame(1));
            let (found, packet) = packet_in(&mut controller);
            assert_eq!((found, &packet.data), (exp_type, &frame(1)));
            if exp_type.is_some() || version.has_oxm() {
                assert_eq!((packet.cookie, &packet.matching), (Cookie(6), &whole));
                assert_eq!(packet.table_id, TableId(0));
            } else {
                assert_eq!(packet.matching, Match::any().with(Field::InPort, 1));
            }
            // Another connection has its own.
            assert_eq!(packet_in(&mut other).0, None);
        }
        let unknown = ask(version, SET_PACKET_IN_FORMAT, &[0, 0, 0, 3]);
        controller.refused(&unknown, Error::BadRequestEperm);
    }
    switch.stop();
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn ovs_ofctl_monitors_by_the_newest_form() {
    let switch = Switch::start(1, "");
    let mut host = switch.host(1);
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&to_controller());
    controller.barrier();
    let place = format!("unix:{}", switch.socket("of").display());
    for (options, expected) in [
        (&[][..], "NXT_PACKET_IN2 (xid=0x0): cookie=0x6 total_len=60 reg1=0x7,in_port=1"),
        (&["-P", "nxt_packet_in"], "NXT_PACKET_IN (xid=0x0): cookie=0x6 total_len=60 reg1=0x7"),
        (&["-P", "standard"], "OFPT_PACKET_IN (xid=0x0): total_len=60 in_port=1 (via action)"),
        (&["-O", "OpenFlow13"], "NXT_PACKET_IN2 (OF1.3) (xid=0x0): cookie=0x6 total_len=60 reg1"),
    ] {
        let printed = switch.socket("printed");
        let out = File::create(&printed).unwrap();
        let mut monitor = Command::new("ovs-ofctl")
            .args(options)
            .args(["monitor", &place, "65534"])
            .env("OVS_RUNDIR", printed.parent().unwrap())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        until("the monitor prints a packet-in", || {
            host.send(&frame(1));
            fs::read_to_string(&printed).unwrap().contains(expected).then_some(())
        });
        monitor.kill().unwrap();
        monitor.wait().unwrap();
    }
    switch.stop();
}

/// The role that a controller of 1.0 gets: 0 other, 1 master, 2 slave.
fn role(controller: &mut Controller, role: u8) -> Vec<u8> {
    let answer = controller.request(&ask(Version::V1_0, ROLE_REQUEST, &[0, 0, 0, role]));
    let Message::Experimenter(Experimenter { experimenter: 0x2320, data, .. }) = answer else {
        panic!("{answer:?}");
    };
    data
}

#[test]
fn controllers_of_1_0_have_roles() {
    let switch = Switch::start(1, "");
    let [mut first, mut second] = [(); 2].map(|()| switch.controller(Version::V1_0));
    let mut newer = switch.controller(Version::V1_3);
    assert_eq!(role(&mut first, 1), [0, 0, 0, 11, 0, 0, 0, 1]);
    first.send(&add_flow(1, Match::any(), Vec::new()));
    first.barrier();
    // Another master makes it slave, which may ask only.
    assert_eq!(role(&mut second, 1), [0, 0, 0, 11, 0, 0, 0, 1]);
    first.refused(&add_flow(1, Match::any(), Vec::new()), Error::BadRequestIsSlave);
    assert_eq!(first.flow_stats().len(), 1);
    assert_eq!(role(&mut first, 0), [0, 0, 0, 11, 0, 0, 0, 0]);
    first.send(&add_flow(2, Match::any(), Vec::new()));
    assert_eq!(first.flow_stats().len(), 2);
    // Roles of both kinds are the same ones.
    let master = Role { role: ControllerRole::Master, generation_id: 1 };
    let answer = newer.request(&Message::RoleRequest(master));
    assert_eq!(answer, Message::RoleReply(master));
    second.refused(&add_flow(1, Match::any(), Vec::new()), Error::BadRequestIsSlave);
    let unknown = ask(Version::V1_0, ROLE_REQUEST, &[0, 0, 0, 3]);
    second.refused(&unknown, Error::RoleRequestBadRole);
    switch.stop();
}

#[test]
fn controllers_of_1_0_choose_their_messages() {
    let switch = Switch::start(1, "");
    let mut host = switch.host(1);
    let mut controller = switch.controller(Version::V1_0);
    controller.send(&to_controller_of_1_0());
    controller.barrier();
    host.send(&frame(1));
    packet_in(&mut controller);
    let masks = |packet_in: u8| {
        let word = |number: u8| [0, 0, 0, number];
        [word(packet_in), word(0), word(7), word(7), word(7), word(0)].concat()
    };
    controller.send(&ask(Version::V1_0, SET_ASYNC, &masks(0)));
    controller.barrier();
    host.send(&frame(2));
    let dropped = || switch.counter("packet_in_drop_no_controller");
    until("the packet is for nobody", || (dropped() > 0).then_some(()));
    controller.send(&ask(Version::V1_0, SET_ASYNC, &masks(7)));
    controller.barrier();
    host.send(&frame(3));
    assert_eq!(packet_in(&mut controller).1.data, frame(3));
    switch.stop();
}

fn to_controller_of_1_0() -> Message {
    add_flow(1, Match::any(), vec![Action::output(PortNo::CONTROLLER)])
}
