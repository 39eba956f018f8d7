//! Bundles by a controller: all of one is done, or nothing, and each outcome has its answer.

use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{
    ControllerRole, MultipartReplyBody, MultipartRequestBody, PacketOut, Role,
};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::{
    Action, Error, Field, GroupId, MacAddr, Match, Message, MessageKind, PortNo, Version, Xid,
};

use crate::harness::{Controller, Host, Switch, WITH_1_4, add_flow, frame, from_to, packet_out};

const FLAGS: BundleFlags = BundleFlags::ATOMIC.union(BundleFlags::ORDERED);

impl Controller {
    fn send_as(&mut self, xid: u32, message: &Message) {
        let bytes = wire::encode(self.version, Xid(xid), message).unwrap();
        self.raw(&bytes);
    }

    fn bundle_control(&mut self, xid: u32, control: BundleControlType) {
        let control = BundleControl { bundle_id: 3, control, flags: FLAGS };
        self.send_as(xid, &Message::BundleControl(control));
    }

    /// Opens a bundle and fills it with messages whose xids count from 100 on.
    fn fill(&mut self, messages: &[Message]) {
        self.bundle_control(1, BundleControlType::OpenRequest);
        self.expect_control(1, BundleControlType::OpenReply);
        for (xid, message) in (100..).zip(messages) {
            let message = wire::encode(self.version, Xid(xid), message).unwrap();
            let add = BundleAdd { bundle_id: 3, flags: FLAGS, message };
            self.send_as(xid, &Message::BundleAdd(add));
        }
    }

    #[track_caller]
    fn expect_control(&mut self, xid: u32, control: BundleControlType) {
        let reply = BundleControl { bundle_id: 3, control, flags: BundleFlags::empty() };
        assert_eq!(self.next(), (Xid(xid), Message::BundleControl(reply)));
    }

    #[track_caller]
    fn expect_error(&mut self, xid: u32, error: Error) -> Vec<u8> {
        let (got, message) = self.next();
        let Message::Error(body) = message else { panic!("{message:?}") };
        assert_eq!((got, body.error(self.version)), (Xid(xid), Some(error)));
        body.data
    }

    fn commit(&mut self, messages: &[Message]) {
        self.fill(messages);
        self.bundle_control(2, BundleControlType::CommitRequest);
        self.expect_control(2, BundleControlType::CommitReply);
    }
}

fn group(command: GroupModCommand, id: u32, to: u32) -> Message {
    Message::GroupMod(GroupMod {
        command,
        group_type: GroupType::Indirect,
        group_id: GroupId(id),
        buckets: vec![Bucket {
            bucket_id: None,
            weight: 0,
            watch_port: PortNo::ANY,
            watch_group: GroupId::ANY,
            actions: vec![Action::output(PortNo(to))],
        }],
        ..GroupMod::default()
    })
}

/// 1.3 has bundles by ONF's extension, 1.4 by messages of its own.
const VERSIONS: [Version; 2] = [Version::V1_3, Version::V1_4];

#[test]
fn a_bundle_is_done_when_its_commit_is_answered() {
    VERSIONS.into_iter().for_each(commit_close_and_discard);
}

fn commit_close_and_discard(version: Version) {
    let switch = Switch::start(3, WITH_1_4);
    let mut controller = switch.controller(version);
    let mut hosts = [switch.host(1), switch.host(2), switch.host(3)];
    let in_port = |port: u128| Match::any().with(Field::InPort, port);
    controller.fill(&[
        group(GroupModCommand::Add, 7, 2),
        add_flow(5, in_port(1), vec![Action::Group(GroupId(7))]),
        from_to(2, 1),
    ]);
    // Nothing of it is there before the commit.
    assert!(controller.flow_stats().is_empty());
    controller.bundle_control(4, BundleControlType::CloseRequest);
    controller.bundle_control(5, BundleControlType::CommitRequest);
    controller.expect_control(4, BundleControlType::CloseReply);
    controller.expect_control(5, BundleControlType::CommitReply);
    hosts[0].send(&frame(1));
    assert_eq!(hosts[1].receive(), frame(1));
    // A discarded one leaves nothing, and neither does one whose connection has ended.
    controller.fill(&[group(GroupModCommand::Modify, 7, 3)]);
    controller.bundle_control(6, BundleControlType::DiscardRequest);
    controller.expect_control(6, BundleControlType::DiscardReply);
    let mut other = switch.controller(version);
    other.fill(&[group(GroupModCommand::Modify, 7, 3)]);
    drop(other);
    controller.bundle_control(7, BundleControlType::CommitRequest);
    controller.expect_error(7, Error::BundleBadId);
    controller.barrier();
    hosts[0].send(&frame(2));
    assert_eq!(hosts[1].receive(), frame(2));
    assert_eq!(switch.counter("bundle"), 1);
    switch.stop();
}

