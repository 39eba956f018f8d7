//! Flow monitors (clauses 7.3.5.17 of 1.4): the requests, and the reports of changes.
//!
//! 1.4 has them of its own, 1.3 by ONF's multipart 1870, earlier versions by Nicira's 2. The three
//! differ in their heads and in the order of the same facts; Nicira's has `nx_match` and bare
//! actions. Only 1.4 has pauses among the reports, others have messages of their own for them.

use openflow::error::{NICIRA, ONF};
use openflow::flow::FlowRemovedReason;
use openflow::flow_monitor::{
    FlowChange, FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate,
};
use openflow::message::MultipartType;
use openflow::translate::Context;
use openflow::{Cookie, Error, GroupId, Match, TableId, Xid};

use crate::compat;
use crate::instruction;
use crate::matching::{self, Purpose};
use crate::nxm::{self, NxMatch};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// Types among the statistics of Nicira's and of ONF's.
const NICIRA_STATS: u32 = 2;
const ONF_STATS: u32 = 1870;

/// `OFPMT_OXM`.
const OXM_MATCH: u16 = 1;

/// Events in the numbers of Nicira's (`NXFME_*`), and of 1.4 for what is no change of an entry.
const ABBREV_NICIRA: u16 = 3;
const ABBREV: u16 = 4;
const PAUSED: u16 = 5;
const RESUMED: u16 = 6;

/// The flags that are known; earlier versions have not the last.
const FLAGS: FlowMonitorFlags = FlowMonitorFlags::INITIAL
    .union(FlowMonitorFlags::CHANGES)
    .union(FlowMonitorFlags::INSTRUCTIONS)
    .union(FlowMonitorFlags::NO_ABBREV);

/// Whether the multipart body of an experimenter is about flow monitors; reads on behind its head.
/// Requests of ONF's with bare fields in the place of a match, which Open vSwitch does not take,
/// are the experimenter's.
pub(crate) fn read_head(r: &mut Reader<'_>, is_request: bool) -> Option<MultipartType> {
    let mut head = r.clone();
    let (whose, number) = (head.u32().ok()?, head.u32().ok()?);
    let (own, own_number) = owner(r.version.has_onf_flow_monitor());
    if r.version.has_flow_monitor() || (whose, number) != (own, own_number) {
        return None;
    }
    if !r.version.has_padded_statistics() {
        head.skip(4).ok()?;
    }
    if own == ONF && is_request && !has_match(head.clone()) {
        return None;
    }
    *r = head;
    Some(MultipartType::FlowMonitor)
}

/// Whether the first request of ONF's has a match behind it, of the length that it says.
fn has_match(mut r: Reader<'_>) -> bool {
    if r.is_empty() {
        return true;
    }
    let mut read = || -> reader::ReadResult<(u16, u16, u16)> {
        r.skip(6)?;
        let len = r.u16()?;
        r.skip(8)?;
        Ok((len, r.u16()?, r.u16()?))
    };
    read().is_ok_and(|(given, number, len)| (number, len) == (OXM_MATCH, given))
}

/// Writes the head of flow monitors that are an experimenter's, after that of a multipart message.
pub(crate) fn write_head(w: &mut Writer<'_>) {
    let (whose, number) = owner(w.version.has_onf_flow_monitor());
    w.u32(whose);
    w.u32(number);
    if !w.version.has_padded_statistics() {
        w.zeros(4);
    }
}

/// The experimenter of a version's flow monitors, and their number among its statistics.
fn owner(is_onf: bool) -> (u32, u32) {
    if is_onf { (ONF, ONF_STATS) } else { (NICIRA, NICIRA_STATS) }
}

/// The flags, of which some must ask for a change.
fn read_flags(r: &mut Reader<'_>, known: FlowMonitorFlags) -> reader::ReadResult<FlowMonitorFlags> {
    let start = r.clone();
    let flags = FlowMonitorFlags::from_bits_retain(r.u16()?);
    if !known.contains(flags) || !flags.intersects(FlowMonitorFlags::CHANGES) {
        return Err(start.fault_in(Error::FlowMonitorBadFlags, "flags"));
    }
    Ok(flags)
}

