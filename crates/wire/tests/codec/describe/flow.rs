//! Matches, actions and instructions in os-ken's words, and the messages made of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::field::Format;
use openflow::flow::{FlowMod, FlowModFlags, FlowRemoved, FlowStats};
use openflow::learn::{LearnSource, LearnSpec, LearnTarget};
use openflow::{Action, Field, Instruction, MacAddr, Match, Version};
use serde_json::{Value, json};

use super::element::{list, port_no};
use super::{base64, buffer, class};

fn value(field: Field, number: u128) -> Value {
    match field.row().format {
        Format::Mac => MacAddr::from_u64(u64::try_from(number).unwrap()).to_string().into(),
        Format::Ipv4 => Ipv4Addr::from(u32::try_from(number).unwrap()).to_string().into(),
        Format::Ipv6 => Ipv6Addr::from(number).to_string().into(),
        Format::Dec | Format::Hex | Format::Port | Format::TcpFlags | Format::Fragment => {
            u64::try_from(number).unwrap().into()
        }
    }
}

pub(crate) fn matching(version: Version, matching: &Match) -> Value {
    match version.has_oxm() {
        false => class("OFPMatch", twelve_tuple(matching)),
        true => {
            let fields = list(matching.fields(), |held| {
                let mask = if held.is_exact() { Value::Null } else { value(held.field, held.mask) };
                let field = held.field.row().name;
                class(
                    "OXMTlv",
                    json!({ "field": field, "mask": mask, "value": value(held.field, held.value) }),
                )
            });
            class("OFPMatch", json!({ "type": 1, "oxm_fields": fields }))
        }
    }
}

/// 1.0's match, by the text of its specification: what is not matched is zero and wildcarded.
fn twelve_tuple(matching: &Match) -> Value {
    let mac = |field| value(field, matching.exact(field).unwrap_or(0));
    let number =
        |fields: &[Field]| fields.iter().find_map(|field| matching.exact(*field)).unwrap_or(0);
    let has = |fields: &[Field]| fields.iter().any(|field| matching.get(*field).is_some());
    let address = |fields: &[Field]| {
        let held = fields.iter().find_map(|field| matching.get(*field));
        held.map_or((0, 32), |held| (held.value, held.mask.trailing_zeros()))
    };
    let tp_src = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc, Field::Icmpv4Type];
    let tp_dst = [Field::TcpDst, Field::UdpDst, Field::SctpDst, Field::Icmpv4Code];
    let nw_proto = [Field::IpProto, Field::ArpOp];
    let (nw_src, src_bits) = address(&[Field::Ipv4Src, Field::ArpSpa]);
    let (nw_dst, dst_bits) = address(&[Field::Ipv4Dst, Field::ArpTpa]);
    // Where no tag is wanted the priority counts and is zero, unless it was sent otherwise.
    let sent_otherwise =
        matching.form().is_some_and(|form| form.difference.wildcards & 1 << 20 != 0);
    let pcp_counts = matching.exact(Field::VlanVid) == Some(0) && !sent_otherwise;
    let bits: [(u32, &[Field]); 10] = [
        (0, &[Field::InPort]),
        (1, if matching.exact(Field::VlanVid).is_some() { &[Field::VlanVid] } else { &[] }),
        (2, &[Field::EthSrc]),
        (3, &[Field::EthDst]),
        (4, &[Field::EthType]),
        (5, &nw_proto),
        (6, &tp_src),
        (7, &tp_dst),
        (20, if pcp_counts { &[Field::VlanVid] } else { &[Field::VlanPcp] }),
        (21, &[Field::IpDscp]),
    ];
    let wildcards = bits.iter().filter(|(_, fields)| !has(fields)).map(|(bit, _)| 1 << bit);
    let wildcards: u32 = wildcards.sum::<u32>() | src_bits << 8 | dst_bits << 14;
    let ipv4 = |number: u128| value(Field::Ipv4Src, number);
    let int = |number: u128| u64::try_from(number).unwrap();
    json!({
        "wildcards": wildcards,
        "in_port": int(number(&[Field::InPort]) & 0xffff),
        "dl_src": mac(Field::EthSrc),
        "dl_dst": mac(Field::EthDst),
        "dl_vlan": matching.exact(Field::VlanVid).map_or(0, dl_vlan),
        "dl_vlan_pcp": int(number(&[Field::VlanPcp])),
        "dl_type": int(number(&[Field::EthType])),
        "nw_tos": int(number(&[Field::IpDscp]) << 2),
        "nw_proto": int(number(&nw_proto)),
        "nw_src": ipv4(nw_src),
        "nw_dst": ipv4(nw_dst),
        "tp_src": int(number(&tp_src)),
        "tp_dst": int(number(&tp_dst)),
    })
}

