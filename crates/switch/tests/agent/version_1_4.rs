//! OpenFlow 1.4 through the wire: what it has beside 1.3.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::message::{AsyncConfig, AsyncEvent, ControllerRole, Role, RoleReason, RoleStatus};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::table::{TableMod, Vacancy};
use openflow::{Error, Instruction, Message, MeterId, TableId, Version};

use crate::harness::{Controller, Switch, WITH_1_4};

fn role(controller: &mut Controller, role: ControllerRole, generation_id: u64) {
    let reply = controller.request(&Message::RoleRequest(Role { role, generation_id }));
    assert!(matches!(reply, Message::RoleReply(_)), "{reply:?}");
}

#[test]
fn a_replaced_master_gets_a_role_status() {
    let switch = Switch::start(1, WITH_1_4);
    let mut first = switch.controller(Version::V1_4);
    let mut second = switch.controller(Version::V1_3);
    role(&mut first, ControllerRole::Master, 5);
    role(&mut second, ControllerRole::Master, 6);
    let status = RoleStatus {
        role: Role { role: ControllerRole::Slave, generation_id: 6 },
        reason: RoleReason::MasterRequest,
    };
    assert_eq!(first.next().1, Message::RoleStatus(status));
    // 1.3 has ONF's message for it, and the masks of 1.4 may leave it out.
    role(&mut first, ControllerRole::Master, 7);
    let role_of_second = Role { generation_id: 7, ..status.role };
    assert_eq!(second.next().1, Message::RoleStatus(RoleStatus { role: role_of_second, ..status }));
    let silent = AsyncConfig::default().with(AsyncEvent::RoleStatus, [0; 2]);
    first.send(&Message::SetAsync(silent));
    first.barrier();
    role(&mut second, ControllerRole::Master, 8);
    first.barrier();
}

#[test]
fn masks_that_are_not_given_stay() {
    let switch = Switch::start(1, WITH_1_4);
    let mut controller = switch.controller(Version::V1_4);
    let masks = |controller: &mut Controller| match controller.request(&Message::GetAsyncRequest) {
        Message::GetAsyncReply(masks) => masks,
        other => panic!("{other:?}"),
    };
    let before = masks(&mut controller);
    assert_eq!(before.of(AsyncEvent::PacketIn), [0b11_1011, 0]);
    assert_eq!(before.of(AsyncEvent::FlowRemoved), [0b11_1111, 0]);
    let mut change = AsyncConfig::default();
    change.masks[AsyncEvent::PacketIn as usize][1] = Some(0b10);
    controller.send(&Message::SetAsync(change));
    let expected = before.with(AsyncEvent::PacketIn, [0b11_1011, 0b10]);
    assert_eq!(masks(&mut controller), expected);
}

#[test]
fn importance_is_kept_and_a_meter_takes_its_entries_along() {
    let switch = Switch::start(1, WITH_1_4);
    let mut newer = switch.controller(Version::V1_4);
    let mut older = switch.controller(Version::V1_3);
    let meter = |command| {
        Message::MeterMod(MeterMod {
            command,
            flags: MeterFlags::KBPS,
            meter_id: MeterId(1),
            bands: vec![Band { kind: BandKind::Drop, rate: 1_000, burst_size: 0 }],
        })
    };
    newer.send(&meter(MeterModCommand::Add));
    newer.send(&Message::FlowMod(FlowMod {
        importance: 7,
        flags: FlowModFlags::SEND_FLOW_REM,
        instructions: vec![Instruction::Meter(MeterId(1))],
        ..FlowMod::new(FlowModCommand::Add)
    }));
    newer.barrier();
    assert_eq!(newer.flow_stats()[0].importance, 7);
    assert_eq!(older.flow_stats()[0].importance, 0);
    newer.send(&meter(MeterModCommand::Delete));
    for (controller, reason) in
        [(&mut newer, FlowRemovedReason::MeterDelete), (&mut older, FlowRemovedReason::Delete)]
    {
        let (_, Message::FlowRemoved(gone)) = controller.next() else { panic!("no flow-removed") };
        assert_eq!(gone.reason, reason);
    }
}

#[test]
fn what_the_switch_does_not_have_is_refused() {
    let switch = Switch::start(1, &format!("tables = 4\n{WITH_1_4}"));
    let mut controller = switch.controller(Version::V1_4);
    let table = TableMod::new(TableId(0), 0);
    let vacancy = Some(Vacancy { down: 10, up: 20, now: 0 });
    let mask = |event, mask| Message::SetAsync(AsyncConfig::default().with(event, [mask, 0]));
    let twice = Message::FlowMod(FlowMod {
        instructions: vec![Instruction::GotoTable(TableId(1)); 2],
        ..FlowMod::new(FlowModCommand::Add)
    });
    for (message, error) in [
        (Message::TableMod(TableMod { config: 1 << 2, ..table }), Error::TableModBadConfig),
        (Message::TableMod(TableMod { eviction: Some(1), ..table }), Error::BadPropertyBadType),
        (Message::TableMod(TableMod { vacancy, ..table }), Error::BadPropertyBadType),
        (Message::TableMod(TableMod::new(TableId(200), 0)), Error::TableModBadTable),
        (mask(AsyncEvent::PortStatus, 1 << 3), Error::AsyncConfigInvalid),
        (mask(AsyncEvent::TableStatus, 1 << 3), Error::AsyncConfigUnsupported),
        (mask(AsyncEvent::RequestForward, 1), Error::AsyncConfigUnsupported),
        (twice, Error::BadInstructionDupInst),
    ] {
        controller.refused(&message, error);
    }
    controller.send(&mask(AsyncEvent::TableStatus, 0));
    controller.barrier();
}