#[test]
fn a_refused_message_undoes_the_bundle() {
    VERSIONS.into_iter().for_each(commit_and_be_refused);
}

fn commit_and_be_refused(version: Version) {
    let switch = Switch::start(2, WITH_1_4);
    let mut controller = switch.controller(version);
    let importance = if version.has_importance() { 9 } else { 0 };
    let flags = FlowModFlags::SEND_FLOW_REM;
    let stays = FlowMod { flags, importance, ..flow_mod(from_to(1, 2)) };
    controller.commit(&[Message::FlowMod(stays), group(GroupModCommand::Add, 7, 2)]);
    let before = controller.flow_stats();
    let everything = FlowMod::new(FlowModCommand::Delete);
    let bad = add_flow(5, Match::any(), vec![Action::Group(GroupId(8))]);
    controller.fill(&[
        Message::FlowMod(everything),
        group(GroupModCommand::Delete, 7, 2),
        from_to(2, 1),
        bad.clone(),
        from_to(2, 2),
    ]);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    let barrier = controller.send(&Message::BarrierRequest);
    let data = controller.expect_error(103, Error::BadActionBadOutGroup);
    assert_eq!(data, wire::encode(version, Xid(103), &bad).unwrap());
    controller.expect_error(2, Error::BundleMsgFailed);
    assert_eq!(controller.next(), (barrier, Message::BarrierReply));
    let after = controller.flow_stats();
    assert_eq!(after.len(), before.len());
    let kept = |entries: &[FlowStats]| (entries[0].matching.clone(), entries[0].importance);
    assert_eq!(kept(&after), kept(&before));
    assert_eq!(after[0].importance, importance);
    // The entry is reported once it has really gone, before or after the reply.
    controller.fill(&[Message::FlowMod(FlowMod::new(FlowModCommand::Delete))]);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    let kinds = [controller.next().1.kind(), controller.next().1.kind()];
    assert!(kinds.contains(&MessageKind::FlowRemoved), "{kinds:?}");
    assert!(kinds.contains(&MessageKind::BundleControl), "{kinds:?}");
    switch.stop();
}

