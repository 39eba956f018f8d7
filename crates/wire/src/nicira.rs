//! Flow entries in Nicira's form of OpenFlow 1.0: `NXT_FLOW_MOD`, `NXT_FLOW_REMOVED`, `NXST_FLOW`
//! and `NXST_AGGREGATE`, which say by `nx_match` what the twelve-tuple cannot.
//!
//! They are the same messages in another layout. A reader takes both at any time; a writer uses the
//! form that [`Forms`](crate::Forms) name.

use openflow::error::NICIRA;
use openflow::flow::{
    FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest,
};
use openflow::message::{MultipartReplyBody, MultipartType};
use openflow::{Cookie, Error, GroupId, Message, MessageKind, TableId, Version};

use crate::flow::{
    read_command_v1_0, read_flags_v1_0, read_reason, require_v1_0_limits, write_command_v1_0,
    write_flags_v1_0, write_reason,
};
use crate::instruction;
use crate::matching::Purpose;
use crate::nxm::{self, NxMatch};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// Types of messages and of statistics (`nicira-ext.h`).
const FLOW_MOD: u32 = 13;
const FLOW_REMOVED: u32 = 14;
const STATS_FLOW: u32 = 0;
const STATS_AGGREGATE: u32 = 1;

/// Reads the body of a message after its type.
pub(crate) type Read = fn(&mut Reader<'_>) -> reader::ReadResult<Message>;

/// The reader of the message that an experimenter message of Nicira's is.
pub(crate) fn reader_of(version: Version, exp_type: u32) -> Option<Read> {
    match exp_type {
        FLOW_MOD if version.has_nicira_flows() => Some(|r| read_mod(r).map(Message::FlowMod)),
        FLOW_REMOVED if version.has_nicira_flows() => {
            Some(|r| read_removed(r).map(Message::FlowRemoved))
        }
        _ => None,
    }
}

/// The type of the message in Nicira's form, if that is chosen and it has one.
pub(crate) fn type_of(w: &Writer<'_>, message: &Message) -> Option<u32> {
    let of_flows = [(MessageKind::FlowMod, FLOW_MOD), (MessageKind::FlowRemoved, FLOW_REMOVED)];
    let known = of_flows.into_iter().filter(|_| w.has_nicira_flows());
    known.into_iter().find_map(|(kind, number)| (kind == message.kind()).then_some(number))
}

/// Writes the body of a message that has a type in Nicira's form, after that type.
pub(crate) fn write(w: &mut Writer<'_>, message: &Message) -> writer::WriteResult<()> {
    if let Message::FlowMod(body) = message {
        write_mod(w, body)
    } else if let Message::FlowRemoved(body) = message {
        write_removed(w, body)
    } else {
        Ok(())
    }
}

fn read_mod(r: &mut Reader<'_>) -> reader::ReadResult<FlowMod> {
    let new_cookie = Cookie(r.u64()?);
    let at_command = r.clone();
    let (command, table_id) = read_command_v1_0(r)?;
    let (idle_timeout_s, hard_timeout_s, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer_id, out_port) = (r.buffer_id()?, r.port()?);
    let flags = read_flags_v1_0(r)?;
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let found = nxm::read(r, match_len, Purpose::Select)?;
    // One cookie is that of a new entry, the other limits a command to entries that have it.
    let is_limited = found.cookie_mask != 0;
    if is_limited && command == FlowModCommand::Add {
        return Err(at_command.fault_in(Error::BadRequestNxmInvalid, "cookie"));
    }
    Ok(FlowMod {
        command,
        table_id,
        cookie: if is_limited { found.cookie } else { new_cookie },
        cookie_mask: found.cookie_mask,
        new_cookie: (is_limited && new_cookie != Cookie::NONE).then_some(new_cookie),
        idle_timeout_s,
        hard_timeout_s,
        priority,
        buffer_id,
        out_port,
        out_group: GroupId::ANY,
        flags,
        importance: 0,
        matching: found.matching,
        instructions: instruction::read_list(r)?,
    })
}

fn write_mod(w: &mut Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    require_v1_0_limits(w, flow)?;
    let is_limited = flow.cookie_mask != 0;
    w.require(!is_limited || flow.command != FlowModCommand::Add, "cookie mask of an add")?;
    let new_cookie = if is_limited { flow.new_cookie } else { Some(flow.cookie) };
    w.u64(new_cookie.unwrap_or(Cookie::NONE).0);
    write_command_v1_0(w, flow)?;
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
    w.u16(flow.priority);
    w.buffer_id(flow.buffer_id)?;
    w.port(flow.out_port)?;
    write_flags_v1_0(w, flow.flags);
    let (cookie, cookie_mask) = (flow.cookie, flow.cookie_mask);
    write_match(w, 6, NxMatch { matching: flow.matching.clone(), cookie, cookie_mask })?;
    instruction::write_list(w, &flow.instructions, &flow.matching)
}

/// Writes the length of a match, what stands between, and the match.
fn write_match(w: &mut Writer<'_>, between: usize, all: NxMatch) -> writer::WriteResult<()> {
    let len_at = w.place();
    w.zeros(2 + between);
    let len = nxm::write(w, &all)?;
    w.fill(len_at, &len.to_be_bytes());
    Ok(())
}

fn read_removed(r: &mut Reader<'_>) -> reader::ReadResult<FlowRemoved> {
    let (cookie, priority, reason) = (Cookie(r.u64()?), r.u16()?, read_reason(r)?);
    // One above the table; zero of a switch that does not name it.
    let table_id = TableId(r.u8()?.saturating_sub(1));
    let (duration_s, duration_ns, idle_timeout_s) = (r.u32()?, r.u32()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    let (packet_count, byte_count) = (r.u64()?, r.u64()?);
    let matching = nxm::read(r, match_len, Purpose::Report)?.matching;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        duration_s,
        duration_ns,
        idle_timeout_s,
        hard_timeout_s: 0,
        packet_count,
        byte_count,
        matching,
    })
}

