//! Translation of actions between versions: of a flow entry added over 1.0 and dumped over 1.3, and
//! of `mod_tp_dst:80`, which people write and mean in 1.3 too.
//!
//! An action of one version may take two in the other, some of which depend on the match: on the
//! transport protocol, and on whether there is a tag already. It follows Open vSwitch, so that a
//! dump looks the same on both:
//! - 1.0's `set_vlan_vid` and `set_vlan_pcp` push a tag where there is none. In 1.3 that is a
//!   push-vlan before the set-field, unless the match or an earlier action makes sure of a tag.
//! - 1.0 has no push-vlan; one before a set of the id or priority is contained in that set.
//! - 1.0's `set_tp_src` is a set-field of the protocol that the match asks for.
//! - `enqueue` is set-queue, output and pop-queue. In 1.0, outputs after a set-queue are enqueues,
//!   but for outputs to the reserved ports that enqueue may not name. Requests go to switches which
//!   may not have Nicira's pop-queue, and without it 1.3 cannot take a chosen queue back: outputs
//!   and groups after an enqueue go before it there, where the packet is the same. Those of an
//!   action set or of later tables cannot, and are refused. The controller has no queue.
//! - What is inside a clone is translated as any list is. A queue holds inside it, and for bundles,
//!   outputs by register and resubmits, which no enqueue stands for.
//! - 1.0 has no dec-ttl. Nicira's action is used for it, which `ovs-ofctl` sends and Open vSwitch
//!   runs. So is Nicira's load for a set-field of a field that 1.0 or 1.1 has no action for.
//! - 1.1 has push-vlan and the other actions of 1.3, but 1.0's in place of set-field. Those that
//!   set the id and priority push no tag.
//!
//! An action without a counterpart is an error: it must never be left out of a list, nor be
//! replaced by something near it.

use std::borrow::Cow;
use std::fmt;

use crate::action::{Action, ActionKind, HeaderEffect, nested};
use crate::error::Error;
use crate::field::{Field, Header, Prereq};
use crate::flow::{FlowMod, FlowModCommand};
use crate::id::{PortNo, QueueId, TableId};
use crate::instruction::{ActionsRun, Instruction, InstructionKind};
use crate::matching::Match;
use crate::message::Message;
use crate::version::Version;

/// EtherType of a customer VLAN tag, the one that 1.0's actions push.
const ETH_TYPE_VLAN: u16 = 0x8100;

/// An action that a version has no encoding for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslatable {
    /// The version has no such action.
    Action(Version, ActionKind),
    /// The version's action for the field cannot give it the value.
    SetField(Version, Field),
    /// The field to set depends on a protocol that the match does not name.
    NoProtocol(ActionKind),
    /// An output that runs after an enqueue and cannot go before it: the queue would hold for it
    /// too.
    OutputAfterEnqueue,
}

impl Untranslatable {
    /// The action's name in `ovs-ofctl`'s syntax.
    #[must_use]
    pub const fn action(self) -> &'static str {
        let kind = match self {
            Self::Action(_, kind) | Self::NoProtocol(kind) => kind,
            Self::SetField(..) => ActionKind::SetField,
            Self::OutputAfterEnqueue => ActionKind::Enqueue,
        };
        kind.row().text
    }
}

impl fmt::Display for Untranslatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action(version, kind) => {
                write!(f, "OpenFlow {} has no {}", version.row().release, kind.row().text)
            }
            Self::SetField(version, field) => {
                let (release, name) = (version.row().release, field.row().name);
                write!(f, "OpenFlow {release} has no action that sets {name} so")
            }
            Self::NoProtocol(_) => {
                let word = self.action();
                write!(f, "{word} says nothing without its protocol: match tcp, udp or sctp")
            }
            Self::OutputAfterEnqueue => f.write_str(
                "enqueue must be the last output, and an action set's only one: in OpenFlow 1.3 \
                 its queue would hold for later outputs, groups and tables too",
            ),
        }
    }
}

impl std::error::Error for Untranslatable {}

/// Facts about the packets that a list of actions will see.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// They have a VLAN tag for certain.
    tagged: bool,
    /// The fields that a transport port is, source and destination.
    ports: Option<(Field, Field)>,
}

