//! Every request that is refused is answered with the right error, its xid and its bytes.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::{Experimenter, MultipartRequest, MultipartRequestBody};
use openflow::meter::{MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortConfig, PortFeatures, PortMod, PortReason};
use openflow::table::{TableFeatures, TableMod};
use openflow::{
    Action, BufferId, Error, GroupId, Instruction, MacAddr, Match, Message, MeterId, PortNo,
    TableId, Version,
};

use crate::harness::{Switch, add_flow, frame, packet_out};

fn multipart(body: MultipartRequestBody) -> Message {
    Message::MultipartRequest(MultipartRequest { more: false, body })
}

fn port_mod(port: u32, mac: MacAddr) -> Message {
    Message::PortMod(PortMod {
        port_no: PortNo(port),
        hw_addr: mac,
        config: PortConfig::PORT_DOWN,
        mask: PortConfig::PORT_DOWN,
        advertise: PortFeatures::empty(),
    })
}

#[test]
fn both_versions_refuse_what_is_wrong() {
    let switch = Switch::start(1, "");
    for version in [Version::V1_0, Version::V1_3] {
        let mut controller = switch.controller(version);
        let stranger = Experimenter { experimenter: 0x1234, exp_type: 0, data: vec![0; 4] };
        controller.refused(&Message::Experimenter(stranger), Error::BadRequestBadExperimenter);
        let buffered =
            FlowMod { buffer_id: Some(BufferId(7)), ..FlowMod::new(FlowModCommand::Add) };
        controller.refused(&Message::FlowMod(buffered), Error::BadRequestBufferUnknown);
        controller.refused(&port_mod(99, MacAddr([0; 6])), Error::PortModBadPort);
        controller.refused(&port_mod(1, MacAddr([9; 6])), Error::PortModBadHwAddr);
        controller.refused(&Message::QueueGetConfigRequest(PortNo(77)), Error::QueueOpBadPort);
        controller.barrier();
    }
    switch.stop();
}

#[test]
fn an_emergency_entry_is_refused_before_its_buffer_is_looked_at() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_0);
    let emergency = FlowMod {
        flags: FlowModFlags::EMERG,
        buffer_id: Some(BufferId(7)),
        ..FlowMod::new(FlowModCommand::Add)
    };
    let idle = FlowMod { idle_timeout_s: 5, ..emergency.clone() };
    let hard = FlowMod { hard_timeout_s: 5, ..emergency.clone() };
    controller.refused(&Message::FlowMod(idle), Error::FlowModBadTimeout);
    controller.refused(&Message::FlowMod(hard), Error::FlowModBadTimeout);
    controller.refused(&Message::FlowMod(emergency), Error::FlowModBadFlags);
}

#[test]
fn what_1_3_alone_can_ask_is_refused_with_its_own_errors() {
    let switch = Switch::start(1, "tables = 4");
    let mut controller = switch.controller(Version::V1_3);
    let instructions = vec![Instruction::GotoTable(TableId(9))];
    let nowhere = FlowMod { instructions, ..FlowMod::new(FlowModCommand::Add) };
    controller.refused(&Message::FlowMod(nowhere), Error::BadInstructionBadTableId);
    let table = FlowMod { table_id: TableId(4), ..FlowMod::new(FlowModCommand::Add) };
    controller.refused(&Message::FlowMod(table), Error::FlowModBadTableId);
    let group = |group_id| {
        Message::GroupMod(GroupMod {
            command: GroupModCommand::Modify,
            group_type: GroupType::All,
            group_id,
            buckets: Vec::new(),
            ..GroupMod::default()
        })
    };
    controller.refused(&group(GroupId(5)), Error::GroupModUnknownGroup);
    let meter = MeterMod {
        command: MeterModCommand::Modify,
        flags: MeterFlags::KBPS,
        meter_id: MeterId(5),
        bands: Vec::new(),
    };
    controller.refused(&Message::MeterMod(meter), Error::MeterModUnknownMeter);
    let table = TableMod::new(TableId(200), 0);
    controller.refused(&Message::TableMod(table), Error::TableModBadTable);
    controller
        .refused(&multipart(MultipartRequestBody::PortStats(PortNo(9))), Error::BadRequestBadPort);
    let features = TableFeatures {
        table_id: TableId(0),
        name: "mine".into(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 1,
        properties: Vec::new(),
    };
    let features = MultipartRequestBody::TableFeatures(vec![features]);
    controller.refused(&multipart(features), Error::TableFeaturesBadArgument);
    let to_group = add_flow(1, Match::any(), vec![Action::Group(GroupId(9))]);
    controller.refused(&to_group, Error::BadActionBadOutGroup);
    controller.refused(&packet_out(PortNo(0xffff_ff77), frame(0)), Error::BadActionBadOutPort);
    controller.barrier();
}

#[test]
fn what_only_a_switch_may_send_is_of_a_bad_type() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    controller.refused(&Message::BarrierReply, Error::BadRequestBadType);
    controller.barrier();
}

#[test]
fn a_port_mod_takes_effect_and_is_reported() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(1);
    let mut controller = switch.controller(Version::V1_3);
    let mut other = switch.controller(Version::V1_0);
    let ports = controller.port_descs();
    controller.send(&port_mod(1, ports[0].hw_addr));
    for peer in [&mut controller, &mut other] {
        let (_, message) = peer.next();
        let Message::PortStatus(status) = message else { panic!("{message:?}") };
        assert_eq!((status.reason, status.desc.port_no), (PortReason::Modify, PortNo(1)));
        assert!(status.desc.config.contains(PortConfig::PORT_DOWN));
    }
    // A port-status says what was asked for; a barrier reply, that the workers do it.
    controller.barrier();
    host.send(&frame(1));
    crate::harness::until("the frame is dropped", || {
        (switch.counter("drop_ingress_down") == 1).then_some(())
    });
    assert_eq!(controller.port_stats(PortNo(1))[0].rx_dropped, 1);
}
