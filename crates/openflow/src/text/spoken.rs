//! Actions in the words of a version: people write `mod_tp_dst:80` and mean it in 1.3 too.
//!
//! What one version says in one action takes another one or two in the other, some of which depend
//! on the match: which transport it is, and whether there is a tag already. The translations are
//! those of `ovs-ofctl`. What cannot be said is an error, never something near it.

use crate::action::Action;
use crate::field::{Field, VID_PRESENT};
use crate::id::MacAddr;
use crate::instruction::Instruction;
use crate::matching::Match;
use crate::version::Version;
use std::net::Ipv4Addr;

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
    let vid = matching.get(Field::VlanVid);
    let mut context = Context {
        matching,
        is_tagged: vid.is_some_and(|held| held.value & held.mask & VID_PRESENT != 0),
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
    fn set(&mut self, field: Field, value: u128) {
        self.out.push(Action::SetField { field, value });
    }

    /// A tag to write into, as 1.0's actions have one.
    fn tag(&mut self) {
        if !self.is_tagged {
            self.out.push(Action::PushVlan(CUSTOMER_TAG));
            self.is_tagged = true;
        }
    }

    fn say_in_1_3(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::SetVlanVid(vid) => {
                self.tag();
                self.set(Field::VlanVid, u128::from(*vid) | VID_PRESENT);
            }
            Action::SetVlanPcp(pcp) => {
                self.tag();
                self.set(Field::VlanPcp, u128::from(*pcp));
            }
            Action::StripVlan => {
                self.is_tagged = false;
                self.out.push(Action::PopVlan);
            }
            Action::SetDlSrc(mac) => self.set(Field::EthSrc, mac.to_u64().into()),
            Action::SetDlDst(mac) => self.set(Field::EthDst, mac.to_u64().into()),
            Action::SetNwSrc(address) => self.set(Field::Ipv4Src, u32::from(*address).into()),
            Action::SetNwDst(address) => self.set(Field::Ipv4Dst, u32::from(*address).into()),
            Action::SetNwTos(tos) => self.set(Field::IpDscp, u128::from(tos >> 2)),
            Action::SetTpSrc(port) => {
                let fields = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
                self.set(self.transport("mod_tp_src", fields)?, (*port).into());
            }
            Action::SetTpDst(port) => {
                let fields = [Field::TcpDst, Field::UdpDst, Field::SctpDst];
                self.set(self.transport("mod_tp_dst", fields)?, (*port).into());
            }
            Action::Enqueue { port, queue } => {
                self.out.push(Action::SetQueue(*queue));
                self.out.push(Action::output(*port));
                self.queue_set = true;
            }
            Action::Output { .. } if self.queue_set => {
                let why = "in OpenFlow 1.3 its queue would hold for the outputs behind it too";
                return Err(format!("enqueue must stand last: {why}"));
            }
            Action::PushVlan(_) => {
                self.is_tagged = true;
                self.out.push(action.clone());
            }
            Action::PopVlan => {
                self.is_tagged = false;
                self.out.push(action.clone());
            }
            other => self.out.push(other.clone()),
        }
        Ok(())
    }

    fn transport(&self, word: &str, fields: [Field; 3]) -> Result<Field, String> {
        let [tcp, udp, sctp] = fields;
        match self.matching.exact(Field::IpProto) {
            Some(6) => Ok(tcp),
            Some(17) => Ok(udp),
            Some(132) => Ok(sctp),
            Some(_) | None => {
                Err(format!("{word} says nothing without its protocol: match tcp, udp or sctp"))
            }
        }
    }

    fn say_in_1_0(&mut self, action: &Action) -> Result<(), String> {
        let said = match action {
            Action::SetField { field, value } => of_field(*field, *value),
            Action::PopVlan => Some(Action::StripVlan),
            other => Some(other.clone()),
        };
        let Action::SetField { field, .. } = action else {
            self.out.extend(said);
            return Ok(());
        };
        let said = said
            .ok_or_else(|| format!("OpenFlow 1.0 has no action that sets {}", field.row().name))?;
        self.out.push(said);
        Ok(())
    }
}

/// An action of 1.0 that sets a value.
type Setter = fn(u128) -> Option<Action>;

/// The fields that 1.0 has actions for.
const SETTERS: &[(Field, Setter)] = &[
    (Field::VlanVid, |value| {
        let vid = u16::try_from(value & 0xfff).ok().filter(|_| value & VID_PRESENT != 0);
        vid.map(Action::SetVlanVid)
    }),
    (Field::VlanPcp, |value| u8::try_from(value).ok().map(Action::SetVlanPcp)),
    (Field::EthSrc, |value| u64::try_from(value).ok().map(MacAddr::from_u64).map(Action::SetDlSrc)),
    (Field::EthDst, |value| u64::try_from(value).ok().map(MacAddr::from_u64).map(Action::SetDlDst)),
    (Field::Ipv4Src, |value| u32::try_from(value).ok().map(Ipv4Addr::from).map(Action::SetNwSrc)),
    (Field::Ipv4Dst, |value| u32::try_from(value).ok().map(Ipv4Addr::from).map(Action::SetNwDst)),
    (Field::IpDscp, |value| u8::try_from(value << 2).ok().map(Action::SetNwTos)),
    (Field::TcpSrc, |value| u16::try_from(value).ok().map(Action::SetTpSrc)),
    (Field::UdpSrc, |value| u16::try_from(value).ok().map(Action::SetTpSrc)),
    (Field::TcpDst, |value| u16::try_from(value).ok().map(Action::SetTpDst)),
    (Field::UdpDst, |value| u16::try_from(value).ok().map(Action::SetTpDst)),
];

/// The action of 1.0 that sets a field.
fn of_field(field: Field, value: u128) -> Option<Action> {
    let (_, setter) = SETTERS.iter().find(|(known, _)| *known == field)?;
    setter(value)
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
