//! Matches, actions and instructions that a version can say, and the messages made of them.

use std::convert::Infallible;

use openflow::action::{ActionKind, ReadArguments};
use openflow::field::{FIELDS, Prereq, VID_PRESENT};
use openflow::flow::{
    FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats,
    FlowStatsRequest,
};
use openflow::flow_monitor::{
    FlowChange, FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate,
};
use openflow::instruction::INSTRUCTIONS;
use openflow::learn::{LearnFlags, LearnSource, LearnSpec, LearnTarget};
use openflow::members::{BundleAlgorithm, HashFields};
use openflow::message::PacketInReason;
use openflow::{
    Action, BitRange, BufferId, Cookie, Field, GroupId, Instruction, InstructionKind, Learn, Match,
    Members, MeterId, PortNo, ShortPort, TableId, ToController, Version, Xid,
};

use super::entropy::Entropy;

/// A port number that the version can say.
pub(crate) fn port(e: &mut Entropy<'_>, version: Version) -> PortNo {
    match (version.has_wide_ports(), e.bool()) {
        (_, true) => PortNo(0xffff_ff00 + u32::from(e.u8())),
        (false, false) => PortNo(u32::from(e.u16()) % 0xff00),
        (true, false) => PortNo(e.u32()),
    }
}

pub(crate) fn buffer(e: &mut Entropy<'_>) -> Option<BufferId> {
    e.bool().then(|| BufferId(e.u32() & 0x7fff_ffff))
}

/// Adds a field, and before it the fields that it needs. `None` when they contradict what is there.
fn add(matching: &Match, field: Field, value: u128, mask: u128) -> Option<Match> {
    let mut with = need(matching.clone(), field.row().prereq)?;
    with.add(field, value & mask, mask).ok()?;
    with.check_prerequisites().ok().map(|()| with)
}

fn need(matching: Match, prereq: Prereq) -> Option<Match> {
    if matching.matches(prereq) {
        return Some(matching);
    }
    match prereq {
        Prereq::None => Some(matching),
        Prereq::Present(field) => add(&matching, field, 1, field.full_mask()),
        Prereq::VlanTag => add(&matching, Field::VlanVid, VID_PRESENT | 5, 0x1fff),
        Prereq::OneOf(field, values) => add(&matching, field, *values.first()?, field.full_mask()),
    }
}

/// A match of one field and what it needs; `None` when the version cannot say the field.
pub(crate) fn match_on(e: &mut Entropy<'_>, version: Version, field: Field) -> Option<Match> {
    extend(e, version, &Match::any(), field)
}

fn extend(e: &mut Entropy<'_>, version: Version, matching: &Match, field: Field) -> Option<Match> {
    let row = field.row();
    if !field.is_in(version) {
        return None;
    }
    let full = field.full_mask();
    let value = e.u128() & full;
    let (value, mask) = match version.has_masked_addresses() {
        false => (value_v1_0(e, field, value)?, mask_v1_0(e, field)),
        true if row.maskable && e.bool() => (value, e.u128() & full),
        true => (value, full),
    };
    add(matching, field, value, mask)
}

/// A value that 1.0 has room for.
fn value_v1_0(e: &mut Entropy<'_>, field: Field, value: u128) -> Option<u128> {
    Some(match field {
        Field::InPort => port(e, Version::V1_0).0.into(),
        Field::VlanVid if value & VID_PRESENT == 0 => 0,
        Field::ArpOp => value & 0xff,
        _ => value,
    })
}

/// 1.0 masks addresses of IPv4 alone, and by prefixes alone.
fn mask_v1_0(e: &mut Entropy<'_>, field: Field) -> u128 {
    let prefixed = [Field::Ipv4Src, Field::Ipv4Dst, Field::ArpSpa, Field::ArpTpa];
    let full = field.full_mask();
    if prefixed.contains(&field) { full << e.below(32) & full } else { full }
}