impl Context {
    /// The packets that meet the match.
    #[must_use]
    pub fn of(matching: &Match) -> Self {
        let ports = [
            (Field::TcpSrc, Field::TcpDst),
            (Field::UdpSrc, Field::UdpDst),
            (Field::SctpSrc, Field::SctpDst),
        ];
        Self {
            tagged: matching.matches(Prereq::VlanTag),
            ports: ports.into_iter().find(|(src, _)| matching.matches(src.row().prereq)),
        }
    }

    fn after(&mut self, action: &Action) {
        let effect = action.kind().row().effect;
        if effect == HeaderEffect::WriteTag || effect == HeaderEffect::Push(Header::Vlan) {
            self.tagged = true;
        } else if effect == HeaderEffect::Pop(Header::Vlan) {
            self.tagged = false;
        }
    }

    /// Whether the field is a transport port of the packets.
    fn has_port(self, field: Field) -> bool {
        self.ports.is_some_and(|(src, dst)| field == src || field == dst)
    }
}

/// Instructions of a request, with their actions translated to `version`, for packets that meet
/// `matching`.
///
/// # Errors
/// As [`actions_in`], and for an enqueue with outputs of an action set or tables after it.
pub fn instructions_in(
    version: Version,
    matching: &Match,
    instructions: &[Instruction],
) -> Result<Vec<Instruction>, Untranslatable> {
    let runs_later = |one: &Instruction| match one.kind().row().actions {
        ActionsRun::InSet => one.actions().iter().any(is_queued),
        ActionsRun::AtOnce | ActionsRun::Never => one.kind() == InstructionKind::GotoTable,
    };
    if instructions.iter().any(|one| has_replaced_enqueue(version, one.actions()))
        && instructions.iter().any(runs_later)
    {
        return Err(Untranslatable::OutputAfterEnqueue);
    }
    let one = |one: &Instruction| one.map_actions(|list| actions_in(version, matching, list));
    instructions.iter().map(one).collect()
}

/// The actions of a bucket, which are a set, translated to `version`. No match is known of them.
///
/// # Errors
/// As [`actions_in`], and for an enqueue beside an output.
pub fn bucket_in(version: Version, actions: &[Action]) -> Result<Vec<Action>, Untranslatable> {
    if has_replaced_enqueue(version, actions) && actions.iter().any(is_queued) {
        return Err(Untranslatable::OutputAfterEnqueue);
    }
    actions_in(version, &Match::default(), actions)
}

/// A flow-mod of a version without set-field, with set-fields in place of its actions that write a
/// field: what these need is checked, and their places in an action set are known.
///
/// # Errors
/// `OFPBAC_BAD_ARGUMENT` for a value that the action cannot have, `OFPBAC_MATCH_INCONSISTENT` where
/// the field depends on a protocol that the match does not name.
pub fn with_set_fields(version: Version, flow_mod: &FlowMod) -> Result<Cow<'_, FlowMod>, Error> {
    let is_replaced = |one: &Action| one.kind().row().successor == Some(ActionKind::SetField);
    let has = |is: &dyn Fn(&Action) -> bool| {
        flow_mod.instructions.iter().flat_map(Instruction::actions).any(|one| one.has_inside(is))
    };
    let has_them = version.has_instructions() && !version.has_set_field();
    if !has_them || !has(&is_replaced) {
        return Ok(Cow::Borrowed(flow_mod));
    }
    if has(&|one| !one.is_accepted()) {
        return Err(Error::BadActionBadArgument);
    }
    let translated = instructions_in(Version::NEWEST, &flow_mod.matching, &flow_mod.instructions);
    let instructions = translated.map_err(|_| Error::BadActionMatchInconsistent)?;
    Ok(Cow::Owned(FlowMod { instructions, ..flow_mod.clone() }))
}