/// Requires that a version before 1.4 can say the request.
fn require_add(w: &Writer<'_>, asked: &FlowMonitorRequest) -> writer::WriteResult<()> {
    w.require(asked.command == FlowMonitorCommand::Add, "command of a flow monitor")?;
    w.require(asked.out_group == GroupId::ANY, "out_group of a flow monitor")?;
    w.require(FLAGS.contains(asked.flags), "flags of a flow monitor")
}

pub(crate) fn read_request_nicira(r: &mut Reader<'_>) -> reader::ReadResult<FlowMonitorRequest> {
    let monitor_id = r.u32()?;
    let flags = read_flags(r, FLAGS)?;
    let out_port = compat::port_from_v1_0(r.u16()?);
    let match_len = usize::from(r.u16()?);
    let table_id = TableId(r.u8()?);
    r.skip(5)?;
    let matching = nxm::read(r, match_len, Purpose::Select)?.matching;
    let (command, out_group) = (FlowMonitorCommand::Add, GroupId::ANY);
    Ok(FlowMonitorRequest { monitor_id, command, flags, table_id, out_port, out_group, matching })
}

pub(crate) fn write_request_nicira(
    w: &mut Writer<'_>,
    asked: &FlowMonitorRequest,
) -> writer::WriteResult<()> {
    require_add(w, asked)?;
    w.u32(asked.monitor_id);
    w.u16(asked.flags.bits());
    let port = compat::port_to_v1_0(asked.out_port);
    w.u16(port.ok_or_else(|| w.unsupported("port number above 16 bits"))?);
    let len_at = w.place();
    w.zeros(2);
    w.u8(asked.table_id.0);
    w.zeros(5);
    write_nx_match(w, len_at, &asked.matching)
}

/// Writes a match of Nicira's, and its length where that stands.
fn write_nx_match(w: &mut Writer<'_>, len_at: usize, matching: &Match) -> writer::WriteResult<()> {
    let all = NxMatch { matching: matching.clone(), ..NxMatch::default() };
    let len = nxm::write(w, &all)?;
    w.fill(len_at, &len.to_be_bytes());
    Ok(())
}

pub(crate) fn read_request_onf(r: &mut Reader<'_>) -> reader::ReadResult<FlowMonitorRequest> {
    let monitor_id = r.u32()?;
    let flags = read_flags(r, FLAGS)?;
    // The length of the match, which says it itself.
    r.skip(2)?;
    let out_port = r.port()?;
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    let matching = matching::read(r, Purpose::Select)?;
    let (command, out_group) = (FlowMonitorCommand::Add, GroupId::ANY);
    Ok(FlowMonitorRequest { monitor_id, command, flags, table_id, out_port, out_group, matching })
}

pub(crate) fn write_request_onf(
    w: &mut Writer<'_>,
    asked: &FlowMonitorRequest,
) -> writer::WriteResult<()> {
    require_add(w, asked)?;
    w.u32(asked.monitor_id);
    w.u16(asked.flags.bits());
    let len_at = w.place();
    w.zeros(2);
    w.port(asked.out_port)?;
    w.u8(asked.table_id.0);
    w.zeros(3);
    write_match(w, len_at, &asked.matching)
}

/// Writes a match, and its length without padding where that stands.
fn write_match(w: &mut Writer<'_>, len_at: usize, matching: &Match) -> writer::WriteResult<()> {
    let start = w.place();
    matching::write(w, matching)?;
    // Type and length of the match begin it.
    let len = w.bytes_at(start + 2);
    w.fill(len_at, &len);
    Ok(())
}

pub(crate) fn read_request_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<FlowMonitorRequest> {
    let monitor_id = r.u32()?;
    let out_port = r.port()?;
    let out_group = GroupId(r.u32()?);
    let mut at_flags = r.clone();
    r.skip(2)?;
    let table_id = TableId(r.u8()?);
    let command = FlowMonitorCommand::from_number(r.u8()?);
    let flags = match command {
        FlowMonitorCommand::Add | FlowMonitorCommand::Modify => {
            read_flags(&mut at_flags, FLAGS.union(FlowMonitorFlags::ONLY_OWN))?
        }
        FlowMonitorCommand::Delete | FlowMonitorCommand::Unknown(_) => {
            FlowMonitorFlags::from_bits_retain(at_flags.u16()?)
        }
    };
    let matching = matching::read(r, Purpose::Select)?;
    Ok(FlowMonitorRequest { monitor_id, command, flags, table_id, out_port, out_group, matching })
}