fn dl_vlan(vid: u128) -> u64 {
    if vid == 0 { 0xffff } else { u64::try_from(vid).unwrap() & 0xfff }
}

pub(crate) fn actions(version: Version, actions: &[Action]) -> Value {
    list(actions, |one| action(version, one))
}

fn action(version: Version, action: &Action) -> Value {
    let ethertype = |ethertype: &u16| json!({ "ethertype": ethertype });
    let (name, mut members) = match action {
        Action::Output { port, max_len } => {
            ("OFPActionOutput", json!({ "port": port_no(version, *port), "max_len": max_len }))
        }
        Action::CopyTtlOut => ("OFPActionCopyTtlOut", json!({})),
        Action::CopyTtlIn => ("OFPActionCopyTtlIn", json!({})),
        Action::SetMplsTtl(ttl) => ("OFPActionSetMplsTtl", json!({ "mpls_ttl": ttl })),
        Action::DecMplsTtl => ("OFPActionDecMplsTtl", json!({})),
        Action::PushVlan(number) => ("OFPActionPushVlan", ethertype(number)),
        Action::PopVlan => ("OFPActionPopVlan", json!({})),
        Action::PushMpls(number) => ("OFPActionPushMpls", ethertype(number)),
        Action::PopMpls(number) => ("OFPActionPopMpls", ethertype(number)),
        Action::SetQueue(queue) => ("OFPActionSetQueue", json!({ "queue_id": queue.0 })),
        Action::Group(group) => ("OFPActionGroup", json!({ "group_id": group.0 })),
        Action::SetNwTtl(ttl) => ("OFPActionSetNwTtl", json!({ "nw_ttl": ttl })),
        Action::DecNwTtl if !version.has_oxm() => {
            ("NXActionDecTtl", json!({ "subtype": 18, "vendor": 0x2320 }))
        }
        Action::DecNwTtl => ("OFPActionDecNwTtl", json!({})),
        Action::SetField { field, value: number } => {
            let tlv = json!({
                "field": field.row().name, "mask": null, "value": value(*field, *number)
            });
            ("OFPActionSetField", json!({ "field": class("OXMTlv", tlv) }))
        }
        Action::PushPbb(number) => ("OFPActionPushPbb", ethertype(number)),
        Action::PopPbb => ("OFPActionPopPbb", json!({})),
        Action::Experimenter { experimenter, data } if !version.has_oxm() => {
            ("OFPActionVendorUnknown", json!({ "vendor": experimenter, "data": base64(data) }))
        }
        Action::Experimenter { experimenter, data } => (
            "OFPActionExperimenterUnknown",
            json!({ "experimenter": experimenter, "data": base64(data) }),
        ),
        Action::SetTagVid(_)
        | Action::SetTagPcp(_)
        | Action::SetNwEcn(_)
        | Action::SetMplsLabel(_)
        | Action::SetMplsTc(_) => panic!("os-ken has no OpenFlow 1.1"),
        Action::SetVlanVid(vid) => ("OFPActionVlanVid", json!({ "vlan_vid": vid })),
        Action::SetVlanPcp(pcp) => ("OFPActionVlanPcp", json!({ "vlan_pcp": pcp })),
        Action::StripVlan => ("OFPActionStripVlan", json!({})),
        Action::SetDlSrc(mac) => ("OFPActionSetDlSrc", json!({ "dl_addr": mac.to_string() })),
        Action::SetDlDst(mac) => ("OFPActionSetDlDst", json!({ "dl_addr": mac.to_string() })),
        Action::SetNwSrc(address) => ("OFPActionSetNwSrc", json!({ "nw_addr": address })),
        Action::SetNwDst(address) => ("OFPActionSetNwDst", json!({ "nw_addr": address })),
        Action::SetNwTos(tos) => ("OFPActionSetNwTos", json!({ "tos": tos })),
        Action::SetTpSrc(port) => ("OFPActionSetTpSrc", json!({ "tp": port })),
        Action::SetTpDst(port) => ("OFPActionSetTpDst", json!({ "tp": port })),
        Action::Enqueue { port, queue } => {
            ("OFPActionEnqueue", json!({ "port": port_no(version, *port), "queue_id": queue.0 }))
        }
        other => of_nicira(other),
    };
    if version.has_oxm() {
        members["type"] = action.kind().number(version).unwrap_or(0xffff).into();
    }
    class(name, members)
}

