//! OpenFlow 1.4 through the wire: what it has beside 1.3.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::message::{AsyncConfig, AsyncEvent, ControllerRole, Role, RoleReason, RoleStatus};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::table::{TableMod, TableReason, TableStatus, Vacancy};
use openflow::{Error, Instruction, Message, MessageKind, MeterId, PortNo, TableId, Version};

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

fn entry(priority: u16, importance: u16, hard_timeout_s: u16) -> Message {
    let flags = FlowModFlags::SEND_FLOW_REM;
    let new = FlowMod::new(FlowModCommand::Add);
    Message::FlowMod(FlowMod { priority, importance, hard_timeout_s, flags, ..new })
}

#[test]
fn a_full_table_evicts_the_least_important_entry() {
    let switch = Switch::start(1, &format!("max-entries = 3\n{WITH_1_4}"));
    let mut newer = switch.controller(Version::V1_4);
    let mut older = switch.controller(Version::V1_3);
    let table = TableMod::new(TableId(0), TableMod::EVICTION);
    older.refused(&Message::TableMod(table), Error::TableModBadConfig);
    for message in [entry(1, 5, 100), entry(2, 4, 300), entry(3, 4, 200)] {
        newer.send(&message);
    }
    newer.refused(&entry(4, 9, 9), Error::FlowModTableFull);
    newer.send(&Message::TableMod(table));
    newer.send(&entry(4, 9, 0));
    for (controller, reason) in
        [(&mut newer, FlowRemovedReason::Eviction), (&mut older, FlowRemovedReason::Delete)]
    {
        let (_, Message::FlowRemoved(gone)) = controller.next() else { panic!("no flow-removed") };
        assert_eq!((gone.priority, gone.reason), (3, reason));
    }
    let held = |controller: &mut Controller| {
        let held = controller.flow_stats().into_iter().map(|entry| entry.priority);
        held.collect::<Vec<_>>()
    };
    assert_eq!(held(&mut newer), [4, 2, 1]);
    newer.send(&Message::TableMod(TableMod::new(TableId::ALL, 0)));
    newer.refused(&entry(5, 9, 9), Error::FlowModTableFull);
}

#[test]
fn vacancy_events_reach_the_controllers_that_ask() {
    let switch = Switch::start(1, &format!("max-entries = 10\n{WITH_1_4}"));
    let mut newer = switch.controller(Version::V1_4);
    let mut older = switch.controller(Version::V1_3);
    let mut silent = switch.controller(Version::V1_4);
    silent.send(&Message::SetAsync(AsyncConfig::default().with(AsyncEvent::TableStatus, [0; 2])));
    silent.barrier();
    let vacancy = Some(Vacancy { down: 30, up: 70, now: 0 });
    let config = TableMod::VACANCY_EVENTS;
    newer.send(&Message::TableMod(TableMod { vacancy, ..TableMod::new(TableId(0), config) }));
    let expect = |controller: &mut Controller, reason, now| {
        let (_, message) = controller.next();
        let Message::TableStatus(status) = message else { panic!("{message:?}") };
        let vacancy = Some(Vacancy { down: 30, up: 70, now });
        let table = TableMod { eviction: Some(7), vacancy, ..TableMod::new(TableId(0), config) };
        assert_eq!(status, TableStatus { reason, table });
    };
    for priority in 0..7 {
        newer.send(&entry(priority, 0, 0));
    }
    newer.barrier();
    newer.send(&entry(8, 0, 0));
    expect(&mut newer, TableReason::VacancyDown, 20);
    newer.send(&entry(9, 0, 0));
    newer.barrier();
    let flow_mod = FlowMod { out_port: PortNo(7), ..FlowMod::new(FlowModCommand::Delete) };
    newer.send(&Message::FlowMod(flow_mod));
    newer.barrier();
    newer.send(&Message::FlowMod(FlowMod::new(FlowModCommand::Delete)));
    // Of the entries that go too there is a message each.
    let mut kinds = Vec::new();
    while kinds.len() < 10 {
        let (_, message) = newer.next();
        if let Message::TableStatus(status) = &message {
            let now = status.table.vacancy.map(|vacancy| vacancy.now);
            assert_eq!((status.reason, now), (TableReason::VacancyUp, Some(100)));
        }
        kinds.push(message.kind());
    }
    let count = |kind| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((count(MessageKind::TableStatus), count(MessageKind::FlowRemoved)), (1, 9));
    for other in [&mut older, &mut silent] {
        for _ in 0..9 {
            assert_eq!(other.next().1.kind(), MessageKind::FlowRemoved);
        }
        other.barrier();
    }
}

#[test]
fn what_the_switch_does_not_have_is_refused() {
    let switch = Switch::start(1, &format!("tables = 4\n{WITH_1_4}"));
    let mut controller = switch.controller(Version::V1_4);
    let table = TableMod::new(TableId(0), 0);
    let vacancy = Some(Vacancy { down: 10, up: 20, now: 7 });
    let mask = |event, mask| Message::SetAsync(AsyncConfig::default().with(event, [mask, 0]));
    let twice = Message::FlowMod(FlowMod {
        instructions: vec![Instruction::GotoTable(TableId(1)); 2],
        ..FlowMod::new(FlowModCommand::Add)
    });
    for (message, error) in [
        (Message::TableMod(TableMod { config: 1 << 4, ..table }), Error::TableModBadConfig),
        (Message::TableMod(TableMod { eviction: Some(1), ..table }), Error::TableModBadConfig),
        (Message::TableMod(TableMod { vacancy, ..table }), Error::BadPropertyBadValue),
        (Message::TableMod(TableMod::new(TableId(200), 0)), Error::TableModBadTable),
        (mask(AsyncEvent::PortStatus, 1 << 3), Error::AsyncConfigInvalid),
        (mask(AsyncEvent::TableStatus, 1 << 2), Error::AsyncConfigInvalid),
        (mask(AsyncEvent::RequestForward, 1), Error::AsyncConfigUnsupported),
        (twice, Error::BadInstructionDupInst),
    ] {
        controller.refused(&message, error);
    }
    controller.send(&mask(AsyncEvent::TableStatus, 0));
    controller.barrier();
}
