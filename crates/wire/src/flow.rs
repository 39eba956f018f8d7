//! Flow entries in messages: flow-mod, flow-removed, flow statistics
//! (clauses 7.3.4.1, 7.4.2, 7.3.5.2 and 7.3.5.3).
//!
//! Facts that notices and statistics of 1.0 do not carry (table and hard timeout of a
//! flow-removed, flags; those of 1.1 lack the hard timeout, those of 1.2 the flags too) are left
//! out there; a command that 1.0 cannot give is an error.

use openflow::flow::{
    AggregateStats, FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved,
    FlowRemovedReason, FlowStats, FlowStatsRequest,
};
use openflow::{Cookie, Error, GroupId, TableId};

use crate::instruction;
use crate::matching::{self, Purpose};
use crate::oxs::{self, Counts};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPFF_EMERG`, which 1.0 has where 1.3 has `OFPFF_RESET_COUNTS`.
const EMERG_V1_0: u16 = 1 << 2;
/// The flags that lie alike in both versions.
const COMMON_FLAGS: FlowModFlags = FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);

pub(crate) fn read_mod_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<FlowMod> {
    let matching = matching::read(r, Purpose::Select)?;
    let cookie = Cookie(r.u64()?);
    let (command, table_id) = read_command_v1_0(r)?;
    Ok(FlowMod {
        command,
        table_id,
        cookie,
        cookie_mask: 0,
        new_cookie: None,
        idle_timeout_s: r.u16()?,
        hard_timeout_s: r.u16()?,
        priority: r.u16()?,
        buffer_id: r.buffer_id()?,
        out_port: r.port()?,
        out_group: GroupId::ANY,
        flags: read_flags_v1_0(r)?,
        importance: 0,
        matching,
        instructions: instruction::read_list(r)?,
    })
}

/// The command and the table, which only Nicira's extension has room for: where none is named, a
/// modify or delete looks in all tables and an add is one to the first.
pub(crate) fn read_command_v1_0(
    r: &mut Reader<'_>,
) -> reader::ReadResult<(FlowModCommand, TableId)> {
    let at_command = r.clone();
    let [upper, command] = r.array()?;
    let named = match (r.forms.has_table_ids, upper) {
        (true, number) => TableId(number),
        (false, 0) => TableId::ALL,
        (false, _) => return Err(at_command.fault_in(Error::FlowModBadCommand, "command")),
    };
    let command = FlowModCommand::from_number(command);
    let is_of_all = named == TableId::ALL && !may_mean_all(command);
    Ok((command, if is_of_all { TableId(0) } else { named }))
}

/// Writes the command, and the table above it where flow-mods name theirs.
pub(crate) fn write_command_v1_0(w: &mut Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    let is_all = flow.table_id == TableId::ALL && may_mean_all(flow.command);
    let names = w.forms.has_table_ids;
    w.require(names || is_all || flow.table_id == TableId(0), "table of a flow-mod")?;
    w.u8(if names { flow.table_id.0 } else { 0 });
    w.u8(flow.command.number());
    Ok(())
}

pub(crate) fn read_flags_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<FlowModFlags> {
    let start = r.clone();
    let bits = r.u16()?;
    let common = FlowModFlags::from_bits_retain(bits) & COMMON_FLAGS;
    if bits & !(COMMON_FLAGS.bits() | EMERG_V1_0) != 0 {
        return Err(start.fault_in(Error::FlowModBadFlags, "flags"));
    }
    Ok(if bits & EMERG_V1_0 == 0 { common } else { common | FlowModFlags::EMERG })
}

pub(crate) fn read_mod_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<FlowMod> {
    let cookie = Cookie(r.u64()?);
    let cookie_mask = r.u64()?;
    let table_id = TableId(r.u8()?);
    let command = FlowModCommand::from_number(r.u8()?);
    let idle_timeout_s = r.u16()?;
    let hard_timeout_s = r.u16()?;
    let priority = r.u16()?;
    let buffer_id = r.buffer_id()?;
    let out_port = r.port()?;
    let out_group = GroupId(r.u32()?);
    let flags = FlowModFlags::from_bits_retain(r.u16()?);
    let importance = read_importance(r)?;
    let matching = matching::read(r, Purpose::Select)?;
    let instructions = instruction::read_list(r)?;
    Ok(FlowMod {
        command,
        table_id,
        cookie,
        cookie_mask,
        new_cookie: None,
        idle_timeout_s,
        hard_timeout_s,
        priority,
        buffer_id,
        out_port,
        out_group,
        flags,
        importance,
        matching,
        instructions,
    })
}

/// The importance of an entry, which is padding in earlier versions.
fn read_importance(r: &mut Reader<'_>) -> reader::ReadResult<u16> {
    let number = r.u16()?;
    Ok(if r.version.has_importance() { number } else { 0 })
}

fn write_importance(w: &mut Writer<'_>, importance: u16) {
    w.u16(if w.version.has_importance() { importance } else { 0 });
}

pub(crate) fn write_mod_v1_0(w: &mut Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    require_v1_0(w, flow)?;
    matching::write(w, &flow.matching)?;
    w.u64(flow.cookie.0);
    write_command_v1_0(w, flow)?;
    write_limits(w, flow)?;
    write_flags_v1_0(w, flow.flags);
    instruction::write_list(w, &flow.instructions, &flow.matching)
}

pub(crate) fn write_flags_v1_0(w: &mut Writer<'_>, flags: FlowModFlags) {
    let emerg = flags.contains(FlowModFlags::EMERG);
    let common = (flags & COMMON_FLAGS).bits();
    w.u16(if emerg { common | EMERG_V1_0 } else { common });
}

pub(crate) fn write_mod_v1_1(w: &mut Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    require_importance(w, flow)?;
    w.u64(flow.cookie.0);
    w.u64(flow.cookie_mask);
    w.u8(flow.table_id.0);
    w.u8(flow.command.number());
    write_limits(w, flow)?;
    w.u32(flow.out_group.0);
    w.u16(flow.flags.bits());
    write_importance(w, flow.importance);
    matching::write(w, &flow.matching)?;
    instruction::write_list(w, &flow.instructions, &flow.matching)
}

/// The middle, which is the same in both: timeouts, priority, buffer and port.
fn write_limits(w: &mut Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
    w.u16(flow.priority);
    w.buffer_id(flow.buffer_id)?;
    w.port(flow.out_port)
}

/// Refuses what 1.0's flow-mod has no room for.
fn require_v1_0(w: &Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    w.require(flow.cookie_mask == 0, "cookie mask of a flow-mod")?;
    require_v1_0_limits(w, flow)
}

/// The same of Nicira's form, which has cookies to look for.
pub(crate) fn require_v1_0_limits(w: &Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    require_importance(w, flow)?;
    w.require(flow.out_group == GroupId::ANY, "out_group of a flow-mod")?;
    let flags = COMMON_FLAGS | FlowModFlags::EMERG;
    w.require(flags.contains(flow.flags), "flags of a flow-mod")
}

/// Whether a command may look in all tables.
fn may_mean_all(command: FlowModCommand) -> bool {
    match command {
        FlowModCommand::Modify
        | FlowModCommand::ModifyStrict
        | FlowModCommand::Delete
        | FlowModCommand::DeleteStrict => true,
        FlowModCommand::Add | FlowModCommand::Unknown(_) => false,
    }
}

fn require_importance(w: &Writer<'_>, flow: &FlowMod) -> writer::WriteResult<()> {
    let has_new_cookie = flow.new_cookie.is_some() && !w.has_nicira_flows();
    w.require(!has_new_cookie, "new cookie of a modify that looks for one")?;
    w.require(flow.importance == 0 || w.version.has_importance(), "importance of a flow-mod")
}

pub(crate) fn read_removed_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<FlowRemoved> {
    let matching = matching::read(r, Purpose::Report)?;
    let (cookie, priority) = (Cookie(r.u64()?), r.u16()?);
    let reason = read_reason(r)?;
    r.skip(1)?;
    let (duration_s, duration_ns) = (r.u32()?, r.u32()?);
    let idle_timeout_s = r.u16()?;
    r.skip(2)?;
    let (packet_count, byte_count) = (r.u64()?, r.u64()?);
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id: TableId(0),
        duration_s,
        duration_ns,
        idle_timeout_s,
        hard_timeout_s: 0,
        packet_count,
        byte_count,
        matching,
    })
}

pub(crate) fn read_removed_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<FlowRemoved> {
    Ok(FlowRemoved {
        cookie: Cookie(r.u64()?),
        priority: r.u16()?,
        reason: read_reason(r)?,
        table_id: TableId(r.u8()?),
        duration_s: r.u32()?,
        duration_ns: r.u32()?,
        idle_timeout_s: r.u16()?,
        hard_timeout_s: read_removed_timeout(r)?,
        packet_count: r.u64()?,
        byte_count: r.u64()?,
        matching: matching::read(r, Purpose::Report)?,
    })
}

/// The hard timeout of a flow-removed, which is padding in earlier versions.
fn read_removed_timeout(r: &mut Reader<'_>) -> reader::ReadResult<u16> {
    let number = r.u16()?;
    Ok(if r.version.has_hard_timeout_in_removed() { number } else { 0 })
}

pub(crate) fn read_removed_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<FlowRemoved> {
    let table_id = TableId(r.u8()?);
    let reason = read_reason(r)?;
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let cookie = Cookie(r.u64()?);
    let matching = matching::read(r, Purpose::Report)?;
    let counts = oxs::read(r)?;
    let (duration_s, duration_ns) = counts.duration.unwrap_or_default();
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        duration_s,
        duration_ns,
        idle_timeout_s,
        hard_timeout_s,
        packet_count: counts.packets,
        byte_count: counts.bytes,
        matching,
    })
}

/// A reason; the number of one that the version has not means nothing.
pub(crate) fn read_reason(r: &mut Reader<'_>) -> reader::ReadResult<FlowRemovedReason> {
    Ok(FlowRemovedReason::from_number_in(r.version, r.u8()?))
}

pub(crate) fn write_reason(w: &mut Writer<'_>, reason: FlowRemovedReason) {
    w.u8(reason.nearest_in(w.version).number());
}

pub(crate) fn write_removed_v1_0(
    w: &mut Writer<'_>,
    flow: &FlowRemoved,
) -> writer::WriteResult<()> {
    matching::write(w, &flow.matching)?;
    w.u64(flow.cookie.0);
    w.u16(flow.priority);
    write_reason(w, flow.reason);
    w.zeros(1);
    w.u32(flow.duration_s);
    w.u32(flow.duration_ns);
    w.u16(flow.idle_timeout_s);
    w.zeros(2);
    w.u64(flow.packet_count);
    w.u64(flow.byte_count);
    Ok(())
}

pub(crate) fn write_removed_v1_1(
    w: &mut Writer<'_>,
    flow: &FlowRemoved,
) -> writer::WriteResult<()> {
    w.u64(flow.cookie.0);
    w.u16(flow.priority);
    write_reason(w, flow.reason);
    w.u8(flow.table_id.0);
    w.u32(flow.duration_s);
    w.u32(flow.duration_ns);
    w.u16(flow.idle_timeout_s);
    w.u16(if w.version.has_hard_timeout_in_removed() { flow.hard_timeout_s } else { 0 });
    w.u64(flow.packet_count);
    w.u64(flow.byte_count);
    matching::write(w, &flow.matching)
}

pub(crate) fn write_removed_v1_5(
    w: &mut Writer<'_>,
    flow: &FlowRemoved,
) -> writer::WriteResult<()> {
    w.u8(flow.table_id.0);
    write_reason(w, flow.reason);
    w.u16(flow.priority);
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
    w.u64(flow.cookie.0);
    matching::write(w, &flow.matching)?;
    oxs::write(
        w,
        &Counts {
            duration: Some((flow.duration_s, flow.duration_ns)),
            flows: None,
            packets: flow.packet_count,
            bytes: flow.byte_count,
        },
    )
}

pub(crate) fn read_stats_request_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<FlowStatsRequest> {
    let matching = matching::read(r, Purpose::Select)?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let out_port = r.port()?;
    Ok(FlowStatsRequest { table_id, out_port, matching, ..FlowStatsRequest::all() })
}

pub(crate) fn read_stats_request_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<FlowStatsRequest> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    let out_port = r.port()?;
    let out_group = GroupId(r.u32()?);
    r.skip(4)?;
    let (cookie, cookie_mask) = (Cookie(r.u64()?), r.u64()?);
    let matching = matching::read(r, Purpose::Select)?;
    let form = FlowForm::Standard;
    Ok(FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching, form })
}

pub(crate) fn write_stats_request_v1_0(
    w: &mut Writer<'_>,
    request: &FlowStatsRequest,
) -> writer::WriteResult<()> {
    w.require(request.out_group == GroupId::ANY, "out_group of a statistics request")?;
    let cookie = request.cookie_mask == 0 && request.cookie == Cookie(0);
    w.require(cookie, "cookie of a statistics request")?;
    matching::write(w, &request.matching)?;
    w.u8(request.table_id.0);
    w.zeros(1);
    w.port(request.out_port)
}

pub(crate) fn write_stats_request_v1_1(
    w: &mut Writer<'_>,
    request: &FlowStatsRequest,
) -> writer::WriteResult<()> {
    w.u8(request.table_id.0);
    w.zeros(3);
    w.port(request.out_port)?;
    w.u32(request.out_group.0);
    w.zeros(4);
    w.u64(request.cookie.0);
    w.u64(request.cookie_mask);
    matching::write(w, &request.matching)
}

pub(crate) fn read_stats_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<FlowStats> {
    let mut r = r.sized("flow statistics")?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let matching = matching::read(&mut r, Purpose::Report)?;
    let (duration_s, duration_ns) = (r.u32()?, r.u32()?);
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    r.skip(6)?;
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags: FlowModFlags::empty(),
        importance: 0,
        cookie: Cookie(r.u64()?),
        packet_count: r.u64()?,
        byte_count: r.u64()?,
        matching,
        instructions: instruction::read_list(&mut r)?,
    })
}

pub(crate) fn read_stats_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<FlowStats> {
    let mut r = r.sized("flow statistics")?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let (duration_s, duration_ns) = (r.u32()?, r.u32()?);
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let number = r.u16()?;
    let has_flags = r.version.has_flags_in_statistics();
    let flags = FlowModFlags::from_bits_retain(if has_flags { number } else { 0 });
    let importance = read_importance(&mut r)?;
    r.skip(2)?;
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags,
        importance,
        cookie: Cookie(r.u64()?),
        packet_count: r.u64()?,
        byte_count: r.u64()?,
        matching: matching::read(&mut r, Purpose::Report)?,
        instructions: instruction::read_list(&mut r)?,
    })
}

pub(crate) fn read_desc_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<FlowStats> {
    let mut r = r.sized("flow description")?;
    r.skip(2)?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let flags = FlowModFlags::from_bits_retain(r.u16()?);
    let (importance, cookie) = (r.u16()?, Cookie(r.u64()?));
    let matching = matching::read(&mut r, Purpose::Report)?;
    let counts = oxs::read(&mut r)?;
    let (duration_s, duration_ns) = counts.duration.unwrap_or_default();
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags,
        importance,
        cookie,
        packet_count: counts.packets,
        byte_count: counts.bytes,
        matching,
        instructions: instruction::read_list(&mut r)?,
    })
}

pub(crate) fn write_desc_v1_5(w: &mut Writer<'_>, flow: &FlowStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(4);
    w.u8(flow.table_id.0);
    w.zeros(1);
    w.u16(flow.priority);
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
    w.u16(flow.flags.bits());
    w.u16(flow.importance);
    w.u64(flow.cookie.0);
    matching::write(w, &flow.matching)?;
    let counts = Counts {
        duration: Some((flow.duration_s, flow.duration_ns)),
        flows: None,
        packets: flow.packet_count,
        bytes: flow.byte_count,
    };
    oxs::write(w, &counts)?;
    instruction::write_list(w, &flow.instructions, &flow.matching)?;
    w.fill_len(start, start, "flow description")
}

pub(crate) fn write_stats_v1_0(w: &mut Writer<'_>, flow: &FlowStats) -> writer::WriteResult<()> {
    let start = begin_stats(w, flow);
    matching::write(w, &flow.matching)?;
    write_age(w, flow);
    w.zeros(6);
    write_counters(w, flow);
    instruction::write_list(w, &flow.instructions, &flow.matching)?;
    w.fill_len(start, start, "flow statistics")
}

pub(crate) fn write_stats_v1_1(w: &mut Writer<'_>, flow: &FlowStats) -> writer::WriteResult<()> {
    let start = begin_stats(w, flow);
    write_age(w, flow);
    w.u16(if w.version.has_flags_in_statistics() { flow.flags.bits() } else { 0 });
    write_importance(w, flow.importance);
    w.zeros(2);
    write_counters(w, flow);
    matching::write(w, &flow.matching)?;
    instruction::write_list(w, &flow.instructions, &flow.matching)?;
    w.fill_len(start, start, "flow statistics")
}

fn begin_stats(w: &mut Writer<'_>, flow: &FlowStats) -> usize {
    let start = w.place();
    w.u16(0);
    w.u8(flow.table_id.0);
    w.zeros(1);
    start
}

fn write_age(w: &mut Writer<'_>, flow: &FlowStats) {
    w.u32(flow.duration_s);
    w.u32(flow.duration_ns);
    w.u16(flow.priority);
    w.u16(flow.idle_timeout_s);
    w.u16(flow.hard_timeout_s);
}

fn write_counters(w: &mut Writer<'_>, flow: &FlowStats) {
    w.u64(flow.cookie.0);
    w.u64(flow.packet_count);
    w.u64(flow.byte_count);
}

pub(crate) fn read_aggregate_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<AggregateStats> {
    let (packet_count, byte_count, flow_count) = (r.u64()?, r.u64()?, r.u32()?);
    r.skip(4)?;
    Ok(AggregateStats { packet_count, byte_count, flow_count })
}

pub(crate) fn write_aggregate_v1_0(
    w: &mut Writer<'_>,
    stats: &AggregateStats,
) -> writer::WriteResult<()> {
    w.u64(stats.packet_count);
    w.u64(stats.byte_count);
    w.u32(stats.flow_count);
    w.zeros(4);
    Ok(())
}

pub(crate) fn read_aggregate_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<AggregateStats> {
    let Counts { packets, bytes, flows, .. } = oxs::read(r)?;
    let flow_count = flows.unwrap_or_default();
    Ok(AggregateStats { packet_count: packets, byte_count: bytes, flow_count })
}

pub(crate) fn write_aggregate_v1_5(
    w: &mut Writer<'_>,
    stats: &AggregateStats,
) -> writer::WriteResult<()> {
    let (packets, bytes) = (stats.packet_count, stats.byte_count);
    oxs::write(w, &Counts { duration: None, flows: Some(stats.flow_count), packets, bytes })
}