pub(crate) fn matching(e: &mut Entropy<'_>, version: Version) -> Match {
    let mut matching = Match::any();
    for row in e.list(|e| e.pick(FIELDS)) {
        matching = extend(e, version, &matching, row.field).unwrap_or(matching);
    }
    matching
}

/// An action of a kind that the version has.
pub(crate) fn action(e: &mut Entropy<'_>, version: Version, kind: ActionKind) -> Action {
    let mut drawn = Drawn { e, version, bits: kind.row().bits, field: None };
    Action::read(kind, &mut drawn).unwrap_or_else(|never| match never {})
}

/// Arguments of an action, drawn by their types.
struct Drawn<'e, 'a> {
    e: &'e mut Entropy<'a>,
    version: Version,
    bits: Option<u16>,
    field: Option<Field>,
}

impl ReadArguments for Drawn<'_, '_> {
    type Error = Infallible;

    fn number(&mut self, bits: u16) -> Result<u64, Infallible> {
        Ok(self.e.u64() & (u64::MAX >> (64 - self.bits.unwrap_or(bits))))
    }

    fn port(&mut self) -> Result<PortNo, Infallible> {
        Ok(port(self.e, self.version))
    }

    fn field(&mut self) -> Result<Field, Infallible> {
        let settable: Vec<Field> = FIELDS
            .iter()
            .filter(|row| row.settable && row.field.is_in(self.version))
            .map(|row| row.field)
            .collect();
        let field = self.e.pick(&settable);
        self.field = Some(field);
        Ok(field)
    }

    fn value(&mut self) -> Result<u128, Infallible> {
        Ok(self.e.u128() & self.field.map_or(0, Field::full_mask))
    }

    fn to_controller(&mut self) -> Result<ToController, Infallible> {
        let e = &mut *self.e;
        let meter = e.list(|e| MeterId(1 + e.u32() % 9)).pop();
        Ok(ToController {
            max_len: e.u16(),
            controller_id: e.u16(),
            reason: PacketInReason::from_number(e.u8() & 7),
            userdata: e.data(8),
            pauses: e.u8() & 1 != 0,
            meter,
        })
    }

    fn controller_ids(&mut self) -> Result<Vec<u16>, Infallible> {
        Ok(self.e.list(Entropy::u16))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Infallible> {
        Ok(self.e.data(8))
    }

    fn learn(&mut self) -> Result<Learn, Infallible> {
        Ok(learn(self.e))
    }

    fn members(&mut self) -> Result<Members, Infallible> {
        let dst = self.field()?;
        let e = &mut *self.e;
        Ok(Members {
            fields: HashFields::from_number(e.u16() & 7),
            basis: e.u16(),
            algorithm: BundleAlgorithm::from_number(e.u16() & 3),
            members: e.list(|e| ShortPort::new(PortNo(e.u32() & 0x7fff)).unwrap()),
            dst: e.bool().then(|| (BitRange::from_ofs_nbits(e.u16()), dst)),
        })
    }

    fn actions(&mut self) -> Result<Vec<Action>, Infallible> {
        Ok(actions(self.e, self.version))
    }
}

fn learn(e: &mut Entropy<'_>) -> Learn {
    let fields: Vec<Field> = FIELDS.iter().map(|row| row.field).collect();
    let specs = e.list(|e| {
        let (read, used) = (e.pick(&fields), e.pick(&fields));
        let bits = read.row().bits.min(used.row().bits);
        let n_bits = 1 + e.u16() % bits;
        let (from, to) =
            (e.u16() % (read.row().bits - n_bits + 1), e.u16() % (used.row().bits - n_bits + 1));
        let value = LearnSource::Immediate(e.u128() & (u128::MAX >> (128 - n_bits)));
        let field = LearnSource::Field(read, from);
        let target = e.pick(&[
            LearnTarget::Match(used, to),
            LearnTarget::Load(used, to),
            LearnTarget::Output,
        ]);
        let source = if target == LearnTarget::Output { field } else { e.pick(&[field, value]) };
        LearnSpec { n_bits, source, target }
    });
    Learn {
        idle_timeout_s: e.u16(),
        hard_timeout_s: e.u16(),
        priority: e.u16(),
        cookie: Cookie(e.u64()),
        flags: LearnFlags::from_bits_retain(e.u16() & 3),
        table: TableId(e.u8() & 0x7f),
        fin_timeouts_s: [e.u16(), e.u16()],
        specs,
    }
}

pub(crate) fn actions(e: &mut Entropy<'_>, version: Version) -> Vec<Action> {
    let kinds: Vec<ActionKind> = openflow::action::ACTIONS
        .iter()
        .map(|row| row.kind)
        .filter(|kind| kind.number(version).is_some())
        .collect();
    e.list(|e| {
        let kind = e.pick(&kinds);
        action(e, version, kind)
    })
}

pub(crate) fn instruction(
    e: &mut Entropy<'_>,
    version: Version,
    kind: InstructionKind,
) -> Instruction {
    let version = version.min(Version::V1_3);
    let mut drawn = Drawn { e, version, bits: None, field: None };
    Instruction::read(kind, &mut drawn).unwrap_or_else(|never| match never {})
}

/// One list of actions, or none.
fn bare(e: &mut Entropy<'_>, version: Version) -> Vec<Instruction> {
    let actions = actions(e, version);
    if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] }
}

