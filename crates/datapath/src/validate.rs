//! Validation before installation: every check of clauses 6.4 and 6.5 on actions and instructions.
//!
//! A flow entry or bucket that could not be executed in full is refused here, with the error of the
//! specification, before anything is changed (clause 5.9). What is let through must run; the match
//! arms in `reference::actions` are the other half of this promise.

use std::ops::Range;

use openflow::action::{CLONES_DEEP_MAX, DIMENSIONS, InSet};
use openflow::field::VID_PRESENT;
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::instruction::ActionsRun;
use openflow::learn::LearnSource;
use openflow::members::{BundleAlgorithm, HashFields, MultipathAlgorithm};
use openflow::message::{PacketIn, PacketOut};
use openflow::{
    Action, ActionKind, BitRange, Error, Field, GroupId, Instruction, InstructionKind, Learn,
    Match, Members, MeterId, PortNo, QueueId, TableId, Version,
};

use packet::FlowKey;

use crate::action_set::in_set_order;
use crate::known_fields::KnownFields;
use crate::pipeline::{Pipeline, table_of_new_entry};
use crate::precedence::Strict;

/// The flags of 1.3.
const FLAGS_1_3: FlowModFlags = FlowModFlags::SEND_FLOW_REM
    .union(FlowModFlags::CHECK_OVERLAP)
    .union(FlowModFlags::RESET_COUNTS)
    .union(UNCOUNTED);

/// The flags of entries that are not counted.
const UNCOUNTED: FlowModFlags = FlowModFlags::NO_PKT_COUNTS.union(FlowModFlags::NO_BYT_COUNTS);

/// The flags of 1.0 that are carried out.
const FLAGS_1_0: FlowModFlags = FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);

/// The bits that the number of a bundle's member takes.
const PORT_BITS: u16 = 16;

/// The tables, groups and meters that commands may refer to.
pub(crate) struct Existing<'a> {
    /// Number of tables.
    pub(crate) n_tables: u8,
    /// Whether a group exists.
    pub(crate) group: &'a dyn Fn(GroupId) -> bool,
    /// Whether a meter exists.
    pub(crate) meter: &'a dyn Fn(MeterId) -> bool,
}

/// Place of an action list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionContext {
    /// In a flow entry.
    Flow,
    /// In the action set, by a flow entry.
    Set,
    /// In a bucket of a group.
    Bucket,
    /// In a packet-out: the only place for an output to `TABLE`.
    PacketOut,
}

/// Checks the match of a flow-mod beyond what its fields were checked for one by one.
///
/// # Errors
/// `OFPBMC_BAD_PREREQ`; `OFPBMC_BAD_VALUE` for a VLAN id without `OFPVID_PRESENT` and, but in 1.0,
/// for an ingress port that is a reserved one; 0 is taken, as Open vSwitch takes it; no packet
/// comes in by it.
pub(crate) fn check_match(matching: &Match, version: Version) -> Result<(), Error> {
    matching.check_prerequisites()?;
    if let Some(in_port) = matching.exact(Field::InPort) {
        let port = PortNo(u32::try_from(in_port).map_err(|_| Error::BadMatchBadValue)?);
        let is_taken = port.is_port() || port == PortNo::CONTROLLER || port == PortNo(0);
        if version.has_wide_ports() && !is_taken {
            return Err(Error::BadMatchBadValue);
        }
    }
    match matching.exact(Field::VlanVid) {
        Some(1..=0x0fff) => Err(Error::BadMatchBadValue),
        Some(_) | None => Ok(()),
    }
}

/// A flow-mod that has passed the checks that look at no entry, with the tables that it selects and
/// the precedence that a strict one asks for.
#[derive(Clone, Debug)]
pub(crate) enum CheckedFlowMod {
    Add,
    Modify(Range<u8>, Option<Strict>),
    Delete(Range<u8>, Option<Strict>),
}