impl Message {
    /// Whether it deletes entries of all tables in a version that has no number for these.
    #[must_use]
    pub fn is_for_each_table(&self, version: Version) -> bool {
        let Self::FlowMod(flow) = self else { return false };
        let deletes = matches!(flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        let is_of_all = deletes && flow.table_id == TableId::ALL;
        is_of_all && version.has_pipeline() && !version.has_table_of_all()
    }

    /// The same for each of a switch's `n_tables` tables, if it is for all of them and the version
    /// has no number for these; else the message alone.
    #[must_use]
    pub fn in_each_table(self, version: Version, n_tables: u8) -> Vec<Self> {
        if !self.is_for_each_table(version) {
            return vec![self];
        }
        let in_table = |number| {
            let mut message = self.clone();
            if let Self::FlowMod(flow) = &mut message {
                flow.table_id = TableId(number);
            }
            message
        };
        (0..n_tables.max(1)).map(in_table).collect()
    }
}

/// Whether an enqueue is among the actions that becomes a set-queue.
fn has_replaced_enqueue(version: Version, actions: &[Action]) -> bool {
    ActionKind::Enqueue.number(version).is_none()
        && actions.iter().any(|action| action.kind() == ActionKind::Enqueue)
}

/// Whether a queue that was chosen before holds for what the action sends.
fn is_queued(action: &Action) -> bool {
    if let Action::Output { port, .. } = action {
        *port != PortNo::CONTROLLER
    } else {
        let is_sent =
            matches!(action.kind(), ActionKind::Group | ActionKind::Bundle | ActionKind::OutputReg);
        is_sent || action.resubmits() || action.inner().iter().any(is_queued)
    }
}

/// Whether an action may change the packet, or end the list, before it is sent.
fn leads_elsewhere(action: &Action) -> bool {
    action.resubmits() || action.kind() == ActionKind::Clone
}

/// Actions of a request, translated to `version`, for packets that meet `matching`.
///
/// # Errors
/// As [`translate`].
pub fn actions_in(
    version: Version,
    matching: &Match,
    actions: &[Action],
) -> Result<Vec<Action>, Untranslatable> {
    let context = Context::of(matching);
    Ok(translate_by(version, actions, context, (Queues::Kept, None))?.into_owned())
}

/// Whether the queue of an enqueue holds for what comes after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queues {
    Kept,
    /// By a pop-queue.
    TakenBack,
}

/// The actions that do the same in `version`.
///
/// # Errors
/// When the version has no encoding for one.
pub fn translate(
    version: Version,
    actions: &[Action],
    context: Context,
) -> Result<Cow<'_, [Action]>, Untranslatable> {
    translate_by(version, actions, context, (Queues::TakenBack, None))
}

fn translate_by(
    version: Version,
    actions: &[Action],
    mut context: Context,
    (queues, mut queue): (Queues, Option<QueueId>),
) -> Result<Cow<'_, [Action]>, Untranslatable> {
    if queue.is_none() && nested(actions).all(|action| action.kind().is_in(version)) {
        return Ok(Cow::Borrowed(actions));
    }
    let mut out = Vec::with_capacity(actions.len() + 2);
    let ordered = match queues {
        Queues::Kept => enqueues_last(version, actions)?,
        Queues::TakenBack => actions.iter().collect(),
    };
    let mut following = ordered.iter();
    while let Some(action) = following.next() {
        if let Action::Clone(list) = action {
            let list = translate_by(version, list, context, (queues, queue))?;
            out.push(Action::Clone(list.into_owned()));
        } else if version.has_set_field() {
            to_successor(action, context, queues, &mut out)?;
        } else if version.has_push() {
            to_v1_1(action, context, queues, version, &mut out)?;
        } else {
            let next = following.as_slice().first().copied();
            to_v1_0(action, next, version, &mut queue, &mut out)?;
        }
        context.after(action);
    }
    Ok(Cow::Owned(out))
}

/// The actions, with outputs and groups before the enqueues where these become a set-queue.
fn enqueues_last(version: Version, actions: &[Action]) -> Result<Vec<&Action>, Untranslatable> {
    let is_replaced = ActionKind::Enqueue.number(version).is_none();
    let mut ordered: Vec<&Action> = Vec::with_capacity(actions.len());
    let (mut first, mut is_changed) = (None, false);
    for action in actions {
        if is_replaced && action.kind() == ActionKind::Enqueue {
            first = first.or(Some(ordered.len()));
        } else if is_queued(action) {
            if let Some(place) = &mut first {
                if is_changed || leads_elsewhere(action) {
                    return Err(Untranslatable::OutputAfterEnqueue);
                }
                ordered.insert(*place, action);
                *place += 1;
                continue;
            }
        } else if action.kind() != ActionKind::Output {
            is_changed = first.is_some();
        }
        ordered.push(action);
    }
    Ok(ordered)
}

