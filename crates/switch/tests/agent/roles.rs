//! Roles, generation ids, and the masks of asynchronous messages.

use openflow::message::{AsyncEvent, ControllerRole, Role, RoleReason, RoleStatus};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::{Action, Error, MacAddr, Match, Message, PortNo, Version};

use crate::harness::{Controller, Switch, add_flow, frame, packet_out};

fn ask(controller: &mut Controller, role: ControllerRole, generation_id: u64) -> Role {
    match controller.request(&Message::RoleRequest(Role { role, generation_id })) {
        Message::RoleReply(role) => role,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_master_makes_the_old_one_slave() {
    let switch = Switch::start(1, "");
    let mut first = switch.controller(Version::V1_3);
    let mut second = switch.controller(Version::V1_3);
    let role = ask(&mut first, ControllerRole::NoChange, 0);
    assert_eq!((role.role, role.generation_id), (ControllerRole::Equal, u64::MAX));
    assert_eq!(ask(&mut first, ControllerRole::Master, 5).role, ControllerRole::Master);
    assert_eq!(ask(&mut second, ControllerRole::Master, 6).role, ControllerRole::Master);
    let role = Role { role: ControllerRole::Slave, generation_id: 6 };
    let status = RoleStatus { role, reason: RoleReason::MasterRequest };
    assert_eq!(first.next().1, Message::RoleStatus(status));
    assert_eq!(ask(&mut first, ControllerRole::NoChange, 0), role);
    let stale = Role { role: ControllerRole::Slave, generation_id: 4 };
    first.refused(&Message::RoleRequest(stale), Error::RoleRequestStale);
}

#[test]
fn a_slave_may_ask_but_not_change() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    ask(&mut controller, ControllerRole::Slave, 1);
    controller.refused(&add_flow(1, Match::any(), Vec::new()), Error::BadRequestIsSlave);
    controller.refused(&packet_out(PortNo(1), frame(1)), Error::BadRequestIsSlave);
    let port_mod = PortMod {
        port_no: PortNo(1),
        hw_addr: MacAddr([0; 6]),
        config: PortConfig::empty(),
        mask: PortConfig::empty(),
        advertise: PortFeatures::empty(),
    };
    controller.refused(&Message::PortMod(port_mod), Error::BadRequestIsSlave);
    assert!(matches!(controller.request(&Message::FeaturesRequest), Message::FeaturesReply(_)));
    controller.barrier();
    ask(&mut controller, ControllerRole::Equal, 0);
    controller.send(&add_flow(1, Match::any(), Vec::new()));
    controller.barrier();
}

#[test]
fn masks_choose_who_gets_packet_ins() {
    let switch = Switch::start(1, "");
    let mut host = switch.host(1);
    let mut deaf = switch.controller(Version::V1_3);
    let mut keen = switch.controller(Version::V1_3);
    let Message::GetAsyncReply(masks) = deaf.request(&Message::GetAsyncRequest) else {
        panic!("no masks");
    };
    assert_eq!(masks.of(AsyncEvent::PacketIn), [0b11, 0]);
    let silent = masks.with(AsyncEvent::PacketIn, [0, 0]);
    deaf.send(&Message::SetAsync(silent));
    assert_eq!(deaf.request(&Message::GetAsyncRequest), Message::GetAsyncReply(silent));
    keen.send(&add_flow(1, Match::any(), vec![Action::output(PortNo::CONTROLLER)]));
    keen.barrier();
    host.send(&frame(3));
    assert!(matches!(keen.next(), (_, Message::PacketIn(_))));
    deaf.barrier();
    // As slave the other mask counts, which lets nothing through.
    ask(&mut keen, ControllerRole::Slave, 1);
    host.send(&frame(4));
    crate::harness::until("nobody wants it", || {
        (switch.counter("packet_in_drop_no_controller") == 1).then_some(())
    });
    keen.barrier();
}