/// The checks of a flow-mod that look at no entry.
///
/// # Errors
/// `OFPFMFC_BAD_COMMAND`, `_BAD_FLAGS`, `_BAD_TIMEOUT`, `_BAD_TABLE_ID`, `OFPBRC_BUFFER_UNKNOWN`,
/// and all that [`check_match`], [`check_instructions`] and [`Pipeline::check`] have.
pub(crate) fn check_flow_mod(
    flow_mod: &FlowMod,
    version: Version,
    pipeline: &Pipeline,
    existing: &Existing<'_>,
) -> Result<CheckedFlowMod, Error> {
    let strict = || Some(Strict::of(flow_mod, version));
    let (is_delete, strict) = match flow_mod.command {
        FlowModCommand::Add => {
            check_new_entry(flow_mod, version, pipeline, existing)?;
            return Ok(CheckedFlowMod::Add);
        }
        FlowModCommand::Modify => (false, None),
        FlowModCommand::ModifyStrict => (false, strict()),
        FlowModCommand::Delete => (true, None),
        FlowModCommand::DeleteStrict => (true, strict()),
        FlowModCommand::Unknown(_) => return Err(Error::FlowModBadCommand),
    };
    if !is_delete {
        check_new_entry(flow_mod, version, pipeline, existing)?;
        return Ok(CheckedFlowMod::Modify(pipeline.tables_selected_by(flow_mod)?, strict));
    }
    let tables = pipeline.tables_selected_by(flow_mod)?;
    check_match(&flow_mod.matching, version)?;
    Ok(CheckedFlowMod::Delete(tables, strict))
}

/// The checks of an entry that an add or modify makes.
fn check_new_entry(
    flow_mod: &FlowMod,
    version: Version,
    pipeline: &Pipeline,
    existing: &Existing<'_>,
) -> Result<(), Error> {
    check_flow_mod_flags(flow_mod, version)?;
    let table = table_of_new_entry(flow_mod, version);
    if !pipeline.has(table) {
        return Err(Error::FlowModBadTableId);
    }
    // Nothing is ever buffered, so no buffer can be selected.
    if flow_mod.buffer_id.is_some() {
        return Err(Error::BadRequestBufferUnknown);
    }
    check_match(&flow_mod.matching, version)?;
    // 1.0 has lists of actions and nothing else, and its modify may reach every table: a goto could
    // lead backwards there.
    let is_list = |i: &Instruction| i.kind() == InstructionKind::ApplyActions;
    if !version.has_instructions() && !flow_mod.instructions.iter().all(is_list) {
        return Err(Error::BadInstructionUnsupInst);
    }
    let checked = check_instructions(table, &flow_mod.matching, &flow_mod.instructions, existing);
    if version.has_meter_action() && checked == Err(Error::MeterModUnknownMeter) {
        return Err(Error::BadActionBadMeter);
    }
    checked?;
    pipeline.check(flow_mod, version)
}

/// Checks the flags of a flow-mod: those that the version has not are refused; so is 1.0's
/// emergency flag, with timeouts by the error that 1.0 has for it.
///
/// # Errors
/// `OFPFMFC_BAD_FLAGS`, `OFPFMFC_BAD_TIMEOUT`.
fn check_flow_mod_flags(flow_mod: &FlowMod, version: Version) -> Result<(), Error> {
    let mut allowed = if version.has_reset_counts() { FLAGS_1_3 } else { FLAGS_1_0 };
    if !version.has_uncounted_entries() {
        allowed -= UNCOUNTED;
    }
    if allowed.contains(flow_mod.flags) {
        return Ok(());
    }
    let has_timeout = flow_mod.idle_timeout_s != 0 || flow_mod.hard_timeout_s != 0;
    if version.has_emergency_entries()
        && flow_mod.flags.contains(FlowModFlags::EMERG)
        && has_timeout
    {
        return Err(Error::FlowModBadTimeout);
    }
    Err(Error::FlowModBadFlags)
}

