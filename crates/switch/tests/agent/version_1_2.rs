//! OpenFlow 1.2 through the wire: what it lacks of 1.3, and what it has in another place.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::message::{
    ControllerRole, MultipartReplyBody, MultipartRequestBody, PacketInReason, Role, SwitchConfig,
};
use openflow::table::TableMod;
use openflow::{
    Action, Cookie, Error, Field, Instruction, InstructionKind, Match, Message, PortNo, TableId,
    Version,
};

use crate::harness::{Controller, Switch, frame};

/// The line by which a switch speaks 1.2 too.
const WITH_1_2: &str = "protocols = [\"OpenFlow12\", \"OpenFlow13\"]\n";

/// The flag of settings that asks for packets with an invalid TTL.
const INVALID_TTL: u16 = SwitchConfig::INVALID_TTL;

fn config(controller: &mut Controller) -> SwitchConfig {
    match controller.request(&Message::GetConfigRequest) {
        Message::GetConfigReply(config) => config,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ports_and_abilities_of_tables_stand_where_1_2_has_them() {
    let switch = Switch::start(2, &format!("tables = 3\n{WITH_1_2}"));
    let mut controller = switch.controller(Version::V1_2);
    let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest) else {
        panic!("no features");
    };
    let ports: Vec<PortNo> = features.ports.iter().map(|port| port.port_no).collect();
    assert_eq!((ports, features.n_tables), (vec![PortNo(1), PortNo(2)], 3));
    let tables = controller.table_stats();
    assert_eq!(tables.len(), 3);
    for table in &tables {
        let can = table.abilities;
        // The fields of 1.2 are numbers 0 to 35, its actions end with 25, its instructions with 5.
        assert_eq!((can.matches >> 36, can.wildcards), (0, can.matches));
        assert!(can.matches & 1 != 0 && can.apply_setfields & 1 << 3 != 0);
        assert_eq!((can.apply_actions, can.write_actions), (0x03ff_9801, 0x03ff_9801));
        assert_eq!((can.metadata_match, can.metadata_write), (u64::MAX, u64::MAX));
        let goto = u32::from(InstructionKind::GotoTable.number(Version::V1_2).unwrap());
        let leads_on = table.table_id.0 < 2;
        assert_eq!(can.instructions, 0b11_1100 | u32::from(leads_on) << goto);
        assert_eq!((can.config, table.max_entries), (0, 1_000_000));
    }
    assert_eq!(switch.controller(Version::V1_3).table_stats()[0].max_entries, 0);
}

#[test]
fn packets_without_an_entry_reach_it_and_carry_no_cookie() {
    let switch = Switch::start(2, WITH_1_2);
    let mut controller = switch.controller(Version::V1_2);
    let mut newer = switch.controller(Version::V1_3);
    controller.barrier();
    newer.barrier();
    let mut host = switch.host(1);
    host.send(&frame(1));
    let (_, Message::PacketIn(packet_in)) = controller.next() else { panic!("no packet-in") };
    assert_eq!((packet_in.reason, packet_in.cookie), (PacketInReason::NoMatch, Cookie(u64::MAX)));
    assert_eq!((packet_in.in_port(), packet_in.data), (Some(PortNo(1)), frame(1)));
    // There is no table-miss entry: one of priority 0 is like any other.
    let output = Action::Output { port: PortNo::CONTROLLER, max_len: 0xffff };
    controller.send(&Message::FlowMod(FlowMod {
        priority: 0,
        cookie: Cookie(5),
        instructions: vec![Instruction::ApplyActions(vec![output])],
        ..FlowMod::new(FlowModCommand::Add)
    }));
    controller.barrier();
    host.send(&frame(1));
    let (_, Message::PacketIn(packet_in)) = controller.next() else { panic!("no packet-in") };
    assert_eq!((packet_in.reason, packet_in.table_id), (PacketInReason::Action, TableId(0)));
    newer.next();
}

#[test]
fn a_flag_asks_for_packets_with_an_invalid_ttl() {
    let switch = Switch::start(1, WITH_1_2);
    let mut controller = switch.controller(Version::V1_2);
    let mut other = switch.controller(Version::V1_2);
    for flags in [INVALID_TTL | 1, INVALID_TTL, 2] {
        let asked = SwitchConfig { flags, miss_send_len: 77 };
        controller.send(&Message::SetConfig(asked));
        assert_eq!(config(&mut controller), asked);
        // It is the controller's own; fragments are the switch's.
        assert_eq!(config(&mut other).flags, flags & !INVALID_TTL);
    }
    let bad = Message::SetConfig(SwitchConfig { flags: INVALID_TTL | 3, miss_send_len: 9 });
    controller.refused(&bad, Error::SwitchConfigBadFlags);
    assert_eq!(config(&mut controller), SwitchConfig { flags: 2, miss_send_len: 77 });
    let mut newer = switch.controller(Version::V1_3);
    let flag = Message::SetConfig(SwitchConfig { flags: INVALID_TTL, miss_send_len: 9 });
    newer.refused(&flag, Error::SwitchConfigBadFlags);
}

#[test]
fn a_ttl_that_is_used_up_goes_to_the_controller_that_asked() {
    let switch = Switch::start(1, WITH_1_2);
    let mut controller = switch.controller(Version::V1_2);
    controller.send(&Message::SetConfig(SwitchConfig { flags: INVALID_TTL, miss_send_len: 128 }));
    controller.send(&Message::FlowMod(FlowMod {
        matching: Match::any().with(Field::EthType, 0x0800),
        instructions: vec![Instruction::ApplyActions(vec![Action::DecNwTtl])],
        ..FlowMod::new(FlowModCommand::Add)
    }));
    controller.barrier();
    let mut packet = frame(1);
    packet.truncate(12);
    packet.extend([0x08, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.resize(60, 0);
    switch.host(1).send(&packet);
    let (_, Message::PacketIn(packet_in)) = controller.next() else { panic!("no packet-in") };
    assert_eq!(packet_in.reason, PacketInReason::InvalidTtl);
}

#[test]
fn roles_are_there_and_statistics_of_entries_have_no_flags() {
    let switch = Switch::start(1, WITH_1_2);
    let mut controller = switch.controller(Version::V1_2);
    let role = Role { role: ControllerRole::Master, generation_id: 7 };
    assert_eq!(controller.request(&Message::RoleRequest(role)), Message::RoleReply(role));
    let flags = FlowModFlags::SEND_FLOW_REM | FlowModFlags::RESET_COUNTS;
    controller.send(&Message::FlowMod(FlowMod { flags, ..FlowMod::new(FlowModCommand::Add) }));
    controller.barrier();
    assert_eq!(controller.flow_stats()[0].flags, FlowModFlags::empty());
    assert_eq!(switch.controller(Version::V1_3).flow_stats()[0].flags, flags);
    let MultipartReplyBody::GroupFeatures(features) =
        controller.multipart(MultipartRequestBody::GroupFeatures)
    else {
        panic!("no features of groups")
    };
    assert_eq!(features.actions, [0x03ff_9801; 4]);
}

#[test]
fn what_came_later_is_refused() {
    let switch = Switch::start(1, &format!("tables = 4\n{WITH_1_2}"));
    let mut controller = switch.controller(Version::V1_2);
    let uncounted =
        FlowMod { flags: FlowModFlags::NO_PKT_COUNTS, ..FlowMod::new(FlowModCommand::Add) };
    for (message, error) in [
        (Message::FlowMod(uncounted), Error::FlowModBadFlags),
        (Message::TableMod(TableMod::new(TableId(0), 1)), Error::TableModBadConfig),
        (Message::TableMod(TableMod::new(TableId::ALL, 2)), Error::TableModBadConfig),
        (Message::TableMod(TableMod::new(TableId(9), 0)), Error::TableModBadTable),
    ] {
        controller.refused(&message, error);
    }
    controller.send(&Message::TableMod(TableMod::new(TableId::ALL, 0)));
    controller.barrier();
    // Messages that 1.2 cannot say, in 1.3's words.
    let later = |message: &Message, error: Error, controller: &mut Controller| {
        let mut bytes = wire::encode(Version::V1_3, openflow::Xid(9), message).unwrap();
        bytes[0] = Version::V1_2.number();
        controller.raw(&bytes);
        let (_, Message::Error(found)) = controller.next() else { panic!("{message:?} is taken") };
        assert_eq!(found.error(Version::V1_2), Some(error), "{message:?}");
    };
    let features = MultipartRequestBody::TableFeatures(Vec::new());
    let features = Message::MultipartRequest(openflow::message::MultipartRequest {
        more: false,
        body: features,
    });
    let with = |instruction| {
        let instructions = vec![instruction];
        Message::FlowMod(FlowMod { instructions, ..FlowMod::new(FlowModCommand::Add) })
    };
    let tunnel = FlowMod {
        matching: Match::any().with(Field::TunnelId, 1),
        ..FlowMod::new(FlowModCommand::Add)
    };
    let push = Action::PushPbb(0x88e7);
    for (message, error) in [
        (Message::GetAsyncRequest, Error::BadRequestBadType),
        (features, Error::BadRequestBadMultipart),
        (with(Instruction::Meter(openflow::MeterId(1))), Error::BadInstructionUnknownInst),
        (with(Instruction::ApplyActions(vec![push])), Error::BadActionBadType),
        (Message::FlowMod(tunnel), Error::BadMatchBadField),
    ] {
        later(&message, error, &mut controller);
    }
    controller.barrier();
}
