//! Flow-mods of OpenFlow 1.0 that name their table, by Nicira's `NXT_FLOW_MOD_TABLE_ID`.

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::Experimenter;
use openflow::{Cookie, Error, Message, Version, Xid};

use crate::harness::{Controller, Switch};

use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};

/// The number that names no table.
const NONE: u8 = 0xff;

/// Chooses that commands hold the table, or not.
fn choose(controller: &mut Controller, is_set: bool) {
    let mut data = vec![0, 0, 0, 15, is_set.into()];
    data.resize(12, 0);
    let choice = Experimenter { experimenter: 0x2320, exp_type: 0, data };
    controller.send(&Message::Experimenter(choice));
}

/// A flow-mod with a table above its command, which stands after header, match and cookie.
fn flow_mod(table: u8, command: FlowModCommand, priority: u16, cookie: u64) -> Vec<u8> {
    let flow_mod = FlowMod { priority, cookie: Cookie(cookie), ..FlowMod::new(command) };
    let mut frame = wire::encode(Version::V1_0, Xid(9), &Message::FlowMod(flow_mod)).unwrap();
    frame[8 + 40 + 8] = table;
    frame
}

/// The table, priority and cookie of each entry, sorted.
fn entries(controller: &mut Controller) -> Vec<(u8, u16, u64)> {
    let entries = controller.flow_stats();
    let entries = entries.iter().map(|entry| (entry.table_id.0, entry.priority, entry.cookie.0));
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable();
    entries
}

fn refused(controller: &mut Controller, frame: &[u8], error: Error) {
    controller.raw(frame);
    let (xid, answer) = controller.next();
    let Message::Error(found) = answer else { panic!("{answer:?}") };
    assert_eq!((found.error_type, found.code), error.numbers(Version::V1_0));
    assert_eq!((xid, &found.data[..]), (Xid(9), frame));
}

#[test]
fn commands_of_1_0_are_of_the_table_that_they_name() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_0);
    choose(&mut controller, true);
    // All in one piece: what follows the choice is read by it.
    let added =
        [flow_mod(3, Add, 1, 1), flow_mod(NONE, Add, 2, 1), flow_mod(0, ModifyStrict, 3, 1)];
    controller.raw(&added.concat());
    assert_eq!(entries(&mut controller), [(0, 2, 1), (0, 3, 1), (3, 1, 1)]);
    controller.raw(&flow_mod(3, Modify, 0, 2));
    assert_eq!(entries(&mut controller), [(0, 2, 1), (0, 3, 1), (3, 1, 2)]);
    controller.raw(&flow_mod(NONE, Modify, 0, 3));
    assert_eq!(entries(&mut controller), [(0, 2, 3), (0, 3, 3), (3, 1, 3)]);
    controller.raw(&flow_mod(0, DeleteStrict, 1, 0));
    controller.raw(&flow_mod(0, DeleteStrict, 2, 0));
    assert_eq!(entries(&mut controller), [(0, 3, 3), (3, 1, 3)]);
    controller.raw(&flow_mod(0, Delete, 0, 0));
    assert_eq!(entries(&mut controller), [(3, 1, 3)]);
    controller.raw(&flow_mod(NONE, Delete, 0, 0));
    assert_eq!(entries(&mut controller), []);
    switch.stop();
}

#[test]
fn a_choice_holds_for_its_connection_until_the_next_one() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_0);
    let mut other = switch.controller(Version::V1_0);
    let in_third = flow_mod(3, Add, 1, 1);
    refused(&mut controller, &in_third, Error::FlowModBadCommand);
    choose(&mut controller, true);
    controller.raw(&in_third);
    assert_eq!(entries(&mut controller), [(3, 1, 1)]);
    refused(&mut other, &in_third, Error::FlowModBadCommand);
    // Without a table the commands of the other are of all.
    other.raw(&flow_mod(0, Modify, 0, 2));
    assert_eq!(entries(&mut other), [(3, 1, 2)]);
    choose(&mut controller, false);
    refused(&mut controller, &in_third, Error::FlowModBadCommand);
    controller.raw(&flow_mod(0, Delete, 0, 0));
    assert_eq!(entries(&mut controller), []);
    switch.stop();
}