/// Checks the instructions of an entry in `table`.
///
/// # Errors
/// `OFPBIC_*` for the instructions themselves (`OFPBIC_DUP_INST` where one type stands twice),
/// `OFPMMFC_UNKNOWN_METER`, and `OFPBAC_*` for their actions.
pub(crate) fn check_instructions(
    table: TableId,
    matching: &Match,
    instructions: &[Instruction],
    existing: &Existing<'_>,
) -> Result<(), Error> {
    let mut kinds: Vec<InstructionKind> = instructions.iter().map(Instruction::kind).collect();
    kinds.sort_unstable();
    if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::BadInstructionDupInst);
    }
    let mut in_order: Vec<&Instruction> = instructions.iter().collect();
    in_order.sort_by_key(|instruction| instruction.kind());
    let mut known = KnownFields::of(matching);
    for instruction in in_order {
        check_instruction(table, instruction, &mut known, existing)?;
    }
    let has_conjunction = instructions.iter().flat_map(Instruction::actions).any(is_conjunction);
    let stands_alone = |it: &Instruction| {
        it.kind() == InstructionKind::ApplyActions
            && it.actions().iter().all(|one| is_conjunction(one) || one.kind() == ActionKind::Note)
    };
    let is_well = !has_conjunction || instructions.iter().all(stands_alone);
    require(is_well, Error::BadConjunction)
}

fn is_conjunction(action: &Action) -> bool {
    action.kind() == ActionKind::Conjunction
}

pub(crate) fn check_instruction(
    table: TableId,
    instruction: &Instruction,
    known: &mut KnownFields,
    existing: &Existing<'_>,
) -> Result<(), Error> {
    if let Some(next) = instruction.goto_table() {
        let is_later = next > table && next.0 < existing.n_tables;
        require(is_later, Error::BadInstructionBadTableId)?;
    }
    if let Some(meter) = instruction.meter() {
        require((existing.meter)(meter), Error::MeterModUnknownMeter)?;
    }
    let (kind, actions) = (instruction.kind(), instruction.actions());
    require(kind != InstructionKind::Experimenter, Error::BadInstructionBadExperimenter)?;
    match kind.row().actions {
        ActionsRun::Never => Ok(()),
        ActionsRun::AtOnce => check_actions(actions, ActionContext::Flow, known, existing),
        ActionsRun::InSet => {
            for action in actions {
                check_action(action, ActionContext::Set, existing)?;
            }
            // They run later, in the set's own order, on what apply-actions have left.
            let mut later = known.clone();
            in_set_order(actions).iter().try_for_each(|action| later.run(action))
        }
    }
}

/// Checks a list of actions that run in their order, on packets with these facts.
///
/// # Errors
/// `OFPBAC_*`.
pub(crate) fn check_actions(
    actions: &[Action],
    context: ActionContext,
    known: &mut KnownFields,
    existing: &Existing<'_>,
) -> Result<(), Error> {
    for action in actions {
        check_action(action, context, existing)?;
        known.run(action)?;
    }
    Ok(())
}

/// Checks a packet-out, but for its actions.
///
/// # Errors
/// `OFPBRC_BUFFER_UNKNOWN`: nothing is ever buffered; `OFPBRC_BAD_PORT` for an ingress port that
/// cannot exist; `OFPBRC_BAD_PACKET` for less than an Ethernet header.
pub(crate) fn check_packet_out(packet_out: &PacketOut) -> Result<(), Error> {
    if packet_out.buffer_id.is_some() {
        return Err(Error::BadRequestBufferUnknown);
    }
    let port = packet_out.in_port;
    // `ANY` is 1.0's `OFPP_NONE`: no port.
    if !port.is_port() && port != PortNo::CONTROLLER && port != PortNo::ANY {
        return Err(Error::BadRequestBadPort);
    }
    if packet_out.data.len() < packet::header::ethernet::HEADER_LEN {
        return Err(Error::BadRequestBadPacket);
    }
    Ok(())
}

/// The fields that others need as their prerequisites.
const DECISIVE: [Field; 4] = [Field::EthType, Field::VlanVid, Field::IpProto, Field::Icmpv6Type];

