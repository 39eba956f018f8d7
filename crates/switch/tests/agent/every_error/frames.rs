//! Frames that no encoder makes: a good flow-mod, and places in it where it is spoilt.

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Field, Instruction, Match, Message, Version, Xid};

/// The place of the match in a flow-mod of 1.3.
pub(super) const MATCH: usize = 48;
/// The place of the first field of the match.
pub(super) const FIRST_FIELD: usize = MATCH + 4;
/// The place of the first instruction when the match is empty.
pub(super) const INSTRUCTION: usize = MATCH + 8;
/// The place of its first action.
pub(super) const ACTION: usize = INSTRUCTION + 8;

/// The frame of a message.
pub(super) fn frame(message: &Message) -> Vec<u8> {
    wire::encode(Version::V1_3, Xid(0x77), message).unwrap()
}

/// A frame from its parts: type and body.
pub(super) fn raw(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(8 + body.len()).unwrap();
    let mut frame = vec![4, kind, 0, length, 0, 0, 0, 0x77];
    frame.extend_from_slice(body);
    frame
}

/// The frame of a message with bytes put in at a place.
pub(super) fn spoilt(message: &Message, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(message);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// A flow-mod that adds what the match asks for and does nothing.
pub(super) fn matching(matching: Match) -> FlowMod {
    FlowMod { matching, ..FlowMod::new(FlowModCommand::Add) }
}

/// A flow-mod that applies one action to every packet.
pub(super) fn applying(action: Action) -> Message {
    instructed(vec![Instruction::ApplyActions(vec![action])])
}

/// A flow-mod with these instructions for every packet.
pub(super) fn instructed(instructions: Vec<Instruction>) -> Message {
    Message::FlowMod(FlowMod { instructions, ..FlowMod::new(FlowModCommand::Add) })
}

/// A flow-mod that matches a destination under a mask without its last byte.
pub(super) fn masked() -> Message {
    let mask = 0xffff_ffff_ff00;
    Message::FlowMod(matching(Match::any().with_masked(Field::EthDst, 0x0200_0000_0000, mask)))
}