/// Replaces an action of 1.0 by its successor; an action without one stays.
fn to_successor(
    action: &Action,
    context: Context,
    queues: Queues,
    out: &mut Vec<Action>,
) -> Result<(), Untranslatable> {
    let row = action.kind().row();
    if row.effect == HeaderEffect::WriteTag && !context.tagged {
        out.push(Action::PushVlan(ETH_TYPE_VLAN));
    }
    let translated = if row.successor == Some(ActionKind::SetField) {
        let set = action.as_set_field(|field| context.has_port(field));
        set.ok_or(Untranslatable::NoProtocol(row.kind))?
    } else if let Action::Enqueue { port, queue } = action {
        out.push(Action::SetQueue(*queue));
        if queues == Queues::TakenBack {
            out.push(Action::output(*port));
            Action::PopQueue
        } else {
            Action::output(*port)
        }
    } else if *action == Action::StripVlan {
        Action::PopVlan
    } else {
        action.clone()
    };
    out.push(translated);
    Ok(())
}

/// Replaces an action by 1.1's, by way of its successor.
fn to_v1_1(
    action: &Action,
    context: Context,
    queues: Queues,
    version: Version,
    out: &mut Vec<Action>,
) -> Result<(), Untranslatable> {
    if action.kind().is_in(version) {
        out.push(action.clone());
        return Ok(());
    }
    let mut successors = Vec::with_capacity(3);
    to_successor(action, context, queues, &mut successors)?;
    for action in successors {
        if let Action::SetField { field, value } = action {
            set_before(version, field, value, out)?;
        } else if action.kind().is_in(version) {
            out.push(action);
        } else {
            return Err(Untranslatable::Action(version, action.kind()));
        }
    }
    Ok(())
}

/// Sets a field by the version's action for it, or by Nicira's load where it has none.
fn set_before(
    version: Version,
    field: Field,
    value: u128,
    out: &mut Vec<Action>,
) -> Result<(), Untranslatable> {
    if ActionKind::setting(version, field).is_none() {
        out.extend(Action::loads(field, value));
        return Ok(());
    }
    let before = Action::before_set_field(version, field, value);
    out.push(before.ok_or(Untranslatable::SetField(version, field))?);
    Ok(())
}

/// Replaces an action by 1.0's, if there is one.
fn to_v1_0(
    action: &Action,
    next: Option<&Action>,
    version: Version,
    queue: &mut Option<QueueId>,
    out: &mut Vec<Action>,
) -> Result<(), Untranslatable> {
    let kind = action.kind();
    let translated = if let Action::SetQueue(id) = action {
        *queue = Some(*id);
        return Ok(());
    } else if *action == Action::PopQueue && queue.take().is_some()
        || *action == Action::PushVlan(ETH_TYPE_VLAN) && next.is_some_and(sets_vlan)
    {
        return Ok(());
    } else if let (Action::Output { port, .. }, Some(queue)) = (action, *queue)
        && may_enqueue(*port)
    {
        Action::Enqueue { port: *port, queue }
    } else if queue.is_some() && is_queued(action) && kind != ActionKind::Output {
        return Err(Untranslatable::Action(version, ActionKind::SetQueue));
    } else if *action == Action::PopVlan {
        Action::StripVlan
    } else if let Action::SetField { field, value } = action {
        return set_before(version, *field, *value, out);
    } else if kind.is_in(version) {
        action.clone()
    } else if let Some(Action::SetField { field, value }) = action.as_set_field(|_| false) {
        // One of 1.1's.
        return set_before(version, field, value, out);
    } else {
        return Err(Untranslatable::Action(version, kind));
    };
    out.push(translated);
    Ok(())
}

/// Enqueue takes a port that exists, or the ingress port (clause 5.3.3 of 1.0).
fn may_enqueue(port: PortNo) -> bool {
    port <= PortNo::MAX || port == PortNo::IN_PORT
}

fn sets_vlan(action: &Action) -> bool {
    matches!(
        action,
        Action::SetField { field: Field::VlanVid | Field::VlanPcp, .. }
            | Action::SetVlanVid(_)
            | Action::SetVlanPcp(_)
            | Action::SetTagVid(_)
            | Action::SetTagPcp(_)
    )
}