fn instructions(e: &mut Entropy<'_>, version: Version) -> Vec<Instruction> {
    match version.has_instructions() {
        false => bare(e, version),
        true => {
            let mut list = e.list(|e| {
                let is_known =
                    |kind: &InstructionKind| kind.number(version.min(Version::V1_3)).is_some();
                let known: Vec<_> =
                    INSTRUCTIONS.iter().map(|row| row.kind).filter(is_known).collect();
                let kind = known[e.below_or(known.len() - 1, 1)];
                instruction(e, version, kind)
            });
            let is_meter = |one: &Instruction| one.meter().is_some();
            if version.has_meter_action() && list.iter().any(is_meter) {
                // It is read as the first of what is applied, which is one list.
                let applied = |one: &Instruction| one.kind() == InstructionKind::ApplyActions;
                list.retain(|one| !is_meter(one) && !applied(one));
                let applied = vec![Action::output(PortNo(1))];
                list.insert(0, Instruction::ApplyActions(applied));
                list.insert(0, instruction(e, version, InstructionKind::Meter));
            }
            list
        }
    }
}

pub(crate) fn flow_mod(e: &mut Entropy<'_>, version: Version) -> FlowMod {
    let mut flow = FlowMod {
        cookie: Cookie(e.u64()),
        idle_timeout_s: e.u16(),
        hard_timeout_s: e.u16(),
        priority: e.u16(),
        buffer_id: buffer(e),
        out_port: port(e, version),
        matching: matching(e, version),
        instructions: instructions(e, version),
        ..FlowMod::new(FlowModCommand::from_number(e.u8()))
    };
    match version.has_pipeline() {
        false => {
            let known =
                FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP | FlowModFlags::EMERG;
            flow.flags = FlowModFlags::from_bits_retain(e.u16()) & known;
            if !matches!(flow.command, FlowModCommand::Add | FlowModCommand::Unknown(_)) {
                flow.table_id = TableId::ALL;
            }
        }
        true => {
            flow.flags = FlowModFlags::from_bits_retain(e.u16());
            flow.table_id = TableId(e.u8());
            flow.cookie_mask = e.u64();
            flow.out_group = GroupId(e.u32());
            flow.importance = importance(e, version);
        }
    }
    flow
}

fn importance(e: &mut Entropy<'_>, version: Version) -> u16 {
    if version.has_importance() { e.u16() } else { 0 }
}

