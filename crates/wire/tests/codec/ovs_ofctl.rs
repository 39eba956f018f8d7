//! The codec and the text syntax against what ovs-ofctl sends: a text parses to the same message as
//! the captured bytes decode to, and the message encodes to the captured bytes.
//!
//! `vectors/tools/from_ovs_ofctl.py` captured them. The name of a record begins with the command of
//! ovs-ofctl that its text was given to.

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowForm, FlowMod, FlowModCommand};
use openflow::group::GroupModCommand;
use openflow::message::PacketInForm;
use openflow::meter::MeterModCommand;
use openflow::text::{self, TextError};
use openflow::{Action, BucketId, Error, Instruction, Message, PortNo, TableId, Version, Xid};
use testkit::vectors::Vector;
use wire::Forms;

fn vectors() -> Vec<Vector> {
    let all = testkit::vectors::load_dir(&testkit::vectors_dir("ovs-ofctl")).unwrap();
    assert!(all.len() >= 260, "only {} vectors", all.len());
    all
}

#[test]
fn every_message_encodes_to_the_captured_bytes() {
    let all = vectors();
    let mut failed = Vec::new();
    for vector in &all {
        let place = vector.place();
        let decoded = wire::decode(&vector.bytes);
        if let Some(error) = &vector.error {
            assert_eq!(decoded.expect_err(&place).error.name(), error, "{place}");
            continue;
        }
        let found = decoded.map_err(|error| error.to_string()).and_then(|decoded| {
            let (version, xid, message) = decoded;
            wire::encode(version, xid, &message).map_err(|error| error.to_string())
        });
        let name = format!("{}/canonical", vector.name);
        let twin = all.iter().find(|other| other.file == vector.file && other.name == name);
        let expected = testkit::hex::format(twin.map_or(&vector.bytes, |twin| &twin.bytes));
        let found = found.map_or_else(|error| error, |bytes| testkit::hex::format(&bytes));
        if found != expected {
            failed.push(format!("{place}: {found}\ninstead of\n{expected}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn every_text_parses_to_what_the_bytes_decode_to() {
    let mut compared = 0;
    for vector in vectors().iter().filter(|vector| vector.error.is_none()) {
        let place = vector.place();
        let Some(text) = &vector.text else { continue };
        let Some(parsed) = parse(&vector.name, text) else { continue };
        let parsed = parsed.unwrap_or_else(|error| panic!("{place}: {text}: {error}"));
        let (version, _, decoded) = wire::decode(&vector.bytes).unwrap();
        assert_eq!(comparable(version, parsed), comparable(version, decoded), "{place}: {text}");
        compared += 1;
    }
    assert!(compared >= 210, "only {compared} texts");
}

/// The message that ovs-ofctl's command makes of a text; `None` for commands that take another.
fn parse(name: &str, text: &str) -> Option<Result<Message, TextError>> {
    let flow = |command| text::parse_flow_mod(text, command).map(Message::FlowMod);
    let group = |command| text::parse_group_mod(text, command).map(Message::GroupMod);
    let meter = |command| text::parse_meter_mod(text, command).map(Message::MeterMod);
    Some(match name.split_once('/').unwrap().0 {
        "add-flow" => flow(FlowModCommand::Add),
        "mod-flows" => flow(FlowModCommand::Modify),
        "mod-flows-strict" => flow(FlowModCommand::ModifyStrict),
        "del-flows" => flow(FlowModCommand::Delete),
        "del-flows-strict" => flow(FlowModCommand::DeleteStrict),
        "add-group" => group(GroupModCommand::Add),
        "mod-group" => group(GroupModCommand::Modify),
        "del-groups" => group(GroupModCommand::Delete),
        "insert-buckets" => group(GroupModCommand::InsertBucket),
        "remove-buckets" => group(GroupModCommand::RemoveBucket),
        "add-meter" => meter(MeterModCommand::Add),
        "mod-meter" => meter(MeterModCommand::Modify),
        "del-meter" | "del-meters" => meter(MeterModCommand::Delete),
        "command" => return None,
        other => panic!("no test for {other}"),
    })
}

/// The message without what the text does not say: how much of a packet goes to a port that is not
/// the controller, the numbers of buckets, and, in 1.0, the table of a modify or delete.
fn comparable(version: Version, mut message: Message) -> Message {
    match &mut message {
        Message::FlowMod(flow) => {
            flow.instructions.iter_mut().for_each(without_max_len);
            without_table(version, flow);
        }
        Message::GroupMod(group) => {
            for (place, bucket) in (0..).zip(&mut group.buckets) {
                bucket.bucket_id.get_or_insert(BucketId(place));
                bucket.actions.iter_mut().for_each(action_without_max_len);
            }
        }
        _ => {}
    }
    message
}

fn without_table(version: Version, flow: &mut FlowMod) {
    if version == Version::V1_0 && flow.table_id == TableId::ALL {
        flow.table_id = TableId(0);
    }
}

fn without_max_len(instruction: &mut Instruction) {
    if let Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) = instruction {
        actions.iter_mut().for_each(action_without_max_len);
    }
}

fn action_without_max_len(action: &mut Action) {
    if let Action::Clone(list) = action {
        list.iter_mut().for_each(action_without_max_len);
    }
    // In 1.5 a load of all bits is a set-field.
    *action = action.as_whole();
    if let Action::Output { port, max_len } = action
        && *port != PortNo::CONTROLLER
    {
        *max_len = MAX_LEN_NO_BUFFER;
    }
}

#[test]
fn a_command_of_1_0_holds_a_table_where_that_was_chosen() {
    /// The place of the command: after header, match and cookie.
    const COMMAND_AT: usize = 8 + 40 + 8;
    const NAMED: Forms = Forms {
        has_table_ids: true,
        flows: FlowForm::Standard,
        packet_ins: PacketInForm::Standard,
    };
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict, Unknown};
    for (command, unnamed) in [
        (Add, TableId(0)),
        (Modify, TableId::ALL),
        (ModifyStrict, TableId::ALL),
        (Delete, TableId::ALL),
        (DeleteStrict, TableId::ALL),
        (Unknown(9), TableId(0)),
    ] {
        let message = Message::FlowMod(FlowMod::new(command));
        let mut frame = wire::encode(Version::V1_0, Xid(1), &message).unwrap();
        let of = |table_id| Message::FlowMod(FlowMod { table_id, ..FlowMod::new(command) });
        assert_eq!(wire::decode(&frame).unwrap().2, of(unnamed));
        for (number, table) in [(0, TableId(0)), (7, TableId(7)), (255, unnamed)] {
            frame[COMMAND_AT] = number;
            assert_eq!(wire::decode_in(&frame, NAMED).unwrap().2, of(table));
        }
        let refused = wire::decode(&frame).unwrap_err();
        assert_eq!(refused.error, Error::FlowModBadCommand);
        for len in 8..frame.len() {
            let mut short = frame[..len].to_vec();
            short[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            assert!(wire::decode_in(&short, NAMED).is_err(), "{len}");
        }
    }
    // Later versions have a place of its own for it.
    let later = Message::FlowMod(FlowMod { table_id: TableId(3), ..FlowMod::new(Delete) });
    let frame = wire::encode(Version::V1_3, Xid(1), &later).unwrap();
    assert_eq!(wire::decode_in(&frame, NAMED).unwrap().2, later);
}

/// A transport port without a transport protocol in the match: 1.3 has no field for it.
const ONLY_1_0: &str = "add-flow/action_dec_ttl_mod_tp_src";

#[test]
fn messages_of_1_0_have_a_form_in_1_3_too() {
    for vector in vectors().iter().filter(|vector| vector.error.is_none()) {
        let (version, xid, message) = wire::decode(&vector.bytes).unwrap();
        if version == Version::V1_0 && matches!(message, Message::FlowMod(_)) {
            let place = vector.place();
            let bytes = wire::encode(Version::V1_3, xid, &message);
            if vector.name == ONLY_1_0 {
                let error = bytes.unwrap_err().to_string();
                assert!(error.contains("mod_tp_src"), "{error}");
                continue;
            }
            let bytes = bytes.unwrap_or_else(|error| panic!("{place}: {error}"));
            let (_, _, translated) = wire::decode(&bytes).unwrap();
            let back = wire::encode(Version::V1_0, xid, &translated);
            let back = back.unwrap_or_else(|error| panic!("{place}: {error}"));
            let (_, _, back) = wire::decode(&back).unwrap();
            assert_eq!(comparable(version, back), comparable(version, message), "{place}");
        }
    }
}