#[cfg(test)]
mod tests {
    use super::{
        Context, Untranslatable, actions_in, bucket_in, instructions_in, translate, with_set_fields,
    };
    use crate::action::Action;
    use crate::error::Error;
    use crate::field::{Field, VID_PRESENT};
    use crate::flow::{FlowMod, FlowModCommand};
    use crate::instruction::Instruction;
    use crate::text::{format_actions, format_instructions, parse_actions, parse_flow_mod};
    use crate::{MacAddr, Match, PortNo, QueueId, Version};

    fn to(version: Version, actions: &[Action], matching: &Match) -> Vec<Action> {
        translate(version, actions, Context::of(matching)).unwrap().into_owned()
    }

    fn text_in(version: Version, flow: &str) -> Result<String, String> {
        let flow = parse_flow_mod(flow, FlowModCommand::Add).unwrap();
        let translated = instructions_in(version, &flow.matching, &flow.instructions);
        translated.map(|list| format_instructions(&list)).map_err(|why| why.to_string())
    }

    /// As Open vSwitch 3.1's `ovs-ofctl -O OpenFlow13` translates the same flows.
    #[test]
    fn text_of_1_0_is_translated_to_1_3() {
        for (flow, expected) in [
            ("tcp,actions=mod_tp_dst:8080,output:2", "set_field:8080->tcp_dst,output:2"),
            ("udp,actions=mod_tp_src:53", "set_field:53->udp_src"),
            ("sctp,actions=mod_tp_src:53", "set_field:53->sctp_src"),
            ("ip,actions=mod_nw_tos:64", "set_field:16->ip_dscp"),
            ("ip,actions=mod_nw_dst:10.0.0.1", "set_field:10.0.0.1->ip_dst"),
            ("actions=mod_dl_src:02:00:00:00:00:01", "set_field:02:00:00:00:00:01->eth_src"),
            ("actions=mod_vlan_vid:5", "push_vlan:0x8100,set_field:4101->vlan_vid"),
            ("dl_vlan=1,actions=mod_vlan_vid:5", "set_field:4101->vlan_vid"),
            ("dl_vlan=1,actions=strip_vlan,output:1", "pop_vlan,output:1"),
            (
                "dl_vlan=1,actions=strip_vlan,mod_vlan_pcp:3",
                "pop_vlan,push_vlan:0x8100,set_field:3->vlan_pcp",
            ),
        ] {
            assert_eq!(text_in(Version::V1_3, flow).as_deref(), Ok(expected), "{flow}");
        }
        let why = text_in(Version::V1_3, "ip,actions=mod_tp_dst:1").unwrap_err();
        assert!(why.contains("tcp, udp"), "{why}");
    }

    /// As Open vSwitch 3.1 dumps the same flows over 1.1, but for the label of an MPLS entry, which
    /// it loads, and for the queue that it takes back behind an enqueue.
    #[test]
    fn text_is_translated_to_1_1() {
        let load = "load:0x5->NXM_NX_IPV6_SRC[0..63],load:0x0->NXM_NX_IPV6_SRC[64..127]";
        for (flow, expected) in [
            ("actions=mod_vlan_vid:7,output:2", "push_vlan:0x8100,set_vlan_vid:7,output:2"),
            (
                "dl_vlan=5,actions=mod_vlan_vid:7,set_vlan_vid:8,mod_vlan_pcp:2,set_vlan_pcp:3",
                "set_vlan_vid:7,set_vlan_vid:8,set_vlan_pcp:2,set_vlan_pcp:3",
            ),
            (
                "dl_vlan=5,actions=strip_vlan,mod_vlan_vid:9",
                "pop_vlan,push_vlan:0x8100,set_vlan_vid:9",
            ),
            ("tcp6,tp_dst=80,actions=set_field:90->tcp_dst", "mod_tp_dst:90"),
            ("ipv6,actions=set_field:::5->ipv6_src", load),
            ("ipv6,actions=set_field:1->ip_ecn,set_field:4->ip_dscp", "mod_nw_ecn:1,mod_nw_tos:16"),
            ("actions=set_field:5->metadata", "load:0x5->OXM_OF_METADATA[]"),
            ("mpls,actions=set_field:5->mpls_label", "set_mpls_label(5)"),
            ("actions=enqueue:2:7", "set_queue:7,output:2"),
            ("mpls,actions=copy_ttl_out,set_mpls_tc(3)", "copy_ttl_out,set_mpls_tc(3)"),
            (
                "actions=write_actions(mod_vlan_vid:5)",
                "write_actions(push_vlan:0x8100,set_vlan_vid:5)",
            ),
        ] {
            assert_eq!(text_in(Version::V1_1, flow).as_deref(), Ok(expected), "{flow}");
        }
        let why = text_in(Version::V1_1, "actions=push_pbb:0x88e7").unwrap_err();
        assert_eq!(why, "OpenFlow 1.1 has no push_pbb");
    }

