//! Actions in the words of a version: people write `mod_tp_dst:80` and mean it in 1.3 too.
//!
//! What one version says in one action takes another one or two in the other, some of which depend
//! on the match: which transport it is, and whether there is a tag already. The translations are
//! those of `ovs-ofctl`. What cannot be said is an error, never something near it.

use crate::action::{Action, ActionKind, HeaderEffect};
use crate::field::{Field, Header, Prereq};
use crate::instruction::Instruction;
use crate::matching::Match;
use crate::version::Version;

/// The EtherType of a customer's tag, which 1.0's actions push.
const CUSTOMER_TAG: u16 = 0x8100;

/// Instructions with their actions in the words of `version`, for packets that meet `matching`.
///
/// # Errors
/// What cannot be said, and what would have to be added to the match.
pub fn instructions_in(
    version: Version,
    matching: &Match,
    instructions: &[Instruction],
) -> Result<Vec<Instruction>, String> {
    let said = |instruction: &Instruction| match instruction {
        Instruction::ApplyActions(list) => {
            actions_in(version, matching, list).map(Instruction::ApplyActions)
        }
        Instruction::WriteActions(list) => {
            actions_in(version, matching, list).map(Instruction::WriteActions)
        }
        Instruction::GotoTable(_)
        | Instruction::WriteMetadata { .. }
        | Instruction::ClearActions
        | Instruction::Meter(_)
        | Instruction::Experimenter { .. } => Ok(instruction.clone()),
    };
    instructions.iter().map(said).collect()
}

/// Actions in the words of `version`, for packets that meet `matching`.
///
/// # Errors
/// As [`instructions_in`].
pub fn actions_in(
    version: Version,
    matching: &Match,
    actions: &[Action],
) -> Result<Vec<Action>, String> {
    let mut context = Context {
        matching,
        is_tagged: matching.matches(Prereq::VlanTag),
        queue_set: false,
        out: Vec::with_capacity(actions.len()),
    };
    for action in actions {
        if version.has_set_field() {
            context.say_in_1_3(action)?;
        } else {
            context.say_in_1_0(action)?;
        }
    }
    Ok(context.out)
}

struct Context<'a> {
    matching: &'a Match,
    /// Whether packets have a tag at this place of the list.
    is_tagged: bool,
    /// A queue was chosen for one output, which 1.3 cannot take back.
    queue_set: bool,
    out: Vec<Action>,
}

impl Context<'_> {
    /// In 1.3 by the successor in an action's row; one that no version has replaced stays.
    fn say_in_1_3(&mut self, action: &Action) -> Result<(), String> {
        let row = action.kind().row();
        if row.effect == HeaderEffect::WriteTag && !self.is_tagged {
            self.out.push(Action::PushVlan(CUSTOMER_TAG));
        }
        if row.effect == HeaderEffect::WriteTag || row.effect == HeaderEffect::Push(Header::Vlan) {
            self.is_tagged = true;
        } else if row.effect == HeaderEffect::Pop(Header::Vlan) {
            self.is_tagged = false;
        }
        let said = if row.successor == Some(ActionKind::SetField) {
            let have = |field: Field| self.matching.matches(field.row().prereq);
            let word = row.text;
            action.as_set_field(have).ok_or_else(|| {
                format!("{word} says nothing without its protocol: match tcp, udp or sctp")
            })?
        } else if let Action::Enqueue { port, queue } = action {
            self.out.push(Action::SetQueue(*queue));
            self.queue_set = true;
            Action::output(*port)
        } else if self.queue_set && matches!(action, Action::Output { .. }) {
            let why = "in OpenFlow 1.3 its queue would hold for the outputs behind it too";
            return Err(format!("enqueue must stand last: {why}"));
        } else if *action == Action::StripVlan {
            Action::PopVlan
        } else {
            action.clone()
        };
        self.out.push(said);
        Ok(())
    }

    fn say_in_1_0(&mut self, action: &Action) -> Result<(), String> {
        let said = if let Action::SetField { field, value } = action {
            let name = field.row().name;
            Action::before_set_field(*field, *value)
                .ok_or_else(|| format!("OpenFlow 1.0 has no action that sets {name}"))?
        } else if *action == Action::PopVlan {
            Action::StripVlan
        } else {
            action.clone()
        };
        self.out.push(said);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{actions_in, instructions_in};
    use crate::text::{format_actions, format_instructions, parse_actions, parse_flow_mod};
    use crate::{Match, Version, flow::FlowModCommand};

    fn said(version: Version, flow: &str) -> Result<String, String> {
        let flow = parse_flow_mod(flow, FlowModCommand::Add).unwrap();
        let said = instructions_in(version, &flow.matching, &flow.instructions)?;
        Ok(format_instructions(&said))
    }

    /// What Open vSwitch 3.1's `ovs-ofctl -O OpenFlow13` makes of the same flows.
    #[test]
    fn words_of_1_0_are_said_in_1_3() {
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
            ("actions=output:1,enqueue:2:7", "output:1,set_queue:7,output:2"),
        ] {
            assert_eq!(said(Version::V1_3, flow).as_deref(), Ok(expected), "{flow}");
        }
        assert!(said(Version::V1_3, "ip,actions=mod_tp_dst:1").unwrap_err().contains("tcp, udp"));
        assert!(said(Version::V1_3, "actions=enqueue:2:7,output:1").unwrap_err().contains("last"));
    }

    #[test]
    fn words_of_1_3_are_said_in_1_0() {
        for (flow, expected) in [
            ("tcp,actions=set_field:80->tcp_dst", "mod_tp_dst:80"),
            ("dl_vlan=1,actions=set_field:4101->vlan_vid", "mod_vlan_vid:5"),
            ("dl_vlan=1,actions=pop_vlan", "strip_vlan"),
            ("sctp,actions=set_field:80->sctp_dst", "mod_tp_dst:80"),
            ("ip,actions=set_field:16->ip_dscp", "mod_nw_tos:64"),
        ] {
            assert_eq!(said(Version::V1_0, flow).as_deref(), Ok(expected), "{flow}");
        }
        let why = said(Version::V1_0, "ipv6,actions=set_field:fd00::1->ipv6_dst").unwrap_err();
        assert_eq!(why, "OpenFlow 1.0 has no action that sets ipv6_dst");
    }

    #[test]
    fn a_list_without_a_match_is_said_too() {
        let list = parse_actions("mod_dl_dst:02:00:00:00:00:09,output:1").unwrap();
        let said = actions_in(Version::V1_3, &Match::default(), &list).unwrap();
        assert_eq!(format_actions(&said), "set_field:02:00:00:00:00:09->eth_dst,output:1");
    }
}