pub(crate) fn write_request_v1_4(
    w: &mut Writer<'_>,
    asked: &FlowMonitorRequest,
) -> writer::WriteResult<()> {
    w.u32(asked.monitor_id);
    w.port(asked.out_port)?;
    w.u32(asked.out_group.0);
    w.u16(asked.flags.bits());
    w.u8(asked.table_id.0);
    w.u8(asked.command.number());
    matching::write(w, &asked.matching)
}

/// The event of Nicira's and ONF's number, which know no initial ones.
fn event_of_nicira(number: u16) -> Option<FlowEvent> {
    [FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified].get(usize::from(number)).copied()
}

/// That number; an entry that was there is an added one.
fn event_to_nicira(event: FlowEvent) -> u16 {
    match event {
        FlowEvent::Initial | FlowEvent::Added | FlowEvent::Unknown(_) => 0,
        FlowEvent::Removed => 1,
        FlowEvent::Modified => 2,
    }
}

/// The reason of a removal, which other changes have not.
fn reason_of(event: FlowEvent, r: &Reader<'_>, number: u8) -> Option<FlowRemovedReason> {
    let reason = FlowRemovedReason::from_number_in(r.version, number);
    (event == FlowEvent::Removed).then_some(reason)
}

fn reason_number(w: &Writer<'_>, change: &FlowChange) -> u8 {
    change.reason.map_or(0, |reason| reason.nearest_in(w.version).number())
}

/// Begins a report: what follows its length, and its event.
fn read_event<'a>(r: &mut Reader<'a>) -> reader::ReadResult<(Reader<'a>, u16)> {
    let mut r = r.sized("flow update")?;
    let event = r.u16()?;
    Ok((r, event))
}

fn read_abbreviated(mut r: Reader<'_>) -> reader::ReadResult<FlowUpdate> {
    let xid = Xid(r.u32()?);
    r.finish()?;
    Ok(FlowUpdate::Abbreviated(xid))
}

/// The facts before the match in Nicira's and ONF's reports; the length of the match.
fn read_facts_nicira(r: &mut Reader<'_>, event: u16) -> reader::ReadResult<(FlowChange, usize)> {
    let event = event_of_nicira(event).ok_or_else(|| r.fault(Error::BadRequestBadLen))?;
    let number = u8::try_from(r.u16()?).unwrap_or(u8::MAX);
    let reason = reason_of(event, r, number);
    let (priority, idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let cookie = Cookie(r.u64()?);
    let (matching, instructions) = (Match::any(), Vec::new());
    let change = FlowChange {
        event,
        reason,
        table_id,
        idle_timeout_s,
        hard_timeout_s,
        priority,
        cookie,
        matching,
        instructions,
    };
    Ok((change, match_len))
}

pub(crate) fn read_update_nicira(r: &mut Reader<'_>) -> reader::ReadResult<FlowUpdate> {
    let (mut r, event) = read_event(r)?;
    if event == ABBREV_NICIRA {
        return read_abbreviated(r);
    }
    let (mut change, match_len) = read_facts_nicira(&mut r, event)?;
    change.matching = nxm::read(&mut r, match_len, Purpose::Report)?.matching;
    change.instructions = instruction::read_bare(r)?;
    Ok(FlowUpdate::Change(change))
}

pub(crate) fn read_update_onf(r: &mut Reader<'_>) -> reader::ReadResult<FlowUpdate> {
    let (mut r, event) = read_event(r)?;
    if event == ABBREV_NICIRA {
        return read_abbreviated(r);
    }
    let (mut change, _) = read_facts_nicira(&mut r, event)?;
    change.matching = matching::read(&mut r, Purpose::Report)?;
    change.instructions = instruction::read_list(&mut r)?;
    Ok(FlowUpdate::Change(change))
}

/// Begins Nicira's or ONF's report; the change that it goes on with, and the place of the length of
/// its match.
fn write_facts_nicira<'a>(
    w: &mut Writer<'_>,
    update: &'a FlowUpdate,
) -> writer::WriteResult<Option<(&'a FlowChange, usize)>> {
    w.zeros(2);
    let change = match update {
        FlowUpdate::Change(change) => change,
        FlowUpdate::Abbreviated(xid) => {
            w.u16(ABBREV_NICIRA);
            w.u32(xid.0);
            return Ok(None);
        }
        FlowUpdate::Paused | FlowUpdate::Resumed => {
            return Err(w.unsupported("pause among flow updates"));
        }
    };
    w.u16(event_to_nicira(change.event));
    w.u16(reason_number(w, change).into());
    w.u16(change.priority);
    w.u16(change.idle_timeout_s);
    w.u16(change.hard_timeout_s);
    let len_at = w.place();
    w.zeros(2);
    w.u8(change.table_id.0);
    w.zeros(1);
    w.u64(change.cookie.0);
    Ok(Some((change, len_at)))
}