    #[test]
    fn actions_of_1_1_are_set_fields_where_they_are_checked() {
        let set = |text: &str, version| {
            let flow = parse_flow_mod(text, FlowModCommand::Add).unwrap();
            let translated = with_set_fields(version, &flow)?;
            Ok(format_instructions(&translated.instructions))
        };
        let v1_1 = |text| set(text, Version::V1_1);
        let tagged = "dl_vlan=1,actions=set_vlan_vid:5,set_vlan_pcp:3";
        let fields = "set_field:4101->vlan_vid,set_field:3->vlan_pcp";
        assert_eq!(v1_1(tagged).as_deref(), Ok(fields));
        // It pushes no tag, and is refused where the set-field is.
        assert_eq!(v1_1("actions=set_vlan_vid:5").as_deref(), Ok("set_field:4101->vlan_vid"));
        assert_eq!(v1_1("udp,actions=mod_tp_dst:5").as_deref(), Ok("set_field:5->udp_dst"));
        let labels = "mpls,actions=set_mpls_label(7),set_mpls_tc(1)";
        let fields = "set_field:7->mpls_label,set_field:1->mpls_tc";
        assert_eq!(v1_1(labels).as_deref(), Ok(fields));
        assert_eq!(v1_1("ip,actions=mod_tp_dst:5"), Err(Error::BadActionMatchInconsistent));
        assert_eq!(set(tagged, Version::V1_0).as_deref(), Ok("set_vlan_vid:5,set_vlan_pcp:3"));
        let flow = parse_flow_mod("ip,actions=drop", FlowModCommand::Add).unwrap();
        let tos = vec![Instruction::ApplyActions(vec![Action::SetNwTos(3)])];
        let flow = FlowMod { instructions: tos, ..flow };
        assert_eq!(with_set_fields(Version::V1_1, &flow), Err(Error::BadActionBadArgument));
        // Inside a clone, too.
        let why = Err(Error::BadActionMatchInconsistent);
        assert_eq!(v1_1("ip,actions=clone(mod_tp_dst:80,output:2)"), why);
        let tos = Action::Clone(vec![Action::SetNwTos(3)]);
        let tos = vec![Instruction::ApplyActions(vec![tos])];
        let flow = FlowMod { instructions: tos, ..flow };
        assert_eq!(with_set_fields(Version::V1_1, &flow), Err(Error::BadActionBadArgument));
    }