/// Checks the actions of a packet-out, whose packet has this key.
///
/// # Errors
/// Those of [`check_actions`].
pub(crate) fn check_packet_out_actions(
    packet_out: &PacketOut,
    key: &FlowKey,
    existing: &Existing<'_>,
) -> Result<(), Error> {
    // The fields that the packet itself makes certain.
    let shown = DECISIVE.iter().fold(Match::any(), |known, field| {
        if key.has(*field) || *field == Field::VlanVid {
            known.with(*field, key.get(*field))
        } else {
            known
        }
    });
    let mut known = KnownFields::of(&shown);
    check_actions(&packet_out.actions, ActionContext::PacketOut, &mut known, existing)
}

/// Checks a packet that a controller resumes, but for what is still to be done.
///
/// # Errors
/// `OFPBRC_BAD_PACKET` for less than an Ethernet header.
pub(crate) fn check_resumed(paused: &PacketIn) -> Result<(), Error> {
    let has_header = paused.data.len() >= packet::header::ethernet::HEADER_LEN;
    require(has_header, Error::BadRequestBadPacket)
}

/// The checks of one action that need no packet. What its row says of the argument comes first,
/// then what the argument refers to.
pub(crate) fn check_action(
    action: &Action,
    context: ActionContext,
    existing: &Existing<'_>,
) -> Result<(), Error> {
    require(action.is_accepted(), Error::BadActionBadArgument)?;
    let is_set = matches!(context, ActionContext::Set | ActionContext::Bucket);
    let can_stand = !is_set || action.kind().row().in_set != InSet::Never;
    check_choice(action, context)?;
    if action.names_fields() {
        require(can_stand, Error::BadActionBadType)?;
        check_bits(action.read_bits(), action.reads())?;
        check_bits(action.written_bits(), action.writes())?;
        let check = |field: &Field| check_set_field(*field, action.value());
        action.writes().iter().try_for_each(check)?;
        let Action::Load { bits, value, .. } = action else { return Ok(()) };
        return require(u128::from(*value) <= bits.largest(), Error::BadActionBadSetArgument);
    }
    if let Action::OutputReg { .. } | Action::Push { .. } = action {
        require(can_stand, Error::BadActionBadType)?;
        check_bits(action.read_bits(), action.reads())
    } else if let Action::Clone(inner) = action {
        require(can_stand, Error::BadActionBadType)?;
        require(action.clones_deep() <= CLONES_DEEP_MAX, Error::BadActionTooMany)?;
        require(!inner.iter().any(is_conjunction), Error::BadConjunction)?;
        inner.iter().try_for_each(|one| check_action(one, context, existing))
    } else if let Action::Output { port, .. } = action {
        check_output(*port, context)
    } else if let Action::Enqueue { port, queue } = action {
        let exists = port.is_port() || *port == PortNo::IN_PORT;
        require(exists, Error::BadActionBadOutPort)?;
        check_queue(*queue)
    } else if let Action::SetQueue(queue) = action {
        check_queue(*queue)
    } else if let Action::Group(group) = action {
        require((existing.group)(*group), Error::BadActionBadOutGroup)
    } else if let Action::ResubmitTable { table, .. } = action {
        let exists = table.0 < existing.n_tables || *table == TableId::ALL;
        require(exists, Error::BadActionBadArgument)
    } else if let Action::Conjunction { dimension, n_dimensions, .. } = action {
        require(context == ActionContext::Flow, Error::BadActionBadType)?;
        let is_well = DIMENSIONS.contains(n_dimensions) && dimension < n_dimensions;
        require(is_well, Error::BadConjunction)
    } else if let Action::Learn(learn) = action {
        require(can_stand, Error::BadActionBadType)?;
        check_learn(learn, existing)
    } else if let Action::Experimenter { .. } = action {
        Err(Error::BadActionBadExperimenter)
    } else {
        require(can_stand, Error::BadActionBadType)
    }
}

