//! Commands that mean many entries: cut into pieces, and over before what their sender asks next.
//!
//! Other controllers are answered between two pieces, and may see such a command half done.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::{
    Action, Error, Field, GroupId, Instruction, Match, Message, MeterId, PortNo, TableId, Version,
};

use crate::harness::{Switch, add_flow};

const ENTRIES: u32 = 20_000;
/// One entry in this number asks for a flow-removed message.
const NOTIFIED: u32 = 100;

fn entry(number: u32) -> Message {
    let matching = Match::any().with(Field::EthDst, number.into());
    let Message::FlowMod(mut flow_mod) = add_flow(3, matching, Vec::new()) else { unreachable!() };
    if number.is_multiple_of(NOTIFIED) {
        flow_mod.flags = FlowModFlags::SEND_FLOW_REM;
    }
    Message::FlowMod(flow_mod)
}

fn delete_all() -> Message {
    let delete = FlowMod::new(FlowModCommand::Delete);
    Message::FlowMod(FlowMod { table_id: TableId::ALL, ..delete })
}

#[test]
fn a_delete_of_many_is_over_before_what_comes_behind_it() {
    let switch = Switch::start(2, "");
    let mut controller = switch.controller(Version::V1_3);
    for number in 0..ENTRIES {
        controller.send(&entry(number));
    }
    controller.barrier();
    let mut other = switch.controller(Version::V1_3);
    controller.send(&delete_all());
    let stays = add_flow(3, Match::any().with(Field::EthDst, 5), vec![Action::output(PortNo(2))]);
    controller.send(&stays);
    let barrier = controller.send(&Message::BarrierRequest);
    let echo = controller.send(&Message::EchoRequest(b"x".to_vec()));
    let echoed = other.request(&Message::EchoRequest(b"y".to_vec()));
    assert!(matches!(echoed, Message::EchoReply(_)), "{echoed:?}");
    let (mut removed, mut answers) = (0, Vec::new());
    while removed < ENTRIES / NOTIFIED || answers.len() < 2 {
        let (xid, message) = controller.next();
        match message {
            Message::FlowRemoved(_) => removed += 1,
            Message::BarrierReply | Message::EchoReply(_) => answers.push(xid),
            message => panic!("{message:?}"),
        }
    }
    // An echo is answered at once, also while a command is under way: it may overtake the barrier.
    answers.sort_unstable();
    assert_eq!(answers, [barrier, echo]);
    let flows = controller.flow_stats();
    assert_eq!(flows.len(), 1, "{flows:?}");
    assert_eq!(removed, ENTRIES / NOTIFIED);
}

fn group_mod(command: GroupModCommand, group_id: GroupId) -> Message {
    let group_type = GroupType::All;
    Message::GroupMod(GroupMod {
        command,
        group_type,
        group_id,
        buckets: Vec::new(),
        ..GroupMod::default()
    })
}

#[test]
fn a_delete_of_many_groups_is_over_before_what_comes_behind_it() {
    let switch = Switch::start(2, "");
    let mut controller = switch.controller(Version::V1_3);
    for number in 1..=5_000 {
        let group = GroupId(number);
        controller.send(&group_mod(GroupModCommand::Add, group));
        let matching = Match::any().with(Field::EthDst, number.into());
        controller.send(&add_flow(3, matching, vec![Action::Group(group)]));
    }
    controller.barrier();
    let mut other = switch.controller(Version::V1_3);
    controller.send(&group_mod(GroupModCommand::Delete, GroupId::ALL));
    let gone = controller.send(&add_flow(3, Match::any(), vec![Action::Group(GroupId(7))]));
    // Its number is free again.
    controller.send(&group_mod(GroupModCommand::Add, GroupId(7)));
    controller.send(&add_flow(3, Match::any(), vec![Action::Group(GroupId(7))]));
    let barrier = controller.send(&Message::BarrierRequest);
    let echo = controller.send(&Message::EchoRequest(b"x".to_vec()));
    let echoed = other.request(&Message::EchoRequest(b"y".to_vec()));
    assert!(matches!(echoed, Message::EchoReply(_)), "{echoed:?}");
    let mut answers = Vec::new();
    while answers.len() < 3 {
        let (xid, message) = controller.next();
        match message {
            Message::Error(refused) => {
                assert_eq!(refused.error(Version::V1_3), Some(Error::BadActionBadOutGroup));
            }
            Message::BarrierReply | Message::EchoReply(_) => {}
            message => panic!("{message:?}"),
        }
        answers.push(xid);
    }
    // An echo is answered at once, also while a command is under way.
    answers.retain(|xid| *xid != echo);
    assert_eq!(answers, [gone, barrier]);
    let flows = controller.flow_stats();
    assert_eq!(flows.len(), 1, "{flows:?}");
    let groups = controller.multipart(MultipartRequestBody::GroupDesc);
    let MultipartReplyBody::GroupDesc(groups) = groups else { panic!("{groups:?}") };
    assert_eq!(groups.iter().map(|group| group.group_id).collect::<Vec<_>>(), [GroupId(7)]);
}

fn meter_mod(command: MeterModCommand, meter_id: MeterId) -> Message {
    let bands = match command {
        MeterModCommand::Add => vec![Band { kind: BandKind::Drop, rate: 1, burst_size: 0 }],
        MeterModCommand::Modify | MeterModCommand::Delete | MeterModCommand::Unknown(_) => {
            Vec::new()
        }
    };
    Message::MeterMod(MeterMod { command, flags: MeterFlags::KBPS, meter_id, bands })
}

fn metered(priority: u16, matching: Match, meter: MeterId) -> Message {
    let Message::FlowMod(mut flow_mod) = add_flow(priority, matching, Vec::new()) else {
        unreachable!()
    };
    flow_mod.instructions.insert(0, Instruction::Meter(meter));
    Message::FlowMod(flow_mod)
}

#[test]
fn a_delete_of_many_meters_is_over_before_what_comes_behind_it() {
    let switch = Switch::start(2, "");
    let mut controller = switch.controller(Version::V1_3);
    for number in 1..=5_000 {
        let meter = MeterId(number);
        controller.send(&meter_mod(MeterModCommand::Add, meter));
        controller.send(&metered(3, Match::any().with(Field::EthDst, number.into()), meter));
    }
    controller.barrier();
    let mut other = switch.controller(Version::V1_3);
    controller.send(&meter_mod(MeterModCommand::Delete, MeterId::ALL));
    let gone = controller.send(&metered(3, Match::any(), MeterId(7)));
    // Its number is free again.
    controller.send(&meter_mod(MeterModCommand::Add, MeterId(7)));
    controller.send(&metered(3, Match::any(), MeterId(7)));
    let barrier = controller.send(&Message::BarrierRequest);
    let echoed = other.request(&Message::EchoRequest(b"y".to_vec()));
    assert!(matches!(echoed, Message::EchoReply(_)), "{echoed:?}");
    let (xid, message) = controller.next();
    let Message::Error(refused) = message else { panic!("{message:?}") };
    let error = refused.error(Version::V1_3);
    assert_eq!((xid, error), (gone, Some(Error::MeterModUnknownMeter)));
    assert_eq!(controller.next(), (barrier, Message::BarrierReply));
    let flows = controller.flow_stats();
    assert_eq!(flows.len(), 1, "{flows:?}");
    let meters = controller.multipart(MultipartRequestBody::MeterConfig(MeterId::ALL));
    let MultipartReplyBody::MeterConfig(meters) = meters else { panic!("{meters:?}") };
    assert_eq!(meters.iter().map(|meter| meter.meter_id).collect::<Vec<_>>(), [MeterId(7)]);
}