/// An action of Nicira's: the class and the members.
fn of_nicira(action: &Action) -> (&'static str, Value) {
    let name = |field: &openflow::Field| field.row().name;
    let (class, subtype, mut members) = match action {
        Action::Load { bits, dst, value } => {
            let ofs_nbits = bits.to_ofs_nbits();
            let members = json!({ "ofs_nbits": ofs_nbits, "dst": name(dst), "value": value });
            ("NXActionRegLoad", 7, members)
        }
        Action::Move { n_bits, src_offset, dst_offset, src, dst } => {
            let (src, dst) = (name(src), name(dst));
            let members = json!({ "n_bits": n_bits, "src_ofs": src_offset, "src_field": src,
                "dst_ofs": dst_offset, "dst_field": dst });
            ("NXActionRegMove", 6, members)
        }
        Action::OutputReg { bits, src, max_len } => {
            let ofs_nbits = bits.to_ofs_nbits();
            let members = json!({ "ofs_nbits": ofs_nbits, "src": name(src), "max_len": max_len });
            ("NXActionOutputReg", 15, members)
        }
        Action::Resubmit(port) => ("NXActionResubmit", 1, json!({ "in_port": port.number() })),
        Action::ResubmitTable { port, table } => {
            let members = json!({ "in_port": port.number(), "table_id": table.0 });
            ("NXActionResubmitTable", 14, members)
        }
        Action::Push { .. } | Action::Pop { .. } => on_stack(action),
        Action::Exit => ("NXActionExit", 17, json!({})),
        Action::Conjunction { dimension, n_dimensions, id } => {
            let members = json!({ "clause": dimension, "n_clauses": n_dimensions, "id": id });
            ("NXActionConjunction", 34, members)
        }
        Action::Learn(learn) => {
            let members = json!({
                "table_id": learn.table.0,
                "specs": list(&learn.specs, learn_spec),
                "idle_timeout": learn.idle_timeout_s,
                "hard_timeout": learn.hard_timeout_s,
                "priority": learn.priority,
                "cookie": learn.cookie.0,
                "flags": learn.flags.bits(),
                "fin_idle_timeout": learn.fin_timeouts_s[0],
                "fin_hard_timeout": learn.fin_timeouts_s[1],
            });
            ("NXActionLearn", 16, members)
        }
        Action::Controller { max_len, controller_id, reason } => {
            let reason = reason.number();
            let members =
                json!({ "max_len": max_len, "controller_id": controller_id, "reason": reason });
            ("NXActionController", 20, members)
        }
        Action::ControllerProperties(asked) => {
            let members = json!({
                "max_len": asked.max_len,
                "controller_id": asked.controller_id,
                "reason": asked.reason.number(),
                "userdata": asked.userdata,
                "pause": asked.pauses,
            });
            ("NXActionController2", 37, members)
        }
        Action::DecNwTtlTo(ids) => ("NXActionDecTtlCntIds", 21, json!({ "cnt_ids": ids })),
        Action::FinTimeout { .. } => fin_timeout(action),
        Action::Note(note) => ("NXActionNote", 8, json!({ "note": note })),
        other => panic!("{other:?} is none of Nicira's"),
    };
    members["subtype"] = subtype.into();
    members["experimenter"] = 0x2320.into();
    (class, members)
}

fn fin_timeout(action: &Action) -> (&'static str, u16, Value) {
    let Action::FinTimeout { idle_timeout, hard_timeout } = action else { unreachable!() };
    let members = json!({ "fin_idle_timeout": idle_timeout, "fin_hard_timeout": hard_timeout });
    ("NXActionFinTimeout", 19, members)
}

fn on_stack(action: &Action) -> (&'static str, u16, Value) {
    let of = |offset: u16, field: Field, n_bits: u16| {
        let name = field.row().name;
        json!({ "start": offset, "field": name, "end": n_bits })
    };
    if let Action::Pop { offset, dst, n_bits } = *action {
        return ("NXActionStackPop", 28, of(offset, dst, n_bits));
    }
    let Action::Push { offset, src, n_bits } = *action else { panic!("{action:?}") };
    ("NXActionStackPush", 27, of(offset, src, n_bits))
}

