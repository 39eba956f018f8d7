//! Standard messages in Nicira's form, which says more than OpenFlow 1.0 has room for: flow entries
//! by `nx_match` (`NXT_FLOW_MOD`, `NXT_FLOW_REMOVED`, `NXST_FLOW`, `NXST_AGGREGATE`), packet-ins of
//! every version (`NXT_PACKET_IN`, `NXT_PACKET_IN2`), and masks of asynchronous messages.
//!
//! They are the same messages in another layout. A reader takes both at any time; a writer uses the
//! form that [`Forms`](crate::Forms) name.

use openflow::error::NICIRA;
use openflow::flow::{
    FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest,
};
use openflow::message::{
    MultipartReplyBody, MultipartType, PacketIn, PacketInForm, PacketInReason,
};
use openflow::{Cookie, Error, GroupId, Match, Message, MessageKind, TableId, Version};

use crate::error::EncodeError;
use crate::flow::{
    read_command_v1_0, read_flags_v1_0, read_reason, require_v1_0_limits, write_command_v1_0,
    write_flags_v1_0, write_reason,
};
use crate::instruction;
use crate::matching::Purpose;
use crate::nxm::{self, NxMatch};
use crate::oxm;
use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::role;
use crate::writer::{self, Writer};

/// Types of messages and of statistics (`nicira-ext.h`).
const FLOW_MOD: u32 = 13;
const FLOW_REMOVED: u32 = 14;
const PACKET_IN: u32 = 17;
const SET_ASYNC: u32 = 19;
const SET_ASYNC_PROPERTIES: u32 = 27;
const PACKET_IN_PROPERTIES: u32 = 30;
const STATS_FLOW: u32 = 0;
const STATS_AGGREGATE: u32 = 1;

/// Properties of `NXT_PACKET_IN2` (`NXPINT_*`).
const PACKET: u16 = 0;
const FULL_LEN: u16 = 1;
const BUFFER_ID: u16 = 2;
const TABLE_ID: u16 = 3;
const COOKIE: u16 = 4;
const REASON: u16 = 5;
const METADATA: u16 = 6;
const USERDATA: u16 = 7;
const CONTINUATION: u16 = 8;

/// Padding between the head of a continuation and its own properties.
const CONTINUATION_PAD: usize = 4;