/// Checks that the choice of a bundle or multipath is one that there is, and has room, and that the
/// members of a bundle may be sent to. `ANY` is one that is never live.
fn check_choice(action: &Action, context: ActionContext) -> Result<(), Error> {
    let is_well = if let Action::Multipath { fields, algorithm, max_link, bits, .. } = action {
        HashFields::ALL.contains(fields)
            && MultipathAlgorithm::ALL.contains(algorithm)
            && u128::from(*max_link) <= bits.largest()
    } else if let Some(Members { fields, algorithm, dst, .. }) = action.members() {
        HashFields::ALL.contains(fields)
            && BundleAlgorithm::ALL.contains(algorithm)
            && dst.is_some() == (action.kind() == ActionKind::BundleLoad)
            && dst.is_none_or(|(bits, _)| bits.n_bits >= PORT_BITS)
    } else {
        true
    };
    require(is_well, Error::BadActionBadArgument)?;
    let members = action.members().into_iter().flat_map(|bundle| &bundle.members);
    for port in members.map(|member| member.port()).filter(|port| *port != PortNo::ANY) {
        require(port != PortNo::CONTROLLER, Error::BadActionBadOutPort)?;
        check_output(port, context)?;
    }
    Ok(())
}

/// Checks the parts of a learnt entry: fields have the bits, the match has what its fields and the
/// written ones need, and fields without masks are matched whole.
fn check_learn(learn: &Learn, existing: &Existing<'_>) -> Result<(), Error> {
    require(learn.table.0 < existing.n_tables, Error::BadActionBadArgument)?;
    let mut known = Match::any();
    for spec in &learn.specs {
        let parts = [spec.read(), spec.matched(), spec.written()];
        for (field, bits) in parts.into_iter().flatten() {
            require(bits.is_within(field), Error::BadActionBadSetLen)?;
        }
        for (field, _) in [spec.matched(), spec.written()].into_iter().flatten() {
            let has = known.matches(field.row().prereq);
            require(has, Error::BadActionMatchInconsistent)?;
        }
        if let Some((field, bits)) = spec.matched() {
            // Nicira's number of a port stands for the whole.
            let is_port = field == Field::InPort && bits == BitRange { offset: 0, n_bits: 16 };
            let is_whole = bits == BitRange::all(field) || is_port;
            require(is_whole || field.row().maskable, Error::BadActionBadSetLen)?;
            if let (LearnSource::Immediate(value), true) = (spec.source, is_whole) {
                known.set(field, value, u128::MAX);
            }
        }
        if let Some((field, _)) = spec.written() {
            require(field.row().settable, Error::BadActionBadSetType)?;
        }
    }
    Ok(())
}

fn require(condition: bool, error: Error) -> Result<(), Error> {
    if condition { Ok(()) } else { Err(error) }
}

/// Whether fields have the bits that an action names of them.
fn check_bits(bits: Option<BitRange>, fields: &[Field]) -> Result<(), Error> {
    let are_within = |bits: BitRange| fields.iter().all(|field| bits.is_within(*field));
    require(bits.is_none_or(are_within), Error::BadActionBadSetLen)
}

/// A port that does not exist is let through: it may appear later (clause 6.4), and until then its
/// packets are dropped and counted.
fn check_output(port: PortNo, context: ActionContext) -> Result<(), Error> {
    let allowed = match port {
        PortNo::TABLE => context == ActionContext::PacketOut,
        PortNo::ANY => false,
        PortNo::IN_PORT
        | PortNo::NORMAL
        | PortNo::FLOOD
        | PortNo::ALL
        | PortNo::CONTROLLER
        | PortNo::LOCAL => true,
        other => other.is_port(),
    };
    require(allowed, Error::BadActionBadOutPort)
}

fn check_queue(queue: QueueId) -> Result<(), Error> {
    require(queue != QueueId::ALL, Error::BadActionBadQueue)
}