/// A part of a learnt entry. Its fields have os-ken's names of Nicira's match.
fn learn_spec(spec: &LearnSpec) -> Value {
    let part = |field: &openflow::Field, offset: &u16| json!([field.row().name, offset]);
    let src = match &spec.source {
        LearnSource::Field(field, offset) => part(field, offset),
        LearnSource::Immediate(value) => json!(*value as u64),
    };
    let (name, dst) = match &spec.target {
        LearnTarget::Match(field, offset) => ("NXFlowSpecMatch", part(field, offset)),
        LearnTarget::Load(field, offset) => ("NXFlowSpecLoad", part(field, offset)),
        LearnTarget::Output => ("NXFlowSpecOutput", json!("")),
    };
    class(name, json!({ "src": src, "dst": dst, "n_bits": spec.n_bits }))
}

fn instruction(instruction: &Instruction) -> Value {
    let (name, mut members) = if let Some(table) = instruction.goto_table() {
        ("OFPInstructionGotoTable", json!({ "table_id": table.0 }))
    } else if let Some((metadata, mask)) = instruction.metadata() {
        ("OFPInstructionWriteMetadata", json!({ "metadata": metadata, "metadata_mask": mask }))
    } else if let Some(meter) = instruction.meter() {
        ("OFPInstructionMeter", json!({ "meter_id": meter.0 }))
    } else {
        let list = actions(Version::V1_3, instruction.actions());
        ("OFPInstructionActions", json!({ "actions": list }))
    };
    members["type"] = instruction.kind().number(Version::V1_3).into();
    class(name, members)
}

/// Adds the actions of 1.0 or the instructions of 1.3.
fn add_instructions(version: Version, members: &mut Value, instructions: &[Instruction]) {
    match (version.has_oxm(), instructions) {
        (true, _) => members["instructions"] = list(instructions, instruction),
        (false, []) => members["actions"] = json!([]),
        (false, [Instruction::ApplyActions(list)]) => {
            members["actions"] = actions(version, list);
        }
        (false, _) => panic!("1.0 has no {instructions:?}"),
    }
}

/// 1.0's flag of emergency entries has the number of another one in 1.3.
fn flags(version: Version, flags: FlowModFlags) -> u16 {
    match version.has_oxm() {
        false if flags.contains(FlowModFlags::EMERG) => flags.bits() & 3 | 4,
        false | true => flags.bits(),
    }
}

pub(crate) fn flow_mod(version: Version, flow: &FlowMod) -> Value {
    let mut members = json!({
        "command": flow.command.number(),
        "cookie": flow.cookie.0,
        "idle_timeout": flow.idle_timeout_s,
        "hard_timeout": flow.hard_timeout_s,
        "priority": flow.priority,
        "buffer_id": buffer(flow.buffer_id),
        "out_port": port_no(version, flow.out_port),
        "flags": flags(version, flow.flags),
        "match": matching(version, &flow.matching),
    });
    if version.has_oxm() {
        members["cookie_mask"] = flow.cookie_mask.into();
        members["table_id"] = flow.table_id.0.into();
        members["out_group"] = flow.out_group.0.into();
    }
    add_instructions(version, &mut members, &flow.instructions);
    members
}

pub(crate) fn removed(version: Version, flow: &FlowRemoved) -> Value {
    let mut members = json!({
        "cookie": flow.cookie.0,
        "priority": flow.priority,
        "reason": flow.reason.number(),
        "duration_sec": flow.duration_s,
        "duration_nsec": flow.duration_ns,
        "idle_timeout": flow.idle_timeout_s,
        "packet_count": flow.packet_count,
        "byte_count": flow.byte_count,
        "match": matching(version, &flow.matching),
    });
    if version.has_oxm() {
        members["table_id"] = flow.table_id.0.into();
        members["hard_timeout"] = flow.hard_timeout_s.into();
    }
    members
}

pub(crate) fn stats(version: Version, flow: &FlowStats) -> Value {
    let mut members = json!({
        "table_id": flow.table_id.0,
        "duration_sec": flow.duration_s,
        "duration_nsec": flow.duration_ns,
        "priority": flow.priority,
        "idle_timeout": flow.idle_timeout_s,
        "hard_timeout": flow.hard_timeout_s,
        "cookie": flow.cookie.0,
        "packet_count": flow.packet_count,
        "byte_count": flow.byte_count,
        "match": matching(version, &flow.matching),
    });
    if version.has_oxm() {
        members["flags"] = flow.flags.bits().into();
    }
    add_instructions(version, &mut members, &flow.instructions);
    class("OFPFlowStats", members)
}