/// Reads the body of a message after its type.
pub(crate) type Read = fn(&mut Reader<'_>) -> reader::ReadResult<Message>;

/// The reader of the message that an experimenter message of Nicira's is.
pub(crate) fn reader_of(version: Version, exp_type: u32) -> Option<Read> {
    match exp_type {
        FLOW_MOD if version.has_nicira_flows() => Some(|r| read_mod(r).map(Message::FlowMod)),
        FLOW_REMOVED if version.has_nicira_flows() => {
            Some(|r| read_removed(r).map(Message::FlowRemoved))
        }
        PACKET_IN => Some(|r| read_packet_in(r).map(Message::PacketIn)),
        PACKET_IN_PROPERTIES => Some(|r| read_packet_in_properties(r).map(Message::PacketIn)),
        SET_ASYNC => Some(|r| role::read_async_v1_3(r).map(Message::SetAsync)),
        SET_ASYNC_PROPERTIES => Some(|r| role::read_async_change_v1_4(r).map(Message::SetAsync)),
        _ => None,
    }
}

/// The type of the message in Nicira's form, if that is chosen and it has one.
pub(crate) fn type_of(w: &Writer<'_>, message: &Message) -> Option<u32> {
    if message.kind() == MessageKind::PacketIn {
        return match w.forms.packet_ins {
            PacketInForm::Standard => None,
            PacketInForm::Nicira => Some(PACKET_IN),
            PacketInForm::Properties => Some(PACKET_IN_PROPERTIES),
        };
    }
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
    } else if let Message::PacketIn(body) = message {
        match w.forms.packet_ins {
            PacketInForm::Properties => write_packet_in_properties(w, body),
            PacketInForm::Nicira | PacketInForm::Standard => write_packet_in(w, body),
        }
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

fn read_packet_in(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    let (buffer_id, total_len) = (r.buffer_id()?, r.u16()?);
    let reason = PacketInReason::from_number_in(r.version, r.u8()?);
    let (table_id, cookie) = (TableId(r.u8()?), Cookie(r.u64()?));
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let matching = nxm::read(r, match_len, Purpose::Context)?.matching;
    r.skip(2)?;
    let data = r.rest().to_vec();
    let (userdata, continuation) = (Vec::new(), Vec::new());
    Ok(PacketIn {
        buffer_id,
        total_len,
        reason,
        table_id,
        cookie,
        matching,
        data,
        userdata,
        continuation,
        controller_id: 0,
    })
}

/// A packet without an entry comes by an entry of Open vSwitch's own there, whose cookie is zero.
fn write_packet_in(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    let is_by_none = packet.reason == PacketInReason::NoMatch && packet.cookie == Cookie::NONE;
    w.buffer_id(packet.buffer_id)?;
    w.u16(packet.total_len);
    w.u8(packet.reason.nearest_in(w.version).number());
    w.u8(packet.table_id.0);
    w.u64(if is_by_none { 0 } else { packet.cookie.0 });
    write_match(w, 6, NxMatch { matching: packet.matching.clone(), ..NxMatch::default() })?;
    w.zeros(2);
    w.bytes(&packet.data);
    Ok(())
}

/// The body of a request to resume a packet (`NXT_RESUME`), which is that of the packet-in in
/// properties.
///
/// # Errors
/// `OFPET_BAD_PROPERTY` for what is no list of these properties, and the errors of fields.
pub fn read_resume(version: Version, body: &[u8]) -> Result<PacketIn, Error> {
    let mut r = Reader::new(version, body, 0, "resume");
    read_packet_in_properties(&mut r).map_err(|fault| fault.error)
}

/// Writes such a body.
///
/// # Errors
/// [`EncodeError::TooLong`] for what does not fit its length field.
pub fn write_resume(version: Version, paused: &PacketIn) -> Result<Vec<u8>, EncodeError> {
    let mut body = Vec::new();
    write_packet_in_properties(&mut Writer::new(version, &mut body), paused)?;
    Ok(body)
}

/// Properties that are not known are refused: the packet would be taken for another.
fn read_packet_in_properties(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    let mut packet = PacketIn {
        buffer_id: None,
        total_len: 0,
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie::NONE,
        matching: Match::any(),
        data: Vec::new(),
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    };
    let mut full_len = None;
    property::read_all(r, Unknown::Refused, |number, body| {
        match number {
            PACKET => packet.data = body.rest().to_vec(),
            FULL_LEN => full_len = Some(body.u32()?),
            BUFFER_ID => packet.buffer_id = body.buffer_id()?,
            TABLE_ID => packet.table_id = TableId(body.u8()?),
            COOKIE => {
                body.skip(4)?;
                packet.cookie = Cookie(body.u64()?);
            }
            REASON => packet.reason = PacketInReason::from_number_in(body.version, body.u8()?),
            METADATA => {
                let mut entries = body.clone().reading("nx_match", Error::BadMatchBadLen);
                packet.matching = nxm::read_entries(&mut entries, Purpose::Context)?.matching;
                body.rest();
            }
            USERDATA => packet.userdata = body.rest().to_vec(),
            CONTINUATION => {
                // Filled up in front, so that what a switch has put there begins at eight bytes.
                body.skip(CONTINUATION_PAD)?;
                packet.continuation = body.rest().to_vec();
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let len = full_len.unwrap_or(u32::try_from(packet.data.len()).unwrap_or(u32::MAX));
    packet.total_len = u16::try_from(len).unwrap_or(u16::MAX);
    Ok(packet)
}

/// In the order of Open vSwitch.
fn write_packet_in_properties(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    property::write(w, PACKET, |w| w.bytes(&packet.data))?;
    if usize::from(packet.total_len) != packet.data.len() {
        property::write(w, FULL_LEN, |w| w.u32(packet.total_len.into()))?;
    }
    if let Some(buffer) = packet.buffer_id {
        property::write(w, BUFFER_ID, |w| w.u32(buffer.0))?;
    }
    property::write(w, TABLE_ID, |w| w.u8(packet.table_id.0))?;
    if packet.cookie != Cookie::NONE {
        property::write(w, COOKIE, |w| {
            w.zeros(4);
            w.u64(packet.cookie.0);
        })?;
    }
    let reason = packet.reason.nearest_in(w.version).number();
    property::write(w, REASON, |w| w.u8(reason))?;
    property::write(w, METADATA, |w| {
        packet.matching.fields().iter().for_each(|held| oxm::write_held(w, held));
    })?;
    if !packet.userdata.is_empty() {
        property::write(w, USERDATA, |w| w.bytes(&packet.userdata))?;
    }
    if packet.continuation.is_empty() {
        return Ok(());
    }
    property::write(w, CONTINUATION, |w| {
        w.zeros(CONTINUATION_PAD);
        w.bytes(&packet.continuation);
    })
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
