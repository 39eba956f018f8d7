//! The ready apps as functions: events in, messages out, no network.

use controller::apps::{Hub, LearningSwitch};
use controller::{App, PacketIn, Switch, delete_all};
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{Features, PacketInReason, PacketOut};
use openflow::port::{PortDesc, PortReason, PortState, PortStatus};
use openflow::{
    Action, BufferId, Cookie, DatapathId, Field, Instruction, Match, Message, PortNo, TableId,
    Version,
};

const A: u64 = 0x0200_0000_000a;
const B: u64 = 0x0200_0000_000b;
const BROADCAST: u64 = 0xffff_ffff_ffff;

fn switch(version: Version) -> Switch {
    let datapath_id = DatapathId(1);
    Switch::new(version, Features { datapath_id, ..Features::default() })
}

fn frame(dst: u64, src: u64, ether_type: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(&dst.to_be_bytes()[2..]);
    frame.extend(&src.to_be_bytes()[2..]);
    frame.extend(ether_type.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn packet_in(port: u32, data: Vec<u8>) -> PacketIn {
    PacketIn {
        buffer_id: None,
        total_len: u16::try_from(data.len()).unwrap(),
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(0),
        matching: Match::any().with(Field::InPort, port.into()),
        data,
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    }
}

fn packet_out(packet_in: &PacketIn, to: PortNo) -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: None,
        in_port: packet_in.in_port().unwrap(),
        actions: vec![Action::output(to)],
        data: packet_in.data.clone(),
    })
}