pub(crate) fn write_update_nicira(
    w: &mut Writer<'_>,
    update: &FlowUpdate,
) -> writer::WriteResult<()> {
    let start = w.place();
    if let Some((change, len_at)) = write_facts_nicira(w, update)? {
        write_nx_match(w, len_at, &change.matching)?;
        instruction::write_bare(w, &change.instructions, Context::of(&change.matching))?;
    }
    w.fill_len(start, start, "flow update")
}

pub(crate) fn write_update_onf(w: &mut Writer<'_>, update: &FlowUpdate) -> writer::WriteResult<()> {
    let start = w.place();
    if let Some((change, len_at)) = write_facts_nicira(w, update)? {
        write_match(w, len_at, &change.matching)?;
        instruction::write_list(w, &change.instructions, &change.matching)?;
    }
    w.fill_len(start, start, "flow update")
}

pub(crate) fn read_update_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<FlowUpdate> {
    let (mut r, event) = read_event(r)?;
    let paused = match event {
        ABBREV => return read_abbreviated(r),
        PAUSED => Some(FlowUpdate::Paused),
        RESUMED => Some(FlowUpdate::Resumed),
        _ => None,
    };
    if let Some(update) = paused {
        r.skip(4)?;
        r.finish()?;
        return Ok(update);
    }
    let event = FlowEvent::from_number(event);
    let table_id = TableId(r.u8()?);
    let number = r.u8()?;
    let reason = reason_of(event, &r, number);
    let (idle_timeout_s, hard_timeout_s, priority) = (r.u16()?, r.u16()?, r.u16()?);
    r.skip(4)?;
    Ok(FlowUpdate::Change(FlowChange {
        event,
        reason,
        table_id,
        idle_timeout_s,
        hard_timeout_s,
        priority,
        cookie: Cookie(r.u64()?),
        matching: matching::read(&mut r, Purpose::Report)?,
        instructions: instruction::read_list(&mut r)?,
    }))
}

pub(crate) fn write_update_v1_4(
    w: &mut Writer<'_>,
    update: &FlowUpdate,
) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(2);
    match update {
        FlowUpdate::Change(change) => {
            w.u16(change.event.number());
            w.u8(change.table_id.0);
            w.u8(reason_number(w, change));
            w.u16(change.idle_timeout_s);
            w.u16(change.hard_timeout_s);
            w.u16(change.priority);
            w.zeros(4);
            w.u64(change.cookie.0);
            matching::write(w, &change.matching)?;
            instruction::write_list(w, &change.instructions, &change.matching)?;
        }
        FlowUpdate::Abbreviated(xid) => {
            w.u16(ABBREV);
            w.u32(xid.0);
        }
        FlowUpdate::Paused => {
            w.u16(PAUSED);
            w.zeros(4);
        }
        FlowUpdate::Resumed => {
            w.u16(RESUMED);
            w.zeros(4);
        }
    }
    w.fill_len(start, start, "flow update")
}
