//! OpenFlow 1.1 through the wire: its own match and actions, and what it lacks of 1.2.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::GroupModCommand;
use openflow::message::{
    Capabilities, MultipartReplyBody, MultipartRequestBody, PacketInReason, SwitchConfig,
};
use openflow::text::parse_group_mod;
use openflow::{
    Action, Cookie, Error, Field, GroupId, Instruction, Match, Message, PortNo, TableId, Version,
};

use crate::harness::{Controller, Switch, add_flow, frame};

/// The line by which a switch speaks 1.1 too.
const WITH_1_1: &str = "protocols = [\"OpenFlow11\", \"OpenFlow13\"]\n";

fn apply(actions: Vec<Action>) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(actions)]
}

#[test]
fn ports_and_abilities_of_tables_stand_where_1_1_has_them() {
    let switch = Switch::start(2, &format!("tables = 3\n{WITH_1_1}"));
    let mut controller = switch.controller(Version::V1_1);
    let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest) else {
        panic!("no features");
    };
    let ports: Vec<PortNo> = features.ports.iter().map(|port| port.port_no).collect();
    assert_eq!((ports, features.n_tables), (vec![PortNo(1), PortNo(2)], 3));
    let groups = Capabilities::ARP_MATCH_IP | Capabilities::GROUP_STATS;
    assert!(features.capabilities.contains(groups));
    for table in controller.table_stats() {
        let can = table.abilities;
        // All members of the match, and all actions but those of experimenters, which end with 24.
        assert_eq!((can.matches, can.wildcards), (0xffff, 0xffff));
        assert_eq!((can.apply_actions, can.write_actions), (0x01ff_ffff, 0x01ff_ffff));
        let leads_on = u32::from(table.table_id.0 < 2);
        assert_eq!(can.instructions, 0b11_1100 | leads_on << 1);
        assert_eq!((can.config, table.max_entries), (0, 1_000_000));
    }
}

#[test]
fn entries_have_its_match_and_its_actions() {
    let switch = Switch::start(2, WITH_1_1);
    let mut controller = switch.controller(Version::V1_1);
    let tagged = Match::any()
        .with_masked(Field::EthSrc, 0x0200_0000_0000, 0xff00_0000_0000)
        .with(Field::VlanVid, 0x1005)
        .with(Field::EthType, 0x0800)
        .with(Field::IpProto, 6);
    let actions = vec![
        Action::SetTagVid(7),
        Action::SetTagPcp(3),
        Action::SetNwEcn(2),
        Action::SetTpDst(80),
        Action::output(PortNo(2)),
    ];
    controller.send(&add_flow(5, tagged.clone(), actions.clone()));
    controller.barrier();
    let held = controller.flow_stats();
    assert_eq!((&held[0].matching, &held[0].instructions), (&tagged, &apply(actions)));
    // To later versions they are set-fields.
    let set = Action::set_field;
    let fields = vec![
        set(Field::VlanVid, 0x1007),
        set(Field::VlanPcp, 3),
        set(Field::IpEcn, 2),
        set(Field::TcpDst, 80),
        Action::output(PortNo(2)),
    ];
    let mut newer = switch.controller(Version::V1_3);
    assert_eq!(newer.flow_stats()[0].instructions, apply(fields));
    // What its match has no room for comes as OXM fields.
    let ipv6 = Match::any().with(Field::EthType, 0x86dd).with(Field::Ipv6Src, 1);
    newer.send(&add_flow(6, ipv6.clone(), vec![set(Field::Metadata, 9)]));
    newer.barrier();
    let held = controller.flow_stats();
    let held = held.iter().find(|entry| entry.priority == 6).unwrap();
    assert_eq!(held.matching, ipv6);
    let openflow_1_1 = openflow::text::format_instructions(&held.instructions);
    assert_eq!(openflow_1_1, "load:0x9->OXM_OF_METADATA[]");
}

#[test]
fn its_actions_change_packets() {
    let switch = Switch::start(2, WITH_1_1);
    let mut controller = switch.controller(Version::V1_1);
    let actions = vec![
        Action::PushVlan(0x8100),
        Action::SetTagVid(0x123),
        Action::SetTagPcp(5),
        Action::output(PortNo(2)),
    ];
    controller.send(&add_flow(5, Match::any(), actions));
    controller.barrier();
    let (mut one, mut two) = (switch.host(1), switch.host(2));
    one.send(&frame(1));
    let received = two.receive();
    assert_eq!(received[12..16], [0x81, 0, 0xa1, 0x23]);
    // The same in a bucket, where nothing is known of packets.
    let group = "group_id=3,type=indirect,bucket=set_vlan_vid:1,mod_tp_src:7,output:2";
    let group = parse_group_mod(group, GroupModCommand::Add).unwrap();
    controller.send(&Message::GroupMod(group));
    let push = vec![Action::PushVlan(0x8100), Action::Group(GroupId(3))];
    controller.send(&add_flow(6, Match::any(), push));
    controller.barrier();
    one.send(&frame(2));
    assert_eq!(two.receive()[12..16], [0x81, 0, 0, 1]);
}

