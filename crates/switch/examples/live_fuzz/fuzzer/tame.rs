//! Keeps messages off the unrelated flow: what would rightly delete, change or outrank its entry is
//! turned aside, so that whatever disturbs it is a fault.
//!
//! It looks at what the switch will understand, which is what the decoder makes of the bytes.

use openflow::flow::FlowModCommand;
use openflow::message::{MultipartRequest, MultipartRequestBody};
use openflow::{Cookie, Field, Message, PortNo, TableId, Version};

use super::make::{COOKIE, COOKIE_MASK};

/// The ports of the unrelated flow: from the first to the second.
pub(crate) const UNRELATED: [PortNo; 2] = [PortNo(3), PortNo(4)];
/// The priority of its entry.
pub(crate) const PRIORITY: u16 = u16::MAX;

/// The frame, or one in its place that leaves the unrelated flow alone; `None` when there is none.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others leave the unrelated flow alone")]
pub(crate) fn tame(frame: Vec<u8>) -> Option<Vec<u8>> {
    let Ok((version, xid, mut message)) = wire::decode(&frame) else { return Some(frame) };
    let changed = match &mut message {
        Message::FlowMod(flow) => tame_flow(version, flow),
        Message::PortMod(port) if UNRELATED.contains(&port.port_no) => {
            port.port_no = PortNo(1);
            true
        }
        // It replaces the whole pipeline, rightly with all that is in it.
        Message::MultipartRequest(MultipartRequest {
            body: MultipartRequestBody::TableFeatures(tables),
            ..
        }) if !tables.is_empty() => {
            tables.clear();
            true
        }
        // It ends the connection, rightly.
        Message::Error(error) if error.error_type == 0 => {
            error.error_type = 1;
            true
        }
        _ => false,
    };
    if changed { wire::encode(version, xid, &message).ok() } else { Some(frame) }
}

fn tame_flow(version: Version, flow: &mut openflow::flow::FlowMod) -> bool {
    let is_near = flow.table_id == TableId(0) || flow.table_id == TableId::ALL;
    if !is_near {
        return false;
    }
    match (flow.command, version.has_cookie_mask()) {
        (FlowModCommand::Add, _) => {
            let outranks = flow.priority == PRIORITY;
            flow.priority = flow.priority.min(PRIORITY - 1);
            outranks
        }
        (FlowModCommand::Unknown(_), _) => false,
        (_, true) => {
            let is_aside = flow.cookie_mask == COOKIE_MASK && flow.cookie.0 & COOKIE_MASK == COOKIE;
            flow.cookie = Cookie(COOKIE);
            flow.cookie_mask = COOKIE_MASK;
            // A modify that finds nothing adds in 1.0 only, so its priority does not matter here.
            !is_aside
        }
        (_, false) => {
            let is_aside = flow.matching.exact(Field::InPort) == Some(1);
            flow.priority = flow.priority.min(PRIORITY - 1);
            flow.matching.set(Field::InPort, 1, Field::InPort.full_mask());
            !is_aside
        }
    }
}