fn table_miss() -> Message {
    let output = Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN_NO_BUFFER };
    Message::FlowMod(FlowMod {
        priority: 0,
        instructions: vec![Instruction::ApplyActions(vec![output])],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

fn entry(in_port: u32, src: u64, dst: u64, out: u32) -> Message {
    Message::FlowMod(FlowMod {
        idle_timeout_s: 60,
        priority: 1,
        matching: Match::any()
            .with(Field::InPort, in_port.into())
            .with(Field::EthSrc, src.into())
            .with(Field::EthDst, dst.into()),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(out))])],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

/// The messages that the app sends for a packet.
fn answer(app: &mut dyn App, sw: &mut Switch, packet: &PacketIn) -> Vec<Message> {
    app.packet_in(sw, packet);
    sw.take_messages()
}

#[test]
fn apps_start_with_an_empty_table_and_1_3_gets_a_table_miss() {
    for app in [&mut Hub as &mut dyn App, &mut LearningSwitch::default()] {
        let mut sw = switch(Version::V1_0);
        app.switch_ready(&mut sw);
        assert_eq!(sw.take_messages(), [Message::FlowMod(delete_all())]);
        let mut sw = switch(Version::V1_3);
        app.switch_ready(&mut sw);
        assert_eq!(sw.take_messages(), [Message::FlowMod(delete_all()), table_miss()]);
    }
}

#[test]
fn messages_of_apps_can_be_encoded_in_their_version() {
    for &version in Version::ALL {
        let mut sw = switch(version);
        let mut app = LearningSwitch::default();
        app.switch_ready(&mut sw);
        app.packet_in(&mut sw, &packet_in(1, frame(BROADCAST, A, 0x0806)));
        app.packet_in(&mut sw, &packet_in(2, frame(A, B, 0x0806)));
        app.packet_in(&mut sw, &packet_in(3, frame(A, B, 0x0806)));
        let desc = PortDesc { port_no: PortNo(2), ..PortDesc::default() };
        app.port_status(&mut sw, &PortStatus { reason: PortReason::Delete, desc });
        Hub.packet_in(&mut sw, &packet_in(1, frame(BROADCAST, A, 0x0806)));
        let messages = sw.take_messages();
        assert!(messages.len() >= 8);
        for message in messages {
            wire::encode(version, openflow::Xid(1), &message).unwrap();
        }
    }
}

#[test]
fn the_hub_floods_every_packet() {
    let mut sw = switch(Version::V1_0);
    for data in [frame(B, A, 0x0800), frame(BROADCAST, B, 0x0806), vec![], vec![1; 1514]] {
        let packet = packet_in(3, data);
        assert_eq!(answer(&mut Hub, &mut sw, &packet), [packet_out(&packet, PortNo::FLOOD)]);
    }
}

#[test]
fn a_buffered_packet_is_sent_by_its_buffer_alone() {
    let mut sw = switch(Version::V1_0);
    let mut packet = packet_in(3, vec![7; 128]);
    packet.total_len = 1500;
    packet.buffer_id = Some(BufferId(77));
    let expected = Message::PacketOut(PacketOut {
        buffer_id: Some(BufferId(77)),
        in_port: PortNo(3),
        actions: vec![Action::output(PortNo::FLOOD)],
        data: vec![],
    });
    assert_eq!(answer(&mut Hub, &mut sw, &packet), [expected]);
}

#[test]
fn half_a_packet_is_never_forwarded_but_counted() {
    let mut sw = switch(Version::V1_0);
    let mut packet = packet_in(3, vec![7; 128]);
    packet.total_len = 1500;
    assert!(answer(&mut Hub, &mut sw, &packet).is_empty());
    let mut nowhere = packet_in(3, vec![7; 128]);
    nowhere.matching = Match::any();
    assert!(answer(&mut Hub, &mut sw, &nowhere).is_empty());
    assert_eq!(sw.not_forwarded(), 2);
}

#[test]
fn addresses_are_learned_and_pairs_get_entries() {
    for &version in Version::ALL {
        let (mut sw, mut app) = (switch(version), LearningSwitch::default());
        let request = packet_in(1, frame(BROADCAST, A, 0x0806));
        let sent = answer(&mut app, &mut sw, &request);
        assert_eq!(sent, [packet_out(&request, PortNo::FLOOD)]);
        let reply = packet_in(2, frame(A, B, 0x0806));
        let sent = answer(&mut app, &mut sw, &reply);
        assert_eq!(sent, [entry(2, B, A, 1), packet_out(&reply, PortNo(1))]);
        let data = packet_in(1, frame(B, A, 0x0800));
        let sent = answer(&mut app, &mut sw, &data);
        assert_eq!(sent, [entry(1, A, B, 2), packet_out(&data, PortNo(2))]);
    }
}

#[test]
fn a_packet_for_its_own_side_stays_there() {
    let (mut sw, mut app) = (switch(Version::V1_3), LearningSwitch::default());
    answer(&mut app, &mut sw, &packet_in(1, frame(BROADCAST, A, 0x0806)));
    assert!(answer(&mut app, &mut sw, &packet_in(1, frame(A, B, 0x0800))).is_empty());
}

#[test]
fn group_addresses_are_not_learned() {
    let (mut sw, mut app) = (switch(Version::V1_3), LearningSwitch::default());
    let odd = packet_in(1, frame(B, 0x0100_5e00_0001, 0x0800));
    answer(&mut app, &mut sw, &odd);
    let to_group = packet_in(2, frame(0x0100_5e00_0001, A, 0x0800));
    let sent = answer(&mut app, &mut sw, &to_group);
    assert_eq!(sent, [packet_out(&to_group, PortNo::FLOOD)]);
}

#[test]
fn link_local_frames_are_neither_learned_nor_forwarded() {
    let (mut sw, mut app) = (switch(Version::V1_3), LearningSwitch::default());
    for last in 0..16 {
        let kept = packet_in(1, frame(0x0180_c200_0000 + last, A, 0x0026));
        assert!(answer(&mut app, &mut sw, &kept).is_empty());
    }
    let lldp = packet_in(1, frame(0x0123_2000_0001, A, 0x88cc));
    assert!(answer(&mut app, &mut sw, &lldp).is_empty());
    assert!(answer(&mut app, &mut sw, &packet_in(1, vec![0; 13])).is_empty(), "no header");
    let to_a = packet_in(2, frame(A, B, 0x0800));
    let sent = answer(&mut app, &mut sw, &to_a);
    assert_eq!(sent, [packet_out(&to_a, PortNo::FLOOD)], "A is unknown");
    let next = packet_in(1, frame(0x0180_c200_0010, A, 0x0800));
    assert_eq!(answer(&mut app, &mut sw, &next).len(), 1, "..:10 is an ordinary group");
}

#[test]
fn a_host_that_moves_takes_its_entries_along() {
    let (mut sw, mut app) = (switch(Version::V1_3), LearningSwitch::default());
    answer(&mut app, &mut sw, &packet_in(1, frame(BROADCAST, A, 0x0806)));
    answer(&mut app, &mut sw, &packet_in(2, frame(A, B, 0x0806)));
    let moved = packet_in(3, frame(B, A, 0x0800));
    let to_a = Match::any().with(Field::EthDst, A.into());
    let cleared = Message::FlowMod(FlowMod { matching: to_a, ..delete_all() });
    let sent = answer(&mut app, &mut sw, &moved);
    assert_eq!(sent, [cleared, entry(3, A, B, 2), packet_out(&moved, PortNo(2))]);
}

#[test]
fn a_port_that_goes_down_is_forgotten() {
    let (mut sw, mut app) = (switch(Version::V1_3), LearningSwitch::default());
    answer(&mut app, &mut sw, &packet_in(1, frame(BROADCAST, A, 0x0806)));
    let down = PortDesc { port_no: PortNo(1), state: PortState::LINK_DOWN, ..PortDesc::default() };
    app.port_status(&mut sw, &PortStatus { reason: PortReason::Modify, desc: down });
    let cleared = FlowMod { out_port: PortNo(1), ..delete_all() };
    assert_eq!(sw.take_messages(), [Message::FlowMod(cleared)]);
    let to_a = packet_in(2, frame(A, B, 0x0800));
    let sent = answer(&mut app, &mut sw, &to_a);
    assert_eq!(sent, [packet_out(&to_a, PortNo::FLOOD)]);
}

#[test]
fn switches_do_not_share_addresses() {
    let mut app = LearningSwitch::default();
    let mut one = switch(Version::V1_3);
    let datapath_id = DatapathId(2);
    let mut two = Switch::new(Version::V1_3, Features { datapath_id, ..Features::default() });
    answer(&mut app, &mut one, &packet_in(1, frame(BROADCAST, A, 0x0806)));
    let to_a = packet_in(2, frame(A, B, 0x0800));
    assert_eq!(answer(&mut app, &mut two, &to_a), [packet_out(&to_a, PortNo::FLOOD)]);
    app.switch_down(DatapathId(1));
    assert_eq!(answer(&mut app, &mut one, &to_a), [packet_out(&to_a, PortNo::FLOOD)]);
}