/// The id of no tag cannot be set, and neither can an id of a tag that is not there. A value that
/// comes from the packet is cut to the field's width.
fn check_set_field(field: Field, value: Option<u128>) -> Result<(), Error> {
    require(field.row().settable, Error::BadActionBadSetType)?;
    let Some(value) = value else { return Ok(()) };
    let is_present = field != Field::VlanVid || value & VID_PRESENT != 0;
    require(is_present, Error::BadActionBadSetArgument)?;
    require(value & !field.full_mask() == 0, Error::BadActionBadSetArgument)
}

#[cfg(test)]
mod tests {
    use super::{ActionContext, Existing, check_action, check_instructions, check_match};
    use openflow::field::FIELDS;
    use openflow::{
        Action, Error, Field, GroupId, Instruction, Match, MeterId, PortNo, QueueId, TableId,
        Version,
    };

    fn existing() -> Existing<'static> {
        Existing { n_tables: 4, group: &|id| id == GroupId(1), meter: &|id| id == MeterId(1) }
    }

    fn action(action: Action, context: ActionContext) -> Result<(), Error> {
        check_action(&action, context, &existing())
    }

    fn entry(table: u8, instructions: &[Instruction]) -> Result<(), Error> {
        check_instructions(TableId(table), &Match::any(), instructions, &existing())
    }

    #[test]
    fn output_to_table_belongs_into_packet_outs_only() {
        let to = |port| Action::output(port);
        assert_eq!(action(to(PortNo::TABLE), ActionContext::PacketOut), Ok(()));
        let refused = Err(Error::BadActionBadOutPort);
        assert_eq!(action(to(PortNo::TABLE), ActionContext::Flow), refused);
        assert_eq!(action(to(PortNo::TABLE), ActionContext::Bucket), refused);
        for bad in [PortNo(0), PortNo(0xffff_ff01), PortNo::ANY] {
            assert_eq!(action(to(bad), ActionContext::PacketOut), refused);
        }
        for good in [PortNo(1), PortNo::MAX, PortNo::IN_PORT, PortNo::ALL, PortNo::LOCAL] {
            assert_eq!(action(to(good), ActionContext::Flow), Ok(()));
        }
        let enqueue = Action::Enqueue { port: PortNo::FLOOD, queue: QueueId(1) };
        assert_eq!(action(enqueue, ActionContext::Flow), refused);
    }

    #[test]
    fn arguments_are_checked_with_the_error_of_each() {
        let check = |a| action(a, ActionContext::Flow);
        for bad in [
            Action::PushVlan(0x0800),
            Action::PushMpls(0x8100),
            Action::PushPbb(0x8847),
            Action::SetVlanVid(4096),
            Action::SetVlanPcp(8),
            Action::SetNwTos(1),
        ] {
            assert_eq!(check(bad), Err(Error::BadActionBadArgument));
        }
        assert_eq!(check(Action::Group(GroupId(2))), Err(Error::BadActionBadOutGroup));
        let wide = Action::set_field(Field::VlanPcp, 8);
        assert_eq!(check(wide), Err(Error::BadActionBadSetArgument));
        for vid in [0, 5] {
            let absent = Action::set_field(Field::VlanVid, vid);
            assert_eq!(check(absent), Err(Error::BadActionBadSetArgument));
        }
        assert_eq!(check(Action::SetQueue(QueueId::ALL)), Err(Error::BadActionBadQueue));
        let foreign = Action::Experimenter { experimenter: 1, data: Vec::new() };
        assert_eq!(check(foreign), Err(Error::BadActionBadExperimenter));
    }

    #[test]
    fn a_conjunction_has_2_to_64_dimensions_and_stands_alone() {
        let part = |dimension, n_dimensions| Action::Conjunction { dimension, n_dimensions, id: 7 };
        let apply = |actions: &[Action]| Instruction::ApplyActions(actions.to_vec());
        for (dimension, n_dimensions) in [(0, 2), (1, 2), (0, 64), (63, 64)] {
            assert_eq!(entry(0, &[apply(&[part(dimension, n_dimensions)])]), Ok(()));
        }
        assert_eq!(entry(0, &[apply(&[part(0, 2), part(2, 3)])]), Ok(()));
        let note = Action::Note(vec![1; 6]);
        assert_eq!(entry(0, &[apply(&[note.clone(), part(0, 2), note])]), Ok(()));
        let bad = Err(Error::BadConjunction);
        for (dimension, n_dimensions) in [(0, 0), (0, 1), (2, 2), (64, 64), (0, 65), (255, 255)] {
            assert_eq!(entry(0, &[apply(&[part(dimension, n_dimensions)])]), bad);
        }
        assert_eq!(entry(0, &[apply(&[part(0, 2), Action::output(PortNo(1))])]), bad);
        let beside = [
            Instruction::GotoTable(TableId(1)),
            Instruction::Meter(MeterId(1)),
            Instruction::ClearActions,
            Instruction::WriteMetadata { metadata: 1, mask: 1 },
            Instruction::WriteActions(vec![Action::output(PortNo(1))]),
        ];
        for instruction in beside {
            assert_eq!(entry(0, &[apply(&[part(0, 2)]), instruction]), bad);
        }
    }

    #[test]
    fn what_the_row_says_may_be_set_and_nothing_else() {
        for row in FIELDS {
            let value = if row.field == Field::VlanVid { super::VID_PRESENT } else { 0 };
            let checked = action(Action::set_field(row.field, value), ActionContext::Flow);
            let expected = if row.settable { Ok(()) } else { Err(Error::BadActionBadSetType) };
            assert_eq!(checked, expected, "{}", row.name);
        }
    }

    #[test]
    fn instructions_are_checked_with_the_error_of_each() {
        let goto = |table| Instruction::GotoTable(TableId(table));
        assert_eq!(entry(1, &[goto(2)]), Ok(()));
        for bad in [0, 1, 4, 255] {
            assert_eq!(entry(1, &[goto(bad)]), Err(Error::BadInstructionBadTableId));
        }
        assert_eq!(entry(0, &[goto(1), goto(2)]), Err(Error::BadInstructionDupInst));
        assert_eq!(entry(0, &[Instruction::Meter(MeterId(1))]), Ok(()));
        let unknown = entry(0, &[Instruction::Meter(MeterId(2))]);
        assert_eq!(unknown, Err(Error::MeterModUnknownMeter));
        let foreign = Instruction::Experimenter { experimenter: 1, data: Vec::new() };
        assert_eq!(entry(0, &[foreign]), Err(Error::BadInstructionBadExperimenter));
    }

    #[test]
    fn written_actions_are_judged_in_the_order_of_the_set() {
        let set = Action::set_field(Field::VlanVid, 0x1005);
        let push = Action::PushVlan(0x8100);
        let list = vec![set.clone(), push.clone()];
        assert_eq!(entry(0, &[Instruction::WriteActions(list.clone())]), Ok(()));
        let applied = entry(0, &[Instruction::ApplyActions(list)]);
        assert_eq!(applied, Err(Error::BadActionMatchInconsistent));
        // Apply-actions run before write-actions, wherever they stand in the message.
        let both = [Instruction::WriteActions(vec![set]), Instruction::ApplyActions(vec![push])];
        assert_eq!(entry(0, &both), Ok(()));
    }

    #[test]
    fn a_match_must_be_possible() {
        let check = |field, value| check_match(&Match::any().with(field, value), Version::V1_3);
        assert_eq!(check(Field::InPort, 0), Ok(()));
        assert_eq!(check(Field::InPort, 0xffff_fffb), Err(Error::BadMatchBadValue));
        assert_eq!(check(Field::InPort, 0xffff_fffe), Ok(()));
        assert_eq!(check(Field::VlanVid, 5), Err(Error::BadMatchBadValue));
        assert_eq!(check(Field::VlanVid, 0), Ok(()));
        assert_eq!(check(Field::VlanVid, 0x1005), Ok(()));
        assert_eq!(check(Field::TcpDst, 80), Err(Error::BadMatchBadPrereq));
    }
}