fn flow_mod(message: Message) -> FlowMod {
    match message {
        Message::FlowMod(flow_mod) => flow_mod,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_port_changes_with_the_rest_of_its_bundle() {
    let switch = Switch::start(2, "");
    let mut controller = switch.controller(Version::V1_3);
    let hw_addr = controller.port_descs()[1].hw_addr;
    let port_mod = |hw_addr: MacAddr| {
        Message::PortMod(PortMod {
            port_no: PortNo(2),
            hw_addr,
            config: PortConfig::NO_FWD,
            mask: PortConfig::NO_FWD,
            advertise: PortFeatures::empty(),
        })
    };
    let config = |controller: &mut Controller| controller.port_descs()[1].config;
    controller.fill(&[port_mod(hw_addr), port_mod(MacAddr([9; 6]))]);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    controller.expect_error(101, Error::PortModBadHwAddr);
    controller.expect_error(2, Error::BundleMsgFailed);
    assert_eq!(config(&mut controller), PortConfig::empty());
    controller.fill(&[port_mod(hw_addr)]);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    let (_, status) = controller.next();
    assert!(matches!(status, Message::PortStatus(_)), "{status:?}");
    controller.expect_control(2, BundleControlType::CommitReply);
    assert_eq!(config(&mut controller), PortConfig::NO_FWD);
    switch.stop();
}

#[test]
fn a_packet_out_sees_the_messages_before_it() {
    VERSIONS.into_iter().for_each(send_in_bundles);
}

fn send_in_bundles(version: Version) {
    let switch = Switch::start(3, &format!("workers = 2\n{WITH_1_4}"));
    let mut controller = switch.controller(version);
    let mut hosts = [switch.host(1), switch.host(2), switch.host(3)];
    let to = |port: u32, number: u8| packet_out(PortNo(port), frame(number));
    let by_tables = |number: u8| {
        let Message::PacketOut(body) = packet_out(PortNo::TABLE, frame(number)) else { panic!() };
        Message::PacketOut(PacketOut { in_port: PortNo(1), ..body })
    };
    let by_group = |id: u32| {
        let Message::PacketOut(body) = to(2, 9) else { panic!() };
        Message::PacketOut(PacketOut { actions: vec![Action::Group(GroupId(id))], ..body })
    };
    let led = add_flow(5, Match::any(), vec![Action::Group(GroupId(7))]);
    let all = Message::FlowMod(FlowMod::new(FlowModCommand::Delete));
    // The second sees the entry as it is changed, the third no entry any more.
    controller.commit(&[
        group(GroupModCommand::Add, 7, 2),
        led.clone(),
        by_tables(1),
        group(GroupModCommand::Modify, 7, 3),
        by_tables(2),
        all.clone(),
        by_tables(3),
        group(GroupModCommand::Delete, 7, 3),
        to(2, 4),
    ]);
    assert_eq!((hosts[1].receive(), hosts[1].receive()), (frame(1), frame(4)));
    assert_eq!(hosts[2].receive(), frame(2));
    assert!(controller.flow_stats().is_empty());
    // One that is wrong at its place undoes the bundle, and none is sent.
    controller.fill(&[group(GroupModCommand::Add, 7, 2), by_group(7), to(2, 5), by_group(8), led]);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    controller.expect_error(103, Error::BadActionBadOutGroup);
    controller.expect_error(2, Error::BundleMsgFailed);
    // One alone, which is sent after all that was not.
    controller.commit(&[to(2, 6)]);
    assert_eq!(hosts[1].receive(), frame(6));
    assert!(controller.flow_stats().is_empty());
    assert_eq!((hosts[1].poll(), hosts[2].poll()), (None, None));
    assert_eq!(switch.counter("packet_out"), 5);
    switch.stop();
}

#[test]
fn a_slave_has_no_bundles() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    let role = Role { role: ControllerRole::Slave, generation_id: 1 };
    let reply = controller.request(&Message::RoleRequest(role));
    assert_eq!(reply, Message::RoleReply(role));
    controller.bundle_control(9, BundleControlType::OpenRequest);
    controller.expect_error(9, Error::BadRequestIsSlave);
    switch.stop();
}

/// A commit of many messages, while frames pass: they go on, and each leaves by the port of before
/// or of after it, never by both ways in turn.
#[test]
fn frames_pass_while_a_large_bundle_is_done() {
    let switch = Switch::start(3, "workers = 2");
    let mut controller = switch.controller(Version::V1_3);
    let mut hosts = [switch.host(1), switch.host(2), switch.host(3)];
    controller.commit(&[from_to(1, 2)]);
    let others = (0..20_000_u32).map(|number| {
        let matching = Match::any().with(Field::EthDst, number.into());
        add_flow(3, matching, vec![Action::output(PortNo(2))])
    });
    let messages: Vec<Message> = others.chain([from_to(1, 3)]).collect();
    controller.fill(&messages);
    controller.bundle_control(2, BundleControlType::CommitRequest);
    let done = std::thread::spawn(move || {
        controller.expect_control(2, BundleControlType::CommitReply);
        controller
    });
    let mut by_port = Vec::new();
    let mut number = 0;
    while !done.is_finished() || number < 200 {
        number += 1;
        hosts[0].send(&frame(number as u8));
        by_port.push(next_of(&mut hosts, number as u8));
    }
    assert!(by_port.is_sorted(), "by port 2 first, then by port 3");
    let mut controller = done.join().unwrap();
    hosts[0].send(&frame(7));
    assert_eq!(next_of(&mut hosts, 7), 3, "the commit is answered when all is done");
    let sums = controller.multipart(MultipartRequestBody::Aggregate(FlowStatsRequest::all()));
    let MultipartReplyBody::Aggregate(sums) = sums else { panic!("{sums:?}") };
    assert_eq!(sums.flow_count, 20_001);
    switch.stop();
}

/// The number of the host that gets the next frame, which has this number.
fn next_of(hosts: &mut [Host; 3], number: u8) -> usize {
    crate::harness::until("the frame", || {
        (1..3).find_map(|place| {
            let found = hosts[place].poll()?;
            assert_eq!(found, frame(number));
            Some(place + 1)
        })
    })
}
