//! Actions made under one version and said in the other: a flow entry added over 1.0 and dumped
//! over 1.3, or the other way round.
//!
//! It follows Open vSwitch, so that a dump looks the same on both:
//! - 1.0's `set_vlan_vid` and `set_vlan_pcp` push a tag where there is none. In 1.3 that is a
//!   push-vlan before the set-field, unless the match or an earlier action makes sure of a tag.
//! - 1.0 has no push-vlan; one that a set of the id or priority follows is said by that set.
//! - 1.0's `set_tp_src` is a set-field of the protocol that the match asks for.
//! - `enqueue` is set-queue and output. In 1.0, outputs behind a set-queue are enqueues, but for
//!   outputs to the reserved ports that enqueue may not name.
//!
//! - 1.0 has no dec-ttl. Nicira's action says it, which `ovs-ofctl` sends and Open vSwitch runs.
//!
//! What has no counterpart is an error: it must never be left out of a list.

use std::borrow::Cow;

use openflow::action::HeaderEffect;
use openflow::field::{Header, Prereq};
use openflow::{Action, ActionKind, Field, Match, PortNo, QueueId, Version};

/// EtherType of a customer VLAN tag, the one that 1.0's actions push.
const ETH_TYPE_VLAN: u16 = 0x8100;

/// The vendor whose actions Open vSwitch adds to 1.0.
const NICIRA: u32 = 0x0000_2320;

/// Subtype and padding of Nicira's dec-ttl.
const NICIRA_DEC_TTL: [u8; 8] = [0, 18, 0, 0, 0, 0, 0, 0];

/// What a vendor's action of 1.0 says, if it is one that Weir runs.
pub(crate) fn of_vendor(vendor: u32, data: &[u8]) -> Option<Action> {
    (vendor == NICIRA && data == NICIRA_DEC_TTL).then_some(Action::DecNwTtl)
}

/// What is known of the packets that a list of actions will see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    /// They have a VLAN tag for certain.
    tagged: bool,
    /// The fields that a transport port is, source and destination.
    ports: Option<(Field, Field)>,
}

impl Context {
    /// The packets that meet the match.
    pub(crate) fn of(matching: &Match) -> Self {
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

/// The actions that say the same in `version`; `Err` names the action that it cannot say.
pub(crate) fn translate(
    version: Version,
    actions: &[Action],
    mut context: Context,
) -> Result<Cow<'_, [Action]>, &'static str> {
    if actions.iter().all(|action| action.kind().number(version).is_some()) {
        return Ok(Cow::Borrowed(actions));
    }
    let mut out = Vec::with_capacity(actions.len() + 2);
    let mut queue = None;
    let mut following = actions.iter();
    while let Some(action) = following.next() {
        let sayable = if version.has_set_field() {
            to_v1_3(action, context, &mut out)
        } else {
            to_v1_0(action, following.as_slice(), &mut queue, &mut out)
        };
        sayable.ok_or(action.kind().row().text)?;
        context.after(action);
    }
    Ok(Cow::Owned(out))
}

/// Says an action of 1.0 by its successor; an action without one is said as it is.
fn to_v1_3(action: &Action, context: Context, out: &mut Vec<Action>) -> Option<()> {
    let row = action.kind().row();
    if row.effect == HeaderEffect::WriteTag && !context.tagged {
        out.push(Action::PushVlan(ETH_TYPE_VLAN));
    }
    let said = if row.successor == Some(ActionKind::SetField) {
        action.as_set_field(|field| context.has_port(field))?
    } else if let Action::Enqueue { port, queue } = action {
        out.push(Action::SetQueue(*queue));
        Action::output(*port)
    } else if *action == Action::StripVlan {
        Action::PopVlan
    } else {
        action.clone()
    };
    out.push(said);
    Some(())
}

/// Says an action in 1.0's words, if it has some.
fn to_v1_0(
    action: &Action,
    following: &[Action],
    queue: &mut Option<QueueId>,
    out: &mut Vec<Action>,
) -> Option<()> {
    let said = if let Action::SetQueue(id) = action {
        *queue = Some(*id);
        return Some(());
    } else if *action == Action::PushVlan(ETH_TYPE_VLAN) && sets_vlan(following.first()?) {
        return Some(());
    } else if let (Action::Output { port, .. }, Some(queue)) = (action, *queue)
        && may_enqueue(*port)
    {
        Action::Enqueue { port: *port, queue }
    } else if *action == Action::PopVlan {
        Action::StripVlan
    } else if let Action::SetField { field, value } = action {
        Action::before_set_field(*field, *value)?
    } else if *action == Action::DecNwTtl {
        Action::Experimenter { experimenter: NICIRA, data: NICIRA_DEC_TTL.to_vec() }
    } else {
        action.kind().number(Version::OLDEST).map(|_| action.clone())?
    };
    out.push(said);
    Some(())
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
    )
}

#[cfg(test)]
mod tests {
    use super::{Context, translate};
    use openflow::field::VID_PRESENT;
    use openflow::{Action, Field, MacAddr, Match, PortNo, QueueId, Version};

    fn to(version: Version, actions: &[Action], matching: &Match) -> Vec<Action> {
        translate(version, actions, Context::of(matching)).unwrap().into_owned()
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
        let queued = [Action::SetQueue(QueueId(7)), Action::output(PortNo(2))];
        assert_eq!(to(Version::V1_3, &enqueue, &Match::any()), queued);
        assert_eq!(to(Version::V1_0, &queued, &Match::any()), enqueue);
        let udp = Match::any().with(Field::EthType, 0x800).with(Field::IpProto, 17);
        let port = [Action::SetTpSrc(53)];
        assert_eq!(to(Version::V1_3, &port, &udp), [Action::set_field(Field::UdpSrc, 53)]);
        assert!(translate(Version::V1_3, &port, Context::default()).is_err());
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
    fn what_1_0_cannot_say_is_named() {
        let unsayable = [Action::DecMplsTtl, Action::PushVlan(0x88a8), Action::PushVlan(0x8100)];
        for action in unsayable {
            let name = action.kind().row().text;
            let list = [action];
            assert_eq!(translate(Version::V1_0, &list, Context::default()), Err(name));
        }
        let metadata = [Action::set_field(Field::Ipv6Src, 1)];
        assert!(translate(Version::V1_0, &metadata, Context::default()).is_err());
    }
}