    #[test]
    fn the_queue_of_an_enqueue_holds_for_no_other_output_in_1_3() {
        for (actions, expected) in [
            ("output:1,enqueue:2:7", "output:1,set_queue:7,output:2"),
            ("enqueue:1:2,output:3", "output:3,set_queue:2,output:1"),
            ("enqueue:1:2,group:5", "group:5,set_queue:2,output:1"),
            (
                "enqueue:1:2,output:3,enqueue:4:5,output:6",
                "output:3,output:6,set_queue:2,output:1,set_queue:5,output:4",
            ),
            (
                "enqueue:1:2,mod_dl_src:02:00:00:00:00:01,CONTROLLER:65535",
                "set_queue:2,output:1,set_field:02:00:00:00:00:01->eth_src,CONTROLLER:65535",
            ),
            ("enqueue:1:2,output:reg0[]", "output:NXM_NX_REG0[],set_queue:2,output:1"),
            (
                "enqueue:1:2,clone(load:1->reg0[])",
                "set_queue:2,output:1,clone(load:0x1->NXM_NX_REG0[])",
            ),
            ("enqueue:1:2,clear_actions", "set_queue:2,output:1,clear_actions"),
            ("output:3,write_actions(enqueue:1:2)", "output:3,write_actions(set_queue:2,output:1)"),
        ] {
            let translated = text_in(Version::V1_3, &format!("actions={actions}"));
            assert_eq!(translated.as_deref(), Ok(expected), "{actions}");
        }
        for actions in [
            "enqueue:2:7,mod_dl_src:02:00:00:00:00:01,enqueue:1:2,output:1",
            "enqueue:2:7,mod_dl_src:02:00:00:00:00:01,group:1",
            "enqueue:1:2,goto_table:1",
            "enqueue:1:2,clone(output:3)",
            "enqueue:1:2,resubmit(,1)",
            "enqueue:2:7,mod_dl_src:02:00:00:00:00:01,output:reg0[]",
            "write_actions(enqueue:1:2,resubmit(,1))",
            "enqueue:1:2,write_actions(output:3)",
            "write_actions(enqueue:1:2,output:3)",
            "write_actions(enqueue:1:2,group:3)",
            "write_actions(enqueue:1:2),goto_table:1",
        ] {
            let why = text_in(Version::V1_3, &format!("actions={actions}")).unwrap_err();
            assert!(why.contains("enqueue must be the last output"), "{actions}: {why}");
        }
        let bucket = parse_actions("enqueue:1:2,output:3").unwrap();
        assert_eq!(bucket_in(Version::V1_3, &bucket), Err(Untranslatable::OutputAfterEnqueue));
        assert_eq!(bucket_in(Version::V1_3, &bucket[..1]).unwrap().len(), 2);
    }

    #[test]
    fn text_of_1_3_is_translated_to_1_0() {
        for (flow, expected) in [
            ("tcp,actions=set_field:80->tcp_dst", "mod_tp_dst:80"),
            ("dl_vlan=1,actions=set_field:4101->vlan_vid", "mod_vlan_vid:5"),
            ("dl_vlan=1,actions=pop_vlan", "strip_vlan"),
            ("sctp,actions=set_field:80->sctp_dst", "mod_tp_dst:80"),
            ("ip,actions=set_field:16->ip_dscp", "mod_nw_tos:64"),
            ("ip,actions=dec_ttl,output:1", "dec_ttl,output:1"),
            ("ip,actions=set_field:2->nw_ecn", "load:0x2->NXM_NX_IP_ECN[]"),
            ("ip,actions=mod_nw_ecn:2", "load:0x2->NXM_NX_IP_ECN[]"),
            ("actions=set_vlan_vid:5,output:2", "mod_vlan_vid:5,output:2"),
            ("actions=push_vlan:0x8100,set_vlan_pcp:5,output:2", "mod_vlan_pcp:5,output:2"),
        ] {
            assert_eq!(text_in(Version::V1_0, flow).as_deref(), Ok(expected), "{flow}");
        }
        let unsayable = Action::set_field(Field::VlanVid, 5);
        let why = translate(Version::V1_0, &[unsayable], Context::default()).unwrap_err();
        assert_eq!(why.to_string(), "OpenFlow 1.0 has no action that sets vlan_vid so");
    }

    #[test]
    fn a_list_without_a_match_is_translated_too() {
        let list = parse_actions("mod_dl_dst:02:00:00:00:00:09,output:1").unwrap();
        let translated = actions_in(Version::V1_3, &Match::default(), &list).unwrap();
        assert_eq!(format_actions(&translated), "set_field:02:00:00:00:00:09->eth_dst,output:1");
    }

    #[test]
    fn setting_a_vlan_pushes_a_tag_unless_there_is_one() {
        let vlan = [Action::SetVlanVid(5), Action::SetVlanPcp(3)];
        let sets =
            [Action::set_field(Field::VlanVid, 0x1005), Action::set_field(Field::VlanPcp, 3)];
        let pushed = [&[Action::PushVlan(0x8100)], &sets[..]].concat();
        assert_eq!(to(Version::V1_3, &vlan, &Match::any()), pushed);
        assert_eq!(to(Version::V1_0, &pushed, &Match::any()), vlan);
        let tagged = Match::any().with_masked(Field::VlanVid, VID_PRESENT, VID_PRESENT);
        assert_eq!(to(Version::V1_3, &vlan, &tagged), sets);
        let strip = [Action::StripVlan, Action::SetVlanVid(1)];
        assert_eq!(to(Version::V1_3, &strip, &tagged)[1], Action::PushVlan(0x8100));
    }