pub(crate) fn removed(e: &mut Entropy<'_>, version: Version) -> FlowRemoved {
    let carried = version.has_pipeline();
    FlowRemoved {
        cookie: Cookie(e.u64()),
        priority: e.u16(),
        reason: {
            let number = if carried { e.u8() } else { e.u8() % 3 };
            FlowRemovedReason::from_number_in(version, number)
        },
        table_id: TableId(if carried { e.u8() } else { 0 }),
        duration_s: e.u32(),
        duration_ns: e.u32(),
        idle_timeout_s: e.u16(),
        hard_timeout_s: if version.has_hard_timeout_in_removed() { e.u16() } else { 0 },
        packet_count: e.u64(),
        byte_count: e.u64(),
        matching: matching(e, version),
    }
}

pub(crate) fn stats_request(e: &mut Entropy<'_>, version: Version) -> FlowStatsRequest {
    let mut request = FlowStatsRequest {
        table_id: TableId(e.u8()),
        out_port: port(e, version),
        matching: matching(e, version),
        ..FlowStatsRequest::all()
    };
    if version.has_cookie_mask() {
        request.out_group = GroupId(e.u32());
        request.cookie = Cookie(e.u64());
        request.cookie_mask = e.u64();
    }
    request
}

pub(crate) fn stats(e: &mut Entropy<'_>, version: Version) -> FlowStats {
    FlowStats {
        table_id: TableId(e.u8()),
        duration_s: e.u32(),
        duration_ns: e.u32(),
        priority: e.u16(),
        idle_timeout_s: e.u16(),
        hard_timeout_s: e.u16(),
        flags: match version.has_flags_in_statistics() {
            false => FlowModFlags::empty(),
            true => FlowModFlags::from_bits_retain(e.u16()),
        },
        importance: importance(e, version),
        cookie: Cookie(e.u64()),
        packet_count: e.u64(),
        byte_count: e.u64(),
        matching: matching(e, version),
        instructions: instructions(e, version),
    }
}

/// The version whose ports and matches stand in messages about flow monitors: Nicira's are those of
/// 1.0, whatever the version is.
fn version_of_monitors(version: Version) -> Version {
    if version.has_onf_flow_monitor() { version } else { Version::V1_0 }
}

/// A request for a flow monitor; before 1.4 it can but add one.
pub(crate) fn monitor_request(e: &mut Entropy<'_>, version: Version) -> FlowMonitorRequest {
    let own = version.has_flow_monitor();
    let flags = if own { 0x7f } else { 0x3f };
    FlowMonitorRequest {
        monitor_id: e.u32(),
        command: if own { e.pick(FlowMonitorCommand::ALL) } else { FlowMonitorCommand::Add },
        flags: FlowMonitorFlags::from_bits_retain(e.u16() & flags) | FlowMonitorFlags::MODIFY,
        table_id: TableId(e.u8()),
        out_port: port(e, version_of_monitors(version)),
        out_group: if own { GroupId(e.u32()) } else { GroupId::ANY },
        matching: matching(e, version_of_monitors(version)),
    }
}

/// A report of a flow monitor.
pub(crate) fn update(e: &mut Entropy<'_>, version: Version) -> FlowUpdate {
    let own = version.has_flow_monitor();
    match e.u8() % 8 {
        0 => return FlowUpdate::Abbreviated(Xid(e.u32())),
        1 if own => return FlowUpdate::Paused,
        2 if own => return FlowUpdate::Resumed,
        _ => {}
    }
    let events = [FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified, FlowEvent::Initial];
    let event = e.pick(if own { &events } else { &events[..3] });
    let reason = FlowRemovedReason::from_number_in(version, e.u8());
    FlowUpdate::Change(FlowChange {
        event,
        reason: (event == FlowEvent::Removed).then_some(reason),
        table_id: TableId(e.u8()),
        idle_timeout_s: e.u16(),
        hard_timeout_s: e.u16(),
        priority: e.u16(),
        cookie: Cookie(e.u64()),
        matching: matching(e, version_of_monitors(version)),
        instructions: if version.has_onf_flow_monitor() {
            instructions(e, version)
        } else {
            bare(e, version)
        },
    })
}