fn write_removed(w: &mut Writer<'_>, flow: &FlowRemoved) -> writer::WriteResult<()> {
    w.u64(flow.cookie.0);
    w.u16(flow.priority);
    write_reason(w, flow.reason);
    w.u8(flow.table_id.0.wrapping_add(1));
    w.u32(flow.duration_s);
    w.u32(flow.duration_ns);
    w.u16(flow.idle_timeout_s);
    let len_at = w.place();
    w.zeros(2);
    w.u64(flow.packet_count);
    w.u64(flow.byte_count);
    let len = nxm::write(w, &NxMatch { matching: flow.matching.clone(), ..NxMatch::default() })?;
    w.fill(len_at, &len.to_be_bytes());
    Ok(())
}

/// The statistics that a multipart message of Nicira's has, after its type and flags; reads on
/// behind the head where it has any.
pub(crate) fn read_stats_type(r: &mut Reader<'_>) -> Option<MultipartType> {
    if !r.version.has_nicira_flows() {
        return None;
    }
    let mut head = r.clone();
    if head.u32().ok()? != NICIRA {
        return None;
    }
    let found = match head.u32().ok()? {
        STATS_FLOW => MultipartType::Flow,
        STATS_AGGREGATE => MultipartType::Aggregate,
        _ => return None,
    };
    head.skip(4).ok()?;
    *r = head;
    Some(found)
}

/// Nicira's number of statistics.
fn stats_number(stats: MultipartType) -> Option<u32> {
    [(MultipartType::Flow, STATS_FLOW), (MultipartType::Aggregate, STATS_AGGREGATE)]
        .into_iter()
        .find_map(|(known, number)| (known == stats).then_some(number))
}

/// Writes the head of statistics in Nicira's form, after that of an experimenter's.
pub(crate) fn write_stats_head(w: &mut Writer<'_>, stats: MultipartType) {
    w.u32(NICIRA);
    w.u32(stats_number(stats).unwrap_or_default());
    w.zeros(4);
}

/// Whether a reply is written in Nicira's form.
pub(crate) fn has_reply(w: &Writer<'_>, body: &MultipartReplyBody) -> bool {
    w.has_nicira_flows() && stats_number(body.kind()).is_some()
}

pub(crate) fn read_stats_request(r: &mut Reader<'_>) -> reader::ReadResult<FlowStatsRequest> {
    let out_port = r.port()?;
    let match_len = usize::from(r.u16()?);
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    let NxMatch { matching, cookie, cookie_mask } = nxm::read(r, match_len, Purpose::Select)?;
    let out_group = GroupId::ANY;
    let form = FlowForm::Nicira;
    Ok(FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching, form })
}

pub(crate) fn write_stats_request(
    w: &mut Writer<'_>,
    request: &FlowStatsRequest,
) -> writer::WriteResult<()> {
    w.require(request.out_group == GroupId::ANY, "out_group of a statistics request")?;
    w.port(request.out_port)?;
    let len_at = w.place();
    w.zeros(2);
    w.u8(request.table_id.0);
    w.zeros(3);
    let FlowStatsRequest { matching, cookie, cookie_mask, .. } = request;
    let (matching, cookie, cookie_mask) = (matching.clone(), *cookie, *cookie_mask);
    let len = nxm::write(w, &NxMatch { matching, cookie, cookie_mask })?;
    w.fill(len_at, &len.to_be_bytes());
    Ok(())
}

pub(crate) fn read_stats(r: &mut Reader<'_>) -> reader::ReadResult<FlowStats> {
    let mut r = r.sized("flow statistics")?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let (duration_s, duration_ns, priority) = (r.u32()?, r.u32()?, r.u16()?);
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    // The seconds since it was used and changed, each plus one; zero where they are not known.
    r.skip(4)?;
    let (cookie, packet_count, byte_count) = (Cookie(r.u64()?), r.u64()?, r.u64()?);
    let matching = nxm::read(&mut r, match_len, Purpose::Report)?.matching;
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags: FlowModFlags::empty(),
        importance: 0,
        cookie,
        packet_count,
        byte_count,
        matching,
        instructions: instruction::read_list(&mut r)?,
    })
}

pub(crate) fn write_stats(w: &mut Writer<'_>, flow: &FlowStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(2);
    w.u8(flow.table_id.0);
    w.zeros(1);
    w.u32(flow.duration_s);
    w.u32(flow.duration_ns);
    w.u16(flow.priority);
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
    let len_at = w.place();
    w.zeros(2 + 4);
    w.u64(flow.cookie.0);
    w.u64(flow.packet_count);
    w.u64(flow.byte_count);
    let len = nxm::write(w, &NxMatch { matching: flow.matching.clone(), ..NxMatch::default() })?;
    w.fill(len_at, &len.to_be_bytes());
    instruction::write_list(w, &flow.instructions, &flow.matching)?;
    w.fill_len(start, start, "flow statistics")
}
