//! Open vSwitch's `controller` action over a switch: controllers of a number, data of an entry, and
//! packets that wait until they are resumed.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use openflow::message::{Experimenter, PacketIn};
use openflow::text::parse_flow_mod;
use openflow::{Error, Field, Message, Version};

use crate::harness::{Controller, Switch, frame, until};

/// Types of Nicira's messages.
const SET_PACKET_IN_FORMAT: u32 = 16;
const SET_CONTROLLER_ID: u32 = 20;
const RESUME: u32 = 28;

fn of_nicira(version: Version, exp_type: u32, body: &[u8]) -> Message {
    let head = exp_type.to_be_bytes();
    let is_numbered = version.has_experimenter_types();
    let data = if is_numbered { body.to_vec() } else { [&head[..], body].concat() };
    let exp_type = if is_numbered { exp_type } else { 0 };
    Message::Experimenter(Experimenter { experimenter: 0x2320, exp_type, data })
}

/// A controller that gets packet-ins in properties.
fn controller(switch: &Switch, version: Version) -> Controller {
    let mut controller = switch.controller(version);
    controller.send(&of_nicira(version, SET_PACKET_IN_FORMAT, &[0, 0, 0, 2]));
    controller.barrier();
    controller
}

fn add(controller: &mut Controller, flow: &str) {
    let add = parse_flow_mod(flow, openflow::flow::FlowModCommand::Add).unwrap();
    controller.send(&Message::FlowMod(add));
    controller.barrier();
}

fn packet_in(controller: &mut Controller) -> PacketIn {
    match controller.next().1 {
        Message::PacketIn(packet) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_packet_goes_to_the_controllers_of_its_number() {
    let switch = Switch::start(1, "");
    let mut host = switch.host(1);
    for version in [Version::V1_0, Version::V1_3] {
        let mut numbered = controller(&switch, version);
        let mut other = controller(&switch, version);
        numbered.send(&of_nicira(version, SET_CONTROLLER_ID, &[0, 0, 0, 0, 0, 0, 1, 2]));
        add(&mut numbered, "in_port=1,actions=controller(id=258,userdata=01.02),controller(id=3)");
        host.send(&frame(1));
        let packet = packet_in(&mut numbered);
        assert_eq!((packet.data, packet.userdata), (frame(1), vec![1, 2]));
        add(&mut numbered, "in_port=1,actions=CONTROLLER");
        host.send(&frame(2));
        // Nothing has come to it before.
        assert_eq!(packet_in(&mut other).data, frame(2));
        numbered.send(&of_nicira(version, SET_CONTROLLER_ID, &[0; 8]));
        numbered.barrier();
        host.send(&frame(3));
        assert_eq!(packet_in(&mut numbered).data, frame(3));
        let short = of_nicira(version, SET_CONTROLLER_ID, &[0; 4]);
        numbered.refused(&short, Error::BadRequestBadLen);
    }
    switch.stop();
}

#[test]
fn a_packet_that_waits_goes_on_as_it_is_resumed() {
    let switch = Switch::start(3, "");
    let (mut host, mut second, mut third) = (switch.host(1), switch.host(2), switch.host(3));
    for version in [Version::V1_0, Version::V1_3] {
        let mut controller = controller(&switch, version);
        let load =
            "load:5->NXM_NX_REG0[],controller(pause,userdata=07),output:NXM_NX_REG1[],output:2";
        add(&mut controller, &format!("in_port=1,actions={load}"));
        host.send(&frame(1));
        let paused = packet_in(&mut controller);
        assert_eq!((&paused.data, &paused.userdata), (&frame(1), &vec![7]));
        assert_eq!(paused.matching.exact(Field::Reg0), Some(5));
        assert!(!paused.continuation.is_empty());
        assert_eq!((second.poll(), third.poll()), (None, None));
        let resume = |paused: &PacketIn| {
            of_nicira(version, RESUME, &wire::write_resume(version, paused).unwrap())
        };
        controller.send(&resume(&paused));
        assert_eq!(second.receive(), frame(1));
        // Another packet with another register, by the same continuation.
        let matching = paused.matching.clone().with(Field::Reg1, 3);
        controller.send(&resume(&PacketIn { matching, data: frame(2), ..paused.clone() }));
        assert_eq!((second.receive(), third.receive()), (frame(2), frame(2)));
        for at in [0, 9, paused.continuation.len() / 2] {
            let mut changed = paused.clone();
            changed.continuation[at] ^= 1;
            controller.refused(&resume(&changed), Error::ResumeStale);
        }
        let none = PacketIn { continuation: Vec::new(), ..paused.clone() };
        controller.refused(&resume(&none), Error::ResumeStale);
        let short = PacketIn { data: vec![1; 13], ..paused };
        controller.refused(&resume(&short), Error::BadRequestBadPacket);
    }
    switch.stop();
}

#[test]
fn a_packet_that_waited_in_an_earlier_switch_does_not_go_on() {
    let mut of_earlier = None;
    for _ in 0..2 {
        let switch = Switch::start(2, "");
        let (mut host, mut second) = (switch.host(1), switch.host(2));
        let mut controller = controller(&switch, Version::V1_3);
        add(&mut controller, "in_port=1,actions=controller(pause),output:2");
        host.send(&frame(1));
        let paused = packet_in(&mut controller);
        let resume = |paused: &PacketIn| {
            let body = wire::write_resume(Version::V1_3, paused).unwrap();
            of_nicira(Version::V1_3, RESUME, &body)
        };
        if let Some(earlier) = of_earlier {
            controller.refused(&resume(&earlier), Error::ResumeStale);
        }
        controller.send(&resume(&paused));
        assert_eq!(second.receive(), frame(1));
        of_earlier = Some(paused);
        switch.stop();
    }
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn ovs_ofctl_resumes_packets() {
    let switch = Switch::start(2, "");
    let (mut host, mut second) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_3);
    add(&mut controller, "in_port=1,actions=controller(pause,userdata=0a.0b),output:2");
    let place = format!("unix:{}", switch.socket("of").display());
    let printed = switch.socket("printed");
    let out = File::create(&printed).unwrap();
    let mut monitor = Command::new("ovs-ofctl")
        .args(["monitor", &place, "65534", "resume", "-P", "nxt_packet_in2"])
        .env("OVS_RUNDIR", printed.parent().unwrap())
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .spawn()
        .unwrap();
    until("a packet has been resumed", || {
        host.send(&frame(1));
        second.poll().map(|resumed| assert_eq!(resumed, frame(1)))
    });
    let text = fs::read_to_string(&printed).unwrap();
    assert!(text.contains("userdata=0a.0b"), "{text}");
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    switch.stop();
}