#[test]
fn packets_without_an_entry_reach_it_and_say_their_table() {
    let switch = Switch::start(2, WITH_1_1);
    let mut controller = switch.controller(Version::V1_1);
    controller.barrier();
    let mut host = switch.host(1);
    host.send(&frame(1));
    let (_, Message::PacketIn(packet_in)) = controller.next() else { panic!("no packet-in") };
    assert_eq!((packet_in.reason, packet_in.cookie), (PacketInReason::NoMatch, Cookie(u64::MAX)));
    assert_eq!((packet_in.in_port(), packet_in.data), (Some(PortNo(1)), frame(1)));
    let output = Action::Output { port: PortNo::CONTROLLER, max_len: 0xffff };
    let goto = vec![Instruction::GotoTable(TableId(1))];
    controller.send(&Message::FlowMod(FlowMod {
        instructions: goto,
        ..FlowMod::new(FlowModCommand::Add)
    }));
    controller.send(&Message::FlowMod(FlowMod {
        table_id: TableId(1),
        instructions: apply(vec![output]),
        ..FlowMod::new(FlowModCommand::Add)
    }));
    controller.barrier();
    host.send(&frame(1));
    let (_, Message::PacketIn(packet_in)) = controller.next() else { panic!("no packet-in") };
    assert_eq!((packet_in.reason, packet_in.table_id), (PacketInReason::Action, TableId(1)));
}

fn modify(cookie: u64, cookie_mask: u64, port: u32) -> Message {
    Message::FlowMod(FlowMod {
        cookie: Cookie(cookie),
        cookie_mask,
        matching: Match::any().with(Field::InPort, port.into()),
        instructions: apply(vec![Action::output(PortNo(2))]),
        ..FlowMod::new(FlowModCommand::Modify)
    })
}

fn cookies(controller: &mut Controller) -> Vec<u64> {
    controller.flow_stats().iter().map(|entry| entry.cookie.0).collect()
}

/// As Open vSwitch 3.1 does.
#[test]
fn a_modify_adds_where_it_looks_for_no_cookie_and_none_is_there() {
    let switch = Switch::start(2, WITH_1_1);
    let mut controller = switch.controller(Version::V1_1);
    controller.send(&modify(9, u64::MAX, 1));
    controller.barrier();
    assert_eq!(cookies(&mut controller), Vec::<u64>::new());
    controller.send(&modify(7, 0, 1));
    controller.barrier();
    assert_eq!(cookies(&mut controller), [7]);
    // The cookie of an entry that is there stays.
    controller.send(&modify(8, 0, 1));
    controller.barrier();
    assert_eq!(cookies(&mut controller), [7]);
}

#[test]
fn a_flag_asks_for_packets_with_an_invalid_ttl() {
    let switch = Switch::start(1, WITH_1_1);
    let mut controller = switch.controller(Version::V1_1);
    let asked = SwitchConfig { flags: SwitchConfig::INVALID_TTL, miss_send_len: 77 };
    controller.send(&Message::SetConfig(asked));
    let config = controller.request(&Message::GetConfigRequest);
    assert_eq!(config, Message::GetConfigReply(asked));
}

#[test]
fn what_came_later_or_does_not_fit_is_refused() {
    let switch = Switch::start(1, &format!("tables = 4\n{WITH_1_1}"));
    let mut controller = switch.controller(Version::V1_1);
    let ip = || Match::any().with(Field::EthType, 0x0800);
    let with = |matching: Match, action: Action| add_flow(5, matching, vec![action]);
    let flags = |flags| Message::FlowMod(FlowMod { flags, ..FlowMod::new(FlowModCommand::Add) });
    let unknown_group = with(ip(), Action::Group(GroupId(9)));
    for (message, error) in [
        (with(Match::any(), Action::SetTagVid(5)), Error::BadActionMatchInconsistent),
        (with(Match::any(), Action::SetNwEcn(1)), Error::BadActionMatchInconsistent),
        (with(Match::any(), Action::SetNwTos(8)), Error::BadActionMatchInconsistent),
        (with(ip(), Action::SetTpDst(80)), Error::BadActionMatchInconsistent),
        (with(ip(), Action::SetMplsLabel(1)), Error::BadActionMatchInconsistent),
        (with(ip(), Action::SetNwTos(3)), Error::BadActionBadArgument),
        (unknown_group, Error::BadActionBadOutGroup),
        (flags(FlowModFlags::RESET_COUNTS), Error::FlowModUnknown),
    ] {
        controller.refused(&message, error);
    }
    assert_eq!(controller.flow_stats(), []);
    let features = openflow::message::MultipartRequest {
        more: false,
        body: MultipartRequestBody::GroupFeatures,
    };
    for message in [Message::GetAsyncRequest, Message::MultipartRequest(features)] {
        let mut bytes = wire::encode(Version::V1_3, openflow::Xid(9), &message).unwrap();
        bytes[0] = Version::V1_1.number();
        controller.raw(&bytes);
        let (_, Message::Error(found)) = controller.next() else { panic!("{message:?} is taken") };
        let error = found.error(Version::V1_1);
        let refused = [Error::BadRequestBadType, Error::BadRequestBadMultipart];
        assert!(error.is_some_and(|error| refused.contains(&error)), "{message:?}");
    }
    let MultipartReplyBody::GroupDesc(groups) =
        controller.multipart(MultipartRequestBody::GroupDesc)
    else {
        panic!("no groups")
    };
    assert_eq!(groups, []);
}