    #[test]
    fn queues_and_ports_of_the_protocol() {
        let enqueue = [Action::Enqueue { port: PortNo(2), queue: QueueId(7) }];
        let queued = [Action::SetQueue(QueueId(7)), Action::output(PortNo(2)), Action::PopQueue];
        assert_eq!(to(Version::V1_3, &enqueue, &Match::any()), queued);
        assert_eq!(to(Version::V1_0, &queued, &Match::any()), enqueue);
        assert_eq!(to(Version::V1_0, &queued[..2], &Match::any()), enqueue);
        let both = |list: &[Action]| vec![Action::Clone(list.to_vec()), Action::PopQueue];
        let cloned = to(Version::V1_3, &both(&enqueue), &Match::any());
        assert_eq!(cloned, both(&queued));
        assert_eq!(to(Version::V1_0, &cloned, &Match::any()), both(&enqueue));
        let udp = Match::any().with(Field::EthType, 0x800).with(Field::IpProto, 17);
        for (actions, expected) in [
            ("set_queue:7,clone(output:2),output:3", "clone(enqueue:2:7),enqueue:3:7"),
            ("set_queue:7,clone(pop_queue,output:2),output:3", "clone(output:2),enqueue:3:7"),
            ("clone(set_queue:7,output:2),output:3", "clone(enqueue:2:7),output:3"),
            ("set_queue:7,pop_queue,resubmit(,1)", "resubmit(,1)"),
        ] {
            let list = to(Version::V1_0, &parse_actions(actions).unwrap(), &Match::any());
            assert_eq!(format_actions(&list), expected, "{actions}");
        }
        for sent in [
            "bundle(eth_src,0,hrw,ofport,members:1,2)",
            "output:reg0[]",
            "resubmit(,1)",
            "resubmit:4",
            "clone(resubmit(,1))",
        ] {
            let list = parse_actions(&format!("set_queue:7,{sent}")).unwrap();
            let why = translate(Version::V1_0, &list, Context::default()).unwrap_err();
            assert_eq!(why.to_string(), "OpenFlow 1.0 has no set_queue", "{sent}");
        }
        let port = [Action::SetTpSrc(53)];
        assert_eq!(to(Version::V1_3, &port, &udp), [Action::set_field(Field::UdpSrc, 53)]);
        let unknown = translate(Version::V1_3, &port, Context::default());
        assert_eq!(unknown, Err(Untranslatable::NoProtocol(port[0].kind())));
    }

    #[test]
    fn every_action_of_1_0_comes_back_from_1_3() {
        let tcp = Match::any().with(Field::EthType, 0x800).with(Field::IpProto, 6).with_masked(
            Field::VlanVid,
            VID_PRESENT,
            VID_PRESENT,
        );
        let actions = [
            Action::SetDlSrc(MacAddr([1, 2, 3, 4, 5, 6])),
            Action::SetDlDst(MacAddr([6, 5, 4, 3, 2, 1])),
            Action::SetNwSrc([10, 0, 0, 1].into()),
            Action::SetNwDst([10, 0, 0, 2].into()),
            Action::SetNwTos(0xb8),
            Action::SetTpSrc(1),
            Action::SetTpDst(2),
            Action::SetVlanVid(4095),
            Action::SetVlanPcp(7),
            Action::StripVlan,
            Action::output(PortNo::CONTROLLER),
        ];
        assert_eq!(to(Version::V1_0, &to(Version::V1_3, &actions, &tcp), &tcp), actions);
    }

    #[test]
    fn an_action_that_1_0_lacks_is_named() {
        let unknown = [Action::DecMplsTtl, Action::PushVlan(0x88a8), Action::PushVlan(0x8100)];
        for action in unknown {
            let (kind, list) = (action.kind(), [action]);
            let error = translate(Version::V1_0, &list, Context::default()).unwrap_err();
            assert_eq!(error, Untranslatable::Action(Version::V1_0, kind));
            assert_eq!(error.action(), kind.row().text);
        }
        // A field without an action of its own is loaded, 64 bits at a time.
        let set = [Action::set_field(Field::Ipv6Src, 1)];
        assert_eq!(to(Version::V1_0, &set, &Match::any()).len(), 2);
    }
}
